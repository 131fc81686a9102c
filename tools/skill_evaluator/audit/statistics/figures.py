"""A cube → ability and fluctuation of every model, over all and by benchmark, its tail, and what carries its spread.

S(m, t) is the weighted mean over benchmarks of the per cent right; ability μ is its mean over the scenarios,
fluctuation σ its standard deviation (n − 1). Source: Song et al. 2026 (arXiv 2602.02515), equations of §3.
"""

from collections.abc import Sequence

import numpy as np

from skill_evaluator.audit.cube.cube import Cube, Floats
from skill_evaluator.audit.findings.results import Adjusted, Carrier, Worst
from skill_evaluator.audit.statistics.grades import grades_of

_CASES_SHOWN = 10


def abilities(cube: Cube) -> Floats:
    """Return μ of each model, per cent."""
    return np.asarray(cube.overall.mean(axis=1))


def fluctuations(cube: Cube) -> Floats:
    """Return σ of each model, in points."""
    return np.asarray(cube.overall.std(axis=1, ddof=1))


def shares_by_benchmark(cube: Cube, model: int) -> dict[str, float]:
    """Return the share of a model's σ² that each benchmark carries: w·cov(S_b, S) ÷ σ².

    The shares sum to 1; where σ is 0, each is 0.
    """
    scores = cube.scores[model] - cube.scores[model].mean(axis=0)
    total = scores @ cube.weights
    variance = float(total @ total)
    parts = cube.weights * (scores.T @ total)
    return {
        name: float(part / variance) if variance else 0.0 for name, part in zip(cube.benchmarks, parts, strict=True)
    }


def worst_of(cube: Cube, model: int) -> Worst:
    """Return the scenario a model is weakest in (the first of several)."""
    scores = cube.overall[model]
    place = int(scores.argmin())
    return Worst(scenario=cube.scenarios[place], score=float(scores[place]), drop=float(scores.mean() - scores[place]))


def usd_per_1000_right(cube: Cube, model: int) -> float | None:
    """Return the cost of 1,000 right answers; None where the cost is not known or no answer is right."""
    spent = cube.spending.get(cube.models[model])
    ability = float(abilities(cube)[model])
    if spent is None or spent.usd_per_call is None or ability == 0:
        return None
    return 1000 * spent.usd_per_call / (ability / 100)


def adjusted(cube: Cube, grades: Sequence[str]) -> list[Adjusted]:
    """Return fluctuation and grade of each model once every scenario's mean over the models is taken out.

    What is left is how a model moves against its cohort. The model is part of that cohort: among few models each has
    something of the others in it, so fewer than three are not graded.
    """
    spreads = (cube.overall - cube.overall.mean(axis=0)).std(axis=1, ddof=1)
    given = grades_of(spreads, grades) if len(spreads) > 2 else [None] * len(spreads)
    return [Adjusted(fluctuation=float(spread), grade=grade) for spread, grade in zip(spreads, given, strict=True)]


def scenario_carriers(cube: Cube) -> list[Carrier]:
    """Return each scenario's share of Σ (S(m, t) − μ)², mean over the models that fluctuate at all; largest first."""
    squares = (cube.overall - cube.overall.mean(axis=1, keepdims=True)) ** 2
    moving = squares.sum(axis=1) > 0
    if not moving.any():
        return []
    shares = (squares[moving] / squares[moving].sum(axis=1, keepdims=True)).mean(axis=0)
    named = zip(cube.scenarios, shares, strict=True)
    return _largest_first([Carrier(name=scenario, share=float(share)) for scenario, share in named])


def case_carriers(cube: Cube) -> list[Carrier]:
    """Return the questions that carry most of σ²: w·cov(y_q, S) ÷ (Q·σ²), mean over the models.

    Without single answers there are none.
    """
    total = cube.overall - cube.overall.mean(axis=1, keepdims=True)
    variance = (total**2).sum(axis=1)
    moving = variance > 0
    if cube.outcomes is None or not moving.any():
        return []
    carriers: list[Carrier] = []
    for name, weight in zip(cube.benchmarks, cube.weights, strict=True):
        outcomes = cube.outcomes[name]
        means = outcomes.means[moving]
        parts = np.einsum("mtq,mt->mq", means, total[moving])  # S is centred, so y need not be
        shares = (100.0 * weight / len(outcomes.questions)) * (parts / variance[moving, None]).mean(axis=0)
        top = np.argsort(-shares, kind="stable")[:_CASES_SHOWN]
        carriers += [Carrier(name=outcomes.questions[q], benchmark=name, share=float(shares[q])) for q in top]
    return _largest_first(carriers)[:_CASES_SHOWN]


def _largest_first(carriers: Sequence[Carrier]) -> list[Carrier]:
    return sorted(carriers, key=lambda carrier: -carrier.share)
