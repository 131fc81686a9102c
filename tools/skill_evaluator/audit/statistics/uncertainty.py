"""How uncertain ability and fluctuation are: the noise of single answers, and 95 % intervals.

An answer is y = μ + a_t + b_q + (ab)_tq + e_tqr: scenario, question, their interaction, replicate. Each scenario sees
the same questions, so b cancels in σ; what is left beside a is noise. On these questions it is e alone, beyond them it
is (ab) too. Estimated by the method of moments: Searle, Casella and McCulloch 1992, Variance Components, §4.

Percentiles of resampled scenarios cover the fluctuation of ten scenarios 79 % of the time where they say 95: a resample
of so few repeats some and misses others. So the random-effects model's own distributions are inverted, which is what
its parametric bootstrap tends to. `benchmarks/audit_truth.py` measures the coverage of both.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri, chndtr, stdtrit

from skill_evaluator.audit.cube.cube import Cube, Floats, Outcomes
from skill_evaluator.audit.findings.results import Interval, Resampled

_MOST_ADDED = 9.0  # beyond, the estimate is so near to nothing that its root says little
_TAIL = 0.025
_LEAST_POWER = 0.16
_STEPS = 60  # of bisection
_WIDEST = 50.0  # standard deviation of values between 0 and 100


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Noise:
    """Variances by model, in points²; None where single answers are not known or do not tell.

    `floor`: the variance of S(m, t) around its scenario's true value, by what is resampled. `questions`: that of μ
    because the questions are a sample; `degrees`: the degrees of freedom it is known with.
    """

    floor: Floats | None
    questions: Floats | None
    degrees: int


def noise_of(cube: Cube, resampled: Resampled) -> Noise:
    """Estimate the noise in a cube's scores."""
    if cube.outcomes is None:
        return Noise(floor=None, questions=None, degrees=0)
    benchmarks = [cube.outcomes[name] for name in cube.benchmarks]
    noise_on = _replicate_noise if resampled == "scenarios" else _interaction_noise
    of_questions = [  # the variance of a benchmark's mean because its questions are a sample, by model
        np.asarray(outcomes.means.mean(axis=1).var(axis=1, ddof=1) / len(outcomes.questions))
        if len(outcomes.questions) > 1
        else None
        for outcomes in benchmarks
    ]
    return Noise(
        floor=_weighted([noise_on(outcomes) for outcomes in benchmarks], cube.weights),
        questions=_weighted(of_questions, cube.weights),
        degrees=sum(len(outcomes.questions) - 1 for outcomes in benchmarks),
    )


def corrected_fluctuation(variance: Floats, floor: Floats, degrees: int) -> Floats:
    """Return σ without its noise: √(s² − floor), times what the root of an estimate lacks on average, to second order.

    That is 1 + (s² ÷ (s² − floor))² ÷ 4ν, at most 1 + 9 ÷ 4ν; without noise it is the known 1 ÷ c₄ of a standard
    deviation (Kenney and Keeping 1951). 0 where the noise alone explains what was seen.
    """
    left = np.maximum(variance - floor, 0.0)
    ratio = np.divide(variance, left, out=np.zeros_like(left), where=left > 0)
    return np.asarray(np.sqrt(left) * (1 + np.minimum(ratio**2, _MOST_ADDED) / (4 * degrees)))


def most_noise(cube: Cube) -> Floats | None:
    """Return the variance of S(m, t) if every answer were drawn anew, by model: Σ w²·p(1 − p) ÷ Q, in points².

    Replicates of the same questions vary less, since a question that is always right adds nothing: an upper bound for
    scores of 0 and 1. None where the number of questions is not known.
    """
    if not all(name in cube.questions for name in cube.benchmarks):
        return None
    counts = np.array([cube.questions[name] for name in cube.benchmarks], dtype=np.float64)
    spread = (cube.scores * (100.0 - cube.scores)).mean(axis=1) / counts
    return np.asarray(spread @ cube.weights**2)


def _replicate_noise(outcomes: Outcomes) -> Floats | None:
    """Return Var(e) ÷ replicates ÷ questions: by model, mean over scenarios, in [0, 1]².

    A question that was measured once is taken to vary as the model's others do; None where a model has no others.
    """
    scores = outcomes.scores
    if scores.shape[3] < 2:
        return None
    measured = ~np.isnan(scores)
    counts = measured.sum(axis=3)
    means = outcomes.means
    squares = np.where(measured, (scores - means[..., None]) ** 2, 0.0).sum(axis=3, dtype=np.float64)
    repeated = counts > 1
    if not repeated.any(axis=(1, 2)).all():
        return None
    within = np.divide(squares, counts - 1, out=np.zeros(squares.shape), where=repeated)
    of_mean = np.where(repeated, within / np.maximum(counts, 1), 0.0)
    single = within.sum(axis=(1, 2)) / repeated.sum(axis=(1, 2))  # for the variance of an answer that stands alone
    total = of_mean.sum(axis=(1, 2)) + single * (~repeated).sum(axis=(1, 2))
    cells = means.shape[1] * means.shape[2]
    return np.asarray(total / cells / means.shape[2])


