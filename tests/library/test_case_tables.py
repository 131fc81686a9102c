"""Cases in one file: they are what they would be as folders, and everything wrong is one line with file and line."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.errors import FixtureError
from skill_evaluator.library.case_table import CaseTable, import_cases
from skill_evaluator.library.cases import Case, load_cases, read_cases
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import SafetyLimits
from skill_evaluator.library.scaffolding import declarations
from skill_evaluator.library.tables import CaseRows, Columns, read_table

from tests.support.components import NAME, SCHEMA, component, with_fixtures
from tests.support.documents import a_pdf, a_png

TRUTH = {"shop": "A", "total": 9}
TEXT = f"---\nname: {NAME}\nversion: 1.0.0\n---\nSay.\n"
TWO_INPUTS = f"---\nname: {NAME}\nversion: 1.0.0\ninputs: [document, kind]\n---\nRead the {{{{kind}}}}.\n"


@pytest.fixture
def skill(tmp_path: Path) -> Component:
    return component(tmp_path)


def write(root: Path, content: str | bytes, name: str = "cases.jsonl") -> Path:
    path = root / "f" / NAME / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def lines(*values: Any) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def load(skill: Component, root: Path, *patterns: str) -> list[Case]:
    return list(load_cases(with_fixtures(skill, root / "f"), patterns))


def folder(root: Path, case_id: str, **files: Any) -> None:
    for name, value in files.items():
        path = root / "f" / NAME / "cases" / case_id / name.replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value))


def seen(case: Case) -> Any:
    """All of a case but its id."""
    return {name: getattr(case, name) for name in Case.__slots__ if name != "id"}


FULL = {
    "document": "A 9\r\nB",
    "inputs": {"kind": ["bill"], "unused": 7},
    "turns": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}],
    "ground_truth": TRUTH,
}
META = {"reason": "plain", "not_applicable": ["small-*"]}


def test_table_line_equals_a_case_folder(tmp_path: Path) -> None:
    skill = component(tmp_path, prompt=TWO_INPUTS)
    parts: Any = {"inputs__json": FULL["inputs"], "turns__json": FULL["turns"], "ground_truth__json": TRUTH}
    folder(tmp_path, "a", document__md=FULL["document"], meta__json=META, **parts)
    write(tmp_path, lines({"id": "b", **FULL, **META}))
    as_folder, as_line = load(skill, tmp_path)
    assert seen(as_folder) == seen(as_line)
    assert (as_line.not_applicable, as_line.meta) == (("small-*",), META)


def test_imported_table_equals_the_table_in_place(tmp_path: Path) -> None:
    declared = {"id": "key", "inputs": {"document": "text", "kind": "type"}, "truth": {"shop": "shop", "total": "sum"}}
    skill = component(tmp_path, prompt=TWO_INPUTS, datasets={"columns": declared})
    table = write(tmp_path, 'key,text,type,shop,sum,note\nx,"A\n9",bill,01,9.50,odd\ny,B,,,,\n', "cases.csv")
    in_place = load(skill, tmp_path)
    assert [case.truth for case in in_place] == [{"shop": "01", "total": 9.5}, {"shop": None, "total": None}]
    assert [dict(case.meta) for case in in_place] == [{"note": "odd"}, {}]
    assert [case.inputs["kind"] for case in in_place] == ["bill", ""]
    moved = table.rename(tmp_path / "t.csv")
    places: Any = {"components": tmp_path / "components", "fixtures": tmp_path / "f", "config": tmp_path}
    import_cases(
        CaseTable(file=moved, document=("text",), id="key", truth=("shop", "total=sum"), yes=True, skill=NAME, **places)
    )
    assert [(case.id, case.digest) for case in load(skill, tmp_path)] == [(case.id, case.digest) for case in in_place]


def test_table_line_names_files_beside_the_table_alone(skill: Component, tmp_path: Path) -> None:
    (write(tmp_path, lines({"id": "a", "document": {"file": "pages/scan.png"}})).parent / "pages").mkdir()
    (tmp_path / "f" / NAME / "pages" / "scan.png").write_bytes(a_png())
    (case,) = load(skill, tmp_path)
    assert case.files[0].path == tmp_path / "f" / NAME / "pages" / "scan.png"
    (tmp_path / "secret.png").write_bytes(a_png())
    write(tmp_path, lines({"id": "a", "document": {"file": "../../secret.png"}}))
    with pytest.raises(FixtureError):
        load(skill, tmp_path)


def test_unreadable_file_of_a_table_is_reported(skill: Component, tmp_path: Path) -> None:
    write(tmp_path, lines(*({"id": name, "document": {"file": f"{name}.pdf"}} for name in "abc")))
    for name in "abc":
        (tmp_path / "f" / NAME / f"{name}.pdf").write_bytes(b"%PDF-1.7 torn" if name == "b" else a_pdf("text"))
    problems: list[str] = []
    cases = read_cases(with_fixtures(skill, tmp_path / "f"), on_problem=lambda problem: problems.append(str(problem)))
    assert [case.id for case in cases] == ["a", "c"]
    assert ["b.pdf" in problem for problem in problems] == [True]


def test_table_rows_may_have_checks(tmp_path: Path) -> None:
    skill = component(tmp_path, prompt=TEXT, schema=None)
    checks = [{"contains": "A"}]
    write(tmp_path, lines({"id": "a", "document": "A", "checks": checks}))
    (case,) = load(skill, tmp_path)
    write(tmp_path, "").unlink()
    cell = json.dumps(checks).replace('"', '""')
    write(tmp_path, f'id,document,checks\na,A,"{cell}"\n', "cases.csv")
    (other,) = load(skill, tmp_path)
    assert case.checks == other.checks != ()
    fixtures = load_component(tmp_path / "components", NAME, fixtures_dir=tmp_path / "f")
    assert fixtures.output == "text"  # checks stand alone


def test_csv_columns_default_to_the_keys_of_a_line(skill: Component, tmp_path: Path) -> None:
    row = 'id,document,ground_truth,not_applicable,why\na,"A, 9","{""shop"": ""A"", ""total"": 9}","[""m""]",\n'
    write(tmp_path, "\ufeff" + row.replace("\n", "\r\n"), "cases.csv")
    (case,) = load(skill, tmp_path)
    assert (case.id, case.document, case.truth, case.not_applicable) == ("a", "A, 9", TRUTH, ("m",))
    assert case.meta == {"not_applicable": ["m"]}
    write(tmp_path, "id,document,kind\na,A 9,bill\n", "cases.csv")
    assert load(component(tmp_path, prompt=TWO_INPUTS), tmp_path)[0].inputs == {"document": "A 9", "kind": "bill"}
    write(tmp_path, row.replace("ground_truth", "expected"), "cases.csv")
    with pytest.raises(FixtureError, match="case 'a' has no expected"):  # no prompt holds the truth
        load(component(tmp_path, prompt=TWO_INPUTS.replace("kind", "expected")), tmp_path)


def test_cases_of_folder_and_table_are_merged_by_id(skill: Component, tmp_path: Path) -> None:
    folder(tmp_path, "b", document__md="B")
    write(tmp_path, lines({"id": "c", "document": "C"}, {"id": "a", "document": "A"}, {"id": "z"}))
    for named, expected in (("a", "a"), ("[abc]", "a b c"), ("b c", "b c")):
        assert " ".join(case.id for case in load(skill, tmp_path, *named.split())) == expected, named
    with pytest.raises(FixtureError, match=r"no case matches --case 'd\*' in \S+/cases, \S+/cases\.jsonl"):
        load(skill, tmp_path, "d*")


def test_cases_without_ids_are_numbered(skill: Component, tmp_path: Path) -> None:
    write(tmp_path, lines(*({"document": str(number)} for number in range(10))))
    assert [(case.id, case.document) for case in load(skill, tmp_path)][:2] == [("cases-01", "0"), ("cases-02", "1")]


@pytest.mark.parametrize(
    ("row", "truth"), [({}, None), ({"ground_truth": None, "expected": None}, None), ({"expected": TRUTH}, TRUTH)]
)
def test_ground_truth_of_a_line_is_read(skill: Component, tmp_path: Path, row: Mapping[str, Any], truth: Any) -> None:
    write(tmp_path, lines({"id": "a", "document": "A 9", **row}))
    (case,) = load(skill, tmp_path)
    assert (case.truth, case.labelled, dict(case.meta)) == (truth, truth is not None, {})


@pytest.mark.parametrize(
    ("table", "output", "truths"),
    [
        (lines({"document": "a", "expected": "12"}, {"document": "b", "expected": "spam"}), "text", ["12", "spam"]),
        (lines({"document": "a", "expected": {"is": "spam"}}), "json", [{"is": "spam"}]),
        (lines({"document": "a"}), "json", [None]),
        ("document,expected\na,12\nb,spam\nc,\n", "text", ["12", "spam", None]),
        ("document,expected\na,12\nb,TRUE\n", "json", [12, True]),
    ],
)
def test_undeclared_output_is_inferred_from_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, output: str, truths: list[Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f").mkdir()
    Path("fixtures").symlink_to("f")
    write(tmp_path, table, "cases.jsonl" if table.startswith("{") else "cases.csv")
    skill = component(Path(), prompt=TEXT, schema=None)
    assert skill.output == output
    assert [case.truth for case in load_cases(skill)] == truths


def test_cells_without_schema_are_numbers_unless_a_zero_leads(tmp_path: Path) -> None:
    path = tmp_path / "cases.csv"
    path.write_text('document,total,paid,code,shop\na,9.5,TRUE,007,null\nb,"9,5",no,12,[1]\n')
    columns = Columns(inputs={"document": "document"}, truth={name: name for name in ("total", "paid", "code", "shop")})
    table = read_table(path, columns, SafetyLimits().size_of("document_bytes"))
    assert list(table.truths("json", None)) == [
        {"total": 9.5, "paid": True, "code": "007", "shop": "null"},
        {"total": 9.5, "paid": "no", "code": "12", "shop": "[1]"},
    ]


def test_prose_is_inferred_from_a_table_and_init_declares_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("fixtures") / NAME / "cases.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(lines({"document": "A", "ground_truth": {"shop": "long " * 20, "total": 1}}))
    skill = component(Path())
    assert skill.scoring.prose == {"shop": 100}
    declared = json.loads(declarations(skill.files.folder, None, SafetyLimits()) or "")
    assert declared["datasets"][0]["fields"]["shop"] == {"compare": "text"}


def test_columns_change_no_component_digest(tmp_path: Path) -> None:
    plain = component(tmp_path, datasets={"id": "a"}).digests
    assert component(tmp_path, datasets={"id": "a", "columns": {"inputs": {"document": "text"}}}).digests == plain


CELLS = "id,document,ground_truth\n"
LINE = '{"id": "a", "document": "A"}\n'
WRONG = [
    ("cases.jsonl", LINE + LINE, ":2: the id 'a' is also the id of line 1"),
    ("cases.jsonl", '{"id": "../a", "document": "A"}\n', ":1: '../a' cannot be a case's id"),
    ("cases.jsonl", '{"id": "a", "document": "\\ud800"}\n', ":1: document: a character is written as half"),
    ("cases.jsonl", '{"id": "a"}\n', "case 'a' has no document: 'document' in {path}:1 is missing"),
    (
        "cases.jsonl",
        '{"id": "a", "document": "A", "reviewed": true, "ground_thruth": 1}\n',
        ":1: unknown key 'ground_thruth' (did you mean 'ground_truth'?)",
    ),
    ("cases.csv", "id,document,ID,Expected\na,A,,1\n", ":2: unknown key 'Expected' (did you mean 'expected'?)"),
    ("cases.jsonl", LINE + "\n[1]\n", ":3: not an object; write a line"),
    ("cases.jsonl", '{"document": "A", "inputs": [1]}\n', ":1: inputs must be an object"),
    (
        "cases.jsonl",
        '{"document": "A", "inputs": {"document": "B"}}\n',
        ":1: the document is in inputs",
    ),
    ("cases.jsonl", '{"document": "A", "turns": "hello"}\n', 'a list is expected, got "hello" at turns in {path}:1'),
    (
        "cases.jsonl",
        '{"document": "A", "not_applicable": 7}\n',
        "a list is expected, got 7 at not_applicable in {path}:1",
    ),
    (
        "cases.jsonl",
        '{"document": "A", "expected": {"shop": 5, "total": 1}}\n',
        ":1: the truth fails {schema} at /shop",
    ),
    ("cases.jsonl", '{"document": "A", "expected": [' + "0," * 60_000 + "0]}\n", ":1: the truth holds 60,001 values"),
    ("cases.jsonl", json.dumps(dict.fromkeys(map(str, range(100_001)))), ":1: 100,001 columns, 100,001 values so far"),
    ("cases.jsonl", b'{"document": "\xff"}\n', ":1: not JSON: 'utf-8' codec"),
    ("cases.jsonl", "", "{path} has no rows"),
    ("cases.jsonl", "x" * 4_000_001, ":1: the line has more than 4,000,000 bytes; at most 4,000,000 are read (limits."),
    ("cases.csv", CELLS + f"a,{'x' * 4_000_001},\n", ":2: field larger than field limit (4000000)"),
    ("cases.csv", CELLS + f"a,{'ä' * 2_000_001},\n", ":2: the document has 4,000,002 bytes; at most 4,000,000"),
    ("cases.csv", CELLS + "a,A\n", ":2: 2 cells, where the first row has 3"),
    ("cases.csv", CELLS + "a,A,spam\n", ":2: the truth, column 'ground_truth', is not valid JSON: 'spam'"),
    ("cases.csv", "id,id\na,b\n", ":1: every column needs a unique name"),
    ("cases.csv", "id,document,turns\na,A,hello\n", ":2: turns is not valid JSON: 'hello'"),
]


@pytest.mark.parametrize(("name", "content", "message"), WRONG, ids=[row[2] for row in WRONG])
def test_invalid_table_is_refused_with_file_and_line(
    skill: Component, tmp_path: Path, name: str, content: str | bytes, message: str
) -> None:
    path = write(tmp_path, content, name)
    with pytest.raises(FixtureError) as caught:
        load(skill, tmp_path)
    told = message.format(path=path, schema=skill.files.folder / "schema.json") if "{" in message else message
    assert (f"{path}{told}" if told.startswith(":") else told) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1_000


MAPPED = [
    ({"inputs": {"document": "txt"}}, "no column 'txt' in {path} (did you mean 'text'?)"),
    ({"inputs": {"document": "text"}, "id": "key"}, "no column 'key' in {path}"),
    ({"inputs": {"document": "text"}, "truth": {"sum": "n"}}, "truth 'sum': no such field in {schema}"),
    (
        {"inputs": {"document": "text"}, "truth": {"total": "n"}},
        "{path}:2: 'total', column 'n', is not valid JSON: 'many'",
    ),
]


@pytest.mark.parametrize("truth", [{"lines[].code": "a"}, {"lines": "a", "lines.code.unit": "b"}])
def test_column_of_a_field_inside_another_is_refused(truth: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"is inside 'lines'; name one column with the JSON of 'lines'"):
        Columns(truth=truth)


@pytest.mark.parametrize(("columns", "message"), MAPPED)
def test_columns_that_do_not_fit_a_table_are_named(tmp_path: Path, columns: Mapping[str, Any], message: str) -> None:
    skill = component(tmp_path, datasets={"columns": columns})
    path = write(tmp_path, "text,n\nA,many\n", "cases.csv")
    with pytest.raises(FixtureError) as caught:
        load(skill, tmp_path)
    assert message.format(path=path, schema=skill.files.folder / "schema.json") in str(caught.value)


def test_repeated_id_and_second_table_are_refused(skill: Component, tmp_path: Path) -> None:
    folder(tmp_path, "a", document__md="A")
    path = write(tmp_path, LINE)
    with pytest.raises(FixtureError, match=r"cases\.jsonl:1: the id 'a' is also the id of \S+/cases/a$"):
        load(skill, tmp_path)
    write(tmp_path, CELLS + "b,B,\n", "cases.csv")
    with pytest.raises(
        FixtureError, match=rf"{path} and \S+/cases\.csv are both the cases of component 'receipts'; keep one"
    ):
        load(skill, tmp_path)


def test_table_that_is_a_link_or_folder_is_refused(skill: Component, tmp_path: Path) -> None:
    outside = tmp_path / "secret.jsonl"
    outside.write_text(LINE)
    path = write(tmp_path, "")
    path.unlink()
    path.symlink_to(outside)
    with pytest.raises(FixtureError, match=r"cases\.jsonl leads out of \S+, to "):
        load(skill, tmp_path)
    path.unlink()
    path.mkdir()
    with pytest.raises(FixtureError, match=r"cannot read \S+cases\.jsonl: Is a directory"):
        load(skill, tmp_path)


def test_invalid_row_is_reported_and_the_others_read(skill: Component, tmp_path: Path) -> None:
    folder(tmp_path, "c", document__md="C", ground_truth__json="{")
    write(tmp_path, lines({"id": "a", "document": "A"}, 7, {"id": "b"}, {"id": "d", "document": "D"}))
    problems: list[str] = []
    cases = read_cases(with_fixtures(skill, tmp_path / "f"), on_problem=lambda problem: problems.append(str(problem)))
    assert [case.id for case in cases] == ["a", "d"]
    assert [problem.split(": ")[0].rpartition("/")[2] for problem in problems] == [
        "cases.jsonl:2",
        "case 'b' has no document",
        "ground_truth.json:1:2",
    ]


def test_truths_are_inferred_from_a_table_without_a_schema() -> None:
    columns = Columns(inputs={"document": "text"}, truth={"shop": "shop", "total": "sum"})
    table = CaseRows(
        path=Path("t.csv"), columns=columns, rows=[("a", 2, {"shop": "A", "sum": "x"}), ("b", 3, {"sum": "1"})]
    )
    assert list(table.truths("json", SCHEMA)) == [{"shop": None, "total": 1}]
