"""Run all models of an invocation side by side: every outcome goes to its journal first, then to whoever scores it.

Several runs of one model take turns, call by call, in one queue under that model's limits.
The first Ctrl-C (or SIGTERM) lets calls in flight finish, since they are paid for; the second abandons them.
"""

import asyncio
import gc
import signal
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from skill_evaluator.errors import RunError
from skill_evaluator.files import try_lock
from skill_evaluator.library.config import Limits, Settings
from skill_evaluator.providers import BATCHES
from skill_evaluator.providers.base import Failure, opened
from skill_evaluator.providers.batch import open_batches
from skill_evaluator.providers.openai import told_version
from skill_evaluator.providers.redaction import Redactor
from skill_evaluator.records.summaries import Server
from skill_evaluator.runner.assignment import Assignment
from skill_evaluator.runner.batch import BatchEngine, BatchJob, BatchMode
from skill_evaluator.runner.engine import STOPPED, Engine, Invocation, ModelJob, Most, Progress, Stop
from skill_evaluator.runner.journal import (
    MANIFEST,
    Journal,
    create_run,
    note_looks,
    outcomes,
    read_manifest,
    refuse_other,
)
from skill_evaluator.runner.limits import Budget, limits_of
from skill_evaluator.runner.prices import dearest_cost
from skill_evaluator.runner.schedule import Call, Replicate, interleaved, schedule_calls
from skill_evaluator.runner.turns import cached_prompts, prompt_of

if TYPE_CHECKING:
    from filelock import FileLock

Watch = Callable[[Sequence[Progress], Stop], Coroutine[Any, Any, None]]


def execute(
    assignments: Sequence[Assignment],
    settings: Settings,
    budget: Budget,
    redact: Redactor,
    watch: Watch,
    *,
    check: Callable[[], None],
    meanwhile: Callable[[], None],
    batch_mode: BatchMode = "wait",
) -> Mapping[str, Failure | None]:
    """Make every call that has no answer yet; return by run id why calls were left unmade (None: none were).

    `budget` counts what resumed runs spent before; what it has left may go to another call of this function.

    `check` is called before any call, once the vendors' libraries are there; what it raises ends the run. `meanwhile`
    runs in a thread once the first calls are made; before, it would hold them up. `batch_mode` says how long runs whose
    calls go in batches are waited for. Raise ConfigError if a provider
    cannot be opened (before any call), StorageError if an answer cannot be kept.
    """
    return asyncio.run(_execute(assignments, settings, budget, redact, watch, check, meanwhile, batch_mode))


async def _execute(
    assignments: Sequence[Assignment],
    settings: Settings,
    budget: Budget,
    redact: Redactor,
    watch: Watch,
    check: Callable[[], None],
    meanwhile: Callable[[], None],
    batch_mode: BatchMode,
) -> Mapping[str, Failure | None]:
    budget.begin()
    shared = Invocation(settings=settings, budget=budget, redact=redact, stop=Stop())
    parts = [_RunningAssignment(assignment, budget) for assignment in assignments]
    by_model: dict[str, list[_RunningAssignment]] = {}
    for part in parts:
        by_model.setdefault(part.assignment.run.model.id, []).append(part)
    limits = limits_of([own[0].assignment.run.model for own in by_model.values()], settings)
    models = [_RunningModel(own, limits[name], shared, batch_mode) for name, own in by_model.items()]
    check()
    for part in parts:
        part.begin()
    gc.freeze()  # the SDKs' hundred thousands of objects live as long as the process: never walk them again
    gc.enable()
    work = asyncio.create_task(_run_all(models))
    watching = asyncio.create_task(watch([model.progress for model in models], shared.stop))
    beside = asyncio.create_task(asyncio.to_thread(meanwhile))

    def on_signal() -> None:
        if shared.stop.requested:
            work.cancel()
        shared.stop.event.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError, RuntimeError):  # no such handlers on Windows or off the main thread
            asyncio.get_running_loop().add_signal_handler(number, on_signal)
    try:
        await work
    except asyncio.CancelledError:
        if not shared.stop.requested:
            raise
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        for part in parts:
            part.finish()
    await beside
    return {run_id: failure for model in models for run_id, failure in model.halted.items()}


