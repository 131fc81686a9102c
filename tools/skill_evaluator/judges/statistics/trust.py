"""May a judge be trusted? Its verdicts beside people's labels → trusted, not trusted, or how many more labels decide.

Only labels count. That a judge agrees with itself, in both orders or every time, is never a reason to trust it.
"""

from dataclasses import dataclass

from skill_evaluator.judges.statistics.bounded import Bounded
from skill_evaluator.judges.statistics.kappa import Floats, Weighting, cohen_kappa

BAR = 0.6  # «substantial», Landis and Koch 1977 (doi:10.2307/2529310)
MOST_LABELS = 10_000  # more is no plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """`trusted`: None where the labels do not decide. `more_labels`: about so many more would.

    `more_labels` is None where nothing is open, and where no number up to 10,000 would decide, or none can be told.
    """

    trusted: bool | None
    kappa: Bounded
    bar: float
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
        return Trust(trusted=trusted, kappa=kappa, bar=bar)
    n = kappa.n
    low, high = n, MOST_LABELS
    if _decided(cohen_kappa(table * (high / n), weighting), bar) is None:
        return Trust(trusted=None, kappa=kappa, bar=bar)
    while high - low > 1:
        middle = (low + high) // 2
        undecided = _decided(cohen_kappa(table * (middle / n), weighting), bar) is None
        low, high = (middle, high) if undecided else (low, middle)
    return Trust(trusted=None, kappa=kappa, bar=bar, more_labels=high - n)


def _decided(kappa: Bounded, bar: float) -> bool | None:
    if kappa.ci95 is None or bar <= kappa.ci95[0]:
        return None if kappa.ci95 is None else True
    return False if kappa.ci95[1] < bar else None
