"""Which of several outputs is best? Wins and ties of pairs → strengths with intervals."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skill_evaluator.judges.statistics.agreement import Floats
from skill_evaluator.judges.statistics.bounded import Figure, Z

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_STEPS = 100
_CLOSE = 1e-10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WinMatrix:
    """`wins` [items, items]: how often the row beat the column; `ties`: how often they tied (symmetric)."""

    wins: Floats
    ties: Floats

    @classmethod
    def of(cls, results: Iterable[tuple[int, int, float]], items: int) -> "WinMatrix":
        """Count results (i, j, share of i): 1 where i won, 0 where j did, a tie for anything between."""
        import numpy as np

        wins, ties = np.zeros((items, items)), np.zeros((items, items))
        for left, right, share in results:
            if 0 < share < 1:
                ties[left, right] += 1
                ties[right, left] += 1
            else:
                winner, loser = (left, right) if share == 1 else (right, left)
                wins[winner, loser] += 1
        return cls(wins=wins, ties=ties)


@dataclass(frozen=True, slots=True, kw_only=True)
class Strengths:
    """The log strength of each item, their mean being 0. `tie`: log ν, how common ties are; None if there was none.

    `softened`: some items won or lost everything against the rest, so half a win either way was added to each pair.
    """

    items: tuple[Figure, ...]
    tie: float | None
    softened: bool


def strengths_of(matrix: WinMatrix) -> Strengths:
    """Return maximum-likelihood strengths θ: i beats j with odds e^θᵢ : e^θⱼ : ν e^((θᵢ + θⱼ) / 2) for a tie.

    Bradley and Terry 1952 (doi:10.2307/2334029) with the ties of Davidson 1970 (doi:10.1080/01621459.1970.10481082);
    95 % intervals from the information matrix. `n` counts an item's comparisons. Raise ValueError where the comparisons
    fall into groups that never met: strengths can then not be compared.

    >>> strong = strengths_of(WinMatrix.of([(0, 1, 1.0)] * 6 + [(0, 1, 0.0)] * 3, 2))
    >>> round(strong.items[0].value - strong.items[1].value, 4)  # log 2
    0.6931
    """
    import numpy as np
    from scipy.sparse.csgraph import connected_components

    wins, ties = matrix.wins, matrix.ties
    met = wins + wins.T + ties
    if len(met) < 2 or connected_components(met > 0, directed=False)[0] > 1:
        raise ValueError("the comparisons fall into groups that never met; compare items across them")
    groups = connected_components(wins + ties > 0, connection="strong")[0]
    softened = groups > 1 or not wins.any()
    if softened:
        wins = wins + 0.5 * (met > 0)
    rows, columns = np.nonzero(np.triu(met))
    outcomes = np.stack([wins[rows, columns], wins[columns, rows], ties[rows, columns]], axis=1)
    parameters, information = _fit(_features(rows, columns, len(met)), outcomes)
    errors = np.sqrt(np.diag(np.linalg.pinv(information, hermitian=True)))
    counts = met.sum(axis=1)
    return Strengths(
        items=tuple(
            Figure(value=float(value), ci95=(float(value - Z * error), float(value + Z * error)), n=int(count))
            for value, error, count in zip(parameters, errors, counts, strict=False)  # the last one is that of ties
        ),
        tie=float(parameters[-1]) if ties.any() else None,
        softened=softened,
    )


def _features(rows: "NDArray[np.intp]", columns: "NDArray[np.intp]", items: int) -> Floats:
    """Return the parameters each outcome adds up, [pairs, (row wins, column wins, tie), items + 1]."""
    import numpy as np

    features = np.zeros((len(rows), 3, items + 1))
    pairs = np.arange(len(rows))
    features[pairs, 0, rows] = features[pairs, 1, columns] = 1.0
    features[pairs, 2, rows] = features[pairs, 2, columns] = 0.5
    features[:, 2, -1] = 1.0
    return features


def _fit(features: Floats, outcomes: Floats) -> tuple[Floats, Floats]:
    """Return the parameters that make the outcomes most likely, by Newton's method, and their information matrix.

    The sum of the strengths is not determined; the pseudo-inverse leaves it at 0.
    """
    import numpy as np

    possible = outcomes.sum(axis=0) > 0  # without ties there is no parameter of ties
    parameters = np.zeros(features.shape[2])
    totals = outcomes.sum(axis=1, keepdims=True)
    for _ in range(_STEPS):
        scale = np.where(possible, np.exp(features @ parameters), 0.0)
        expected = totals * scale / scale.sum(axis=1, keepdims=True)
        gradient = np.einsum("po,pok->k", outcomes - expected, features)
        centred = features - np.einsum("po,pok->pk", expected / totals, features)[:, None, :]
        information = np.einsum("po,pok,pol->kl", expected, centred, centred)
        step = np.linalg.pinv(information, hermitian=True) @ gradient
        parameters = parameters + step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < _CLOSE:
            break
    return parameters, information
