"""What an evaluation leaves behind, and how its flags choose what is run and how it is shown."""

import asyncio
from pathlib import Path

import pytest
from skill_evaluator import Library as PromptLibrary
from skill_evaluator.records.record import Row

from tests.support.chat_server import ChatServer, Reply, notice
from tests.support.library import CASES, SCRIPT, SKILL, Library, journal, read

TRUTHFUL = {(case_id, index): notice(case_id) for case_id in CASES for index in range(2)}


def test_a_run_writes_manifest_journal_record_row_and_report(library: Library) -> None:
    assert library.evaluate_here().code == 0
    folder = library.run_folder()
    assert {path.name for path in folder.iterdir()} == {
        ".lock",
        "manifest.json",
        "replicates.jsonl",
        "record.json",
        "report.md",
    }
    assert read(folder / "manifest.json")["run_id"] == folder.name
    assert {(line["case_id"], line["replicate"]) for line in journal(folder)} == set(TRUTHFUL)
    (row,) = library.rows()
    committed = read(library.component / "evals" / "records" / f"{folder.name}.json")
    assert committed == read(folder / "record.json")
    assert committed["run_id"] == row["run_id"] == folder.name
    assert (row["planned"], row["scored"], row["failures"], row["complete"]) == (6, 6, {}, True)
    assert row["accuracy"]["exact_match"]["mean"] == 1.0
    assert folder.name in (folder / "report.md").read_text()


def test_every_number_of_a_run_follows_from_its_answers(library: Library) -> None:
    library.record_answers({**TRUTHFUL, ("alpha", 1): notice("alpha", 1999), ("beta", 0): "I do not know."})
    row = library.evaluate_here("--format", "json").json["runs"][0]
    assert (row["planned"], row["scored"], row["failures"], row["coverage"]) == (6, 5, {"unparseable": 1}, 1.0)
    exact = row["accuracy"]["exact_match"]
    assert exact["strict_mean"] == pytest.approx((0.5 + 0.5 + 1) / 3, abs=1e-6)
    assert exact["mean"] == pytest.approx((0.5 + 1 + 1) / 3, abs=1e-6)
    assert (exact["n"], exact["n_cases"]) == (5, 3)
    assert row["reproducibility"]["pairwise_exact_match"]["mean"] == pytest.approx(1 / 3, abs=1e-6)
    assert (row["per_field"]["year"]["right"], row["per_field"]["year"]["n"]) == (4, 5)


def test_help_shows_what_a_person_types_and_not_what_only_workflows_do(library: Library) -> None:
    shown = library.call("evaluate", "--help").out
    assert [flag in shown for flag in ("--replicates", "--shard", "--planned")] == [True, False, False]


def test_text_goes_to_stdout_and_progress_to_stderr(library: Library) -> None:
    ended = library.evaluate_here()
    assert f"{SKILL} 1.0.0: recorded" in ended.out
    assert "6/6 answered" in ended.err
    assert "answered" not in ended.out


def test_json_is_all_there_is_on_stdout(library: Library) -> None:
    ended = library.evaluate_here("--format", "json")
    (run,) = ended.json["runs"]
    assert (ended.json["skill"], ended.json["comparison"]) == (SKILL, None)  # a first version has no verdict
    assert Row.model_validate(run).as_json() == library.rows()[0]
    assert read(library.root / run["record"])["run_id"] == Path(run["run_folder"]).name
    assert "6/6 answered" in ended.err


HANGING_UP = """
import os, sys
from skill_evaluator.cli import main
for more in (["--format", "json"], ["--format", "text"], ["--dry-run"]):
    reader, writer = os.pipe()
    os.close(reader)
    os.dup2(writer, 1)
    os.close(writer)
    try:
        main(["evaluate", "notice-extraction", *more])
    except SystemExit:
        pass
    print("went on", file=sys.stderr)
"""


def test_a_reader_that_hangs_up_causes_no_traceback(library: Library) -> None:
    with library.command("-c", HANGING_UP, env={"PYTHONPATH": str(SCRIPT.parent)}) as process:
        err = process.communicate(timeout=60)[1]
    assert "Error" not in err
    assert "Traceback" not in err
    assert err.count("went on") == 3


def test_markdown_has_a_heading_and_a_table(library: Library) -> None:
    ended = library.evaluate_here("--format", "markdown")
    lines = ended.out.splitlines()
    assert lines[0] == f"## `{SKILL}` `1.0.0` · `recorded`"
    assert "| accuracy: exact_match | 1.000 |" in ended.out
    tables = [line for line in lines if line.startswith("|")]
    assert len({line.count("|") for line in tables}) == 1


@pytest.mark.parametrize("words", [("--no-leaderboard",), ("--case", "alpha"), ("--shard", "1/2")])
def test_partial_or_unrecorded_run_has_its_record_in_the_run_folder_only(
    library: Library, words: tuple[str, ...]
) -> None:
    (run,) = (ended := library.evaluate_here(*words, "--format", "json")).json["runs"]
    assert (ended.code, run["complete"]) == (0, True)
    assert run["record"] == str((library.run_folder() / "record.json").relative_to(library.root))
    assert not library.leaderboard.exists()
    assert not (library.component / "evals" / "records").exists()


def test_no_more_calls_are_in_flight_than_the_provider_allows(served: Library, server: ChatServer) -> None:
    served.settings(ceilings={"openai": {"max_concurrency": 1}})
    server.reply = lambda asked: Reply(text=notice(asked.case_id), delay_s=0.05)
    assert served.evaluate_here("--concurrency", "3").code == 0
    assert server.most_in_flight == 1


def test_a_providers_outage_is_no_score(served: Library, server: ChatServer) -> None:
    server.reply = lambda asked: Reply(status=500, text="down")
    ended = served.evaluate_here("--format", "json")
    assert ended.code == 4
    run = ended.json["runs"][0]
    assert (run["planned"], run["scored"], run["coverage"], run["complete"]) == (6, 0, 0.0, False)
    assert (run["failures"], run["reasons"]) == ({"provider_error": 6}, {"server_error": 6})
    assert {summary["strict_mean"] for summary in run["accuracy"].values()} == {None}
    assert server.requests == 12
    assert run["retries"] == 6


def test_a_notebook_whose_loop_runs_already_can_evaluate(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(library.root)

    async def cell() -> bool:
        return PromptLibrary().evaluate(SKILL, leaderboard=False).finished[0].record.complete

    assert asyncio.run(cell())
