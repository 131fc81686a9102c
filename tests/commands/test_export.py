"""`export`: records as tables that spreadsheets, data frames and databases read, and verdicts as JUnit XML."""

import csv
import io
import json
import re
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow.parquet
import pytest
from skill_evaluator.exchange.exported import TABLES, Row, TableForm, junit_text, table_blocks
from skill_evaluator.records.record import Record

from tests.support.library import ROOT, SKILL, Library
from tests.support.records import NOTHING, Score, a_run, keep
from tests.support.shell import blocks, clone, is_excerpt, type_block

PAGE = ROOT / "docs" / "records.md"
TYPES = {"text": "string", "integer": "int64", "number": "double", "boolean": "bool"}
RIGHT: dict[str, list[Score]] = {f"case-{at:02d}": [0.9, 0.92, 0.88] for at in range(12)}
WRONG: dict[str, list[Score]] = {**{name: [0.4, 0.38, 0.42] for name in list(RIGHT)[:11]}, "case-11": ["timeout"] * 3}
MIXED: dict[str, list[Score]] = {"one": [0.5, "unparseable"], "two": ["timeout", 1.0]}


def mixed(**changed: Any) -> Record:
    fields = {"year": {"one": (1, 2)}}
    return a_run("1.0.0", 1, MIXED, fields=fields, agreement={"one": 0.25}, **changed)


@pytest.fixture
def recorded(library: Library) -> Library:
    keep(library, mixed(), a_run("1.1.0", 2, {"one": [0.75]}, other={"recall": {"one": [1.0]}}))
    return library


def exported(library: Library, table: str, form: str) -> list[dict[str, Any]]:
    """The rows of a file, whatever its form; an empty cell is None."""
    file = library.root / f"{table}.{form}"
    done = library.call("export", "--table", table, "--to", form, "--out", file.name)
    assert (done.code, done.err) == (0, "")
    if form == "csv":
        lines = csv.DictReader(io.StringIO(file.read_text()))
        return [{name: _typed(table, name, cell) for name, cell in line.items()} for line in lines]
    if form == "jsonl":
        return [json.loads(line) for line in file.read_text().splitlines()]
    rows: list[dict[str, Any]] = pyarrow.parquet.read_table(file).to_pylist()
    return rows


def _typed(table: str, name: str, cell: str) -> Any:
    read = {"text": str, "integer": int, "number": float, "boolean": json.loads}[TABLES[table].kind_of(name)]
    return read(cell) if cell else None


@pytest.mark.parametrize("table", TABLES)
def test_every_form_holds_the_same_rows_and_columns_in_one_order(recorded: Library, table: str) -> None:
    of_csv, of_lines, of_parquet = (exported(recorded, table, form) for form in ("csv", "jsonl", "parquet"))
    assert of_csv == of_parquet
    assert [list(row) for row in of_csv] == [list(row) for row in of_parquet]
    whole = [{**dict.fromkeys(of_csv[0]), **row} for row in of_lines]
    assert whole == of_csv
    own = [column.name for column in TABLES[table].columns]
    assert list(of_csv[0])[: len(own)] == own
    schema = pyarrow.parquet.read_schema(recorded.root / f"{table}.parquet")
    kinds = {name: TYPES[TABLES[table].kind_of(name)] for name in schema.names}
    assert {name: str(schema.field(name).type) for name in schema.names} == kinds, "types go by what is missing"


def test_records_have_a_row_a_run_the_oldest_first(recorded: Library) -> None:
    first, second = exported(recorded, "records", "parquet")
    assert (first["skill_version"], second["skill_version"]) == ("1.0.0", "1.1.0")
    assert (first["cases"], first["planned"], first["coverage"]) == (2, 4, 0.75)
    assert (first["prompt_digest"], first["input_tokens"], first["latency_p95_s"]) == ("p", 10, 0.9)
    assert first["n_field_level_f1"] == 0
    assert "strict_mean_recall" in first  # the other run's metric
    assert first["n_recall"] is None


