"""Telling two models' fluctuations apart: the test of the difference seen, and how many scenarios it would take.

Both models meet the same scenarios, so their spreads are compared in pairs: Pitman 1939 and Morgan 1939
(doi:10.1093/biomet/31.1-2.9), the correlation of sum and difference; its power by Fisher's z.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.special import ndtri, stdtr

from skill_evaluator.audit.cube.cube import Cube, Floats
from skill_evaluator.audit.findings.results import Separation
from skill_evaluator.verdicts.effects import ALPHA, POWER

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
