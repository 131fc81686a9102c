"""`cases import`: rows of a table become cases that can be evaluated, and what is wrong has file and line."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.library import SKILL, Ended, Library, read

CASES = f"fixtures/{SKILL}/cases"
FIELDS = ("--input", "text", "--truth", "title=headline", "--truth", "year")


def imported(library: Library, name: str, content: str, *arguments: str) -> Ended:
    library.write(name, content)
    return library.call("cases", "import", name, *(arguments or FIELDS))


TABLES = (
    ("new.csv", 'text,headline,year\n"A day, of 2024",A day,2024\n"two\nlines",,\n', FIELDS),
    ("new.tsv", "text\theadline\tyear\r\nA day, of 2024\tA day\t2024\r\n\r\ntwo\tx\t\r\n", FIELDS),
    ("new.csv", "\ufeffheadline,text,year\nA day,of 2024,2024\nx,of old, \n", FIELDS),
    ("new.csv", '\ufefftext;"year";headline\r\nA day, of 2024;2024,0;A day\r\ntwo;;x\r\n', FIELDS),
    ("new.csv", "text\theadline\tyear\nA day, of 2024\tA day\t2024\ntwo\t\t\n", FIELDS),
    (
        "new.jsonl",
        '{"text": "A day", "truth": {"title": "A day", "year": 2024}}\n'
        '{"text": {"raw": 1}, "truth": "{\\"title\\": null, \\"year\\": null}"}\n',
        ("--input", "text", "--truth", "truth"),
    ),
)


@pytest.mark.process
@pytest.mark.parametrize("answer", ["y", "n"])
def test_a_person_at_a_terminal_is_asked(answer: str, library: Library) -> None:
    library.write("new.csv", TABLES[0][1])
    terminal, command = pty.openpty()
    words = [sys.executable, "-m", "skill_evaluator", "cases", "import", "new.csv", *FIELDS]
    with subprocess.Popen(words, cwd=library.root, stdin=command, stdout=command, stderr=command) as process:
        os.write(terminal, f"{answer}\n".encode())
        assert process.wait(60) == 0
    os.close(command)
    assert b"Write them? [y/N]" in os.read(terminal, 65_536)
    os.close(terminal)
    assert (library.root / CASES / "new-1").exists() is (answer == "y")


def test_a_table_becomes_cases_that_lint_and_run(tmp_path: Path) -> None:
    for number, (name, content, arguments) in enumerate(TABLES):
        library = Library(tmp_path / str(number))
        before = library.tree()
        dry = imported(library, name, content, *arguments)
        assert (dry.code, dry.err) == (0, ""), content
        assert dry.out.startswith(f"2 cases of {SKILL}, 2 with ground truth, in {CASES}:\n  new-1: document.md, ground")
        assert dry.out.endswith("nothing was written; --yes writes them\n")
        assert library.tree().keys() == before.keys() | {name}
        assert imported(library, name, content, *arguments, "--yes").out.endswith("written\n")
        folder = library.root / CASES
        assert read(folder / "new-1" / "ground_truth.json") == {"title": "A day", "year": 2024}, content
        assert read(folder / "new-2" / "ground_truth.json")["year"] is None, content
        assert library.call("evaluate", SKILL, "--case", "new-*", "--dry-run").code == 0, content
        again = imported(library, name, content, *arguments, "--yes")
        assert again.refuses(f"{CASES}/new-1 exists already; choose other ids with --id COLUMN, or import only")
        assert again.err.endswith("the new rows with --new\n"), content


def test_import_adds_new_rows_of_a_grown_table(library: Library) -> None:
    rows = [f'"text {number}\n",t,{number}' for number in range(1, 11)]
    for count, new, known in ((2, 2, 0), (3, 1, 2), (10, 7, 3), (10, 0, 10)):  # ten rows have longer numbers
        table = "\n".join(["text,headline,year", *rows[:count]])
        done = imported(library, "n.csv", table, *FIELDS, "--new", "--yes")
        assert done.out.startswith(f"{new} case"), done.err
        assert (f"left out: {known} rows: it is a case already\n" in done.out) is (known > 0)
        assert len(list((library.root / CASES).glob("n-*"))) == count
    table = '{"n": "n-2", "text": "changed"}\n{"n": "b", "text": "b"}\n'
    done = imported(library, "t.jsonl", table, "--input", "text", "--id", "n", "--new")
    assert "1 case of" in done.out
    assert "  b: document.md" in done.out


def test_texts_become_expected_texts_beside_the_cases_that_are_there(library: Library) -> None:
    library.write("components/summary/prompt.md", "---\nversion: 1.0.0\noutput: text\n---\nSum up.\n")
    library.write("components/summary/evals/cases/old/document.md", "Old.")
    arguments = ("--skill", "summary", "--input", "text", "--truth", "short", "--yes")
    assert imported(library, "s.csv", 'text,short\nLong text.,"12, in short"\n', *arguments).code == 0
    folder = library.root / "components" / "summary" / "evals" / "cases" / "s-1"
    assert (folder / "expected.md").read_text() == "12, in short\n"
    assert library.call("evaluate", "summary", "--dry-run").code == 0


ROW = "text,headline,year\n"


def test_an_odd_row_is_one_line_of_warning_where_it_may_be_left_out(library: Library) -> None:
    content = '{"_meta": {"v": 1}}\n{"text": "a", "truth": {"title": "t", "year": 1}}\n7\n{"text": " "}\n'
    arguments = ("--input", "text", "--truth", "truth", "--yes")
    assert imported(library, "t.jsonl", content, *arguments).refuses("t.jsonl:3: no object")
    done = imported(library, "t.jsonl", content, *arguments, "--skip-invalid")
    assert (done.code, [line.split(": ")[:2] for line in done.err.splitlines()]) == (
        0,
        [["warning", f"t.jsonl:{line}"] for line in (3, 1, 4)],
    )
    assert [path.name for path in (library.root / CASES).glob("t-*")] == ["t-2"]


def test_where_one_case_cannot_be_written_none_is(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    before, rename = library.tree().keys(), Path.rename

    def full(path: Path, target: Path) -> Path:
        if target.name == "t-3":
            raise OSError(28, "No space left on device")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", full)
    rows = ROW + "".join(f"text {at},headline,2024\n" for at in range(5))
    refused = imported(library, "t.csv", rows, *FIELDS, "--yes")
    assert (refused.code, refused.err) == (2, f"error: cannot write {CASES}: No space left on device\n")
    assert library.tree().keys() == before | {"t.csv"}


WRONG = (
    ("t.xlsx", "", FIELDS, "t.xlsx is not a table; its name must end in .csv, .tsv, .jsonl or .json"),
    ("t.csv", "", FIELDS, "t.csv holds no row"),
    ("t.csv", ROW, FIELDS, "t.csv holds no row"),
    ("t.csv", "text,text,year\na,b,1\n", FIELDS, "t.csv:1: every column needs a name of its own"),
    ("t.csv", ROW + 'a,"b\nc",1\nd,e\n', FIELDS, "t.csv:4: 2 cells, where the first row has 3"),
    ("t.csv", ROW + 'a,"b"c,1\n', FIELDS, "t.csv:2: "),
    ("t.csv", "txt,headline,year\na,b,1\n", FIELDS, "no column 'text' in t.csv (did you mean 'txt'?)"),
    ("t.csv", ROW + "a,b,1\n", ("--input", "text", "--truth", "titel=headline"), "did you mean 'title'?"),
    ("t.csv", ROW + "a,b,1\n", ("--input", "text", "--truth", "heading"), "no column 'heading' in t.csv"),
    ("t.csv", ROW + "a,b,1\n", ("--input", "text", "--truth", "headline"), "t.csv:2: the truth, column 'headline'"),
    ("t.csv", ROW + "a,b,1\n ,b,1\n", FIELDS, "t.csv:3: column 'text', the document, is empty"),
    ("t.csv", ROW + "a,b,1\na,b,MMXX\n", FIELDS, "t.csv:3: 'year', column 'year', is no JSON: 'MMXX'; write 9.5"),
    ("t.csv", ROW + "a,b,1.5\n", FIELDS, f"t.csv:2: the truth fails components/{SKILL}/schema.json at /year"),
    ("t.csv", ROW + "a,b,NaN\n", FIELDS, "t.csv:2: 'year', column 'year', is no JSON"),
    ("t.csv", ROW + "a,b,1\na,b,2\n", (*FIELDS, "--id", "headline"), "t.csv:3: the id 'b' is that of line 2"),
    ("t.csv", ROW + "a,../b,1\n", (*FIELDS, "--id", "headline"), "t.csv:2: '../b' cannot be a case's id"),
    ("t.jsonl", '{"text": "a"}\n[1]\n', ("--input", "text"), "t.jsonl:2: no object; write a line such as"),
    ("t.jsonl", '{"text": "a"}\n{"text": \n', ("--input", "text"), "t.jsonl:2: not JSON"),
    ("t.jsonl", '{"text": "a"}\n{"txt": "b"}\n', ("--input", "text"), "t.jsonl:2: column 'text', the document, is"),
    ("t.csv", ROW + "a,b,1\n", (*FIELDS, "--skill", "notices"), "unknown component 'notices'"),
)


def test_what_is_wrong_is_one_line_and_nothing_is_written(library: Library) -> None:
    before = library.tree().keys() | {"t.csv", "t.xlsx", "t.jsonl"}
    for name, content, arguments, words in WRONG:
        assert imported(library, name, content, *arguments, "--yes").refuses(words), words
    assert library.tree().keys() == before


def test_a_field_inside_another_has_no_column(library: Library) -> None:
    (library.component / "schema.json").unlink()
    for fields in (("lines[].code=headline",), ("lines=headline", "lines.code=year")):
        truths = [part for field in fields for part in ("--truth", field)]
        refused = imported(library, "t.csv", ROW + "a,b,1\n", "--input", "text", *truths)
        name = fields[-1].partition("=")[0]
        assert f"'{name}' is inside an array or object" in refused.err


def test_without_a_schema_a_cell_is_a_text_and_inner_fields_nest(library: Library) -> None:
    (library.component / "schema.json").unlink()
    fields = ("--input", "text", "--truth", "is.title=headline", "--truth", "is.year=year")
    assert imported(library, "t.csv", ROW + "a,b,01\n", *fields, "--yes").code == 0
    assert read(library.root / CASES / "t-1" / "ground_truth.json") == {"is": {"title": "b", "year": "01"}}


def test_questions_and_a_component_nobody_named_are_refused(library: Library) -> None:
    library.write("components/quiz/prompt.md", "---\nversion: 1.0.0\noutput: choice\n---\nAnswer.\n")
    row = json.dumps({"text": "a"})
    assert (
        "name the component with --skill NAME: there are 2" in imported(library, "t.jsonl", row, "--input", "text").err
    )
    refused = imported(library, "t.jsonl", row, "--input", "text", "--skill", "quiz")
    assert "'quiz' asks questions: its cases are lines of questions.jsonl" in refused.err


def test_columns_named_like_inputs_fill_them_and_others_are_mapped(library: Library) -> None:
    front = f"name: {SKILL}\nversion: 1.0.0\ninputs: [question, context]\nmessages: sections"
    prompt = f"---\n{front}\n---\n## User\n\n{{{{question}}}} {{{{context}}}}\n"
    library.write(f"components/{SKILL}/prompt.md", prompt)
    truths = ("--truth", "title", "--truth", "year", "--yes")
    row = "{},context,title,year\nWho?,Far away,T,2024\n"
    assert imported(library, "a.csv", row.format("question"), *truths).code == 0
    refused = imported(library, "b.csv", row.format("asked"), *truths)
    assert refused.refuses("no column 'question' in b.csv")
    assert "--input NAME=COLUMN" in refused.err
    assert imported(library, "b.csv", row.format("asked"), "--input", "question=asked", *truths).code == 0
    for case_id in ("a-1", "b-1"):
        inputs = json.loads((library.root / f"fixtures/{SKILL}/cases/{case_id}/inputs.json").read_text())
        assert inputs == {"question": "Who?", "context": "Far away"}
