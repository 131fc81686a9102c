"""`explain`: one answer leaf by leaf beside its truth, or one field over all answers, as the scorer sees them."""

import json
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.support.chat_server import notice
from tests.support.git import IDENTITY
from tests.support.library import ROOT, SCRIPT, SKILL, Ended, Library, read
from tests.support.shell import blocks, is_excerpt

HOSTILE = ("[bold]loud[/bold]", "a|b`c", "\x1b[31mred\x07", "right\u202eleft", "\ud800", "two\nlines", "back\\|slash")
_LINE = {
    "type": "object",
    "properties": {"code": {"type": ["string", "null"]}, "price": {"type": ["number", "null"]}},
    "additionalProperties": False,
}
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": ["string", "null"]},
        "year": {"type": ["integer", "null"]},
        "lines": {"type": "array", "items": _LINE},
        "parts": {"type": "array", "items": _LINE},
        "steps": {"type": "array", "items": {"type": "integer"}},
        "tags": {"type": "array", "items": {"type": "string"}},
        "note": {"type": "string"},
    },
}
METRICS = ("schema_valid", "exact_match", "field_level_f1", "jaccard")
FIELDS: Mapping[str, Any] = {
    "lines": {"align": "key", "key": ["code"]},
    "steps": {"align": "ordered"},
    "note": {"compare": "text"},
}


def rows(**prices: float) -> list[Any]:
    """Items of the arrays `lines` and `parts`."""
    return [{"code": code, "price": price} for code, price in prices.items()]


LONG = "x" * 10_000
ONCE: Mapping[str, tuple[Any, Any]] = {  # by case its truth and its one answer
    "leaves": (
        {"title": "alpha", "year": 2024, "lines": rows(A=1, B=2, C=3)},
        {"title": " alpha ", "year": None, "lines": [*rows(C=3.5, D=4), {"code": "B"}], "note": "new"},
    ),
    "plain": ({"title": "alpha", "year": 2024}, {"title": "beta " * 30, "year": 2024}),
    "arrays": (
        {"lines": rows(A=1, B=2), "parts": rows(x=1, y=2, z=3), "steps": [1, 2], "tags": ["p", "q"]},
        {"lines": [*rows(B=2), *rows(B=9)], "parts": rows(z=3, x=9), "steps": [1, 2, 3], "tags": ["q", "r"]},
    ),
    "shapes": ({"title": "t", "lines": [{"code": "A"}]}, {"title": {"of": ["x"]}, "lines": "none"}),
    "prose": ({"title": "alpha"}, "I [bold]cannot[/bold]\nread \x1b[31m it"),
    "schema": ({"title": "alpha"}, {"title": "alpha", "year": "2024", "steps": ["one"]}),
    "document": ({"title": "alpha"}, {"title": "alpha"}),
    "long": ({"title": f"{LONG}same{LONG}"}, {"title": f"{LONG}else{LONG}"}),
    "hostile": (
        {"title": "alpha", "tags": list(HOSTILE)},
        {"title": HOSTILE[0], "tags": [*HOSTILE, "|x|"], HOSTILE[1]: 1},
    ),
    "misfit": ({"year": 1}, {"year": LONG}),
    "greek": ({"title": "α"}, {"title": "β→"}),
}


def declare(library: Library, schema: Any = SCHEMA, fields: Mapping[str, Any] = FIELDS) -> None:
    """Give the component its schema and how its fields are compared, and no case."""
    library.write(f"components/{SKILL}/schema.json", schema)
    dataset = {"id": "all", "metrics": METRICS, "fields": fields}
    library.write(f"components/{SKILL}/evals/datasets.json", {"datasets": [dataset]})
    shutil.rmtree(library.root / "fixtures" / SKILL)


