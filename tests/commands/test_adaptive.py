"""`--adaptive`: no more is asked of a model whose verdict is settled, and the run is as good as any other."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.chat_server import Asked, ChatServer, Reply, notice, varied
from tests.support.library import CASES, SKILL, Library, comparable, journal, read

PLANNED = 30
REPLICATES = ("--replicates", str(PLANNED))
ON_THESE_CASES = {"anchor": "previous", "gate": "these"}


def _answers(year: int) -> Callable[[Asked], Reply]:
    return lambda asked: Reply(text=notice(asked.case_id, year))


def _once_wrong(asked: Asked) -> Reply:
    """One answer of one case is wrong: too little to say that the version is worse, and too much to say it is not."""
    return Reply(text=notice(asked.case_id, 1999 if (asked.case_id, asked.seed % 13) == ("alpha", 1) else 2024))


def _version(library: Library, version: str, before: str = "1.0.0") -> None:
    prompt = library.component / "prompt.md"
    prompt.write_text(prompt.read_text().replace(f"version: {before}", f"version: {version}"))


@pytest.fixture
def server(standing: ChatServer) -> ChatServer:
    """The one server of these tests, of which nothing was asked yet."""
    standing.reply = _answers(2024)
    standing.forget()
    return standing


@pytest.fixture(scope="module")
def first(standing: ChatServer, tmp_path_factory: pytest.TempPathFactory) -> Library:
    """1.0.0 is recorded and right throughout; what is asked next is 1.1.0.

    Every answer is drawn anew, and the verdict is on these cases.
    """
    library = Library(tmp_path_factory.mktemp("first"))
    library.served_by(standing.url, profile="sampled")
    library.settings(policy=ON_THESE_CASES)
    standing.reply = _answers(2024)
    assert library.evaluate_here(*REPLICATES).code == 0
    _version(library, "1.1.0")
    return library


@pytest.fixture(scope="module")
def stopped(first: Library, tmp_path_factory: pytest.TempPathFactory) -> Library:
    """1.1.0 is as good, and was stopped early."""
    library = first.copy(tmp_path_factory.mktemp("stopped"))
    assert library.evaluate_here(*REPLICATES, "--adaptive").code == 0
    return library


@pytest.fixture
def measured(first: Library, server: ChatServer, tmp_path: Path) -> Library:
    return first.copy(tmp_path)


@pytest.fixture
def settled(stopped: Library, server: ChatServer, tmp_path: Path) -> Library:
    return stopped.copy(tmp_path)


def _record(library: Library) -> dict[str, Any]:
    (record,) = (record for record in library.records() if record["skill_version"] == "1.1.0")
    return record


def _folder(library: Library) -> Path:
    return library.results / str(_record(library)["run_id"])


def test_a_version_that_is_plainly_worse_is_not_asked_to_the_end(measured: Library, server: ChatServer) -> None:
    server.reply = _answers(1999)
    ended = measured.evaluate_here(*REPLICATES, "--adaptive")
    assert ended.code == 3
    row = _record(measured)
    assert server.requests < len(CASES) * PLANNED / 2
    assert (row["planned"], row["scored"], row["complete"]) == (server.requests, server.requests, True)
    assert row["replicates"] * len(CASES) == server.requests
    assert row["saved_calls"] == len(CASES) * PLANNED - server.requests
    assert f"of {PLANNED} replicates the verdict was settled, regressed" in ended.out
    manifest = read(_folder(measured) / "manifest.json")
    assert (manifest["replicates"], manifest["settled_after"]) == (PLANNED, row["replicates"])


def test_one_that_is_as_good_is_asked_until_a_failure_would_have_shown(measured: Library, server: ChatServer) -> None:
    assert measured.evaluate_here(*REPLICATES, "--adaptive", "--format", "json").json["comparison"]["verdict"] == (
        "unchanged"
    )
    assert server.requests == 69  # a look after 63 is the first that has seen 59; it does not see the six that follow
    assert _record(measured)["saved_calls"] == 21


def test_what_is_in_doubt_is_asked_in_full(measured: Library, server: ChatServer) -> None:
    server.reply = _once_wrong
    measured.evaluate_here("--replicates", "6", "--adaptive")
    assert server.requests == len(CASES) * 6


def test_without_a_lower_version_it_says_so_and_asks_everything(served: Library, server: ChatServer) -> None:
    ended = served.evaluate_here("--replicates", "4", "--adaptive")
    assert ended.code == 0
    assert "--adaptive saves nothing, all replicates are asked: there is no complete record" in ended.err
    assert (server.requests, served.records()[0]["saved_calls"]) == (12, 0)


def test_of_another_schema_and_where_cases_decide_it_says_so(measured: Library, server: ChatServer) -> None:
    measured.settings(policy={"gate": "beyond"})
    ended = measured.evaluate_here("--replicates", "4", "--adaptive")
    assert "all replicates are asked: the policy asks what holds beyond these cases" in ended.err
    measured.settings(policy=ON_THESE_CASES)
    schema = read(measured.component / "schema.json")
    measured.write(f"components/{SKILL}/schema.json", {**schema, "description": "another"})
    ended = measured.evaluate_here("--replicates", "4", "--adaptive")
    assert "all replicates are asked: the schema changed" in ended.err
    assert server.requests == 2 * 12


def test_a_part_of_the_cases_has_no_verdict(measured: Library, server: ChatServer) -> None:
    for part in (("--shard", "1/2"), ("--case", "alpha")):
        assert measured.evaluate_here("--adaptive", *part).refuses("--adaptive needs all cases"), part
    assert server.requests == 0


def test_interrupted_anywhere_and_resumed_it_ends_the_same(first: Library, server: ChatServer, tmp_path: Path) -> None:
    (baseline,) = (row["run_id"] for row in first.rows())
    for calls in (4, 9, 10, 63, 64):
        library = first.copy(tmp_path / str(calls))
        server.forget()
        assert library.evaluate_here(*REPLICATES, "--adaptive", "--max-calls", str(calls)).code == 4, calls
        (folder,) = (path for path in library.results.iterdir() if path.is_dir() and path.name != baseline)
        assert library.evaluate_here("--resume", folder.name).code == 0, calls
        assert (server.requests, server.repeated) == (69, []), calls
        assert (_record(library)["replicates"], _record(library)["saved_calls"]) == (23, 21), calls


def test_a_crash_after_the_last_answer_but_before_the_look_costs_no_call(settled: Library, server: ChatServer) -> None:
    folder = _folder(settled)
    run_id = folder.name
    manifest, record = read(folder / "manifest.json"), read(folder / "record.json")
    before_the_look = {**manifest, "settled_after": None, "looks": None}
    settled.write(str((folder / "manifest.json").relative_to(settled.root)), before_the_look)
    answers = (folder / "replicates.jsonl").read_text().splitlines(keepends=True)
    (folder / "replicates.jsonl").write_text("".join(answers[: -2 * len(CASES)]))
    (folder / "record.json").unlink()
    (settled.component / "evals" / "records" / f"{run_id}.json").unlink()
    board = read(settled.leaderboard)
    settled.write(
        str(settled.leaderboard.relative_to(settled.root)),
        {**board, "runs": [row for row in board["runs"] if row["run_id"] != run_id]},
    )
    assert settled.evaluate_here("--resume", run_id).code == 0
    assert server.requests == 2 * len(CASES)  # those that are asked after the look
    again = read(folder / "record.json")
    assert comparable(again, ("latency_s",)) == comparable(record, ("latency_s",))


def test_a_settled_run_scored_again_has_the_same_record(settled: Library, server: ChatServer) -> None:
    folder = _folder(settled)
    record = read(folder / "record.json")
    assert settled.call("score", str(folder)).code == 0
    assert read(folder / "record.json") == record
    assert len(journal(folder)) == record["planned"]
    board = read(settled.leaderboard)
    board["runs"] = [row for row in board["runs"] if row["run_id"] == record["run_id"]]
    settled.write(str(settled.leaderboard.relative_to(settled.root)), board)
    assert settled.call("score", str(folder)).code == 0
    assert read(folder / "record.json") == record, "whatever became of the run that it was looked at against"


def test_the_record_has_the_looks_and_the_means_without_their_luck(measured: Library, server: ChatServer) -> None:
    (baseline,) = (row["run_id"] for row in measured.rows())
    ended = measured.evaluate_here(*REPLICATES, "--adaptive")
    row = _record(measured)
    adaptive = dict(row["adaptive"])
    corrected = adaptive.pop("corrected")
    assert adaptive == {
        "planned_replicates": PLANNED,
        "looks": [3, 6, 9, 12, 15, 18, 21],
        "verdict": "unchanged",
        "against": baseline,
    }
    assert corrected.keys() == _measured(row)
    assert corrected["field_level_f1"]["strict_mean"] == 1.0
    assert corrected["field_level_f1"]["ci95"] == [round(0.05 ** (1 / 6), 6), 1.0]  # six answers, all right
    for page in (ended.out, (_folder(measured) / "report.md").read_text()):
        assert f"stopped early: after 21 of {PLANNED} replicates the verdict was settled, unchanged" in page
        assert "corrected for the looks of --adaptive: 1.000" in page
    assert "stopped the candidate's run early, so its mean is too high or too low" in ended.out


def test_a_run_that_no_look_stopped_is_corrected_too_and_a_baseline(measured: Library, server: ChatServer) -> None:
    server.reply = _once_wrong
    measured.evaluate_here("--replicates", "6", "--adaptive")
    row = _record(measured)
    assert (row["saved_calls"], row["adaptive"]["looks"], row["adaptive"]["verdict"]) == (0, [2, 3], None)
    assert row["adaptive"]["corrected"].keys() == _measured(row)
    _version(measured, "1.2.0", "1.1.0")
    assert _against(measured.evaluate_here(*REPLICATES, "--format", "json").json) == "1.1.0"


def _measured(row: dict[str, Any]) -> set[str]:
    return {name for name, summary in row["accuracy"].items() if summary["strict_mean"] is not None}


def test_a_stopped_run_is_no_baseline(settled: Library, server: ChatServer) -> None:
    """1.0.0 is whole, 1.1.0 stopped early: 1.2.0 is compared with 1.0.0."""
    _version(settled, "1.2.0", "1.1.0")
    assert _against(settled.evaluate_here(*REPLICATES, "--format", "json").json) == "1.0.0"
    named = settled.call("compare", SKILL, "--baseline", "1.1.0", "--format", "json")
    assert _against({"comparison": named.json}) == "1.1.0"  # a person may name it


def _against(result: dict[str, Any]) -> str:
    return str(result["comparison"]["models"][0]["baseline"]["skill_version"])


def test_where_every_lower_record_was_stopped_it_says_what_to_do(settled: Library, server: ChatServer) -> None:
    board = read(settled.leaderboard)
    kept = [row for row in board["runs"] if row["skill_version"] == "1.1.0"]
    settled.write(str(settled.leaderboard.relative_to(settled.root)), {**board, "runs": kept})
    _version(settled, "1.2.0", "1.1.0")
    ended = settled.evaluate_here("--replicates", "4", "--adaptive")
    assert (
        "stopped early by --adaptive, which makes it no baseline; evaluate one of them without --adaptive" in ended.err
    )


def test_a_run_that_was_not_adaptive_does_not_become_so(measured: Library, server: ChatServer) -> None:
    measured.evaluate_here(*REPLICATES, "--max-calls", "4")
    ended = measured.evaluate_here("--resume", "--adaptive")
    assert ended.code == 2
    assert "with --adaptive: it was planned without it" in ended.err


def test_models_are_settled_each_by_itself(measured: Library, server: ChatServer) -> None:
    other = {"id": "other", "provider": "openai", "base_url": server.url}
    served = {"id": "served", "provider": "openai", "base_url": server.url, "profile": "sampled"}
    measured.models(served, other)
    ended = measured.evaluate_here(*REPLICATES, "--adaptive", "--format", "json")
    assert "other: --adaptive saves nothing" in ended.err
    assert {row["model_id"]: row["saved_calls"] for row in ended.json["runs"]} == {"served": 21, "other": 0}


def test_what_is_asked_is_answered_as_in_a_run_of_so_many_replicates(measured: Library, server: ChatServer) -> None:
    server.reply = varied
    (adaptive,) = measured.evaluate_here(*REPLICATES, "--adaptive", "--format", "json").json["runs"]
    again = measured.evaluate_here("--replicates", str(adaptive["replicates"]), "--format", "json")
    of_the_run = ("saved_calls", "adaptive", "record", "run_folder")
    assert comparable(adaptive, of_the_run) == comparable(again.json["runs"][0], of_the_run)
