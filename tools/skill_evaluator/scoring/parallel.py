"""Work in forked processes: items in parallel, and tasks with limits on processor time and memory."""

import contextlib
import gc
import math
import os
import pickle
import queue
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, TypeVar

from skill_evaluator.display import with_progress
from skill_evaluator.errors import SkillEvaluatorError
from skill_evaluator.library.config import SafetyLimits

if sys.platform != "win32":  # Windows has neither resource nor fork
    import resource

_CLOCK_SECONDS = 10  # maximum wall-clock seconds per second of processor time
_MAX_ATTEMPTS = 2
_MAX_FILES = 4096  # inherited files that a worker closes
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux's prctl
_MIN_ITEMS = 16  # fewer items: starting processes takes longer than the work
_work: list[Callable[[Any], Any]] = []  # the function to call, inherited by forked processes

ItemT = TypeVar("ItemT")
DoneT = TypeVar("DoneT")


def map_in_processes(
    work: Callable[[ItemT], DoneT], items: Sequence[ItemT], label: str = "components"
) -> Iterator[DoneT]:
    """Yield `work(item)` for each item, in order; `label` names the items in the progress.

    Use all cores from 16 items on. Nested calls and Windows use one process.
    """
    cores = os.cpu_count() or 1
    if len(items) < _MIN_ITEMS or cores == 1 or not hasattr(os, "fork") or parent_process():
        yield from with_progress(map(work, items), len(items), label)
        return
    _work[:] = [work]  # forked processes inherit it, and ignore Ctrl-C
    ignore_interrupts = (signal.SIGINT, signal.SIG_IGN)
    with ProcessPoolExecutor(cores, get_context("fork"), initializer=signal.signal, initargs=ignore_interrupts) as pool:
        chunk = min(8, 1 + len(items) // (16 * cores))  # small chunks balance the load
        yield from with_progress(pool.map(_done, items, chunksize=chunk), len(items), label)


def _done(item: Any) -> Any:
    (work,) = _work
    return work(item)


class Workers:
    """A pool of `count` forked processes that call `work` with limits on processor time and memory per task.

    Open it while this process has no other thread, lock or connection. Closing it drops unfinished tasks.
    """

    def __init__(self, work: Callable[..., Any], limits: SafetyLimits, count: int) -> None:
        self._work, self._limits = work, limits
        self._workers = {_Worker(work, limits) for _ in range(count)}
        self._idle: queue.LifoQueue[_Worker] = queue.LifoQueue()
        for worker in self._workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(count)
        self._lock = threading.Lock()  # protects the set of workers
        self._is_closed = False

    def submit(
        self, task: tuple[Any, ...], too_costly: Callable[[], Any], times: int = 1, until: float = math.inf
    ) -> Future[Any]:
        """Call `work(*task)` in a worker. Return the future of its result, or of `too_costly()` if it exceeds a limit.

        `times` multiplies the time limit. A task that has not begun by `until` (monotonic clock) is also too costly.
        """
        return self._threads.submit(self._do, (times, task), too_costly, until)

    def close(self) -> None:
        """Kill all workers and cancel the tasks that have not begun."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            self._is_closed = True
            for worker in self._workers:
                os.kill(worker.pid, signal.SIGKILL)
        self._threads.shutdown()
        for worker in self._workers:
            worker.end()

    def _do(self, task: tuple[int, tuple[Any, ...]], too_costly: Callable[[], Any], until: float) -> Any:
        for _ in range(_MAX_ATTEMPTS if time.monotonic() < until else 0):
            if self._is_closed:
                break
            worker = self._idle.get()
            try:
                worker.connection.send(task)
                result, problem = worker.connection.recv()
            except (OSError, EOFError, pickle.UnpicklingError):
                code = self._replace(worker)
                if code > 0:
                    raise RuntimeError(f"a scoring process ended with exit code {code}") from None
                if code == -signal.SIGKILL:  # killed by the system, for example when memory is short
                    continue
                break
            if isinstance(problem, MemoryError):
                self._replace(worker)  # memory of the task may not be freed
                break
            self._idle.put(worker)
            if problem is not None:
                raise problem
            return result
        return too_costly()

    def _replace(self, worker: "_Worker") -> int:
        """Kill a worker if it runs, start another unless the pool is closed, and return the old worker's exit code."""
        with self._lock:
            self._workers.discard(worker)
            code = worker.end()
            if not self._is_closed:
                worker = _Worker(self._work, self._limits)
                self._workers.add(worker)
                self._idle.put(worker)
        return code


class _Worker:
    def __init__(self, work: Callable[..., Any], limits: SafetyLimits) -> None:
        self.connection, theirs = Pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # workers use no locks of other threads
            self.pid = os.fork()
        if self.pid == 0:
            try:
                _serve(theirs, work, limits)
            finally:
                os._exit(1)  # skips the parent's exit handlers
        theirs.close()

    def end(self) -> int:
        """Kill the process if it still runs, and return its exit code (negative for a signal)."""
        self.connection.close()
        os.kill(self.pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def _serve(connection: Connection, work: Callable[..., Any], limits: SafetyLimits) -> None:
    _become_worker(connection, limits.score_megabytes)
    while True:
        try:
            times, task = connection.recv()
        except (EOFError, OSError):
            return
        signal.setitimer(signal.ITIMER_PROF, limits.score_seconds * times)
        signal.setitimer(signal.ITIMER_REAL, limits.score_seconds * times * _CLOCK_SECONDS)
        try:
            reply = pickle.dumps((work(*task), None), pickle.HIGHEST_PROTOCOL)
        except (SkillEvaluatorError, MemoryError) as problem:
            reply = pickle.dumps((None, problem))
        except Exception:
            reply = pickle.dumps((None, RuntimeError(f"in a worker process:\n{traceback.format_exc()}")))
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        connection.send_bytes(reply)


def _become_worker(connection: Connection, megabytes: int) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # sent to all processes of a terminal or a job
        signal.signal(number, signal.SIG_IGN)
    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # libraries write there when memory is short
    os.closerange(3, connection.fileno())
    os.closerange(connection.fileno() + 1, _MAX_FILES)
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[name] = "1"  # there is one worker per core
    gc.freeze()  # keeps the parent's objects in shared memory
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError, ValueError):  # not every system reports memory use or supports this limit
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + megabytes * 1_000_000
        resource.setrlimit(resource.RLIMIT_AS, (limit if soft == resource.RLIM_INFINITY else min(limit, soft), hard))
