"""Agreement of raters beyond chance (Cohen's κ, Spearman's ρ), and whether a judge is trusted.

A judge is trusted by human labels only, never because it agrees with itself.
"""

import math
from bisect import bisect_left
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from pydantic import NonNegativeInt

from skill_evaluator.files import FrozenModel
from skill_evaluator.judges.statistics.bounded import BAR, Figure, Z
from skill_evaluator.stats import unseen_share

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
Weighting = Literal["nominal", "linear"]
MAX_LABELS = 10_000  # nobody plans to label more


def confusion(left: Sequence[Hashable], right: Sequence[Hashable], categories: Sequence[Hashable]) -> Floats:
    """Return how often each pair of categories occurs, shape [left, right] in the order of `categories`."""
    import numpy as np

    places = {category: place for place, category in enumerate(categories)}
    table = np.zeros((len(places), len(places)))
    for given, other in zip(left, right, strict=True):
        table[places[given], places[other]] += 1
    return table


def cohen_kappa(table: Floats, weighting: Weighting = "nominal") -> Figure:
    """Return κ = 1 − Σ v p ÷ Σ v p_left p_right of a confusion table of shares p, with its 95 % interval.

    v is the weight of a disagreement: 1 (nominal), or the distance of the two categories (linear), which need an order.
    Range −1 to 1, 1 is best, 0 is chance; undefined for an empty table and where both raters always gave the same one
    category. Counts need not be whole.

    Cohen 1960 (doi:10.1177/001316446002000104) and 1968 (doi:10.1037/h0026256); standard error by Fleiss, Cohen and
    Everitt 1969 (doi:10.1037/h0028106), on Fisher's z scale. The interval counts half a unit more that turned from
    agreement to full disagreement, since the standard error knows nothing of what no unit showed; at 1 and −1 it is the
    bound on what n units never showed.

    >>> import numpy as np
    >>> kappa = cohen_kappa(np.array([[20.0, 5.0], [10.0, 15.0]]))
    >>> round(kappa.value, 3), [round(bound, 2) for bound in kappa.ci95]
    (0.4, [0.12, 0.62])
    """
    import numpy as np

    n, places = float(table.sum()), np.arange(len(table))
    distance = np.abs(np.subtract.outer(places, places)).astype(float)
    weights = distance if weighting == "linear" else np.minimum(distance, 1.0)
    shares = table / (n or 1.0)
    left, right = shares.sum(axis=1), shares.sum(axis=0)
    chance = float(left @ weights @ right)
    if chance == 0.0:
        return Figure(value=None, ci95=None, n=round(n))
    seen = float((weights * shares).sum())
    value, reach = 1.0 - seen / chance, float(weights.max()) / chance
    if 1.0 - abs(value) < 1e-12:
        width = min(2.0, unseen_share(round(n)) * reach)
        return Figure(value=value, ci95=(1.0 - width, 1.0) if value > 0 else (-1.0, width - 1.0), n=round(n))
    margins = (weights @ right)[:, None] + (left @ weights)[None, :] - 2 * chance
    influence = (seen * margins / chance - (weights - seen)) / chance
    variance = float((shares * influence**2).sum() - (shares * influence).sum() ** 2) / n
    error = math.hypot(max(0.0, variance) ** 0.5, reach / 2 / round(n))
    return _on_fisher_scale(value, Z * error / (1.0 - value * value), round(n))


def _on_fisher_scale(value: float, step: float, n: int) -> Figure:
    """Return a coefficient in (−1, 1) with the interval of ± step around atanh(value)."""
    centre = math.atanh(value)
    return Figure(value=value, ci95=(math.tanh(centre - step), math.tanh(centre + step)), n=n)


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

    def decide(labels: int) -> bool | None:
        low, high = cohen_kappa(table * (labels / kappa.n), weighting).ci95 or (-1.0, 1.0)
        return True if low >= bar else False if high < bar else None

    kappa = cohen_kappa(table, weighting)
    if kappa.ci95 is None or decide(kappa.n) is not None or decide(MAX_LABELS) is None:
        return Trust(kappa=kappa, trusted=None if kappa.ci95 is None else decide(kappa.n))
    deciding = bisect_left(range(MAX_LABELS), True, lo=kappa.n, key=lambda labels: decide(labels) is not None)
    return Trust(kappa=kappa, trusted=None, more_labels=deciding - kappa.n)


def spearman(left: Sequence[float], right: Sequence[float]) -> Figure:
    """Return Spearman's rank correlation ρ with its 95 % interval on Fisher's z scale.

    Range −1 to 1. ρ is undefined for fewer than four units and if one side never varies. The standard error is
    √((1 + ρ² ÷ 2) ÷ (n − 3)): Bonett and Wright 2000 (doi:10.1007/BF02294183). If all ranks agree, the interval is that
    of one exchange of neighbours, so that it keeps a width.
    """
    n = len(left)
    if n < 4 or len(set(left)) < 2 or len(set(right)) < 2:
        return Figure(value=None, ci95=None, n=n)
    from scipy.stats import spearmanr

    value = min(1.0, max(-1.0, float(spearmanr(left, right).statistic)))
    nearest = 1.0 - 12.0 / (n * (n * n - 1))
    step = Z * math.sqrt((1.0 + value * value / 2.0) / (n - 3))
    low, high = _on_fisher_scale(max(-nearest, min(nearest, value)), step, n).ci95 or (value, value)
    return Figure(value=value, ci95=(min(low, value), max(high, value)), n=n)