def test_cases_have_a_row_an_answer_with_what_it_counts_with(recorded: Library) -> None:
    rows = exported(recorded, "cases", "jsonl")
    figures = [(row["case_id"], row["replicate"], row["outcome"], row["strict_score"]) for row in rows]
    assert figures == [
        ("one", 0, "scored", 0.5),
        ("one", 1, "unparseable", 0.0),
        ("two", 0, "timeout", None),
        ("two", 1, "scored", 1.0),
        ("one", 0, "scored", 0.75),
    ]
    assert [row["score_field_level_f1"] for row in rows] == [0.5, None, None, 1.0, 0.75]
    assert [row.get("agreement_pairwise_exact_match") for row in rows] == [0.25, 0.25, None, None, None]
    assert [row.get("score_recall") for row in rows] == [None, None, None, None, 1.0]


def test_leaves_have_a_row_a_field_of_a_case(library: Library) -> None:
    field = {"compare": "number", "accuracy": 0.5, "n": 2, "right": 1, "wrong": 1, "missing": 0, "extra": 0}
    record = mixed(per_field={"year": {**field, "stability": None}})
    case = record.per_case[0].model_copy(update={"profile": {"year": "flaky", "title": "stable"}})
    keep(library, record.model_copy(update={"per_case": [case]}))
    year, title = exported(library, "leaves", "parquet")
    names = ("case_id", "path", "compare", "n_right", "n", "standing")
    assert tuple(map(year.get, names)) == ("one", "year", "number", 1, 2, "flaky")
    assert tuple(map(title.get, names)) == ("one", "title", None, None, None, "stable")


def test_no_cell_is_a_formula_and_the_exact_text_is_in_the_other_forms(library: Library) -> None:
    named = {"=1+1": NOTHING, "@SUM(A1)": NOTHING}
    keep(library, a_run("1.0.0", 1, {"a": [1.0]}, served_model="=cmd|' /C calc'!A0", reproducibility=named))
    library.call("export", "--out", "records.csv")
    cells = [cell for line in csv.reader(io.StringIO((library.root / "records.csv").read_text())) for cell in line]
    assert "'=cmd|' /C calc'!A0" in cells
    assert not [cell for cell in cells if re.match(r"[=+@\t\r]|-(?!\d)", cell)]
    (row,) = exported(library, "records", "jsonl")
    assert row["served_model"] == "=cmd|' /C calc'!A0"
    assert exported(library, "records", "parquet") == [row]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_rows_are_not_held_however_many_there_are(form: TableForm) -> None:
    class Watched(dict[str, Any]):
        pass

    alive: weakref.WeakSet[Any] = weakref.WeakSet()
    Watched.__hash__ = lambda self: id(self)  # type: ignore[assignment, method-assign]
    most = 0

    def rows() -> Iterator[Row]:
        nonlocal most
        for number in range(11_000):
            row = Watched(run_id="r" * 100, replicates=number, strict_mean_f1=0.5)
            alive.add(row)
            most = max(most, len(alive))
            yield row
            del row

    pieces = list(table_blocks(TABLES["records"], rows(), form))
    assert most <= 3
    assert len(pieces) > 1 or form == "parquet"


def test_runs_and_files_of_records_are_named_too(library: Library) -> None:
    assert library.evaluate_here("--no-leaderboard").code == 0
    (folder,) = library.results.iterdir()
    for source in (folder.name, str(folder), str(folder / "record.json")):
        done = library.call("export", source, "--to", "jsonl")
        assert [json.loads(line)["run_id"] for line in done.out.splitlines()] == [folder.name]
    (folder / "record.json").unlink()
    assert "has no record.json yet: `skill-evaluator score" in library.call("export", folder.name).err


def test_what_cannot_be_exported_is_an_error_of_one_line(recorded: Library) -> None:
    recorded.write("prompt.txt", "no record")
    for arguments, says in (
        (("nothing",), f"'nothing' is no component, run or file of a record (known: {SKILL})"),
        (("--model", "x"), "no record of model 'x' is among them (known: m)"),
        (("--to", "parquet"), "Parquet cannot be printed; use --out FILE"),
        (("prompt.txt",), "prompt.txt:1:1: not JSON"),
    ):
        assert recorded.call("export", *arguments).refuses(says), arguments


def test_a_broken_record_leaves_the_old_file(recorded: Library) -> None:
    out = recorded.write("out.csv", "old")
    sorted((recorded.component / "evals" / "records").iterdir())[-1].write_text("{")
    assert recorded.call("export", "--out", "out.csv").code == 2
    assert out.read_text() == "old"


