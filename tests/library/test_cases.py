"""Cases: the file names that are read, and for everything wrong one line that names file and place."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from skill_evaluator.errors import FixtureError
from skill_evaluator.library.cases import Case, find_cases, load_cases
from skill_evaluator.library.components import Component, load_component

from tests.support.components import component

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
    return list(load_cases(skill, fixtures, patterns))


def test_a_case_as_written(skill: Component, tmp_path: Path) -> None:
    (case,) = load(skill, tmp_path / "f", {"a": {**GOOD, "meta.json": '{"reason": "plain"}'}})
    assert (case.id, case.document, case.labelled, case.meta) == ("a", "A 9", True, {"reason": "plain"})
    assert case.truth == {"shop": "A", "total": 9}


@pytest.mark.parametrize(
    "files",
    [
        {"input.md": "A 9", "ground_truth.json": TRUTH},
        {"document.md": "A 9", "expected.json": TRUTH},
        {"document.md": "A 9", "expected.md": TRUTH},
        {"input.md": "A 9", "expected.json": TRUTH, "metadata.yaml": "reason: plain\n"},
        {**GOOD, "input.md": "not this", "expected.json": "not this", "metadata.yaml": "not: this"},
        {"document.md": b"\xef\xbb\xbfA 9", "ground_truth.json": b"\xef\xbb\xbf" + TRUTH.encode()},
        {**GOOD, "ground_truth.json": '{"total": 9.0, "shop": "A"}'},
    ],
)
def test_older_file_names_and_other_ways_to_write_it_are_the_same_case(
    skill: Component, tmp_path: Path, files: Mapping[str, str | bytes]
) -> None:
    (case,) = load(skill, tmp_path / "f", {"a": files})
    (plain,) = load(skill, tmp_path / "g", {"a": GOOD})
    assert (case.document, case.truth, case.digest) == (plain.document, plain.truth, plain.digest)


def test_the_digest_is_of_document_and_truth(skill: Component, tmp_path: Path) -> None:
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


def test_a_case_without_truth_is_kept(skill: Component, tmp_path: Path) -> None:
    (case,) = load(skill, tmp_path / "f", {"a": {"document.md": "A 9"}})
    assert (case.labelled, case.truth, case.meta) == (False, None, {})


@pytest.mark.parametrize("name", ["expected.md", "ground_truth.json"])
def test_the_truth_of_a_text_component(tmp_path: Path, name: str) -> None:
    prompt = "---\nname: receipts\nversion: 1.0.0\noutput: text\n---\nSay.\n"
    skill = component(tmp_path, prompt=prompt, schema=None)
    text = "a receipt" if name.endswith(".md") else '"a receipt"'
    (case,) = load(skill, tmp_path / "f", {"a": {"document.md": "A 9", name: text}})
    assert case.truth == "a receipt"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"ground_truth.json": TRUTH}, "case 'a' has no document: <case>/document.md is missing"),
        ({}, "case 'a' has no document: <case>/document.md is missing"),
        ({**GOOD, "document.md": b"\xff"}, "<case>/document.md is not UTF-8 text (byte 0); save it as UTF-8"),
        ({**GOOD, "ground_truth.json": '{"shop": "A",\n}'}, "<case>/ground_truth.json:2:1: not JSON: "),
        (
            {**GOOD, "ground_truth.json": '{"total": NaN}'},
            "<case>/ground_truth.json: not JSON: NaN is not a JSON value",
        ),
        (
            {**GOOD, "ground_truth.json": '{"total": ' + "[" * 400 + "]" * 400 + "}"},
            "<case>/ground_truth.json is nested too deeply to be compared with an answer",
        ),
        (
            {**GOOD, "ground_truth.json": '{"shop": "A"}'},
            '<case>/ground_truth.json fails <schema> at /: "total" is a req',
        ),
        (
            {**GOOD, "ground_truth.json": '{"shop": 5, "total": 9}'},
            '<case>/ground_truth.json fails <schema> at /shop: 5 is not of types "null", "string"',
        ),
        ({"document.md": "A", "expected.md": "A receipt"}, "<case>/expected.md:1:1: not JSON: Expecting value"),
        ({**GOOD, "meta.json": "{"}, "<case>/meta.json:1:2: not JSON: "),
        ({**GOOD, "meta.json": "[]"}, "<case>/meta.json must hold a mapping"),
        ({**GOOD, "metadata.yaml": "a: [1"}, "<case>/metadata.yaml:2:1: broken YAML: "),
        ({**GOOD, "metadata.yaml": "day: 2024-02-30"}, "<case>/metadata.yaml: broken YAML: day"),
        ({**GOOD, "metadata.yaml": "plain"}, "<case>/metadata.yaml must hold a mapping"),
    ],
)
def test_a_case_that_is_refused(
    skill: Component, tmp_path: Path, files: Mapping[str, str | bytes], message: str
) -> None:
    with pytest.raises(FixtureError) as caught:
        load(skill, tmp_path / "f", {"a": files, "b": GOOD})
    complaint = str(caught.value).replace(str(tmp_path / "f" / "receipts" / "cases" / "a"), "<case>")
    assert complaint.replace(str(skill.folder / "schema.json"), "<schema>").startswith(message)
    assert "\n" not in complaint


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ((), "a b c1 c2"),
        (("b",), "b"),
        (("c*",), "c1 c2"),
        (("c2", "a"), "a c2"),
        (("[ab]",), "a b"),
        (("*",), "a b c1 c2"),
    ],
)
def test_cases_come_by_id_or_as_named(
    skill: Component, tmp_path: Path, patterns: tuple[str, ...], expected: str
) -> None:
    matching = load(skill, tmp_path / "f", dict.fromkeys(("c2", "b", "a", "c1"), GOOD), *patterns)
    assert " ".join(case.id for case in matching) == expected


def test_only_the_cases_named_are_read(skill: Component, tmp_path: Path) -> None:
    (case,) = load(skill, tmp_path / "f", {"a": GOOD, "broken": {}}, "a")
    assert case.id == "a"


def test_hidden_folders_and_files_beside_the_cases_are_none(skill: Component, tmp_path: Path) -> None:
    write_case(tmp_path / "f" / "receipts" / "cases" / ".cache", {})
    (tmp_path / "f" / "receipts" / "cases" / "README.md").write_text("Cases.")
    assert [case.id for case in load(skill, tmp_path / "f", {"a": GOOD})] == ["a"]


def test_a_pattern_that_matches_nothing_is_named_with_the_nearest(skill: Component, tmp_path: Path) -> None:
    with pytest.raises(FixtureError, match=r"no case matches --case 'alfa' in .* \(did you mean 'alpha'\?\)"):
        load(skill, tmp_path / "f", {"alpha": GOOD, "beta": GOOD}, "alpha", "alfa")


def test_missing_fixtures_are_named_with_what_to_do(skill: Component, tmp_path: Path) -> None:
    with pytest.raises(
        FixtureError, match=r"no fixtures for 'receipts': .*none/receipts/cases missing; see --fixtures"
    ):
        load_cases(skill, tmp_path / "none")
    (tmp_path / "f" / "receipts" / "cases").mkdir(parents=True)
    with pytest.raises(
        FixtureError, match=r"receipts/cases holds no case; add <case-id>/document\.md and ground_truth"
    ):
        load_cases(skill, tmp_path / "f")


def test_cases_may_sit_in_the_component(skill: Component, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        FixtureError, match=r"no fixtures .* fixtures/receipts/cases and .*receipts/evals/cases missing"
    ):
        find_cases(skill, None)
    write_case(skill.folder / "evals" / "cases" / "inside", GOOD)
    assert [case.id for case in load_cases(skill, None)] == ["inside"]
    write_case(tmp_path / "fixtures" / "receipts" / "cases" / "beside", GOOD)
    assert [case.id for case in load_cases(skill, None)] == ["beside"]


def test_fixtures_may_be_shared_under_another_name(tmp_path: Path) -> None:
    skill = component(tmp_path, datasets={"fixtures": "shared"})
    write_case(tmp_path / "f" / "shared" / "cases" / "a", GOOD)
    assert [case.id for case in load_cases(skill, tmp_path / "f")] == ["a"]


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_component_loads_and_every_fixture_gives_a_reason(name: str) -> None:
    skill = load_component(ROOT / "components", name)
    cases = load_cases(skill, ROOT / "fixtures")
    assert len(cases) >= 10
    for case in cases:
        assert case.labelled, case.id
        assert case.document.strip(), case.id
        assert len(str(case.meta.get("reason", ""))) > 20, f"meta.json of {case.id} gives no reason"
    assert len({case.document for case in cases}) == len(cases)
    assert json.loads((skill.folder / "schema.json").read_text())["$schema"].endswith("2020-12/schema")


def test_four_components_with_documents_are_shipped() -> None:
    assert len(SHIPPED) == 4


def test_the_readme_of_the_shipped_fixtures_names_every_case() -> None:
    for name in SHIPPED:
        readme = (ROOT / "fixtures" / name / "README.md").read_text()
        for folder in (ROOT / "fixtures" / name / "cases").iterdir():
            assert folder.name in readme, f"{folder.name} is not in the README of {name}"
