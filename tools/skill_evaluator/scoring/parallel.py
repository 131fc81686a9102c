"""Where the scores of a run come from: worker processes under limits, or this one where nothing can take long.

No answer holds up the event loop or brings down the run. A nursery is forked while the command is one thread and holds
neither lock nor connection. It forks a worker where one is wanted, and a fresh one after each that a limit has ended.
All of them end with the process that began them.
"""

import contextlib
import gc
import math
import os
import pickle
import signal
import socket
import struct
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from skill_evaluator.comparing.sides import arrays_in, pairs_by_best
from skill_evaluator.display import told
from skill_evaluator.errors import ConfigError, FixtureError, RunError, SkillEvaluatorError
from skill_evaluator.library.config import SafetyLimits
from skill_evaluator.metrics.base import CaseAnswers
from skill_evaluator.scoring.answers import TOO_COSTLY, Agreement, AnswerScorer, Scored, agreement_of, unparseable

if sys.platform != "win32":  # which has no fork, either
    import resource

_Task = tuple[int, tuple[Any, ...]]  # how many times the usual seconds it may take, and what is to be worked with
_NUMBER = struct.Struct("!q")
_START = 0  # asks the nursery for a worker; any other number is a worker's, and asks how it ended
_TIMES = (signal.SIGPROF, signal.SIGALRM)  # what a worker dies of that takes too long
_WAITING = 10  # seconds by the clock for each second of processor time: only who waits for something needs more
_OUTSIDE = (signal.SIGKILL, None)  # how a worker ends that may have done nothing to deserve it
_ATTEMPTS = 2
_LITTLE = 10**8  # pairs × characters²: ten answers of 1.5 kB take about 10 ms
_WORTH_IT = 16  # fewer items are worked on in the time that it takes to begin processes
_work: list[Callable[[Any], Any]] = []  # that of the command, for the processes that it forks
_MANY = 10  # items, which scipy probably pairs; fewer are often all equal, or few enough to be tried in all orders

ItemT = TypeVar("ItemT")
DoneT = TypeVar("DoneT")


