"""`Session`: the one way to ask models, side by side, under one budget.

Every outcome goes to its run's journal first, then to whoever scores it. Several runs of one model take turns, call by
call, in one queue under that model's limits. The first Ctrl-C (or SIGTERM) lets calls in flight finish, since they are
paid for; the second abandons them, as the first does where all are made in this process.
"""

import asyncio
import shlex
import signal
import sys
from collections import Counter
from collections.abc import Callable, Container, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from skill_evaluator.errors import ConfigError, RunError
from skill_evaluator.files import try_lock
from skill_evaluator.library.config import Limits, Model
from skill_evaluator.providers import BATCHES, Configuration, find_key, lack_of
from skill_evaluator.providers.base import Failure, ProviderKind, Request, is_in_process, opened
from skill_evaluator.providers.batch import open_batches
from skill_evaluator.providers.openai import told_version
from skill_evaluator.providers.redaction import redactor_of
from skill_evaluator.records.summaries import Server
from skill_evaluator.runner.batch import BatchEngine, BatchJob
from skill_evaluator.runner.engine import (
    STOPPED,
    Budget,
    Engine,
    Gate,
    Invocation,
    ModelJob,
    Most,
    Progress,
    Stop,
    cached_prompts,
    limits_of,
    prompt_of,
)
from skill_evaluator.runner.journal import (
    MANIFEST,
    Journal,
    Run,
    check_same_inputs,
    create_run,
    outcomes,
    read_manifest,
)
from skill_evaluator.runner.prices import budget_cost, price_of
from skill_evaluator.runner.schedule import Call, Replicate, Shard, calls_in_flight, interleaved, schedule_calls

if TYPE_CHECKING:
    from filelock import FileLock

Watch = Callable[[Sequence[Progress], Stop], Coroutine[Any, Any, None]]
T = TypeVar("T")


def with_keys(models: Iterable[Model], configuration: Configuration) -> dict[str, Model]:
    """Map ids to the models that have keys; warn of the others, and raise ConfigError if none is left."""
    usable: dict[str, Model] = {}
    for model in {model.id: model for model in models}.values():
        lack = lack_of(model, configuration.kinds[model.provider], configuration.keys)
        if lack is None:
            usable[model.id] = model
        else:
            print(f"warning: skipping {model.id}: {lack}", file=sys.stderr)
    if not usable:
        raise ConfigError(
            "no model is left to run; set what is named above, or choose with --model a model that needs no key"
        )
    return usable


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """What the calls of runs ask, and who takes their outcomes.

    `on_outcome` gets every outcome once, those of earlier attempts at a run too; without it the journal alone has them.
    `recorded`: ids of runs whose model is on record with the same settings.

    """

    request_for: Callable[[Run, Call], Request]
    on_outcome: Callable[[Run, Replicate], Future[Any] | None] = lambda _run, _replicate: None
    recorded: Container[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What became of runs: by id why calls were left unmade (None: none were)."""

    halted: Mapping[str, Failure | None]

    def why_stopped(self, run: Run) -> str | None:
        """Return the reason why some calls of a run were not made, or None if all were."""
        failure = self.halted[run.manifest.run_id]
        return None if failure is None else f"{failure.reason}: {failure.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What all asking of one command shares.

    `concurrency` is of each model; None: as settings.yaml says. `limits` are a planned job's parts of the limits of its
    models. `watch` shows how the calls go.
    """

    configuration: Configuration
    watch: Watch
    budget: Budget = field(default_factory=Budget)
    concurrency: int | None = None
    limits: Mapping[str, Limits] = field(default_factory=dict)

    def ask(self, runs: Sequence[Run], questions: Questions) -> Asked:
        """Make every call of the runs that has no answer yet.

        The budget counts what resumed runs spent before; what it has left may go to further calls. Raise ConfigError if
        a provider cannot be opened (before any call), StorageError if an answer cannot be kept.
        """
        return Asked(halted=_run_to_its_end(_ask(self, runs, questions)))


async def no_progress(_: Sequence[Progress], stop: Stop) -> None:
    """Wait for the end of the calls and show nothing."""
    await stop.event.wait()


def print_how_to_go_on(words: Sequence[str]) -> None:
    """Print on stderr the command that makes the missing calls, if there is one."""
    if words:
        print(f"to continue: {shlex.join(words)}", file=sys.stderr)


def _run_to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine, in a thread of its own where this one runs a loop already, as a notebook's does."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, work).result()


async def _ask(session: Session, runs: Sequence[Run], questions: Questions) -> Mapping[str, Failure | None]:
    session.budget.begin()
    configuration = session.configuration
    shared = Invocation(
        settings=configuration.settings,
        budget=session.budget,
        redact=redactor_of(configuration.keys, configuration.models),
        stop=Stop(),
    )
    parts = [_RunningRun(run, questions, session) for run in runs]
    try:
        models = _begin(parts, session, shared)
    except BaseException:
        for part in parts:
            part.release()  # a long-lived process may run them again
        raise
    work = asyncio.create_task(_run_all(models))
    watching = asyncio.create_task(session.watch([model.progress for model in models], shared.stop))

    leaves = False

    def on_signal() -> None:
        nonlocal leaves
        leaves = shared.stop.requested or all(model.costs_nothing for model in models)
        if leaves:
            work.cancel()
        else:
            shared.stop.event.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError, RuntimeError):  # no such handlers on Windows or off the main thread
            asyncio.get_running_loop().add_signal_handler(number, on_signal)
    try:
        await work
    except asyncio.CancelledError:
        if not leaves:
            raise
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        for part in parts:
            part.finish()
    return {run_id: failure for model in models for run_id, failure in model.halted.items()}


