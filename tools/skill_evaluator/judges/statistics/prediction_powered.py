"""The mean of people's labels over a batch in which few pairs have one and all have a judge's verdict.

PPI++, Angelopoulos, Duchi and Zrnic 2023 (arXiv 2311.01453): the mean of λ × the judge's values over the unlabelled
rest, plus what people's labels say on average beyond λ × the judge's. It is right whatever the judge is worth. λ in
[0, 1] makes the variance least; a judge that tells nothing gets 0, so that the labels alone count.
"""

import math
from collections.abc import Sequence

import numpy as np

from skill_evaluator.judges.statistics.bounded import Bounded
from skill_evaluator.judges.statistics.kappa import Floats
from skill_evaluator.stats import t_quantile


def prediction_powered_rate(labels: Sequence[float], judged: Sequence[float], judged_only: Sequence[float]) -> Bounded:
    """Return the share of a batch, in [0, 1], from its labelled part (`labels`, `judged`) and the rest (`judged_only`).

    Labels and verdicts are 0 or 1, such as regressions. Undefined for fewer than two labels; without a rest it is their
    share. `n` counts labels. The interval is on the log-odds, by Student's t, with the variance of half a label more,
    as `stats.unit_interval`: the paper's covers 83 % where 60 labels hold one regression in 20, this one 95 %.

    >>> powered = prediction_powered_rate([1, 0, 0, 0, 0, 1] * 5, [1, 0, 0, 0, 0, 0] * 5, [1, 0, 0, 0, 0, 0] * 50)
    >>> round(powered.value, 2), [round(bound, 2) for bound in powered.ci95]
    (0.33, [0.21, 0.49])
    """
    n = len(labels)
    if n < 2:
        return Bounded(value=None, ci95=None, n=n)
    mean, error = _estimate(labels, judged, judged_only)
    value = min(1.0, max(0.0, mean))
    inner = min(1.0 - 0.5 / n, max(0.5 / n, value))
    step = min(700.0, t_quantile(n - 1) * math.hypot(error, 0.5 / n) / (inner * (1 - inner)))
    low, high = (inner / (inner + (1 - inner) * math.exp(sign * step)) for sign in (1, -1))
    return Bounded(value=value, ci95=(min(low, value), max(high, value)), n=n)


def _estimate(labels: Sequence[float], judged: Sequence[float], judged_only: Sequence[float]) -> tuple[float, float]:
    """Return the mean and its standard error; λ = cov(label, judged) ÷ [(1 + n ÷ N) var(judged)], section 6."""
    people, beside, alone = np.asarray(labels, float), np.asarray(judged, float), np.asarray(judged_only, float)
    n, rest = len(people), len(alone)
    if not rest:
        return float(people.mean()), float(people.std()) / math.sqrt(n)
    spread = float(np.concatenate([beside, alone]).var(ddof=1))
    together = float(((people - people.mean()) * (beside - beside.mean())).mean())
    share = min(1.0, max(0.0, together / ((1 + n / rest) * spread))) if spread else 0.0
    beyond: Floats = people - share * beside
    error = math.sqrt(float(beyond.var()) / n + share**2 * float(alone.var()) / rest)
    return float(beyond.mean()) + share * float(alone.mean()), error
