"""How uncertain ability and fluctuation are: the noise of single answers, and 95 % intervals.

An answer is y = μ + a_t + b_q + (ab)_tq + e_tqr: scenario, question, their interaction, replicate. Each scenario sees
the same questions, so b cancels in σ; what is left beside a is noise. On these questions it is e alone, beyond them it
is (ab) too. Estimated by the method of moments: Searle, Casella and McCulloch 1992, Variance Components, §4. Each
scenario has noise of its own, since a scenario that breaks a model breaks it on some questions only.

Intervals of σ are quantiles of the draws that `posterior` makes. `benchmarks/audit_truth.py` measures their coverage.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from skill_evaluator.audit.cube import Cube, Floats, Outcomes
from skill_evaluator.audit.request import Resampled
from skill_evaluator.audit.results import Interval
from skill_evaluator.audit.statistics.posterior import Posterior

_MOST_ADDED = 9.0  # beyond, the estimate is so near to nothing that its root says little
_TAIL = 0.025
_WIDEST = 50.0  # standard deviation of values between 0 and 100
_POOLED = 10  # questions that all scenarios' noise together counts for, beside those of the scenario itself
_LEAST_OWN = 0.1  # of the usual noise: less is luck


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Noise:
    """Variances in points²; None where single answers are not known or do not tell.

    `cells`: the variance of S(m, t) around its scenario's true value, by what is resampled, [models, scenarios];
    `floor`: its mean by model. `questions`: that of μ because the questions are a sample; `degrees`: the degrees of
    freedom it is known with.
    """

    cells: Floats | None
    questions: Floats | None
    degrees: int

    @property
    def floor(self) -> Floats | None:
        """The noise of a model's scores, mean over the scenarios."""
        return None if self.cells is None else np.asarray(self.cells.mean(axis=1))


def noise_of(cube: Cube, resampled: Resampled) -> Noise:
    """Estimate the noise in a cube's scores."""
    if cube.outcomes is None:
        return Noise(cells=None, questions=None, degrees=0)
    benchmarks = [cube.outcomes[name] for name in cube.benchmarks]
    noise_on = _replicate_noise if resampled == "scenarios" else _interaction_noise
    of_questions = [  # the variance of a benchmark's mean because its questions are a sample, by model
        np.asarray(outcomes.means.mean(axis=1).var(axis=1, ddof=1) / len(outcomes.questions))
        if len(outcomes.questions) > 1
        else None
        for outcomes in benchmarks
    ]
    return Noise(
        cells=_weighted([noise_on(outcomes) for outcomes in benchmarks], cube.weights),
        questions=_weighted(of_questions, cube.weights),
        degrees=sum(len(outcomes.questions) - 1 for outcomes in benchmarks),
    )


def corrected_fluctuation(variance: Floats, floor: Floats, degrees: int, resampled: Resampled) -> Floats:
    """Return σ without its noise: √(s² − floor), times what the root of an estimate lacks on average, to second order.

    With r = s² ÷ (s² − floor) that is 1 + r² ÷ 4ν beyond these scenarios; without noise it is the known 1 ÷ c₄ of a
    standard deviation (Kenney and Keeping 1951). Among these very scenarios it is 1 + (r² − 1) ÷ 4ν. The most is
    1 + 9 ÷ 4ν. 0 where the noise alone explains what was seen.
    """
    left = np.maximum(variance - floor, 0.0)
    ratio = np.divide(variance, left, out=np.zeros_like(left), where=left > 0)
    lacking = ratio**2 - (resampled == "cases")
    return np.asarray(np.sqrt(left) * (1 + np.clip(lacking, 0.0, _MOST_ADDED) / (4 * degrees)))


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
    """Return Var(e) ÷ replicates ÷ questions, [models, scenarios] in [0, 1]².

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
    total = of_mean.sum(axis=2) + single[:, None] * (~repeated).sum(axis=2)
    return _shrink(total / means.shape[2] ** 2, means.shape[2])


def _interaction_noise(outcomes: Outcomes) -> Floats | None:
    """Return (Var(ab) + Var(e) ÷ replicates) ÷ questions, [models, scenarios] in [0, 1]².

    From the squares of scenarios × questions. A residual holds a part of the other scenarios' noise, which is taken out
    again; two scenarios cannot be told apart, and share theirs.
    """
    means = outcomes.means
    _, scenarios, questions = means.shape
    if questions < 2 or scenarios < 2:
        return None
    residuals = means - means.mean(axis=2, keepdims=True) - means.mean(axis=1, keepdims=True)
    residuals += means.mean(axis=(1, 2), keepdims=True)
    squares = np.einsum("mtq,mtq->mt", residuals, residuals) / (questions - 1)
    mean = squares.sum(axis=1, keepdims=True) / (scenarios - 1)
    cells = (
        (squares - mean / scenarios) / (1 - 2 / scenarios) if scenarios > 2 else np.broadcast_to(mean, squares.shape)
    )
    return _shrink(cells / questions, questions)


def _shrink(cells: Floats, questions: int) -> Floats:
    """Move each scenario's noise towards the model's mean, the more the fewer questions it is known from."""
    usual = cells.mean(axis=1, keepdims=True)
    moved = ((questions - 1) * cells + _POOLED * usual) / (questions - 1 + _POOLED)
    return np.asarray(np.maximum(moved, _LEAST_OWN * usual))


def _weighted(by_benchmark: list[Floats | None], weights: Floats) -> Floats | None:
    """Return the variance of the weighted mean over benchmarks, in points²; None where one benchmark's is not known."""
    variances = [variance for variance in by_benchmark if variance is not None]
    if len(variances) < len(by_benchmark):
        return None
    return np.asarray(1e4 * np.tensordot(weights**2, np.stack(variances), axes=1))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Intervals:
    """By model: lower and upper bounds, [models, 2]; NaN where the sample tells nothing.

    `fluctuation` goes by what is resampled, `beyond` is that of other scenarios like these.
    """

    ability: Floats
    fluctuation: Floats
    beyond: Floats


def intervals_of(overall: Floats, noise: Noise, posterior: Posterior | None, resampled: Resampled) -> Intervals:
    """Return intervals for scores S(m, t), [models, scenarios] in per cent."""
    variance = overall.var(axis=1, ddof=1)
    beyond = here = np.full((len(overall), 2), np.nan)
    if posterior is not None:
        beyond = _quantiles(posterior.beyond, variance)
        if noise.floor is not None:  # among these scenarios, scores without any noise would have no uncertainty
            here = np.where(noise.floor[:, None] > 0, _quantiles(posterior.here, variance), np.nan)
    return Intervals(
        ability=_bound_ability(overall, noise, resampled),
        fluctuation=here if resampled == "cases" else beyond,
        beyond=beyond,
    )


def _quantiles(draws: Floats, variance: Floats) -> Floats:
    """Return the interval that holds 95 % of a model's draws, [models, 2]; NaN for a model that never moved."""
    highest = np.sqrt(np.maximum(variance, _WIDEST**2))[:, None]  # a sample's may be more, by n ÷ (n − 1)
    ends = np.minimum(np.quantile(draws, [_TAIL, 1 - _TAIL], axis=0).T, highest)
    return np.where(variance[:, None] > 0, ends, np.nan)


def bounds(intervals: Floats, model: int) -> Interval | None:
    """Return one model's interval; None where the sample tells nothing."""
    low, high = map(float, intervals[model])
    return None if np.isnan(low) or np.isnan(high) else (low, high)


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