def side_by_side(
    work: Callable[[ItemT], DoneT], items: Sequence[ItemT], what: str = "components", *, large: bool = False
) -> Iterator[DoneT]:
    """Do the same with each item, and yield what comes of them in order; many on all cores. `what` they are is told.

    Of `large` items two for each core are many. A process that works on one of many works alone.
    """
    cores = os.cpu_count() or 1
    many = min(_WORTH_IT, 2 * cores) if large else _WORTH_IT
    if len(items) < many or cores == 1 or not hasattr(os, "fork") or parent_process():
        yield from told(map(work, items), len(items), what)
        return
    _work[:] = [work]  # each process is forked with it, and leaves Ctrl-C to the command
    leave = (signal.SIGINT, signal.SIG_IGN)
    with ProcessPoolExecutor(cores, get_context("fork"), initializer=signal.signal, initargs=leave) as pool:
        share = min(8, 1 + len(items) // (16 * cores))  # so that all end at about the same time
        yield from told(pool.map(_done, items, chunksize=share), len(items), what)


def _done(item: Any) -> Any:
    (work,) = _work
    return work(item)


@contextlib.contextmanager
def open_workers(scorer: AnswerScorer, short: Container[str], calls: int, until: float) -> Iterator[AnswerScorer]:
    """Have answers scored by worker processes, but to the cases with a `short` truth; see `open_scores`."""
    component = scorer.component

    def work(what: str, *arguments: Any) -> object:
        tasks: Mapping[str, Callable[..., object]] = {
            "score": scorer.score,
            "undefined": scorer.undefined,
            "agreement": lambda *counted: scorer.begin_agreement(CaseAnswers(component.plan, *counted)),
        }
        try:
            return tasks[what](*arguments)
        except ConfigError as problem:  # of a package's metric or comparator
            raise ConfigError(
                f"case {arguments[0]!r:.60}: {problem}" if what != "agreement" else str(problem)
            ) from None

    arrays = (array for case in scorer.cases.values() for array in arrays_in(case.truth, component.plan))
    if calls and any(len(items) >= _MANY and pairs_by_best(field.array_rule(*items), field) for field, items in arrays):
        import scipy.optimize  # noqa: F401 - once here, and not once in every worker
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with (
        Workers(work, component.limits, min(cores, max(calls, len(scorer.cases), 1))) as workers,
        contextlib.closing(_WorkerScores(scorer, short, workers, until)) as scores,
    ):
        yield scores


class _WorkerScores(AnswerScorer):
    """Scores that workers work out; what goes over a limit there is too costly to score."""

    def __init__(self, scorer: AnswerScorer, short: Container[str], workers: "Workers", until: float) -> None:
        super().__init__(scorer.component, scorer.cases.values(), until)
        self._short = short  # the cases whose truth is
        self._workers = workers
        self._begun: dict[str, Future[frozenset[str]]] = {
            case.id: workers.submit(("undefined", case.id), partial(self._refuse_truth, case.id))
            for case in self.cases.values()
            if case.labelled and case.id not in self._short
        }

    def begin(self, case_id: str, text: str) -> Scored | Future[Scored]:
        if case_id in self._short and self.is_short(text):
            return super().begin(case_id, text)
        too_costly = partial(unparseable, self.component, self.cases[case_id], problem=TOO_COSTLY)
        begun = self._workers.submit(("score", case_id, text), too_costly, until=self._until)
        return self._then_programs(case_id, text, begun)

    def undefined(self, case_id: str) -> frozenset[str]:
        begun = self._begun.get(case_id)
        return super().undefined(case_id) if begun is None else begun.result()

    def begin_agreement(self, answers: CaseAnswers) -> Agreement | Future[Agreement]:
        longest = max(map(len, answers.groups), default=0)
        if not self.may_last and (len(answers.groups) < 2 or answers.pairs * longest**2 <= _LITTLE):
            return super().begin_agreement(answers)
        task = ("agreement", answers.groups, answers.raw, answers.n)
        too_costly = partial(agreement_of, answers, None)
        return self._workers.submit(task, too_costly, times=answers.n, until=self._until)

    def _refuse_truth(self, case_id: str) -> NoReturn:
        limits = self.component.limits
        raise FixtureError(
            f"case '{case_id}' of '{self.component.name}': its ground truth is too costly to score, it takes more than "
            f"{limits.score_seconds:g} s or {limits.score_megabytes:,} MB; make it smaller, align its arrays by key in "
            "evals/datasets.json, or raise limits.score_seconds or score_megabytes in settings.yaml"
        )


class Workers:
    """As many worker processes as `count`, begun when there is work; `work` is what they do, with what is submitted.

    Each piece of work has `limits` on its processor time and memory. Close it, or use it in a `with`: what has not been
    done by then is never done.
    """

    def __init__(self, work: Callable[..., Any], limits: SafetyLimits, count: int) -> None:
        self._nursery, theirs = socket.socketpair()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads, whose locks nobody needs
            self._pid = os.fork()
        if self._pid == 0:
            _live(lambda: _Nursery(theirs, _Worker(work, limits)).serve(self._nursery))
        theirs.close()
        self._asking = threading.Lock()
        self._threads = ThreadPoolExecutor(count)
        self._mine = threading.local()  # the worker of a thread
        self._channels: set[_Channel] = set()

    def submit(
        self, task: tuple[Any, ...], too_costly: Callable[[], Any], times: int = 1, until: float = math.inf
    ) -> Future[Any]:
        """Have `work(*task)` done; if that goes over a limit, what `too_costly` returns or raises stands for it.

        It may take `times` as long as a piece of work. It is not begun after `until`.
        """
        return self._threads.submit(self._do, (times, task), too_costly, until)

    def close(self) -> None:
        """End all workers, and forget what they have not done."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        with contextlib.suppress(OSError):
            self._nursery.shutdown(socket.SHUT_RDWR)  # ends the nursery, and that every worker, whose thread then ends
        os.waitpid(self._pid, 0)
        self._threads.shutdown()
        for channel in self._channels:
            channel.close()
        self._nursery.close()

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _do(self, task: _Task, too_costly: Callable[[], Any], until: float) -> Any:
        for _ in range(_ATTEMPTS if time.monotonic() < until else 0):
            channel = self._channel()
            try:
                result, problem = channel.exchange(task)
            except (OSError, EOFError, pickle.UnpicklingError):
                if self._bury(channel) in _OUTSIDE:
                    continue
                break
            if isinstance(problem, MemoryError):
                self._bury(channel)  # who follows has its memory in order
                break
            if problem is not None:
                raise problem
            return result
        return too_costly()

    def _channel(self) -> "_Channel":
        """Return the connection to this thread's worker, which is begun if need be."""
        channel: _Channel | None = getattr(self._mine, "channel", None)
        if channel is None:
            with self._asking:
                pid, descriptors = self._ask(_START)
            channel = self._mine.channel = _Channel(pid, socket.socket(fileno=descriptors[0]))
            self._channels.add(channel)
        return channel

    def _bury(self, channel: "_Channel") -> int | None:
        """Forget a worker that has ended, or is to; return the signal that ended it, None if none did."""
        self._mine.channel = None
        self._channels.discard(channel)
        channel.close()
        with self._asking:
            status, _ = self._ask(channel.pid)
        if os.WIFSIGNALED(status):
            return os.WTERMSIG(status)
        if status != 0:
            raise RuntimeError("a worker process failed; its traceback stands above this one")
        return None

    def _ask(self, number: int) -> tuple[int, list[int]]:
        """Return the nursery's answer, a number and perhaps a descriptor; raise RunError if it is no more."""
        with contextlib.suppress(OSError):
            self._nursery.sendall(_NUMBER.pack(number))
            answer, descriptors, _, _ = socket.recv_fds(self._nursery, _NUMBER.size, 1)
            if answer:
                return _NUMBER.unpack(answer)[0], descriptors
        raise RunError("the processes that score were ended from outside; the answers are kept: go on with --resume")


class _Channel:
    """A connection to one worker: a task goes in, what came of it comes back. Only this program's own objects do."""

    def __init__(self, pid: int, connection: socket.socket) -> None:
        self.pid = pid
        self._connection = connection
        self._stream = connection.makefile("rwb")

    def exchange(self, task: _Task) -> Any:
        pickle.dump(task, self._stream, pickle.HIGHEST_PROTOCOL)
        self._stream.flush()
        return pickle.load(self._stream)  # noqa: S301

    def close(self) -> None:
        with contextlib.suppress(OSError):  # what could not be sent to a worker that has ended
            self._stream.close()
        self._connection.close()


class _Nursery:
    """The process that forks the workers, and knows how they end."""

    def __init__(self, control: socket.socket, worker: "_Worker") -> None:
        self._control = control
        self._worker = worker
        self._pids: set[int] = set()

    def serve(self, other_end: socket.socket) -> None:
        """Begin workers until the process that wants them ends; then end them."""
        other_end.close()
        for number in (signal.SIGINT, signal.SIGTERM):  # sent to all of a terminal's or a job's processes
            signal.signal(number, signal.SIG_IGN)
        for number in _TIMES:
            signal.signal(number, signal.SIG_DFL)
        for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
            os.environ[name] = "1"  # of this forked process; there is a worker for each core
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # running into a limit is no reason to keep the memory
        gc.freeze()  # what is there stays in memory that all workers share
        gc.enable()
        try:
            while request := self._control.recv(_NUMBER.size):
                (number,) = _NUMBER.unpack(request)
                if number == _START:
                    self._start()
                else:
                    self._pids.discard(number)
                    self._control.sendall(_NUMBER.pack(os.waitpid(number, 0)[1]))
        finally:
            for pid in self._pids:
                os.kill(pid, signal.SIGKILL)
            for pid in self._pids:
                os.waitpid(pid, 0)

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            self._control.close()
            ours.close()
            _live(lambda: self._worker.serve(theirs))
        self._pids.add(pid)
        theirs.close()
        with ours:
            socket.send_fds(self._control, [_NUMBER.pack(pid)], [ours.fileno()])


class _Worker:
    """A process that does one piece of work after the other."""

    def __init__(self, work: Callable[..., Any], limits: SafetyLimits) -> None:
        self._work = work
        self._limits = limits

    def serve(self, connection: socket.socket) -> None:
        """Do what is asked until nobody asks any more."""
        sys.stderr = os.fdopen(os.dup(2), "w")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # where libraries write that find no more memory
        stream = connection.makefile("rwb")
        while True:
            try:
                task = pickle.load(stream)  # noqa: S301
            except EOFError:
                return
            stream.write(self._do(task))
            stream.flush()

    def _do(self, task: _Task) -> bytes:
        """Return what came of a task, or the problem there was, as it is sent."""
        times, arguments = task
        try:
            with _limited(self._limits.score_seconds * times, self._limits.score_megabytes):
                return pickle.dumps((self._work(*arguments), None), pickle.HIGHEST_PROTOCOL)
        except (SkillEvaluatorError, MemoryError) as problem:
            return pickle.dumps((None, problem))
        except Exception:
            return pickle.dumps((None, RuntimeError(f"in a worker process:\n{traceback.format_exc()}")))


@contextlib.contextmanager
def _limited(seconds: float, megabytes: int) -> Iterator[None]:
    """Let the system end this process when what is done takes too long, and refuse it more memory.

    Only the system can: the work may be inside a library that never looks up.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with contextlib.suppress(OSError, ValueError):  # not every system says how much is used, or keeps to this limit
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + megabytes * 1_000_000
        resource.setrlimit(resource.RLIMIT_AS, (most if soft == resource.RLIM_INFINITY else min(most, soft), hard))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, seconds * _WAITING)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _live(serve: Callable[[], None]) -> NoReturn:
    """Do what a forked process is for, and end it: nothing of what its parent was about to do is done here."""
    try:
        serve()
        os._exit(0)
    except OSError:  # the other end is gone
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
