"""The statistics of an audit: grades and quadrants, the neutrality of the scenarios, noise and confidence intervals.

Grades are quantiles of the fluctuation and quadrants a median split, both relative to the cohort: Song et al. 2026,
CreditAudit (arXiv 2602.02515).

An output's score is y = μ + a_t + b_q + (ab)_tq + e_tqr: scenario, question, their interaction, replicate. Every
scenario has the same questions, so b cancels in σ. Two kinds of noise remain in σ:

* within a scenario, e: the model answers the same prompt differently; estimated from two or more replicates.
* for other questions like these, (ab) and e: the residual mean square of scenarios × questions ÷ questions. If only
  scores are known, its upper bound is binomial, as if all outputs were independent.

The first is reported and subtracted; the second gives the intervals. Variance components: Searle, Casella and McCulloch
1992, §4. `benchmarks/audit_truth.py` measures the coverage of the intervals.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from skill_evaluator.audit.cube import Cube, Floats, Outcomes
from skill_evaluator.errors import AuditError
from skill_evaluator.files import FrozenModel
from skill_evaluator.stats import Interval, t_quantile

Quadrant = Literal["safe default", "predictable baseline", "strong but scenario-fragile", "avoid"]
QUADRANTS: dict[Quadrant, str] = {  # numbered as in the paper
    "safe default": "Q1",
    "predictable baseline": "Q2",
    "avoid": "Q3",
    "strong but scenario-fragile": "Q4",
}
QUARTERS = ("AAA", "AA", "A", "BBB")
_FINER = ("AAA", "AA+", "AA", "AA-", "A+", "A", "A-", "BBB")
SCALES = {len(scale): scale for scale in (QUARTERS, _FINER)}
GRADE_ORDER = {grade: index for index, grade in enumerate(_FINER)}  # the grades of both scales, best first
MIN_MODELS_FOR_FINER_GRADES = 20  # 2.5 models per grade
MIN_SCENARIOS_TO_COMPARE = 4
NEUTRALITY_LIMIT = 3.4  # standard errors; at most 9 % of neutral audits exceed it (`benchmarks/audit_neutrality.py`)
_TOLERANCE = 1e-9  # points; rounding errors do not change a grade
_TAIL = 0.025
QUADRANT_OF: dict[tuple[bool, bool], Quadrant] = {  # keys: able, stable
    (True, True): "safe default",
    (True, False): "strong but scenario-fragile",
    (False, True): "predictable baseline",
    (False, False): "avoid",
}


class Thresholds(FrozenModel):
    """The quartiles of the models' fluctuations. For 8 grades, `cuts` has the upper bounds of the first 7 grades."""

    q25: float
    q50: float
    q75: float
    cuts: dict[str, float] = {}


class Medians(FrozenModel):
    """The medians of the models' abilities and fluctuations, which separate the quadrants."""

    ability: float
    fluctuation: float


class ScenarioEffect(FrozenModel):
    """The shift of a scenario in points (negative: harder), and the `ratio` of its size to the standard error."""

    scenario: str
    shift: float
    ratio: float | None = None
    significant: bool


class Neutrality(FrozenModel):
    """The test whether all scenarios are equally hard. `means` has the mean score of each scenario over the models."""

    means: list[float]
    range: float = Field(description="largest minus smallest of the means")
    limit: float | None = Field(
        default=None, description="shifts of more standard errors are significant; null: not tested"
    )
    shifts: list[ScenarioEffect] = []
    verdict: str


def scale_of(bins: int, models: int) -> tuple[str, ...]:
    """Return the scale of 4 or 8 grades, best first. Raise AuditError for other `bins`, or 8 with too few models."""
    if bins not in SCALES:
        raise AuditError(f"--grades {bins}: expected {' or '.join(map(str, SCALES))}")
    if bins > len(QUARTERS) and models < MIN_MODELS_FOR_FINER_GRADES:
        raise AuditError(f"--grades {bins} requires at least {MIN_MODELS_FOR_FINER_GRADES} models; found {models}")
    return SCALES[bins]


def upper_bounds(fluctuations: Floats, bins: int = len(QUARTERS)) -> Floats:
    """Return the upper bound of each grade but the last: quantiles of type 7 (Hyndman and Fan 1996)."""
    return np.asarray(np.quantile(fluctuations, np.arange(1, bins) / bins))


def _grade_index(fluctuation: float, cuts: Floats) -> int:
    return int((fluctuation > cuts + _TOLERANCE).sum())  # a fluctuation at a bound has the better grade


