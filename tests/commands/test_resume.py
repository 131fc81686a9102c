"""Unfinished runs are continued by `--resume` or the next `evaluate`, without repeated calls."""

import shutil
from collections.abc import Callable, Mapping

import pytest
from skill_evaluator.files import try_lock

from tests.support.chat_server import ChatServer, Reply, killed_at, varied
from tests.support.library import CASES, REPLAY, SCHEMA, SKILL, Ended, Library, comparable, invoked, journal, read

REPLICATES = ("--replicates", "6")
PLANNED = len(CASES) * 6


def test_run_killed_after_its_last_output_resumes_to_the_same_record(served: Library, server: ChatServer) -> None:
    with killed_at(server, 6, served.results):
        served.evaluate_here("--no-leaderboard")
        folder = served.run_folder()
        answers, whole = (folder / "replicates.jsonl").read_bytes(), read(folder / "record.json")
    (folder / "replicates.jsonl").write_bytes(answers)
    assert (served.evaluate_here("--resume", "--no-leaderboard").code, server.requests) == (0, 6)
    assert comparable(read(folder / "record.json")) == comparable(whole)


def test_max_calls_stops_there_and_resume_does_the_rest(served: Library, server: ChatServer) -> None:
    stopped = served.evaluate_here("--max-calls", "4")
    assert (stopped.code, server.requests) == (4, 4)
    assert not served.leaderboard.exists()
    record = read(served.run_folder() / "record.json")
    assert (record["scored"], record["failures"], record["complete"]) == (4, {"not_run": 2}, False)
    assert record["stopped"].startswith("max_calls")
    assert " --run " in stopped.err
    assert served.evaluate_here("--resume").code == 0  # the newest that is unfinished
    assert (server.requests, server.repeated) == (6, [])
    assert (served.records()[0]["scored"], served.records()[0]["stopped"]) == (6, None)


def test_resume_of_a_finished_run_changes_nothing(served: Library, server: ChatServer) -> None:
    served.evaluate_here()
    before = served.tree()
    assert served.evaluate_here("--run", served.run_folder().name).code == 0
    assert server.requests == 6
    assert served.tree() == before
    assert served.evaluate_here("--resume").refuses("no unfinished run")
    assert served.evaluate_here("--resume", "--no-reuse").refuses("cannot be combined with --dry-run or --no-reuse")


def test_lost_row_is_added_from_the_record(served: Library, server: ChatServer) -> None:
    served.evaluate_here()
    (record,) = (served.component / "evals" / "records").iterdir()
    kept, row = record.read_bytes(), served.rows()
    served.leaderboard.unlink()
    ended = served.evaluate_here("--run", served.run_folder().name, "--format", "json")
    assert ended.code == 0
    assert ended.json["runs"][0]["run_id"] == served.run_folder().name
    assert "is recorded and complete" in ended.err
    assert (served.rows(), record.read_bytes(), server.requests) == (row, kept, 6)


def test_run_of_another_process_is_left_alone(served: Library, server: ChatServer) -> None:
    served.evaluate_here("--max-calls", "4")
    running = served.run_folder()
    held = try_lock(running / ".lock")
    assert held is not None
    assert served.evaluate_here("--run", running.name).refuses("is being executed by another process")
    with held:
        new = served.evaluate_here()
    assert (new.code, "continuing" in new.err, len(served.rows())) == (0, False, 1)
    assert (server.requests, len(journal(running))) == (4 + 6, 4)


def test_run_of_chosen_cases_resumes_with_them(served: Library, server: ChatServer) -> None:
    stopped = served.evaluate_here("--case", "*ta", "--case", "g*", "--max-calls", "1")
    assert stopped.code == 4
    run = served.evaluate_here("--resume", "--format", "json").json["runs"][0]
    assert {case["case_id"] for case in run["per_case"]} == {"beta", "gamma"}
    assert (run["scored"], run["complete"], server.repeated) == (4, True, [])
    refused = served.evaluate_here("--run", served.run_folder().name, "--case", "alpha")
    assert refused.err.endswith("with --case alpha: the run was planned with --case *ta g*; omit --case\n")


def test_failed_calls_are_repeated_and_replaced(served: Library, server: ChatServer) -> None:
    server.reply = lambda asked: Reply(status=500) if asked.case_id == "beta" else varied(asked)
    assert served.evaluate_here("--no-leaderboard").code == 4
    server.forget()
    server.reply = varied
    assert served.evaluate_here("--run", served.run_folder().name).code == 0
    assert {case_id for case_id, _ in server.times} == {"beta"}
    (record,) = served.records()
    assert (record["scored"], record["failures"], record["retries"]) == (6, {}, 0)


