"""The variances of scores and of runs → the smallest drop that a comparison of a given size would show.

Its own module because it is the comparison's own arithmetic, turned around: numbers in, numbers out.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from scipy.special import ndtri

from skill_evaluator.verdicts.effects import ALPHA, NO_EXTRA, Effect, Extra, together
from skill_evaluator.verdicts.noise import RunNoise
from skill_evaluator.verdicts.randomisation import least_dealing_p, least_flipping_p

_MOST = 1_000_000  # cases or replicates; more is no plan
_ENOUGH = 20  # replicates that can be dealt in more ways than are ever drawn
_STEP = 8  # numbers are tried in steps of an eighth
_SLACK = 1e-18  # a variance below is rounding
_SAMPLED = [0.05 * step for step in range(200)]  # variances of what is sampled, in that of the runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The variance between cases (of their expected scores) and within each case (between its replicates).

    `widest` is the largest range of scores in a case.
    """

    between: float
    within: tuple[float, ...]
    widest: float = 0.0

    @property
    def noise(self) -> float:
        """The mean variance between replicates, over the cases."""
        return fmean(self.within)


@dataclass(frozen=True, slots=True, kw_only=True)
class Premises:
    """What two runs differ by beside their answers: variances of a whole run (`run`) and of one case in a run.

    `runs` of the baseline's version are pooled. `case_run` is None where the answers of a case count as one draw.
    """

    runs: int = 1
    run: Extra = NO_EXTRA
    case_run: Extra | None = NO_EXTRA

    @property
    def weight(self) -> float:
        """The variance of the difference, in that of one run."""
        return 1 + 1 / self.runs

    @property
    def between_runs(self) -> Extra:
        """What all cases have in common."""
        return Extra(variance=self.run.variance * self.weight, degrees=self.run.degrees)

    def unshown(self, cases: int) -> Extra:
        """Return what no replicate shows."""
        by_case = self.case_run or NO_EXTRA
        scaled = Extra(variance=by_case.variance * self.weight / cases, degrees=by_case.degrees)
        return RunNoise(replicate=0.0, case_run=scaled, run=self.between_runs).unshown


INDEPENDENT = Premises()
"""Nothing stands between the runs, and the answers of a case are independent draws."""


def spread_of(cases: Sequence[Sequence[float]]) -> Spread | None:
    """Return the variance components of scores per case and replicate; None if there are too few of either.

    Method of moments (one-way analysis of variance): the variance of case means holds a share of the noise,
    σ_w² ÷ replicates, which is taken off. A case with one replicate takes the mean variance of the others.

    >>> spread = spread_of([[0.0, 0.2], [0.8, 1.0]])
    >>> round(spread.between, 3), round(spread.noise, 3)
    (0.31, 0.02)
    """
    variances = [variance(case) for case in cases if len(case) > 1]
    if len(cases) < 2 or not variances:
        return None
    usual = fmean(variances)
    within = tuple(variance(case) if len(case) > 1 else usual for case in cases)
    noise = fmean(own / len(case) for own, case in zip(within, cases, strict=True))
    between = max(0.0, variance([fmean(case) for case in cases]) - noise)
    return Spread(between=between, within=within, widest=max(max(case) - min(case) for case in cases))


def drop_beyond(spread: Spread, cases: int, replicates: int, premises: Premises = INDEPENDENT) -> float | None:
    """Return the smallest drop that a comparison of this size shows beyond its cases with 80 % power; None for no drop.

    (t₀.₉₇₅ + t₀.₈) · √((ω² + 2 σ_w² ÷ replicates) ÷ cases + ρ²), Miller 2024 (arXiv:2411.00640, section 5), with ρ² of
    the runs. ω², how differently a change strikes the cases, cannot be seen before the change is made. The variance
    between cases stands in for it, which is right when the scores of a case before and after correlate by one half.
    Where `case_effects` looks at the range of the differences, they are taken to be normal here.
    """
    if cases < 2:
        return None
    variance_of_differences = spread.between + premises.weight * spread.noise / replicates
    tail = float(ndtri((cases - 0.375) / (cases + 0.25)))  # the expected largest of so many, Blom 1958
    if variance_of_differences < _SLACK:
        return drop_seen(premises.between_runs, cases, least_flipping_p(cases))
    sampled = Extra(variance=variance_of_differences / cases, degrees=cases - 1)
    summed, further = together(sampled, premises.between_runs), variance_of_differences * (tail / cases) ** 2
    noise = Extra(variance=summed.variance + further, degrees=summed.degrees)
    return drop_seen(noise, cases, least_flipping_p(cases))


def drop_on_fixtures(spread: Spread, replicates: int, premises: Premises = INDEPENDENT) -> float | None:
    """Return the smallest drop that so many replicates show on the cases themselves; None for no drop.

    The variance is that of `replicate_effect` when the candidate's answers vary as the baseline's do. Where the answers
    of a case count as one draw, these cases show no more than cases beyond them.
    """
    count, total = len(spread.within), sum(spread.within)
    if premises.case_run is None:
        return drop_beyond(spread, count, replicates, premises)
    if replicates < 2:
        return None
    arms = (replicates * premises.runs, replicates)
    dealt = [min(arm, _ENOUGH) for arm in arms]
    least, answers = least_dealing_p([(dealt[0], dealt[1])] * count), count * replicates
    unshown = premises.unshown(count)
    if total < _SLACK:
        return drop_seen(unshown, answers, least)
    squared = sum(total / arm / count**2 for arm in arms)
    squares = sum(sum(own**2 for own in spread.within) / arm**2 / count**4 / (arm - 1) for arm in arms)
    summed = together(Extra(variance=squared, degrees=squared**2 / squares), unshown)
    further = sum((spread.widest / 2 / count / arm) ** 2 for arm in arms)
    return drop_seen(Extra(variance=summed.variance + further, degrees=summed.degrees), answers, least)


def drop_seen(noise: Extra, n: int, least_p: float) -> float | None:
    """Return the smallest drop that a comparison with such noise reports as detectable."""
    degrees, error = max(1.0, noise.degrees), math.sqrt(noise.variance)
    return Effect(
        difference=0.0, ci95=(-1.0, 1.0), p=1.0, n=n, error=error, degrees=degrees, least_p=least_p
    ).detectable(ALPHA)


def least_drop(between_runs: Extra) -> float:
    """Return the smallest drop that any number of cases and replicates shows, with this between the runs; 0 for any."""
    own = between_runs.variance
    noises = [together(Extra(variance=own * share), between_runs) for share in _SAMPLED]
    return min(drop_seen(noise, 1, 0.0) or 1.0 for noise in noises) if own else 0.0


def fewest(detect: float, drop_of: Callable[[int], float | None]) -> int | None:
    """Return the smallest number, from 2 to a million, whose smallest drop seen is no larger than `detect`.

    It is found in small steps and by bisection. More may show less again: the less cases and replicates vary, the more
    the few degrees of freedom of the effect of a run weigh.
    """

    def suffices(number: int) -> bool:
        drop = drop_of(number)
        return drop is not None and drop <= detect

    low = high = 2
    while not suffices(high):
        low, high = high + 1, high + 1 + high // _STEP
        if high > _MOST:
            return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle + 1, high)
    return low
