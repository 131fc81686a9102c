"""How much of a model's fluctuation is sampling noise: a random-effects model of its single answers.

An answer is y = μ + a_t + b_q + (ab)_tq + e_tqr: scenario, question, their interaction, replicate. Each scenario sees
the same questions, so b cancels in σ; what is left beside a is noise. On these questions it is e alone, beyond them it
is (ab) too. Estimated by the method of moments: Searle, Casella and McCulloch 1992, Variance Components, §4.
"""

from dataclasses import dataclass

import numpy as np

from skill_evaluator.audit.cube.cube import Cube, Floats, Outcomes
from skill_evaluator.audit.findings.results import Resampled

_MOST_ADDED = 9.0  # beyond, the estimate is so near to nothing that its root says little


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Noise:
    """Variances by model, in points². `floor`: that of S(m, t) around its scenario's true value, by what is resampled.

    `questions`: that of μ because the questions are a sample, with the degrees of freedom it is known with.
    """

    floor: Floats | None
    questions: Floats | None
    degrees: int


def noise_of(cube: Cube, resampled: Resampled) -> Noise:
    """The noise in a cube's scores; None where single answers are not known or do not tell."""
    if cube.outcomes is None:
        return Noise(floor=None, questions=None, degrees=0)
    by_name = [cube.outcomes[name] for name in cube.benchmarks]
    of_one = _replicate_noise if resampled == "scenarios" else _interaction_noise
    return Noise(
        floor=_weighted([of_one(one) for one in by_name], cube.weights),
        questions=_weighted([_question_variance(one) for one in by_name], cube.weights),
        degrees=sum(len(one.questions) - 1 for one in by_name),
    )


def corrected_fluctuation(variance: Floats, floor: Floats, degrees: int) -> Floats:
    """σ without its noise: √(s² − floor), times what the root of an estimate lacks on average, to second order.

    That is 1 + (s² ÷ (s² − floor))² ÷ 4ν, at most 1 + 9 ÷ 4ν; without noise it is the known 1 ÷ c₄ of a standard
    deviation (Kenney and Keeping 1951). 0 where the noise alone explains what was seen.
    """
    left = np.maximum(variance - floor, 0.0)
    ratio = np.divide(variance, left, out=np.zeros_like(left), where=left > 0)
    return np.asarray(np.sqrt(left) * (1 + np.minimum(ratio**2, _MOST_ADDED) / (4 * degrees)))


def most_noise(cube: Cube) -> Floats | None:
    """By model, the variance of S(m, t) if every answer were drawn anew: Σ w²·p(1 − p) ÷ Q, in points².

    Replicates of the same questions vary less, since a question that is always right adds nothing: an upper bound for
    scores of 0 and 1. None where the number of questions is not known.
    """
    if not all(name in cube.questions for name in cube.benchmarks):
        return None
    counts = np.array([cube.questions[name] for name in cube.benchmarks], dtype=np.float64)
    spread = (cube.scores * (100.0 - cube.scores)).mean(axis=1) / counts
    return np.asarray(spread @ cube.weights**2)


def _replicate_noise(outcomes: Outcomes) -> Floats | None:
    """Var(e) ÷ replicates, summed over the questions: by model, mean over scenarios, in [0, 1]². None for one each.

    A question that was measured once in a cell is taken to vary as the others do there.
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
    known = np.maximum(repeated.sum(axis=(1, 2)), 1)
    single = within.sum(axis=(1, 2)) / known  # for the variance of an answer that stands alone
    total = of_mean.sum(axis=(1, 2)) + single * (~repeated).sum(axis=(1, 2))
    cells = means.shape[1] * means.shape[2]
    return np.asarray(total / cells / means.shape[2])


def _interaction_noise(outcomes: Outcomes) -> Floats | None:
    """(Var(ab) + Var(e) ÷ replicates) ÷ questions by model: the residual mean square of scenarios × questions."""
    means = outcomes.means
    _, scenarios, questions = means.shape
    if questions < 2 or scenarios < 2:
        return None
    residuals = means - means.mean(axis=2, keepdims=True) - means.mean(axis=1, keepdims=True)
    residuals += means.mean(axis=(1, 2), keepdims=True)
    squares = np.einsum("mtq,mtq->m", residuals, residuals)
    return np.asarray(squares / ((scenarios - 1) * (questions - 1)) / questions)


def _question_variance(outcomes: Outcomes) -> Floats | None:
    """Variance of a benchmark's mean because its questions are a sample, by model."""
    if len(outcomes.questions) < 2:
        return None
    return np.asarray(outcomes.means.mean(axis=1).var(axis=1, ddof=1) / len(outcomes.questions))


def _weighted(by_benchmark: list[Floats | None], weights: Floats) -> Floats | None:
    known = [one for one in by_benchmark if one is not None]
    if len(known) < len(by_benchmark):
        return None
    return np.asarray(1e4 * (weights**2 @ np.stack(known)))
