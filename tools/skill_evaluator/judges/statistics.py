"""The statistics of judges: figures with 95 % confidence intervals, biases, and agreement corrected for chance.

No interval has zero width, even if all n units are equal, because n units can miss rare differences.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from statistics import fmean
from typing import Annotated, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import NonNegativeInt, PlainSerializer

from skill_evaluator.display import number
from skill_evaluator.files import FrozenModel
from skill_evaluator.stats import rate_interval, unit_interval, unseen_share
from skill_evaluator.text import counted

Floats: TypeAlias = NDArray[np.float64]
Weighting = Literal["nominal", "linear"]
MAX_LABELS = 10_000  # the largest number of labels that a recommendation names
Z = 1.959963984540054  # the 97.5 % quantile of the normal distribution
BAR = 0.6  # "substantial" agreement, Landis and Koch 1977 (doi:10.2307/2529310)
_DRAWS = 5_000
_SEED = 20_240_501  # any fixed seed: the same counts always give the same interval


def _rounded(value: float) -> float:
    return round(value, 6) + 0.0  # turns -0.0 into 0.0


RoundedFloat = Annotated[float, PlainSerializer(_rounded)]


class Estimate(FrozenModel):
    """A figure over n units, with six decimals in files; `value` or `ci95` is None if it is not defined."""

    value: RoundedFloat | None
    ci95: tuple[RoundedFloat, RoundedFloat] | None
    n: int

    @property
    def count(self) -> int:
        """The number of successes of a rate; 0 if it is not defined."""
        return round((self.value or 0.0) * self.n)

    def excludes(self, value: float) -> bool:
        """Return whether the interval, rounded to six decimals, excludes a value. Return False without an interval."""
        return self.ci95 is not None and not _rounded(self.ci95[0]) <= value <= _rounded(self.ci95[1])


def rate(successes: int, n: int) -> Estimate:
    """Return successes ÷ n with its mid-P interval (`stats.rate_interval`). Both are None if n is 0.

    >>> rate(8, 10).value, [round(bound, 3) for bound in rate(8, 10).ci95]
    (0.8, [0.48, 0.965])
    """
    if n == 0:
        return Estimate(value=None, ci95=None, n=0)
    return Estimate(value=successes / n, ci95=rate_interval(successes, n), n=n)


def mean_within(values: Sequence[float], low: float = 0.0, high: float = 1.0) -> Estimate:
    """Return the mean of independent values in [low, high]. The interval is None for fewer than two values."""
    n, width = len(values), high - low
    bounds = unit_interval([(value - low) / width for value in values])
    ci95 = None if bounds is None else (low + width * bounds[0], low + width * bounds[1])
    return Estimate(value=fmean(values) if n else None, ci95=ci95, n=n)


def difference(minuend: Estimate, subtrahend: Estimate) -> Estimate:
    """Return minuend − subtrahend of two independent figures, with an interval from their intervals (MOVER).

    Newcombe 1998, method 10 (doi:10.1002/(SICI)1097-0258(19980430)17:8<873::AID-SIM779>3.0.CO;2-I). n is the smaller of
    both. The value is None if a figure has no value or no interval.
    """
    n = min(minuend.n, subtrahend.n)
    if minuend.value is None or subtrahend.value is None or minuend.ci95 is None or subtrahend.ci95 is None:
        return Estimate(value=None, ci95=None, n=n)
    value = minuend.value - subtrahend.value
    below = math.hypot(minuend.value - minuend.ci95[0], subtrahend.ci95[1] - subtrahend.value)
    above = math.hypot(minuend.ci95[1] - minuend.value, subtrahend.value - subtrahend.ci95[0])
    return Estimate(value=value, ci95=(value - below, value + above), n=n)


def corrected_rate(reported: Estimate, sensitivity: Estimate, specificity: Estimate) -> Estimate | None:
    """Correct a reported rate for the errors of a judge. Return None if one of the three rates is undefined.

    TPR is the `sensitivity`: the share of known positives that the judge reports. TNR is the `specificity`: the share
    of known negatives that the judge does not report. The corrected rate is (reported + TNR − 1) ÷ (TPR + TNR − 1),
    clipped to [0, 1]. If TPR + TNR ≤ 1, the corrected rate has no value.

    Rogan and Gladen 1978 (doi:10.1093/oxfordjournals.aje.a112510). The interval is a bootstrap of the three rates.

    >>> true = corrected_rate(rate(30, 100), rate(45, 50), rate(90, 100))
    >>> round(true.value, 3), [round(bound, 2) for bound in true.ci95]
    (0.25, [0.12, 0.38])
    """
    if reported.value is None or sensitivity.value is None or specificity.value is None:
        return None
    power = sensitivity.value + specificity.value - 1.0
    value = min(1.0, max(0.0, (reported.value + specificity.value - 1.0) / power)) if power > 1e-6 else None
    random = np.random.default_rng(_SEED)
    counts = [(figure.count, figure.n) for figure in (reported, sensitivity, specificity)]
    draws = (random.beta(count + 0.5, n - count + 0.5, _DRAWS) for count, n in counts)
    reported_draws, sensitivity_draws, specificity_draws = draws
    powers = sensitivity_draws + specificity_draws - 1.0
    above_chance = powers > 0.0
    rates = np.clip((reported_draws + specificity_draws - 1.0) / np.where(above_chance, powers, 1.0), 0.0, 1.0)
    low, high = np.quantile(np.where(above_chance, rates, random.random(_DRAWS)), [0.025, 0.975]).tolist()
    if value is not None:
        low, high = min(low, value), max(high, value)
    unseen_bound = unseen_share(reported.n)
    return Estimate(value=value, ci95=(min(low, 1.0 - unseen_bound), max(high, unseen_bound)), n=reported.n)


class PositionBias(FrozenModel):
    """Position bias of pairs judged in both orders.

    `flips`: share of pairs in which the two verdicts differ, among the pairs with two parsed verdicts. `picks_first`:
    share of all verdicts for the output shown first. `lean`: `picks_first` minus the share for the output shown second,
    from −1 to 1.
    """

    flips: Estimate
    picks_first: Estimate
    lean: Estimate


def position_bias(in_order: Sequence[Hashable], swapped: Sequence[Hashable]) -> PositionBias:
    """Return the position bias in verdicts on the same pairs in both orders. `PositionBias` explains the figures.

    A verdict is 1 or 2 (the better output), None (unparseable) or any other value (a tie). Output 1 is shown first in
    `in_order`, output 2 in `swapped`. Reference: Zheng et al. 2023 (arXiv 2306.05685), section 3.3.

    >>> bias = position_bias([1, 1, 2, 1], [2, 1, 2, 2])
    >>> bias.flips.value, bias.picks_first.value, bias.lean.value
    (0.5, 0.75, 0.5)
    """
    pairs = list(zip(in_order, swapped, strict=True))
    first = [((plain == 1) + (reverse == 2)) / 2 for plain, reverse in pairs]
    second = [((plain == 2) + (reverse == 1)) / 2 for plain, reverse in pairs]
    parsed = [pair for pair in pairs if None not in pair]
    return PositionBias(
        flips=rate(sum(plain != reverse for plain, reverse in parsed), len(parsed)),
        picks_first=mean_within(first),
        lean=mean_within([plain - reverse for plain, reverse in zip(first, second, strict=True)], -1.0, 1.0),
    )


def shift(before: Sequence[float], after: Sequence[float], scale: tuple[float, float] = (0.0, 1.0)) -> Estimate:
    """Return the mean shift from `before` to `after` as a share of the scale, from −1 to 1.

    >>> shift([3, 3, 4, 2], [4, 3, 5, 4], (1, 5)).value
    0.25
    """
    width = scale[1] - scale[0]
    return mean_within([(new - old) / width for old, new in zip(before, after, strict=True)], -1.0, 1.0)


def _agreeing_share(replicates: Sequence[Hashable]) -> float | None:
    """Return the share of equal pairs among the outputs that are not None. Return None if there is no pair."""
    counts = Counter(verdict for verdict in replicates if verdict is not None)
    pairs = math.comb(counts.total(), 2)
    return sum(math.comb(count, 2) for count in counts.values()) / pairs if pairs else None


def repeatability(repeats: Iterable[Sequence[Hashable]]) -> Estimate:
    """Return the mean share of equal pairs of outputs per request, from 0 to 1. An output of None is skipped."""
    return mean_within([same for replicates in repeats if (same := _agreeing_share(replicates)) is not None])


def own_noise(units: Iterable[Iterable[Sequence[Hashable]]]) -> Estimate | None:
    """Return the share of pairs of replicates that differ. Return None if no request has two replicates.

    A unit is an item. It has a list of replicates for each request, for example for each of two orders.

    >>> noise = own_noise([[[1, 1], [1, 2]], [[2, 2], [2, 2]]])
    >>> noise.value, noise.n
    (0.25, 2)
    """
    shares = [[same for one in unit if (same := _agreeing_share(one)) is not None] for unit in units]
    noise = [1.0 - math.fsum(unit) / len(unit) for unit in shares if unit]
    return mean_within(noise) if noise else None


def confusion(rows: Sequence[Hashable], columns: Sequence[Hashable], categories: Sequence[Hashable]) -> Floats:
    """Return the count of each pair (row, column): shape [categories, categories], in the order of `categories`."""
    indices = {category: index for index, category in enumerate(categories)}
    table = np.zeros((len(indices), len(indices)))
    for row, column in zip(rows, columns, strict=True):
        table[indices[row], indices[column]] += 1
    return table


def cohen_kappa(table: Floats, weighting: Weighting = "nominal") -> Estimate:
    """Return Cohen's κ of a table of counts, with its 95 % interval. Rows and columns are the categories of two raters.

    κ is from −1 to 1: 1 is full agreement, 0 is agreement by chance. With linear weighting, a disagreement counts by
    the distance of the two categories. κ is None for an empty table, and if both raters always chose the same category.

    Cohen 1960 (doi:10.1177/001316446002000104) and 1968 (doi:10.1037/h0026256). The interval is computed on Fisher's z
    scale, with the standard error of Fleiss, Cohen and Everitt 1969 (doi:10.1037/h0028106).
    """
    n, indices = float(table.sum()), np.arange(len(table))
    distance = np.abs(np.subtract.outer(indices, indices)).astype(float)
    weights = distance if weighting == "linear" else np.minimum(distance, 1.0)
    shares = table / (n or 1.0)
    row_shares, column_shares = shares.sum(axis=1), shares.sum(axis=0)
    expected = float(row_shares @ weights @ column_shares)
    if expected == 0.0:
        return Estimate(value=None, ci95=None, n=round(n))
    observed = float((weights * shares).sum())
    value, max_change = 1.0 - observed / expected, float(weights.max()) / expected
    if 1.0 - abs(value) < 1e-12:
        width = min(2.0, unseen_share(round(n)) * max_change)
        return Estimate(value=value, ci95=(1.0 - width, 1.0) if value > 0 else (-1.0, width - 1.0), n=round(n))
    margins = (weights @ column_shares)[:, None] + (row_shares @ weights)[None, :] - 2 * expected
    influence = (observed * margins / expected - (weights - observed)) / expected
    variance = float((shares * influence**2).sum() - (shares * influence).sum() ** 2) / n
    error = math.hypot(max(0.0, variance) ** 0.5, max_change / 2 / round(n))  # adds the effect of half a unit
    return _on_fisher_scale(value, Z * error / (1.0 - value * value), round(n))


def _on_fisher_scale(value: float, step: float, n: int) -> Estimate:
    """Return a coefficient in (−1, 1) over n units, with the interval tanh(atanh(value) ± `step`)."""
    centre = math.atanh(value)
    return Estimate(value=value, ci95=(math.tanh(centre - step), math.tanh(centre + step)), n=n)


class Trust(FrozenModel):
    """Whether κ with human labels reaches a bar; null if undecided. `more_labels`: further labels that would decide."""

    kappa: Estimate
    trusted: bool | None
    more_labels: NonNegativeInt | None = None

    @property
    def decision(self) -> str:
        """The decision as a word: trusted, not trusted or undecided."""
        return {True: "trusted", False: "not trusted", None: "undecided"}[self.trusted]

    def summary(self, bar: float) -> str:
        """Format the decision and what is missing for trust: a number of labels, or the distance of κ from the bar."""
        ci95, missing = self.kappa.ci95, ""
        if self.trusted is None and ci95 is None:
            missing = ": all labels or all verdicts are the same"
        elif self.trusted is None and self.more_labels is None:
            missing = ": too close to the bar for any number of labels"
        elif self.trusted is None:
            missing = f": about {counted(self.more_labels or 0, 'more label')} would decide"
        elif ci95 is not None and not self.trusted:
            missing = f": κ misses the bar by at least {number(bar - ci95[1])}"
        return self.decision + missing


def trust_of(table: Floats, bar: float = BAR, weighting: Weighting = "nominal") -> Trust:
    """Decide whether to trust a judge by κ. `table` has the counts of verdicts (rows) by human label (columns).

    If the whole 95 % interval of κ is at the bar or above, trust the judge. If the whole interval is below the bar, do
    not trust the judge. Otherwise estimate how many more labels would decide, if the shares in the table stay the same.
    """

    def decide(labels: int) -> bool | None:
        low, high = cohen_kappa(table * (labels / kappa.n), weighting).ci95 or (-1.0, 1.0)
        return True if low >= bar else False if high < bar else None

    kappa = cohen_kappa(table, weighting)
    if kappa.ci95 is None or decide(kappa.n) is not None or decide(MAX_LABELS) is None:
        return Trust(kappa=kappa, trusted=None if kappa.ci95 is None else decide(kappa.n))
    min_labels = bisect_left(range(MAX_LABELS), True, lo=kappa.n, key=lambda labels: decide(labels) is not None)
    return Trust(kappa=kappa, trusted=None, more_labels=min_labels - kappa.n)


def spearman(x: Sequence[float], y: Sequence[float]) -> Estimate:
    """Return Spearman's rank correlation ρ, from −1 to 1, and its 95 % interval.

    Value and interval are None for fewer than four pairs of values, or if one variable is constant. The interval is
    computed on Fisher's z scale (Bonett and Wright 2000, doi:10.1007/BF02294183).
    """
    n = len(x)
    if n < 4 or len(set(x)) < 2 or len(set(y)) < 2:
        return Estimate(value=None, ci95=None, n=n)
    from scipy.stats import spearmanr

    value = min(1.0, max(-1.0, float(spearmanr(x, y).statistic)))
    nearest = 1.0 - 12.0 / (n * (n * n - 1))  # the largest ρ below 1: two neighbouring ranks are exchanged
    step = Z * math.sqrt((1.0 + value * value / 2.0) / (n - 3))
    low, high = _on_fisher_scale(max(-nearest, min(nearest, value)), step, n).ci95 or (value, value)
    return Estimate(value=value, ci95=(min(low, value), max(high, value)), n=n)
