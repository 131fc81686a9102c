"""How far do raters agree beyond chance, and may a judge be trusted by that? Cohen's κ, Krippendorff's α, Spearman's ρ.

Only people's labels make a judge trusted. That it agrees with itself, in both orders or every time, never does.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from skill_evaluator.judges.statistics.bounded import BAR, Figure, Z, coefficient

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
Weighting = Literal["nominal", "linear", "quadratic"]
Level = Literal["nominal", "ordinal", "interval"]
MOST_LABELS = 10_000  # more is no plan


def confusion(left: Sequence[Hashable], right: Sequence[Hashable], categories: Sequence[Hashable]) -> Floats:
    """Return how often each pair of categories was given, shape [left, right] in the order of `categories`.

    An unparsed verdict is a category of its own: name it among them. Raise ValueError for an unnamed one.

    >>> confusion([1, 1, 2, None], [1, 2, 2, 2], [1, 2, None]).astype(int).tolist()
    [[1, 1, 0], [0, 1, 0], [0, 1, 0]]
    """
    import numpy as np

    places = {category: place for place, category in enumerate(categories)}
    table = np.zeros((len(places), len(places)))
    for given, other in zip(left, right, strict=True):
        if given not in places or other not in places:
            raise ValueError(f"{given!r} and {other!r} must be among the categories {list(categories)}")
        table[places[given], places[other]] += 1
    return table


def cohen_kappa(table: Floats, weighting: Weighting = "nominal") -> Figure:
    """Return κ = 1 − Σ v p ÷ Σ v p_left p_right of a confusion table of shares p, with its 95 % interval.

    v is the weight of a disagreement: 1 (nominal), the distance of the two categories (linear) or its square
    (quadratic); the weighted ones need categories in order. Range −1 to 1, 1 is best, 0 is chance; undefined for an
    empty table and where both raters always gave the same one category.

    Cohen 1960 (doi:10.1177/001316446002000104) and 1968 (doi:10.1037/h0026256); standard error by Fleiss, Cohen and
    Everitt 1969 (doi:10.1037/h0028106), on Fisher's z scale (`bounded.coefficient`). Counts need not be whole.

    >>> import numpy as np
    >>> kappa = cohen_kappa(np.array([[20.0, 5.0], [10.0, 15.0]]))
    >>> round(kappa.value, 3), [round(bound, 2) for bound in kappa.ci95]
    (0.4, [0.12, 0.62])
    """
    n = float(table.sum())
    if n == 0.0:
        return Figure(value=None, ci95=None, n=0)
    weights = _weights(len(table), weighting)
    shares = table / n
    left, right = shares.sum(axis=1), shares.sum(axis=0)
    chance = float(left @ weights @ right)
    if chance == 0.0:
        return Figure(value=None, ci95=None, n=round(n))
    seen = float((weights * shares).sum())
    margins = (weights @ right)[:, None] + (left @ weights)[None, :] - 2 * chance
    influence = (seen * margins / chance - (weights - seen)) / chance
    variance = float((shares * influence**2).sum() - (shares * influence).sum() ** 2)
    return coefficient(1.0 - seen / chance, max(0.0, variance / n) ** 0.5, float(weights.max()) / chance, round(n))


def _weights(count: int, weighting: Weighting) -> Floats:
    import numpy as np

    distance = np.abs(np.subtract.outer(np.arange(count), np.arange(count))).astype(float)
    return {"nominal": (distance > 0).astype(float), "linear": distance, "quadratic": distance**2}[weighting]


class Trust(NamedTuple):
    """`trusted`: None if the labels do not decide. `more_labels`: about how many more would.

    `more_labels` is None where nothing is open, and where no number up to 10,000 would decide, or none can be told.
    """

    trusted: bool | None
    kappa: Figure
    more_labels: int | None = None


def trust_of(table: Floats, bar: float = BAR, weighting: Weighting = "nominal") -> Trust:
    """Judge a confusion table [judge's verdicts, people's labels] by the 95 % interval of its κ, plain or weighted.

    The whole interval at the bar or above: trusted; all of it below: not trusted; else undecided. The number of labels
    supposes that further ones fall as these did.

    >>> import numpy as np
    >>> trust_of(np.array([[45.0, 2.0], [3.0, 50.0]])).trusted
    True
    >>> trust_of(np.array([[9.0, 1.0], [1.0, 9.0]])).more_labels
    48
    """
    kappa = cohen_kappa(table, weighting)
    trusted = _decided(kappa, bar)
    if trusted is not None or kappa.ci95 is None:
        return Trust(trusted=trusted, kappa=kappa)
    n = kappa.n
    low, high = n, MOST_LABELS
    if _decided(cohen_kappa(table * (high / n), weighting), bar) is None:
        return Trust(trusted=None, kappa=kappa)
    while high - low > 1:
        middle = (low + high) // 2
        undecided = _decided(cohen_kappa(table * (middle / n), weighting), bar) is None
        low, high = (middle, high) if undecided else (low, middle)
    return Trust(trusted=None, kappa=kappa, more_labels=high - n)


def _decided(kappa: Figure, bar: float) -> bool | None:
    if kappa.ci95 is None or bar <= kappa.ci95[0]:
        return None if kappa.ci95 is None else True
    return False if kappa.ci95[1] < bar else None


def krippendorff(units: Sequence[Mapping[Any, int]], level: Level) -> Figure:
    """Return α = 1 − observed ÷ expected disagreement; a unit counts how often it has each value.

    The disagreement of two values is 1 (nominal), the squared number of values between their ranks (ordinal) or their
    squared difference (interval). Values are the pairable ones: those of units that have two or more. Range −1 to 1, 1
    is best, 0 is chance; undefined where no unit has two values, and where all values are the same. `n` counts units.
    Nominal α is that of `metrics.agreement`, which needs no interval.

    Krippendorff 2011, https://repository.upenn.edu/asc_papers/43; standard error by leaving out a unit at a time
    (jackknife), on Fisher's z scale (`bounded.coefficient`).

    >>> krippendorff([{1: 2}, {2: 2}, {3: 1, 2: 1}], "interval").value
    0.7058823529411764
    """
    import numpy as np

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
    distances = _disagreements(values, totals, level)
    inside = np.einsum("uc,ck,uk->u", counts, distances, counts) / np.maximum(given - 1, 1)
    expected = float(totals @ distances @ totals)
    if expected == 0.0:
        return Figure(value=None, ci95=None, n=len(paired))
    size = float(given.sum())
    value = 1.0 - (size - 1) * float(inside.sum()) / expected
    others, left = totals - counts, size - given
    by_chance = np.einsum("uc,ck,uk->u", others, distances, others)
    without = 1.0 - (left - 1) * (inside.sum() - inside) / np.where(by_chance > 0, by_chance, np.inf)
    count = len(paired)
    error = float(np.sqrt((count - 1) / count * ((without - without.mean()) ** 2).sum()))
    return coefficient(max(-1.0, value), error, float(distances.max()) * size * (size - 1) / expected, count)


def _disagreements(values: Sequence[Any], totals: Floats, level: Level) -> Floats:
    """Return the disagreement of each pair of values, shape [values, values]."""
    import numpy as np

    if level == "nominal":
        return 1.0 - np.eye(len(values))
    places = np.array(values, float) if level == "interval" else np.cumsum(totals) - totals / 2  # middle ranks
    return np.asarray(np.subtract.outer(places, places) ** 2)


def spearman(left: Sequence[float], right: Sequence[float]) -> Figure:
    """Return ρ, the correlation of ranks (ties have their mean rank), with its 95 % interval.

    Range −1 to 1; undefined for fewer than four units, and where one side never varies.

    The interval is on Fisher's z scale, with the standard error of leaving out a unit at a time (jackknife): scores of
    few levels are far from the normal ones that closed formulas suppose. Where all ranks agree, ρ is taken one exchange
    of neighbours lower. There, and where the jackknife finds no error (four units can balance), the error is that of
    independent ranks, 1 ÷ √(n − 3), so that the interval keeps a width.

    >>> round(spearman([1, 2, 3, 4, 5], [1, 3, 2, 5, 4]).value, 3)
    0.8
    """
    import numpy as np

    n = len(left)
    if n < 4 or len(set(left)) < 2 or len(set(right)) < 2:
        return Figure(value=None, ci95=None, n=n)
    from scipy.stats import rankdata

    sides = np.asarray([left, right], float)
    ranks = np.stack([rankdata(side) for side in sides])
    value = min(1.0, max(-1.0, float(np.asarray(np.corrcoef(ranks))[0, 1])))
    nearest = 1.0 - 12.0 / (n * (n * n - 1))
    centre = math.atanh(max(-nearest, min(nearest, value)))
    error = 0.0 if abs(value) >= nearest else _jackknife_error(sides, ranks) / (1.0 - value * value)
    if error < 1e-9:
        error = 1.0 / math.sqrt(n - 3)
    low, high = math.tanh(centre - Z * error), math.tanh(centre + Z * error)
    return Figure(value=value, ci95=(min(low, value), max(high, value)), n=n)


def _jackknife_error(sides: Floats, ranks: Floats) -> float:
    """Return the standard error of ρ; without a unit the ranks above it are one lower, equal ones half."""
    import numpy as np

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
