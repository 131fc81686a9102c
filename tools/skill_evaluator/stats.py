"""Statistics helpers: groups, means, standard deviations and confidence intervals."""

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, stdev
from typing import Any, TypeVar

CONFIDENCE = 0.95
ALPHA = 0.05
POWER = 0.8  # probability to find a detectable difference
ROUNDING = 1e-9  # scores that differ by less are equal
Interval = tuple[float, float]
KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


def by_key(pairs: Iterable[tuple[KeyT, ValueT]]) -> dict[KeyT, list[ValueT]]:
    """Group (key, value) pairs as lists of values by key; keys and values keep their order."""
    groups: dict[KeyT, list[ValueT]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def mean_or_none(values: Sequence[float]) -> float | None:
    """Return the arithmetic mean, or None if there are no values."""
    return fmean(values) if values else None


def total_or_none(values: Iterable[float | None]) -> float | None:
    """Return the sum of the values, or None if a value is None."""
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def stdev_or_none(values: Sequence[float]) -> float | None:
    """Return the sample standard deviation (n − 1), or None for fewer than two values."""
    return stdev(values) if len(values) > 1 else None


def unseen_share(n: int) -> float:
    """Return the upper 95 % bound of the probability of an event that did not occur in n trials: 1 − 0.05^(1/n)."""
    return 1.0 - math.pow(ALPHA, 1.0 / n)


def smallest_drop(variance: float, n: int, quantiles: float) -> float | None:
    """Return the smallest drop D of a score that a t-test over n cases detects. Return None if D ≥ 1.

    `variance` is the variance of the mean difference. `quantiles` is t(level) + t(power), two quantiles of Student's t.
    The test adds (D ÷ 2n)² to the variance, so D = `quantiles` · √(variance ÷ (1 − (`quantiles` ÷ 2n)²)).
    """
    remainder = 1.0 - (quantiles / (2 * n)) ** 2
    drop = quantiles * math.sqrt(variance / remainder) if remainder > 0.0 else math.inf
    return round(drop, 6) if drop < 1.0 else None


def unit_interval(values: Sequence[float]) -> Interval | None:
    """Return the 95 % confidence interval of the mean of n independent values in [0, 1]. Return None if n < 2.

    If all values are equal, the interval allows for a share `unseen_share(n)` of other values that the sample lacks.
    If the values are only 0 and 1, the interval is the `rate_interval`. Otherwise it is Student's t interval on the
    log-odds of the mean. docs/statistics.md has the formulas.
    """
    n = len(values)
    if n < 2:
        return None
    if math.isclose(min(values), max(values), abs_tol=1e-12):
        share = unseen_share(n)
        return values[0] * (1.0 - share), values[0] * (1.0 - share) + share
    if all(value in (0.0, 1.0) for value in values):
        return rate_interval(int(sum(values)), n)
    mean = fmean(values)
    error = math.hypot(stdev(values) / math.sqrt(n), (max(values) - min(values)) / 2 / n)
    step = t_quantile(n - 1) * error / (mean * (1 - mean))
    largest_factor = math.exp(min(step, 700.0))  # exp(710) overflows
    return mean / (mean + (1 - mean) * largest_factor), mean / (mean + (1 - mean) * math.exp(-step))


def rate_interval(successes: int, n: int) -> Interval:
    """Return the 95 % mid-P confidence interval of a rate (Berry and Armitage 1995, doi:10.2307/2348891)."""
    from scipy.special import bdtr

    def lower_tail(rate: float) -> float:
        probability = float(bdtr(successes - 1, n, rate)) if successes else 0.0
        return (probability + float(bdtr(successes, n, rate))) / 2

    tail = (1 - CONFIDENCE) / 2
    low = 0.0 if successes == 0 else _find_crossing(lower_tail, 1 - tail)
    return low, 1.0 if successes == n else _find_crossing(lower_tail, tail)


def _find_crossing(falling: Callable[[float], float], level: float) -> float:
    """Return the point in [0, 1] where a decreasing function has the value `level`."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > level else (low, middle)
    return (low + high) / 2


def t_quantile(degrees: Any, share: Any = 0.5 + CONFIDENCE / 2) -> Any:
    """Return the quantile at `share` of Student's t with `degrees` of freedom. Arguments may be arrays."""
    from scipy.special import stdtrit

    return stdtrit(degrees, share)


def t_cdf(degrees: Any, value: Any) -> Any:
    """Return the probability that Student's t with `degrees` of freedom is at most `value`. Arguments may be arrays."""
    from scipy.special import stdtr

    return stdtr(degrees, value)


def rounded(value: float | None, digits: int = 6) -> float | None:
    """Round a number to `digits` decimals; records have six. Return None for None."""
    return None if value is None else round(value, digits)


def quantile(values: Sequence[float], share: float) -> float | None:
    """Return the quantile at `share` (0 to 1), type 7 of Hyndman and Fan 1996. Return None if there are no values."""
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
    """
    count, smallest = len(p_values), 1.0
    adjusted = [1.0] * count
    descending = sorted(range(count), key=p_values.__getitem__, reverse=True)
    for rank, index in zip(range(count, 0, -1), descending, strict=True):
        smallest = min(smallest, p_values[index] * count / rank)
        adjusted[index] = smallest
    return adjusted
