"""A rate that a judge reports, corrected for what the judge misses and what it makes up.

The judge's sensitivity comes from outputs that are known to be broken, its specificity from controls that are not.
"""

from dataclasses import dataclass

import numpy as np

from skill_evaluator.judges.statistics.bounded import Bounded, Z
from skill_evaluator.verdicts.decide.effects import unseen_share

_STEPS = 2_001  # true rates that are tried, from 0 to 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """So many successes in so many trials (at least one)."""

    count: int
    n: int

    @property
    def rate(self) -> float:
        """The share of successes."""
        return self.count / self.n

    @property
    def softened(self) -> tuple[float, float]:
        """The rate with two successes and two failures more, and its variance (Agresti and Coull 1998)."""
        n = self.n + Z * Z
        rate = (self.count + Z * Z / 2) / n
        return rate, rate * (1 - rate) / n


def corrected_rate(reported: Trials, sensitivity: Trials, specificity: Trials) -> Bounded:
    """Return the true rate behind a reported one, (reported + specificity − 1) ÷ (sensitivity + specificity − 1).

    `sensitivity` is the share of known-broken pairs that were reported, `specificity` that of controls that were not;
    `n` is that of the reported rate. The value is clipped to [0, 1], and undefined where the judge reports what is
    broken no more often than what is not.

    Rogan and Gladen 1978 (doi:10.1093/oxfordjournals.aje.a112510). The interval holds every true rate π whose expected
    report, π sensitivity + (1 − π) (1 − specificity), the three counts together do not refute: Fieller 1954
    (doi:10.1111/j.2517-6161.1954.tb00159.x) on rates softened as by Agresti and Coull 1998
    (doi:10.1080/00031305.1998.10480550). A poor judge or few controls leave all of [0, 1]; at 0 and 1 it holds at least
    what so many pairs would leave open with a judge that never errs. For sensitivity and specificity from 0.6 to 1 it
    covers the truth in 93 % and more, from 50 known-broken pairs and 100 controls on (`benchmarks/judging.py`).

    >>> true = corrected_rate(Trials(count=30, n=100), Trials(count=45, n=50), Trials(count=90, n=100))
    >>> round(true.value, 3), [round(bound, 2) for bound in true.ci95]
    (0.25, [0.12, 0.39])
    """
    power = sensitivity.rate + specificity.rate - 1.0
    value = min(1.0, max(0.0, (reported.rate + specificity.rate - 1.0) / power)) if power > 0.0 else None
    (mean, noise), (hit, hit_noise), (quiet, quiet_noise) = (
        trials.softened for trials in (reported, sensitivity, specificity)
    )
    true = np.linspace(0.0, 1.0, _STEPS)
    away = mean - true * hit - (1 - true) * (1 - quiet)
    likely = true[away**2 <= Z * Z * (noise + true**2 * hit_noise + (1 - true) ** 2 * quiet_noise)]
    if value is None and not len(likely):
        return Bounded(value=None, ci95=(0.0, 1.0), n=reported.n)
    held = [*likely[[0, -1] if len(likely) else []].tolist(), *([] if value is None else [value])]
    least = unseen_share(reported.n)
    return Bounded(value=value, ci95=(min(*held, 1.0 - least), max(*held, least)), n=reported.n)