def _begin(parts: "Sequence[_RunningRun]", session: Session, shared: Invocation) -> "list[_RunningModel]":
    """Read what runs have so far, open the provider of each model, and write the folders of new runs."""
    by_model: dict[str, list[_RunningRun]] = {}
    for part in parts:
        part.resume(session.budget)
        by_model.setdefault(part.run.model.id, []).append(part)
    shards = max(Shard.parse(part.run.manifest.shard).count if part.run.manifest.shard else 1 for part in parts)
    limits = limits_of([own[0].run.model for own in by_model.values()], shared.settings, shards, session.limits)
    models = [_RunningModel(own, limits[name], session, shared) for name, own in by_model.items()]
    for model in models:
        model.begin()
    return models


async def _run_all(models: "Sequence[_RunningModel]") -> None:
    try:
        async with asyncio.TaskGroup() as group:
            for model in models:
                group.create_task(model.run())
    except* Exception as problems:
        raise problems.exceptions[0] from None


class _RunningRun:
    """A run under way: its journal, the calls that are left, and what earlier attempts at it left."""

    def __init__(self, run: Run, questions: Questions, session: Session) -> None:
        self.run = run
        self.questions = questions
        self._kind = session.configuration.kinds[run.model.provider]
        self.price = price_of(run.model, self._kind)
        self.schedule = schedule_calls(tuple(run.manifest.cases), run.manifest.replicates)
        self.fingerprints: Counter[str] = Counter()
        self.done: frozenset[Call] = frozenset()
        self.unmade = len(self.schedule)
        self.failed: dict[Call, int] = {}
        self._errors: dict[Call, Replicate] = {}
        self._held: FileLock | None = None
        self._journal: Journal | None = None

    def resume(self, budget: Budget) -> None:
        """Take the outcomes of earlier attempts, if there were any; raise RunError if another process executes it."""
        run = self.run
        if run.folder.exists():
            self._hold()
            check_same_inputs(run.folder, run.manifest)
        journal = outcomes(run.folder)
        earlier = [call for call in self.schedule if call in journal]
        for call in earlier:
            replicate = replace(journal[call], call=call)  # the schedule's own, so that no other is held
            if replicate.completion is None:
                self._errors[call] = replicate
            else:
                cost = budget_cost(run.model, self.price, replicate.completion)
                if cost is None:  # nobody told
                    batch = run.manifest.transport == "batch"
                    cost = Most.of(self.request_for(call), self.price, batch=batch).usd
                budget.count_earlier(cost)
                self.fingerprints[replicate.completion.fingerprint or ""] += 1
                self.questions.on_outcome(run, replicate)
        self.done = frozenset(call for call in earlier if call not in self._errors)
        self.unmade = len(self.schedule) - len(self.done)
        self.failed = {call: replicate.attempts for call, replicate in self._errors.items()}

    def request_for(self, call: Call) -> Request:
        """Return the request of a call, which says what its files take at most."""
        request, model = self.questions.request_for(self.run, call), self.run.model
        most = sum(self._kind.file_tokens(model, file).most for file in request.files)
        return replace(request, file_tokens=most) if most else request

    def begin(self, server: Server | None) -> None:
        """Put the run on disk; only once every provider of the invocation could be opened."""
        if not (self.run.folder / MANIFEST).exists():
            create_run(self.run.folder, self.run.manifest.model_copy(update={"server": server}))
        if self._held is None:
            self._hold()
        self._journal = Journal(self.run.folder)

    def keep(self, replicate: Replicate) -> Future[Any] | None:
        """Put an outcome into the journal, then hand it on."""
        if self._journal is None:
            raise RuntimeError("an outcome before the run was begun")
        self._journal.append(replicate)
        self._errors.pop(replicate.call, None)
        self.unmade -= 1
        if replicate.completion is not None:
            self.fingerprints[replicate.completion.fingerprint or ""] += 1
        return self.questions.on_outcome(self.run, replicate)

    def finish(self) -> None:
        """Close the journal; errors of earlier attempts stand for calls that were not made again."""
        if self._journal is not None:
            self._journal.close()
        self.release()
        for replicate in self._errors.values():
            self.questions.on_outcome(self.run, replicate)

    def release(self) -> None:
        """Let other processes execute the run."""
        if self._held is not None:
            self._held.release()

    def _hold(self) -> None:
        """Keep other processes from making the same calls; raise RunError when one is at it."""
        self._held = try_lock(self.run.folder / ".lock")
        if self._held is None:
            raise RunError(f"{self.run.folder} is being executed by another process")


