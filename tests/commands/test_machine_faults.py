"""What can go wrong with the machine during a run: its clock, its folders, its files. No answer is lost by it."""

import ctypes
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from skill_evaluator.runner.journal import outcomes

from tests.support.chat_server import ChatServer, Reply, varied
from tests.support.library import SKILL, Library, ended, only_journal, wait_until

pytestmark = pytest.mark.faults

# A module of this name on the path is imported by every Python process before anything else.
_SHIFTED = """
import datetime, time
real, began, steps = time.time, time.time(), {steps}

def shifted():
    now = real()
    return now + next(shift for after, shift in reversed(steps) if now - began >= after)

time.time = shifted
class Shifted(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(shifted(), tz)

datetime.datetime = Shifted
"""


def _clock(library: Library, *steps: tuple[float, float]) -> dict[str, str]:
    """The environment of a process whose clock is off by so many seconds from so many seconds on."""
    library.write("clock/sitecustomize.py", _SHIFTED.format(steps=list(steps)))
    return {"PYTHONPATH": str(library.root / "clock")}


HOUR, YEAR = 3_600.0, 365 * 86_400.0


@pytest.mark.parametrize("back", [HOUR, 30 * YEAR], ids=["an hour", "thirty years"])
def test_a_clock_that_goes_back_during_a_run_changes_nothing_but_times(
    back: float, served: Library, server: ChatServer
) -> None:
    server.reply = lambda asked: Reply(text=varied(asked).text, delay_s=0.3)
    done = served.evaluate("--replicates", "6", env=_clock(served, (0, 0), (1.2, -back)))
    assert done.code == 0, done.err
    assert (server.requests, server.repeated) == (18, [])
    (row,) = served.rows()
    assert (row["scored"], row["complete"]) == (18, True)
    assert 0 <= row["latency_s"]["p95"] < 60


def test_after_a_clock_that_went_back_both_runs_are_recorded_and_compared(served: Library, server: ChatServer) -> None:
    assert served.evaluate().code == 0
    prompt = served.component / "prompt.md"
    prompt.write_text(prompt.read_text().replace("1.0.0", "1.1.0"))
    done = served.evaluate("--format", "json", env=_clock(served, (0, -YEAR)))
    assert done.code in (0, 3), done.err
    newer, older = served.rows()  # by their timestamps
    assert (newer["skill_version"], older["skill_version"]) == ("1.0.0", "1.1.0")
    assert int(newer["timestamp"][:4]) - int(older["timestamp"][:4]) in (1, 2)
    compared = served.call("compare", SKILL, "--format", "json")
    assert compared.code in (0, 3, 4), compared.err
    assert "Traceback" not in compared.err
    assert served.call("history", SKILL).code == 0


def _without_override() -> None:
    """Have root held to the permissions of files, as everybody else is: without the right to override them."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP; whoever is not root has neither


@contextmanager
def _read_only(*folders: Path) -> Iterator[None]:
    """Take the permission to write away from folders, and give it back for the test to be cleaned up."""
    for folder in folders:
        folder.chmod(0o555)
    try:
        yield
    finally:
        for folder in folders:
            folder.chmod(0o755)


def test_in_a_folder_that_is_read_only_no_call_is_made(served: Library, server: ChatServer) -> None:
    with _read_only(served.root, *(path for path in served.root.rglob("*") if path.is_dir())):
        refused = served.evaluate(preexec_fn=_without_override)
    assert refused.code == 2, refused
    (line,) = refused.err.splitlines()
    assert line.startswith("error: cannot write to ")
    assert "--results" in line
    assert server.requests == 0


def test_a_leaderboard_that_is_read_only_costs_no_answer(served: Library, server: ChatServer) -> None:
    served.results.mkdir(parents=True)
    with _read_only(served.component, served.results.parent):
        refused = served.evaluate(preexec_fn=_without_override)
    assert refused.code == 2, refused
    assert [line for line in refused.err.splitlines() if line.startswith("error: cannot write")]
    assert "Traceback" not in refused.err
    asked = server.requests
    assert served.evaluate(*(("--resume",) if asked else ())).code == 0
    assert (server.requests, server.repeated) == (6, [])
    assert served.rows()[0]["scored"] == 6


@pytest.mark.parametrize("what", ["run", "component", "fixtures"])
def test_a_folder_that_is_removed_during_a_run_is_one_line(what: str, served: Library, server: ChatServer) -> None:
    server.reply = lambda asked: Reply(text=varied(asked).text, delay_s=0.2)
    removed = {"component": served.component, "fixtures": served.root / "fixtures"}
    with served.start("--replicates", "6") as process:
        wait_until(lambda: len(only_journal(served)) >= 4)
        shutil.rmtree(removed.get(what) or served.run_folder())
        done = ended(process)
    assert "Traceback" not in done.err
    assert done.code in (0, 2, 4)
    errors = [line for line in done.err.splitlines() if line.startswith("error:")]
    assert len(errors) == (done.code == 2), done.err


@pytest.mark.parametrize("name", ["manifest.json", "record.json", "replicates.jsonl"])
@pytest.mark.parametrize("kept", [0, 0.5, 0.99])
def test_a_file_of_a_run_that_was_torn_costs_that_run_at_most(
    name: str, kept: float, served: Library, server: ChatServer
) -> None:
    served.evaluate_here("--max-calls", "4")
    torn = served.run_folder() / name
    content = torn.read_bytes()
    torn.write_bytes(content[: int(len(content) * kept)])
    answered = len(outcomes(torn.parent))
    done = served.evaluate_here("--resume")
    if name == "manifest.json":
        assert done.code == 2
        (line,) = done.err.splitlines()
        assert line.startswith("error: ")
        assert "manifest.json" in line
    else:
        assert done.code == 0, done.err
        assert server.requests == 4 + 6 - answered
    assert served.evaluate_here().code == 0
    assert served.rows()[0]["scored"] == 6
