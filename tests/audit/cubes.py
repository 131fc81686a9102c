"""Cubes, results and manifests of audits: the paper's table, and outputs drawn from known models."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from skill_evaluator.audit.calls import CallTally
from skill_evaluator.audit.cube import Cube, Floats, Outcomes, cube_of_outcomes, cube_of_scores, read_cube
from skill_evaluator.audit.manifest import AuditedBenchmark, AuditManifest
from skill_evaluator.audit.results import AuditResult, audit

PAPER = Path(__file__).parents[1] / "data" / "creditaudit_table2.csv"
_QUESTIONS = 100
IDS = [f"q-{number:02d}" for number in range(60)]


def paper() -> Cube:
    return read_cube(PAPER, weights={})


@cache
def audited_paper() -> AuditResult:
    return audit(paper())


def cube_of(scores: list[list[float]]) -> Cube:
    """One benchmark; [models][scenarios]."""
    array = np.array(scores, dtype=np.float64)[:, :, None]
    models = [f"model-{m}" for m in range(array.shape[0])]
    scenarios = [f"scenario-{t}" for t in range(array.shape[1])]
    return cube_of_scores(models, scenarios, ["quiz"], array, weights={})


def drawn(
    spread: Floats,
    *,
    scenarios: int = 10,
    questions: int = 100,
    replicates: int = 2,
    interaction: float = 0.0,
    seed: int = 0,
) -> Cube:
    """Answers of models whose scenario effects have these standard deviations, in points."""
    random = np.random.default_rng(seed)
    effects = np.asarray(spread)[:, None] / 100 * random.normal(size=(len(spread), scenarios))
    question = random.uniform(0.35, 0.65, questions)
    rates = question + effects[:, :, None] + interaction * random.normal(size=(*effects.shape, questions))
    answers = random.random((*rates.shape, replicates)) < rates[..., None]
    outcomes = Outcomes(questions=tuple(f"q{q}" for q in range(questions)), scores=answers.astype(np.float32))
    return cube_of_outcomes(
        [f"model-{m}" for m in range(len(spread))],
        [f"scenario-{t}" for t in range(scenarios)],
        {"quiz": outcomes},
        weights={},
    )


def an_audit(
    models: Sequence[str] = ("ash", "birch", "cedar", "elm"),
    scenarios: Sequence[str] = ("bare", "polite", "strict", "terse"),
    benchmarks: Sequence[str] = ("logic", "law"),
    **changed: Any,
) -> AuditResult:
    """Everything known; `changed` replaces parts of the result."""
    return _audited(tuple(models), tuple(scenarios), tuple(benchmarks)).model_copy(update=changed)


@cache
def _audited(models: tuple[str, ...], scenarios: tuple[str, ...], benchmarks: tuple[str, ...]) -> AuditResult:
    random = np.random.default_rng(0)
    place = np.arange(len(models))[:, None, None, None] / len(models)
    moved = 0.2 * place * np.cos(2 * np.arange(len(scenarios)))[:, None, None]
    outcomes = {}
    for name in benchmarks:
        right = random.random((len(models), len(scenarios), _QUESTIONS, 2)) < 0.8 - 0.4 * place + moved
        questions = tuple(f"q{q}" for q in range(_QUESTIONS))
        outcomes[name] = Outcomes(questions=questions, scores=right.astype(np.float32))
    return audit(
        cube_of_outcomes(models, scenarios, outcomes, weights={}), tallies={name: tally(0.0004) for name in models}
    )


def tally(usd_per_output: float) -> CallTally:
    """100 scored calls."""
    return CallTally(
        planned=100,
        outcomes={"scored": 100},
        cost_usd=100 * usd_per_output,
        hit_rate=None,
        latency_s=1.25,
        served_models=(),
    )


def manifest(sizes: Sequence[int], scenarios: int, replicates: int = 2, models: int = 1) -> AuditManifest:
    """Draw benchmarks of so many questions each."""
    return AuditManifest(
        id="20261121T000000Z-abcdef",
        created="2026-11-21T00:00:00Z",
        seed=0,
        replicates=replicates,
        questions=None,
        models={f"m{number}": f"sha256:m{number}" for number in range(models)},
        scenarios={f"s{number}": f"sha256:s{number}" for number in range(scenarios)},
        benchmarks=[
            AuditedBenchmark(
                name=f"b{place}",
                version="1.0.0",
                metric="exact_match",
                weight=1.0,
                of=size,
                cases={case: f"sha256:{case}" for case in IDS[:size]},
                digests={"prompt": "p", "schema": "s", "datasets": "d"},
            )
            for place, size in enumerate(sizes)
        ],
        evaluator_version="0",
    )
