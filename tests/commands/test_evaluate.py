"""What an evaluation leaves behind, and how its options choose the runs and the output."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator import Library as PromptLibrary
from skill_evaluator.records.archive import newest_recorded
from skill_evaluator.records.record import Row

from tests.support.chat_server import Asked, ChatServer, Reply, notice, varied
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
    assert [text in shown for text in ("--replicates, -n N", "--shard I/N", "--planned RUN")] == [True, False, False]


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
    assert lines[0] == f"## `{SKILL}` 1.0.0: recorded"
    assert "| `accuracy: exact_match` | 1.000 |" in ended.out


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


@pytest.fixture
def polite(served: Library) -> Library:
    served.write(".evaluator/scenarios/polite.md", "---\nname: polite\nintent: manners\n---\nPlease.\n\n{{ prompt }}\n")
    return served


def test_the_model_is_sent_the_template_and_the_record_names_it(polite: Library, server: ChatServer) -> None:
    asked: list[str] = []

    def listening(one: Asked) -> Reply:
        asked.append(one.body["messages"][0]["content"])
        return varied(one)

    server.reply = listening
    assert polite.evaluate_here("--scenario", "polite").code == 0
    assert set(asked) == {"Please.\n\nExtract title and year."}
    (row,) = polite.rows()
    assert row["scenario"] == "polite"
    assert "scenario" in row["digests"]
    assert newest_recorded(polite.leaderboard.read_bytes(), "here") == {}  # it measures the surroundings, too


def test_a_run_under_a_scenario_goes_on_under_it_alone(polite: Library, server: ChatServer) -> None:
    stopped = polite.evaluate_here("--scenario", "polite", "--max-calls", "2")
    assert stopped.code == 4
    assert "--scenario polite" in stopped.err
    refused = polite.evaluate_here("--resume")
    assert (refused.code, "it was begun with --scenario polite" in refused.err) == (2, True)
    assert polite.evaluate_here("--scenario", "polite", "--resume").code == 0
    assert (server.requests, server.repeated) == (6, [])


def test_a_saved_run_is_scored_again_under_its_scenario(polite: Library) -> None:
    polite.evaluate_here("--scenario", "polite")
    again = polite.call("score", str(polite.run_folder()))
    assert (again.code, again.err) == (0, "")
    assert read(polite.run_folder() / "record.json")["scenario"] == "polite"


def facts(library: Library) -> tuple[Any, Any]:
    """What the newest manifest and record keep of the server."""
    kept = [(library.results / record["run_id"], record) for record in library.records()]
    folder, record = max(kept, key=lambda run: run[1]["run_id"])
    manifest = read(folder / "manifest.json")
    return manifest.get("server"), record.get("server")


def test_manifest_and_record_keep_what_the_server_told(served: Library, server: ChatServer) -> None:
    server.reply = lambda asked: Reply(text=notice(asked.case_id), fields={"system_fingerprint": "fp_a"})
    server.version = "0.10.0"
    assert served.evaluate_here("--replicates", "2").code == 0
    assert facts(served) == ({"concurrency": 3, "version": "0.10.0", "fingerprints": {"fp_a": 6}},) * 2
    assert server.asked_version == 1


def test_a_server_that_tells_nothing_is_no_change(served: Library, server: ChatServer) -> None:
    server.reply = lambda asked: Reply(text=notice(asked.case_id))
    assert served.evaluate_here().code == 0
    assert facts(served) == ({"concurrency": 3}, {"concurrency": 3})
    assert "fingerprint" not in (served.run_folder() / "replicates.jsonl").read_text()


def test_a_record_does_not_say_deterministic_of_what_is_not_set(served: Library, server: ChatServer) -> None:
    bodies: list[Any] = []
    server.reply = lambda asked: (bodies.append(asked.body), Reply(text=notice(asked.case_id)))[1]
    served.served_by(server.url, api_id="gemini-3.6-flash", params={"temperature": 0, "top_k": 1})
    assert served.evaluate_here().code == 0
    settings = served.records()[0]["settings"]
    assert (settings["profile"], settings["sent"], settings["params"]) == ("unset", {"seed": "per replicate"}, {})
    assert settings["unavailable"] == ["temperature", "top_p", "top_k"]
    assert [name for body in bodies for name in ("temperature", "top_p", "top_k") if name in body] == []
    assert len(bodies) == 6


def test_without_the_engine_one_line_says_what_to_install_and_no_weights_are_fetched(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    library.models({"id": "small", "provider": "local"})
    cache = tmp_path / "cache"
    ended = library.evaluate_here(env={"XDG_CACHE_HOME": str(cache)})
    assert (ended.code, ended.err) == (2, "error: the local model needs its engine: pip install xllamacpp\n")
    assert not cache.exists()


def test_an_answer_over_the_limit_keeps_no_text_and_counts_as_a_wrong_answer(library: Library) -> None:
    library.settings(limits={"answer_bytes": 60})
    texts = {(case_id, index): notice(case_id) for case_id in CASES for index in range(2)}
    library.record_answers({**texts, ("beta", 1): notice("b" * 60)})
    assert library.evaluate_here().code == 0
    (row,) = library.rows()
    assert (row["accuracy"]["field_level_f1"]["strict_mean"], row["coverage"]) == (pytest.approx(5 / 6, abs=1e-3), 1.0)
    assert library.records()[0]["reasons"] == {"answer_too_large": 1}
    assert [line["text"] for line in journal(library.run_folder()) if line["stop_reason"] == "too_large"] == [""]


MORE = tuple(f"case-{at}" for at in range(5))
"""Replayed answers of a case count as one draw, and three draws show nothing beyond chance; eight do."""


def test_exact_match_of_prose_at_zero_is_inconclusive_and_lint_names_the_remedy(library: Library) -> None:
    def written(version: str, text: str) -> None:
        head = f"---\nname: {SKILL}\nversion: {version}\noutput: text\n---\n"
        library.write(f"components/{SKILL}/prompt.md", f"{head}Sum it up, {version}.\n")
        library.record_answers({(case, index): text for case in (*CASES, *MORE) for index in range(2)})

    for case_id in MORE:
        library.case(case_id)
    truth = "The library opens at nine on weekdays, and it is closed on every public holiday of the county."
    (library.component / "schema.json").unlink()
    for case in (*CASES, *MORE):
        library.write(f"fixtures/{SKILL}/cases/{case}/ground_truth.json", json.dumps(truth))
    for version, text in (("1.0.0", f"In short: {truth}"), ("1.1.0", "No idea.")):
        written(version, text)
        ended = library.evaluate_here()
    says = 'declare at fields of evals/datasets.json a token F1 from which a text is right: {"": {"threshold": 0.6}}'
    assert f"{SKILL}: inconclusive" in ended.out
    assert "exact_match was 0.000 and cannot fall by more than the tolerated 0.05" in ended.out
    assert f"exact_match decides, of answers that are prose: it would be 0 for ever, and no drop seen; {says}" in (
        library.call("lint").out
    )
    library.write(f"components/{SKILL}/evals/datasets.json", {"datasets": [{"fields": {"": {"threshold": 0.6}}}]})
    assert "exact_match decides" not in library.call("lint").out
    for version, text in (("1.2.0", f"In short: {truth}"), ("1.3.0", "No idea.")):
        written(version, text)
        ended = library.evaluate_here()
    assert ended.code == 3
    assert "regressed against 1.2.0 on these 8 cases" in ended.out
