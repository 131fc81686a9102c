"""How far do two raters of the same items agree beyond chance? Cohen's κ, plain and weighted, from their verdicts."""

from collections.abc import Hashable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from skill_evaluator.judges.statistics.bounded import Bounded, coefficient

Floats = NDArray[np.float64]
Weighting = Literal["nominal", "linear", "quadratic"]


def confusion(left: Sequence[Hashable], right: Sequence[Hashable], categories: Sequence[Hashable]) -> Floats:
    """Return how often each pair of categories was given, shape [left, right] in the order of `categories`.

    An unparsed verdict is a category of its own: name it among them. Raise ValueError for an unnamed one.

    >>> confusion([1, 1, 2, None], [1, 2, 2, 2], [1, 2, None]).astype(int).tolist()
    [[1, 1, 0], [0, 1, 0], [0, 1, 0]]
    """
    places = {category: place for place, category in enumerate(categories)}
    table = np.zeros((len(places), len(places)))
    for given, other in zip(left, right, strict=True):
        if given not in places or other not in places:
            raise ValueError(f"{given!r} and {other!r} must be among the categories {list(categories)}")
        table[places[given], places[other]] += 1
    return table


def cohen_kappa(table: Floats, weighting: Weighting = "nominal") -> Bounded:
    """Return κ = 1 − Σ v p ÷ Σ v p_left p_right of a confusion table of shares p, with its 95 % interval.

    v is the weight of a disagreement: 1 (nominal), the distance of the two categories (linear) or its square
    (quadratic); the weighted ones need categories in order. Range −1 to 1, 1 is best, 0 is chance; undefined for an
    empty table and where both raters always gave the same one category.

    Cohen 1960 (doi:10.1177/001316446002000104) and 1968 (doi:10.1037/h0026256); standard error by Fleiss, Cohen and
    Everitt 1969 (doi:10.1037/h0028106), on Fisher's z scale (`bounded.coefficient`). Counts need not be whole.

    >>> kappa = cohen_kappa(np.array([[20.0, 5.0], [10.0, 15.0]]))
    >>> round(kappa.value, 3), [round(bound, 2) for bound in kappa.ci95]
    (0.4, [0.12, 0.62])
    """
    n = float(table.sum())
    if n == 0.0:
        return Bounded(value=None, ci95=None, n=0)
    weights = _weights(len(table), weighting)
    shares = table / n
    left, right = shares.sum(axis=1), shares.sum(axis=0)
    chance = float(left @ weights @ right)
    if chance == 0.0:
        return Bounded(value=None, ci95=None, n=round(n))
    seen = float((weights * shares).sum())
    margins = (weights @ right)[:, None] + (left @ weights)[None, :] - 2 * chance
    influence = (seen * margins / chance - (weights - seen)) / chance
    variance = float((shares * influence**2).sum() - (shares * influence).sum() ** 2)
    return coefficient(1.0 - seen / chance, max(0.0, variance / n) ** 0.5, float(weights.max()) / chance, round(n))


def _weights(count: int, weighting: Weighting) -> Floats:
    distance = np.abs(np.subtract.outer(np.arange(count), np.arange(count))).astype(float)
    return {"nominal": (distance > 0).astype(float), "linear": distance, "quadratic": distance**2}[weighting]