async def _run_all(models: "Sequence[_RunningModel]") -> None:
    try:
        async with asyncio.TaskGroup() as group:
            for model in models:
                group.create_task(model.run())
    except* Exception as problems:
        raise problems.exceptions[0] from None


class _RunningAssignment:
    """One assignment under way: its journal, the calls that are left, and what earlier attempts at the run left."""

    def __init__(self, assignment: Assignment, budget: Budget) -> None:
        run = assignment.run
        self.assignment = assignment
        self._held: FileLock | None = None
        if run.folder.exists():
            self._hold()
            refuse_other(run.folder, run.manifest)
        self.schedule = schedule_calls(tuple(run.manifest.cases), run.manifest.asked)
        scheduled = set(self.schedule)
        journal = outcomes(run.folder)
        earlier = [call for call in journal if call in scheduled]
        self._errors: dict[Call, Replicate] = {}
        self.fingerprints: Counter[str] = Counter()
        for call in earlier:
            replicate = journal[call]
            if replicate.completion is None:
                self._errors[call] = replicate
            else:
                cost = dearest_cost(run.model, assignment.price, replicate.completion)
                budget.count_earlier(self._most_usd(replicate.call) if cost is None else cost)  # None: nobody told
                self.fingerprints[replicate.completion.fingerprint or ""] += 1
                assignment.on_outcome(replicate)
        self.todo = {call for call in self.schedule if call not in journal or call in self._errors}
        self.unmade = len(self.todo)
        self.begun = max((call.replicate for call in earlier), default=-1)
        self.failed = {call: replicate.attempts for call, replicate in self._errors.items()}
        self._journal: Journal | None = None

    def _most_usd(self, call: Call) -> float:
        request = self.assignment.request_for(call)
        batch = self.assignment.run.manifest.transport == "batch"
        return Most.of(request, self.assignment.price, batch=batch).usd

    def begin(self) -> None:
        """Put the run on disk; only once every provider of the invocation could be opened."""
        if not (self.assignment.run.folder / MANIFEST).exists():
            create_run(self.assignment.run.folder, self.assignment.run.manifest)
        if self._held is None:
            self._hold()
        self._journal = Journal(self.assignment.run.folder)

    def keep(self, replicate: Replicate) -> Future[Any] | None:
        """Put an outcome into the journal, then hand it on."""
        if self._journal is None:
            raise RuntimeError("an outcome before the run was begun")
        self._journal.append(replicate)
        self._errors.pop(replicate.call, None)
        self.unmade -= 1
        if replicate.completion is not None:
            self.fingerprints[replicate.completion.fingerprint or ""] += 1
        return self.assignment.on_outcome(replicate)

    def finish(self) -> None:
        """Close the journal; errors of earlier attempts stand for calls that were not made again."""
        if self._journal is not None:
            self._journal.close()
        if self._held is not None:
            self._held.release()
        for replicate in self._errors.values():
            self.assignment.on_outcome(replicate)

    def _hold(self) -> None:
        """Keep other processes from making the same calls; raise RunError when one is at it."""
        folder = self.assignment.run.folder
        self._held = try_lock(folder / ".lock")
        if self._held is None:
            raise RunError(f"{folder} is being executed by another process")


