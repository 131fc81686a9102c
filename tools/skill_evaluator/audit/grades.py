"""Fluctuations and abilities of a cohort → credit grades by quantile, and quadrants by median split.

Source: Song et al. 2026, CreditAudit (arXiv 2602.02515). Grades are relative: they change with the cohort.
"""

from collections.abc import Sequence

import numpy as np

from skill_evaluator.audit.cube import Floats
from skill_evaluator.audit.results import Quadrant
from skill_evaluator.errors import AuditError

QUARTERS = ("AAA", "AA", "A", "BBB")
_FINER = ("AAA", "AA+", "AA", "AA-", "A+", "A", "A-", "BBB")
SCALES = {len(scale): scale for scale in (QUARTERS, _FINER)}
BEST_FIRST = {grade: place for place, grade in enumerate(_FINER)}  # of either scale
FINER_NEEDS = 20  # models, so that a bin holds more than two
_SAME = 1e-9  # points; two fluctuations that differ by less are one


def scale_of(bins: int, models: int) -> tuple[str, ...]:
    """The grades of a scale, best first; raises AuditError for a scale there is not, or too few models for it."""
    if bins not in SCALES:
        raise AuditError(f"--grades {bins}: there are scales of {' and '.join(map(str, SCALES))} grades")
    if bins > len(QUARTERS) and models < FINER_NEEDS:
        raise AuditError(f"--grades {bins} needs at least {FINER_NEEDS} models; there are {models}")
    return SCALES[bins]


def cuts_of(fluctuations: Floats, bins: int = len(QUARTERS)) -> Floats:
    """Upper bounds of all grades but the last: quantiles by linear interpolation, over the last axis.

    Hyndman and Fan 1996, type 7 (doi:10.2307/2684934). [..., models] → [bins − 1, ...].

    >>> cuts_of(np.array([0.63, 0.72, 1.24, 1.30, 1.43])).round(2).tolist()
    [0.72, 1.24, 1.3]
    """
    shares = np.arange(1, bins) / bins
    return np.asarray(np.quantile(fluctuations, shares, axis=-1))


def places_of(fluctuations: Floats, cuts: Floats) -> Floats:
    """By model the place of its grade on the scale, 0 is best; a fluctuation equal to a bound is within it.

    `fluctuations` [..., models], `cuts` [grades − 1, ...] → integers [..., models].
    """
    return np.asarray((fluctuations[None] > cuts[..., None] + _SAME).sum(axis=0))


def grades_of(fluctuations: Floats, grades: Sequence[str] = QUARTERS) -> list[str | None]:
    """The grade of each model; None where there is nobody to compare it with.

    >>> grades_of(np.array([0.63, 1.24, 1.43, 2.63]))
    ['AAA', 'AA', 'A', 'BBB']
    """
    if len(fluctuations) < 2:
        return [None] * len(fluctuations)
    return [grades[place] for place in places_of(fluctuations, cuts_of(fluctuations, len(grades)))]


def quadrants_of(abilities: Floats, fluctuations: Floats) -> list[Quadrant | None]:
    """Where each model stands against the cohort's medians; the median itself is able, and stable.

    >>> quadrants_of(np.array([70.0, 80.0, 50.0, 40.0]), np.array([0.6, 2.6, 1.3, 2.1]))
    ['safe default', 'strong but scenario-fragile', 'predictable baseline', 'avoid']
    """
    if len(fluctuations) < 2:
        return [None] * len(fluctuations)
    able = abilities >= np.median(abilities) - _SAME
    stable = fluctuations <= np.median(fluctuations) + _SAME
    return [_quadrant(bool(one), bool(other)) for one, other in zip(able, stable, strict=True)]


def _quadrant(able: bool, stable: bool) -> Quadrant:
    if able:
        return "safe default" if stable else "strong but scenario-fragile"
    return "predictable baseline" if stable else "avoid"
