"""95 % intervals of ability and fluctuation: over other scenarios, other questions (cases), or both.

Percentiles of resampled scenarios cover the fluctuation of ten scenarios 79 % of the time where they say 95: a resample
of so few repeats some and misses others. So the random-effects model's own distributions are inverted, which is what
its parametric bootstrap tends to. `benchmarks/audit_truth.py` measures the coverage of both.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri, chndtr, stdtrit

from skill_evaluator.audit.cube.cube import Floats
from skill_evaluator.audit.findings.results import Interval, Resampled
from skill_evaluator.audit.statistics.noise import Noise

_TAIL = 0.025
_LEAST_POWER = 0.16
_STEPS = 60  # of bisection
_WIDEST = 50.0  # standard deviation of values between 0 and 100


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Intervals:
    """By model: lower and upper bounds, [models, 2]; NaN where the sample tells nothing."""

    ability: Floats
    fluctuation: Floats
    corrected: Floats | None


def intervals_of(overall: Floats, noise: Noise, resampled: Resampled) -> Intervals:
    """Intervals for scores S(m, t), [models, scenarios] in per cent; those of corrected σ where the noise is known."""
    variance, floor = overall.var(axis=1, ddof=1), noise.floor
    corrected: Floats | None
    if resampled == "cases":
        if floor is None:
            return _nothing(len(overall))
        degrees = overall.shape[1] - 1
        corrected = _with_scenarios_fixed(variance, _plausible(variance, floor, degrees), floor, degrees)
        spread = corrected + floor[:, None]
    else:
        matched = matched_degrees(overall)
        spread, corrected = _spread(variance, variance, matched), None
        if floor is not None:
            wide = _spread(variance, _plausible(variance, floor, matched), matched)
            corrected = np.maximum(wide - floor[:, None], 0.0)
    return Intervals(
        ability=_ability(overall, noise, resampled),
        fluctuation=np.sqrt(spread),
        corrected=None if corrected is None else np.sqrt(corrected),
    )


def bounds(intervals: Floats, model: int) -> Interval | None:
    """One model's interval; None where there is none."""
    low, high = map(float, intervals[model])
    return None if np.isnan(low) or np.isnan(high) else (low, high)


def matched_degrees(overall: Floats) -> float:
    """Degrees of freedom of the χ² that the cohort's variances follow: T − 1, or fewer if its tails are heavy.

    Matched to the kurtosis of all models' deviations together: Shoemaker 2003 (doi:10.1198/0003130032198).
    """
    scenarios = overall.shape[1]
    variance: Floats = overall.var(axis=1, keepdims=True)
    moving = variance[:, 0] > 0
    if not moving.any():
        return float(scenarios - 1)
    standard = (overall[moving] - overall[moving].mean(axis=1, keepdims=True)) / np.sqrt(variance[moving])
    kurtosis = float((standard**4).mean()) * (scenarios + 1) / (scenarios - 1)  # unbiased for normal deviations
    return float(2 * scenarios / (max(kurtosis - 3.0, 0.0) + 2 * scenarios / (scenarios - 1)))


def _plausible(variance: Floats, noise: Floats, degrees: float) -> Floats:
    """The variance seen, or the 16 % quantile of what noise alone gives: less is luck, and no proof of stillness.

    A bound on it is never nothing. Cowan, Cranmer, Gross and Vitells 2011, power-constrained limits (arXiv:1105.3166).
    """
    return np.asarray(np.maximum(variance, noise * float(chdtri(degrees, 1 - _LEAST_POWER)) / degrees))


def _spread(variance: Floats, most: Floats, degrees: float) -> Floats:
    """Of the variance among scenarios, noise included: s²·ν ÷ χ²; the upper bound is of `most`.

    A model that never moved tells nothing.
    """
    low, high = degrees / chdtri(degrees, [_TAIL, 1 - _TAIL])
    highest = np.maximum(variance, _WIDEST**2)[:, None]  # a sample's may be more, by n ÷ (n − 1)
    bounds = np.minimum(np.stack([variance * low, most * high], axis=1), highest)
    return np.where(variance[:, None] > 0, bounds, np.nan)


def _with_scenarios_fixed(variance: Floats, most: Floats, noise: Floats, degrees: int) -> Floats:
    """Of the variance among these very scenarios: s²·ν ÷ noise is noncentral χ², solved for its noncentrality."""
    least, largest = (
        np.divide(one * degrees, noise, out=np.full(len(noise), np.nan), where=noise > 0) for one in (variance, most)
    )
    bounds = np.stack([_noncentrality(least, degrees, 1 - _TAIL), _noncentrality(largest, degrees, _TAIL)], axis=1)
    return np.asarray(bounds * noise[:, None] / degrees)


def _noncentrality(ratio: Floats, degrees: int, share: float) -> Floats:
    """The noncentrality under which a share of all values is below the ratio; 0 if even that is too much."""
    low, high = np.zeros_like(ratio), 4 * np.nan_to_num(ratio) + 100.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        above = chndtr(ratio, degrees, middle) > share
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.where(np.isnan(ratio), np.nan, low)


def _ability(overall: Floats, noise: Noise, resampled: Resampled) -> Floats:
    """Student's t with the variances that matter added up, and Satterthwaite's degrees of freedom (1946)."""
    scenarios = overall.shape[1]
    over_scenarios = overall.var(axis=1, ddof=1) / scenarios
    questions = np.zeros(len(overall)) if noise.questions is None else noise.questions
    if resampled == "scenarios":
        error, degrees = over_scenarios, np.full(len(overall), scenarios - 1.0)
    elif resampled == "cases":
        error, degrees = questions, np.full(len(overall), float(max(noise.degrees, 1)))
    else:
        shared = 0.0 if noise.floor is None else noise.floor / scenarios  # which both parts hold
        error = np.maximum(over_scenarios + questions - shared, np.maximum(over_scenarios, questions))
        parts = over_scenarios**2 / (scenarios - 1) + questions**2 / max(noise.degrees, 1)
        degrees = np.divide((over_scenarios + questions) ** 2, parts, out=np.ones(len(parts)), where=parts > 0)
    margin = np.where(error > 0, stdtrit(degrees, 1 - _TAIL) * np.sqrt(error), np.nan)
    centre = overall.mean(axis=1)
    return np.stack([np.maximum(centre - margin, 0.0), np.minimum(centre + margin, 100.0)], axis=1)


def _nothing(models: int) -> Intervals:
    empty = np.full((models, 2), np.nan)
    return Intervals(ability=empty, fluctuation=empty, corrected=None)
