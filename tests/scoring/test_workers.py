"""Scoring processes: their results, their limits, and that they end with the command."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.errors import FixtureError
from skill_evaluator.processes import Workers

from tests.support.library import wait_until

LIMITS = (0.15, 200)  # seconds and megabytes
COSTLY = "too costly"


def work(name: str, *arguments: Any) -> Any:
    return {
        "double": lambda number: 2 * number,
        "process": os.getpid,
        "loop": lambda: sum(1 for _ in iter(int, 1)),
        "memory": lambda: len(bytearray(10**9)),
        "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
        "divide": lambda number: 1 / number,
        "refuse": _refuse,
        "sleep": time.sleep,
    }[name](*arguments)


def _refuse() -> None:
    raise FixtureError("case 'a' is wrong")


def do(workers: Workers, *task: Any) -> Any:
    return workers.submit(task, lambda: COSTLY).result(30)


def test_workers_return_results_by_task() -> None:
    with closing(Workers(work, *LIMITS, 3)) as workers:
        begun = [workers.submit(("double", number), lambda: COSTLY) for number in range(200)]
        assert [future.result() for future in begun] == [2 * number for number in range(200)]


def test_workers_run_concurrently() -> None:
    all_four = multiprocessing.Barrier(4)
    with closing(Workers(lambda: all_four.wait(20), 60, 1000, 4)) as workers:
        begun = [workers.submit((), lambda: COSTLY) for _ in range(4)]
        assert sorted(future.result() for future in begun) == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["loop", "memory", "kill"])
def test_task_above_a_limit_is_too_costly_and_the_next_one_is_done(name: str) -> None:
    with closing(Workers(work, *LIMITS, 1)) as workers:
        assert do(workers, "double", 1) == 2
        assert do(workers, name) == COSTLY
        assert do(workers, "double", 2) == 4


def test_limits_apply_to_each_task() -> None:
    def sweat(seconds: float) -> bool:
        end = time.process_time() + seconds
        while time.process_time() < end:
            pass
        return True

    with closing(Workers(sweat, 0.5, 1000, 1)) as workers:
        assert [do(workers, 0.2) for _ in range(3)] == [True] * 3
    with closing(Workers(lambda size: len(bytearray(size)), 60, 60, 1)) as workers:
        assert [do(workers, 40_000_000) for _ in range(3)] == [40_000_000] * 3


def test_waiting_task_is_ended_by_wall_clock() -> None:
    with closing(Workers(work, 0.05, 1000, 1)) as workers:
        assert do(workers, "sleep", 20) == COSTLY


def test_task_not_begun_in_time_is_too_costly() -> None:
    with closing(Workers(work, 60, 1000, 1)) as workers:
        do(workers, "process")  # the worker is ready
        until = time.monotonic() + 0.3
        begun = [workers.submit(("sleep", 0.5), lambda: COSTLY, until=until) for _ in range(3)]
        assert [future.result() for future in begun] == [None, COSTLY, COSTLY]
        assert do(workers, "double", 1) == 2


def test_task_of_a_killed_worker_is_repeated() -> None:
    with closing(Workers(work, *LIMITS, 1)) as workers:
        before = do(workers, "process")
        os.kill(before, signal.SIGKILL)
        assert do(workers, "process") not in (before, COSTLY)


def test_bug_is_raised_with_the_traceback_of_the_worker() -> None:
    with closing(Workers(work, *LIMITS, 1)) as workers:
        with pytest.raises(RuntimeError, match=r"(?s)Traceback.*in work.*ZeroDivisionError"):
            do(workers, "divide", 0)
        assert do(workers, "divide", 2) == 0.5


def test_user_error_of_a_task_is_raised() -> None:
    with closing(Workers(work, *LIMITS, 1)) as workers, pytest.raises(FixtureError, match=r"^case 'a' is wrong$"):
        do(workers, "refuse")


def test_closing_drops_unfinished_tasks() -> None:
    begun = time.monotonic()
    with closing(Workers(work, 60, 1000, 1)) as workers:
        process = do(workers, "process")
        under_way = workers.submit(("sleep", 60), lambda: COSTLY)
        waiting = workers.submit(("double", 1), lambda: COSTLY)
        wait_until(under_way.running)
    assert time.monotonic() - begun < 30
    assert waiting.cancelled()
    assert not _exists(process)


_SCRIPT = """
import time
from skill_evaluator.processes import Workers
import os
workers = Workers(lambda seconds: time.sleep(seconds) or os.getpid(), 60, 1000, 2)
pids = {workers.submit((0.2,), None).result() for _ in range(1)}
print(os.getpid(), *pids, flush=True)
workers.submit((600,), None), workers.submit((600,), None)
time.sleep(600)
"""


def test_no_worker_outlives_the_command() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "tools")}
    command = [sys.executable, "-c", _SCRIPT]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pids = [int(pid) for pid in process.stdout.readline().split()]
        assert len(pids) == 2
        assert all(map(_exists, pids))
        time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        wait_until(lambda: not any(map(_exists, pids[1:])))
        assert process.stdout.read() == ""  # nobody holds the other end of the pipe


def _exists(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_workers_ignore_signals_of_the_process_group(number: int) -> None:
    with closing(Workers(work, *LIMITS, 1)) as workers:
        process = do(workers, "process")
        under_way = workers.submit(("sleep", 0.3), lambda: COSTLY)
        os.kill(process, number)
        assert under_way.result() is None
        assert do(workers, "process") == process
