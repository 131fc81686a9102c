"""`export --to inspect` and `--to promptfoo`: a run for the viewers of other tools, and back again without a loss."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.records.flat import TABLES
from skill_evaluator.records.record import read_record

from tests.support.chat_server import notice
from tests.support.library import SKILL, Library

TOOLS = ("inspect", "promptfoo")
OUTCOMES = {
    "alpha": ["scored", "scored", "unparseable"],
    "beta": ["scored", "provider_error", "scored"],
    "gamma": ["unparseable", "unparseable", "unparseable"],
    "unlabelled": ["scored", "scored", "scored"],
}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A library with a run in which answers are right, wrong, no JSON and missing, one case without a truth."""
    library = Library(tmp_path_factory.mktemp("measured"))
    library.write(f"fixtures/{SKILL}/cases/unlabelled/document.md", "nobody knows the title of this.\n")
    texts = {(case_id, at): notice(case_id) for case_id in OUTCOMES for at in range(3)}
    texts |= {("alpha", 1): json.dumps({"title": "alpha \ud83d", "year": 1999}), ("alpha", 2): "I cannot."}
    texts |= {("gamma", at): "no JSON" for at in range(3)}
    del texts["beta", 1]
    library.record_answers(texts)
    library.evaluate_here("-n", "3", "--no-leaderboard")
    record = read_record(library.run_folder() / "record.json")
    assert {case.case_id: case.outcomes for case in record.per_case} == OUTCOMES
    return library


@pytest.fixture
def library(measured: Library, tmp_path: Path) -> Library:
    """A copy of it."""
    return measured.copy(tmp_path)


@pytest.fixture
def run(library: Library) -> Path:
    """The folder of its run."""
    return library.run_folder()


def exported(library: Library, source: str, tool: str) -> Any:
    done = library.call("export", source, "--to", tool, "--out", f"{tool}.json")
    assert done.code == 0, done.err
    return json.loads((library.root / f"{tool}.json").read_text())


