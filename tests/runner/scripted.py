"""A scripted provider in memory, and an engine that calls it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from skill_evaluator.library.config import Limits, Model, Params, Price, Settings
from skill_evaluator.library.prompts import dialogue
from skill_evaluator.providers import Configuration
from skill_evaluator.providers.base import Completion, Failure, ProviderKind, Request, Sampling, Usage
from skill_evaluator.runner.engine import Engine
from skill_evaluator.runner.journal import Manifest, Run, read_outcomes
from skill_evaluator.runner.prices import InputSize
from skill_evaluator.runner.schedule import Budget, Call, Replicate, schedule_calls
from skill_evaluator.runner.session import Progress, RunningRun, Session, Stop, no_progress

Script = Callable[[Request, int], Awaitable[Completion]]
TEN_TOKENS = InputSize(likely=10, maximum=10)
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
    provider: ScriptedProvider | None = None,
    cache_floor: int | None = None,
) -> Driven:
    """Run an engine over a small plan and tell what happened."""
    driven = Driven(provider=provider or ScriptedProvider(script), calls=schedule_calls(cases, replicates))
    kind = ProviderKind(
        open=lambda model, key, settings: driven.provider,
        sampling=lambda model: Sampling(),
        cache_floor=lambda model: cache_floor,
    )
    model = Model(id="m", provider="scripted", price=price, params=Params(max_output_tokens=10))
    configuration = Configuration(
        settings=Settings(timeout_s=timeout_s, retry=QUICK | (retry or {})),
        models=(model,),
        kinds={"scripted": kind},
        keys={},
    )
    session = Session(
        configuration=configuration, watch=no_progress, budget=budget or Budget(), concurrency=concurrency
    )
    manifest = Manifest(
        run_id="20240101T000000Z-abc123-m",
        created="2024-01-01T00:00:00Z",
        skill="scripted",
        skill_version="1.0.0",
        model_id="m",
        provider="scripted",
        replicates=replicates,
        seed=0,
        cases=dict.fromkeys(cases, "sha256:0"),
        digests={},
        evaluator_version="0.1.0",
    )
    with TemporaryDirectory() as folder, patch("skill_evaluator.runner.session.size_of", lambda request: TEN_TOKENS):
        run = RunningRun(
            Run(model=model, manifest=manifest, folder=Path(folder, "run")),
            {name: Request(case_id=name, messages=dialogue("Extract the document.", name)) for name in cases},
            configuration,
            Progress(model_id="m"),
        )
        run.resume(session.budget)
        engine = Engine([run], Limits(**limits or {}), session, stop or Stop())
        run.begin()
        try:
            await engine.run()
        finally:
            run.finish()
        driven.outcomes += read_outcomes(run.run.folder)
    driven.halted = run.halted
    return driven