def grades_of(fluctuations: Floats, grades: Sequence[str] = QUARTERS) -> list[str | None]:
    """Return the grade of each model, or [None] for a single model. `grades` is the scale, best first."""
    if len(fluctuations) < 2:
        return [None] * len(fluctuations)
    cuts = upper_bounds(fluctuations, len(grades))
    return [grades[_grade_index(fluctuation, cuts)] for fluctuation in fluctuations]


def is_settled(fluctuation: float, interval: Interval, noise: float, cuts: Floats) -> bool:
    """Return whether a model's grade is certain: the whole `interval` of its fluctuation has the same grade.

    The noise must not exceed the upper bound of this grade.
    """
    low, measured, high = (_grade_index(value, cuts) for value in (interval[0], fluctuation, interval[1]))
    within_noise = measured < len(cuts) and noise > cuts[measured]
    return low == measured == high and not within_noise


def quadrants_of(abilities: Floats, fluctuations: Floats) -> list[Quadrant | None]:
    """Return the quadrant of each model, or [None] for a single model."""
    medians = medians_of(abilities, fluctuations)
    if medians is None:
        return [None] * len(fluctuations)
    able = abilities >= medians.ability - _TOLERANCE
    stable = fluctuations <= medians.fluctuation + _TOLERANCE
    return [QUADRANT_OF[halves] for halves in zip(able.tolist(), stable.tolist(), strict=True)]


def thresholds_of(fluctuations: Floats, scale: Sequence[str]) -> Thresholds | None:
    """Return the quartiles of the models' fluctuations. Return None for a single model.

    If `scale` has more than four grades, also return the upper bound of each grade except the last.
    """
    if len(fluctuations) < 2:
        return None
    q25, q50, q75 = upper_bounds(fluctuations).tolist()
    cuts = dict(zip(scale[:-1], upper_bounds(fluctuations, len(scale)).tolist(), strict=True))
    return Thresholds(q25=q25, q50=q50, q75=q75, cuts=cuts if len(scale) > len(QUARTERS) else {})


def medians_of(abilities: Floats, fluctuations: Floats) -> Medians | None:
    """Return the medians of ability and fluctuation, or None for a single model."""
    if len(fluctuations) < 2:
        return None
    return Medians(ability=float(np.median(abilities)), fluctuation=float(np.median(fluctuations)))


def shifts_of(overall: Floats) -> tuple[Floats, Floats]:
    """Return the shift of each scenario in points, and the size of each shift in standard errors.

    `overall` has the scores, [models, scenarios]. A shift is positive if the scenario is easier than the median
    scenario. Medians make the shifts robust: one broken model or one hard scenario does not shift other scenarios.
    """
    models, scenarios = overall.shape
    shifts = np.median(overall - np.median(overall, axis=1, keepdims=True), axis=0)
    shifts = shifts - np.median(shifts)
    others = [np.delete(overall, t, axis=1).var(axis=1, ddof=1).mean() for t in range(scenarios)]
    errors = np.sqrt(np.array(others) / models)
    unmoved = np.where(np.abs(shifts) > 0, np.inf, 0.0)
    return shifts, np.divide(np.abs(shifts), errors, out=unmoved, where=errors > 0)


def neutrality_of(cube: Cube) -> Neutrality:
    """Test if all scenarios are equally hard. With 1 model or fewer than 4 scenarios, the verdict is `not known`."""
    models, scenarios = cube.overall.shape
    means = cube.overall.mean(axis=0)
    limit, effects = None, []
    if models < 2:
        verdict = "not known (with a single model, a hard scenario looks the same as a weakness of the model)"
    elif scenarios < MIN_SCENARIOS_TO_COMPARE:
        verdict = f"not known ({scenarios} scenarios are too few to compare)"
    else:
        limit = NEUTRALITY_LIMIT
        effects = [
            ScenarioEffect(scenario=name, shift=shift, ratio=ratio, significant=ratio > limit)
            for name, shift, ratio in zip(
                cube.scenarios, *(array.tolist() for array in shifts_of(cube.overall)), strict=True
            )
        ]
        effects.sort(key=lambda effect: -abs(effect.shift))
        verdict = _neutrality_verdict(effects)
    return Neutrality(means=means.tolist(), range=float(np.ptp(means)), limit=limit, shifts=effects, verdict=verdict)


def _neutrality_verdict(effects: Sequence[ScenarioEffect]) -> str:
    moved = []
    for effect in effects:
        if effect.significant:
            direction = "harder" if effect.shift < 0 else "easier"
            moved.append(f"{effect.scenario} is {direction} for all models by {abs(effect.shift):.1f} points")
    if not moved:
        return "neutral (no scenario is harder or easier for all models)"
    return f"not neutral (scenario {', '.join(moved)})"


