"""Make the scheduled calls of one model: workers under limits, one retry policy, one outcome per call.

`Gate` and `Pace` limit the calls of one model, `Budget` those of all models together.
"""

import asyncio
import math
import random
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from statistics import fmean
from types import MappingProxyType
from typing import Any

from skill_evaluator.library.config import Limits, Model, Price, Retry, Settings
from skill_evaluator.providers.base import (
    Completion,
    Failure,
    Provider,
    ProviderError,
    Request,
    call_once,
    within_limits,
)
from skill_evaluator.providers.redaction import Redactor
from skill_evaluator.providers.structured import output_of
from skill_evaluator.records.summaries import InFlight
from skill_evaluator.runner.prices import budget_cost, call_cost, max_call_cost
from skill_evaluator.runner.schedule import Call, Replicate, estimate_input_tokens, limits_under, max_input_tokens
from skill_evaluator.stats import by_key

Sleep = Callable[[float], Awaitable[object]]  # returns true if the sleeper was woken early
_MAX_LATENCY_RATIO = 1.6  # twice as many calls in flight then give at least 1/4 more outputs per second
_ROUNDS_BEFORE_GROWTH = 8  # rounds after a setback
_CUT_INTERVAL_S = 1.0  # seconds; complaints within one round trip count as one


def limits_of(
    models: Sequence[Model], settings: Settings, shards: int = 1, planned: Mapping[str, Limits] = MappingProxyType({})
) -> dict[str, Limits]:
    """Return the limits of models that are called concurrently, by model id: their own, under the provider's ceiling.

    `planned` has the shares of a planned job by model id. A model without a planned share shares with `shards` jobs.
    """
    of_provider = Counter(model.provider for model in models)
    limits = {}
    for model in models:
        limit = limits_under(model.limits, settings.ceilings.get(model.provider), of_provider[model.provider])
        share, sharers = (planned[model.id], 1) if model.id in planned else (limit, shards)
        limits[model.id] = limits_under(limit, share, sharers)
    return limits


class Gate:
    """The limit of calls in flight: halved if the API is overloaded, raised by one per full round of successes.

    Additive increase, multiplicative decrease: Chiu and Jain 1989, doi:10.1016/0169-7552(89)90019-6. A limit that
    begins at `first` doubles while latency hardly grows. A `fixed` limit never changes.
    """

    def __init__(
        self, max_limit: int, sleep: Sleep = asyncio.sleep, *, first: int | None = None, fixed: bool = False
    ) -> None:
        self._sleep = sleep
        self._max_limit = max_limit
        self._limit = float(first or max_limit)
        self._grows = self._limit < max_limit
        self._fixed = fixed
        self._active = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._closed_until = 0.0
        self._last_cut = -_CUT_INTERVAL_S
        self._taken_s: list[float] = []  # latencies since the limit changed
        self._before_s: float | None = None  # mean latency at half the limit
        self._rounds_left = 0  # rounds until the next attempt to grow
        self._limits_seen = [self.limit, self.limit]
        self._seconds = 0.0  # total time of all calls in flight
        self._begun = self._at = time.monotonic()

    @property
    def limit(self) -> int:
        """The number of concurrent calls allowed now."""
        return int(self._limit)

    @property
    def used(self) -> InFlight:
        """The lowest and the highest limit, and the mean number of calls in flight."""
        lowest, highest = self._limits_seen
        return InFlight(least=lowest, mean=round(self._seconds / max(self._at - self._begun, 1e-9), 1), most=highest)

    async def enter(self) -> None:
        """Wait for a free place, and for the end of a pause that the API demanded."""
        while self._active >= int(self._limit):
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        self._count(1)
        while (pause := self._closed_until - time.monotonic()) > 0:
            if await self._sleep(pause):
                return

    def leave(self) -> None:
        """Release the place."""
        self._count(-1)
        self._wake()

    def succeeded(self, latency_s: float = 0.0) -> None:
        """Raise the limit slightly after a successful call, or double it per round while latency does not grow."""
        if self._grows:
            self._taken_s.append(latency_s)
            if len(self._taken_s) >= 2 * self.limit:  # the first half started under the lower limit
                self._end_round(fmean(self._taken_s[self.limit :]))
        elif self._limit < self._max_limit:
            self._change(min(float(self._max_limit), self._limit + 1 / self._limit))

    def throttled(self, pause_s: float) -> None:
        """Halve the limit after a complaint of the API, and start no call before the pause is over."""
        now = time.monotonic()
        self._closed_until = max(self._closed_until, now + pause_s)
        if now - self._last_cut >= _CUT_INTERVAL_S and not self._fixed:
            self._last_cut, self._grows = now, False
            self._change(max(1.0, self._limit / 2))

    def _end_round(self, taken_s: float) -> None:
        if self._rounds_left:
            self._rounds_left -= 1
            self._taken_s = []
        elif self._before_s is not None and taken_s > _MAX_LATENCY_RATIO * self._before_s:  # calls queue at the server
            self._before_s, self._rounds_left = None, _ROUNDS_BEFORE_GROWTH
            self._change(self._limit / 2)
        else:
            self._before_s = taken_s
            self._change(min(float(self._max_limit), self._limit * 2))
            self._grows = self._limit < self._max_limit

    def _change(self, limit: float) -> None:
        self._limit, self._taken_s = limit, []
        lowest, highest = self._limits_seen
        self._limits_seen = [min(lowest, self.limit), max(highest, self.limit)]
        self._wake()

    def _count(self, change: int) -> None:
        now = time.monotonic()
        self._begun = self._begun if self._seconds or self._active else now
        self._seconds += self._active * (now - self._at) if self._active else 0.0
        self._at = now
        self._active += change

    def _wake(self) -> None:
        free = int(self._limit) - self._active
        while free > 0 and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1