class _RunningModel:
    """The runs of one model under way: their calls alternate in one engine, so that all of them share its limits."""

    def __init__(
        self,
        parts: Sequence[_RunningAssignment],
        limits: Limits,
        shared: Invocation,
        batch_mode: BatchMode,
    ) -> None:
        self._parts = parts
        scheduled = interleaved([part.schedule for part in parts])
        calls = [call for call in scheduled if _without_arm(call) in parts[call.arm].todo]
        planned = sum(len(part.schedule) for part in parts)
        self.progress = Progress(
            model_id=parts[0].assignment.run.model.id, planned=planned, answered_before=planned - len(calls)
        )
        self._engines: list[Engine] | list[BatchEngine] = []
        self._job: ModelJob | None = None
        first = parts[0].assignment
        self._is_batched = first.run.manifest.transport == "batch"
        if self._is_batched:
            jobs = [(part, _batch_job(part, shared, batch_mode)) for part in parts]
            self._engines = [BatchEngine(job, self.progress, part.keep) for part, job in jobs]
            return
        if not calls:
            return
        looks = first.looks if len(parts) == 1 and not first.run.manifest.settled_after else ()
        self._job = job = ModelJob(
            model=first.run.model.model_copy(update={"limits": limits}),
            provider=opened(first.kind, first.run.model, first.key, shared.settings),
            calls=calls,
            request_for=lambda call: parts[call.arm].assignment.request_for(_without_arm(call)),
            concurrency=min(first.concurrency, limits.max_concurrency or first.concurrency),
            price=first.price,
            shared=shared,
            caching=first.kind.caching_of(first.run.model),
            answered_before=first.answered_before,
            looks=[look for look in looks if look > parts[0].begun],  # an earlier look already said to go on
            enough=self._enough,
        )
        self._engines = [Engine(job, self.progress, self._keep)]

    @property
    def halted(self) -> Mapping[str, Failure | None]:
        """Why calls were left unmade, by run id; None where none were."""
        parts = {part.assignment.run.manifest.run_id: part for part in self._parts}
        if self._is_batched:  # an engine a run
            return dict(zip(parts, (engine.halted for engine in self._engines), strict=True))
        failure = self._engines[0].halted if self._engines else None
        return {
            run_id: (failure if part.todo else None) or (STOPPED if part.unmade else None)
            for run_id, part in parts.items()
        }

    async def run(self) -> None:
        """Make the calls that are left, if any; then note how the server was asked, and what it said."""
        await asyncio.gather(*(engine.run() for engine in self._engines))
        if self._job is None or not self.progress.answered:
            return
        version = self._job.shared.redact(await told_version(self._job.model) or "") or None
        for part in self._parts:
            commonest = {name: count for name, count in part.fingerprints.most_common(8) if name}  # there may be many
            server = Server(concurrency=self._job.concurrency, version=version, fingerprints=commonest)
            folder = part.assignment.run.folder
            create_run(folder, read_manifest(folder).model_copy(update={"server": server}))

    async def _enough(self, look: int) -> int | None:
        """Return how many replicates are enough if this look settles the verdict; the rest then leaves the schedule."""
        (part,) = self._parts
        run, call_look = part.assignment.run, part.assignment.look
        if call_look is None:
            return None
        manifest = note_looks(run.folder, run.manifest, await asyncio.to_thread(call_look, look))
        part.unmade -= manifest.saved_calls
        self.progress.planned -= manifest.saved_calls
        return manifest.settled_after

    def _keep(self, replicate: Replicate) -> Future[Any] | None:
        return self._parts[replicate.call.arm].keep(replace(replicate, call=_without_arm(replicate.call)))


def _batch_job(part: _RunningAssignment, shared: Invocation, mode: BatchMode) -> BatchJob:
    """Return what a run needs to have its calls made in batches."""
    assignment = part.assignment
    run, request_for = assignment.run, assignment.request_for
    cached = cached_prompts(part.schedule, request_for, assignment.kind.caching_of(run.model))
    return BatchJob(
        run=run,
        batches=open_batches(BATCHES[run.model.provider], assignment.kind, run.model, assignment.key, shared.settings),
        schedule=part.schedule,
        calls=[call for call in part.schedule if call in part.todo],
        failed=part.failed,
        request_for=lambda call: replace(request_for(call), cache=prompt_of(call) in cached),
        price=assignment.price,
        mode=mode,
        shared=shared,
    )


def _without_arm(call: Call) -> Call:
    return Call(call.case_id, call.replicate)
