"""What moves a judge that ought not to: place, length, an author, its own noise, the middle of the scale."""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from skill_evaluator.judges.statistics.agreement import Floats
from skill_evaluator.judges.statistics.bounded import Figure, Z, mean_within, rate

_STEPS = 200
_CLOSE = 1e-9


class PositionBias(NamedTuple):
    """`flips`: share of the pairs with two parsed verdicts whose verdict changes with the order.

    `picks_first`: share of all verdicts for whatever stood first. `lean`: verdicts for the first place minus those for
    the second, −1 to 1; 0 for a judge that flips either way alike.
    """

    flips: Figure
    picks_first: Figure
    lean: Figure


def position_bias(in_order: Sequence[Hashable], swapped: Sequence[Hashable]) -> PositionBias:
    """Compare verdicts of the same pairs: 1 and 2 name the outputs; anything else is neither (a tie; None: not parsed).

    In order output 1 stands first, swapped output 2 does. Intervals are over pairs, since two verdicts on one pair
    depend on each other. 2306.05685, section 3.3.

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
    """Return how far values move, on the same texts, with what ought not to matter: −1 to 1, 0 for no shift.

    A value is a pick (1, 0, 0.5 for a tie) or a score on `scale`; a shift of scores is a share of the scale's width.
    The values may be a judge's before and after a change that adds nothing: padding with words (verbosity), a reference
    to an authority that says nothing. Such probes: «Justice or Prejudice?», arXiv 2410.02736. Or they are people's and
    the judge's, such as picks of the longer output (length bias) or of one by the judge's own family (self-preference).

    >>> shift([3, 3, 4, 2], [4, 3, 5, 4], (1, 5)).value
    0.25
    """
    width = scale[1] - scale[0]
    return mean_within([(new - old) / width for old, new in zip(plain, changed, strict=True)], -1.0, 1.0)


def pull_of_length(wins: Sequence[float], longer_by: Sequence[float]) -> Figure:
    """Return the log-odds that an output gains by being one standard deviation of the differences longer.

    `wins`: 1, 0 or 0.5 for a tie, one a pair; `longer_by`: how much longer the output is than the other, in any unit.
    The pull is b of logit P(win) = a + b tanh(difference ÷ its standard deviation about 0). Dubois et al. 2024
    (arXiv 2404.04475), without their term for the difficulty of an instruction. Fitted with Firth's penalty (1993,
    doi:10.1093/biomet/80.1.27), which is finite though length tell wins and losses apart; the interval is from the
    information matrix. Undefined for fewer than three pairs, and for equal lengths.

    >>> pull_of_length([1, 1, 1, 0, 1, 0, 0, 0], [90, 80, 70, 60, -50, -60, -70, -80]).value > 0
    True
    """
    import numpy as np

    n = len(wins)
    differences = np.asarray(longer_by, float)
    spread = math.sqrt((differences**2).mean()) if n else 0.0
    pull = np.tanh(differences / spread) if spread else differences
    if n < 3 or float(np.ptp(pull)) == 0.0:
        return Figure(value=None, ci95=None, n=n)
    fitted, errors = _firth(np.stack([np.ones(n), pull], axis=1), np.asarray(wins, float))
    value, margin = float(fitted[1]), Z * float(errors[1])
    return Figure(value=value, ci95=(value - margin, value + margin), n=n)


def _firth(design: Floats, wins: Floats) -> tuple[Floats, Floats]:
    """Return coefficients and standard errors of a logistic regression with the penalty ½ log |information|."""
    import numpy as np
    from scipy.special import expit

    coefficients = np.zeros(design.shape[1])
    for _ in range(_STEPS):
        chances = expit(design @ coefficients)
        weights = chances * (1 - chances)
        covariance = np.linalg.inv(design.T @ (weights[:, None] * design))
        leverage = weights * np.einsum("nk,kl,nl->n", design, covariance, design)
        step = covariance @ (design.T @ (wins - chances + leverage * (0.5 - chances)))
        coefficients = coefficients + step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < _CLOSE:
            break
    return coefficients, np.sqrt(np.diag(covariance))


def middle_excess(judge: Sequence[float], people: Sequence[float], scale: tuple[float, float]) -> Figure:
    """Return the share of a judge's scores in the inner half of the scale, minus that of people's; above 0: too much.

    >>> middle_excess([3, 3, 2, 4, 3], [1, 5, 2, 4, 1], (1, 5)).value
    0.6
    """
    centre, reach = (scale[0] + scale[1]) / 2, (scale[1] - scale[0]) / 4
    mine, theirs = ([float(abs(score - centre) <= reach) for score in scores] for scores in (judge, people))
    return shift(theirs, mine)


def spread_ratio(judge: Sequence[float], people: Sequence[float]) -> Figure:
    """Return the standard deviation of a judge's scores ÷ that of people's on the same texts; below 1: too narrow.

    The interval: the log ratio, leaving out a text at a time. Undefined for fewer than three texts, and where one side
    gives one score only.

    >>> round(spread_ratio([3, 3, 2, 4, 3], [1, 5, 2, 4, 1]).value, 2)
    0.39
    """
    import numpy as np

    n = len(judge)
    if n < 3 or len(set(judge)) < 2 or len(set(people)) < 2:
        return Figure(value=None, ci95=None, n=n)
    (mine, without_mine), (theirs, without_theirs) = _log_spreads(judge), _log_spreads(people)
    value, without = mine - theirs, without_mine - without_theirs
    if not np.isfinite(without).all():  # one text makes all the spread there is
        return Figure(value=math.exp(value), ci95=None, n=n)
    error = math.sqrt((n - 1) / n * float(((without - without.mean()) ** 2).sum()))
    from scipy.special import stdtrit

    margin = float(stdtrit(n - 1, 0.975)) * error
    return Figure(value=math.exp(value), ci95=(math.exp(value - margin), math.exp(value + margin)), n=n)


def _log_spreads(scores: Sequence[float]) -> tuple[float, Floats]:
    """Return the log standard deviation of all scores, and of all but each one."""
    import numpy as np

    values = np.asarray(scores, float)
    n, away = len(values), values - values.mean()
    squares = float((away**2).sum())
    without = np.maximum(0.0, squares - away**2 * n / (n - 1))
    with np.errstate(divide="ignore"):
        return math.log(squares / (n - 1)) / 2, np.log(np.where(without > 1e-12 * squares, without, 0.0) / (n - 2)) / 2


def repeatability(repeats: Sequence[Sequence[Hashable]]) -> Figure:
    """Return how often two answers to a byte-identical request agree: the mean over items of the share of equal pairs.

    1 minus it is the judge's own noise, no matter of order or wording. Range 0 to 1, 1 is best; unparsed answers
    (None) are left out, and items with fewer than two others. `n` counts items.

    >>> repeatability([[1, 1, 1], [1, 2, 1], [2, 2]]).value.__round__(3)
    0.778
    """
    agreeing = []
    for answers in repeats:
        counts = Counter(answer for answer in answers if answer is not None)
        if counts.total() > 1:
            agreeing.append(sum(math.comb(count, 2) for count in counts.values()) / math.comb(counts.total(), 2))
    return mean_within(agreeing)


def own_noise(units: Iterable[Sequence[Sequence[Hashable]]]) -> Figure | None:
    """Return how often two answers to the same request differ; None where none was asked twice.

    A unit has the answers to each of its requests, such as both orders of a pair, which depend on each other.

    >>> noise = own_noise([[[1, 1], [1, 2]], [[2, 2], [2, 2]]])
    >>> noise.value, noise.n
    (0.25, 2)
    """
    same = [share for unit in units if (share := repeatability(unit).value) is not None]
    return mean_within([1.0 - share for share in same]) if same else None
