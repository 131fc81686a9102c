"""Run programs with limits, and Python functions in worker processes.

A program is not in a sandbox. It can read the user's files; on Linux it cannot read the memory and environment of this
process. A process that it starts in a new session (`setsid`) is not killed.
"""

import asyncio
import ctypes
import gc
import math
import os
import pickle
import queue
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import IO, Any, Literal, TypeVar

from skill_evaluator.display import is_key_variable, with_progress
from skill_evaluator.errors import SkillEvaluatorError

EndReason = Literal["exited", "timeout", "output", "absent"]
_MAX_ERROR_BYTES = 16_000
_POLL_S = 0.05
_DUMPABLE = 4  # PR_SET_DUMPABLE of Linux's prctl
_CLOCK_SECONDS = 10  # maximum wall-clock seconds per second of processor time
_MAX_ATTEMPTS = 2
_MAX_FILES = 4096  # inherited files that a worker closes
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux's prctl
_MIN_ITEMS = 16  # fewer items: starting processes takes longer than the work
_work: list[Callable[[Any], Any]] = []  # the function to call, inherited by forked processes

ItemT = TypeVar("ItemT")
DoneT = TypeVar("DoneT")


def child_environment() -> dict[str, str]:
    """Return the environment variables except key variables (see `is_key_variable`)."""
    return {name: value for name, value in os.environ.items() if not is_key_variable(name)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program to run in a folder, without a shell, and its limits.

    It gets the variables in `environment`, PATH, LC_CTYPE, HOME and TMPDIR. The last two name a temporary folder.
    """

    argv: Sequence[str]
    folder: Path
    seconds: float
    output_bytes: int  # the limit of stdout and of stderr
    memory_bytes: int | None = None  # the limit of each process (Linux's RLIMIT_DATA)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)  # can have keys


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessResult:
    """The result of a program that was run."""

    reason: EndReason  # `absent`: it could not be started; `timeout`: also if it was cancelled
    code: int | None = None  # exit code, negative for a signal; None if it could not be started
    stdout: bytes = b""  # cut at the limit
    stderr: bytes = b""  # only its end
    program: Program

    @property
    def problem(self) -> str | None:
        """A message about the failure, with the last line of stderr. None if the program exited with code 0."""
        if self.reason == "exited" and self.code == 0:
            return None
        last_line = self.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        reasons = {
            "exited": f"exit code {self.code}" if (self.code or 0) > 0 else f"killed by signal {-(self.code or 0)}",
            "timeout": f"not done after {self.program.seconds:g} s",
            "output": f"more than {self.program.output_bytes:,} bytes of output",
            "absent": "it cannot be started",
        }
        return f"{reasons[self.reason]}: {last_line}" if last_line else reasons[self.reason]


def run_process(program: Program, stdin: bytes = b"", cancelled: threading.Event | None = None) -> ProcessResult:
    """Run a program until it ends, exceeds a limit or is `cancelled`. Then kill its process group."""
    if sys.platform == "linux":  # hides the memory and environment of this process, which may contain keys
        ctypes.CDLL(None).prctl(_DUMPABLE, 0, 0, 0, 0)
    home = tempfile.TemporaryDirectory(prefix="program-", ignore_cleanup_errors=True)
    with home, tempfile.TemporaryFile() as content, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        content.write(stdin)
        content.seek(0)
        fixed = {"PATH": os.environ.get("PATH", os.defpath), "LC_CTYPE": "C.UTF-8"}
        try:
            process = subprocess.Popen(  # noqa: S603 - the caller decides which program is run
                program.argv,
                stdin=content,
                stdout=out,
                stderr=errors,
                env={**fixed, "HOME": home.name, "TMPDIR": home.name, **program.environment},
                cwd=program.folder,
                start_new_session=True,
            )
        except (OSError, ValueError) as problem:  # no such program or folder, or a NUL in the arguments
            text = str(problem).partition("] ")[2] or str(problem)  # the error number is omitted
            return ProcessResult(reason="absent", stderr=text.encode(), program=program)
        with process:
            try:
                reason = _wait(process, program, (out, errors), cancelled)
            finally:
                with suppress(OSError):  # raised if all processes of the group have ended
                    os.killpg(process.pid, signal.SIGKILL)
        size = errors.seek(0, os.SEEK_END)
        stdout = os.pread(out.fileno(), program.output_bytes, 0)
        stderr = os.pread(errors.fileno(), _MAX_ERROR_BYTES, max(0, size - _MAX_ERROR_BYTES))
        return ProcessResult(reason=reason, code=process.returncode, stdout=stdout, stderr=stderr, program=program)


def _wait(
    process: subprocess.Popen[bytes], program: Program, outputs: Sequence[IO[bytes]], cancelled: threading.Event | None
) -> EndReason:
    if program.memory_bytes is not None and sys.platform == "linux":
        with suppress(OSError, ValueError):  # raised if the program has ended or has a lower limit
            resource.prlimit(process.pid, resource.RLIMIT_DATA, (program.memory_bytes, program.memory_bytes))
    deadline, has_ended = time.monotonic() + program.seconds, False
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_POLL_S)
            has_ended = True
        if max(os.fstat(file.fileno()).st_size for file in outputs) > program.output_bytes:
            return "output"
        if has_ended:
            return "exited"
        if time.monotonic() >= deadline or (cancelled is not None and cancelled.is_set()):
            return "timeout"


async def run_process_in(threads: Executor, program: Program, stdin: bytes = b"") -> ProcessResult:
    """Run a program in a thread of `threads` and return the result. If the task is cancelled, end the program."""
    cancelled = threading.Event()
    running = asyncio.get_running_loop().run_in_executor(threads, run_process, program, stdin, cancelled)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        cancelled.set()
        await asyncio.wait({running})
        raise


def map_in_processes(
    work: Callable[[ItemT], DoneT], items: Sequence[ItemT], label: str = "components"
) -> Iterator[DoneT]:
    """Yield `work(item)` for each item, in order. `label` names the items in the progress display.

    Use all cores from 16 items on. Nested calls and Windows use one process.
    """
    cores = os.cpu_count() or 1
    if len(items) < _MIN_ITEMS or cores == 1 or not hasattr(os, "fork") or parent_process():
        yield from with_progress(map(work, items), len(items), label)
        return
    _work[:] = [work]  # forked processes inherit it
    with ProcessPoolExecutor(cores, get_context("fork"), initializer=_leave_interrupts) as pool:
        chunk = min(8, 1 + len(items) // (16 * cores))  # small chunks balance the load
        yield from with_progress(pool.map(_done, items, chunksize=chunk), len(items), label)


def _leave_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the pool ends its processes with SIGTERM


def _done(item: Any) -> Any:
    (work,) = _work
    return work(item)


class Workers:
    """A pool of `count` forked processes that call `work` with limits per task: processor seconds and megabytes.

    Open it before this process has threads, locks or connections, since the workers would inherit them.
    """

    def __init__(self, work: Callable[..., Any], seconds: float, megabytes: int, count: int) -> None:
        self._task_limits = work, seconds, megabytes
        self._workers = {_Worker(*self._task_limits) for _ in range(count)}
        self._idle: queue.LifoQueue[_Worker] = queue.LifoQueue()
        for worker in self._workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(count)
        self._lock = threading.Lock()  # protects the set of workers
        self._is_closed = False

    def submit(
        self, task: tuple[Any, ...], too_costly: Callable[[], Any], times: int = 1, until: float = math.inf
    ) -> Future[Any]:
        """Call `work(*task)` in a worker and return the future of the result.

        `times` multiplies the limit of seconds. If the call exceeds a limit or does not begin before `until` (monotonic
        clock), the result is that of `too_costly()`.
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
        """Kill a worker and return its exit code. Start another worker, unless the pool is closed."""
        with self._lock:
            self._workers.discard(worker)
            code = worker.end()
            if not self._is_closed:
                worker = _Worker(*self._task_limits)
                self._workers.add(worker)
                self._idle.put(worker)
        return code


class _Worker:
    def __init__(self, work: Callable[..., Any], seconds: float, megabytes: int) -> None:
        self.connection, theirs = Pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # workers use no locks of other threads
            self.pid = os.fork()
        if self.pid == 0:
            try:
                _serve(theirs, work, seconds, megabytes)
            finally:
                os._exit(1)  # skips the parent's exit handlers
        theirs.close()

    def end(self) -> int:
        """Kill the process if it still runs, and return its exit code (negative for a signal)."""
        self.connection.close()
        os.kill(self.pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def _serve(connection: Connection, work: Callable[..., Any], seconds: float, megabytes: int) -> None:
    _become_worker(connection, megabytes)
    while True:
        try:
            times, task = connection.recv()
        except (EOFError, OSError):
            return
        signal.setitimer(signal.ITIMER_PROF, seconds * times)
        signal.setitimer(signal.ITIMER_REAL, seconds * times * _CLOCK_SECONDS)
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
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # libraries write there when memory is short
    os.closerange(3, connection.fileno())
    os.closerange(connection.fileno() + 1, _MAX_FILES)
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[name] = "1"  # there is one worker per core
    gc.freeze()  # keeps the parent's objects in shared memory
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError, ValueError):  # not every system reports memory use or supports this limit
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + megabytes * 1_000_000
        resource.setrlimit(resource.RLIMIT_AS, (limit if soft == resource.RLIM_INFINITY else min(limit, soft), hard))
