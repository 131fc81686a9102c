"""Does a judge favour what people do not? Its picks beside theirs, and what a change that adds nothing does to them."""

from collections.abc import Sequence

from skill_evaluator.judges.statistics.bounded import Bounded, difference, mean_within


def excess(judge: Sequence[float], people: Sequence[float]) -> Bounded:
    """Return how much oftener a judge favours a property than people do, on the same pairs: −1 to 1, 0 is none.

    Each value says whether the output with the property was picked: 1, 0, or 0.5 for a tie. The property is what the
    caller makes it: the longer output (length bias), one by a model of the judge's own family (self-preference). Pairs
    in which both or neither has it are left out by the caller.

    >>> excess([1, 1, 1, 0], [1, 0, 0, 0]).value
    0.5
    """
    return mean_within([mine - theirs for mine, theirs in zip(judge, people, strict=True)], -1.0, 1.0)


def shift(plain: Sequence[float], changed: Sequence[float], scale: tuple[float, float] = (0.0, 1.0)) -> Bounded:
    """Return how far a judge's values move, on the same texts, when a change adds nothing: −1 to 1, 0 is none.

    A value is a pick (1, 0, 0.5 for a tie) or a score on `scale`; a shift of scores is a share of the scale's width.
    The change is the caller's: padding with words (verbosity), a reference to an authority that says nothing. Such
    probes: «Justice or Prejudice?», arXiv 2410.02736.

    >>> shift([3, 3, 4, 2], [4, 3, 5, 4], (1, 5)).value
    0.25
    """
    width = scale[1] - scale[0]
    return mean_within([(new - old) / width for old, new in zip(plain, changed, strict=True)], -1.0, 1.0)


def favour(own: Sequence[float], others: Sequence[float]) -> Bounded:
    """Return how much more a judge scores above people what has a property than what has not: −1 to 1, 0 is none.

    Each value is the judge's score of an output minus people's, as a share of the scale's width: `own` of outputs with
    the property, such as those of the judge's own family, `others` of other outputs. `n` is the smaller number.

    >>> round(favour([0.25, 0.0, 0.25, 0.0], [0.0, 0.0, 0.25, -0.25]).value, 3)
    0.125
    """
    return difference(mean_within(own, -1.0, 1.0), mean_within(others, -1.0, 1.0))
