"""Tests over the scenarios of an audit: are they alike, does one carry a fluctuation, do two fluctuations differ?

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
from skill_evaluator.audit.findings.results import FEWEST_SCENARIOS, Carried, Neutrality, Separation, Shift
from skill_evaluator.audit.statistics.grades import grades_of
from skill_evaluator.stats import POWER
from skill_evaluator.verdicts.decide.effects import ALPHA, adjusted

_MUCH_LESS = 2 / 3  # of a fluctuation: what may be left without the scenario that carries it
_BEYOND_NOISE = 3.0  # standard errors of a score
_MOST = 10_000  # scenarios; more is no plan
_MORE_QUESTIONS = 4  # times as many: half the noise
_TIMES = [1.1**power for power in range(49)]  # as many questions: up to a hundredfold


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


def carried_of(cube: Cube, noise: Floats | None, scale: Sequence[str]) -> list[Carried | None]:
    """Return for each model the scenario that carries its fluctuation; None where no single one does.

    One does if the fluctuation is at most two thirds without it, Grubbs' test for one outlier (1969,
    doi:10.1080/00401706.1969.10490657) says so beyond chance (q ≤ 0.05 over the models), and the score is farther from
    the others than three standard errors of its `noise`, [models, scenarios], where that is known.
    """
    overall = cube.overall
    models, scenarios = overall.shape
    if scenarios < FEWEST_SCENARIOS:
        return [None] * models
    away = np.abs(overall - overall.mean(axis=1, keepdims=True))
    farthest = away.argmax(axis=1)
    q_values = adjusted(p_values := [_grubbs_p(scores) for scores in overall])
    carried: list[Carried | None] = []
    for model, place in enumerate(farthest.tolist()):
        without = np.delete(overall, place, axis=1).std(axis=1, ddof=1)
        grades = grades_of(without, scale)
        error = 0.0 if noise is None else math.sqrt(noise[model, place])
        carries = (
            q_values[model] <= ALPHA
            and without[model] <= _MUCH_LESS * overall[model].std(ddof=1)
            and away[model, place] * scenarios / (scenarios - 1) > _BEYOND_NOISE * error
        )
        scenario = Carried(
            scenario=cube.scenarios[place],
            fluctuation=float(without[model]),
            grade=grades[model],
            p=p_values[model],
            q=q_values[model],
        )
        carried.append(scenario if carries else None)
    return carried


def _grubbs_p(scores: Floats) -> float:
    """Return the p of Grubbs' two-sided test that the value farthest from the mean is none of the others' kind.

    >>> round(_grubbs_p(np.array([245.1, 199.3, 199.5, 199.6, 199.8, 200.0, 200.2])), 4)
    0.0
    """
    spread, count = scores.std(ddof=1), len(scores)
    if spread == 0:
        return 1.0
    square = count * (float(np.abs(scores - scores.mean()).max()) / spread) ** 2
    left = (count - 1) ** 2 - square
    if left <= 0:  # all others are equal
        return 0.0
    return min(1.0, 2 * count * float(stdtr(count - 2, -math.sqrt(square * (count - 2) / left))))


def separations_of(cube: Cube, floor: Floats | None, grades: Sequence[str | None]) -> list[Separation]:
    """Compare the most with the least stable model, and the two models on either side of each border between grades."""
    order = [int(place) for place in np.argsort(cube.overall.std(axis=1), kind="stable")]
    if len(order) < 2:
        return []
    pairs = [(order[0], order[-1])]
    pairs += [(stable, fragile) for stable, fragile in pairwise(order) if grades[stable] != grades[fragile]]
    separations = []
    for stable, fragile in dict.fromkeys(pairs):
        first, second = cube.overall[stable], cube.overall[fragile]
        covariance = np.cov(first, second)
        noises = None if floor is None else np.diag(floor[[stable, fragile]])
        with_more = None if noises is None else _with_more(covariance, noises, _MORE_QUESTIONS)
        questions = None
        if noises is not None:
            for times in _TIMES:  # the fewest that would do with the scenarios there are
                needed = _needed(_with_more(covariance, noises, times))
                if needed is not None and needed <= len(cube.scenarios):
                    questions = math.ceil(sum(cube.questions.values()) * times)
                    break
        separation = Separation(
            stable=cube.models[stable],
            fragile=cube.models[fragile],
            p=spread_p(first, second),
            scenarios=_needed(covariance),
            scenarios_more_questions=None if with_more is None else _needed(with_more),
            questions=questions,
        )
        separations.append(separation)
    return separations


def spread_p(first: Floats, second: Floats) -> float | None:
    """Return p of the difference between two models' spreads over the same scenarios; None for fewer than three."""
    degrees = len(first) - 2
    if degrees < 1:
        return None
    association = _association(np.cov(first, second))
    if abs(association) >= 1:
        return 0.0
    ratio = abs(association) * math.sqrt(degrees / (1 - association**2))
    return float(2 * stdtr(degrees, -ratio))


def _with_more(covariance: Floats, noises: Floats, times: float) -> Floats:
    """Return the covariance with `times` as many questions, which divide the noise in it by as much."""
    return covariance - noises * (1 - 1 / times)


def _association(covariance: Floats) -> float:
    """Return the correlation of the two models' sum and difference: 0 when they move equally much."""
    first, second = max(covariance[0, 0], 0.0), max(covariance[1, 1], 0.0)
    scale = (first + second) ** 2 - 4 * covariance[0, 1] ** 2
    return float((second - first) / math.sqrt(scale)) if scale > 0 else 0.0


def _needed(covariance: Floats) -> int | None:
    """Return how many scenarios give 80 % power at 5 %; None beyond what anybody would write."""
    association = _association(covariance)
    if association <= 0:
        return None
    if association >= 1:
        return 4
    wanted = ((ndtri(1 - ALPHA / 2) + ndtri(POWER)) / math.atanh(association)) ** 2 + 3
    return None if wanted > _MOST else math.ceil(wanted)
