"""Do a judge's scores rise with people's? Spearman's rank correlation with an interval."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import rankdata

from skill_evaluator.judges.statistics.bounded import Bounded, Z
from skill_evaluator.judges.statistics.kappa import Floats


def spearman(left: Sequence[float], right: Sequence[float]) -> Bounded:
    """Return ρ, the correlation of ranks (ties have their mean rank), with its 95 % interval.

    Range −1 to 1; undefined for fewer than four units, and where one side never varies.

    The interval is on Fisher's z scale, with the standard error of leaving out a unit at a time (jackknife): scores of
    few levels are far from the normal ones that closed formulas suppose. Where all ranks agree, ρ is taken one exchange
    of neighbours lower. There, and where the jackknife finds no error (four units can balance), the error is that of
    independent ranks, 1 ÷ √(n − 3), so that the interval keeps a width.

    >>> round(spearman([1, 2, 3, 4, 5], [1, 3, 2, 5, 4]).value, 3)
    0.8
    """
    n = len(left)
    if n < 4 or len(set(left)) < 2 or len(set(right)) < 2:
        return Bounded(value=None, ci95=None, n=n)
    sides = np.asarray([left, right], float)
    ranks = np.stack([rankdata(side) for side in sides])
    value = min(1.0, max(-1.0, float(np.asarray(np.corrcoef(ranks))[0, 1])))
    nearest = 1.0 - 12.0 / (n * (n * n - 1))
    centre = math.atanh(max(-nearest, min(nearest, value)))
    error = 0.0 if abs(value) >= nearest else _jackknife_error(sides, ranks) / (1.0 - value * value)
    if error < 1e-9:
        error = 1.0 / math.sqrt(n - 3)
    low, high = math.tanh(centre - Z * error), math.tanh(centre + Z * error)
    return Bounded(value=value, ci95=(min(low, value), max(high, value)), n=n)


def _jackknife_error(sides: Floats, ranks: Floats) -> float:
    """Return the standard error of ρ; without a unit the ranks above it are one lower, equal ones half."""
    n = sides.shape[1]
    without = []
    for unit in range(n):
        left_out = sides[:, unit : unit + 1]
        lowered = np.delete(ranks - (sides > left_out) - (sides == left_out) / 2, unit, axis=1)
        lowered -= lowered.mean(axis=1, keepdims=True)
        together, *alone = lowered[0] @ lowered[1], lowered[0] @ lowered[0], lowered[1] @ lowered[1]
        without.append(together / math.sqrt(alone[0] * alone[1]) if all(alone) else 0.0)
    away = np.asarray(without) - np.mean(without)
    return math.sqrt((n - 1) / n * float(away @ away))
