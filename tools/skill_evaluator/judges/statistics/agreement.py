"""Agreement of raters beyond chance (Cohen's κ, Spearman's ρ), and whether a judge is trusted.

A judge is trusted by human labels only, never because it agrees with itself.
"""

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from pydantic import NonNegativeInt

from skill_evaluator.files import FrozenModel
from skill_evaluator.judges.statistics.bounded import BAR, Figure, Z, coefficient

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
Weighting = Literal["nominal", "linear"]
MAX_LABELS = 10_000  # nobody plans to label more


def confusion(left: Sequence[Hashable], right: Sequence[Hashable], categories: Sequence[Hashable]) -> Floats:
    """Return how often each pair of categories occurs, shape [left, right] in the order of `categories`.

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


class Trust(FrozenModel):
    """Whether κ with people reaches a bar. `trusted`: null if the labels do not decide.

    `more_labels`: about how many more labels would decide; null if it is decided or 10,000 would not decide.
    """

    kappa: Figure
    trusted: bool | None
    more_labels: NonNegativeInt | None = None


def trust_of(table: Floats, bar: float = BAR, weighting: Weighting = "nominal") -> Trust:
    """Decide by the 95 % interval of κ of a confusion table [judge, people] whether a judge is trusted.

    The judge is trusted if the whole interval is at the bar or above, not trusted if all of it is below, and undecided
    otherwise. The number of further labels assumes that they fall alike.

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
    low, high = n, MAX_LABELS
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


def spearman(left: Sequence[float], right: Sequence[float]) -> Figure:
    """Return Spearman's rank correlation ρ with its 95 % interval on Fisher's z scale.

    Range −1 to 1. ρ is undefined for fewer than four units and if one side never varies. The standard error is
    √((1 + ρ² ÷ 2) ÷ (n − 3)): Bonett and Wright 2000 (doi:10.1007/BF02294183). If all ranks agree, the interval is that
    of one exchange of neighbours, so that it keeps a width.

    >>> round(spearman([1, 2, 3, 4, 5], [1, 3, 2, 5, 4]).value, 3)
    0.8
    """
    n = len(left)
    if n < 4 or len(set(left)) < 2 or len(set(right)) < 2:
        return Figure(value=None, ci95=None, n=n)
    from scipy.stats import spearmanr

    value = min(1.0, max(-1.0, float(spearmanr(left, right).statistic)))
    nearest = 1.0 - 12.0 / (n * (n * n - 1))
    centre = math.atanh(max(-nearest, min(nearest, value)))
    step = Z * math.sqrt((1.0 + value * value / 2.0) / (n - 3))
    low, high = math.tanh(centre - step), math.tanh(centre + step)
    return Figure(value=value, ci95=(min(low, value), max(high, value)), n=n)