class Bucket:
    """A token bucket of `per_minute` units, requests or tokens, with even refill."""

    def __init__(self, per_minute: int, sleep: Sleep = asyncio.sleep) -> None:
        self._sleep = sleep
        self._rate = per_minute / 60.0
        self._capacity = max(1.0, self._rate)
        self._level = self._capacity
        self._at = time.monotonic()

    async def take(self, units: float) -> None:
        """Wait until the units are available. A request larger than the bucket delays the requests after it."""
        now = time.monotonic()
        self._level = min(self._capacity, self._level + (now - self._at) * self._rate) - units
        self._at = now
        if self._level < 0:
            await self._sleep(-self._level / self._rate)


class Pace:
    """The rate limits of one model: requests and tokens per minute."""

    def __init__(self, limits: Limits, sleep: Sleep = asyncio.sleep) -> None:
        self._requests = Bucket(limits.requests_per_minute, sleep) if limits.requests_per_minute else None
        self._tokens = Bucket(limits.tokens_per_minute, sleep) if limits.tokens_per_minute else None

    async def wait(self, tokens: int) -> None:
        """Wait until a request with this number of tokens may be sent."""
        for bucket, units in ((self._requests, 1), (self._tokens, tokens)):
            if bucket is not None:
                await bucket.take(units)


def wait_before_retry(retry: Retry, attempt: int, retry_after_s: float | None) -> float:
    """Return the seconds before attempt `attempt + 1`: the server's retry-after (capped), else jittered back-off.

    Equal jitter, https://aws.amazon.com/builders-library/timeouts-retries-and-backoff-with-jitter/.
    """
    if retry_after_s is not None:
        return min(retry_after_s, retry.max_retry_after_s)
    wait: float = min(retry.max_wait_s, retry.first_wait_s * 2 ** (attempt - 1))
    return wait * random.uniform(0.5, 1.0)  # noqa: S311 (spreads load; no secret)


