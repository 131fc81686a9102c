"""A finished audit to draw: scores from a seed, the figures that follow from them, and invented ones for the rest."""

import random
import statistics
from collections.abc import Sequence
from typing import Any, cast

from skill_evaluator.audit.findings.results import (
    AuditResult,
    BenchmarkFigures,
    BenchmarkUsed,
    Medians,
    ModelAudit,
    Neutrality,
    Quadrant,
    Ranked,
    Regime,
    Shift,
    Thresholds,
    Worst,
)

GRADES = ("AAA", "AA", "A", "BBB")
Scores = dict[str, dict[str, dict[str, float]]]  # by model, benchmark, scenario


def seeded_scores(models: Sequence[str], scenarios: Sequence[str], benchmarks: Sequence[str], seed: int = 0) -> Scores:
    """Abler models are steadier, and not all of them alike."""
    chance = random.Random(seed)
    scores: Scores = {}
    for model in models:
        ability, spread = chance.uniform(30, 80), chance.uniform(1, 6)
        scores[model] = {
            name: {scenario: min(max(chance.gauss(ability + 5 * at, spread), 0.0), 100.0) for scenario in scenarios}
            for at, name in enumerate(benchmarks)
        }
    return scores


def an_audit(
    models: Sequence[str] = ("ash", "birch", "cedar", "elm"),
    scenarios: Sequence[str] = ("bare", "polite", "strict"),
    benchmarks: Sequence[str] = ("logic", "law"),
    **changed: Any,
) -> AuditResult:
    """Everything known; `changed` replaces parts of the result."""
    return audit_of(seeded_scores(models, scenarios, benchmarks)).model_copy(update=changed)


def audit_of(scores: Scores) -> AuditResult:
    """A result on given scores; a model alone has neither grade nor quadrant."""
    bare = [_bare(name, by_benchmark) for name, by_benchmark in scores.items()]
    spreads = [one.fluctuation for one in bare]
    alone = len(bare) == 1
    cuts = [0.0, 0.0, 0.0] if alone else statistics.quantiles(spreads, n=4, method="inclusive")
    middle = Medians(ability=statistics.median(one.ability for one in bare), fluctuation=statistics.median(spreads))
    models = bare if alone else [_graded(one, cuts, middle) for one in bare]
    scenarios = list(bare[0].scenarios)
    return AuditResult(
        cohort=[one.model for one in bare],
        scenarios=scenarios,
        used=[
            BenchmarkUsed(name=name, weight=1 / len(bare[0].benchmarks), questions=100) for name in bare[0].benchmarks
        ],
        replicates=2,
        treatment="2 of 14 models are left out",
        resampled="both",
        draws=2000,
        models=models,
        thresholds=None if alone else Thresholds(q25=cuts[0], q50=cuts[1], q75=cuts[2]),
        medians=None if alone else middle,
        noise_floor=min(spreads) * 0.6,
        noise_ceiling=statistics.median(spreads) * 0.9,
        neutrality=_neutrality(bare, scenarios),
        regimes=_regimes(bare),
        warnings=["fewer than 6 scenarios: the grades are a first impression"],
    )


def _bare(name: str, by_benchmark: dict[str, dict[str, float]]) -> ModelAudit:
    columns = list(by_benchmark.values())
    overall = {scenario: statistics.fmean(one[scenario] for one in columns) for scenario in columns[0]}
    ability, spread = statistics.fmean(overall.values()), statistics.stdev(overall.values())
    worst = min(overall, key=overall.__getitem__)
    return ModelAudit(
        model=name,
        ability=ability,
        ability_ci95=(ability - 1.25 - spread / 4, ability + 1.0 + spread / 4),
        fluctuation=spread,
        fluctuation_ci95=(spread * 0.6, spread * 1.5),
        grade=None,
        quadrant=None,
        noise=spread * 0.4,
        corrected=spread * 0.9,
        corrected_ci95=(spread * 0.5, spread * 1.4),
        benchmarks={
            benchmark: BenchmarkFigures(
                ability=statistics.fmean(one.values()), fluctuation=statistics.stdev(one.values())
            )
            for benchmark, one in by_benchmark.items()
        },
        shares={benchmark: 1 / len(by_benchmark) for benchmark in by_benchmark},
        scenarios=overall,
        worst=Worst(scenario=worst, score=overall[worst], drop=ability - overall[worst]),
        usd_per_1000_right=0.4321,
        latency_s=1.25,
    )


def _graded(one: ModelAudit, cuts: Sequence[float], middle: Medians) -> ModelAudit:
    place = sum(one.fluctuation > cut for cut in cuts)
    able, steady = one.ability >= middle.ability, one.fluctuation <= middle.fluctuation
    words = {
        (True, True): "safe default",
        (False, True): "predictable baseline",
        (True, False): "strong but scenario-fragile",
        (False, False): "avoid",
    }
    rest = dict.fromkeys(GRADES, 0.1)
    return one.model_copy(
        update={
            "grade": GRADES[place],
            "quadrant": cast(Quadrant, words[able, steady]),
            "grade_probability": {**rest, GRADES[place]: 0.7},
            "corrected_grade": GRADES[max(place - 1, 0)],
        }
    )


def _neutrality(models: Sequence[ModelAudit], scenarios: Sequence[str]) -> Neutrality:
    means = [statistics.fmean(one.scenarios[name] for one in models) for name in scenarios]
    middle = statistics.fmean(means)
    shifts = [
        Shift(scenario=name, shift=mean - middle, p=0.0123, q=0.0345 if at == 0 else 0.4567, significant=at == 0)
        for at, (name, mean) in enumerate(zip(scenarios, means, strict=True))
    ]
    return Neutrality(
        means=means,
        range=max(means) - min(means),
        trend_tau=0.125,
        trend_p=0.654,
        friedman_p=0.0456,
        shifts=shifts,
        verdict="not neutral: one scenario moves all models",
    )


def _regimes(models: Sequence[ModelAudit]) -> dict[str, Regime]:
    steadiest = sorted(models, key=lambda one: one.fluctuation)
    ranked = [Ranked(model=one.model, reason=f"fluctuation {one.fluctuation:.2f}") for one in steadiest]
    return {
        "steady": Regime(title="Steadiness first", note="by fluctuation", ranked=ranked),
        "thrift": Regime(title="Cost first", note="no prices are known", ranked=[]),
    }
