"""The disk refuses a write: what was there stays whole, and the run goes on once there is room.

The refusal is real: the process runs under a limit on the size of the files it writes (RLIMIT_FSIZE), and the system
cuts the write that crosses it short, as it does on a full disk.
"""

import json
import resource
from collections.abc import Callable

import pytest
from skill_evaluator.records.leaderboard import append_rows
from skill_evaluator.records.record import Row

from tests.support.chat_server import ChatServer
from tests.support.library import CASES, SKILL, Library, ended, journal

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


def test_a_full_disk_under_the_journal(served: Library, server: ChatServer) -> None:
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


def test_a_full_disk_under_the_leaderboard(served: Library, server: ChatServer) -> None:
    served.evaluate("--replicates", "1")
    (row,) = served.rows()
    earlier = [Row.model_validate({**row, "run_id": f"20260101T{at:06}Z-abcdef-served"}) for at in range(20)]
    append_rows(served.leaderboard, SKILL, earlier)  # the leaderboard is larger than a record
    server.forget()
    before = {name: raw for name, raw in served.tree().items() if "evals/" not in name}
    board = served.leaderboard.read_bytes()
    limits = {"env": _NO_BYTECODE, "preexec_fn": _no_file_above(len(board))}  # it can only grow
    with served.start(**limits) as process:
        failed = ended(process)
    assert failed.code == 2
    (line,) = [line for line in failed.err.splitlines() if line.startswith("error:")]
    assert line.startswith(f"error: cannot write {served.leaderboard.relative_to(served.root)}: ")
    assert {name: raw for name, raw in served.tree().items() if "evals/" not in name} == before
    assert server.requests == 6

    assert served.evaluate("--resume").code == 0
    assert (server.requests, server.repeated) == (6, [])
    assert len(served.rows()) == 1 + len(earlier) + 1
    _holds(served, board, 6)
