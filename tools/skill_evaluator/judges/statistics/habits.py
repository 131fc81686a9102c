"""Biases of a judge: position, length, its own family and its own noise."""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from skill_evaluator.judges.statistics.agreement import Floats
from skill_evaluator.judges.statistics.bounded import Figure, Z, mean_within, rate

_STEPS = 200
_CLOSE = 1e-9


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


def repeatability(repeats: Sequence[Sequence[Hashable]]) -> Figure:
    """Return how often two outputs for the same request agree: the mean over items of the share of equal pairs.

    Range 0 to 1, 1 is best. Unparsed outputs (None) are left out, and so are items with fewer than two others. `n`
    counts items.

    >>> repeatability([[1, 1, 1], [1, 2, 1], [2, 2]]).value.__round__(3)
    0.778
    """
    agreeing = []
    for outputs in repeats:
        counts = Counter(output for output in outputs if output is not None)
        if counts.total() > 1:
            agreeing.append(sum(math.comb(count, 2) for count in counts.values()) / math.comb(counts.total(), 2))
    return mean_within(agreeing)


def own_noise(units: Iterable[Sequence[Sequence[Hashable]]]) -> Figure | None:
    """Return how often two outputs for the same request differ. Return None if no request was repeated.

    A unit has the outputs of each of its requests, such as both orders of a pair, which depend on each other.

    >>> noise = own_noise([[[1, 1], [1, 2]], [[2, 2], [2, 2]]])
    >>> noise.value, noise.n
    (0.25, 2)
    """
    same = [share for unit in units if (share := repeatability(unit).value) is not None]
    return mean_within([1.0 - share for share in same]) if same else None
