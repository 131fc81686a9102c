"""Make the calls of runs: an `Engine` for the direct calls of each model, a `BatchEngine` for each run in batches.

The first Ctrl-C (or SIGTERM) lets calls in flight finish, since they are billed. The second one abandons them. If all
models run in this process, the first one abandons them.
"""

import asyncio
import signal
import time
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain
from typing import Any

from skill_evaluator.library.config import Limits
from skill_evaluator.providers.base import Completion, Failure, ProviderError, Request, call_once, within_limits
from skill_evaluator.providers.openai import server_version
from skill_evaluator.providers.structured import output_of
from skill_evaluator.records.summaries import Server
from skill_evaluator.runner import schedule
from skill_evaluator.runner.batch import BatchEngine
from skill_evaluator.runner.journal import Run, create_run, read_manifest
from skill_evaluator.runner.schedule import Call, Replicate, Shard, calls_in_flight
from skill_evaluator.runner.session import NO_CALL_LEFT, STOPPED, Progress, Requests, RunningRun, Session, Stop
from skill_evaluator.stats import by_key

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_MAX_CONNECTIONS = 3  # failed attempts before any success, until the server counts as unreachable
_MAX_FIRST_REJECTIONS = 5  # bad requests before any success; then the settings are wrong, not the cases


def make_calls(session: Session, runs: Sequence[tuple[Run, Requests]]) -> Mapping[str, Failure | None]:
    """Make every call that has no output yet, and save its outcome. `runs` has each run with its requests.

    Return the failure that stopped each run, by run id. The failure is None if nothing stopped the run. Before any
    call, raise ConfigError if a provider cannot be opened, and RunError if inputs of a run changed or another process
    executes it. Raise StorageError if an output cannot be written.
    """
    progress = {run.model.id: Progress(model_id=run.model.id) for run, _ in runs}
    running = [RunningRun(run, requests, session.configuration, progress[run.model.id]) for run, requests in runs]
    work = _run_engines(session, running)
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
    else:
        with ThreadPoolExecutor(1) as threads:  # this thread already runs an event loop, as in notebooks
            threads.submit(asyncio.run, work).result()
    finally:
        for number, handler in handlers.items():  # asyncio resets them to the defaults
            with suppress(ValueError, TypeError):  # only the main thread may set handlers; None is a foreign one
                signal.signal(number, handler)
    return {run.run.manifest.run_id: run.failure for run in running}


async def _run_engines(session: Session, runs: Sequence[RunningRun]) -> None:
    session.budget.begin()
    stop = Stop()
    try:
        engines = _begin(session, runs, stop)
        progress = {run.run.model.id: run.progress for run in runs}
        watch_task = asyncio.create_task(session.watch(list(progress.values()), stop))
        try:
            await _run_until_abandoned(engines, stop)
        finally:
            watch_task.cancel()
            await asyncio.gather(watch_task, return_exceptions=True)
    finally:
        for run in runs:
            run.finish()


async def _run_until_abandoned(engines: "Sequence[Engine | BatchEngine]", stop: Stop) -> None:
    calls_task = asyncio.create_task(in_parallel(engine.run() for engine in engines))
    is_abandoned = False

    def on_signal() -> None:
        nonlocal is_abandoned
        is_abandoned = stop.is_set() or all(engine.costs_nothing for engine in engines)
        if is_abandoned:
            calls_task.cancel()
        else:
            stop.set()

    for number in _SIGNALS:
        with suppress(NotImplementedError, RuntimeError):  # no such handlers on Windows or off the main thread
            asyncio.get_running_loop().add_signal_handler(number, on_signal)
    try:
        await calls_task
    except asyncio.CancelledError:
        if not is_abandoned:
            raise


