"""Faults of the machine: full disks, clocks that change, folders and files that go or are torn, racing writers."""

import ctypes
import json
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from skill_evaluator.runner.journal import outcomes

from tests.support.chat_server import ChatServer, Reply, varied
from tests.support.library import (
    CASES,
    REPLAY,
    SCRIPT,
    SKILL,
    Library,
    call,
    ended,
    invoked,
    journal,
    only_journal,
    read,
    wait_until,
)

pytestmark = pytest.mark.faults

_NO_BYTECODE = {"PYTHONDONTWRITEBYTECODE": "1"}  # which the limit would cut off, too


def _no_file_above(size: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def _holds(library: Library, board: bytes, scored: int) -> None:
    """The leaderboard has the rows it had, and one more."""
    before = json.loads(board)["runs"]
    (added,) = [row for row in library.rows() if row not in before]
    assert added["scored"] == scored
    assert [row for row in library.rows() if row in before] == before


def test_full_disk_under_the_journal_loses_one_output(served: Library, server: ChatServer) -> None:
    served.evaluate("--replicates", "1", "--concurrency", "1")
    board = served.leaderboard.read_bytes()
    earlier = set(served.results.iterdir())
    server.forget()
    limits = {"env": _NO_BYTECODE, "preexec_fn": _no_file_above(3_000)}
    with served.start("--replicates", "10", "--concurrency", "1", **limits) as process:
        failed = ended(process)
    assert failed.code == 2
    (folder,) = set(served.results.iterdir()) - earlier
    (line,) = [line for line in failed.err.splitlines() if line.startswith("error:")]
    assert line.startswith(f"error: cannot write {(folder / 'replicates.jsonl').relative_to(served.root)}: ")
    assert "Traceback" not in failed.err
    kept = journal(folder)
    assert (folder / "replicates.jsonl").read_bytes().endswith(b"\n")
    assert len(kept) == server.requests - 1  # the one answer there was no room for
    assert served.leaderboard.read_bytes() == board

    assert served.evaluate("--resume").code == 0
    assert len(server.repeated) == 1
    assert server.requests == 10 * len(CASES) + 1
    _holds(served, board, 30)


@pytest.mark.parametrize("refused", ["report.md", "record.json"])
def test_unwritable_report_or_record_costs_its_run_alone(library: Library, refused: str) -> None:
    library.models({**REPLAY, "id": "first"}, {**REPLAY, "id": "second"})
    invocation = "20260301T080000Z-abcdef"
    first, second = (library.results / f"{invocation}-{SKILL}-{model}" for model in ("first", "second"))
    in_the_way = first / refused
    in_the_way.mkdir(parents=True)  # the system refuses to put a file in its place
    with invoked(invocation):
        failed = library.evaluate_here()
    assert (failed.code, f"error: cannot write {in_the_way.relative_to(library.root)}: " in failed.err) == (2, True)
    assert len(library.rows()) == 2
    assert (second / "report.md").exists(), "one run does not take the other with it"

    in_the_way.rmdir()
    resumed = call(library.root, *failed.to_go_on())
    assert (resumed.code, f"{first.name} is recorded and complete" in resumed.err) == (0, True)
    report = (first / "report.md").read_text()
    assert "6 of 6 scored" in report
    assert read(first / "record.json") == read(library.component / "evals" / "records" / f"{first.name}.json")
    (first / "report.md").unlink()
    assert library.evaluate_here("--resume").code == 0
    assert ((first / "report.md").read_text(), len(library.rows())) == (report, 2)
    assert library.evaluate_here("--resume").refuses("no unfinished run")


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


YEAR = 365 * 86_400.0


def test_clock_set_back_during_a_run_changes_only_times(served: Library, server: ChatServer) -> None:
    server.reply = lambda asked: Reply(text=varied(asked).text, delay_s=0.3)
    done = served.evaluate("--replicates", "6", env=_clock(served, (0, 0), (1.2, -YEAR)))
    assert done.code == 0, done.err
    assert (server.requests, server.repeated) == (18, [])
    (row,) = served.rows()
    assert (row["scored"], row["complete"]) == (18, True)
    assert 0 <= row["latency_s"]["p95"] < 60


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


def test_read_only_folder_is_refused_before_a_call(served: Library, server: ChatServer) -> None:
    with _read_only(served.root, *(path for path in served.root.rglob("*") if path.is_dir())):
        refused = served.evaluate(preexec_fn=_without_override)
    assert refused.code == 2, refused
    (line,) = refused.err.splitlines()
    assert line.startswith("error: cannot write to ")
    assert "--results" in line
    assert server.requests == 0


@pytest.mark.parametrize("what", ["run", "component"])
def test_folder_removed_during_a_run_is_one_line(what: str, served: Library, server: ChatServer) -> None:
    server.reply = lambda asked: Reply(text=varied(asked).text, delay_s=0.2)
    with served.start("--replicates", "6") as process:
        wait_until(lambda: len(only_journal(served)) >= 4)
        shutil.rmtree(served.run_folder() if what == "run" else served.component)
        done = ended(process)
    assert "Traceback" not in done.err
    assert done.code in (0, 2, 4)
    errors = [line for line in done.err.splitlines() if line.startswith("error:")]
    assert len(errors) == (done.code == 2), done.err


@pytest.mark.parametrize("name", ["manifest.json", "record.json", "replicates.jsonl"])
def test_torn_file_of_a_run_costs_that_run_alone(name: str, served: Library, server: ChatServer) -> None:
    served.evaluate_here("--max-calls", "4")
    torn = served.run_folder() / name
    content = torn.read_bytes()
    torn.write_bytes(content[: len(content) // 2])
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


WRITERS = 40

# Forty processes that wait for each other and then each append their own row (the imports are paid for once).
_APPENDING = """
import os, sys
from pathlib import Path
from skill_evaluator.records.archive import append_rows
from skill_evaluator.records.record import read_record

board, record, skill, writers = Path(sys.argv[1]), read_record(Path(sys.argv[2])), sys.argv[3], int(sys.argv[4])
waiting, starting = os.pipe()
children = []
for number in range(writers):
    child = os.fork()
    if child == 0:
        os.close(starting)
        os.read(waiting, 1)
        row = record.row().model_copy(update={"run_id": f"{record.run_id}-{number:02d}"})
        append_rows(board, skill, [row])
        os._exit(0)
    children.append(child)
os.close(starting)
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


def test_forty_concurrent_writers_lose_no_row(library: Library) -> None:
    library.evaluate()
    (first,) = library.rows()
    arguments = [str(library.leaderboard), str(library.run_folder() / "record.json"), SKILL, str(WRITERS)]
    lengths = []
    env = {"PYTHONPATH": str(SCRIPT.parent)}
    with library.command("-c", _APPENDING, *arguments, env=env) as driver:
        while driver.poll() is None:
            lengths.append(len(json.loads(library.leaderboard.read_bytes())["runs"]))
        assert ended(driver).code == 0
    assert len({row["run_id"] for row in library.rows()}) == len(library.rows()) == WRITERS + 1
    assert first in library.rows()
    assert lengths == sorted(lengths)
    assert len(set(lengths)) > 2  # it did read while they wrote
    assert {path.name for path in library.component.iterdir() if path.is_file()} <= {
        "prompt.md",
        "schema.json",
        "leaderboard.json",
        ".leaderboard.json.lock",
    }
