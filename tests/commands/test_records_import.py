"""Results of other tools: `compare` reads their files without configuration, `records import` records them.

The files under tests/data/elsewhere were written by the tools themselves (see tests/data/README.md).
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from skill_evaluator.exchange.imported import read_results

from tests.support.library import ROOT, SKILL, Ended, Library
from tests.support.records import a_run

MADE = ROOT / "tests" / "data" / "elsewhere"
PAIRS = {path.name.partition("_a.")[0]: path for path in sorted(MADE.glob("*_a.*"))}
assert set(PAIRS) == {"inspect", "promptfoo"}
INSPECT = json.loads((MADE / "inspect_a.json").read_text())


def other(path: Path) -> Path:
    """The file of the careless prompt beside that of the careful one."""
    return path.with_name(path.name.replace("_a.", "_b."))


def table(library: Library, name: str, scores: Mapping[str, list[Any]], column: str = "score") -> str:
    """Write a CSV of scores by case, a line a replicate."""
    lines = [f"{case},{at},{score}" for case, row in scores.items() for at, score in enumerate(row)]
    library.write(name, "\n".join([f"case,replicate,{column}", *lines, ""]))
    return name


def judged(library: Library, *arguments: str) -> Ended:
    return library.call("compare", *arguments, "--format", "json")


def primary(result: Ended) -> dict[str, Any]:
    (model,) = result.json["models"]
    return next(metric for metric in model["metrics"] if metric["tier"] == "critical")


RIGHT = {f"case-{at:02d}": [1, 1, 1] for at in range(20)}
WRONG = {f"case-{at:02d}": [0, 1 if at % 4 == 0 else 0, 0] for at in range(20)}


def test_different_days_is_rejected_for_own_records(library: Library) -> None:
    files = [str(library.write(f"{day}.json", a_run("1.0.0", day, RIGHT).model_dump(mode="json"))) for day in (1, 2)]
    assert library.call("compare", *files, "--different-days").refuses(
        "--different-days is only for results of another tool"
    )


def test_two_tables_are_compared_without_a_configuration(library: Library) -> None:
    for folder in (".evaluator", "components", "fixtures"):
        (library.root / folder).rename(library.root / f"not-{folder}")
    arguments = (table(library, "A.csv", RIGHT), table(library, "B.csv", WRONG))
    worse = judged(library, *arguments)
    assert (worse.code, worse.json["verdict"], worse.err) == (3, "regressed", "")
    assert "A → B" in library.call("compare", *arguments).out
    assert library.call("compare", *arguments, "--fail-on", "inconclusive").code == 0
    assert judged(library, arguments[1], arguments[0]).json["verdict"] == "improved"


@pytest.mark.parametrize("tool", PAIRS)
def test_real_results_of_each_tool_give_a_verdict(library: Library, tool: str) -> None:
    before, after = PAIRS[tool], other(PAIRS[tool])
    worse = judged(library, str(before), str(after))
    assert (worse.code, worse.json["verdict"]) == (3, "regressed")
    assert primary(worse)["n_cases"] == 10
    same = judged(library, str(before), str(before))
    assert same.json["verdict"] in ("unchanged", "inconclusive")


def test_imported_results_have_the_verdict_of_our_own_run(library: Library) -> None:
    library.write(
        f"components/{SKILL}/prompt.md", f"---\nname: {SKILL}\nversion: 1.0.0\noutput: text\n---\nThe capital?\n"
    )
    (library.component / "schema.json").unlink()
    dataset = {"id": SKILL, "metrics": ["exact_match", "pairwise_exact_match"]}
    library.write(f"components/{SKILL}/evals/datasets.json", {"datasets": [dataset]})
    shutil.rmtree(library.root / "fixtures" / SKILL)
    for version, name in (("1.0.0", "a"), ("1.1.0", "b")):
        samples = json.loads((MADE / f"inspect_{name}.json").read_text())["samples"]
        for sample in samples:
            library.case(sample["id"], json.dumps(sample["target"]))
        library.record_answers({(s["id"], s["epoch"] - 1): s["output"]["completion"] for s in samples})
        prompt = f"---\nname: {SKILL}\nversion: {version}\noutput: text\n---\nThe capital, {name}?\n"
        library.write(f"components/{SKILL}/prompt.md", prompt)
        assert library.call("evaluate", SKILL, "-n", "2").code in (0, 3)
    own = judged(library, SKILL)
    elsewhere = judged(library, *(str(MADE / f"inspect_{name}.json") for name in "ab"), "--different-days")
    assert own.json["verdict"] == elsewhere.json["verdict"] == "regressed"
    ours, theirs = primary(own), primary(elsewhere)
    figures = ("baseline", "candidate", "difference", "ci95", "p", "q", "n_cases", "verdict")
    assert {name: ours[name] for name in figures} == {name: theirs[name] for name in figures}


def test_imported_records_are_shown_by_every_command(library: Library) -> None:
    before, after = (str(MADE / f"inspect_{name}.json") for name in "ab")
    first = library.call("records", "import", before)
    assert (first.code, first.err) == (0, "")
    assert "inspect, openai/capital-1, 10 cases × 2 replicates, exact 0.950" in first.out
    assert library.call("records", "import", after, "--version", "1.1.0").code == 0
    assert "exists already" in library.call("records", "import", before).out
    assert judged(library, "capitals").json["verdict"] == "regressed"
    history = library.call("history", "capitals", "--format", "json").json
    assert [point["version"] for point in history["models"][0]["points"]] == ["1.0.0", "1.1.0"]
    (ranking,) = library.call("leaderboard", "capitals", "--format", "json").json
    assert ranking["models"][0]["verdict"] == "regressed"
    assert library.call("lint").code == 0


def imported(library: Library, name: str) -> Any:
    """The record of a table that is imported."""
    made = ("records", "import", name, "--skill", "quiz", "--version", "1.0.0", "--model", "m")
    assert library.call(*made).code == 0
    (path,) = (library.root / "components" / "quiz" / "evals" / "records").iterdir()
    return json.loads(path.read_text())


def test_error_in_a_table_is_no_wrong_output(library: Library) -> None:
    lines = [
        '{"case": "a", "output": "Paris ", "truth": "Paris"}',
        '{"case": "b", "output": {"x": 1.0, "y": null}, "truth": {"x": 1}}',
        '{"case": "c", "output": "no", "truth": "yes"}',
        '{"case": "d", "output": null, "truth": "yes", "error": "429"}',
    ]
    library.write("A.jsonl", "\n".join([*lines, ""]))
    record = imported(library, "A.jsonl")
    assert record["failures"] == {"provider_error": 1}
    assert [case["replicates"]["exact_match"] for case in record["per_case"]] == [[1.0], [1.0], [0.0], [None]]


def test_false_and_zero_in_the_error_column_are_no_error(library: Library) -> None:
    cells = ("", "0", "0.0", "false", "False", "429")
    rows = [f"{number},Paris,Paris,{cell}" for number, cell in enumerate(cells)]
    library.write("A.csv", "\n".join(["case,output,truth,error", *rows, ""]))
    assert imported(library, "A.csv")["failures"] == {"provider_error": 1}


def test_latency_of_promptfoo_is_read_in_milliseconds(tmp_path: Path) -> None:
    content = json.loads(PAIRS["promptfoo"].read_text())
    for latency_ms, result in zip([1500, "1500"], content["results"]["results"], strict=False):
        result["latencyMs"] = latency_ms
    path = tmp_path / "x.json"
    path.write_text(json.dumps(content))
    outputs = [output for run in read_results(path) for output in run.outputs]
    assert [output.latency_s for output in outputs[:2]] == [1.5, 1.5]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("x.csv", "name,score\na,1\n", "x.csv has no column 'case'; its columns are name, score"),
        ("x.csv", "case,score\n,1\n", "at case_id in x.csv:2"),
        ("x.csv", f"case,score\n{'a' * 1001},1\n", "at case_id in x.csv:2"),
        ("x.csv", "case,replicate,score\na,0,1\na,0,1\n", "x.csv: replicate 0 of case 'a' occurs more than once"),
        ("x.csv", "case,score,cost_usd\na,1,-2\n", "at cost_usd in x.csv:2"),
        ("x.jsonl", f'{{"case": "a", "score": 1, "input_tokens": {10**400}}}\n', "at input_tokens in x.jsonl:1"),
        ("x.jsonl", '{"case": "a", "scores": [1]}\n', "at scores in x.jsonl:1"),
        ("x.jsonl", '{"case": "a", "scores": {"f1": 7}}\n', "at scores.f1 in x.jsonl:1"),
        ("x.json", {"results": {"prompts": [], "results": []}}, "x.json contains no readable result"),
        (
            "x.json",
            {**INSPECT, "samples": INSPECT["samples"][:1] * 2},
            "x.json: replicate 1 of case 'cuba' occurs more than once",
        ),
        ("x.json", {"any": "thing"}, "x.json has no results in a known format"),
        ("x.eval", b"a zip", "x.eval is an archive; run: inspect log dump x.eval > x.json"),
    ],
)
def test_invalid_results_are_refused_in_one_line(library: Library, name: str, content: Any, says: str) -> None:
    library.write(name, content)
    assert library.call("compare", name, name).refuses(says)


@pytest.mark.parametrize("cell", ["nan", "N/A"])
def test_cell_that_is_no_score_is_named(library: Library, cell: str) -> None:
    before = table(library, "A.csv", RIGHT)
    wrong = table(library, "B.csv", {**RIGHT, "case-03": [1, cell, 1]})
    assert library.call("compare", before, wrong).refuses("at scores.score in B.csv:12")


def test_invalid_rows_are_skipped_on_request(library: Library) -> None:
    rows = ({"_meta": 1, "n": 1}, *({"case": at, "score": 1} for at in range(4)), {"case": "odd", "score": "N/A"})
    library.lines("odd.jsonl", *rows)
    command = ("records", "import", "odd.jsonl", "--skill", "quiz", "--version", "1.0.0", "--model", "m")
    assert library.call(*command).refuses("at case_id in odd.jsonl:1")
    done = library.call(*command, "--skip-invalid")
    assert "4 cases × 1 replicate, score 1.000" in done.out
    library.write("twice.csv", "case,replicate,score\na,0,nan\na,0,0.5\nb,0,1\n")  # the second a corrects the first
    twice = library.call("records", "import", "twice.csv", *command[3:], "--skip-invalid")
    assert ("2 cases" in twice.out, twice.err.count("left out")) == (True, 1)
    assert [re.findall(r"odd.jsonl:\d", line) for line in done.err.splitlines()] == [["odd.jsonl:1"], ["odd.jsonl:6"]]


def test_aborted_log_is_an_incomplete_record(library: Library) -> None:
    library.write("log.json", {**INSPECT, "status": "cancelled", "samples": INSPECT["samples"][:3]})
    assert "exact 1.000, incomplete (status 'cancelled' in" in library.call("records", "import", "log.json").out
    assert library.call("accept", "capitals", "--reason", "x", "--by", "y").refuses("no run of 'capitals' is complete")
    assert "the candidate's run is incomplete: status 'cancelled'" in judged(library, "log.json", "log.json").out


def test_action_fails_on_worse_results(tmp_path: Path) -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    (step,) = (step for step in action["runs"]["steps"] if step["name"] == "Compare")
    program = tmp_path / "skill-evaluator" / "bin" / "skill-evaluator"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/bash\nexec "{sys.executable}" -m skill_evaluator "$@"\n')
    program.chmod(0o755)
    values = {"BASELINE": MADE / "promptfoo_a.json", "CANDIDATE": MADE / "promptfoo_b.json"}
    values |= {"FAIL_ON": "", "DIFFERENT_DAYS": ""}
    assert set(step["env"]) == set(values)
    places = {"RUNNER_TEMP": tmp_path, "GITHUB_STEP_SUMMARY": tmp_path / "summary.md", "PYTHONPATH": ROOT / "tools"}
    environment = {**os.environ, **{name: str(value) for name, value in {**values, **places}.items()}}
    command = ["bash", "-e", "-c", step["run"]]
    ended = subprocess.run(command, env=environment, cwd=tmp_path, check=False, text=True, capture_output=True)
    assert ended.returncode == 3, ended.stderr
    assert (tmp_path / "summary.md").read_text() == ended.stdout
    assert ended.stdout.startswith("## `results` ")
    assert "treated as measured on the same day" in ended.stdout
