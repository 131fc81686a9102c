"""Run all models of an invocation side by side: every outcome goes to its journal first, then to whoever scores it.

The first Ctrl-C (or SIGTERM) lets calls in flight finish, since they are paid for; the second abandons them.
"""

import asyncio
import gc
import signal
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from filelock import FileLock

from skill_evaluator.errors import ConfigError, RunError
from skill_evaluator.files import try_lock
from skill_evaluator.library.config import Model, Price, Settings
from skill_evaluator.providers import Kinds, Redactor, find_key, key_variables
from skill_evaluator.providers.base import Failure, ProviderKind, Request
from skill_evaluator.runner.engine import Engine, ModelJob, Progress, Stop
from skill_evaluator.runner.journal import MANIFEST, Journal, create_run, outcomes, settle
from skill_evaluator.runner.limits import Budget
from skill_evaluator.runner.prices import price_of, usage_cost
from skill_evaluator.runner.prompting import most_input_tokens
from skill_evaluator.runner.runs import Run
from skill_evaluator.runner.schedule import Call, Replicate, schedule_calls

_ABANDONED = Failure(kind="not_run", reason="interrupted", message="stopped by the user")
Watch = Callable[[Sequence[Progress], Stop], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """One run with all that is needed to make its calls. `on_outcome` gets every outcome once, earlier ones too.

    `is_settled` is asked in a thread, after each number of replicates in `looks`, whether the rest need not be asked.
    """

    run: Run
    kind: ProviderKind
    key: str | None
    price: Price | None
    concurrency: int
    request_for: Callable[[Call], Request]
    most_input_tokens: Callable[[Request], int]
    on_outcome: Callable[[Replicate], None]
    looks: Sequence[int] = ()
    is_settled: Callable[[int], bool] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingLimits:
    """What an invocation may spend in all, counting what a resumed run spent before; None is unlimited."""

    max_cost_usd: float | None = None
    max_calls: int | None = None


def execute(
    assignments: Sequence[Assignment],
    settings: Settings,
    spending: SpendingLimits,
    redact: Redactor,
    watch: Watch,
    meanwhile: Callable[[], None],
) -> Mapping[str, Failure | None]:
    """Make every call that has no answer yet; return by run id why calls were left unmade (None: none were).

    `meanwhile` runs in a thread once the first calls are made; before, it would hold them up. Raise ConfigError if a
    provider cannot be opened (before any call), StorageError if an answer cannot be kept.
    """
    return asyncio.run(_execute(assignments, settings, spending, redact, watch, meanwhile))


async def _execute(
    assignments: Sequence[Assignment],
    settings: Settings,
    spending: SpendingLimits,
    redact: Redactor,
    watch: Watch,
    meanwhile: Callable[[], None],
) -> Mapping[str, Failure | None]:
    budget, stop = Budget(spending.max_cost_usd, spending.max_calls), Stop()
    parts = [_RunningAssignment(assignment, settings, budget, stop, redact) for assignment in assignments]
    for part in parts:
        part.begin()
    gc.freeze()  # the SDKs' hundred thousands of objects live as long as the process: never walk them again
    gc.enable()
    work = asyncio.create_task(_run_all(parts))
    watching = asyncio.create_task(watch([part.progress for part in parts], stop))
    beside = asyncio.create_task(asyncio.to_thread(meanwhile))

    def on_signal() -> None:
        if stop.requested:
            work.cancel()
        stop.event.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError, RuntimeError):  # no such handlers on Windows or off the main thread
            asyncio.get_running_loop().add_signal_handler(number, on_signal)
    try:
        await work
    except asyncio.CancelledError:
        if not stop.requested:
            raise
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        for part in parts:
            part.finish()
    await beside
    return {part.assignment.run.manifest.run_id: part.halted for part in parts}


async def _run_all(parts: "Sequence[_RunningAssignment]") -> None:
    try:
        async with asyncio.TaskGroup() as group:
            for part in parts:
                group.create_task(part.run())
    except* Exception as problems:
        raise problems.exceptions[0] from None


