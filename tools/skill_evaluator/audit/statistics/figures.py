"""A cube → ability, fluctuation and tail of every model, over all and by benchmark, and tests over the scenarios.

S(m, t) is the weighted mean over benchmarks of the per cent right; ability μ is its mean over the scenarios,
fluctuation σ its standard deviation (n − 1). Source: Song et al. 2026 (arXiv 2602.02515), equations of §3.
"""

import math

import numpy as np
from scipy import stats
from scipy.special import stdtr

from skill_evaluator.audit.cube import Cube, Floats
from skill_evaluator.audit.results import Neutrality, Shift, Worst
from skill_evaluator.stats import ALPHA
from skill_evaluator.verdicts.decide.effects import adjusted


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


def neutrality_of(cube: Cube) -> Neutrality:
    """Test whether the scenarios are alike in difficulty.

    Means and range; Kendall's τ of the means along the order, with Mann's exact p (1945; without ties); the p of
    Friedman's test (1937) that no scenario is better for all; shifts by scenario (q ≤ 0.05).
    """
    overall = cube.overall
    models, scenarios = overall.shape
    means = overall.mean(axis=0)
    tau = trend_p = friedman_p = None
    if scenarios >= 3 and np.ptp(means) > 0:
        trend = stats.kendalltau(np.arange(scenarios), means)
        tau, trend_p = float(trend.statistic), float(trend.pvalue)
    if models >= 2 and scenarios >= 3 and np.ptp(overall, axis=1).max() > 0:
        friedman_p = float(stats.friedmanchisquare(*overall.T).pvalue)
    shifts = _shifts(cube)
    return Neutrality(
        means=means.tolist(),
        range=float(np.ptp(means)),
        trend_tau=tau,
        trend_p=trend_p,
        friedman_p=friedman_p,
        shifts=shifts,
        verdict=_verdict(shifts, trend_p, friedman_p, models),
    )


def _shifts(cube: Cube) -> list[Shift]:
    """Test how far the models are from their own means in each scenario: Student's t over models, largest first."""
    models = len(cube.models)
    if models < 2:
        return []
    away = cube.overall - cube.overall.mean(axis=1, keepdims=True)
    shifts = away.mean(axis=0)
    error = away.std(axis=0, ddof=1) / np.sqrt(models)
    ratio = np.divide(np.abs(shifts), error, out=np.where(np.abs(shifts) > 0, np.inf, 0.0), where=error > 0)
    p_values = (2 * stats.t.sf(ratio, models - 1)).tolist()
    tested = zip(cube.scenarios, shifts.tolist(), p_values, adjusted(p_values), strict=True)
    return sorted(
        (Shift(scenario=name, shift=shift, p=p, q=q, significant=q <= ALPHA) for name, shift, p, q in tested),
        key=lambda shift: -abs(shift.shift),
    )


def _verdict(shifts: list[Shift], trend_p: float | None, friedman_p: float | None, models: int) -> str:
    if models < 2:
        return "not known: one model cannot tell a hard scenario from its own weakness"
    moved = [f"{shift.scenario} ({shift.shift:+.1f})" for shift in shifts if shift.significant]
    if moved:
        return f"not neutral: everybody is shifted in {', '.join(moved)}"
    if trend_p is not None and trend_p <= ALPHA:
        return f"drifting: the scenarios differ along their order (p = {trend_p:.3f})"
    if friedman_p is not None and friedman_p <= ALPHA:
        return f"not neutral: the scenarios differ for everybody (Friedman's p = {friedman_p:.3f}), none by itself"
    return "neutral: no scenario is harder for everybody beyond chance"


def spread_p(first: Floats, second: Floats) -> float | None:
    """Return p of the difference between two models' spreads over the same scenarios; None for fewer than three.

    Pitman 1939 and Morgan 1939 (doi:10.1093/biomet/31.1-2.9): the correlation of sum and difference.
    """
    degrees = len(first) - 2
    if degrees < 1:
        return None
    covariance = np.cov(first, second)
    one, other = covariance[0, 0], covariance[1, 1]
    scale = (one + other) ** 2 - 4 * covariance[0, 1] ** 2
    association = float((other - one) / math.sqrt(scale)) if scale > 0 else 0.0
    if abs(association) >= 1:
        return 0.0
    ratio = abs(association) * math.sqrt(degrees / (1 - association**2))
    return float(2 * stdtr(degrees, -ratio))
