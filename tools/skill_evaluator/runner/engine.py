"""Make the scheduled calls of one model: workers under limits, one retry policy, one outcome per call.

Outcomes are handed to `on_outcome` as they come, in the event loop; whoever takes them keeps them. `Progress` counts
them, for whoever draws it.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from skill_evaluator.library.config import Model, Price, Settings
from skill_evaluator.providers.base import Completion, Failure, Provider, ProviderError, Request, ask_once
from skill_evaluator.providers.redaction import Redactor
from skill_evaluator.runner.cache_order import Prompt, cached_prompts, call_sequences, prompt_of
from skill_evaluator.runner.limits import Budget, Gate, Pace, wait_before_retry
from skill_evaluator.runner.prices import call_cost, dearest_cost, most_cost
from skill_evaluator.runner.schedule import Call, Replicate, most_input_tokens


@dataclass(slots=True, kw_only=True)
class Progress:
    """Calls and tokens so far; `answered_before` were found in the journal of a resumed run."""

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
    waiting: dict[str, str] = field(default_factory=dict)  # by run id, what of it lies with the vendor

    def note(self, replicate: Replicate, cost_usd: float | None) -> None:
        """Count one outcome; a cost of None (unknown) makes the sum unknown."""
        self.cost_usd = None if self.cost_usd is None or cost_usd is None else self.cost_usd + cost_usd
        if replicate.completion is None:
            self.failed += 1
            return
        self.answered += 1
        self.input_tokens += replicate.completion.usage.input_tokens or 0
        self.output_tokens += replicate.completion.usage.output_tokens or 0

    @property
    def done(self) -> int:
        """Calls that are over, those of earlier attempts at this run included."""
        return self.answered_before + self.answered + self.failed

    @property
    def seconds_left(self) -> float | None:
        """Time left at the pace so far; None before the first outcome."""
        finished = self.answered + self.failed
        if not finished:
            return None
        return (time.monotonic() - self.begun) / finished * (self.planned - self.done)


# Takes an outcome. What it returns is waited for before the next call: whoever scores has enough to do.
OnOutcome = Callable[[Replicate], Future[Any] | None]
NO_CALL_LEFT = Failure(kind="over_budget", reason="max_calls", message="--max-calls is used up")
STOPPED = Failure(kind="not_run", reason="interrupted", message="stopped by the user")
_TRIES_TO_REACH = 3  # attempts of a call, before anything succeeded, until a server counts as not there
_REJECTED_IN_A_ROW = 5  # bad requests before anything succeeded: the settings are wrong, not the cases


class Stop:
    """A request from outside (Ctrl-C) to begin no further call; those in flight are waited for."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    @property
    def requested(self) -> bool:
        """Whether to stop."""
        return self.event.is_set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """What all calls of an invocation share, whichever model they ask."""

    settings: Settings
    budget: Budget
    redact: Redactor
    stop: Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelJob:
    """All that is needed to make one model's calls.

    `cache_floor`: tokens of the shortest prompt that the vendor caches. `answered_before`: it is on record.
    `concurrency` calls are in flight at most, from the beginning unless it is with `first_in_flight`.
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
class Most:
    """The worst case of one attempt: what is set aside for it."""

    tokens: int
    usd: float

    @classmethod
    def of(cls, request: Request, price: Price | None, *, batch: bool = False) -> "Most":
        """Return the worst case of a request."""
        input_tokens = most_input_tokens(request)
        usd = most_cost(price, input_tokens, request.max_output_tokens, batch=batch)
        return cls(input_tokens + request.max_output_tokens, usd or 0.0)

    def refusal(self, request: Request, left_usd: float) -> Failure:
        """Return why a call of such a cost is not made."""
        message = (
            f"a call of case '{request.case_id}' can cost ${self.usd:.4f} "
            f"({self.tokens - request.max_output_tokens:,} tokens in, {request.max_output_tokens:,} out by "
            f"max_output_tokens), and ${left_usd:.4f} is left; raise the cap to go on"
        )
        return Failure(kind="over_budget", reason="max_cost", message=message)


class Engine:
    """One model's workers. `halted` says afterwards why calls were left unmade, or None if all were made."""

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
        self._most: dict[Prompt, Most] = {}
        self._rejected = 0
        self._succeeded = False
        self._answered_before = job.answered_before or progress.answered_before > 0
        self._hopeless = asyncio.Event()
        self.halted: Failure | None = None

    async def run(self) -> None:
        """Make every call, or stop early and say why in `halted`."""
        sequences = call_sequences(self._job.calls, self._cached)
        shared = iter(sequences)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._job.concurrency, len(sequences))):
                    group.create_task(self._work(shared))
        except* Exception as problems:
            raise problems.exceptions[0] from None
        finally:
            with suppress(Exception):  # every answer is kept; what a provider fails to release ends with the process
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
                busy = self._on_outcome(replicate)
                if busy is not None:
                    await asyncio.wait([asyncio.wrap_future(busy)])

    def _ended(self) -> bool:
        """Check whether even calls that have begun make no further attempt (a used-up budget lets them)."""
        if self._stop.requested and self.halted is None:
            self.halted = STOPPED
        return self._stop.requested or self._hopeless.is_set()

    async def _make(self, call: Call) -> Replicate | None:
        """Make one call with its retries; return None when the model was stopped before it could be made."""
        request, prompt = self._job.request_for(call), prompt_of(call)
        if prompt in self._cached:
            request = replace(request, cache=True)
        if prompt not in self._most:
            self._most[prompt] = Most.of(request, self._job.price)
        most = self._most[prompt]
        retry = self._settings.retry
        for attempt in range(1, retry.attempts + 1):
            try:
                answer = await self._attempt(request, most)
            except ProviderError as problem:
                if problem.reason == "unknown_model" and (self._succeeded or self._answered_before):
                    problem.reason = "model_retired"
                wait = wait_before_retry(retry, attempt, problem.retry_after_s)
                if problem.throttled:
                    self.gate.throttled(wait)
                alone = problem.reason == "unreachable" and not self._succeeded and attempt >= _TRIES_TO_REACH
                if problem.retryable and attempt < retry.attempts and not alone and not self._ended():
                    self._progress.retried += 1
                    await self._pause(wait)
                    continue
                self._halt_if_hopeless(problem, alone=alone)
                return Replicate(call=call, error=problem.failure(self._redact), attempts=attempt)
            if answer is None:
                return None
            completion, latency_s = answer
            self.gate.succeeded(latency_s)
            self._succeeded = True
            return Replicate(
                call=call,
                completion=completion.redacted(self._redact),
                latency_s=latency_s,
                attempts=attempt,
            )
        raise AssertionError("unreachable: the last attempt returns")

    async def _attempt(self, request: Request, most: Most) -> tuple[Completion, float] | None:
        """Make one attempt under gate, pace and budget, and time it; return None if budget or a halt forbids it."""
        await self.gate.enter()
        try:
            if self._ended():
                return None
            if not await self._budget.reserve(most.usd):
                self.halted = most.refusal(request, self._budget.left_usd)
                return None
            spent = 0.0
            try:
                await self._pace.wait(most.tokens)
                if self._ended():
                    return None
                spent = most.usd  # until it is known to be less
                begun = time.perf_counter()
                completion = await ask_once(self._job.provider, request, self._settings)
                billed = dearest_cost(self._job.model, self._job.price, completion)
                spent = most.usd if billed is None else billed
                taken_s = completion.latency_s
                latency_s = time.perf_counter() - begun if taken_s is None else taken_s
                return completion, round(latency_s, 4)  # as the journal keeps it
            except ProviderError as problem:
                spent = most.usd if problem.perhaps_billed else 0.0
                raise
            finally:
                self._budget.settle(most.usd, spent)
        finally:
            self.gate.leave()

    async def _pause(self, seconds: float) -> bool:
        """Sleep until a request to stop or the end of hope; return whether one of them came."""
        ends = [asyncio.ensure_future(event.wait()) for event in (self._stop.event, self._hopeless)]
        try:
            came, _ = await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
        return bool(came)

    def _halt_if_hopeless(self, problem: ProviderError, *, alone: bool) -> None:
        """Halt when no call can succeed: nobody is there, a wrong key, settings that all first calls fail by."""
        self._rejected += problem.rejected
        if problem.fatal or alone or (self._rejected >= _REJECTED_IN_A_ROW and not self._succeeded):
            self.halted = self.halted or problem.failure(self._redact)
            self._hopeless.set()
