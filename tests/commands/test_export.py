"""`export`: records as tables that spreadsheets, data frames and databases read, and verdicts as JUnit XML."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from skill_evaluator.exchange.exported import TABLES, junit_text
from skill_evaluator.records.record import Record

from tests.shell import blocks, clone, is_excerpt, type_block
from tests.support.library import ROOT, SKILL, Library
from tests.support.records import NOTHING, Score, a_run, keep

PAGE = ROOT / "docs" / "records.md"
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


def exported(library: Library, table: str) -> list[dict[str, Any]]:
    done = library.call("export", "--table", table, "--to", "jsonl")
    assert (done.code, done.err) == (0, "")
    return [json.loads(line) for line in done.out.splitlines()]


@pytest.mark.parametrize("table", TABLES)
def test_csv_has_the_values_of_json_lines(recorded: Library, table: str) -> None:
    done = recorded.call("export", "--table", table, "--out", "out.csv")
    rows = exported(recorded, table)
    assert (done.code, done.out) == (0, f"{len(rows)} row{'s' if len(rows) > 1 else ''} written to out.csv\n")
    cells = list(csv.DictReader(io.StringIO((recorded.root / "out.csv").read_text())))
    assert [{name: cell for name, cell in line.items() if cell} for line in cells] == [
        {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in row.items()
            if value not in (None, "")
        }
        for row in rows
    ]


def test_cases_have_a_row_per_output(recorded: Library) -> None:
    rows = exported(recorded, "cases")
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


def test_leaves_have_a_row_per_field_of_a_case(library: Library) -> None:
    field = {"compare": "number", "accuracy": 0.5, "n": 2, "right": 1, "wrong": 1, "missing": 0, "extra": 0}
    record = mixed(per_field={"year": {**field, "stability": None}})
    case = record.per_case[0].model_copy(update={"profile": {"year": "flaky", "title": "stable"}})
    keep(library, record.model_copy(update={"per_case": [case]}))
    year, title = exported(library, "leaves")
    names = ("case_id", "path", "compare", "n_right", "n", "standing")
    assert tuple(map(year.get, names)) == ("one", "year", "number", 1, 2, "flaky")
    assert tuple(map(title.get, names)) == ("one", "title", None, None, None, "stable")


def test_no_csv_cell_is_a_formula(library: Library) -> None:
    named = {"=1+1": NOTHING, "@SUM(A1)": NOTHING}
    keep(library, a_run("1.0.0", 1, {"a": [1.0]}, served_model="=cmd|' /C calc'!A0", reproducibility=named))
    library.call("export", "--out", "records.csv")
    cells = [cell for line in csv.reader(io.StringIO((library.root / "records.csv").read_text())) for cell in line]
    assert "'=cmd|' /C calc'!A0" in cells
    assert not [cell for cell in cells if re.match(r"[=+@\t\r]|-(?!\d)", cell)]
    (row,) = exported(library, "records")
    assert row["served_model"] == "=cmd|' /C calc'!A0"


def test_unknown_records_are_refused_in_one_line(recorded: Library) -> None:
    recorded.write("prompt.txt", "no record")
    for arguments, says in (
        (("nothing",), f"'nothing' is not a component, a run or a record file (known: {SKILL})"),
        (("--model", "x"), "no record of model 'x' (known: m)"),
        (("prompt.txt",), "prompt.txt:1:1: not JSON"),
    ):
        assert recorded.call("export", *arguments).refuses(says), arguments


def suites(library: Library, *arguments: str) -> dict[str, ElementTree.Element]:
    done = library.call("export", SKILL, "--to", "junit", *arguments)
    assert (done.code, done.err) == (0, "")
    return {suite.get("name", ""): suite for suite in ElementTree.fromstring(done.out.encode())}


def became(suite: ElementTree.Element) -> dict[str, str]:
    """What became of each test."""
    return {test.get("name", ""): test[0].tag if len(test) else "passed" for test in suite}


def test_junit_fails_the_verdict_and_broken_cases(library: Library) -> None:
    keep(library, a_run("1.0.0", 1, RIGHT), a_run("1.1.0", 2, WRONG))
    keep(library, a_run("1.0.0", 3, RIGHT, model_id="n"), a_run("1.1.0", 4, RIGHT, model_id="n"))
    found = suites(library)
    worse = became(found[f"{SKILL}.m"])
    assert worse.pop("verdict") == "failure"
    assert worse.pop("case-11") == "skipped"  # no answer came
    assert set(worse.values()) == {"failure"}
    (failure,) = found[f"{SKILL}.m"].iterfind("testcase[@name='case-00']/failure")
    assert failure.get("message") == "worse: every output scored less than any output of the baseline"
    same = became(found[f"{SKILL}.n"])
    assert same.pop("verdict") in ("passed", "skipped")
    assert set(same.values()) == {"passed"}
    counts = {name: found[f"{SKILL}.m"].get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "13", "failures": "12", "errors": "0", "skipped": "1"}
    assert library.call("export", "--to", "junit", "--table", "cases").refuses(
        "--table cases requires --to csv or --to jsonl"
    )


def test_hostile_names_give_valid_xml() -> None:
    hostile = "<img src=x>|\n# title\x1b[31m&\"'\x00\ufffe\ud800]]>"
    root = ElementTree.fromstring(junit_text([(hostile, [(hostile, "failure", [hostile])])]).encode())
    assert (root[0].get("name") or "").startswith("<img src=x>|\\n# title\\u001b[31m&")
    assert [root.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["1", "1", "0", "0"]


@pytest.mark.pages
def test_examples_in_records_md_print_what_they_show(tmp_path: Path) -> None:
    folder = clone(tmp_path)
    (console,) = blocks(PAGE, "console")
    for typed in type_block(console, folder):
        assert typed.code == 0, typed.err
        assert is_excerpt("\n".join(typed.shown), typed.out), typed.out
