"""The rate behind a judge's reports: beside its controls, without its errors, or steadied by people's labels."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from skill_evaluator.judges.statistics.agreement import Floats
from skill_evaluator.judges.statistics.bounded import Figure, Z, difference, rate
from skill_evaluator.stats import t_quantile, unseen_share

Test = Literal["exact", "chi-squared"]
_FEWEST_EXPECTED = 5.0
_STEPS = 2_001  # true rates that are tried, from 0 to 1


@dataclass(frozen=True, slots=True)
class Trials:
    """A number of successes in a number of trials."""

    count: int
    n: int

    @property
    def rate(self) -> float:
        """The share of successes; there must be a trial."""
        return self.count / self.n

    @property
    def share(self) -> Figure:
        """The share of successes with its interval."""
        return rate(self.count, self.n)

    @property
    def failures(self) -> "Trials":
        """The same trials, with the failures counted."""
        return Trials(self.n - self.count, self.n)

    @property
    def softened(self) -> tuple[float, float]:
        """The rate with two successes and two failures more, and its variance (Agresti and Coull 1998)."""
        n = self.n + Z * Z
        rate = (self.count + Z * Z / 2) / n
        return rate, rate * (1 - rate) / n


def corrected_rate(reported: Trials, sensitivity: Trials, specificity: Trials) -> Figure:
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
    import numpy as np

    power = sensitivity.rate + specificity.rate - 1.0
    value = min(1.0, max(0.0, (reported.rate + specificity.rate - 1.0) / power)) if power > 0.0 else None
    (mean, noise), (hit, hit_noise), (quiet, quiet_noise) = (
        trials.softened for trials in (reported, sensitivity, specificity)
    )
    true = np.linspace(0.0, 1.0, _STEPS)
    away = mean - true * hit - (1 - true) * (1 - quiet)
    likely = true[away**2 <= Z * Z * (noise + true**2 * hit_noise + (1 - true) ** 2 * quiet_noise)]
    if value is None and not len(likely):
        return Figure(value=None, ci95=(0.0, 1.0), n=reported.n)
    held = [*likely[[0, -1] if len(likely) else []].tolist(), *([] if value is None else [value])]
    least = unseen_share(reported.n)
    return Figure(value=value, ci95=(min(*held, 1.0 - least), max(*held, least)), n=reported.n)


class AgainstControl(NamedTuple):
    """Batch minus control, a two-sided p-value, and the test that gave it."""

    difference: Figure
    p: float
    test: Test


def against_control(batch: Trials, control: Trials) -> AgainstControl:
    """Compare the reported share of a batch with that of independent controls.

    Fisher's exact test where an expected count is below 5, else Pearson's χ² without a correction (Cochran 1954,
    doi:10.2307/3001616). Adjust the p-values of several dimensions with `verdicts.decide.effects.adjusted`.

    >>> tested = against_control(Trials(count=9, n=40), Trials(count=1, n=40))
    >>> tested.test, round(tested.p, 4)
    ('chi-squared', 0.0068)
    """
    import numpy as np
    from scipy.stats import chi2_contingency, fisher_exact

    table = np.array([[one.count, one.failures.count] for one in (batch, control)])
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    test: Test = "chi-squared" if rows.min() * columns.min() / table.sum() >= _FEWEST_EXPECTED else "exact"
    tested = fisher_exact(table) if test == "exact" else chi2_contingency(table, correction=False)
    return AgainstControl(difference=difference(batch.share, control.share), p=float(tested.pvalue), test=test)


def prediction_powered_rate(labels: Sequence[float], judged: Sequence[float], judged_only: Sequence[float]) -> Figure:
    """Return the share of a batch, in [0, 1], from its labelled part (`labels`, `judged`) and the rest (`judged_only`).

    Labels and verdicts are 0 or 1, such as regressions. Undefined for fewer than two labels; without a rest it is their
    share. `n` counts labels.

    PPI++, Angelopoulos, Duchi and Zrnic 2023 (arXiv 2311.01453): the mean of λ × the judge's values over the unlabelled
    rest, plus what people's labels say on average beyond λ × the judge's. It is right whatever the judge is worth. λ in
    [0, 1] makes the variance least; a judge that tells nothing gets 0, so that the labels alone count. The interval is
    on the log-odds, by Student's t, with the variance of half a label more, as `stats.unit_interval`: the paper's
    covers 83 % where 60 labels hold one regression in 20, this one 95 %.

    >>> powered = prediction_powered_rate([1, 0, 0, 0, 0, 1] * 5, [1, 0, 0, 0, 0, 0] * 5, [1, 0, 0, 0, 0, 0] * 50)
    >>> round(powered.value, 2), [round(bound, 2) for bound in powered.ci95]
    (0.33, [0.21, 0.49])
    """
    n = len(labels)
    if n < 2:
        return Figure(value=None, ci95=None, n=n)
    mean, error = _estimate(labels, judged, judged_only)
    value = min(1.0, max(0.0, mean))
    inner = min(1.0 - 0.5 / n, max(0.5 / n, value))
    step = min(700.0, t_quantile(n - 1) * math.hypot(error, 0.5 / n) / (inner * (1 - inner)))
    low, high = (inner / (inner + (1 - inner) * math.exp(sign * step)) for sign in (1, -1))
    return Figure(value=value, ci95=(min(low, value), max(high, value)), n=n)


def _estimate(labels: Sequence[float], judged: Sequence[float], judged_only: Sequence[float]) -> tuple[float, float]:
    """Return the mean and its standard error; λ = cov(label, judged) ÷ [(1 + n ÷ N) var(judged)], section 6."""
    import numpy as np

    people, beside, alone = np.asarray(labels, float), np.asarray(judged, float), np.asarray(judged_only, float)
    n, rest = len(people), len(alone)
    if not rest:
        return float(people.mean()), float(people.std()) / math.sqrt(n)
    spread = float(np.concatenate([beside, alone]).var(ddof=1))
    together = float(((people - people.mean()) * (beside - beside.mean())).mean())
    share = min(1.0, max(0.0, together / ((1 + n / rest) * spread))) if spread else 0.0
    beyond: Floats = people - share * beside
    error = math.sqrt(float(beyond.var()) / n + share**2 * float(alone.var()) / rest)
    return float(beyond.mean()) + share * float(alone.mean()), error
