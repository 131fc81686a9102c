"""A figure with its 95 % interval and the number of units it rests on, and the intervals that several figures share.

No interval has zero width because nothing varied: what n units never showed may still be there.
"""

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Annotated

from pydantic import PlainSerializer

from skill_evaluator.files import FrozenModel
from skill_evaluator.stats import rate_interval, unit_interval, unseen_share

Z = 1.959963984540054  # the 97.5 % quantile of the normal distribution
BAR = 0.6  # of κ: «substantial», Landis and Koch 1977 (doi:10.2307/2529310)
_SLACK = 1e-12


def _written(value: float) -> float:
    return round(value, 6) + 0.0  # what rounds to zero has no sign


Written = Annotated[float, PlainSerializer(_written)]


class Figure(FrozenModel):
    """A figure over n units; `value` is None where it is undefined, `ci95` where n units cannot bound it.

    Files have six digits of it.
    """

    value: Written | None
    ci95: tuple[Written, Written] | None
    n: int


def rate(successes: int, n: int) -> Figure:
    """Return a share of n units with its mid-P interval (`stats.rate_interval`).

    >>> rate(8, 10).value, [round(bound, 3) for bound in rate(8, 10).ci95]
    (0.8, [0.48, 0.965])
    """
    if n == 0:
        return Figure(value=None, ci95=None, n=0)
    return Figure(value=successes / n, ci95=rate_interval(successes, n), n=n)


def mean_within(values: Sequence[float], low: float = 0.0, high: float = 1.0) -> Figure:
    """Return the mean of values in [low, high], one a unit, with the interval of `stats.unit_interval`.

    >>> picks = mean_within([1, 0, 0, -1, 1, 0, 1, 0], -1, 1)
    >>> picks.value, [round(bound, 2) for bound in picks.ci95]
    (0.25, [-0.42, 0.74])
    """
    n = len(values)
    bounds = unit_interval([(value - low) / (high - low) for value in values])
    if bounds is None:
        return Figure(value=fmean(values) if n else None, ci95=None, n=n)
    return Figure(value=fmean(values), ci95=(low + (high - low) * bounds[0], low + (high - low) * bounds[1]), n=n)


def difference(left: Figure, right: Figure) -> Figure:
    """Return left − right of two independent rates, with the interval put together from theirs (MOVER).

    Newcombe 1998, method 10 (doi:10.1002/(SICI)1097-0258(19980430)17:8<873::AID-SIM779>3.0.CO;2-I). `n` is the smaller
    one of the two.
    """
    n = min(left.n, right.n)
    if left.value is None or right.value is None or left.ci95 is None or right.ci95 is None:
        return Figure(value=None, ci95=None, n=n)
    value = left.value - right.value
    below = math.hypot(left.value - left.ci95[0], right.ci95[1] - right.value)
    above = math.hypot(left.ci95[1] - left.value, right.value - right.ci95[0])
    return Figure(value=value, ci95=(value - below, value + above), n=n)


def coefficient(value: float, error: float, reach: float, n: int) -> Figure:
    """Return a coefficient of agreement in [−1, 1] with an interval on Fisher's z scale, atanh.

    `error` is its standard error by the delta method; `reach` is how far it would move if all n units turned from
    agreement to full disagreement. The interval counts half a turned unit more, since the delta method knows nothing of
    what no unit showed; at 1 and −1 it is the bound on what n units never showed.
    """
    if 1.0 - abs(value) < _SLACK:
        width = min(2.0, unseen_share(n) * reach)
        return Figure(value=value, ci95=(1.0 - width, 1.0) if value > 0 else (-1.0, width - 1.0), n=n)
    step = Z * math.hypot(error, reach / 2 / n) / (1.0 - value * value)
    centre = math.atanh(value)
    return Figure(value=value, ci95=(math.tanh(centre - step), math.tanh(centre + step)), n=n)