PROMPT, FIXTURES = f"components/{SKILL}/prompt.md", f"fixtures/{SKILL}/cases"
CHANGES: Mapping[str, tuple[Callable[[Library], object], str]] = {
    "the prompt": (lambda of: of.write(PROMPT, "---\nversion: 1.0.0\n---\nExtract the title alone.\n"), "prompt"),
    "a document": (lambda of: of.write(f"{FIXTURES}/gamma/document.md", "gamma was rewritten.\n"), "case 'gamma'"),
    "a model that is gone": (lambda of: of.models({**REPLAY, "id": "other"}), "model 'recorded'"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_resume_is_refused_when_an_input_changed(change: str, library: Library) -> None:
    library.evaluate_here("--max-calls", "4")
    apply, name = CHANGES[change]
    apply(library)
    before = library.tree()
    refused = library.evaluate_here("--run", library.run_folder().name)
    assert refused.code == 2
    (line,) = refused.err.splitlines()
    assert line.startswith("error: ")
    assert name in line
    others = {"prompt", "schema", "settings", "case"} - set(name.split())
    assert not [word for word in others if f" {word}" in line.partition("began: ")[2]]
    assert library.tree() == before


def test_resume_is_refused_with_another_plan(library: Library) -> None:
    library.evaluate_here("--max-calls", "4")
    run = library.run_folder().name
    for flag, value, planned in (
        ("--replicates", "3", "with --replicates 2"),
        ("--seed", "3", "with --seed 0"),
        ("--shard", "1/2", "without --shard"),
    ):
        refused = library.evaluate_here("--run", run, flag, value)
        assert refused.refuses(f"{flag} {value}: the run was planned {planned}; omit {flag}"), flag


def test_components_in_one_results_folder_keep_separate_outputs(library: Library) -> None:
    library.write("components/other/prompt.md", "---\nname: other\nversion: 1.0.0\n---\nExtract title and year.\n")
    library.write("components/other/schema.json", SCHEMA)
    shutil.copytree(library.root / "fixtures" / SKILL, library.root / "fixtures" / "other")

    def evaluate(name: str) -> Ended:
        with invoked("20260301T080000Z-abcdef"):
            return library.call("evaluate", name, "--no-reuse", "--results", "results")

    assert [evaluate(name).code for name in (SKILL, "other")] == [0, 0]
    folders = sorted((library.root / "results").iterdir())
    assert [folder.name.split("-", 2)[2] for folder in folders] == [f"{SKILL}-recorded", "other-recorded"]
    assert [len(journal(folder)) for folder in folders] == [6, 6]
    assert evaluate("other").code == 0, "its own folder, which is gone on with"

    shutil.rmtree(folders[1])
    shutil.copytree(folders[0], folders[1])
    ended = evaluate("other")
    assert ended.refuses(f"has outputs of '{SKILL}' by 'recorded', but this run has a different skill: choose a new")
    assert len(journal(folders[1])) == 6
    library.write(f"components/{SKILL}/prompt.md", f"---\nname: {SKILL}\nversion: 1.1.0\n---\nExtract both.\n")
    ended = evaluate(SKILL)
    assert ended.refuses("but this run has a different prompt: choose a new folder")


def version(library: Library, to: str, text: str = "Extract title and year.") -> None:
    library.write(PROMPT, f"---\nname: {SKILL}\nversion: {to}\n---\n{text}\n")


def calls_of(server: ChatServer, command: Callable[[], Ended], code: int = 0) -> int:
    """Count the requests of a command that ends with an exit code."""
    before, done = server.requests, command()
    assert done.code == code, done.err
    return server.requests - before


def test_killed_run_is_continued(served: Library, server: ChatServer) -> None:
    with killed_at(server, 9, served.component):
        served.evaluate_here("-n", "6")
    before = journal(served.run_folder())
    assert 5 <= len(before) < 9
    server.forget()
    done = served.evaluate_here("-n", "6")
    assert (done.code, len(served.rows())) == (0, 1)
    assert f"continuing the unfinished run {served.run_folder().name[:23]} (--no-reuse begins a new one)" in done.err
    assert journal(served.run_folder())[: len(before)] == before
    assert (server.requests, server.repeated) == (18 - len(before), [])
    assert calls_of(server, lambda: served.evaluate_here("-n", "6")) == 18, "a complete run is not continued"


@pytest.mark.parametrize(("replicates", "calls"), [(1, 3), (3, 5)])
def test_unfinished_run_takes_more_replicates(replicates: int, calls: int, served: Library, server: ChatServer) -> None:
    assert served.evaluate_here("--max-calls", "4").code == 4
    folder = served.run_folder()
    assert calls_of(server, lambda: served.evaluate_here("-n", str(replicates))) == calls
    (row,) = served.rows()
    assert (row["replicates"], row["run_id"] == folder.name) == (replicates, replicates == 3)


QUESTIONS: Mapping[str, tuple[Callable[[Library, str], object], int]] = {
    "a version": (lambda of, _: version(of, "1.0.1"), 6),
    "a new case": (lambda of, _: of.case("delta"), 4),
    "a price": (lambda of, url: of.served_by(url, price={"input": 1, "output": 1}), 2),
}


@pytest.mark.parametrize("change", QUESTIONS)
def test_only_a_run_with_equal_inputs_is_continued(change: str, served: Library, server: ChatServer) -> None:
    assert served.evaluate_here("--max-calls", "4").code == 4
    apply, calls = QUESTIONS[change]
    apply(served, server.url)
    assert calls_of(server, served.evaluate_here) == calls


@pytest.mark.parametrize("words", [("--seed", "7"), ("--draft",)], ids=" ".join)
def test_option_starts_a_new_run(words: tuple[str, ...], served: Library, server: ChatServer) -> None:
    assert served.evaluate_here("--max-calls", "4").code == 4
    assert calls_of(server, lambda: served.evaluate_here(*words)) == 6


def test_complete_models_are_not_called_again(served: Library, server: ChatServer) -> None:
    entry = {"provider": "openai", "base_url": server.url}
    served.models({"id": "one", **entry}, {"id": "two", **entry})
    server.reply = lambda one: Reply(status=400) if one.body["model"] == "two" else varied(one)
    assert served.evaluate_here().code == 4
    server.reply = varied
    done = served.evaluate_here()
    assert "-one is recorded and complete" in done.err
    assert (done.code, [row["model_id"] for row in served.rows()]) == (0, ["two", "one"])
    assert calls_of(server, served.evaluate_here) == 12