def replicate_noise(cube: Cube) -> Floats | None:
    """Estimate how much repeated calls add to each model's squared fluctuation (points²; None if unknown)."""
    return _weighted_noise(cube, _replicate_noise)


def question_noise(cube: Cube) -> Floats | None:
    """Estimate how much the choice of questions adds to each model's squared fluctuation (points²; None if unknown)."""
    return _weighted_noise(cube, _interaction_noise)


def binomial_noise(cube: Cube) -> Floats | None:
    """Return an upper bound of `question_noise`: the binomial variance of independent outputs, in points².

    Return None if the number of questions of a benchmark is unknown.
    """
    if not all(name in cube.questions for name in cube.benchmarks):
        return None
    counts = np.array([cube.questions[name] for name in cube.benchmarks], dtype=np.float64)
    spread = (cube.scores * (100.0 - cube.scores)).mean(axis=1) / counts
    return np.asarray(spread @ cube.weights**2)


def without_noise(variance: Floats, noise: Floats) -> Floats:
    """Return √(variance − noise) of each model in points, or 0 if the noise is larger than the variance."""
    return np.sqrt(np.maximum(variance - noise, 0.0))


def fluctuation_interval(variance: float, noise: float, scenarios: int) -> Interval | None:
    """Return the 95 % confidence interval of a model's fluctuation σ, in points. Return None if `noise` is 0.

    `variance` is the square of the measured fluctuation. `noise` is the variance that noise alone would cause. With T
    scenarios, (T − 1) · `variance` ÷ `noise` has a noncentral χ² distribution. It has T − 1 degrees of freedom and the
    noncentrality (T − 1)σ² ÷ `noise`.
    """
    from scipy.optimize import brentq
    from scipy.stats import ncx2

    if noise <= 0:
        return None
    degrees = scenarios - 1
    ratio = degrees * variance / noise

    def bound(probability: float) -> float:
        largest = (np.sqrt(ratio) + 4.0) ** 2 + degrees
        if ncx2.cdf(ratio, degrees, 0.0) <= probability:
            return 0.0
        noncentrality = brentq(lambda value: ncx2.cdf(ratio, degrees, value) - probability, 0.0, largest)
        return float(np.sqrt(noncentrality * noise / degrees))

    return bound(1 - _TAIL), max(bound(_TAIL), float(np.sqrt(variance)))


def widest_interval(variance: float, noise: float, scenarios: int) -> Interval | None:
    """Return a confidence interval of a model's fluctuation if `noise` is only an upper bound.

    The interval contains `fluctuation_interval` for 10 % to 100 % of `noise`. Return None if `noise` is 0.
    """
    levels = [fluctuation_interval(variance, noise * part, scenarios) for part in np.arange(1, 11) / 10]
    intervals = [interval for interval in levels if interval is not None]
    return (min(low for low, _ in intervals), max(high for _, high in intervals)) if intervals else None


def ability_interval(cube: Cube, model: int) -> Interval | None:
    """Return the 95 % confidence interval of a model's ability, in per cent. `model` is the index of the model.

    The variance of the ability is estimated from the mean scores of the questions. If the scores of single outputs are
    unknown, the variance is binomial. Return None if the variance is 0 or unknown.
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
    if cube.outcomes is None:
        return None
    variances = [noise_on(cube.outcomes[name]) for name in cube.benchmarks]
    known_variances = [variance for variance in variances if variance is not None]
    if len(known_variances) < len(variances):
        return None
    return np.asarray(1e4 * np.tensordot(cube.weights**2, np.stack(known_variances), axes=1))


def _replicate_noise(outcomes: Outcomes) -> Floats | None:
    """Estimate how much replicates (repeated calls) add to the variance of each model's mean score over questions.

    Scores are from 0 to 1. Return None if a model has no repeated question.
    """
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
    """Estimate how much the choice of questions adds to the variance of each model's scores over scenarios.

    Scores are from 0 to 1. Return None if there are fewer than two scenarios or questions.
    """
    means = outcomes.means
    _, scenarios, questions = means.shape
    if questions < 2 or scenarios < 2:
        return None
    residuals = means - means.mean(axis=2, keepdims=True) - means.mean(axis=1, keepdims=True)
    residuals += means.mean(axis=(1, 2), keepdims=True)
    squares = (residuals**2).sum(axis=(1, 2)) / ((questions - 1) * (scenarios - 1))
    return np.asarray(squares / questions)