class _RunningAssignment:
    """One assignment under way: its journal, its engine, and what earlier attempts at the run left."""

    def __init__(
        self, assignment: Assignment, settings: Settings, budget: Budget, stop: Stop, redact: Redactor
    ) -> None:
        run = assignment.run
        self.assignment = assignment
        self._held: FileLock | None = None
        if run.folder.exists():
            self._hold()
        schedule = schedule_calls(tuple(run.manifest.cases), run.manifest.asked)
        scheduled = set(schedule)
        earlier = {call: replicate for call, replicate in outcomes(run.folder).items() if call in scheduled}
        self._errors = {call: replicate for call, replicate in earlier.items() if not replicate.answered}
        for replicate in earlier.values():
            if replicate.completion is not None:
                budget.count_earlier(usage_cost(assignment.price, replicate.completion.usage) or 0.0)
                assignment.on_outcome(replicate)
        self._todo = [call for call in schedule if call not in earlier or call in self._errors]
        self.progress = Progress(
            model_id=run.model.id, planned=len(schedule), answered_before=len(schedule) - len(self._todo)
        )
        self._unmade = len(self._todo)
        self._begun = max((call.replicate for call in earlier), default=-1)
        self._journal: Journal | None = None
        self._engine = self._open_engine(settings, budget, stop, redact) if self._todo else None

    @property
    def halted(self) -> Failure | None:
        """Why calls were left unmade."""
        if self._engine is not None and self._engine.halted is not None:
            return self._engine.halted
        return _ABANDONED if self._unmade else None

    def begin(self) -> None:
        """Put the run on disk; only once every provider of the invocation could be opened."""
        if not (self.assignment.run.folder / MANIFEST).exists():
            create_run(self.assignment.run.folder, self.assignment.run.manifest)
        if self._held is None:
            self._hold()
        self._journal = Journal(self.assignment.run.folder)

    async def run(self) -> None:
        """Make the calls that are left, if any."""
        if self._engine is not None:
            await self._engine.run()

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

    def _open_engine(self, settings: Settings, budget: Budget, stop: Stop, redact: Redactor) -> Engine:
        assignment = self.assignment
        model = assignment.run.model
        manifest = assignment.run.manifest
        # a look before replicates that were made already said to go on; a settled run has none
        to_come = [] if manifest.settled_after else [look for look in assignment.looks if look > self._begun]
        job = ModelJob(
            model=model,
            provider=assignment.kind.open(model, assignment.key, settings.timeout_s),
            calls=self._todo,
            request_for=assignment.request_for,
            most_input_tokens=assignment.most_input_tokens,
            settings=settings,
            concurrency=assignment.concurrency,
            price=assignment.price,
            redact=redact,
            looks=to_come,
            is_settled=self._is_settled,
        )
        return Engine(job, budget, stop, self.progress, self._keep)

    async def _is_settled(self, look: int) -> bool:
        """Check whether the replicates so far are enough; what is left then leaves the schedule."""
        ask, run = self.assignment.is_settled, self.assignment.run
        if ask is None or not await asyncio.to_thread(ask, look):
            return False
        saved = settle(run.folder, run.manifest, look).saved_calls
        self._unmade -= saved
        self.progress.planned -= saved
        return True

    def _keep(self, replicate: Replicate) -> None:
        if self._journal is None:
            raise RuntimeError("an outcome before the run was begun")
        self._journal.append(replicate)
        self._errors.pop(replicate.call, None)
        self._unmade -= 1
        self.assignment.on_outcome(replicate)


def with_keys(models: Iterable[Model], kinds: Kinds) -> dict[str, Model]:
    """Return by id the models whose keys are there; warn of each other one, and raise ConfigError when none is left."""
    usable: dict[str, Model] = {}
    for model in {model.id: model for model in models}.values():
        variables = key_variables(model, kinds[model.provider])
        if variables and find_key(model, kinds[model.provider]) is None:
            print(f"warning: skipping {model.id}: {' or '.join(variables)} is not set", file=sys.stderr)
        else:
            usable[model.id] = model
    if not usable:
        raise ConfigError(
            "no model is left to run; set a key named above, or add --model smollm2-135m-instruct (needs no key)"
        )
    return usable


def assignment(
    run: Run,
    kinds: Mapping[str, ProviderKind],
    concurrency: int,
    request_for: Callable[[Call], Request],
    on_outcome: Callable[[Replicate], None],
) -> Assignment:
    """Give a run its key, its price, and as many calls in flight as `concurrency` and its model allow."""
    model, kind = run.model, kinds[run.model.provider]
    return Assignment(
        run=run,
        kind=kind,
        key=find_key(model, kind),
        price=price_of(model, kind),
        concurrency=1 if kind.one_at_a_time else min(concurrency, model.limits.max_concurrency or concurrency),
        request_for=request_for,
        most_input_tokens=most_input_tokens,
        on_outcome=on_outcome,
    )


def redactor(models: Iterable[Model], kinds: Kinds) -> Redactor:
    """Return what strikes out every key that these models' providers may have been given."""
    variables = {name for kind in kinds.values() for name in kind.key_variables}
    return Redactor(variables | {model.api_key_env for model in models if model.api_key_env})


def refuse_amounts(counts: Mapping[str, int | None], max_calls: int | None, max_cost: float | None) -> None:
    """Raise ConfigError for a count (by its flag) below 1, or a limit that is no amount."""
    for flag, count in counts.items():
        if count is not None and count < 1:
            raise ConfigError(f"{flag} must be at least 1, not {count}")
    if max_calls is not None and max_calls < 0:
        raise ConfigError(f"--max-calls must not be negative: {max_calls}")
    if max_cost is not None and not max_cost >= 0:  # not a number compares false
        raise ConfigError(f"--max-cost must be an amount in USD, not {max_cost}")


def refuse_unpriced(models: Sequence[Model], kinds: Kinds) -> None:
    """Raise ConfigError for a model without a price: a cap on the cost could not be kept for it."""
    for model in models:
        if price_of(model, kinds[model.provider]) is None:
            raise ConfigError(
                f"--max-cost cannot be kept: no price is known for '{model.id}'; "
                "give it price: {input, output} in models.yaml, or leave it out with --model"
            )
