"""Fluctuations and abilities of a cohort → credit grades, quadrants, and how probable each grade is.

Grades are quantiles of the fluctuation, quadrants a median split: Song et al. 2026, CreditAudit (arXiv 2602.02515).
Both are relative: they change with the cohort.

The odds are the grades of the draws that `posterior` makes of the true fluctuations, each draw a whole cohort. Counting
grades over resamples of the scores instead would count the noise twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skill_evaluator.audit.cube import Floats
from skill_evaluator.audit.results import Medians, Quadrant, Thresholds
from skill_evaluator.errors import AuditError

QUARTERS = ("AAA", "AA", "A", "BBB")
_FINER = ("AAA", "AA+", "AA", "AA-", "A+", "A", "A-", "BBB")
SCALES = {len(scale): scale for scale in (QUARTERS, _FINER)}
BEST_FIRST = {grade: place for place, grade in enumerate(_FINER)}  # of either scale
FINER_NEEDS = 20  # models, so that a bin holds more than two
_SAME = 1e-9  # points; two fluctuations that differ by less are one
_QUADRANTS: dict[tuple[bool, bool], Quadrant] = {  # by able, stable
    (True, True): "safe default",
    (True, False): "strong but scenario-fragile",
    (False, True): "predictable baseline",
    (False, False): "avoid",
}


def scale_of(bins: int, models: int) -> tuple[str, ...]:
    """Return the grades of a scale, best first; raise AuditError for an unknown scale or too few models for it."""
    if bins not in SCALES:
        raise AuditError(f"--grades {bins}: there are scales of {' and '.join(map(str, SCALES))} grades")
    if bins > len(QUARTERS) and models < FINER_NEEDS:
        raise AuditError(f"--grades {bins} needs at least {FINER_NEEDS} models; there are {models}")
    return SCALES[bins]


def cuts_of(fluctuations: Floats, bins: int = len(QUARTERS)) -> Floats:
    """Return the upper bounds of all grades but the last: quantiles by linear interpolation, over the last axis.

    Hyndman and Fan 1996, type 7 (doi:10.2307/2684934). [..., models] → [bins − 1, ...].

    >>> cuts_of(np.array([0.63, 0.72, 1.24, 1.30, 1.43])).round(2).tolist()
    [0.72, 1.24, 1.3]
    """
    return np.asarray(np.quantile(fluctuations, np.arange(1, bins) / bins, axis=-1))


def places_of(fluctuations: Floats, cuts: Floats) -> Floats:
    """Return the place of each model's grade on the scale, 0 is best; a fluctuation equal to a bound is within it.

    `fluctuations` [..., models], `cuts` [grades − 1, ...] → integers [..., models].
    """
    return np.asarray((fluctuations[None] > cuts[..., None] + _SAME).sum(axis=0))


def grades_of(fluctuations: Floats, grades: Sequence[str] = QUARTERS) -> list[str | None]:
    """Return the grade of each model; None for a model alone, which has no cohort to be compared with.

    >>> grades_of(np.array([0.63, 1.24, 1.43, 2.63]))
    ['AAA', 'AA', 'A', 'BBB']
    """
    if len(fluctuations) < 2:
        return [None] * len(fluctuations)
    return [grades[place] for place in places_of(fluctuations, cuts_of(fluctuations, len(grades)))]


def quadrants_of(abilities: Floats, fluctuations: Floats) -> list[Quadrant | None]:
    """Return each model's quadrant by the cohort's medians; a model at a median is able, or stable.

    >>> quadrants_of(np.array([70.0, 80.0, 50.0, 40.0]), np.array([0.6, 2.6, 1.3, 2.1]))
    ['safe default', 'strong but scenario-fragile', 'predictable baseline', 'avoid']
    """
    medians = medians_of(abilities, fluctuations)
    if medians is None:
        return [None] * len(fluctuations)
    able = abilities >= medians.ability - _SAME
    stable = fluctuations <= medians.fluctuation + _SAME
    return [_QUADRANTS[places] for places in zip(able.tolist(), stable.tolist(), strict=True)]


def thresholds_of(fluctuations: Floats, scale: Sequence[str]) -> Thresholds | None:
    """Return the quartiles of the fluctuations, and all bounds of a finer scale; None for a model alone."""
    if len(fluctuations) < 2:
        return None
    q25, q50, q75 = cuts_of(fluctuations).tolist()
    cuts = dict(zip(scale[:-1], cuts_of(fluctuations, len(scale)).tolist(), strict=True))
    return Thresholds(q25=q25, q50=q50, q75=q75, cuts=cuts if len(scale) > len(QUARTERS) else {})


def medians_of(abilities: Floats, fluctuations: Floats) -> Medians | None:
    """Return the cohort's medians, where the quadrants meet; None for a model alone."""
    if len(fluctuations) < 2:
        return None
    return Medians(ability=float(np.median(abilities)), fluctuation=float(np.median(fluctuations)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradeOdds:
    """`probabilities`: [models, grades], rows sum to 1. `most_stable`: by model, that it moves least of all."""

    probabilities: Floats
    most_stable: Floats

    def by_model(self, grades: Sequence[str]) -> list[dict[str, float]]:
        """Return each model's odds of the grades."""
        return [dict(zip(grades, row, strict=True)) for row in self.probabilities.tolist()]


def grade_odds(draws: Floats, grades: int) -> GradeOdds | None:
    """Return the odds of the grades over draws of the true fluctuations, [draws, models]; None for a model alone."""
    models = draws.shape[1]
    if models < 2:
        return None
    places = places_of(draws, cuts_of(draws, grades))
    return GradeOdds(
        probabilities=np.stack([(places == place).mean(axis=0) for place in range(grades)], axis=1),
        most_stable=np.bincount(draws.argmin(axis=1), minlength=models) / len(draws),
    )
