"""Cases: the file names that are read, and for everything wrong one line that names file and place."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from skill_evaluator.errors import FixtureError, NotEvaluatedError
from skill_evaluator.library.case_table import accept_cases
from skill_evaluator.library.cases import Case, cases_without_document, find_cases, load_cases, read_cases
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import SafetyLimits

from tests.support.components import component, with_fixtures

ROOT = Path(__file__).parents[2]
SHIPPED = sorted(path.parent.name for path in (ROOT / "components").glob("*/schema.json"))
TRUTH = '{"shop": "A", "total": 9}'
GOOD = {"document.md": "A 9", "ground_truth.json": TRUTH}


@pytest.fixture
def skill(tmp_path: Path) -> Component:
    return component(tmp_path)


def write_case(folder: Path, files: Mapping[str, str | bytes]) -> None:
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def load(
    skill: Component, fixtures: Path, cases: Mapping[str, Mapping[str, str | bytes]], *patterns: str
) -> list[Case]:
    for case_id, files in cases.items():
        write_case(fixtures / "receipts" / "cases" / case_id, files)
    return list(load_cases(with_fixtures(skill, fixtures), patterns))


def test_case_is_read_as_written(skill: Component, tmp_path: Path) -> None:
    (case,) = load(skill, tmp_path / "f", {"a": {**GOOD, "meta.json": '{"reason": "plain"}'}})
    assert (case.id, case.document, case.labelled, case.meta) == ("a", "A 9", True, {"reason": "plain"})
    assert case.truth == {"shop": "A", "total": 9}


@pytest.mark.parametrize(
    "files",
    [
        {"document.md": "A 9", "expected.json": TRUTH},
        {"input.md": "A 9", "expected.json": TRUTH, "metadata.yaml": "reason: plain\n"},
        {**GOOD, "input.md": "not this", "expected.json": "not this", "metadata.yaml": "not: this"},
        {"document.md": b"\xef\xbb\xbfA 9", "ground_truth.json": b"\xef\xbb\xbf" + TRUTH.encode()},
        {**GOOD, "ground_truth.json": '{"total": 9.0, "shop": "A"}'},
    ],
)
def test_other_file_names_give_the_same_case(
    skill: Component, tmp_path: Path, files: Mapping[str, str | bytes]
) -> None:
    (case,) = load(skill, tmp_path / "f", {"a": files})
    (plain,) = load(skill, tmp_path / "g", {"a": GOOD})
    assert (case.document, case.truth, case.digest) == (plain.document, plain.truth, plain.digest)


def test_case_digest_covers_document_and_ground_truth(skill: Component, tmp_path: Path) -> None:
    cases = {
        "a": GOOD,
        "b": {**GOOD, "meta.json": "{}"},
        "c": {**GOOD, "document.md": "A 9."},
        "d": {**GOOD, "ground_truth.json": '{"shop": "A", "total": 8}'},
        "e": {"document.md": "A 9"},
    }
    digests = {case.id: case.digest for case in load(skill, tmp_path / "f", cases)}
    assert digests["a"] == digests["b"]
    assert len(set(digests.values())) == 4


def test_case_without_ground_truth_is_kept(skill: Component, tmp_path: Path) -> None:
    (case,) = load(skill, tmp_path / "f", {"a": {"document.md": "A 9"}})
    assert (case.labelled, case.truth, case.meta) == (False, None, {})


@pytest.mark.parametrize("name", ["expected.md", "expected.txt", "ground_truth.json"])
def test_ground_truth_of_a_text_component_is_a_text(tmp_path: Path, name: str) -> None:
    prompt = "---\nname: receipts\nversion: 1.0.0\noutput: text\n---\nSay.\n"
    skill = component(tmp_path, prompt=prompt, schema=None)
    text = "a receipt" if name.startswith("expected") else '"a receipt"'
    (case,) = load(skill, tmp_path / "f", {"a": {"document.md": "A 9", name: text}})
    assert case.truth == "a receipt"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"ground_truth.json": TRUTH}, "case 'a' has no document: <case>/document.md is missing"),
        (
            {"document.md": "A 9", "Ground-Truth.yaml": "shop: A"},
            "<case>/Ground-Truth.yaml looks like a ground truth; rename it to ground_truth.json or expected.json",
        ),
        ({**GOOD, "document.md": b"\xff"}, "<case>/document.md is not UTF-8 text (byte 0); save it as UTF-8"),
        ({**GOOD, "ground_truth.json": '{"shop": "A",\n}'}, "<case>/ground_truth.json:2:1: not JSON: "),
        (
            {**GOOD, "ground_truth.json": '{"shop": "A"}'},
            '<case>/ground_truth.json fails <schema> at /: "total" is a req',
        ),
        (
            {**GOOD, "ground_truth.json": '{"shop": 5, "total": 9}'},
            '<case>/ground_truth.json fails <schema> at /shop: 5 is not of types "null", "string"',
        ),
        ({**GOOD, "meta.json": "{"}, "<case>/meta.json:1:2: not JSON: "),
        (
            {**GOOD, "meta.json": '{"tags": [], "not_aplicable": ["m"]}'},
            "<case>/meta.json: unknown key 'not_aplicable' (did you mean 'not_applicable'?)",
        ),
        ({**GOOD, "metadata.yaml": "a: [1"}, "<case>/metadata.yaml:2:1: broken YAML: "),
        ({**GOOD, "metadata.yaml": "plain"}, 'a mapping of keys to values is expected, got "plain" in'),
    ],
)
def test_invalid_case_is_refused(
    skill: Component, tmp_path: Path, files: Mapping[str, str | bytes], message: str
) -> None:
    with pytest.raises(FixtureError) as caught:
        load(skill, tmp_path / "f", {"a": files, "b": GOOD})
    complaint = str(caught.value).replace(str(tmp_path / "f" / "receipts" / "cases" / "a"), "<case>")
    assert complaint.replace(str(skill.files.folder / "schema.json"), "<schema>").startswith(message)
    assert "\n" not in complaint


def test_cases_are_sorted_and_selected_by_pattern(skill: Component, tmp_path: Path) -> None:
    load(skill, tmp_path / "f", dict.fromkeys(("c2", "b", "a", "c1"), GOOD))
    for named, expected in (("", "a b c1 c2"), ("c*", "c1 c2"), ("c2 a", "a c2"), ("[ab]", "a b")):
        cases = load_cases(with_fixtures(skill, tmp_path / "f"), tuple(named.split()))
        assert " ".join(case.id for case in cases) == expected, named


def test_hidden_folders_and_files_are_no_cases(skill: Component, tmp_path: Path) -> None:
    write_case(tmp_path / "f" / "receipts" / "cases" / ".cache", {})
    (tmp_path / "f" / "receipts" / "cases" / "README.md").write_text("Cases.")
    assert [case.id for case in load(skill, tmp_path / "f", {"a": GOOD})] == ["a"]


def test_pattern_without_a_match_is_refused(skill: Component, tmp_path: Path) -> None:
    with pytest.raises(FixtureError, match=r"no case matches --case 'alfa' in .* \(did you mean 'alpha'\?\)"):
        load(skill, tmp_path / "f", {"alpha": GOOD, "beta": GOOD}, "alpha", "alfa")


def test_missing_fixtures_are_refused(skill: Component, tmp_path: Path) -> None:
    with pytest.raises(
        FixtureError, match=r"no fixtures for component 'receipts': .*none is not a folder; see --fixtures"
    ):
        load_cases(with_fixtures(skill, tmp_path / "none"))
    shared = component(tmp_path, datasets={"fixtures": "shared"})
    (tmp_path / "f").mkdir()
    with pytest.raises(FixtureError, match=r"no fixtures for component 'receipts': .*f/shared/cases missing; add "):
        load_cases(with_fixtures(shared, tmp_path / "f"))


SOURCE = {"input-source.md": "From the archive.", "expected.json": TRUTH}


@pytest.mark.parametrize(
    ("cases", "why"),
    [
        (None, "it has no cases: .*f/receipts/cases missing"),
        ({}, r".*cases has no cases; add <case-id>/document\.md and ground_truth\.json"),
        ({"a": SOURCE, "b": SOURCE}, r"case 'a' has input-source\.md and no document\.md"),
    ],
)
def test_component_without_documents_is_not_evaluated_yet(
    skill: Component, tmp_path: Path, cases: Mapping[str, Mapping[str, str]] | None, why: str
) -> None:
    (tmp_path / "f").mkdir()
    for case_id, files in (cases or {}).items():
        write_case(tmp_path / "f" / "receipts" / "cases" / case_id, files)
    if cases is not None:
        (tmp_path / "f" / "receipts" / "cases").mkdir(parents=True, exist_ok=True)
    with pytest.raises(NotEvaluatedError, match=f"'receipts' is not evaluated yet: {why}"):
        load_cases(with_fixtures(skill, tmp_path / "f"))
    (skill.records_dir).mkdir()
    (skill.records_dir / "20260101T000000Z-abcdef-m.json").write_text("{}")
    with pytest.raises(FixtureError, match=f"no fixtures for component 'receipts', which has records: {why}"):
        load_cases(with_fixtures(skill, tmp_path / "f"))


def test_case_without_its_document_is_skipped(skill: Component, tmp_path: Path) -> None:
    assert [case.id for case in load(skill, tmp_path / "f", {"a": GOOD, "b": SOURCE})] == ["a"]
    place = tmp_path / "f" / "receipts" / "cases"
    assert cases_without_document([place]) == ["b"]
    with pytest.raises(NotEvaluatedError, match=r"case 'b' has input-source\.md and no document\.md"):
        load_cases(with_fixtures(skill, tmp_path / "f"), ["b"])
    (place / "b" / "input.json").write_text('{"raw": 9}')
    assert [case.document for case in load_cases(with_fixtures(skill, tmp_path / "f"), ["b"])] == ['{"raw": 9}']


def test_cases_may_be_in_the_component(skill: Component, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotEvaluatedError, match=r": fixtures/receipts/cases and .*receipts/evals/cases missing"):
        find_cases(skill)
    write_case(skill.files.folder / "evals" / "cases" / "inside", GOOD)
    assert [case.id for case in load_cases(skill)] == ["inside"]
    write_case(tmp_path / "fixtures" / "receipts" / "cases" / "beside", GOOD)
    assert [case.id for case in load_cases(skill)] == ["beside"]


def test_fixtures_may_be_shared(tmp_path: Path) -> None:
    skill = component(tmp_path, datasets={"fixtures": "shared"})
    write_case(tmp_path / "f" / "shared" / "cases" / "a", GOOD)
    assert [case.id for case in load_cases(with_fixtures(skill, tmp_path / "f"))] == ["a"]


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_components_load_and_their_cases_give_a_reason(name: str) -> None:
    skill = load_component(ROOT / "components", name)
    cases = load_cases(with_fixtures(skill, ROOT / "fixtures"))
    assert len(cases) >= 10
    for case in cases:
        assert case.labelled, case.id
        assert case.document.strip(), case.id
        assert len(str(case.meta.get("reason", ""))) > 20, f"meta.json of {case.id} gives no reason"
    assert len({case.document for case in cases}) == len(cases)
    assert json.loads((skill.files.folder / "schema.json").read_text())["$schema"].endswith("2020-12/schema")


def test_readme_of_the_fixtures_names_every_case() -> None:
    for name in SHIPPED:
        readme = (ROOT / "fixtures" / name / "README.md").read_text()
        for folder in (ROOT / "fixtures" / name / "cases").iterdir():
            assert folder.name in readme, f"{folder.name} is not in the README of {name}"


def test_ground_truth_of_too_many_values_is_refused(tmp_path: Path) -> None:
    skill = component(tmp_path, limits=SafetyLimits(answer_leaves=4))
    few = {**GOOD, "ground_truth.json": '{"shop": "A", "total": 9, "items": ["a", "b"]}'}
    many = {**GOOD, "ground_truth.json": '{"shop": "A", "total": 9, "items": ["a", "b", "c"]}'}
    assert len(load(skill, tmp_path / "f", {"a": few})) == 1
    with pytest.raises(FixtureError) as caught:
        load(skill, tmp_path / "g", {"a": many})
    path = tmp_path / "g" / "receipts" / "cases" / "a" / "ground_truth.json"
    says = "holds 5 values, more than the limit of 4; shorten it, or raise limits.answer_leaves in"
    assert str(caught.value) == f"{path} {says} settings.yaml"


def test_case_file_over_its_limit_is_refused(tmp_path: Path) -> None:
    skill = component(tmp_path, limits=SafetyLimits(document_bytes=30))
    for name in ("document.md", "ground_truth.json", "meta.json", "metadata.yaml"):
        files = {"document.md": "A 9", "ground_truth.json": TRUTH, name: " " * 31}
        with pytest.raises(
            FixtureError, match=rf"{name} has 31 bytes; at most 30 are read \(limits\.document_bytes in"
        ):
            load(skill, tmp_path / name, {"a": files})


def test_case_folder_that_is_not_utf_8_is_refused(skill: Component, tmp_path: Path) -> None:
    good = load(skill, tmp_path / "f", {"a": GOOD})
    folder = tmp_path / "f" / "receipts" / "cases"
    (folder / "a").rename(folder / os.fsdecode(b"\xff"))
    with pytest.raises(FixtureError, match="is not UTF-8; rename the folder"):
        load(skill, tmp_path / "f", {"b": GOOD})
    assert len(load(skill, tmp_path / "f", {}, "b")) == len(good)


def test_unreviewed_case_is_read_but_not_evaluated(skill: Component, tmp_path: Path) -> None:
    folder = tmp_path / "fixtures" / "receipts" / "cases"
    draft = {"document.md": "Acme 2", "ground_truth.json": '{"shop": "Acme", "total": 2}'}
    write_case(folder / "draft-01", {**draft, "meta.json": '{"unreviewed": true, "topic": "food"}'})
    with pytest.raises(NotEvaluatedError, match="1 case drafted by a model and not reviewed"):
        load_cases(with_fixtures(skill, tmp_path / "fixtures"))
    write_case(folder / "b", draft)
    (folder.parent / "cases.jsonl").write_text(json.dumps({"id": "row", "document": "Bell 3", "unreviewed": True}))
    assert [case.id for case in load_cases(with_fixtures(skill, tmp_path / "fixtures"))] == ["b"]
    assert [case.id for case in read_cases(with_fixtures(skill, tmp_path / "fixtures"))] == ["b", "draft-01", "row"]
    with pytest.raises(FixtureError, match="remove the key `unreviewed` there"):
        accept_cases(with_fixtures(skill, tmp_path / "fixtures"), ["row"])
    assert accept_cases(with_fixtures(skill, tmp_path / "fixtures"), ["draft-*"]) == ["draft-01"]
    assert [case.id for case in load_cases(with_fixtures(skill, tmp_path / "fixtures"))] == ["b", "draft-01"]
    assert json.loads((folder / "draft-01" / "meta.json").read_text()) == {"topic": "food"}


def test_case_with_two_meta_files_is_accepted(skill: Component, tmp_path: Path) -> None:
    folder, draft = tmp_path / "fixtures" / "receipts" / "cases" / "a", '{"unreviewed": true}'
    write_case(folder, {"document.md": "A 9", "ground_truth.json": TRUTH, "meta.json": draft, "metadata.yaml": draft})
    assert accept_cases(with_fixtures(skill, tmp_path / "fixtures"), ["a"]) == ["a"]
    assert [case.id for case in load_cases(with_fixtures(skill, tmp_path / "fixtures"))] == ["a"]


def test_case_whose_metadata_has_a_date_keeps_it(skill: Component, tmp_path: Path) -> None:
    folder = tmp_path / "fixtures" / "receipts" / "cases" / "a"
    write_case(folder, {"document.md": "A 9", "ground_truth.json": TRUTH})
    (folder / "metadata.yaml").write_text("unreviewed: true\ncreated: 2024-01-01\n2024: a year\n")
    with pytest.raises(FixtureError, match="a value that JSON lacks, such as a date"):
        accept_cases(with_fixtures(skill, tmp_path / "fixtures"), ["a"])
    assert "created" in (folder / "metadata.yaml").read_text()


def test_ground_truth_of_an_unreviewed_case_decides_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "fixtures" / "receipts" / "cases" / "draft-01"
    files = {"document.md": "Acme 2", "ground_truth.json": json.dumps({"shop": "Acme " * 50, "total": 2})}
    write_case(folder, {**files, "meta.json": '{"unreviewed": true}'})
    made = component(tmp_path)
    before = load_component(made.files.folder.parent, made.name, fixtures_dir=tmp_path / "fixtures")
    (folder / "meta.json").unlink()
    after = load_component(made.files.folder.parent, made.name, fixtures_dir=tmp_path / "fixtures")
    assert (dict(before.scoring.prose), dict(after.scoring.prose)) == ({}, {"shop": 250.0})
