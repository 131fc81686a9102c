"""Is a judge right as often as it says it is? Confidences and whether each verdict was right → calibration."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from scipy.special import betaincinv

from skill_evaluator.judges.statistics.bounded import Bounded, Z, edge, mean_within, rate
from skill_evaluator.stats import CONFIDENCE, Interval

_BINS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """The verdicts with a confidence in (low, high]: the mean of it, and the share that was right."""

    low: float
    high: float
    confidence: float
    right: Bounded


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """`table`: the bins that hold a verdict. `error`: the expected calibration error, 0 is best.

    `overconfidence`: mean confidence minus share right. `ranking`: the probability that a right verdict has a higher
    confidence than a wrong one; 0.5 is that of a coin.
    """

    table: tuple[Bin, ...]
    error: Bounded
    overconfidence: Bounded
    ranking: Bounded

    @property
    def follows(self) -> bool | None:
        """Whether confidence is higher where the judge is right, beyond chance; None where that is undefined.

        A judge for which this is not true, neither against labels nor against the other order, has no confidence.
        """
        return None if self.ranking.ci95 is None else self.ranking.ci95[0] > 0.5


def reliability(confidences: Sequence[float], right: Sequence[bool]) -> Reliability:
    """Hold confidences in [0, 1] against whether each verdict was right, or the same in both orders.

    ECE = Σ bins n_b ÷ n |share right − mean confidence| over ten bins of equal width, Naeini et al. 2015
    (doi:10.1609/aaai.v29i1.9602). Chance alone makes it positive, so its interval begins with what the bins'
    shares leave if all are as near as their exact intervals (Clopper and Pearson 1934, at a level divided by the number
    of bins) let them be: with 0 if no bin is off. It ends where the bins' errors, taken for independent, end (MOVER).

    >>> held = reliability([0.9, 0.9, 0.8, 0.6], [True, False, True, False])
    >>> round(held.error.value, 2), round(held.overconfidence.value, 2), held.ranking.value
    (0.4, 0.3, 0.625)
    """
    n = len(confidences)
    verdicts = list(zip(confidences, right, strict=True))
    filled = []
    for low, high in pairwise(place / _BINS for place in range(_BINS + 1)):
        inside = [verdict for verdict in verdicts if low < verdict[0] <= high or verdict[0] == low == 0.0]
        if inside:
            mean, share = fmean(sure for sure, _ in inside), rate(sum(was for _, was in inside), len(inside))
            filled.append(Bin(low=low, high=high, confidence=mean, right=share))
    return Reliability(
        table=tuple(filled),
        error=_expected_error(filled, n),
        overconfidence=mean_within([sure - was for sure, was in verdicts], -1.0, 1.0),
        ranking=_ranking([sure for sure, was in verdicts if was], [sure for sure, was in verdicts if not was]),
    )


def _expected_error(bins: Sequence[Bin], n: int) -> Bounded:
    """Return the mean distance of confidence from the share right, over verdicts, with its interval."""
    if n == 0:
        return Bounded(value=None, ci95=None, n=0)
    value = least = beyond = 0.0
    for part in bins:
        weight, count = part.right.n / n, round((part.right.value or 0.0) * part.right.n)
        distance = abs(count / part.right.n - part.confidence)
        low, high = _exact(count, part.right.n, (1 - CONFIDENCE) / len(bins))
        value += weight * distance
        least += weight * max(0.0, low - part.confidence, part.confidence - high)
        low, high = _exact(count, part.right.n, 1 - CONFIDENCE)
        farthest = max(abs(low - part.confidence), abs(high - part.confidence))
        beyond += (weight * (farthest - distance)) ** 2
    return Bounded(value=value, ci95=(least, min(1.0, value + math.sqrt(beyond))), n=n)


def _exact(count: int, n: int, alpha: float) -> Interval:
    """Return Clopper and Pearson's interval of a rate."""
    low = 0.0 if count == 0 else float(betaincinv(count, n - count + 1, alpha / 2))
    return low, 1.0 if count == n else float(betaincinv(count + 1, n - count, 1 - alpha / 2))


def _ranking(of_right: Sequence[float], of_wrong: Sequence[float]) -> Bounded:
    """Return the area under the ROC curve; interval by Newcombe 2006, method 5 (doi:10.1002/sim.2324)."""
    some, others = len(of_right), len(of_wrong)
    if not some or not others:
        return Bounded(value=None, ci95=None, n=some + others)
    from scipy.stats import rankdata

    ranks = rankdata([*of_right, *of_wrong])
    area = float((ranks[:some].sum() - some * (some + 1) / 2) / (some * others))
    size = (some + others) / 2 - 1

    def excess_of(true: float) -> float:
        """Return how far the area is outside of what a true area makes likely; below 0: inside."""
        spread = true * (1 - true) * (1 + size * ((1 - true) / (2 - true) + true / (1 + true))) / (some * others)
        return abs(area - true) - Z * math.sqrt(spread)

    return Bounded(value=area, ci95=(edge(excess_of, 0.0, area), edge(excess_of, 1.0, area)), n=some + others)
