"""A scripted provider in memory, and an engine that calls it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from skill_evaluator.library.config import Model, Price, Settings
from skill_evaluator.library.prompts import dialogue
from skill_evaluator.providers.base import Completion, Failure, Request, Usage
from skill_evaluator.providers.redaction import Redactor
from skill_evaluator.runner.engine import Engine, Invocation, OnOutcome, Progress, Stop
from skill_evaluator.runner.limits import Budget
from skill_evaluator.runner.schedule import Call, Replicate, schedule_calls

Script = Callable[[Request, int], Awaitable[Completion]]
QUICK = {"attempts": 3, "first_wait_s": 0.001, "max_wait_s": 0.002, "max_retry_after_s": 0.05}


class ScriptedProvider:
    """Asks `script(request, times)`, where `times` counts this call's attempts from 1, and notes what happened.

    `levels` are the calls in flight as each began, itself included.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[Request] = []
        self.levels: list[int] = []
        self.in_flight = 0
        self.closed = 0

    async def complete(self, request: Request) -> Completion:
        self.requests.append(request)
        times = sum((one.case_id, one.replicate) == (request.case_id, request.replicate) for one in self.requests)
        self.in_flight += 1
        self.levels.append(self.in_flight)
        try:
            await asyncio.sleep(0)
            return await self.script(request, times)
        finally:
            self.in_flight -= 1

    async def close(self) -> None:
        self.closed += 1


@dataclass(slots=True, kw_only=True)
class Driven:
    """An engine that has run: what was asked, what came of it, and why it stopped early, if it did."""

    provider: ScriptedProvider
    calls: Sequence[Call]
    outcomes: list[Replicate] = field(default_factory=list)
    halted: Failure | None = None

    @property
    def failures(self) -> list[Failure]:
        """The outcomes that are errors."""
        return [outcome.error for outcome in self.outcomes if outcome.error]


def answer(text: str = "{}", tokens: tuple[int, int] | None = (10, 5)) -> Completion:
    """A completion; `tokens` are those in and out that the vendor counts."""
    return Completion(text=text, usage=Usage(input_tokens=tokens[0], output_tokens=tokens[1]) if tokens else Usage())


async def drive(
    script: Script,
    *,
    cases: Sequence[str] = ("a", "b", "c"),
    replicates: int = 4,
    concurrency: int = 1,
    retry: dict[str, Any] | None = None,
    timeout_s: float = 10.0,
    limits: dict[str, int] | None = None,
    budget: Budget | None = None,
    price: Price | None = None,
    stop: Stop | None = None,
    redact: Redactor | None = None,
    on_outcome: OnOutcome | None = None,
    provider: ScriptedProvider | None = None,
    cache_floor: int | None = None,
) -> Driven:
    """Run an engine over a small plan and tell what happened."""
    calls = schedule_calls(cases, replicates)
    driven = Driven(provider=provider or ScriptedProvider(script), calls=calls)
    shared = Invocation(
        settings=Settings(timeout_s=timeout_s, retry=QUICK | (retry or {})),
        budget=budget or Budget(),
        redact=redact or Redactor([]),
        stop=stop or Stop(),
    )
    engine = Engine(
        model=Model(id="m", provider="scripted", limits=limits or {}),
        provider=driven.provider,
        calls=calls,
        request_for=_request,
        on_outcome=on_outcome or driven.outcomes.append,
        price=price,
        progress=Progress(model_id="m", planned=len(calls)),
        shared=shared,
        in_flight=(concurrency, concurrency),
        cache_floor=cache_floor,
    )
    with patch("skill_evaluator.runner.engine.max_input_tokens", lambda request: 10):
        await engine.run()
    driven.halted = engine.halted
    return driven


def _request(call: Call) -> Request:
    return Request(
        case_id=call.case_id,
        replicate=call.replicate,
        messages=dialogue("Extract what the document says of itself.", call.case_id),
        max_output_tokens=10,
        seed=call.replicate,
    )