class _RunningModel:
    """The runs of one model under way: their calls alternate in one engine, so that all of them share its limits."""

    def __init__(self, parts: Sequence[_RunningRun], limits: Limits, session: Session, shared: Invocation) -> None:
        self._parts = parts
        scheduled = interleaved([part.schedule for part in parts]) if parts[1:] else parts[0].schedule
        calls = [call for call in scheduled if _without_arm(call) not in parts[call.arm].done]
        planned = sum(len(part.schedule) for part in parts)
        first, model = parts[0], parts[0].run.model
        kind = session.configuration.kinds[model.provider]
        key = find_key(model, kind, session.configuration.keys)
        self.progress = Progress(model_id=model.id, planned=planned, answered_before=planned - len(calls))
        self._engines: list[Engine] | list[BatchEngine] = []
        self._gate: Gate | None = None
        self._job: ModelJob | None = None
        self._is_batched = first.run.manifest.transport == "batch"
        if self._is_batched:
            jobs = [(part, _batch_job(part, kind, key, shared)) for part in parts]
            self._engines = [BatchEngine(job, self.progress, part.keep) for part, job in jobs]
            return
        if not calls:
            return
        begins, most = calls_in_flight(model, kind, session.concurrency or shared.settings.concurrency)
        most = min(most, limits.max_concurrency or most)
        self._job = job = ModelJob(
            model=model.model_copy(update={"limits": limits}),
            provider=opened(kind, model, key, shared.settings),
            calls=calls,
            request_for=lambda call: parts[call.arm].request_for(_without_arm(call)),
            concurrency=most,
            first_in_flight=min(begins, most),
            price=first.price,
            shared=shared,
            cache_floor=kind.cache_floor_of(model),
            answered_before=first.run.manifest.run_id in first.questions.recorded,
        )
        engine = Engine(job, self.progress, self._keep)
        self._engines, self._gate = [engine], engine.gate

    @property
    def halted(self) -> Mapping[str, Failure | None]:
        """Why calls were left unmade, by run id; None where none were."""
        parts = {part.run.manifest.run_id: part for part in self._parts}
        if self._is_batched:  # an engine a run
            return dict(zip(parts, (engine.halted for engine in self._engines), strict=True))
        failure = self._engines[0].halted if self._engines else None
        return {
            run_id: (failure if len(part.done) < len(part.schedule) else None) or (STOPPED if part.unmade else None)
            for run_id, part in parts.items()
        }

    @property
    def costs_nothing(self) -> bool:
        """Whether a call in flight may be given up at once: it is made in this process."""
        return not self._is_batched and (self._job is None or is_in_process(self._job.provider))

    def begin(self) -> None:
        """Put the runs on disk with what is known before a call, for a kill may come after the last one."""
        server = Server(concurrency=self._job.concurrency) if self._job else None
        for part in self._parts:
            part.begin(server)

    async def run(self) -> None:
        """Make the remaining calls, then write the server's version and concurrency to the manifest."""
        await asyncio.gather(*(engine.run() for engine in self._engines))
        if self._job is None or not self.progress.answered:
            return
        version = self._job.shared.redact(await told_version(self._job.model) or "") or None
        in_flight = self._gate and self._gate.used
        renamed = getattr(self._job.provider, "renamed", {})
        for part in self._parts:
            commonest = {name: count for name, count in part.fingerprints.most_common(8) if name}  # there may be many
            server = Server(concurrency=self._job.concurrency, version=version, fingerprints=commonest, renamed=renamed)
            folder = part.run.folder
            create_run(folder, read_manifest(folder).model_copy(update={"server": server, "in_flight": in_flight}))

    def _keep(self, replicate: Replicate) -> Future[Any] | None:
        part, call = self._parts[replicate.call.arm], _without_arm(replicate.call)
        return part.keep(replicate if call is replicate.call else replace(replicate, call=call))


def _batch_job(part: _RunningRun, kind: ProviderKind, key: str | None, shared: Invocation) -> BatchJob:
    """Return the batch calls of a run."""
    model = part.run.model
    cached = cached_prompts(part.schedule, part.request_for, kind.cache_floor_of(model))
    return BatchJob(
        run=part.run,
        batches=open_batches(BATCHES[model.provider], kind, model, key, shared.settings),
        schedule=part.schedule,
        calls=[call for call in part.schedule if call not in part.done],
        failed=part.failed,
        request_for=lambda call: replace(part.request_for(call), cache=prompt_of(call) in cached),
        price=part.price,
        shared=shared,
    )


def _without_arm(call: Call) -> Call:
    return Call(call.case_id, call.replicate) if call.arm else call
