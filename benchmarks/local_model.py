"""The calls of README's main job on the local model against the same with nothing reused, in turns, in one process.

The model is loaded anew in each round, and its loading is counted. The older way is what it does where no state can be
restored: it evaluates every prompt in one piece.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from skill_evaluator.library.cases import load_cases
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import load_models, select_models
from skill_evaluator.providers.base import Request
from skill_evaluator.providers.local import LocalProvider
from skill_evaluator.runner.schedule import build_request, replicate_seed

from benchmarks.measure import ROOT, Measured, spread

COMPONENT, MODEL, REPLICATES = "receipt-extraction", "smollm2-135m-instruct", 2
WAYS = ("ours", "older")


class Job:
    """One round: what both ways took, and what they answered."""

    def __init__(self, requests: list[Request], threads: int = 2) -> None:
        """Load both, then ask both for every request; the first to be asked changes from call to call."""
        self.wall_s, self.cpu_s = Counter[str](), Counter[str]()
        self.texts: dict[str, list[str]] = {way: [] for way in WAYS}
        self._threads = threads
        providers = {way: self._timed(way, lambda way=way: self._open(way)) for way in WAYS}
        for number, request in enumerate(requests):
            for way in WAYS if number % 2 else reversed(WAYS):
                ask = providers[way].complete
                answer = self._timed(way, lambda ask=ask, request=request: asyncio.run(ask(request)))
                self.texts[way].append(answer.text)
        for provider in providers.values():
            asyncio.run(provider.close())

    @property
    def equal(self) -> float:
        """The share of the answers that both ways gave alike."""
        return sum(ours == older for ours, older in zip(*self.texts.values(), strict=True)) / len(self.texts["ours"])

    def _open(self, way: str) -> LocalProvider:
        (model,) = select_models(load_models(ROOT / ".evaluator"), (MODEL,))
        params = model.params.model_copy(update={"threads": self._threads})
        provider = LocalProvider(model.model_copy(update={"params": params}))
        if way == "older":
            provider.states.enter = lambda system, user: False
        return provider

    def _timed(self, way: str, do):
        wall, cpu = time.perf_counter(), time.process_time()
        result = do()
        self.wall_s[way] += time.perf_counter() - wall
        self.cpu_s[way] += time.process_time() - cpu
        return result


def requests_of(cases: int) -> list[Request]:
    """As the command makes them: replicate by replicate through the first `cases` cases."""
    component = load_component(ROOT / "components", COMPONENT, fixtures_dir=ROOT / "fixtures")
    documents = load_cases(component)[:cases]
    return [
        replace(
            build_request(component, case),
            replicate=replicate,
            seed=replicate_seed(0, case.id, replicate),
            max_output_tokens=256,
        )
        for replicate in range(REPLICATES)
        for case in documents
    ]


def rows(quick: bool) -> Iterator[Measured]:
    requests = requests_of(2 if quick else 6)
    jobs = [Job(requests)]
    name = f"{len(requests)} calls of README's main job, on fewer cases, on the local model"
    yield Measured(
        name=f"{name} ÷ the same with every prompt evaluated in one piece",
        values=tuple(job.wall_s["ours"] / job.wall_s["older"] for job in jobs),
        most=None if quick else 0.5,  # what few cases share must be evaluated for them alone
        note=f"{spread([job.wall_s['ours'] for job in jobs], '.0f')} s",
    )
    yield Measured(
        name="the same, processor time", values=tuple(job.cpu_s["ours"] / job.cpu_s["older"] for job in jobs)
    )
    yield Measured(name="share of those answers that are equal", values=tuple(job.equal for job in jobs))
