"""Biases of a judge: position, length, its own family and its own noise."""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from skill_evaluator.judges.statistics.bounded import Figure, mean_within, rate


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
    """Return how often two outputs for the same request agree: the mean over items of the share of equal pairs.

    Range 0 to 1, 1 is best. Unparsed outputs (None) are left out, and so are items with fewer than two others.
    """
    return mean_within([same for replicates in repeats if (same := _agreeing_share(replicates)) is not None])


def own_noise(units: Iterable[Iterable[Sequence[Hashable]]]) -> Figure | None:
    """Return how often two outputs for the same request differ. Return None if no request was repeated.

    A unit has the outputs of each of its requests, such as both orders of a pair, which depend on each other.

    >>> noise = own_noise([[[1, 1], [1, 2]], [[2, 2], [2, 2]]])
    >>> noise.value, noise.n
    (0.25, 2)
    """
    shares = [[same for one in unit if (same := _agreeing_share(one)) is not None] for unit in units]
    noise = [1.0 - math.fsum(unit) / len(unit) for unit in shares if unit]
    return mean_within(noise) if noise else None