def answered(
    library: Library, truth: Any, answers: Sequence[Any], schema: Any = SCHEMA, fields: Mapping[str, Any] = FIELDS
) -> str:
    """Evaluate one case, `alpha`, with these answers (texts as they are); returns the run's id."""
    declare(library, schema, fields)
    library.case("alpha", truth)
    library.record_answers({("alpha", index): text_of(answer) for index, answer in enumerate(answers)})
    library.evaluate_here("--replicates", str(len(answers)))
    return library.run_folder().name


def text_of(answer: Any) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer)


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A library with one run of the cases of ONCE."""
    library = Library(tmp_path_factory.mktemp("once"))
    declare(library)
    for case_id, (truth, _) in ONCE.items():
        library.case(case_id, truth)
    document = "".join(f"line {index}\n" for index in range(40))
    library.write(f"fixtures/{SKILL}/cases/document/document.md", document)
    library.record_answers({(case_id, 0): text_of(answer) for case_id, (_, answer) in ONCE.items()})
    done = library.evaluate_here("--replicates", "1")
    assert (done.code, "unscored" in done.out) == (0, False)
    return library


def explain(library: Library, *arguments: str) -> Ended:
    ended = library.call("explain", library.run_folder().name, *arguments)
    assert (ended.code, ended.err) == (0, "")
    return ended


def leaves(library: Library, *arguments: str) -> dict[str, str]:
    """The verdict by place."""
    explained = explain(library, *arguments, "--format", "json").json
    return {leaf["at"]: leaf["verdict"] for leaf in explained["leaves"]}


def test_each_array_says_which_item_met_which_and_why(once: Library) -> None:
    explained = explain(once, "--case", "arrays", "--format", "json").json
    found = {
        array["at"]: [(item["truth"], item["output"], item["why"]) for item in array["items"]]
        for array in explained["arrays"]
    }
    assert found == {
        "lines": [
            (0, None, 'the output has none of code "A"'),
            (1, 0, 'code "B", which is there more than once; 2 of 2 leaves right'),
            (None, 1, 'the truth has fewer items of code "B"'),
        ],
        "parts": [
            (0, 1, "best assignment: 1 of 2 leaves right"),
            (1, None, "left over: the output has fewer items"),
            (2, 0, "best assignment: 2 of 2 leaves right"),
        ],
        "steps": [(0, 0, "the same place"), (1, 1, "the same place"), (None, 2, "the truth ends before")],
        "tags": [
            (0, None, "no equal item left in the output"),
            (1, 0, "equal"),
            (None, 1, "no equal item left in the truth"),
        ],
    }
    text = explain(once, "--case", "arrays").out
    assert "array lines, aligned by key code: 1 met, 1 missing, 1 extra" in text
    assert "array parts, aligned by best assignment: 2 met, 1 missing, 0 extra" in text


def test_an_array_in_an_array_names_the_item_it_is_in(library: Library) -> None:
    inner = {"type": "array", "items": {"type": "string"}}
    item = {"type": "object", "properties": {"id": {"type": "string"}, "tags": inner}}
    schema = {"type": "object", "properties": {"rows": {"type": "array", "items": item}}}
    truth = {"rows": [{"id": "a", "tags": ["x"]}, {"id": "b", "tags": ["y", "z"]}]}
    output = {"rows": [{"id": "b", "tags": ["z"]}, {"id": "a", "tags": ["x"]}]}
    answered(library, truth, [output], schema, {"rows": {"align": "key", "key": ["id"]}})
    found = leaves(library, "--case", "alpha")
    assert (found["rows[1→0].tags[1→0]"], found["rows[1→0].tags[0→–]"]) == ("right", "missing")
    explained = explain(library, "--case", "alpha", "--format", "json").json
    assert [array["at"] for array in explained["arrays"]] == ["rows", "rows[0→1].tags", "rows[1→0].tags"]


def test_the_first_scored_replicate_is_shown_unless_another_is_named(library: Library) -> None:
    right = {"title": "alpha", "year": 2024}
    answered(library, right, ["no idea", right, f"Sure:\n```json\n{json.dumps(right)}\n```", "{}"])
    out = explain(library, "--case", "alpha").out
    assert "case alpha · replicate 1: scored\n" in out
    assert "replicates: 1 unparseable (0), 3 scored (1-3)\n" in out
    assert "field_level_f1 1.000" in out
    fenced = explain(library, "--case", "alpha", "--replicate", "2").out
    assert "replicate 2: scored, JSON in a code fence\n" in fenced
    assert leaves(library, "--case", "alpha", "--replicate", "3") == {"title": "missing", "year": "missing"}


def test_an_answer_that_could_not_be_parsed_is_shown_as_it_came(once: Library) -> None:
    ended = explain(once, "--case", "prose")
    assert "replicate 0: unparseable, prose\n" in ended.out
    assert "the answer as it came (35 characters)\nI [bold]cannot[/bold]\nread \\u001b[31m it\n" in ended.out
    data = explain(once, "--case", "prose", "--format", "json").json
    assert (data["outcome"], data["text"], data["leaves"]) == ("unparseable", ONCE["prose"][1], [])


def test_reasoning_is_shown_apart_from_the_output(library: Library) -> None:
    right = {"title": "alpha", "year": 2024}
    answered(library, right, [f"<think>hm\n{json.dumps({'year': 1})}</think>{json.dumps(right)}", "<think>hm"])
    ended = explain(library, "--case", "alpha")
    assert 'reasoning (29 characters)\n<think>hm\n{"year": 1}</think>\n' in ended.out
    assert set(leaves(library, "--case", "alpha").values()) == {"right"}
    cut = explain(library, "--case", "alpha", "--replicate", "1")
    assert "replicate 1: unparseable, in_reasoning\nwhat to do: raise params: {max_output_tokens}" in cut.out
    assert explain(library, "--case", "alpha", "--format", "json").json["reasoning"].startswith("<think>hm")


def test_a_call_that_failed_or_was_not_made_is_said(library: Library) -> None:
    line = {"case_id": "alpha", "replicate": 0, "error": {"kind": "timeout", "reason": "read_timeout"}}
    library.write("answers.jsonl", json.dumps(line) + "\n")
    library.evaluate_here("--case", "alpha", "--replicates", "2", "--max-calls", "1")
    out = explain(library, "--case", "alpha").out
    assert "replicate 0: timeout, read_timeout\n" in out
    assert "replicates: 1 timeout (0), 1 not_run (1)\n" in out
    assert "replicate 1: not_run\n" in explain(library, "--case", "alpha", "--replicate", "1").out


def test_what_the_schema_holds_against_an_answer_is_listed(once: Library) -> None:
    out = explain(once, "--case", "schema").out
    assert "schema errors\n" in out
    assert '/year: "2024" is not of type' in out
    assert '/steps/0: "one" is not of type "integer"' in out
    (row,) = (line for line in explain(once, "--case", "misfit").out.splitlines() if line.startswith('/year: "xxx'))
    assert len(row) < 130
    assert 'xxx" is not of types ' in row


def test_a_case_without_ground_truth_has_its_leaves_unscored(library: Library) -> None:
    run = answered(library, {"title": "alpha"}, [{"title": "alpha", "lines": [{"code": "A"}]}])
    (library.root / "fixtures" / SKILL / "cases" / "alpha" / "ground_truth.json").unlink()
    ended = library.call("explain", run, "--case", "alpha", "--format", "json")
    assert ended.err == "warning: changed since these answers were given: case 'alpha'\n"
    assert {leaf["verdict"] for leaf in ended.json["leaves"]} == {"unscored"}
    assert ended.json["arrays"] == []
    field = library.call("explain", run, "--field", "title")
    assert "no ground truth" in field.out


def test_the_document_is_shortened_unless_all_of_it_is_wanted(once: Library) -> None:
    short = explain(once, "--case", "document").out
    assert "line 5\n… (40 lines, 310 characters in all: --full shows them)\n" in short
    assert "line 6\n" not in short
    assert "line 14\n…" in explain(once, "--case", "document", "--format", "markdown").out
    assert "line 39\n" in explain(once, "--case", "document", "--full").out


def test_long_values_are_cut_to_where_they_differ(once: Library) -> None:
    (row,) = (line for line in explain(once, "--case", "long").out.splitlines() if line.startswith("wrong"))
    assert len(row) < 300
    assert "xxxsamexxx" in row
    assert "xxxelsexxx" in row
    assert row.count("(20,006 characters)") == 2
    full = explain(once, "--case", "long", "--full").out
    assert f"{LONG}same{LONG}" in full
    assert f"{LONG}else{LONG}" in full


def test_values_from_outside_stay_text_and_break_no_table(once: Library) -> None:
    text = explain(once, "--case", "hostile").out
    for shown in ('"[bold]loud[/bold]"', '"a|b`c"', "\\u001b[31mred\\u0007", "\\u202e", "\\ud800", "two\\nlines"):
        assert shown in text
    page = explain(once, "--case", "hostile", "--format", "markdown").out
    field = explain(once, "--case", "hostile", "--field", "tags[]", "--format", "markdown").out
    rows = [line.replace("\\|", "") for line in (page + field).splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {5, 6, 7}
    assert not {"\x1b", "\x07", "\u202e"} & set(text + page + field)
    data = explain(once, "--case", "hostile", "--format", "json").json
    assert data["truth"]["tags"] == list(HOSTILE)


def test_a_stdout_that_lacks_a_character_is_no_obstacle(once: Library) -> None:
    arguments = ("-m", "skill_evaluator", "explain", once.run_folder().name, "--case", "greek")
    env = {"PYTHONPATH": str(SCRIPT.parent), "PYTHONIOENCODING": "ascii"}
    with once.command(*arguments, env=env) as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert "\\u03b2\\u2192" in out


STANDINGS: Mapping[str, tuple[Sequence[str], str, float]] = {
    "same in other writing": (["2024", "2024", "2024.0"], "stable_right", 1.0),
    "same mistake": (["1999", "1999", "1999"], "stable_wrong", 1.0),
    "one mistake": (["2024", "1999", "2024"], "flaky", 2 / 3),
    "mostly absent": (["null", "2024", "null"], "flaky", 2 / 3),
    "one unparseable": (["2024", "2024", "oh no"], "flaky", 2 / 3),
    "none parsed": (["oh no", "oh no", "oh no"], "unscored", 0.0),
}


def test_a_field_has_its_values_the_commonest_and_its_standing(library: Library) -> None:
    for case_id in STANDINGS:
        library.case(case_id, {"title": None, "year": 2024})
    answers = {
        (case_id, index): f'{{"title": null, "year": {year}}}'
        for case_id, (years, _, _) in STANDINGS.items()
        for index, year in enumerate(years)
    }
    library.record_answers(answers)
    library.evaluate_here("--case", "* *", "--replicates", "3")
    data = explain(library, "--field", "year", "--format", "json").json
    found = {case["case"]: case for case in data["cases"]}
    for case_id, (_, standing, share) in STANDINGS.items():
        case = found[case_id]
        assert (case["standing"], case["share"]) == (standing, pytest.approx(share)), case_id
        given = [index for value in case["values"] for index in value["replicates"]]
        unparsed = [index for indexes in case["unparsed"].values() for index in indexes]
        assert sorted(given + unparsed) == [0, 1, 2]
    assert data["profile"] == {"stable_right": 1, "stable_wrong": 1, "flaky": 3, "unscored": 1}


def test_a_field_inside_arrays_has_the_list_of_its_values_by_any_way_of_writing_its_path(library: Library) -> None:
    truth = {"lines": [{"code": "A"}, {"code": "B"}]}
    answered(library, truth, [{"lines": [{"code": "B"}, {"code": "A"}]}, truth])
    for path in ("lines[].code", "lines[1→0].code", "lines[0].code"):
        data = explain(library, "--case", "alpha", "--field", path, "--format", "json").json
        assert data["field"] == "lines[].code"
        assert data["cases"][0]["values"] == [{"value": ["B", "A"], "replicates": [0, 1]}]
        assert data["profile"] == {"stable_right": 1}


def test_the_standing_is_the_one_the_record_has(library: Library) -> None:
    texts = {("alpha", 0): notice("alpha"), ("alpha", 1): notice("alpha", 1), ("beta", 0): notice("beta", 3)}
    library.record_answers({**texts, ("beta", 1): notice("beta", 3), ("gamma", 0): "?", ("gamma", 1): notice("gamma")})
    library.evaluate_here("--replicates", "2")
    recorded = read(library.run_folder() / "record.json")["per_field"]["year"]["profile"]
    shown = explain(library, "--field", "year", "--format", "json").json["profile"]
    assert {name: count for name, count in recorded.items() if count} == shown == {"stable_wrong": 1, "flaky": 2}


def test_an_answer_that_is_a_text_is_compared_as_a_whole(library: Library) -> None:
    prompt = f"---\nname: {SKILL}\nversion: 1.0.0\noutput: text\n---\nSum it up.\n"
    library.write(f"components/{SKILL}/prompt.md", prompt)
    (library.component / "schema.json").unlink()
    for case_id in ("alpha", "beta", "gamma"):
        library.write(f"fixtures/{SKILL}/cases/{case_id}/ground_truth.json", '"short"')
    library.record_answers({("alpha", 0): "short", ("alpha", 1): "long"})
    library.evaluate_here("--case", "alpha", "--replicates", "2")
    out = explain(library, "--case", "alpha", "--replicate", "1").out
    row = next(line for line in out.splitlines() if line.startswith("wrong"))
    assert '(the whole answer)  "short"  "long"  string' in row


def test_what_holds_fields_is_none_itself(library: Library) -> None:
    run = answered(library, {"lines": [{"code": "A"}]}, [{}])
    for path, below in (
        ("lines", "(known: lines[].code, lines[].price)"),
        ("cod", "(known: lines[].code, parts[].code)"),
    ):
        ended = library.call("explain", run, "--field", path)
        assert ended.code == 2
        assert ended.err == f"error: unknown field '{path}' of '{SKILL}' for --field {below}\n"


REFUSED: Mapping[tuple[str, ...], str] = {
    ("--case", "alpa"): "unknown case 'alpa' in {run} (did you mean 'alpha'?)",
    ("--field", "yeer"): "unknown field 'yeer' of 'notice-extraction' for --field (did you mean 'year'?)",
    ("--case", "alpha", "--replicate", "2"): "no replicate 2 in {run}: they are numbered 0 to 1",
    ("--case", "alpha", "--replicate", "-1"): "no replicate -1 in {run}: they are numbered 0 to 1",
    ("--field", "year", "--replicate", "0"): "--replicate cannot be combined with --field, which shows all replicates",
    (): "say what of the run to explain: --case ID or --field PATH (its cases: alpha, beta, gamma)",
}


def test_what_the_run_does_not_have_is_refused_in_one_line(library: Library) -> None:
    library.evaluate_here()
    run = library.run_folder().name
    for arguments, problem in REFUSED.items():
        ended = library.call("explain", run, *arguments)
        assert (ended.code, ended.out, ended.err) == (2, "", f"error: {problem.format(run=run)}\n")


def test_answers_that_were_edited_after_the_run_are_said_here_and_by_lint(library: Library) -> None:
    assert library.evaluate_here().code == 0
    folder = library.run_folder()
    arguments = ("explain", folder.name, "--case", "alpha")
    assert (library.call(*arguments).err, library.call("lint").code) == ("", 0)
    journal = folder / "replicates.jsonl"
    journal.write_text(journal.read_text().replace("2024", "2025", 1))
    place = folder.relative_to(library.root)
    said = f"warning: {place / 'record.json'} was made of other answers than {place / journal.name} holds\n"
    assert library.call(*arguments).err == said
    linted = library.call("lint")
    assert linted.code == 2
    record = f"components/{SKILL}/evals/records/{folder.name}.json"
    assert f"problem: {record}:1: this record was not made of the answers in " in linted.out


def test_a_run_is_named_by_its_folder_or_its_id(library: Library) -> None:
    library.evaluate_here()
    folder = library.run_folder()
    by_id = explain(library, "--case", "alpha").out
    assert library.call("explain", str(folder.relative_to(library.root)), "--case", "alpha").out == by_id
    missing = library.call("explain", "2026", "--case", "alpha")
    assert missing.code == 2
    assert missing.err.startswith("error: no run folder '2026', and no run of that id below components")
    no_run = library.call("explain", "components", "--case", "alpha")
    assert no_run.err == "error: components is not a run folder: it has no manifest.json\n"


def test_the_command_that_is_printed_next_runs_where_the_cases_lie_elsewhere(library: Library) -> None:
    (library.root / "fixtures").rename(library.root / "my fixtures")
    there = ("--fixtures", "my fixtures")
    prompt = library.component / "prompt.md"
    first = library.evaluate_here(*there)
    explained = library.call("explain", library.run_folder().name, "--case", "alpha", *there)
    prompt.write_text(prompt.read_text().replace("version: 1.0.0", "version: 1.1.0"))
    second = library.evaluate_here(*there)
    printed = [re.findall(r"^next: .*`skill-evaluator (.+)`", ended.out, re.M) for ended in (first, second, explained)]
    assert [shlex.split(command)[0] for (command,) in printed] == ["try", "accept", "compare"]
    ended = [library.call(*shlex.split(command), env=IDENTITY) for (command,) in printed]
    assert [each.code for each in ended] == [4, 0, 0], "only `try` wants more answers than are recorded"


def test_a_run_is_explained_when_its_model_is_gone(library: Library) -> None:
    library.evaluate_here()
    library.models({"id": "other", "provider": "openai"})
    assert "leaves: 2 right" in explain(library, "--case", "beta").out


def test_the_page_of_the_commands_shows_what_they_print(library: Library) -> None:
    truth = {
        "title": "Order 17",
        "year": 2024,
        "lines": [{"code": "A-1", "price": 12.5}, {"code": "B-2", "price": 4}, {"code": "C-3", "price": 7}],
        "tags": ["urgent"],
    }
    slips = {"title": "Order 17", "year": 2023, "lines": [*reversed(truth["lines"][1:]), {"code": "D-4"}]}
    fenced = f"Here it is:\n```json\n{json.dumps({**slips, 'tags': ['urgent', 'new']})}\n```"
    run = answered(library, truth, [fenced, truth, "I cannot read it.", truth])
    library.write(f"fixtures/{SKILL}/cases/alpha/document.md", "ORDER 17\nA-1  12.50\nB-2   4.00\nC-3   7.00\nurgent\n")
    answer = library.call("explain", run, "--case", "alpha").out
    field = library.call("explain", run, "--field", "year").out
    assert "alpha  2024   2024         2/4  flaky     2023 (0); unparseable (2)" in field
    (example,) = [block for block in blocks(ROOT / "docs" / "tour.md", "text") if "array lines" in block]
    assert is_excerpt(example, answer), answer


def test_the_page_of_the_commands_names_every_key_of_the_data(library: Library) -> None:
    answered(library, {"lines": [{"code": "A"}]}, [{"lines": [{"code": "A"}]}, "?"])
    page = (ROOT / "docs" / "tour.md").read_text()
    case = explain(library, "--case", "alpha", "--format", "json").json
    field = explain(library, "--field", "year", "--format", "json").json
    lint = library.call("lint", "--format", "json").json["components"][0]
    parts = [case, case["leaves"][0], case["arrays"][0], case["arrays"][0]["items"][0]]
    parts += [field, field["cases"][0], field["cases"][0]["values"][0], lint, *lint["fields"]]
    assert [key for part in parts for key in part if f"`{key}`" not in page] == []