def test_without_the_library_the_error_names_it_and_the_extra(
    recorded: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    wrong = recorded.call("export", "--to", "parquet", "--out", "x.parquet")
    assert wrong.refuses("`pip install pyarrow` (the extra `parquet` of this package)")
    assert not (recorded.root / "x.parquet").exists()


def suites(library: Library, *arguments: str) -> dict[str, ElementTree.Element]:
    done = library.call("export", SKILL, "--to", "junit", *arguments)
    assert (done.code, done.err) == (0, "")
    return {suite.get("name", ""): suite for suite in ElementTree.fromstring(done.out.encode())}


def became(suite: ElementTree.Element) -> dict[str, str]:
    """What became of each test."""
    return {test.get("name", ""): test[0].tag if len(test) else "passed" for test in suite}


def test_a_regression_fails_the_verdict_and_the_cases_that_broke(library: Library) -> None:
    keep(library, a_run("1.0.0", 1, RIGHT), a_run("1.1.0", 2, WRONG))
    keep(library, a_run("1.0.0", 3, RIGHT, model_id="n"), a_run("1.1.0", 4, RIGHT, model_id="n"))
    found = suites(library)
    worse = became(found[f"{SKILL}.m"])
    assert worse.pop("verdict") == "failure"
    assert worse.pop("case-11") == "skipped"  # no answer came
    assert set(worse.values()) == {"failure"}
    (failure,) = found[f"{SKILL}.m"].iterfind("testcase[@name='case-00']/failure")
    assert failure.get("message") == "broke: 0.900 → 0.400"
    same = became(found[f"{SKILL}.n"])
    assert same.pop("verdict") in ("passed", "skipped")
    assert set(same.values()) == {"passed"}
    counts = {name: found[f"{SKILL}.m"].get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "13", "failures": "12", "errors": "0", "skipped": "1"}
    assert library.call("export", "--to", "junit", "--table", "cases").refuses("not of junit")


def test_a_regression_of_which_no_case_shows_anything_alone_names_those_whose_every_answer_is_worse(
    library: Library,
) -> None:
    before: dict[str, list[Score]] = {f"case-{at}": [1.0] for at in range(5)}
    keep(library, a_run("1.0.0", 1, before), a_run("1.1.0", 2, {name: [0.0] for name in before}))
    suite = suites(library)[f"{SKILL}.m"]
    assert set(became(suite).values()) == {"failure"}
    (failure,) = suite.iterfind("testcase[@name='case-0']/failure")
    assert failure.get("message") == "worse: every answer scored less than any before"


def test_names_from_outside_make_no_broken_xml() -> None:
    hostile = "<img src=x>|\n# title\x1b[31m&\"'\x00\ufffe\ud800]]>"
    root = ElementTree.fromstring(junit_text([(hostile, [(hostile, "failure", [hostile])])], hostile).encode())
    assert (root.get("name") or "").startswith("<img src=x>|\\n# title\\u001b[31m&")
    assert [root.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["1", "1", "0", "0"]


def test_a_first_version_fails_nothing(library: Library) -> None:
    keep(library, a_run("1.0.0", 1, RIGHT))
    (suite,) = suites(library).values()
    assert became(suite).pop("verdict") == "skipped"
    assert suite.get("failures") == "0"


def test_the_page_has_every_column_with_its_type() -> None:
    text = PAGE.read_text()
    documented = set(re.findall(r"^\| `([^`]+)` \| (\w+) \| (.+) \|$", text, re.MULTILINE))
    declared = [column for table in TABLES.values() for column in (*table.columns, *table.of_metrics)]
    assert documented == {(column.name, column.kind, column.meaning) for column in declared}
    for name, table in TABLES.items():
        assert f"### {name}: a row {table.row}\n" in text


@pytest.mark.pages
def test_the_examples_of_the_page_are_true(tmp_path: Path) -> None:
    folder = clone(tmp_path)
    (console,) = blocks(PAGE, "console")
    for typed in type_block(console, folder):
        assert typed.code == 0, typed.err
        assert is_excerpt("\n".join(typed.shown), typed.out), typed.out
    program = f"import doctest; print(doctest.testfile({str(PAGE)!r}, False, optionflags=doctest.NORMALIZE_WHITESPACE))"
    done = subprocess.run([sys.executable, "-c", program], cwd=folder / "demo", capture_output=True, text=True)
    assert "TestResults(failed=0, attempted=6)" in done.stdout, done.stdout + done.stderr
