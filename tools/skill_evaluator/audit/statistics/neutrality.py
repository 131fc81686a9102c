"""Whether the scenarios are alike in difficulty: their means over the models, a trend, and who shifts everybody.

A scenario that is harder for all models says little about any of them; it is named, and taken out (`figures.adjusted`).
"""

import numpy as np
from scipy import stats

from skill_evaluator.audit.cube.cube import Cube, Floats
from skill_evaluator.audit.findings.results import Neutrality, Shift
from skill_evaluator.verdicts.effects import ALPHA, adjusted


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
