"""How a judge uses its scale, and whether it says the same thing twice: scores and repeated verdicts → rates."""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from skill_evaluator.judges.statistics.bounded import Bounded, mean_within
from skill_evaluator.judges.statistics.kappa import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class CentralTendency:
    """`middle`: share of scores in the inner half of the scale, minus that of people's scores; above 0: too much.

    `spread`: standard deviation of the judge's scores ÷ that of people's; below 1: too narrow.
    """

    middle: Bounded
    spread: Bounded


def central_tendency(judge: Sequence[float], people: Sequence[float], scale: tuple[float, float]) -> CentralTendency:
    """Compare scores of the same texts. The interval of the spread: the log ratio, leaving out a text at a time.

    The spread is undefined for fewer than three texts, and where one side gives one score only.

    >>> tendency = central_tendency([3, 3, 2, 4, 3], [1, 5, 2, 4, 1], (1, 5))
    >>> tendency.middle.value, round(tendency.spread.value, 2)
    (0.6, 0.39)
    """
    centre, reach = (scale[0] + scale[1]) / 2, (scale[1] - scale[0]) / 4
    inner = [
        float(abs(mine - centre) <= reach) - float(abs(theirs - centre) <= reach)
        for mine, theirs in zip(judge, people, strict=True)
    ]
    return CentralTendency(middle=mean_within(inner, -1.0, 1.0), spread=_spread_ratio(judge, people))


def _spread_ratio(judge: Sequence[float], people: Sequence[float]) -> Bounded:
    n = len(judge)
    if n < 3 or len(set(judge)) < 2 or len(set(people)) < 2:
        return Bounded(value=None, ci95=None, n=n)
    (mine, without_mine), (theirs, without_theirs) = _log_spreads(judge), _log_spreads(people)
    value, without = mine - theirs, without_mine - without_theirs
    if not np.isfinite(without).all():  # one text makes all the spread there is
        return Bounded(value=math.exp(value), ci95=None, n=n)
    error = math.sqrt((n - 1) / n * float(((without - without.mean()) ** 2).sum()))
    margin = float(stdtrit(n - 1, 0.975)) * error
    return Bounded(value=math.exp(value), ci95=(math.exp(value - margin), math.exp(value + margin)), n=n)


def _log_spreads(scores: Sequence[float]) -> tuple[float, Floats]:
    """Return the log standard deviation of all scores, and of all but each one."""
    values = np.asarray(scores, float)
    n, away = len(values), values - values.mean()
    squares = float((away**2).sum())
    without = np.maximum(0.0, squares - away**2 * n / (n - 1))
    with np.errstate(divide="ignore"):
        return math.log(squares / (n - 1)) / 2, np.log(np.where(without > 1e-12 * squares, without, 0.0) / (n - 2)) / 2


def repeatability(repeats: Sequence[Sequence[Hashable]]) -> Bounded:
    """Return how often two answers to a byte-identical request agree: the mean over items of the share of equal pairs.

    1 minus it is the judge's own noise, no matter of order or wording. Range 0 to 1, 1 is best; items with fewer than
    two answers are left out; an unparsed answer (None) agrees with nothing. `n` counts items.

    >>> repeatability([[1, 1, 1], [1, 2, 1], [2, 2]]).value.__round__(3)
    0.778
    """
    agreeing = []
    for answers in repeats:
        if len(answers) > 1:
            counts = Counter(answer for answer in answers if answer is not None)
            agreeing.append(sum(math.comb(count, 2) for count in counts.values()) / math.comb(len(answers), 2))
    return mean_within(agreeing)


def own_noise(units: Iterable[Sequence[Sequence[Hashable]]]) -> Bounded | None:
    """Return how often two answers to the same request differ; None where none was asked twice.

    A unit has the answers to each of its requests, such as both orders of a pair, which depend on each other.

    >>> noise = own_noise([[[1, 1], [1, 2]], [[2, 2], [2, 2]]])
    >>> noise.value, noise.n
    (0.25, 2)
    """
    same = [share for unit in units if (share := repeatability(unit).value) is not None]
    return mean_within([1.0 - share for share in same]) if same else None
