"""From which confidence on may a judge decide alone? Labelled verdicts → a threshold with a guarantee."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr

_GRID = tuple(step / 100 for step in range(100, -1, -1))  # chosen before any label is seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """Verdicts with a confidence of `at_least` or more: with confidence 1 − δ at least 1 − α of them agree with people.

    `agreed` of the `n` labelled ones did.
    """

    at_least: float
    agreed: int
    n: int


def threshold_for(
    confidences: Sequence[float], agrees: Sequence[bool], *, alpha: float, delta: float
) -> Threshold | None:
    """Return the lowest threshold with P(agreement with people ≥ 1 − α) ≥ 1 − δ; None if no threshold has it.

    Thresholds from 1 down in steps of 0.01 are tested in this fixed order, each at level δ: that disagreement is above
    α is refuted where so few disagreements have probability ≤ δ under Binomial(n, α). The first that is not refuted
    ends it, so no level is spent on how many are tried. Thresholds with too few verdicts for any outcome to refute are
    passed over, which looks at confidences only.

    Fixed-sequence testing: Bauer 1991 (doi:10.1002/sim.4780100609); for judges «Trust or Escalate», arXiv 2407.18370.

    >>> sure = [0.95] * 60 + [0.6] * 40
    >>> threshold_for(sure, [True] * 60 + [True, False] * 20, alpha=0.1, delta=0.1).at_least
    0.61
    """
    sure, right = np.asarray(confidences, float), np.asarray(agrees, bool)
    passed = None
    for lowest in _GRID:
        chosen = sure >= lowest - 1e-9
        n, agreed = int(chosen.sum()), int(right[chosen].sum())
        if (1 - alpha) ** n > delta:
            continue
        if float(bdtr(n - agreed, n, alpha)) > delta:
            break
        passed = Threshold(at_least=lowest, agreed=agreed, n=n)
    return passed