def answers_of(path: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """What a record says of each answer, but for which run it is of."""
    of_run = ("run_id", "timestamp", "skill", "complete", "case_digest")
    rows = [dict(row) for row in TABLES["cases"].rows(read_record(path))]
    return {
        (row["case_id"], row["replicate"]): {
            key: value for key, value in row.items() if key not in of_run and not key.startswith("agreement_")
        }
        for row in rows
    }


def imported(library: Library, name: str) -> Path:
    """Import results into another folder of components; return the record."""
    back = library.call("records", "import", name, "--components", "elsewhere")
    assert (back.code, back.err) == (0, "")
    (path,) = (library.root / "elsewhere" / SKILL / "evals" / "records").iterdir()
    return path


@pytest.mark.parametrize("alone", [False, True], ids=["folder", "record"])
@pytest.mark.parametrize("tool", TOOLS)
def test_what_was_exported_is_imported_with_the_same_scores(
    library: Library, run: Path, tool: str, alone: bool
) -> None:
    record = library.write("alone.json", (run / "record.json").read_text())
    exported(library, str(record if alone else run), tool)
    path = imported(library, f"{tool}.json")
    before, after = answers_of(record), answers_of(path)
    if tool == "promptfoo":  # which has no answer without a score
        before = {key: row for key, row in before.items() if key[0] != "unlabelled"}
    assert after == before
    old, new = read_record(record), read_record(path)
    assert (new.model_id, new.timestamp, new.primary_metric) == (old.model_id, old.timestamp, old.primary_metric)
    for name in ("field_level_f1", "exact_match"):
        assert new.accuracy[name] == old.accuracy[name]
    assert new.failures == old.failures
    assert [case.digest for case in new.per_case] != [case.digest for case in old.per_case]
    again = library.call("compare", f"{tool}.json", f"{tool}.json", "--format", "json").json
    assert not again["models"][0]["cases"]["left_out"]


def test_a_case_that_changed_is_another_case_also_where_its_text_is_not_at_hand(library: Library, run: Path) -> None:
    digests = []
    for year in (2024, 2025):
        library.case("alpha", {"title": "alpha", "year": year})
        library.evaluate_here("-n", "3", "--no-leaderboard")
        newest = sorted(library.results.iterdir())[-1]
        library.write("alone.json", (newest / "record.json").read_text())
        exported(library, "alone.json", "inspect")
        library.call("records", "import", "inspect.json", "--components", f"of-{year}")
        (path,) = (library.root / f"of-{year}" / SKILL / "evals" / "records").iterdir()
        digests.append({case.case_id: case.digest for case in read_record(path).per_case})
    assert digests[0]["alpha"] != digests[1]["alpha"]
    assert digests[0]["beta"] == digests[1]["beta"]


def test_a_log_of_inspect_holds_the_run(library: Library, run: Path) -> None:
    log = exported(library, run.name, "inspect")
    assert (log["eval"]["task"], log["eval"]["task_version"], log["eval"]["model"]) == (SKILL, "1.0.0", "recorded")
    assert log["plan"]["config"] == {"system_message": "Extract title and year."}
    samples = {(sample["id"], sample["epoch"]): sample for sample in log["samples"]}
    right, wrong, unread = (samples["alpha", epoch] for epoch in (1, 2, 3))
    assert right["input"] == "alpha is the title of a notice of 2024.\n"
    assert json.loads(right["target"]) == {"title": "alpha", "year": 2024}
    assert (right["output"]["completion"], right["messages"][1]["content"]) == (notice("alpha"), notice("alpha"))
    assert right["scores"]["field_level_f1"] == {"value": 1.0, "explanation": None}
    assert json.loads(wrong["output"]["completion"])["title"] == "alpha \ud83d"
    assert unread["scores"]["field_level_f1"] == {"value": 0.0, "explanation": "unparseable"}
    failed = samples["beta", 2]
    assert failed["error"]["message"].startswith("provider_error: ")
    assert (failed["scores"], failed["output"]["choices"]) == ({}, [])
    assert list(samples["unlabelled", 1]["scores"]) == ["schema_valid"]


def test_results_of_promptfoo_hold_the_run_and_count_what_has_no_score(library: Library, run: Path) -> None:
    done = library.call("export", run.name, "--to", "promptfoo")
    assert (done.code, done.err) == (0, "left out: 3 answers of 1 case that the primary metric does not measure\n")
    results = json.loads(done.out)["results"]
    assert results["stats"] | {"tokenUsage": None} == {"successes": 3, "failures": 5, "errors": 1, "tokenUsage": None}
    first, wrong = results["results"][:2]
    assert (first["success"], first["score"], first["failureReason"]) == (True, 1.0, 0)
    assert first["vars"]["document"] == "alpha is the title of a notice of 2024.\n"
    assert first["response"]["output"] == notice("alpha")
    assert (wrong["success"], wrong["failureReason"]) == (False, 1)
    (failed,) = (result for result in results["results"] if result["failureReason"] == 2)
    assert failed["testCase"]["description"] == "beta"
    (prompt,) = results["prompts"]
    assert prompt["raw"] == "Extract title and year."
    metrics, written = prompt["metrics"], results["results"]  # promptfoo adds up, and its viewer divides
    assert metrics["score"] == pytest.approx(sum(result["score"] for result in written))
    assert metrics["score"] == 3.0
    named = [result["namedScores"]["field_level_f1"] for result in written if result["failureReason"] != 2]
    assert metrics["namedScores"]["field_level_f1"] == pytest.approx(sum(named))
    assert metrics["namedScoresCount"]["field_level_f1"] == len(named) == 8
    assert metrics["totalLatencyMs"] == sum(result["latencyMs"] or 0 for result in written)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_record_alone_gives_scores_and_no_text(library: Library, run: Path, tool: str) -> None:
    library.write("alone.json", (run / "record.json").read_text())
    text = json.dumps(exported(library, "alone.json", tool))
    assert "is the title of a notice" not in text
    assert "Extract title" not in text
    assert "field_level_f1" in text


def test_what_changed_since_is_left_out(library: Library, run: Path) -> None:
    library.write(f"fixtures/{SKILL}/cases/alpha/document.md", "Another document.\n")
    prompt = library.component / "prompt.md"
    prompt.write_text(prompt.read_text().replace("Extract", "Find"))
    log = exported(library, run.name, "inspect")
    inputs = {sample["id"]: sample["input"] for sample in log["samples"]}
    assert inputs["alpha"] == ""
    assert inputs["beta"].startswith("beta is")
    assert log["plan"]["config"] == {}


def test_answers_that_the_record_was_not_made_of_are_refused(library: Library, run: Path) -> None:
    answers = run / "replicates.jsonl"
    answers.write_text(answers.read_text().replace("1999", "2024"))
    assert library.call("export", run.name, "--to", "inspect").refuses("was made of other answers than")


def test_one_run_is_to_be_named(library: Library, run: Path) -> None:
    for sources in ((), (SKILL,), (run.name, run.name)):
        assert library.call("export", *sources, "--to", "inspect").refuses("takes one run")


def typed(command: list[str], library: Library, **env: str) -> str:
    """Run another tool in the library's folder; return what it printed."""
    done = subprocess.run(
        command, cwd=library.root, env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


INSPECT = """
from pathlib import Path
from inspect_ai.analysis import samples_df
from inspect_ai.log import read_eval_log, write_eval_log

named = Path("inspect.json").rename("2026-01-03T09-00-00_run.json")
log = read_eval_log(str(named))
assert read_eval_log(str(named), header_only=True).results.headline.score == "field_level_f1"
assert len(samples_df(str(named))) == len(log.samples)
write_eval_log(log, "again.eval")
"""


@pytest.mark.newest
@pytest.mark.parametrize("alone", [False, True], ids=["folder", "record"])
def test_the_newest_inspect_reads_the_log_and_what_it_writes_has_the_same_scores(
    library: Library, run: Path, alone: bool
) -> None:
    record = library.write("alone.json", (run / "record.json").read_text())
    exported(library, str(record if alone else run), "inspect")
    typed([sys.executable, "-c", INSPECT], library)
    assert answers_of(imported(library, "again.eval")) == answers_of(record)


@pytest.mark.newest
@pytest.mark.parametrize("alone", [False, True], ids=["folder", "record"])
def test_the_newest_promptfoo_imports_the_results_and_what_it_writes_has_the_same_scores(
    library: Library, run: Path, alone: bool
) -> None:
    record = library.write("alone.json", (run / "record.json").read_text())
    exported(library, str(record if alone else run), "promptfoo")
    env = {"PROMPTFOO_CONFIG_DIR": str(library.root / "of-promptfoo")}
    env |= {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1"}
    assert "successfully imported" in typed(["promptfoo", "import", "promptfoo.json"], library, **env)
    typed(["promptfoo", "export", "eval", "latest", "-o", "again.json"], library, **env)
    before = {key: row for key, row in answers_of(record).items() if key[0] != "unlabelled"}
    assert answers_of(imported(library, "again.json")) == before
