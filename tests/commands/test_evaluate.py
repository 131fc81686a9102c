"""What an evaluation leaves behind, and how its options choose the runs and the output."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator import Library as PromptLibrary
from skill_evaluator.records.archive import newest_recorded
from skill_evaluator.records.record import Row

from tests.support.chat_server import ChatServer, Reply, notice
from tests.support.library import CASES, SCRIPT, SKILL, Library, journal, read

TRUTHFUL = {(case_id, index): notice(case_id) for case_id in CASES for index in range(2)}


def test_run_writes_manifest_journal_record_row_and_report(library: Library) -> None:
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


def test_stdout_holds_the_result_alone_in_each_format(library: Library) -> None:
    ended = library.evaluate_here("--format", "json")
    (run,) = ended.json["runs"]
    assert (ended.json["skill"], ended.json["comparison"]) == (SKILL, None)  # a first version has no verdict
    assert Row.model_validate(run).as_json() == library.rows()[0]
    assert read(library.root / run["record"])["run_id"] == Path(run["run_folder"]).name
    for form, heading in (("text", f"{SKILL} 1.0.0: recorded"), ("markdown", f"## `{SKILL}` 1.0.0: recorded")):
        ended = library.evaluate_here("--format", form)
        assert ended.out.splitlines()[0].startswith(heading)
        assert ("6/6 answered" in ended.err, "answered" in ended.out) == (True, False)


HANGING_UP = """
import os, sys
from skill_evaluator.cli import main
for more in (["--format", "json"], ["--dry-run"]):
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


def test_closed_stdout_causes_no_traceback(library: Library) -> None:
    with library.command("-c", HANGING_UP, env={"PYTHONPATH": str(SCRIPT.parent)}) as process:
        err = process.communicate(timeout=120)[1]
    assert "Error" not in err
    assert "Traceback" not in err
    assert err.count("went on") == 2


@pytest.mark.parametrize("words", [("--no-leaderboard",), ("--case", "alpha")])
def test_partial_or_unrecorded_run_has_its_record_in_the_run_folder_only(
    library: Library, words: tuple[str, ...]
) -> None:
    (run,) = (ended := library.evaluate_here(*words, "--format", "json")).json["runs"]
    assert (ended.code, run["complete"]) == (0, True)
    assert run["record"] == str((library.run_folder() / "record.json").relative_to(library.root))
    assert not library.leaderboard.exists()
    assert not (library.component / "evals" / "records").exists()


def test_provider_outage_is_no_score_and_ends_with_4(served: Library, server: ChatServer) -> None:
    server.reply = lambda asked: Reply(status=500, text="down")
    ended = served.evaluate_here("--format", "json")
    assert ended.code == 4
    run = ended.json["runs"][0]
    assert (run["planned"], run["scored"], run["coverage"], run["complete"]) == (6, 0, 0.0, False)
    assert (run["failures"], run["reasons"]) == ({"provider_error": 6}, {"server_error": 6})
    assert {summary["strict_mean"] for summary in run["accuracy"].values()} == {None}
    assert server.requests == 12
    assert run["retries"] == 6


def test_evaluate_works_inside_a_running_event_loop(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(library.root)

    async def cell() -> bool:
        return PromptLibrary().evaluate(SKILL, leaderboard=False).finished[0].record.complete

    assert asyncio.run(cell())


@pytest.fixture
def polite(served: Library) -> Library:
    served.write(".evaluator/scenarios/polite.md", "---\nname: polite\nintent: manners\n---\nPlease.\n\n{{ prompt }}\n")
    return served


def test_run_of_a_scenario_resumes_only_with_it(polite: Library, server: ChatServer) -> None:
    stopped = polite.evaluate_here("--scenario", "polite", "--max-calls", "2")
    assert stopped.code == 4
    assert "--scenario polite" in stopped.err
    refused = polite.evaluate_here("--resume")
    assert refused.refuses("the run was started with --scenario polite; resume it with --scenario polite")
    refused = polite.evaluate_here("--no-prompt", "--resume")
    assert refused.refuses("the run was started with --scenario polite; resume it with --scenario polite")
    assert polite.evaluate_here("--scenario", "polite", "--resume").code == 0
    assert (server.requests, server.repeated) == (6, [])
    assert polite.rows()[0]["scenario"] == "polite"
    assert newest_recorded(polite.leaderboard.read_bytes(), "here") == {}  # it measures the surroundings, too
    assert polite.call("score", str(polite.run_folder())).code == 0
    assert read(polite.run_folder() / "record.json")["scenario"] == "polite"


def test_resuming_a_run_without_prompt_requires_the_option(served: Library) -> None:
    assert served.evaluate_here("--no-prompt", "--max-calls", "2").code == 4
    refused = served.evaluate_here("--run", served.run_folder().name)
    assert refused.refuses("the run was started with --no-prompt; resume it with --no-prompt")
    assert served.evaluate_here("--run", served.run_folder().name, "--no-prompt").code == 0


def facts(library: Library) -> tuple[Any, Any]:
    """What the newest manifest and record keep of the server."""
    kept = [(library.results / record["run_id"], record) for record in library.records()]
    folder, record = max(kept, key=lambda run: run[1]["run_id"])
    manifest = read(folder / "manifest.json")
    return manifest.get("server"), record.get("server")


def test_manifest_and_record_keep_the_facts_of_the_server(served: Library, server: ChatServer) -> None:
    server.reply = lambda asked: Reply(text=notice(asked.case_id), fields={"system_fingerprint": "fp_a"})
    server.version = "0.10.0"
    assert served.evaluate_here("--replicates", "2").code == 0
    assert facts(served) == ({"concurrency": 3, "version": "0.10.0", "fingerprints": {"fp_a": 6}},) * 2
    assert server.asked_version == 1
    server.reply, server.version = lambda asked: Reply(text=notice(asked.case_id)), None
    assert served.evaluate_here("--no-reuse").code == 0
    assert facts(served) == ({"concurrency": 3}, {"concurrency": 3})


def test_missing_engine_of_the_local_model_is_one_line(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    library.models({"id": "small", "provider": "local"})
    cache = tmp_path / "cache"
    ended = library.evaluate_here(env={"XDG_CACHE_HOME": str(cache)})
    assert (ended.code, ended.err) == (2, "error: the local model requires its engine: pip install xllamacpp\n")
    assert not cache.exists()
