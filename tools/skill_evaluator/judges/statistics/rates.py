"""The true rate behind the rate that a judge reports, by its true positive and true negative rates."""

from dataclasses import dataclass

from skill_evaluator.judges.statistics.bounded import Figure, rate
from skill_evaluator.stats import unseen_share

_DRAWS = 5_000
_SEED = 20_240_501  # any fixed seed: the same counts always give the same interval


@dataclass(frozen=True, slots=True)
class Trials:
    """A number of successes in a number of trials."""

    count: int
    n: int

    @classmethod
    def of(cls, share: Figure) -> "Trials":
        """Return the counts behind a share."""
        return cls(count=round((share.value or 0.0) * share.n), n=share.n)

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
        """The same trials with the failures counted."""
        return Trials(self.n - self.count, self.n)


def corrected_rate(reported: Trials, sensitivity: Trials, specificity: Trials) -> Figure:
    """Return the true rate behind a reported one, (reported + TNR − 1) ÷ (TPR + TNR − 1), clipped to [0, 1].

    `sensitivity` (TPR) is the share of known positives that the judge reports, `specificity` (TNR) the share of known
    negatives that it does not report; each needs a trial. `n` is that of the reported rate. The value is undefined if
    the judge reports positives no more often than negatives.

    Rogan and Gladen 1978 (doi:10.1093/oxfordjournals.aje.a112510). The 95 % interval is that of a bootstrap which draws
    the three rates from Beta(count + ½, n − count + ½), so that rates of 0 and 1 vary, too; a draw in which the judge
    is no better than chance leaves any rate. At 0 and 1 the interval holds at least what n trials would leave open with
    a judge that never errs.

    >>> true = corrected_rate(Trials(count=30, n=100), Trials(count=45, n=50), Trials(count=90, n=100))
    >>> round(true.value, 3), [round(bound, 2) for bound in true.ci95]
    (0.25, [0.12, 0.38])
    """
    import numpy as np

    power = sensitivity.rate + specificity.rate - 1.0
    value = min(1.0, max(0.0, (reported.rate + specificity.rate - 1.0) / power)) if power > 0.0 else None
    random = np.random.default_rng(_SEED)
    given, found, quiet = (
        random.beta(trials.count + 0.5, trials.n - trials.count + 0.5, _DRAWS)
        for trials in (reported, sensitivity, specificity)
    )
    powers = found + quiet - 1.0
    informed = powers > 0.0
    rates = np.clip((given + quiet - 1.0) / np.where(informed, powers, 1.0), 0.0, 1.0)
    rates = np.where(informed, rates, random.random(_DRAWS))
    low, high = np.quantile(rates, [0.025, 0.975]).tolist()
    if value is not None:
        low, high = min(low, value), max(high, value)
    unseen = unseen_share(reported.n)
    return Figure(value=value, ci95=(min(low, 1.0 - unseen), max(high, unseen)), n=reported.n)
