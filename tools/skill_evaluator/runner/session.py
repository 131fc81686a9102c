"""`Session` makes the calls of all models concurrently under one budget.

The first Ctrl-C (or SIGTERM) lets calls in flight finish, since they are billed; the second abandons them, and so does
the first if all calls are made in this process.
"""

import asyncio
import shlex
import signal
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from skill_evaluator.errors import ConfigError
from skill_evaluator.library.config import Limits, Model
from skill_evaluator.providers import Configuration, find_key, missing_key
from skill_evaluator.providers.base import Failure, opened
from skill_evaluator.providers.openai import server_version
from skill_evaluator.providers.redaction import redactor_of
from skill_evaluator.records.summaries import Server
from skill_evaluator.runner.batch import BatchEngine
from skill_evaluator.runner.engine import (
    STOPPED,
    CallHandlers,
    Engine,
    Invocation,
    Progress,
    RunningRun,
    Stop,
    in_parallel,
)
from skill_evaluator.runner.journal import Run, create_run, read_manifest
from skill_evaluator.runner.limits import Budget, limits_of
from skill_evaluator.runner.schedule import Shard, calls_in_flight, interleaved
from skill_evaluator.stats import by_key

Watch = Callable[[Sequence[Progress], Stop], Coroutine[Any, Any, None]]


