"""How far do any number of raters agree beyond chance? Krippendorff's α with an interval; raters may skip units."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from skill_evaluator.judges.statistics.bounded import Bounded, coefficient
from skill_evaluator.judges.statistics.kappa import Floats

Level = Literal["nominal", "ordinal", "interval"]


def krippendorff(units: Sequence[Mapping[Any, int]], level: Level) -> Bounded:
    """Return α = 1 − observed ÷ expected disagreement; a unit counts how often each value was given to it.

    The disagreement of two values is 1 (nominal), the squared number of values between their ranks (ordinal) or their
    squared difference (interval). Values are the pairable ones: those of units that have two or more. Range −1 to 1, 1
    is best, 0 is chance; undefined where no unit has two values, and where all values are the same. `n` counts units.
    Nominal α is that of `metrics.agreement`, which needs no interval.

    Krippendorff 2011, https://repository.upenn.edu/asc_papers/43; standard error by leaving out a unit at a time
    (jackknife), on Fisher's z scale (`bounded.coefficient`).

    >>> krippendorff([{1: 2}, {2: 2}, {3: 1, 2: 1}], "interval").value
    0.7058823529411764
    """
    paired = [unit for unit in units if sum(unit.values()) > 1]
    values = list(dict.fromkeys(value for unit in paired for value in unit))
    if level != "nominal":
        values.sort()
    places = {value: place for place, value in enumerate(values)}
    counts = np.zeros((len(paired), len(values)))  # [units, values]
    for row, unit in enumerate(paired):
        for value, count in unit.items():
            counts[row, places[value]] = count
    given = counts.sum(axis=1)
    totals = counts.sum(axis=0)
    distances = _distances(values, totals, level)
    inside = np.einsum("uc,ck,uk->u", counts, distances, counts) / np.maximum(given - 1, 1)
    expected = float(totals @ distances @ totals)
    if expected == 0.0:
        return Bounded(value=None, ci95=None, n=len(paired))
    size = float(given.sum())
    value = 1.0 - (size - 1) * float(inside.sum()) / expected
    others, left = totals - counts, size - given
    by_chance = np.einsum("uc,ck,uk->u", others, distances, others)
    without = 1.0 - (left - 1) * (inside.sum() - inside) / np.where(by_chance > 0, by_chance, np.inf)
    count = len(paired)
    error = float(np.sqrt((count - 1) / count * ((without - without.mean()) ** 2).sum()))
    return coefficient(max(-1.0, value), error, float(distances.max()) * size * (size - 1) / expected, count)


def _distances(values: Sequence[Any], totals: Floats, level: Level) -> Floats:
    """Return the disagreement of each pair of values, shape [values, values]."""
    if level == "nominal":
        return 1.0 - np.eye(len(values))
    places = np.array(values, float) if level == "interval" else np.cumsum(totals) - totals / 2  # middle ranks
    return np.asarray(np.subtract.outer(places, places) ** 2)
