"""The disk refuses a write: what was there stays whole, and the run goes on once there is room.

The refusal is real: the process runs under a limit on the size of the files it writes (RLIMIT_FSIZE), and the system
cuts the write that crosses it short, as it does on a full disk.
"""

import json
import resource
from collections.abc import Callable

import pytest
from skill_evaluator.records.archive import append_rows
from skill_evaluator.records.record import Row

from tests.support.chat_server import ChatServer
from tests.support.library import CASES, REPLAY, SKILL, Library, call, ended, invoked, journal, read

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


@pytest.mark.parametrize("refused", ["report.md", "record.json"])
def test_no_room_for_a_report_or_the_record_beside_it(library: Library, refused: str) -> None:
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