def with_keys(models: Iterable[Model], configuration: Configuration) -> dict[str, Model]:
    """Return the models whose keys are set, by id. Warn about other models. Raise ConfigError if no model remains."""
    usable: dict[str, Model] = {}
    for model in {model.id: model for model in models}.values():
        lack = missing_key(model, configuration.kinds[model.provider], configuration.keys)
        if lack is None:
            usable[model.id] = model
        else:
            print(f"warning: skipping {model.id}: {lack}", file=sys.stderr)
    if not usable:
        raise ConfigError("no model can run; set a key named above, or choose a model without a key with --model")
    return usable


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The configuration and the budget that all calls of a command share."""

    configuration: Configuration
    watch: Watch  # shows the progress of the calls
    budget: Budget = field(default_factory=Budget)
    concurrency: int | None = None  # calls of each model; None: the value in settings.yaml
    limits: Mapping[str, Limits] = field(default_factory=dict)  # a planned job's shares of rate limits, by model id

    def make_calls(self, runs: Sequence[Run], handlers: CallHandlers) -> Mapping[str, Failure | None]:
        """Make every call that has no output yet. Return the failure that stopped the calls of each run, by run id.

        The failure is None if all calls were made. Raise ConfigError before any call if a provider cannot be opened,
        and StorageError if an output cannot be written.
        """
        work = _make_calls(self, runs, handlers)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(work)
        with ThreadPoolExecutor(1) as threads:  # this thread already runs an event loop, as in notebooks
            return threads.submit(asyncio.run, work).result()


async def no_progress(_: Sequence[Progress], stop: Stop) -> None:
    """Show nothing; wait until a stop is requested or the caller cancels."""
    await stop.wait()


def print_resume_command(command: Sequence[str]) -> None:
    """Print to stderr the command that makes the missing calls, unless it is empty."""
    if command:
        print(f"to continue: {shlex.join(command)}", file=sys.stderr)


async def _make_calls(session: Session, runs: Sequence[Run], handlers: CallHandlers) -> Mapping[str, Failure | None]:
    session.budget.begin()
    configuration = session.configuration
    shared = Invocation(
        settings=configuration.settings,
        budget=session.budget,
        redact=redactor_of(configuration.keys, configuration.models),
        stop=Stop(),
    )
    parts = [RunningRun(run, handlers, configuration.kinds[run.model.provider]) for run in runs]
    try:
        models = _begin(parts, session, shared)
    except BaseException:
        for part in parts:
            part.release()  # a long-lived process may resume the runs
        raise
    calls_task = asyncio.create_task(in_parallel(model.run() for model in models))
    watch_task = asyncio.create_task(session.watch([model.progress for model in models], shared.stop))
    is_abandoned = False

    def on_signal() -> None:
        nonlocal is_abandoned
        is_abandoned = shared.stop.is_set() or all(model.costs_nothing for model in models)
        if is_abandoned:
            calls_task.cancel()
        else:
            shared.stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError, RuntimeError):  # no such handlers on Windows or off the main thread
            asyncio.get_running_loop().add_signal_handler(number, on_signal)
    try:
        await calls_task
    except asyncio.CancelledError:
        if not is_abandoned:
            raise
    finally:
        watch_task.cancel()
        await asyncio.gather(watch_task, return_exceptions=True)
        for part in parts:
            part.finish()
    return {run_id: failure for model in models for run_id, failure in model.halted.items()}


def _begin(parts: "Sequence[RunningRun]", session: Session, shared: Invocation) -> "list[_RunningModel]":
    for part in parts:
        part.resume(session.budget)
    by_model = by_key((part.run.model.id, part) for part in parts)
    shards = max(Shard.parse(part.run.manifest.shard).count if part.run.manifest.shard else 1 for part in parts)
    limits = limits_of([group[0].run.model for group in by_model.values()], shared.settings, shards, session.limits)
    models = [_RunningModel(group, limits[name], session, shared) for name, group in by_model.items()]
    for model in models:
        model.begin()
    return models


class _RunningModel:
    """The runs of one model in progress. They share the limits of the model."""

    def __init__(self, parts: Sequence[RunningRun], limits: Limits, session: Session, shared: Invocation) -> None:
        self._parts = parts
        scheduled = interleaved([part.schedule for part in parts])
        calls = [call for call in scheduled if call not in parts[call.arm].done]
        planned = sum(len(part.schedule) for part in parts)
        run, kind, model = parts[0].run, parts[0].kind, parts[0].run.model
        key = find_key(model, kind, session.configuration.keys)
        self.progress = Progress(model_id=model.id, planned=planned, answered_before=planned - len(calls))
        self._batches: list[BatchEngine] = []
        self._engine: Engine | None = None  # None for batches, and if no call is left
        if run.manifest.transport == "batch":
            self._batches = [BatchEngine(part, key, self.progress, shared) for part in parts]
        elif calls:
            requested = session.concurrency or shared.settings.concurrency
            first, maximum = calls_in_flight(model, kind, requested)
            maximum = min(maximum, limits.max_concurrency or maximum)
            self._engine = Engine(
                model=model.model_copy(update={"limits": limits}),
                provider=opened(kind, model, key, shared.settings),
                calls=calls,
                request_for=lambda call: parts[call.arm].request_for(call),
                on_outcome=lambda replicate: parts[replicate.call.arm].save_outcome(replicate),
                price=parts[0].price,
                progress=self.progress,
                shared=shared,
                in_flight=(min(first, maximum), maximum),
                cache_floor=kind.cache_floor_of(model),
                is_known=run.manifest.run_id in parts[0].handlers.recorded or planned > len(calls),
            )

    @property
    def halted(self) -> Mapping[str, Failure | None]:
        """The failure that stopped the calls of each run, by run id; None if all were made."""
        parts = {part.run.manifest.run_id: part for part in self._parts}
        if self._batches:  # one engine per run
            return dict(zip(parts, (engine.halted for engine in self._batches), strict=True))
        failure = self._engine and self._engine.halted
        return {
            run_id: (failure if len(part.done) < len(part.schedule) else None) or (STOPPED if part.unmade else None)
            for run_id, part in parts.items()
        }

    @property
    def costs_nothing(self) -> bool:
        """Whether calls in flight can be abandoned without cost, since they are made in this process."""
        return not self._batches and (self._engine is None or getattr(self._engine.provider, "in_process", False))

    def begin(self) -> None:
        """Write the runs to disk before the first call, since the process may be killed at any time."""
        server = Server(concurrency=self._engine.in_flight[1]) if self._engine else None
        for part in self._parts:
            part.begin(server)

    async def run(self) -> None:
        """Make the remaining calls, then write the server's version and concurrency to the manifest."""
        engine = self._engine
        await asyncio.gather(*(batches.run() for batches in self._batches))
        if engine is not None:
            await engine.run()
        if engine is None or not self.progress.answered:
            return
        version = engine.shared.redact(await server_version(engine.model) or "") or None
        renamed = getattr(engine.provider, "renamed", {})
        for part in self._parts:
            common = {name: count for name, count in part.fingerprints.most_common(8) if name}
            server = Server(concurrency=engine.in_flight[1], version=version, fingerprints=common, renamed=renamed)
            update = {"server": server, "in_flight": engine.gate.used}
            create_run(part.run.folder, read_manifest(part.run.folder).model_copy(update=update))
