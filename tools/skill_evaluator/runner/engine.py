"""Make the scheduled calls of one model: workers under limits, one retry policy, one outcome per call."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Container, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from skill_evaluator.errors import RunError
from skill_evaluator.files import LinesWriter, try_lock
from skill_evaluator.library.config import Model, Price, Settings
from skill_evaluator.providers.base import (
    Completion,
    Failure,
    Provider,
    ProviderError,
    ProviderKind,
    Request,
    call_once,
    within_limits,
)
from skill_evaluator.providers.redaction import Redactor
from skill_evaluator.providers.structured import output_of
from skill_evaluator.records.summaries import Server
from skill_evaluator.runner.journal import (
    ANSWERS,
    MANIFEST,
    Run,
    append_outcome,
    check_same_inputs,
    create_run,
    outcomes,
)
from skill_evaluator.runner.limits import Budget, Gate, Pace, wait_before_retry
from skill_evaluator.runner.prices import budget_cost, call_cost, max_call_cost, price_of
from skill_evaluator.runner.schedule import Call, Replicate, estimate_input_tokens, max_input_tokens, schedule_calls
from skill_evaluator.stats import by_key

if TYPE_CHECKING:
    from filelock import FileLock

Prompt = tuple[int, str]  # arm and case id, whose replicates are all sent the same text


def prompt_of(call: Call) -> Prompt:
    """Return the arm (the index of the run) and the case id of a call, which determine its messages."""
    return call.arm, call.case_id


def cached_prompts(
    calls: Sequence[Call], request_for: Callable[[Call], Request], cache_floor: int | None
) -> frozenset[Prompt]:
    """Return the prompts with several calls and at least `cache_floor` estimated tokens; empty if the floor is None."""
    if cache_floor is None:
        return frozenset()
    calls_by_prompt = by_key((prompt_of(call), call) for call in calls)
    return frozenset(
        prompt
        for prompt, repeated in calls_by_prompt.items()
        if len(repeated) > 1 and estimate_input_tokens(request_for(repeated[0])) >= cache_floor
    )


def call_sequences(calls: Iterable[Call], cached: Collection[Prompt]) -> list[list[Call]]:
    """Group calls into lists that are made in sequence: all calls of a cached prompt, or a single other call."""
    keyed = ((prompt_of(call) if prompt_of(call) in cached else (call.arm, call), call) for call in calls)
    return list(by_key(keyed).values())


@dataclass(slots=True, kw_only=True)
class Progress:
    """The calls, tokens and cost of one model so far."""

    model_id: str
    planned: int
    answered_before: int = 0  # outputs of earlier attempts at the runs
    answered: int = 0
    failed: int = 0
    retried: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0  # None: unknown
    begun: float = field(default_factory=time.monotonic)
    waiting: dict[str, str] = field(default_factory=dict)  # calls pending at the vendor, by run id

    def note(self, replicate: Replicate, cost_usd: float | None) -> None:
        """Count one outcome and its cost. An unknown cost (None) makes the total unknown."""
        self.cost_usd = None if self.cost_usd is None or cost_usd is None else self.cost_usd + cost_usd
        if replicate.completion is None:
            self.failed += 1
            return
        self.answered += 1
        self.input_tokens += replicate.completion.usage.input_tokens or 0
        self.output_tokens += replicate.completion.usage.output_tokens or 0

    @property
    def done(self) -> int:
        """The number of calls with an outcome, including the outputs of earlier attempts."""
        return self.answered_before + self.answered + self.failed

    @property
    def seconds_left(self) -> float | None:
        """The remaining seconds at the present rate. None until a call of this attempt at the run has an outcome."""
        if finished := self.answered + self.failed:
            return (time.monotonic() - self.begun) / finished * (self.planned - self.done)
        return None


# Receives an outcome. If it returns a future, the next call waits for it, which bounds the backlog of scoring.
OnOutcome = Callable[[Replicate], Future[Any] | None]
NO_CALL_LEFT = Failure(kind="over_budget", reason="max_calls", message="--max-calls is used up")
STOPPED = Failure(kind="not_run", reason="interrupted", message="stopped by the user")
_MAX_CONNECTIONS = 3  # failed attempts before any success, until the server counts as unreachable
_MAX_FIRST_REJECTIONS = 5  # bad requests before any success; then the settings are wrong, not the cases


async def in_parallel(tasks: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run coroutines concurrently. The first error cancels the others and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            for task in tasks:
                group.create_task(task)
    except* Exception as problems:
        raise problems.exceptions[0] from None


Stop = asyncio.Event  # set to start no further calls (Ctrl-C); calls in flight are awaited


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """The objects that all calls of a command share."""

    settings: Settings
    budget: Budget
    redact: Redactor
    stop: Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class CallHandlers:
    """The functions that build the request of a call and receive its outcome."""

    request_for: Callable[[Run, Call], Request]
    # receives every outcome once, those of earlier attempts at a run included
    on_outcome: Callable[[Run, Replicate], Future[Any] | None] = lambda _run, _replicate: None
    recorded: Container[str] = ()  # ids of the runs whose model has a record with the same settings


class RunningRun:
    """A run in progress: its journal, its remaining calls, and the outcomes of earlier attempts."""

    def __init__(self, run: Run, handlers: CallHandlers, kind: ProviderKind) -> None:
        self.run = run
        self.handlers = handlers
        self.kind = kind
        self.price = price_of(run.model, kind)
        self.schedule = schedule_calls(tuple(run.manifest.cases), run.manifest.replicates)
        self.fingerprints: Counter[str] = Counter()
        self.done: frozenset[Call] = frozenset()
        self.unmade = len(self.schedule)
        self.failed: dict[Call, int] = {}
        self._errors: dict[Call, Replicate] = {}
        self._lock: FileLock | None = None
        self._journal: LinesWriter | None = None

    def resume(self, budget: Budget) -> None:
        """Read the outcomes of earlier attempts, count their cost and pass the outputs to `on_outcome`.

        Raise RunError if the inputs differ or if another process executes the run.
        """
        run = self.run
        if run.folder.exists():
            self._lock_run()
            check_same_inputs(run.folder, run.manifest)
        journal = outcomes(run.folder)
        earlier = [call for call in self.schedule if call in journal]
        for call in earlier:
            replicate = replace(journal[call], call=call)  # shares the schedule's object to save memory
            if replicate.completion is None:
                self._errors[call] = replicate
            else:
                cost = budget_cost(run.model, self.price, replicate.completion)
                if cost is None:  # unknown, so the worst case counts
                    batch = run.manifest.transport == "batch"
                    cost = WorstCase.of(self.request_for(call), self.price, batch=batch).usd
                budget.count_earlier(cost)
                self.fingerprints[replicate.completion.fingerprint or ""] += 1
                self.handlers.on_outcome(run, replicate)
        self.done = frozenset(call for call in earlier if call not in self._errors)
        self.unmade = len(self.schedule) - len(self.done)
        self.failed = {call: replicate.attempts for call, replicate in self._errors.items()}

    def request_for(self, call: Call) -> Request:
        """Build the request of a call. Add the maximum tokens of its files. Drop the tool if the provider has none."""
        request, model = self.handlers.request_for(self.run, call), self.run.model
        file_tokens = sum(self.kind.file_tokens(model, file).upper_bound for file in request.files)
        by_tool_call = request.by_tool_call and self.kind.tools
        return replace(request, file_tokens=file_tokens, by_tool_call=by_tool_call)

    def begin(self, server: Server | None) -> None:
        """Create the run folder if it is new, lock it and open the journal. Call this after all providers are open.

        Raise RunError if another process executes the run, and StorageError if the folder cannot be written.
        """
        if not (self.run.folder / MANIFEST).exists():
            create_run(self.run.folder, self.run.manifest.model_copy(update={"server": server}))
        if self._lock is None:
            self._lock_run()
        self._journal = LinesWriter(self.run.folder / ANSWERS)

    def save_outcome(self, replicate: Replicate) -> Future[Any] | None:
        """Append an outcome to the journal, then return the result of `on_outcome`. Raise StorageError on failure."""
        if self._journal is None:
            raise RuntimeError("outcome of a run that was not started")
        append_outcome(self._journal, replicate)
        self._errors.pop(replicate.call, None)
        self.unmade -= 1
        if replicate.completion is not None:
            self.fingerprints[replicate.completion.fingerprint or ""] += 1
        return self.handlers.on_outcome(self.run, replicate)

    def finish(self) -> None:
        """Close the journal and release the lock. Pass earlier errors of unrepeated calls to `on_outcome`."""
        if self._journal is not None:
            self._journal.close()
        self.release()
        for replicate in self._errors.values():
            self.handlers.on_outcome(self.run, replicate)

    def release(self) -> None:
        """Release the lock, so that other processes can execute the run."""
        if self._lock is not None:
            self._lock.release()

    def _lock_run(self) -> None:
        self._lock = try_lock(self.run.folder / ".lock")
        if self._lock is None:
            raise RunError(f"{self.run.folder} is being executed by another process")


@dataclass(frozen=True, slots=True)
class WorstCase:
    """The maximum of one attempt in tokens and in USD, which the budget reserves. `usd` is 0 if there is no price."""

    tokens: int
    usd: float

    @classmethod
    def of(cls, request: Request, price: Price | None, *, batch: bool = False) -> "WorstCase":
        """Return the maximum of one attempt at a request, at the batch price if `batch`."""
        input_tokens = max_input_tokens(request)
        usd = max_call_cost(price, input_tokens, request.max_output_tokens, batch=batch)
        return cls(input_tokens + request.max_output_tokens, usd or 0.0)

    def refusal(self, request: Request, left_usd: float) -> Failure:
        """Return the failure of a call that can cost more than the rest of the budget, `left_usd`."""
        message = (
            f"a call of case '{request.case_id}' can cost ${self.usd:.4f} "
            f"({self.tokens - request.max_output_tokens:,} tokens in, {request.max_output_tokens:,} out by "
            f"max_output_tokens), and ${left_usd:.4f} is left; raise the cap to continue"
        )
        return Failure(kind="over_budget", reason="max_cost", message=message)


@dataclass(kw_only=True)
class Engine:
    """The calls of one model. After `run`, `halted` is the reason why calls were not made, or None if all were."""

    model: Model
    provider: Provider
    calls: Sequence[Call]
    request_for: Callable[[Call], Request]
    on_outcome: OnOutcome
    price: Price | None
    progress: Progress
    shared: Invocation
    in_flight: tuple[int, int]  # initial and maximum number of concurrent calls
    cache_floor: int | None = None  # tokens of the shortest prompt that the vendor caches; None: no cache
    is_known: bool = False  # whether the model has answered before, so that its id is right

    def __post_init__(self) -> None:
        self._budget, self._stop, self._settings = self.shared.budget, self.shared.stop, self.shared.settings
        first, maximum = self.in_flight
        self.gate = Gate(maximum, self._pause, first=first, fixed=self.model.server is not None)
        self._pace = Pace(self.model.limits, self._pause)
        self._cached = cached_prompts(self.calls, self.request_for, self.cache_floor)
        self._worst_cases: dict[Prompt, WorstCase] = {}
        self._rejected = 0
        self._succeeded = False
        self._hopeless = asyncio.Event()
        self.halted: Failure | None = None

    async def run(self) -> None:
        """Make every call, or stop early and set `halted` to the reason."""
        sequences = call_sequences(self.calls, self._cached)
        queue = iter(sequences)
        try:
            await in_parallel(self._work(queue) for _ in range(min(self.in_flight[1], len(sequences))))
        finally:
            with suppress(Exception):  # all outputs are written; unreleased resources end with the process
                await self.provider.close()

    async def _work(self, sequences: Iterator[Sequence[Call]]) -> None:
        for call in chain.from_iterable(sequences):
            if not self._must_end() and self.halted is None and not self._budget.take_call():
                self.halted = NO_CALL_LEFT
            if self.halted is not None:
                return
            replicate = await self._make_call(call)
            if replicate is not None:
                self.progress.note(replicate, call_cost(self.model, self.price, replicate))
                scoring = self.on_outcome(replicate)
                if scoring is not None:
                    await asyncio.wait([asyncio.wrap_future(scoring)])

    def _must_end(self) -> bool:
        if self._stop.is_set():
            self.halted = self.halted or STOPPED
        return self._stop.is_set() or self._hopeless.is_set()

    async def _make_call(self, call: Call) -> Replicate | None:
        """Make one call with its retries and return its outcome. Return None if the calls of the model must end."""
        prompt = prompt_of(call)
        request = replace(self.request_for(call), cache=prompt in self._cached)
        if prompt not in self._worst_cases:
            self._worst_cases[prompt] = WorstCase.of(request, self.price)
        worst_case = self._worst_cases[prompt]
        retry = self._settings.retry
        for attempt in range(1, retry.attempts + 1):
            try:
                answer = await self._attempt(request, worst_case)
            except ProviderError as problem:
                if problem.reason == "unknown_model" and (self._succeeded or self.is_known):
                    problem.reason = "model_retired"
                wait = wait_before_retry(retry, attempt, problem.retry_after_s)
                if problem.throttled:
                    self.gate.throttled(wait)
                is_unreachable = problem.reason == "unreachable" and not self._succeeded and attempt >= _MAX_CONNECTIONS
                if problem.retryable and attempt < retry.attempts and not is_unreachable and not self._must_end():
                    self.progress.retried += 1
                    await self._pause(wait)
                    continue
                self._halt_if_hopeless(problem, is_unreachable=is_unreachable)
                return Replicate(call=call, error=problem.failure(self.shared.redact), attempts=attempt)
            if answer is None:
                return None
            completion, latency_s = answer
            self.gate.succeeded(latency_s)
            self._succeeded = True
            completion = completion.redacted(self.shared.redact)
            return Replicate(call=call, completion=completion, latency_s=latency_s, attempts=attempt)
        raise AssertionError("unreachable: the last attempt returns")

    async def _attempt(self, request: Request, worst_case: WorstCase) -> tuple[Completion, float] | None:
        """Make one attempt under all limits. Return the output and its latency in s, or None if the calls must end."""
        await self.gate.enter()
        try:
            if self._must_end():
                return None
            if not await self._budget.reserve(worst_case.usd):
                self.halted = worst_case.refusal(request, self._budget.left_usd)
                return None
            spent = 0.0
            try:
                await self._pace.wait(worst_case.tokens)
                if self._must_end():
                    return None
                spent = worst_case.usd  # counts unless the cost becomes known
                begun = time.perf_counter()
                completion = await call_once(self.provider, request, self._settings)
                completion = within_limits(output_of(completion, request, self.model), self._settings)
                billed = budget_cost(self.model, self.price, completion)
                spent = worst_case.usd if billed is None else billed
                taken_s = completion.latency_s
                latency_s = time.perf_counter() - begun if taken_s is None else taken_s
                return completion, round(latency_s, 4)  # the precision of the journal
            except ProviderError as problem:
                spent = worst_case.usd if problem.perhaps_billed else 0.0
                raise
            finally:
                self._budget.settle(worst_case.usd, spent)
        finally:
            self.gate.leave()

    async def _pause(self, seconds: float) -> bool:
        """Sleep. Return whether a stop or a halt of the model ended the sleep early."""
        ends = [asyncio.ensure_future(event.wait()) for event in (self._stop, self._hopeless)]
        try:
            woken, _ = await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
        return bool(woken)

    def _halt_if_hopeless(self, problem: ProviderError, *, is_unreachable: bool) -> None:
        self._rejected += problem.rejected
        if problem.fatal or is_unreachable or (self._rejected >= _MAX_FIRST_REJECTIONS and not self._succeeded):
            self.halted = self.halted or problem.failure(self.shared.redact)
            self._hopeless.set()