def _interaction_noise(outcomes: Outcomes) -> Floats | None:
    """Return (Var(ab) + Var(e) ÷ replicates) ÷ questions by model: the mean square of scenarios × questions."""
    means = outcomes.means
    _, scenarios, questions = means.shape
    if questions < 2 or scenarios < 2:
        return None
    residuals = means - means.mean(axis=2, keepdims=True) - means.mean(axis=1, keepdims=True)
    residuals += means.mean(axis=(1, 2), keepdims=True)
    squares = np.einsum("mtq,mtq->m", residuals, residuals)
    return np.asarray(squares / ((scenarios - 1) * (questions - 1)) / questions)


def _weighted(by_benchmark: list[Floats | None], weights: Floats) -> Floats | None:
    """Return the variance of the weighted mean over benchmarks, in points²; None where one benchmark's is not known."""
    variances = [variance for variance in by_benchmark if variance is not None]
    if len(variances) < len(by_benchmark):
        return None
    return np.asarray(1e4 * (weights**2 @ np.stack(variances)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Intervals:
    """By model: lower and upper bounds, [models, 2]; NaN where the sample tells nothing."""

    ability: Floats
    fluctuation: Floats
    corrected: Floats | None


def intervals_of(overall: Floats, noise: Noise, resampled: Resampled) -> Intervals:
    """Return intervals for scores S(m, t), [models, scenarios] in per cent; of corrected σ where the noise is known."""
    variance, floor = overall.var(axis=1, ddof=1), noise.floor
    corrected: Floats | None
    if resampled == "cases":
        if floor is None:
            empty = np.full((len(overall), 2), np.nan)
            return Intervals(ability=empty, fluctuation=empty, corrected=None)
        degrees = overall.shape[1] - 1
        # among these very scenarios s²·ν ÷ noise is noncentral χ², solved for its noncentrality
        least, largest = (
            np.divide(value * degrees, floor, out=np.full(len(floor), np.nan), where=floor > 0)
            for value in (variance, _plausible(variance, floor, degrees))
        )
        ends = np.stack([_noncentrality(least, degrees, 1 - _TAIL), _noncentrality(largest, degrees, _TAIL)], axis=1)
        corrected = np.asarray(ends * floor[:, None] / degrees)
        spread = corrected + floor[:, None]
    else:
        matched = matched_degrees(overall)
        spread, corrected = _bound_spread(variance, variance, matched), None
        if floor is not None:
            wide = _bound_spread(variance, _plausible(variance, floor, matched), matched)
            corrected = np.maximum(wide - floor[:, None], 0.0)
    return Intervals(
        ability=_bound_ability(overall, noise, resampled),
        fluctuation=np.sqrt(spread),
        corrected=None if corrected is None else np.sqrt(corrected),
    )


def bounds(intervals: Floats, model: int) -> Interval | None:
    """Return one model's interval; None where the sample tells nothing."""
    low, high = map(float, intervals[model])
    return None if np.isnan(low) or np.isnan(high) else (low, high)


def matched_degrees(overall: Floats) -> float:
    """Return degrees of freedom of the χ² that the cohort's variances follow: T − 1, or fewer if its tails are heavy.

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
    """Return the variance seen, or the 16 % quantile of what noise alone gives: less is luck, no proof of stillness.

    So no upper bound is 0. Cowan, Cranmer, Gross and Vitells 2011, power-constrained limits (arXiv:1105.3166).
    """
    return np.asarray(np.maximum(variance, noise * float(chdtri(degrees, 1 - _LEAST_POWER)) / degrees))


def _bound_spread(variance: Floats, most: Floats, degrees: float) -> Floats:
    """Bound the variance among scenarios, noise included: s²·ν ÷ χ², [models, 2]; the upper bound is that of `most`.

    NaN for a model that never moved.
    """
    low, high = degrees / chdtri(degrees, [_TAIL, 1 - _TAIL])
    highest = np.maximum(variance, _WIDEST**2)[:, None]  # a sample's may be more, by n ÷ (n − 1)
    ends = np.minimum(np.stack([variance * low, most * high], axis=1), highest)
    return np.where(variance[:, None] > 0, ends, np.nan)


def _noncentrality(ratio: Floats, degrees: int, share: float) -> Floats:
    """Return the noncentrality with which a share of all values is below the ratio; 0 if there is none."""
    low, high = np.zeros_like(ratio), 4 * np.nan_to_num(ratio) + 100.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        above = chndtr(ratio, degrees, middle) > share
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.where(np.isnan(ratio), np.nan, low)


def _bound_ability(overall: Floats, noise: Noise, resampled: Resampled) -> Floats:
    """Bound μ by Student's t: the variances that matter added up, Satterthwaite's degrees of freedom (1946)."""
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