class Budget:
    """The budget of all calls together, in calls and USD. A limit of None is unlimited.

    An attempt starts only if its maximum cost fits beside the spent and reserved amounts. An invalid cost (negative,
    infinite, NaN) counts as the maximum cost. The cap is exceeded only if a server bills more than the maximum.
    """

    def __init__(self, max_cost_usd: float | None = None, max_calls: int | None = None) -> None:
        self._max_cost = max_cost_usd
        self._calls_left = max_calls
        self._spent = 0.0
        self._reserved = 0.0
        self.begin()

    def begin(self) -> None:
        """Bind the budget to the running event loop; a budget may serve several loops in sequence."""
        self._settled = asyncio.Event()

    def count_earlier(self, cost_usd: float) -> None:
        """Count the cost of a resumed run's earlier calls in USD, since the cap applies to the whole run."""
        self._spent += cost_usd

    def take_call(self) -> bool:
        """Count one call against the limit of calls. Return False if no call is left."""
        if self._calls_left is None:
            return True
        self._calls_left = max(-1, self._calls_left - 1)
        return self._calls_left >= 0

    @property
    def left_usd(self) -> float:
        """The amount in USD that is neither spent nor reserved; infinite without a cap."""
        return math.inf if self._max_cost is None else max(0.0, self._max_cost - self._spent - self._reserved)

    async def reserve(self, upper_bound_usd: float) -> bool:
        """Reserve the maximum cost of an attempt in USD. Return False if it does not fit.

        If it does not fit yet, wait for calls in flight, which may cost less than their reservation.
        """
        while not self.reserve_now(upper_bound_usd):
            if self._reserved == 0.0:
                return False
            self._settled.clear()
            await self._settled.wait()
        return True

    def reserve_now(self, upper_bound_usd: float, *, begun: bool = False) -> bool:
        """Reserve the maximum cost of an attempt if it fits or has `begun`. Return whether it was reserved."""
        if self._max_cost is None:
            return True
        fits = self._spent + self._reserved + upper_bound_usd <= self._max_cost
        if fits or begun:
            self._reserved += upper_bound_usd
        return fits or begun

    def settle(self, upper_bound_usd: float, cost_usd: float) -> None:
        """Replace a reservation by the attempt's cost, or by its upper bound if the cost is invalid."""
        if self._max_cost is None:
            return
        self._reserved = max(0.0, self._reserved - upper_bound_usd)
        if self._reserved < 1e-12:  # a rounding error would make `reserve` wait for ever
            self._reserved = 0.0
        self._spent += cost_usd if 0 <= cost_usd < math.inf else upper_bound_usd
        self._settled.set()


Prompt = tuple[int, str]
"""Arm and case: all replicates are sent the same text."""


def prompt_of(call: Call) -> Prompt:
    """Return the prompt of a call."""
    return call.arm, call.case_id


def cached_prompts(
    calls: Sequence[Call], request_for: Callable[[Call], Request], cache_floor: int | None
) -> frozenset[Prompt]:
    """Return the prompts with at least two calls that are long enough for the vendor's cache, by an estimate."""
    if cache_floor is None:
        return frozenset()
    calls_by_prompt = by_key((prompt_of(call), call) for call in calls)
    return frozenset(
        prompt
        for prompt, repeated in calls_by_prompt.items()
        if len(repeated) > 1 and estimate_input_tokens(request_for(repeated[0])) >= cache_floor
    )


def call_sequences(calls: Iterable[Call], cached: Collection[Prompt]) -> list[list[Call]]:
    """Group the calls of each cached prompt at its first call. Every other call is a group of its own."""
    keyed = ((prompt_of(call) if prompt_of(call) in cached else call, call) for call in calls)
    return list(by_key(keyed).values())


@dataclass(slots=True, kw_only=True)
class Progress:
    """The calls and tokens so far; `answered_before` counts the outputs of earlier attempts at the run."""

    model_id: str
    planned: int
    answered_before: int = 0
    answered: int = 0
    failed: int = 0
    retried: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    begun: float = field(default_factory=time.monotonic)
    waiting: dict[str, str] = field(default_factory=dict)  # calls pending at the vendor, by run id

    def note(self, replicate: Replicate, cost_usd: float | None) -> None:
        """Count one outcome; a cost of None (unknown) makes `cost_usd` None."""
        self.cost_usd = None if self.cost_usd is None or cost_usd is None else self.cost_usd + cost_usd
        if replicate.completion is None:
            self.failed += 1
            return
        self.answered += 1
        self.input_tokens += replicate.completion.usage.input_tokens or 0
        self.output_tokens += replicate.completion.usage.output_tokens or 0

    @property
    def done(self) -> int:
        """The number of finished calls, including those of earlier attempts at this run."""
        return self.answered_before + self.answered + self.failed

    @property
    def seconds_left(self) -> float | None:
        """The estimated remaining time in seconds, or None before the first outcome."""
        if finished := self.answered + self.failed:
            return (time.monotonic() - self.begun) / finished * (self.planned - self.done)
        return None


