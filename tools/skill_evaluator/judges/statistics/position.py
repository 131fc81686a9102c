"""Does a judge go by where an output stands? Its verdicts in both orders, mapped back to the outputs → rates."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from skill_evaluator.judges.statistics.bounded import Bounded, difference, mean_within, rate

FIRST_OUTPUT, SECOND_OUTPUT = 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionBias:
    """`flips`: share of pairs whose verdict changes with the order (an unparsed one is a verdict of its own).

    `picks_first`: share of all verdicts for whatever stood first. `lean`: verdicts for the first place minus those for
    the second, −1 to 1; 0 for a judge that flips either way alike.
    """

    flips: Bounded
    picks_first: Bounded
    lean: Bounded


def position_bias(in_order: Sequence[Hashable], swapped: Sequence[Hashable]) -> PositionBias:
    """Compare verdicts of the same pairs: 1 and 2 name the outputs; anything else is neither (a tie, not parsed).

    In order output 1 stands first, swapped output 2 does. Intervals are over pairs, since two verdicts on one pair
    depend on each other. 2306.05685, section 3.3.

    >>> bias = position_bias([1, 1, 2, 1], [2, 1, 2, 2])
    >>> bias.flips.value, bias.picks_first.value, bias.lean.value
    (0.5, 0.75, 0.5)
    """
    pairs = list(zip(in_order, swapped, strict=True))
    first = [((one == FIRST_OUTPUT) + (other == SECOND_OUTPUT)) / 2 for one, other in pairs]
    second = [((one == SECOND_OUTPUT) + (other == FIRST_OUTPUT)) / 2 for one, other in pairs]
    return PositionBias(
        flips=rate(sum(one != other for one, other in pairs), len(pairs)),
        picks_first=mean_within(first),
        lean=mean_within([one - other for one, other in zip(first, second, strict=True)], -1.0, 1.0),
    )


def flips_beyond_noise(flips: Bounded, noise: Bounded) -> Bounded:
    """Return the flips that the order makes, given the share that flips on byte-identical input: the judge's own noise.

    >>> round(flips_beyond_noise(rate(30, 100), rate(10, 100)).value, 3)
    0.2
    """
    return difference(flips, noise)
