"""An unfinished run is continued by the next `evaluate`, also with more replicates or cases; nothing else is reused."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from tests.support.chat_server import Asked, ChatServer, Reply, varied
from tests.support.git import GitRepository
from tests.support.library import SCHEMA, SKILL, Ended, Library, ended, journal, only_journal, wait_until

PROMPT = f"components/{SKILL}/prompt.md"


def version(library: Library, to: str, text: str = "Extract title and year.") -> None:
    library.write(PROMPT, f"---\nname: {SKILL}\nversion: {to}\n---\n{text}\n")


def calls_of(server: ChatServer, command: Callable[[], Ended], code: int = 0) -> int:
    """Count the requests of a command that ends with an exit code."""
    before, done = server.requests, command()
    assert done.code == code, done.err
    return server.requests - before


def test_killed_run_is_continued(served: Library, server: ChatServer) -> None:
    def stalling(request: Asked) -> Reply:
        return replace(varied(request), delay_s=60 if server.requests > 8 else 0.02)

    server.reply = stalling
    with served.start("-n", "6") as process:
        wait_until(lambda: len(only_journal(served)) >= 5 and server.requests > 8, 90)
        process.kill()
        ended(process)
    server.reply, before = varied, journal(served.run_folder())
    done = served.evaluate_here("-n", "6")
    assert (done.code, len(served.rows())) == (0, 1)
    assert f"{served.run_folder().name[:23]} was left unfinished, and goes on (--fresh asks anew)" in done.err
    assert journal(served.run_folder())[: len(before)] == before
    assert len(server.repeated) <= 3, "calls in flight"
    assert calls_of(server, lambda: served.evaluate_here("-n", "6")) == 18, "a complete run is not continued"


@pytest.mark.parametrize(("replicates", "calls"), [(1, 3), (3, 5)])
def test_unfinished_run_takes_more_replicates(replicates: int, calls: int, served: Library, server: ChatServer) -> None:
    assert served.evaluate_here("--max-calls", "4").code == 4
    folder = served.run_folder()
    assert calls_of(server, lambda: served.evaluate_here("-n", str(replicates))) == calls
    (row,) = served.rows()
    assert (row["replicates"], row["run_id"] == folder.name) == (replicates, replicates == 3)


CHANGES: Mapping[str, tuple[Callable[[Library, str], object], int]] = {
    "a version": (lambda of, _: version(of, "1.0.1"), 6),
    "a prompt": (lambda of, _: version(of, "1.0.0", "Extract the title and the year."), 6),
    "a setting": (lambda of, url: of.served_by(url, params={"temperature": 0.5}), 6),
    "the schema": (lambda of, _: of.write(f"components/{SKILL}/schema.json", {**SCHEMA, "title": "Notice"}), 6),
    "a truth": (lambda of, _: of.case("beta", {"title": "beta", "year": 2025}), 6),
    "a new case": (lambda of, _: of.case("delta"), 4),
    "a price": (lambda of, url: of.served_by(url, price={"input": 1, "output": 1}), 2),
}


@pytest.mark.parametrize("change", CHANGES)
def test_only_a_run_of_equal_questions_is_continued(change: str, served: Library, server: ChatServer) -> None:
    assert served.evaluate_here("--max-calls", "4").code == 4
    apply, calls = CHANGES[change]
    apply(served, server.url)
    assert calls_of(server, served.evaluate_here) == calls


@pytest.mark.parametrize("words", [("--fresh",), ("--seed", "7"), ("--draft",), ("--bare",)], ids=" ".join)
def test_options_that_begin_a_new_run(words: tuple[str, ...], served: Library, server: ChatServer) -> None:
    assert served.evaluate_here("--max-calls", "4").code == 4
    assert calls_of(server, lambda: served.evaluate_here(*words)) == 6


def test_run_beside_its_baseline_is_continued_only_as_planned(served: Library, server: ChatServer) -> None:
    repository = GitRepository(served.root)
    repository.commit()
    assert served.evaluate_here().code == 0
    repository.commit("record")
    version(served, "1.1.0", "Extract both.")
    served.settings(policy={"design": "beside"})
    assert served.evaluate_here("--max-calls", "4").code == 4
    assert calls_of(server, lambda: served.evaluate_here("-n", "4", "--max-calls", "2"), code=4) == 2
    done = served.evaluate_here()
    assert ("1.5 × the calls" in done.err, "goes on" in done.err, done.code) == (False, True, 0)
    assert (bool(served.records()[0]["beside"]), server.requests) == (True, 6 + 9 + 2)


def test_complete_models_are_not_called_again_while_another_is_unfinished(served: Library, server: ChatServer) -> None:
    entry = {"provider": "openai", "base_url": server.url}
    served.models({"id": "one", **entry}, {"id": "two", **entry})
    server.reply = lambda one: Reply(status=400) if one.body["model"] == "two" else varied(one)
    assert served.evaluate_here().code == 4
    server.reply = varied
    done = served.evaluate_here()
    assert "-one is recorded and complete" in done.err
    assert (done.code, [row["model_id"] for row in served.rows()]) == (0, ["two", "one"])
    assert calls_of(server, served.evaluate_here) == 12


def test_run_of_another_process_is_left_alone(served: Library, server: ChatServer) -> None:
    held, go_on = threading.Event(), threading.Event()

    def waiting(one: Asked) -> Reply:
        if server.requests > 3 and not go_on.is_set() and one.times == 1:
            held.set()
            go_on.wait(60)
        return varied(one)

    server.reply = waiting
    with served.start() as process:
        assert held.wait(90)
        server.reply = varied
        second = served.evaluate_here()
        go_on.set()
        assert ended(process).code == 0
    assert (second.code, "goes on" in second.err, len(served.rows())) == (0, False, 2)


def test_fresh_and_resume_exclude_each_other(served: Library) -> None:
    assert served.evaluate_here("--resume", "--fresh").refuses("cannot be combined with --dry-run or --fresh")


def test_dry_run_continues_nothing(served: Library, server: ChatServer) -> None:
    assert served.evaluate_here("--max-calls", "4").code == 4
    before = served.tree()
    assert served.evaluate_here("--dry-run", "-n", "3").code == 0
    assert (served.tree(), server.requests) == (before, 4)