def _begin(session: Session, runs: Sequence[RunningRun], stop: Stop) -> list["Engine | BatchEngine"]:
    """Resume the runs and open the engines. Then create and lock the run folders. Return the engines."""
    for run in runs:
        run.resume(session.budget)
    by_model = by_key((run.run.model.id, run) for run in runs)
    shards = max(Shard.parse(run.run.manifest.shard).count if run.run.manifest.shard else 1 for run in runs)
    models = [group[0].run.model for group in by_model.values()]
    limits = schedule.limits_of(models, session.configuration.settings, shards, session.limits)
    engines: list[Engine | BatchEngine] = []
    for model_id, group in by_model.items():
        if group[0].run.manifest.transport == "batch":
            engines += [BatchEngine(run, session, stop) for run in group]
        elif any(run.open_calls for run in group):
            engines.append(Engine(group, limits[model_id], session, stop))
    for run in runs:  # before the first call, since the process may be killed at any time
        run.begin()
    return engines


async def in_parallel(tasks: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run coroutines concurrently. The first error cancels the others and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            for task in tasks:
                group.create_task(task)
    except* Exception as problems:
        raise problems.exceptions[0] from None


def call_sequences(runs: Sequence[RunningRun]) -> list[list[tuple[RunningRun, Call]]]:
    """Group the open calls of interleaved runs into lists of calls that are made one after another.

    If the vendor caches the prompt of a case, all calls of a run for this case are in one list. Any other list has a
    single call.
    """
    sequences = by_key(
        ((index, call.case_id if call.case_id in runs[index].cached else call), (runs[index], call))
        for index, call in schedule.interleaved([run.schedule for run in runs])
        if call in runs[index].open_calls
    )
    return list(sequences.values())


class Engine:
    """The engine that makes the direct calls of one model, whose runs share its limits."""

    def __init__(self, runs: Sequence[RunningRun], limits: Limits, session: Session, stop: Stop) -> None:
        model = runs[0].run.model
        self._runs, self._budget, self._stop = runs, session.budget, stop
        self._progress = runs[0].progress
        self._unfinished = [run for run in runs if run.open_calls]
        self._settings = session.configuration.settings
        self._redact = session.configuration.redactor()
        self._model = model
        self._sequences = call_sequences(runs)
        first, maximum = calls_in_flight(model, runs[0].kind, session.concurrency or self._settings.concurrency)
        self._max_in_flight = min(maximum, limits.max_concurrency or maximum)
        first = min(first, self._max_in_flight)
        self._gate = schedule.Gate(self._max_in_flight, first=first, fixed=model.server is not None)
        self._requests = schedule.Bucket(limits.requests_per_minute)
        self._tokens = schedule.Bucket(limits.tokens_per_minute)
        self._is_known = model.id in session.recorded_models or self._progress.answered_before > 0
        self._rejected = 0
        self._succeeded = False
        self._hopeless = asyncio.Event()
        self._halted: Failure | None = None
        self._provider = session.configuration.open(model)
        for run in runs:
            run.server = Server(concurrency=self._max_in_flight)

    @property
    def costs_nothing(self) -> bool:
        """Whether the model runs in this process, so that its calls can be abandoned without cost."""
        return getattr(self._provider, "in_process", False)

    async def run(self) -> None:
        """Make all open calls. If the calls end early, set `halted` of the unfinished runs to the reason.

        Save the version of the server and the number of concurrent calls in the manifests.
        """
        queue = iter(self._sequences)
        try:
            await in_parallel(self._work(queue) for _ in range(min(self._max_in_flight, len(self._sequences))))
        finally:
            with suppress(Exception):  # all outputs are written; unreleased resources end with the process
                await self._provider.close()
        if self._progress.answered:
            await self._note_server()

    async def _note_server(self) -> None:
        version, address = None, self._model.base_url
        if self._model.provider == "openai" and address:
            version = self._redact(await server_version(address) or "") or None
        renamed = getattr(self._provider, "renamed", {})
        for run in self._runs:
            common = {name: count for name, count in run.fingerprints.most_common(8) if name}
            server = Server(concurrency=self._max_in_flight, version=version, fingerprints=common, renamed=renamed)
            update = {"server": server, "in_flight": self._gate.used}
            create_run(run.run.folder, read_manifest(run.run.folder).model_copy(update=update))

    def _halt(self, failure: Failure) -> None:
        self._halted = self._halted or failure
        for run in self._unfinished:
            run.halted = self._halted

    async def _work(self, sequences: Iterator[Sequence[tuple[RunningRun, Call]]]) -> None:
        for run, call in chain.from_iterable(sequences):
            if not self._must_end() and self._halted is None and not self._budget.take_call():
                self._halt(NO_CALL_LEFT)
            if self._halted is not None:
                return
            replicate = await self._make_call(run, call)
            if replicate is not None:
                run.save_outcome(replicate)

    def _must_end(self) -> bool:
        if self._stop.is_set():
            self._halt(STOPPED)
        return self._stop.is_set() or self._hopeless.is_set()

    async def _make_call(self, run: RunningRun, call: Call) -> Replicate | None:
        """Make one call with its retries and return its outcome. Return None if the calls of the model must end."""
        request, retry = run.request_for(call), self._settings.retry
        for attempt in range(1, retry.attempts + 1):
            try:
                result = await self._attempt(run, call, request)
            except ProviderError as problem:
                if problem.reason == "unknown_model" and (self._succeeded or self._is_known):
                    problem.reason = "model_retired"
                wait = schedule.wait_before_retry(retry, attempt, problem.retry_after_s)
                if problem.throttled:
                    self._gate.throttled(wait)
                is_unreachable = problem.reason == "unreachable" and not self._succeeded and attempt >= _MAX_CONNECTIONS
                if problem.retryable and attempt < retry.attempts and not is_unreachable and not self._must_end():
                    self._progress.retried += 1
                    await self._pause(wait)
                    continue
                self._halt_if_hopeless(problem, is_unreachable=is_unreachable)
                return Replicate(call=call, error=problem.failure(self._redact), attempts=attempt)
            if result is None:
                return None
            completion, latency_s = result
            self._gate.succeeded(latency_s)
            self._succeeded = True
            completion = completion.redacted(self._redact)
            return Replicate(call=call, completion=completion, latency_s=latency_s, attempts=attempt)
        raise AssertionError("unreachable: the last attempt returns")

    async def _attempt(self, run: RunningRun, call: Call, request: Request) -> tuple[Completion, float] | None:
        """Make one attempt under all limits. Return the output and its latency in seconds.

        Return None if no further call may be made: after a stop, after a fatal error, or over the cost limit.
        """
        max_cost = run.max_cost(call)
        await self._gate.enter()
        try:
            while not self._must_end() and self._gate.pause_s:
                await self._pause(self._gate.pause_s)
            if self._must_end():
                return None
            if not await self._budget.reserve(max_cost):
                self._halt(run.cost_refusal(call, self._budget.left_usd))
                return None
            spent = 0.0
            try:
                await self._pause(self._requests.take(1))
                await self._pause(self._tokens.take(run.max_tokens(call)))
                if self._must_end():
                    return None
                spent = max_cost  # counts unless the cost becomes known
                begun = time.perf_counter()
                completion = await call_once(self._provider, request, self._settings)
                # check the limits again: `output_of` may replace the text by a tool call's arguments
                completion = within_limits(output_of(completion, request, self._model), self._settings)
                spent = run.budgeted_cost(call, completion)
                taken_s = completion.latency_s
                latency_s = time.perf_counter() - begun if taken_s is None else taken_s
                return completion, round(latency_s, 4)  # the precision of the journal
            except ProviderError as problem:
                spent = max_cost if problem.perhaps_billed else 0.0
                raise
            finally:
                self._budget.settle(max_cost, spent)
        finally:
            self._gate.leave()

    async def _pause(self, seconds: float) -> None:
        """Sleep until the time is over, or until a stop or a fatal error."""
        if not seconds:
            return
        ends = [asyncio.ensure_future(event.wait()) for event in (self._stop, self._hopeless)]
        try:
            await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()

    def _halt_if_hopeless(self, problem: ProviderError, *, is_unreachable: bool) -> None:
        self._rejected += problem.rejected
        if problem.fatal or is_unreachable or (self._rejected >= _MAX_FIRST_REJECTIONS and not self._succeeded):
            self._halt(problem.failure(self._redact))
            self._hopeless.set()
