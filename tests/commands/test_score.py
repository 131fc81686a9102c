"""`score`: a saved run is scored again from its outputs, without a call."""

from tests.support.chat_server import Asked, ChatServer, Reply, notice, varied
from tests.support.library import SKILL, Library, journal, read


def _mixed(asked: Asked) -> Reply:
    """Reply right, wrong or unparseable, or fail always or at the first attempt."""
    kind = asked.seed % 5
    if kind == 0 or (kind == 1 and asked.times == 1):
        return Reply(status=500)
    return Reply(text="no idea") if kind == 2 else varied(asked)


def _evaluated(library: Library, server: ChatServer) -> None:
    library.settings(required_coverage=0.5)
    server.reply = _mixed
    assert library.evaluate_here("--replicates", "4").code == 0
    server.forget()


def test_score_gives_the_same_record_without_a_request(served: Library, server: ChatServer) -> None:
    _evaluated(served, server)
    folder = served.run_folder()
    kept = read(folder / "record.json")
    assert kept["retries"] > 0
    assert set(kept["failures"]) == {"provider_error", "unparseable"}
    (folder / "record.json").unlink()
    board = served.leaderboard.read_bytes()
    ended = served.call("score", str(folder.relative_to(served.root)), "--format", "json")
    assert ended.code == 0
    assert read(folder / "record.json") == kept
    assert ended.json["runs"][0]["run_id"] == kept["run_id"]
    assert server.requests == 0
    assert served.leaderboard.read_bytes() == board


def test_score_applies_new_declarations(library: Library) -> None:
    library.record_answers({(case_id, 0): notice(case_id, 2023) for case_id in ("alpha", "beta", "gamma")})
    library.evaluate_here("--replicates", "1")
    folder = library.run_folder()
    assert read(folder / "record.json")["accuracy"]["exact_match"]["mean"] == 0.0
    fields = {"year": {"compare": "number", "tolerance": 1}}
    library.write(f"components/{SKILL}/evals/datasets.json", {"datasets": [{"id": "all", "fields": fields}]})
    assert library.call("score", str(folder)).code == 0
    assert read(folder / "record.json")["accuracy"]["field_level_f1"]["mean"] == 1.0


def test_unfinished_run_is_scored_as_incomplete(library: Library) -> None:
    library.evaluate_here("--max-calls", "4")
    ended = library.call("score", str(library.run_folder()), "--format", "json")
    assert ended.code == 4
    run = ended.json["runs"][0]
    assert (run["scored"], run["failures"], run["complete"]) == (4, {"not_run": 2}, False)


def test_failed_call_is_replayed_as_its_failure(library: Library) -> None:
    error = {"kind": "timeout", "reason": "read_timeout", "message": "no response within 9 s"}
    lines = [
        {"case_id": "alpha", "replicate": 0, "error": error},
        {"case_id": "alpha", "replicate": 1, "error": "gone"},
    ]
    library.lines("answers.jsonl", *lines)
    run = library.evaluate_here("--case", "alpha", "--format", "json").json["runs"][0]
    assert [line["error"]["reason"] for line in journal(library.run_folder())] == ["read_timeout", "gone"]
    assert run["failures"] == {"provider_error": 1, "timeout": 1}


def test_folder_without_a_run_is_refused(library: Library) -> None:
    refused = library.call("score", "components")
    assert refused.code == 2
    assert refused.err == "error: components is not a run folder: it has no manifest.json\n"