# Receives an outcome. If it returns a future, the next call waits for it, which bounds the backlog of scoring.
OnOutcome = Callable[[Replicate], Future[Any] | None]
NO_CALL_LEFT = Failure(kind="over_budget", reason="max_calls", message="--max-calls is used up")
STOPPED = Failure(kind="not_run", reason="interrupted", message="stopped by the user")
_MAX_CONNECTIONS = 3  # failed attempts before any success, until the server counts as unreachable
_MAX_FIRST_REJECTIONS = 5  # bad requests before any success; then the settings are wrong, not the cases


class Stop:
    """A request to start no further calls (Ctrl-C); calls in flight are awaited."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    @property
    def requested(self) -> bool:
        """Whether a stop was requested."""
        return self.event.is_set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """The objects that all calls of an invocation share."""

    settings: Settings
    budget: Budget
    redact: Redactor
    stop: Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelJob:
    """The calls of one model and what is needed to make them.

    `cache_floor` has the tokens of the shortest prompt that the vendor caches, None without a cache. `answered_before`
    is true if the model has a record. `concurrency` is the maximum of calls in flight, `first_in_flight` a lower
    initial one.
    """

    model: Model
    provider: Provider
    calls: Sequence[Call]
    request_for: Callable[[Call], Request]
    concurrency: int
    price: Price | None
    shared: Invocation
    cache_floor: int | None = None
    answered_before: bool = False
    first_in_flight: int | None = None


@dataclass(frozen=True, slots=True)
class WorstCase:
    """The maximum of one attempt in tokens and in USD, which the budget reserves. `usd` is 0 without a price."""

    tokens: int
    usd: float

    @classmethod
    def of(cls, request: Request, price: Price | None, *, batch: bool = False) -> "WorstCase":
        """Return the maximum of a request."""
        input_tokens = max_input_tokens(request)
        usd = max_call_cost(price, input_tokens, request.max_output_tokens, batch=batch)
        return cls(input_tokens + request.max_output_tokens, usd or 0.0)

    def refusal(self, request: Request, left_usd: float) -> Failure:
        """Return the failure of a call that does not fit into the `left_usd` of the budget."""
        message = (
            f"a call of case '{request.case_id}' can cost ${self.usd:.4f} "
            f"({self.tokens - request.max_output_tokens:,} tokens in, {request.max_output_tokens:,} out by "
            f"max_output_tokens), and ${left_usd:.4f} is left; raise the cap to continue"
        )
        return Failure(kind="over_budget", reason="max_cost", message=message)


class Engine:
    """The workers of one model. After `run`, `halted` is the reason why calls were not made, or None."""

    def __init__(self, job: ModelJob, progress: Progress, on_outcome: OnOutcome) -> None:
        self._job = job
        self._budget = job.shared.budget
        self._stop = job.shared.stop
        self._settings = job.shared.settings
        self._redact = job.shared.redact
        self._progress = progress
        self._on_outcome = on_outcome
        first, fixed = job.first_in_flight, job.model.server is not None
        self.gate = Gate(job.concurrency, self._pause, first=first, fixed=fixed)
        self._pace = Pace(job.model.limits, self._pause)
        self._cached = cached_prompts(job.calls, job.request_for, job.cache_floor)
        self._worst_cases: dict[Prompt, WorstCase] = {}
        self._rejected = 0
        self._succeeded = False
        self._answered_before = job.answered_before or progress.answered_before > 0
        self._hopeless = asyncio.Event()
        self.halted: Failure | None = None

    async def run(self) -> None:
        """Make every call, or stop early and set `halted` to the reason."""
        sequences = call_sequences(self._job.calls, self._cached)
        shared = iter(sequences)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._job.concurrency, len(sequences))):
                    group.create_task(self._work(shared))
        except* Exception as problems:
            raise problems.exceptions[0] from None
        finally:
            with suppress(Exception):  # all outputs are written; unreleased resources end with the process
                await self._job.provider.close()

    async def _work(self, sequences: Iterator[Sequence[Call]]) -> None:
        for call in chain.from_iterable(sequences):
            if not self._ended() and self.halted is None and not self._budget.take_call():
                self.halted = NO_CALL_LEFT
            if self.halted is not None:
                return
            replicate = await self._make(call)
            if replicate is not None:
                self._progress.note(replicate, call_cost(self._job.model, self._job.price, replicate))
                scoring = self._on_outcome(replicate)
                if scoring is not None:
                    await asyncio.wait([asyncio.wrap_future(scoring)])

    def _ended(self) -> bool:
        if self._stop.requested and self.halted is None:
            self.halted = STOPPED
        return self._stop.requested or self._hopeless.is_set()

    async def _make(self, call: Call) -> Replicate | None:
        """Make one call with its retries. Return None if the model was halted before the call."""
        request, prompt = self._job.request_for(call), prompt_of(call)
        if prompt in self._cached:
            request = replace(request, cache=True)
        if prompt not in self._worst_cases:
            self._worst_cases[prompt] = WorstCase.of(request, self._job.price)
        worst_case = self._worst_cases[prompt]
        retry = self._settings.retry
        for attempt in range(1, retry.attempts + 1):
            try:
                answer = await self._attempt(request, worst_case)
            except ProviderError as problem:
                if problem.reason == "unknown_model" and (self._succeeded or self._answered_before):
                    problem.reason = "model_retired"
                wait = wait_before_retry(retry, attempt, problem.retry_after_s)
                if problem.throttled:
                    self.gate.throttled(wait)
                is_unreachable = problem.reason == "unreachable" and not self._succeeded and attempt >= _MAX_CONNECTIONS
                if problem.retryable and attempt < retry.attempts and not is_unreachable and not self._ended():
                    self._progress.retried += 1
                    await self._pause(wait)
                    continue
                self._halt_if_hopeless(problem, is_unreachable=is_unreachable)
                return Replicate(call=call, error=problem.failure(self._redact), attempts=attempt)
            if answer is None:
                return None
            completion, latency_s = answer
            self.gate.succeeded(latency_s)
            self._succeeded = True
            completion = completion.redacted(self._redact)
            return Replicate(call=call, completion=completion, latency_s=latency_s, attempts=attempt)
        raise AssertionError("unreachable: the last attempt returns")

    async def _attempt(self, request: Request, worst_case: WorstCase) -> tuple[Completion, float] | None:
        """Make one attempt under all limits. Return the output and its latency in s, or None if it must not be made."""
        await self.gate.enter()
        try:
            if self._ended():
                return None
            if not await self._budget.reserve(worst_case.usd):
                self.halted = worst_case.refusal(request, self._budget.left_usd)
                return None
            spent = 0.0
            try:
                await self._pace.wait(worst_case.tokens)
                if self._ended():
                    return None
                spent = worst_case.usd  # counts unless the cost becomes known
                begun = time.perf_counter()
                completion = await call_once(self._job.provider, request, self._settings)
                completion = within_limits(output_of(completion, request, self._job.model), self._settings)
                billed = budget_cost(self._job.model, self._job.price, completion)
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
        """Sleep until the time is over, a stop is requested or the model halts; return whether it woke early."""
        ends = [asyncio.ensure_future(event.wait()) for event in (self._stop.event, self._hopeless)]
        try:
            woken, _ = await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
        return bool(woken)

    def _halt_if_hopeless(self, problem: ProviderError, *, is_unreachable: bool) -> None:
        """Halt if the server is unreachable, the key is wrong, or all first calls are rejected."""
        self._rejected += problem.rejected
        if problem.fatal or is_unreachable or (self._rejected >= _MAX_FIRST_REJECTIONS and not self._succeeded):
            self.halted = self.halted or problem.failure(self._redact)
            self._hopeless.set()
