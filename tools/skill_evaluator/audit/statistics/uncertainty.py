"""The noise of scores, and 95 % confidence intervals of ability and fluctuation.

An output's score is y = μ + a_t + b_q + (ab)_tq + e_tqr: scenario, question, their interaction, replicate. Every
scenario has the same questions, so b cancels in σ. Two kinds of noise remain in it:

* within a scenario, e: the model answers the same prompt differently; estimated from two or more replicates.
* for other questions like these, (ab) and e: the residual mean square of scenarios × questions ÷ questions. If only
  scores are known, its upper bound is binomial, as if all outputs were independent.

The first is reported and subtracted; the second gives the intervals. With variance v of the noise and T scenarios,
(T − 1)s² ÷ v has a noncentral χ² distribution with T − 1 degrees of freedom and noncentrality (T − 1)σ² ÷ v; the
interval of σ inverts it. Variance components: Searle, Casella and McCulloch 1992, §4. `benchmarks/audit_truth.py`
measures the coverage.
"""

from collections.abc import Callable

import numpy as np

from skill_evaluator.audit.cube import Cube, Floats, Outcomes
from skill_evaluator.audit.results import Interval
from skill_evaluator.stats import t_quantile

_TAIL = 0.025


def replicate_noise(cube: Cube) -> Floats | None:
    """Return the variance of S(m, t) within a scenario by model, in points². Return None if replicates are too few."""
    return _weighted_noise(cube, _replicate_noise)


def question_noise(cube: Cube) -> Floats | None:
    """Return the variance of S(m, t) for other questions by model, in points². Return None if outputs are not known."""
    return _weighted_noise(cube, _interaction_noise)


def binomial_noise(cube: Cube) -> Floats | None:
    """Return the variance of S(m, t) for independent outputs: Σ w²·p(1 − p) ÷ Q by model, in points².

    An upper bound for scores of 0 and 1. Return None if the number of questions is not known.
    """
    if not all(name in cube.questions for name in cube.benchmarks):
        return None
    counts = np.array([cube.questions[name] for name in cube.benchmarks], dtype=np.float64)
    spread = (cube.scores * (100.0 - cube.scores)).mean(axis=1) / counts
    return np.asarray(spread @ cube.weights**2)


def without_noise(variance: Floats, noise: Floats) -> Floats:
    """Return √(s² − noise) in points; 0 if the noise explains all of the variance."""
    return np.sqrt(np.maximum(variance - noise, 0.0))


def fluctuation_interval(variance: float, noise: float, scenarios: int) -> Interval | None:
    """Return the 95 % confidence interval of σ from the variance s² over scenarios. Return None if there is no noise.

    The interval always contains the measured s: an upper bound below it is replaced by s.

    >>> low, high = fluctuation_interval(4.0, 1.0, 10)
    >>> round(low, 2), round(high, 2)
    (1.04, 2.45)
    """
    from scipy.optimize import brentq
    from scipy.stats import ncx2

    if noise <= 0:
        return None
    degrees = scenarios - 1
    ratio = degrees * variance / noise

    def bound(probability: float) -> float:
        """Return the σ for which P(ratio ≤ measured ratio) equals `probability`."""
        largest = (np.sqrt(ratio) + 4.0) ** 2 + degrees
        if ncx2.cdf(ratio, degrees, 0.0) <= probability:
            return 0.0
        noncentrality = brentq(lambda value: ncx2.cdf(ratio, degrees, value) - probability, 0.0, largest)
        return float(np.sqrt(noncentrality * noise / degrees))

    return bound(1 - _TAIL), max(bound(_TAIL), float(np.sqrt(variance)))


def widest_interval(variance: float, noise: float, scenarios: int) -> Interval | None:
    """Return the union of the intervals of σ over noise variances up to `noise`. Return None if `noise` is 0."""
    levels = [fluctuation_interval(variance, noise * part, scenarios) for part in np.arange(1, 11) / 10]
    intervals = [interval for interval in levels if interval is not None]
    return (min(low for low, _ in intervals), max(high for _, high in intervals)) if intervals else None


def ability_interval(cube: Cube, model: int) -> Interval | None:
    """Return the 95 % confidence interval of μ for other questions like these.

    It is Student's t on the questions' mean scores if outputs are known, else binomial. Return None if there are fewer
    than two questions, their number is unknown, or the variance is 0.
    """
    ability = float(cube.overall[model].mean())
    if cube.outcomes is not None:
        means = [cube.outcomes[name].means[model].mean(axis=0) for name in cube.benchmarks]
        if min(map(len, means)) < 2:
            return None
        variance = 1e4 * sum(w**2 * mean.var(ddof=1) / len(mean) for w, mean in zip(cube.weights, means, strict=True))
        degrees = sum(len(mean) - 1 for mean in means)
    else:
        noise = binomial_noise(cube)
        if noise is None:
            return None
        variance, degrees = noise[model], sum(cube.questions[name] for name in cube.benchmarks) - 1
    if variance <= 0:
        return None
    margin = float(t_quantile(degrees, 1 - _TAIL) * np.sqrt(variance))
    return max(ability - margin, 0.0), min(ability + margin, 100.0)


def _weighted_noise(cube: Cube, noise_on: Callable[[Outcomes], Floats | None]) -> Floats | None:
    """Return the variance of the weighted mean over benchmarks, in points². Return None if a variance is unknown."""
    if cube.outcomes is None:
        return None
    variances = [noise_on(cube.outcomes[name]) for name in cube.benchmarks]
    known_variances = [variance for variance in variances if variance is not None]
    if len(known_variances) < len(variances):
        return None
    return np.asarray(1e4 * np.tensordot(cube.weights**2, np.stack(known_variances), axes=1))


def _replicate_noise(outcomes: Outcomes) -> Floats | None:
    """Return Var(e) ÷ replicates ÷ questions by model, in [0, 1]². Return None if a model has no repeated question."""
    scores = outcomes.scores
    measured = ~np.isnan(scores)
    counts = measured.sum(axis=3)
    repeated = counts > 1
    if not repeated.any(axis=(1, 2)).all():
        return None
    squares = np.where(measured, (scores - outcomes.means[..., None]) ** 2, 0.0).sum(axis=3, dtype=np.float64)
    variances = np.divide(squares, counts - 1, out=np.zeros(squares.shape), where=repeated)
    variance = variances.sum(axis=(1, 2)) / repeated.sum(axis=(1, 2))
    return np.asarray(variance * (1 / counts).mean(axis=(1, 2)) / len(outcomes.questions))


def _interaction_noise(outcomes: Outcomes) -> Floats | None:
    """Return the residual mean square of scenarios × questions ÷ questions by model, in [0, 1]²."""
    means = outcomes.means
    _, scenarios, questions = means.shape
    if questions < 2 or scenarios < 2:
        return None
    residuals = means - means.mean(axis=2, keepdims=True) - means.mean(axis=1, keepdims=True)
    residuals += means.mean(axis=(1, 2), keepdims=True)
    squares = (residuals**2).sum(axis=(1, 2)) / ((questions - 1) * (scenarios - 1))
    return np.asarray(squares / questions)
