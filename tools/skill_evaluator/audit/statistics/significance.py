"""Tests over the scenarios of an audit: are they alike in difficulty, and do two models' fluctuations differ.

A scenario that is harder for all models says little about any of them; it is named, and taken out (`figures.adjusted`).
Two models meet the same scenarios, so their spreads are compared in pairs: Pitman 1939 and Morgan 1939
(doi:10.1093/biomet/31.1-2.9), the correlation of sum and difference; its power by Fisher's z.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy import stats
from scipy.special import ndtri, stdtr

from skill_evaluator.audit.cube.cube import Cube, Floats
from skill_evaluator.audit.findings.results import Neutrality, Separation, Shift
from skill_evaluator.verdicts.effects import ALPHA, POWER, adjusted


def neutrality_of(cube: Cube) -> Neutrality:
    """Means, range, Mann and Kendall's trend along the order, Friedman's test, and shifts by scenario (q ≤ 0.05)."""
    overall = cube.overall
    means = overall.mean(axis=0)
    tau, trend_p = _trend(means)
    friedman_p = _friedman(overall)
    shifts = _shifts(cube, overall)
    return Neutrality(
        means=[float(one) for one in means],
        range=float(np.ptp(means)),
        trend_tau=tau,
        trend_p=trend_p,
        friedman_p=friedman_p,
        shifts=shifts,
        verdict=_verdict(shifts, trend_p, friedman_p, len(overall)),
    )


def _trend(means: Floats) -> tuple[float | None, float | None]:
    """Kendall's τ of the means against their place, with its p: exact without ties (Mann 1945)."""
    if len(means) < 3 or np.ptp(means) == 0:
        return None, None
    found = stats.kendalltau(np.arange(len(means)), means)
    return float(found.statistic), float(found.pvalue)


def _friedman(overall: Floats) -> float | None:
    """Friedman's test (1937) that no scenario is better for all; None for fewer than 3 scenarios or 2 models."""
    models, scenarios = overall.shape
    if models < 2 or scenarios < 3 or np.ptp(overall, axis=1).max() == 0:
        return None
    return float(stats.friedmanchisquare(*overall.T).pvalue)


def _shifts(cube: Cube, overall: Floats) -> list[Shift]:
    """By scenario, how far the models are from their own means there: Student's t over the models, largest first."""
    models = len(overall)
    if models < 2:
        return []
    away = overall - overall.mean(axis=1, keepdims=True)
    shift = away.mean(axis=0)
    error = away.std(axis=0, ddof=1) / np.sqrt(models)
    ratio = np.divide(np.abs(shift), error, out=np.where(np.abs(shift) > 0, np.inf, 0.0), where=error > 0)
    p_values = [float(one) for one in 2 * stats.t.sf(ratio, models - 1)]
    found = [
        Shift(scenario=name, shift=float(one), p=p, q=q, significant=q <= ALPHA)
        for name, one, p, q in zip(cube.scenarios, shift, p_values, adjusted(p_values), strict=True)
    ]
    return sorted(found, key=lambda one: -abs(one.shift))


def _verdict(shifts: list[Shift], trend_p: float | None, friedman_p: float | None, models: int) -> str:
    if models < 2:
        return "not known: one model cannot tell a hard scenario from its own weakness"
    moved = [f"{one.scenario} ({one.shift:+.1f})" for one in shifts if one.significant]
    if moved:
        return f"not neutral: everybody is shifted in {', '.join(moved)}"
    if trend_p is not None and trend_p <= ALPHA:
        return f"drifting: the scenarios differ along their order (p = {trend_p:.3f})"
    if friedman_p is not None and friedman_p <= ALPHA:
        return f"not neutral: the scenarios differ for everybody (Friedman's p = {friedman_p:.3f}), none by itself"
    return "neutral: no scenario is harder for everybody beyond chance"


_MOST = 10_000  # scenarios; more is no plan
_MORE_QUESTIONS = 4  # times as many: half the noise
_TIMES = [1.1**power for power in range(49)]  # as many questions: up to a hundredfold


def separations_of(cube: Cube, floor: Floats | None, grades: Sequence[str | None]) -> list[Separation]:
    """The most and the least stable model, and on either side of each border between grades the models next to it."""
    order = [int(place) for place in np.argsort(cube.overall.std(axis=1), kind="stable")]
    if len(order) < 2:
        return []
    pairs = [(order[0], order[-1])]
    pairs += [(one, other) for one, other in pairwise(order) if grades[one] != grades[other]]
    return [_separation(cube, floor, stable, fragile) for stable, fragile in dict.fromkeys(pairs)]


def _separation(cube: Cube, floor: Floats | None, stable: int, fragile: int) -> Separation:
    first, second = cube.overall[stable], cube.overall[fragile]
    covariance = np.cov(first, second)
    noises = None if floor is None else np.diag(floor[[stable, fragile]])
    return Separation(
        stable=cube.models[stable],
        fragile=cube.models[fragile],
        p=_p(_association(covariance), len(first)),
        scenarios=_needed(covariance),
        scenarios_more_questions=None if noises is None else _needed(_with_more(covariance, noises, _MORE_QUESTIONS)),
        questions=None if noises is None else _questions(cube, covariance, noises),
    )


def _questions(cube: Cube, covariance: Floats, noises: Floats) -> int | None:
    """Questions, all benchmarks together, with which the scenarios there are would do; None: no number of them."""
    present = sum(cube.questions.values())
    for times in _TIMES:
        needed = _needed(_with_more(covariance, noises, times))
        if needed is not None and needed <= len(cube.scenarios):
            return math.ceil(present * times)
    return None


def _with_more(covariance: Floats, noises: Floats, times: float) -> Floats:
    """The covariance with so many times the questions, which leave that part of the noise."""
    return covariance - noises * (1 - 1 / times)


def _association(covariance: Floats) -> float:
    """Correlation of the two models' sum and difference: 0 when they move equally much."""
    one, other = max(covariance[0, 0], 0.0), max(covariance[1, 1], 0.0)
    scale = (one + other) ** 2 - 4 * covariance[0, 1] ** 2
    return float((other - one) / math.sqrt(scale)) if scale > 0 else 0.0


def spread_p(one: Floats, other: Floats) -> float | None:
    """p of the difference between two models' spreads over the same scenarios; None for fewer than three."""
    return _p(_association(np.cov(one, other)), len(one))


def _p(association: float, scenarios: int) -> float | None:
    degrees = scenarios - 2
    if degrees < 1:
        return None
    if abs(association) >= 1:
        return 0.0
    ratio = abs(association) * math.sqrt(degrees / (1 - association**2))
    return float(2 * stdtr(degrees, -ratio))


def _needed(covariance: Floats) -> int | None:
    """Scenarios for 80 % power at 5 %; None beyond what anybody would write."""
    association = _association(covariance)
    if association <= 0:
        return None
    if association >= 1:
        return 4
    wanted = ((ndtri(1 - ALPHA / 2) + ndtri(POWER)) / math.atanh(association)) ** 2 + 3
    return None if wanted > _MOST else math.ceil(wanted)
