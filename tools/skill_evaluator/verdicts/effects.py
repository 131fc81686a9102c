"""Scores of two versions, case by case → effect, interval, p-value and the smallest drop that could have been seen.

Two questions are never mixed: on these cases the replicates are the sample, beyond them the cases are. Numbers in,
numbers out. numpy and scipy.special come with this module, which only a comparison needs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from scipy.special import betaincinv, stdtr, stdtrit

from skill_evaluator.verdicts.randomisation import (
    Arm,
    Floats,
    dealing_p,
    flipping_ps,
    least_dealing_p,
    least_flipping_p,
    mcnemar_p,
)

Interval = tuple[float, float]

ALPHA = 0.05
POWER = 0.8
_SLACK = 1e-9  # a spread below this is rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """Noise that no dealing of scores shows: the variance it adds to the difference, and its degrees of freedom."""

    variance: float = 0.0
    degrees: float = math.inf


NO_EXTRA = Extra()


def together(*parts: Extra) -> Extra:
    """Return independent sources of noise as one; degrees of freedom by Satterthwaite 1946 (doi:10.2307/3002019)."""
    present = [part for part in parts if part.variance > 0.0]
    if not present:
        return NO_EXTRA
    variance = sum(part.variance for part in present)
    return Extra(variance=variance, degrees=variance**2 / sum(part.variance**2 / part.degrees for part in present))


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """Candidate minus baseline, on scores in [0, 1]. `p` is two-sided; `n` is the size of the sample.

    `error` is the standard error of the interval (0: nothing varied) and `degrees` its degrees of freedom. `least_p` is
    the smallest p there could be. `unseen` bounds the share of answers of a kind that none of these showed.
    """

    difference: float
    ci95: Interval
    p: float
    n: int
    error: float
    degrees: float
    least_p: float = 0.0
    unseen: float = 0.0

    @property
    def detectable_drop(self) -> float | None:
        """The smallest drop that this test alone finds beyond chance at 5 % with 80 % power."""
        return self.detectable(ALPHA)

    def detectable(self, alpha: float) -> float | None:
        """Return the smallest drop found at this level with 80 % power; None if no drop would be, whatever its size.

        Where nothing varied it is a share of failing answers: so many that none of them in the other arm is beyond
        chance.
        """
        if self.least_p > alpha:
            return None
        if self.error == 0.0:
            failures = math.ceil(math.log2(2 / alpha))
            return float(betaincinv(failures, self.n - failures + 1, POWER)) if failures <= self.n else None
        return min(1.0, float(stdtrit(self.degrees, 1 - alpha / 2) + stdtrit(self.degrees, POWER)) * self.error)


def replicate_effect(baseline: Arm, candidate: Arm, seed: int = 0, extra: Extra = NO_EXTRA) -> Effect | None:
    """Return the effect on the expected score of these very cases; None if no arm has two replicates of a case.

    The replicates of a case are taken for independent draws; `extra` is the noise that they do not show.

    The statistic is the mean over cases of the difference of case means. p: replicates are dealt anew to the two arms
    within each case (Fisher's randomisation test, stratified). Interval: Welch 1947 (doi:10.1093/biomet/34.1-2.28) on
    the variances within cases.
    """
    sizes = [(len(before), len(after)) for before, after in zip(baseline, candidate, strict=True)]
    if max(map(max, sizes), default=0) < 2:
        return None
    arms = (Within.of(baseline), Within.of(candidate))
    n = min(arm.answers for arm in arms)
    difference = arms[1].mean - arms[0].mean
    parts = [arm.variances / arm.counts / len(arm.counts) ** 2 for arm in arms]
    variance = float(sum(part.sum() for part in parts))
    varied = variance >= _SLACK**2
    if not varied:
        error = sampled = math.sqrt(extra.variance)
        degrees = max(1.0, extra.degrees)
    else:
        spread = sum((part**2 / np.maximum(1.0, arm.counts - 1)).sum() for part, arm in zip(parts, arms, strict=True))
        widest = max(arm.widest for arm in arms)
        noise = together(Extra(variance=variance, degrees=variance**2 / float(spread)), extra)
        sampled, degrees = math.sqrt(noise.variance), noise.degrees
        error = math.sqrt(noise.variance + sum(_unseen_variance(widest, arm.answers) for arm in arms))
    return Effect(
        difference=difference,
        ci95=_interval(difference, error, degrees, n, varied=varied),
        p=_with_extra(dealing_p(baseline, candidate, seed), difference, sampled, degrees, extra),
        n=n,
        error=error,
        degrees=degrees,
        least_p=least_dealing_p(sizes),
        unseen=unseen_share(n),
    )


def case_effects(
    differences: Sequence[Sequence[float]], seed: int = 0, extras: Sequence[Extra] | None = None
) -> list[Effect | None]:
    """Return the effect of each metric on cases not seen, from its difference in each case; None for fewer than two.

    `extras`, one a metric, are the noise that all cases share, so that no difference between cases shows it.
    p: signs are flipped (Fisher 1935), the same ones for all metrics; for differences of −1, 0 and 1 that is McNemar's
    exact test. Interval: Student's t; for differences of −1, 0 and 1 Agresti and Min 2005 (doi:10.1002/sim.1781).
    """
    added = [NO_EXTRA] * len(differences) if extras is None else extras
    sampled = [(at, np.asarray(values, float)) for at, values in enumerate(differences) if len(values) > 1]
    flipped = iter(flipping_ps([values for _, values in sampled if not _is_signed(values)], seed))
    effects: list[Effect | None] = [None] * len(differences)
    for at, values in sampled:
        p = mcnemar_p(values) if _is_signed(values) else next(flipped)
        effects[at] = _case_effect(values, p, added[at])
    return effects


def both(fixtures: Effect | None, beyond: Effect | None) -> Effect | None:
    """Return the effect that holds on these cases and beyond them; None where either cannot be told.

    p is the larger one (an intersection-union test, Berger 1982, doi:10.1080/00401706.1982.10487790). The interval
    spans both.
    """
    if fixtures is None or beyond is None or fixtures is beyond:
        return None if fixtures is None else beyond
    wider = max(fixtures, beyond, key=lambda effect: effect.error)
    return Effect(
        difference=beyond.difference,
        ci95=(min(fixtures.ci95[0], beyond.ci95[0]), max(fixtures.ci95[1], beyond.ci95[1])),
        p=max(fixtures.p, beyond.p),
        n=beyond.n,
        error=wider.error,
        degrees=wider.degrees,
        least_p=max(fixtures.least_p, beyond.least_p),
        unseen=max(fixtures.unseen, beyond.unseen),
    )


def adjusted(p_values: Sequence[float]) -> list[float]:
    """Return the q-value of each p-value, which controls the false discovery rate over all of them.

    qᵢ = min over pⱼ ≥ pᵢ of m pⱼ ÷ rank(pⱼ), Benjamini and Hochberg 1995 (doi:10.1111/j.2517-6161.1995.tb02031.x).

    >>> adjusted([0.01, 0.04, 0.03])
    [0.03, 0.04, 0.04]
    """
    count = len(p_values)
    order = sorted(range(count), key=p_values.__getitem__, reverse=True)
    q_values, least = [1.0] * count, 1.0
    for rank, place in zip(range(count, 0, -1), order, strict=True):
        least = min(least, p_values[place] * count / rank)
        q_values[place] = least
    return q_values


def unseen_share(n: int) -> float:
    """Return the probability that what n trials never showed may still have, with 95 % confidence: 1 − 0.05^(1/n)."""
    return 1.0 - math.pow(ALPHA, 1.0 / n)


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """One arm: the mean over its cases, its answers, and the largest range of scores in a case (`widest`).

    `counts`, `means` and `variances` have one entry a case: its replicates, their mean, and the variance of one.
    """

    mean: float
    answers: int
    counts: Floats
    means: Floats
    variances: Floats
    widest: float

    @property
    def explained(self) -> float:
        """The variance of the mean over cases, if the replicates are independent draws."""
        return float((self.variances / self.counts).sum()) / len(self.counts) ** 2

    @classmethod
    def of(cls, arm: Arm) -> "Within":
        """Summarise an arm. A case with one replicate takes the mean variance of the others."""
        sizes = np.fromiter(map(len, arm), int, len(arm))
        scores = np.fromiter(chain.from_iterable(arm), float, int(sizes.sum()))
        starts = np.cumsum(sizes) - sizes
        means = np.add.reduceat(scores, starts) / sizes
        squares = np.add.reduceat((scores - np.repeat(means, sizes)) ** 2, starts)
        repeated = sizes > 1
        variances = squares / np.maximum(1, sizes - 1)
        variances[~repeated] = variances[repeated].mean() if repeated.any() else 0.0
        ranges = np.maximum.reduceat(scores, starts) - np.minimum.reduceat(scores, starts)
        return cls(
            mean=float(means.mean()),
            answers=int(sizes.sum()),
            counts=sizes.astype(float),
            means=means,
            variances=variances,
            widest=float(ranges.max()),
        )


def _with_extra(p: float, difference: float, error: float, degrees: float, extra: Extra) -> float:
    """Return p of dealing, or that of Student's t with the noise that dealing does not show, if that is larger."""
    if extra.variance == 0.0:
        return p
    return max(p, 2.0 * float(stdtr(degrees, -abs(difference) / error)))


def _case_effect(differences: Floats, p: float, extra: Extra) -> Effect:
    n = len(differences)
    difference = centre = float(differences.mean())
    deviation = float(differences.std(ddof=1)) / math.sqrt(n)
    unseen = _unseen_variance(float(np.ptp(differences)), n)
    if _is_signed(differences) and bool(differences.any()):
        # a difference of paired rates, with half a pair added to each cell
        up, down = (differences > 0).sum() + 0.5, (differences < 0).sum() + 0.5
        centre = float((up - down) / (n + 2))
        deviation, unseen = math.sqrt(max(0.0, (up + down) / (n + 2) - centre**2) / (n + 2)), 0.0
    varied = deviation >= _SLACK
    if not varied:
        sampled = error = math.sqrt(extra.variance)
        degrees = extra.degrees if extra.variance else float(n - 1)
    else:
        noise = together(Extra(variance=deviation**2, degrees=float(n - 1)), extra)
        sampled, degrees = math.sqrt(noise.variance), noise.degrees
        error = math.sqrt(noise.variance + unseen)
    return Effect(
        difference=difference,
        ci95=_interval(centre, error, degrees, n, varied=varied),
        p=_with_extra(p, difference, sampled, degrees, extra),
        n=n,
        error=error,
        degrees=degrees,
        least_p=least_flipping_p(n),
    )


def _is_signed(differences: Floats) -> bool:
    """Return whether each case went from right to wrong, from wrong to right, or stayed."""
    return bool(((differences == 0.0) | (np.abs(differences) == 1.0)).all())


def _unseen_variance(widest: float, n: int) -> float:
    """Return what one more value, half of the seen range away, would add to the variance of a mean of n.

    Few values seldom show the tail that moves their mean. For many it adds next to nothing.
    """
    return (widest / 2 / n) ** 2


def _interval(centre: float, error: float, degrees: float, n: int, *, varied: bool) -> Interval:
    """Return the 95 % interval; where nothing varied, it allows for the share of answers that may have gone unseen.

    Noise that all cases share does not make that share smaller.
    """
    half = float(stdtrit(degrees, 1 - ALPHA / 2)) * error if error else 0.0
    low, high = centre - half, centre + half
    if not varied:
        unseen = unseen_share(n)
        low, high = min(low, centre * (1 - unseen) - unseen), max(high, centre * (1 - unseen) + unseen)
    return max(-1.0, low), min(1.0, high)
