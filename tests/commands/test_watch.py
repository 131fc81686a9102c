"""`try --watch` evaluates after each save under one call limit, and ends with Ctrl-C."""

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.chat_server import ChatServer, Reply, notice
from tests.support.library import SCRIPT, SKILL, Library, wait_until

_SECONDS = 90.0  # the most that a try takes on a machine with other work
PROMPT = f"components/{SKILL}/prompt.md"


@contextmanager
def watching(library: Library, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Start `try --watch`, with its stderr in the file `err`, and kill it at the end."""
    command = ("-m", "skill_evaluator", "try", SKILL, "--watch", *words)
    with (library.root / "out").open("w") as out, (library.root / "err").open("w") as err:
        process = library.command(*command, env={"PYTHONPATH": str(SCRIPT.parent)}, stdout=out, stderr=err)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def errors(library: Library) -> str:
    return (library.root / "err").read_text()


def wait_for_tries(library: Library, count: int) -> None:
    wait_until(lambda: errors(library).count("waiting for a save") == count, _SECONDS)


def prompt(text: str) -> str:
    return f"---\nname: {SKILL}\nversion: 1.1.0\n---\n{text}\n"


@pytest.fixture
def recorded(served: Library, server: ChatServer) -> Library:
    """1.0.0 is recorded, every answer of which is right."""
    server.reply = lambda asked: Reply(text=notice(asked.case_id))
    assert served.evaluate_here().code == 0
    server.forget()
    return served


@pytest.mark.faults
def test_watch_runs_at_each_save_until_the_call_limit(recorded: Library, server: ChatServer) -> None:
    recorded.write(PROMPT, "---\nversion: [\n---\n")
    with watching(recorded, "-n", "1", "--max-calls", "7") as process:
        wait_for_tries(recorded, 1)
        assert (server.requests, errors(recorded).count("error: ")) == (0, 1)
        for step in range(4):  # as an editor writes
            recorded.write(PROMPT, prompt(f"Extract {step}."))
        wait_for_tries(recorded, 2)
        assert server.requests == 3
        for path in ("README.md", ".prompt.md.swp", "prompt.md~"):
            recorded.write(f"components/{SKILL}/{path}", "x")
        time.sleep(0.5)
        recorded.case("beta", {"title": "beta", "year": 2025})
        wait_for_tries(recorded, 3)
        assert (server.requests, errors(recorded).count("waiting for a save; 1 call left")) == (6, 1)
        recorded.write(PROMPT, prompt("Extract all."))
        assert process.wait(_SECONDS) == 4
    assert server.requests == 7
    assert "Traceback" not in errors(recorded)


@pytest.mark.faults
def test_watch_ends_at_an_interrupt(recorded: Library) -> None:
    recorded.write(PROMPT, "---\nversion: [\n---\n")
    with watching(recorded) as process:
        wait_for_tries(recorded, 1)
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
    assert "Traceback" not in errors(recorded)
