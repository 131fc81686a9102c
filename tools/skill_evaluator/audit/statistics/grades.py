"""Credit grades and quadrants of a cohort.

Grades are quantiles of the fluctuation, quadrants a median split: Song et al. 2026, CreditAudit (arXiv 2602.02515).
Both are relative to the cohort.
"""

from collections.abc import Sequence

import numpy as np

from skill_evaluator.audit.cube import Floats
from skill_evaluator.audit.results import Interval, Medians, Quadrant, Thresholds
from skill_evaluator.errors import AuditError

QUARTERS = ("AAA", "AA", "A", "BBB")
_FINER = ("AAA", "AA+", "AA", "AA-", "A+", "A", "A-", "BBB")
SCALES = {len(scale): scale for scale in (QUARTERS, _FINER)}
GRADE_ORDER = {grade: place for place, grade in enumerate(_FINER)}  # the grades of both scales, best first
MIN_MODELS_FOR_FINER_GRADES = 20  # gives each grade more than two models
_TOLERANCE = 1e-9  # points; rounding errors do not change a grade
_QUADRANTS: dict[tuple[bool, bool], Quadrant] = {  # by able, stable
    (True, True): "safe default",
    (True, False): "strong but scenario-fragile",
    (False, True): "predictable baseline",
    (False, False): "avoid",
}


def scale_of(bins: int, models: int) -> tuple[str, ...]:
    """Return the grades of a scale, best first; raise AuditError for an unknown scale or too few models."""
    if bins not in SCALES:
        raise AuditError(f"--grades {bins}: expected {' or '.join(map(str, SCALES))}")
    if bins > len(QUARTERS) and models < MIN_MODELS_FOR_FINER_GRADES:
        raise AuditError(f"--grades {bins} requires at least {MIN_MODELS_FOR_FINER_GRADES} models; found {models}")
    return SCALES[bins]


def upper_bounds(fluctuations: Floats, bins: int = len(QUARTERS)) -> Floats:
    """Return the upper bound of each grade except the last, as quantiles by linear interpolation.

    Hyndman and Fan 1996, type 7 (doi:10.2307/2684934).

    >>> upper_bounds(np.array([0.63, 0.72, 1.24, 1.30, 1.43])).round(2).tolist()
    [0.72, 1.24, 1.3]
    """
    return np.asarray(np.quantile(fluctuations, np.arange(1, bins) / bins))


def grade_indices(fluctuations: Floats, cuts: Floats) -> list[int]:
    """Return the index of each fluctuation's grade, 0 for the best. A bound belongs to the better grade."""
    return [int((fluctuation > cuts + _TOLERANCE).sum()) for fluctuation in fluctuations]


def grades_of(fluctuations: Floats, grades: Sequence[str] = QUARTERS) -> list[str | None]:
    """Return the grade of each model, or None if there is only one model.

    >>> grades_of(np.array([0.63, 1.24, 1.43, 2.63]))
    ['AAA', 'AA', 'A', 'BBB']
    """
    if len(fluctuations) < 2:
        return [None] * len(fluctuations)
    return [grades[index] for index in grade_indices(fluctuations, upper_bounds(fluctuations, len(grades)))]


def is_settled(fluctuation: float, interval: Interval, noise: float, cuts: Floats) -> bool:
    """Return whether a grade is settled: no threshold lies within the interval of σ.

    A grade is also not settled if noise alone (a standard deviation) would exceed the grade's upper threshold, since
    the thresholds are measured with their noise.

    >>> is_settled(1.0, (0.5, 1.2), 0.4, np.array([1.3, 1.6, 2.0])), is_settled(1.0, (0.5, 1.4), 0.4, np.array([1.3]))
    (True, False)
    """
    low, measured, high = grade_indices(np.array([interval[0], fluctuation, interval[1]]), cuts)
    within_noise = measured < len(cuts) and noise > cuts[measured]
    return low == measured == high and not within_noise


def quadrants_of(abilities: Floats, fluctuations: Floats) -> list[Quadrant | None]:
    """Return each model's quadrant by the cohort's medians; a model at a median is able, or stable.

    >>> quadrants_of(np.array([70.0, 80.0, 50.0, 40.0]), np.array([0.6, 2.6, 1.3, 2.1]))
    ['safe default', 'strong but scenario-fragile', 'predictable baseline', 'avoid']
    """
    medians = medians_of(abilities, fluctuations)
    if medians is None:
        return [None] * len(fluctuations)
    able = abilities >= medians.ability - _TOLERANCE
    stable = fluctuations <= medians.fluctuation + _TOLERANCE
    return [_QUADRANTS[halves] for halves in zip(able.tolist(), stable.tolist(), strict=True)]


def thresholds_of(fluctuations: Floats, scale: Sequence[str]) -> Thresholds | None:
    """Return the quartiles of the fluctuations, and all bounds of a finer scale. Return None for a single model."""
    if len(fluctuations) < 2:
        return None
    q25, q50, q75 = upper_bounds(fluctuations).tolist()
    cuts = dict(zip(scale[:-1], upper_bounds(fluctuations, len(scale)).tolist(), strict=True))
    return Thresholds(q25=q25, q50=q50, q75=q75, cuts=cuts if len(scale) > len(QUARTERS) else {})


def medians_of(abilities: Floats, fluctuations: Floats) -> Medians | None:
    """Return the medians that separate the quadrants. Return None for a single model."""
    if len(fluctuations) < 2:
        return None
    return Medians(ability=float(np.median(abilities)), fluctuation=float(np.median(fluctuations)))
