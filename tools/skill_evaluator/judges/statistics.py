"""The statistics of judges: figures with 95 % intervals, biases, and agreement of raters beyond chance.

No interval has zero width because nothing varied: n units may not show what is there. A judge is trusted by human
labels only, never because it agrees with itself.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, TypeAlias

from pydantic import NonNegativeInt, PlainSerializer

from skill_evaluator.files import FrozenModel
from skill_evaluator.stats import rate_interval, unit_interval, unseen_share

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
Weighting = Literal["nominal", "linear"]
MAX_LABELS = 10_000  # nobody plans to label more
Z = 1.959963984540054  # the 97.5 % quantile of the normal distribution
BAR = 0.6  # κ is then «substantial», Landis and Koch 1977 (doi:10.2307/2529310)
_DRAWS = 5_000
_SEED = 20_240_501  # any fixed seed: the same counts always give the same interval


def _written(value: float) -> float:
    return round(value, 6) + 0.0  # what rounds to zero has no sign


Written = Annotated[float, PlainSerializer(_written)]


class Figure(FrozenModel):
    """A figure over n units, with six digits in files; `value` or `ci95` is None if it is not defined."""

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


class PositionBias(NamedTuple):
    """Position figures of pairs judged in both orders.

    `flips`: share of the pairs with two parsed verdicts whose verdict changes with the order. `picks_first`: share of
    verdicts for the output that stands first. `lean`: that minus the share for the second, from −1 to 1.
    """

    flips: Figure
    picks_first: Figure
    lean: Figure


def position_bias(in_order: Sequence[Hashable], swapped: Sequence[Hashable]) -> PositionBias:
    """Compare verdicts on the same pairs in both orders; 1 and 2 name the outputs, and anything else is neither.

    In order output 1 stands first, swapped output 2 does; None is a verdict that could not be parsed. Intervals are
    over pairs, because the two verdicts on a pair depend on each other. Zheng et al. 2023 (arXiv 2306.05685), 3.3.

    >>> bias = position_bias([1, 1, 2, 1], [2, 1, 2, 2])
    >>> bias.flips.value, bias.picks_first.value, bias.lean.value
    (0.5, 0.75, 0.5)
    """
    pairs = list(zip(in_order, swapped, strict=True))
    first = [((one == 1) + (other == 2)) / 2 for one, other in pairs]
    second = [((one == 2) + (other == 1)) / 2 for one, other in pairs]
    parsed = [pair for pair in pairs if None not in pair]
    return PositionBias(
        flips=rate(sum(one != other for one, other in parsed), len(parsed)),
        picks_first=mean_within(first),
        lean=mean_within([one - other for one, other in zip(first, second, strict=True)], -1.0, 1.0),
    )


def shift(plain: Sequence[float], changed: Sequence[float], scale: tuple[float, float] = (0.0, 1.0)) -> Figure:
    """Return the mean shift of values as a share of the scale, from −1 to 1.

    The values are people's and the judge's (length bias, self-preference), or the judge's before and after a text was
    added (probes): picks of an output (1, 0, or 0.5 for a tie) or scores.

    >>> shift([3, 3, 4, 2], [4, 3, 5, 4], (1, 5)).value
    0.25
    """
    width = scale[1] - scale[0]
    return mean_within([(new - old) / width for old, new in zip(plain, changed, strict=True)], -1.0, 1.0)


def _agreeing_share(replicates: Sequence[Hashable]) -> float | None:
    """Return the share of equal pairs of replicates. Return None if fewer than two could be parsed."""
    counts = Counter(verdict for verdict in replicates if verdict is not None)
    pairs = math.comb(counts.total(), 2)
    return sum(math.comb(count, 2) for count in counts.values()) / pairs if pairs else None


def repeatability(repeats: Iterable[Sequence[Hashable]]) -> Figure:
    """Return the repeatability: the mean over items of the share of equal pairs of outputs for one request.

    Range 0 to 1, 1 is best. Unparsed outputs (None) are left out, and so are items with fewer than two others.
    """
    return mean_within([same for replicates in repeats if (same := _agreeing_share(replicates)) is not None])


def own_noise(units: Iterable[Iterable[Sequence[Hashable]]]) -> Figure | None:
    """Return the share of outputs for one request that differ. Return None if no request was repeated.

    A unit has the outputs of each of its requests, such as both orders of a pair, which depend on each other.

    >>> noise = own_noise([[[1, 1], [1, 2]], [[2, 2], [2, 2]]])
    >>> noise.value, noise.n
    (0.25, 2)
    """
    shares = [[same for one in unit if (same := _agreeing_share(one)) is not None] for unit in units]
    noise = [1.0 - math.fsum(unit) / len(unit) for unit in shares if unit]
    return mean_within(noise) if noise else None


def confusion(left: Sequence[Hashable], right: Sequence[Hashable], categories: Sequence[Hashable]) -> Floats:
    """Return the counts of each pair of categories, shape [left, right] in the order of `categories`."""
    import numpy as np

    places = {category: place for place, category in enumerate(categories)}
    table = np.zeros((len(places), len(places)))
    for given, other in zip(left, right, strict=True):
        table[places[given], places[other]] += 1
    return table


def cohen_kappa(table: Floats, weighting: Weighting = "nominal") -> Figure:
    """Return κ = 1 − Σ v p ÷ Σ v p_left p_right of a confusion table of shares p, with its 95 % interval.

    v is the weight of a disagreement: 1 (nominal), or the distance of the two categories (linear), which need an order.
    Range −1 to 1, 1 is best, 0 is chance; undefined for an empty table and where both raters always gave the same one
    category. Counts need not be whole.

    Cohen 1960 (doi:10.1177/001316446002000104) and 1968 (doi:10.1037/h0026256); standard error by Fleiss, Cohen and
    Everitt 1969 (doi:10.1037/h0028106), on Fisher's z scale. The interval counts half a unit more that turned from
    agreement to full disagreement, since the standard error knows nothing of what no unit showed; at 1 and −1 it is the
    bound on what n units never showed.

    >>> import numpy as np
    >>> kappa = cohen_kappa(np.array([[20.0, 5.0], [10.0, 15.0]]))
    >>> round(kappa.value, 3), [round(bound, 2) for bound in kappa.ci95]
    (0.4, [0.12, 0.62])
    """
    import numpy as np

    n, places = float(table.sum()), np.arange(len(table))
    distance = np.abs(np.subtract.outer(places, places)).astype(float)
    weights = distance if weighting == "linear" else np.minimum(distance, 1.0)
    shares = table / (n or 1.0)
    left, right = shares.sum(axis=1), shares.sum(axis=0)
    chance = float(left @ weights @ right)
    if chance == 0.0:
        return Figure(value=None, ci95=None, n=round(n))
    seen = float((weights * shares).sum())
    value, reach = 1.0 - seen / chance, float(weights.max()) / chance
    if 1.0 - abs(value) < 1e-12:
        width = min(2.0, unseen_share(round(n)) * reach)
        return Figure(value=value, ci95=(1.0 - width, 1.0) if value > 0 else (-1.0, width - 1.0), n=round(n))
    margins = (weights @ right)[:, None] + (left @ weights)[None, :] - 2 * chance
    influence = (seen * margins / chance - (weights - seen)) / chance
    variance = float((shares * influence**2).sum() - (shares * influence).sum() ** 2) / n
    error = math.hypot(max(0.0, variance) ** 0.5, reach / 2 / round(n))
    return _on_fisher_scale(value, Z * error / (1.0 - value * value), round(n))


def _on_fisher_scale(value: float, step: float, n: int) -> Figure:
    """Return a coefficient in (−1, 1) with the interval of ± step around atanh(value)."""
    centre = math.atanh(value)
    return Figure(value=value, ci95=(math.tanh(centre - step), math.tanh(centre + step)), n=n)


class Trust(FrozenModel):
    """Whether κ with people reaches a bar; if not decided, about how many `more_labels` would decide."""

    kappa: Figure
    trusted: bool | None
    more_labels: NonNegativeInt | None = None


def trust_of(table: Floats, bar: float = BAR, weighting: Weighting = "nominal") -> Trust:
    """Decide by the 95 % interval of κ of a confusion table [judge, people] whether a judge is trusted.

    The judge is trusted if the whole interval is at the bar or above, not trusted if all of it is below, and undecided
    otherwise. The number of further labels assumes that they fall alike.

    >>> import numpy as np
    >>> trust_of(np.array([[45.0, 2.0], [3.0, 50.0]])).trusted
    True
    >>> trust_of(np.array([[9.0, 1.0], [1.0, 9.0]])).more_labels
    48
    """

    def decide(labels: int) -> bool | None:
        low, high = cohen_kappa(table * (labels / kappa.n), weighting).ci95 or (-1.0, 1.0)
        return True if low >= bar else False if high < bar else None

    kappa = cohen_kappa(table, weighting)
    if kappa.ci95 is None or decide(kappa.n) is not None or decide(MAX_LABELS) is None:
        return Trust(kappa=kappa, trusted=None if kappa.ci95 is None else decide(kappa.n))
    deciding = bisect_left(range(MAX_LABELS), True, lo=kappa.n, key=lambda labels: decide(labels) is not None)
    return Trust(kappa=kappa, trusted=None, more_labels=deciding - kappa.n)


def spearman(left: Sequence[float], right: Sequence[float]) -> Figure:
    """Return Spearman's rank correlation ρ with its 95 % interval on Fisher's z scale.

    Range −1 to 1. ρ is undefined for fewer than four units and if one side never varies. The standard error is
    √((1 + ρ² ÷ 2) ÷ (n − 3)): Bonett and Wright 2000 (doi:10.1007/BF02294183). If all ranks agree, the interval is that
    of one exchange of neighbours, so that it keeps a width.
    """
    n = len(left)
    if n < 4 or len(set(left)) < 2 or len(set(right)) < 2:
        return Figure(value=None, ci95=None, n=n)
    from scipy.stats import spearmanr

    value = min(1.0, max(-1.0, float(spearmanr(left, right).statistic)))
    nearest = 1.0 - 12.0 / (n * (n * n - 1))
    step = Z * math.sqrt((1.0 + value * value / 2.0) / (n - 3))
    low, high = _on_fisher_scale(max(-nearest, min(nearest, value)), step, n).ci95 or (value, value)
    return Figure(value=value, ci95=(min(low, value), max(high, value)), n=n)
