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
_DRAWS = 5_000
_SEED = 20_240_501  # any fixed seed: the same counts always give the same interval


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

    def excludes(self, value: float) -> bool:
        """Return whether the interval, with six digits, does not contain a value."""
        return self.ci95 is not None and not _written(self.ci95[0]) <= value <= _written(self.ci95[1])


def rate(successes: int, n: int) -> Figure:
    """Return a share of n units with its mid-P interval (`stats.rate_interval`).

    >>> rate(8, 10).value, [round(bound, 3) for bound in rate(8, 10).ci95]
    (0.8, [0.48, 0.965])
    """
    if n == 0:
        return Figure(value=None, ci95=None, n=0)
    return Figure(value=successes / n, ci95=rate_interval(successes, n), n=n)


def mean_within(values: Sequence[float], low: float = 0.0, high: float = 1.0) -> Figure:
    """Return the mean of values in [low, high], one a unit, with the interval of `stats.unit_interval`."""
    n, width = len(values), high - low
    bounds = unit_interval([(value - low) / width for value in values])
    ci95 = None if bounds is None else (low + width * bounds[0], low + width * bounds[1])
    return Figure(value=fmean(values) if n else None, ci95=ci95, n=n)


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


def corrected_rate(reported: Figure, sensitivity: Figure, specificity: Figure) -> Figure | None:
    """Return the true rate behind a reported one, (reported + TNR − 1) ÷ (TPR + TNR − 1), clipped to [0, 1].

    `sensitivity` (TPR) is the share of known positives that the judge reports, `specificity` (TNR) the share of known
    negatives that it does not report. `n` is that of the reported rate. The value is undefined if the judge reports
    positives no more often than negatives. Return None if one of the three rates is undefined.

    Rogan and Gladen 1978 (doi:10.1093/oxfordjournals.aje.a112510). The 95 % interval is that of a bootstrap which draws
    the three rates from Beta(count + ½, n − count + ½), so that rates of 0 and 1 vary, too; a draw in which the judge
    is no better than chance leaves any rate. At 0 and 1 the interval holds at least what n trials would leave open with
    a judge that never errs.

    >>> true = corrected_rate(rate(30, 100), rate(45, 50), rate(90, 100))
    >>> round(true.value, 3), [round(bound, 2) for bound in true.ci95]
    (0.25, [0.12, 0.38])
    """
    import numpy as np

    if reported.value is None or sensitivity.value is None or specificity.value is None:
        return None
    power = sensitivity.value + specificity.value - 1.0
    value = min(1.0, max(0.0, (reported.value + specificity.value - 1.0) / power)) if power > 1e-6 else None
    random = np.random.default_rng(_SEED)
    counts = [(round((one.value or 0.0) * one.n), one.n) for one in (reported, sensitivity, specificity)]
    given, found, quiet = (random.beta(count + 0.5, n - count + 0.5, _DRAWS) for count, n in counts)
    powers = found + quiet - 1.0
    informed = powers > 0.0
    rates = np.clip((given + quiet - 1.0) / np.where(informed, powers, 1.0), 0.0, 1.0)
    low, high = np.quantile(np.where(informed, rates, random.random(_DRAWS)), [0.025, 0.975]).tolist()
    if value is not None:
        low, high = min(low, value), max(high, value)
    unseen = unseen_share(reported.n)
    return Figure(value=value, ci95=(min(low, 1.0 - unseen), max(high, unseen)), n=reported.n)
