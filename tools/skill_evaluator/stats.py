"""Means, spreads and intervals: numbers in, numbers out. Nothing here knows what the numbers mean.

scipy is imported only when a quantile of t is needed.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean, stdev

CONFIDENCE = 0.95
Interval = tuple[float, float]


def mean_or_none(values: Sequence[float]) -> float | None:
    """Arithmetic mean; None of nothing."""
    return fmean(values) if values else None


def stdev_or_none(values: Sequence[float]) -> float | None:
    """Sample standard deviation (n − 1); None for fewer than two values."""
    return stdev(values) if len(values) > 1 else None


def unit_interval(values: Sequence[float]) -> Interval | None:
    """95 % interval of the mean of n independent values in [0, 1]; None for fewer than two.

    Nothing varied: a value unseen in n trials has probability at most 1 − 0.05^(1/n), and may lie anywhere in [0, 1].
    All values 0 or 1: Wilson 1927 (doi:10.1080/01621459.1927.10502953). Otherwise Student's t, cut at 0 and 1.

    >>> low, high = unit_interval([1.0] * 10)
    >>> round(low, 3), high
    (0.741, 1.0)
    """
    n = len(values)
    if n < 2:
        return None
    if math.isclose(min(values), max(values), abs_tol=1e-12):
        unseen = 1.0 - (1.0 - CONFIDENCE) ** (1.0 / n)
        return values[0] * (1.0 - unseen), values[0] * (1.0 - unseen) + unseen
    if all(value in (0.0, 1.0) for value in values):
        return wilson(sum(values), n)
    half = t_quantile(n - 1) * stdev(values) / math.sqrt(n)
    mean = fmean(values)
    return max(0.0, mean - half), min(1.0, mean + half)


def wilson(successes: float, n: int) -> Interval:
    """Wilson's 95 % score interval of a rate.

    >>> [round(bound, 4) for bound in wilson(8, 10)]
    [0.4902, 0.9433]
    """
    z = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)
    rate = successes / n
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, centre - half), min(1.0, centre + half)


def load_quantiles() -> None:
    """Import what `t_quantile` needs, so that it is there when it is asked (0.2 s)."""
    import scipy.special  # noqa: F401


def t_quantile(degrees: int) -> float:
    """The 97.5 % quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.5 + CONFIDENCE / 2))


def rounded(value: float | None, digits: int = 6) -> float | None:
    """A number as records keep it; None stays None."""
    return None if value is None else round(value, digits)


def quantile(values: Sequence[float], share: float) -> float | None:
    """Quantile by linear interpolation between order statistics (Hyndman and Fan 1996, type 7); None of nothing."""
    if not values:
        return None
    ordered = sorted(values)
    position = (len(ordered) - 1) * share
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)
