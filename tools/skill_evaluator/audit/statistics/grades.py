"""Fluctuations and abilities of a cohort → credit grades, quadrants, and how probable each grade is.

Grades are quantiles of the fluctuation, quadrants a median split: Song et al. 2026, CreditAudit (arXiv 2602.02515).
Both are relative: they change with the cohort.

The odds come from a hierarchical Bayes model of the cohort's true fluctuations τ, given the measured variances s²:
log τ_m ~ N(a, b²) over the cohort, s²_m ~ (τ²_m + noise_m)·χ²_ν ÷ ν; a, b and all τ_m are integrated over on a grid
(Gelman et al. 2013, Bayesian Data Analysis, §5). Counting grades over resamples instead would count the noise twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skill_evaluator.audit.cube.cube import Floats
from skill_evaluator.audit.findings.results import Medians, Quadrant, Thresholds
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

DRAWS = 4000
_POINTS = 160  # of τ
_CENTRES = 32  # of a
_SPREADS = np.geomspace(0.03, 1.5, 20)  # of b: from 3 % between models to factors
_USUAL_SPREAD = 0.6  # b is half-normal with this scale: models seldom differ by more than a factor of three
_MOST_SHARED = 0.95
_FARTHEST = 4.0  # times the smallest and largest fluctuation seen


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
    shares = np.arange(1, bins) / bins
    return np.asarray(np.quantile(fluctuations, shares, axis=-1))


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


def degrees_apart(overall: Floats, degrees: float) -> float:
    """Return the degrees of freedom with which spreads are known against each other, for scores [models, scenarios].

    What shifts all models alike moves their variances together (by ρ², for normal effects), and grades go by comparison
    only. ρ²: the mean squared correlation between models, less the 1 ÷ (T − 1) that chance gives it.
    """
    away = overall - overall.mean(axis=1, keepdims=True)
    away = away[(away != 0).any(axis=1)]
    if len(away) < 2:
        return degrees
    correlations = np.corrcoef(away)[np.triu_indices(len(away), 1)]
    chance = 1 / (overall.shape[1] - 1)
    shared = (float((correlations**2).mean()) - chance) / (1 - chance) if chance < 1 else 0.0
    return degrees / (1 - min(max(shared, 0.0), _MOST_SHARED))


def grade_odds(variance: Floats, noise: Floats | None, degrees: float, grades: int, seed: int = 0) -> GradeOdds | None:
    """Return the odds of the grades for variances among scenarios, noise included; by model.

    None for one model, and where none moved.
    """
    if len(variance) < 2 or not (variance > 0).any():
        return None
    floor = np.zeros_like(variance) if noise is None else noise
    draws = _draw_fluctuations(variance, floor, degrees, np.random.default_rng(seed))
    places = places_of(draws, cuts_of(draws, grades))
    return GradeOdds(
        probabilities=np.stack([(places == place).mean(axis=0) for place in range(grades)], axis=1),
        most_stable=np.bincount(draws.argmin(axis=1), minlength=len(variance)) / len(draws),
    )


def _draw_fluctuations(variance: Floats, noise: Floats, degrees: float, random: np.random.Generator) -> Floats:
    """Draw true fluctuations from their posterior: [draws, models], on a logarithmic scale."""
    moved = np.sqrt(variance[variance > 0])
    low, high = np.log(moved.min() / _FARTHEST / 2), np.log(moved.max() * _FARTHEST)
    grid = np.linspace(low, high, _POINTS)
    scale = np.exp(2 * grid) + noise[:, None]
    log_likelihood = -0.5 * degrees * (np.log(scale) + variance[:, None] / scale)  # [models, points]
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))  # up to a factor for each model
    a, b = (axis.ravel() for axis in np.meshgrid(np.linspace(low, high, _CENTRES), _SPREADS, indexing="ij"))
    prior = np.exp(-0.5 * ((grid - a[:, None]) / b[:, None]) ** 2)
    prior /= prior.sum(axis=1, keepdims=True)
    width = np.gradient(_SPREADS)
    log_weight = np.log(np.tile(width * np.exp(-0.5 * (_SPREADS / _USUAL_SPREAD) ** 2), _CENTRES))
    log_weight += np.log(np.maximum(prior @ likelihood.T, 1e-300)).sum(axis=1)
    weight = np.exp(log_weight - log_weight.max())
    chosen = random.multinomial(DRAWS, np.asarray(weight / weight.sum()))
    drawn = []
    for place in np.flatnonzero(chosen):  # the a and b that were drawn; then a point of τ for each model
        cumulative = np.cumsum(prior[place] * likelihood, axis=1)
        wanted = random.random((chosen[place], len(variance), 1)) * cumulative[None, :, -1:]
        drawn.append((cumulative[None] < wanted).sum(axis=2))
    step = grid[1] - grid[0]
    return np.asarray(grid[np.concatenate(drawn)] + step * (random.random((DRAWS, len(variance))) - 0.5))
