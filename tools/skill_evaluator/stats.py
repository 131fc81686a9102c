"""Groups, means, spreads and intervals: values in, values out. Nothing here knows what they mean.

scipy is imported only where a probability or a quantile is needed.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, stdev
from typing import Any, TypeVar

CONFIDENCE = 0.95
ALPHA = 0.05
POWER = 0.8  # with which a difference that is called detectable shows
ROUNDING = 1e-9  # two scores that differ by less are equal
Interval = tuple[float, float]
KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


def by_key(pairs: Iterable[tuple[KeyT, ValueT]]) -> dict[KeyT, list[ValueT]]:
    """Return the values of each key together; keys and values stay in their order.

    >>> by_key([("a", 1), ("b", 2), ("a", 3)])
    {'a': [1, 3], 'b': [2]}
    """
    groups: dict[KeyT, list[ValueT]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def mean_or_none(values: Sequence[float]) -> float | None:
    """Return the arithmetic mean; None without values."""
    return fmean(values) if values else None


def total_or_none(values: Iterable[float | None]) -> float | None:
    """Return the sum; None when a value is None.

    >>> total_or_none([1.0, 2.5]), total_or_none([1.0, None]), total_or_none([])
    (3.5, None, 0.0)
    """
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def stdev_or_none(values: Sequence[float]) -> float | None:
    """Return the sample standard deviation (n − 1); None for fewer than two values."""
    return stdev(values) if len(values) > 1 else None


def unseen_share(n: int) -> float:
    """Return the probability that what n trials never showed may still have, with 95 % confidence: 1 − 0.05^(1/n)."""
    return 1.0 - math.pow(ALPHA, 1.0 / n)


def smallest_drop(variance: float, n: int, quantiles: float) -> float | None:
    """Return the smallest drop D that a t-test over n cases finds significant with the wanted power.

    `variance` is that of the mean difference, and `quantiles` the sum of Student's t at the level and at the power. The
    test adds (D ÷ 2n)² to the variance, so D = `quantiles` · √(variance + (D ÷ 2n)²). Return None if no D < 1 does.

    >>> smallest_drop(0.0004, 20, 2.8), smallest_drop(0.0004, 2, 9.0)
    (0.056138, None)
    """
    left = 1.0 - (quantiles / (2 * n)) ** 2
    drop = quantiles * math.sqrt(variance / left) if left > 0.0 else math.inf
    return round(drop, 6) if drop < 1.0 else None


def unit_interval(values: Sequence[float]) -> Interval | None:
    """Return the 95 % interval of the mean of n independent values in [0, 1]; None for fewer than two.

    Values that are all 0 or 1 have their `rate_interval`. Others have Student's t on the log-odds of the mean (delta
    method), which widens towards the middle as skewed scores near an edge need; its variance counts one value more,
    half the range away. Where nothing varies, a value unseen in n trials has probability at most 1 − 0.05^(1/n) and may
    be any in [0, 1].

    >>> low, high = unit_interval([1.0] * 10)
    >>> round(low, 3), high
    (0.741, 1.0)
    """
    n = len(values)
    if n < 2:
        return None
    if math.isclose(min(values), max(values), abs_tol=1e-12):
        unseen = unseen_share(n)
        return values[0] * (1.0 - unseen), values[0] * (1.0 - unseen) + unseen
    if all(value in (0.0, 1.0) for value in values):
        return rate_interval(int(sum(values)), n)
    mean = fmean(values)
    error = math.hypot(stdev(values) / math.sqrt(n), (max(values) - min(values)) / 2 / n)
    step = t_quantile(n - 1) * error / (mean * (1 - mean))
    return mean / (mean + (1 - mean) * _exp(step)), mean / (mean + (1 - mean) * _exp(-step))


def rate_interval(successes: int, n: int) -> Interval:
    """Return the 95 % mid-P interval of a rate: half of the observed outcome's probability is in either tail.

    That is Clopper and Pearson's, amended by Berry and Armitage 1995 (doi:10.2307/2348891): it covers no less than
    92 %, where Wilson's falls to 86 %.

    >>> [round(bound, 4) for bound in rate_interval(8, 10)]
    [0.4805, 0.965]
    """
    from scipy.special import bdtr

    def below(rate: float) -> float:
        """Return the probability of fewer successes, with half of that of as many."""
        fewer = float(bdtr(successes - 1, n, rate)) if successes else 0.0
        return (fewer + float(bdtr(successes, n, rate))) / 2

    tail = (1 - CONFIDENCE) / 2
    low = 0.0 if successes == 0 else _find_crossing(below, 1 - tail)
    return low, 1.0 if successes == n else _find_crossing(below, tail)


def _find_crossing(falling: Callable[[float], float], level: float) -> float:
    """Find where in [0, 1] a falling function crosses a level, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > level else (low, middle)
    return (low + high) / 2


def _exp(step: float) -> float:
    return math.exp(min(step, 700.0))


def t_quantile(degrees: Any, share: Any = 0.5 + CONFIDENCE / 2) -> Any:
    """Return a quantile of Student's t, by default the 97.5 % one; of arrays an array."""
    from scipy.special import stdtrit

    return stdtrit(degrees, share)


def t_cdf(degrees: Any, value: Any) -> Any:
    """Return the probability that Student's t is at most a value; of arrays an array."""
    from scipy.special import stdtr

    return stdtr(degrees, value)


def rounded(value: float | None, digits: int = 6) -> float | None:
    """Round a number as records keep it; None stays None."""
    return None if value is None else round(value, digits)


def quantile(values: Sequence[float], share: float) -> float | None:
    """Return a quantile by linear interpolation of order statistics (Hyndman and Fan 1996, type 7); None of nothing."""
    if not values:
        return None
    ordered = sorted(values)
    position = (len(ordered) - 1) * share
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Return the adjusted p-values that control the false discovery rate, in the order of `p_values`.

    qᵢ = min over pⱼ ≥ pᵢ of m pⱼ ÷ rank(pⱼ), Benjamini and Hochberg 1995 (doi:10.1111/j.2517-6161.1995.tb02031.x).
    `scipy.stats` has the same function, but takes 0.6 s to import.

    >>> benjamini_hochberg([0.01, 0.04, 0.03])
    [0.03, 0.04, 0.04]
    """
    count, smallest = len(p_values), 1.0
    adjusted = [1.0] * count
    descending = sorted(range(count), key=p_values.__getitem__, reverse=True)
    for rank, index in zip(range(count, 0, -1), descending, strict=True):
        smallest = min(smallest, p_values[index] * count / rank)
        adjusted[index] = smallest
    return adjusted
