"""The variances of a record → how many cases and replicates would show a given drop, and what they would cost.

Its own module because it looks ahead: nothing here is a verdict.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean, variance

from scipy.special import ndtri

from skill_evaluator.files import FrozenModel
from skill_evaluator.records.record import ANSWERED, Record
from skill_evaluator.stats import mean_or_none, rounded
from skill_evaluator.verdicts.comparability import strict_scores
from skill_evaluator.verdicts.effects import ALPHA, POWER, Effect
from skill_evaluator.verdicts.randomisation import least_dealing_p, least_flipping_p

REPLICATES = (1, 2, 3, 5, 10, 20)
_MOST = 1_000_000  # cases or replicates; more is no plan
_ENOUGH = 20  # replicates that can be dealt in more ways than are ever drawn
_SLACK = 1e-18  # a variance below is rounding
_TOO_FEW_CASES = "its record has fewer than two cases with a score: nothing can be told from it"
_ONE_REPLICATE = "its record has one replicate a case: evaluate with --replicates 2 or more to know how answers vary"


class Choice(FrozenModel):
    """A number of replicates, and the fewest cases with which they show the drop beyond these fixtures.

    `calls` and `cost_usd` are those of one run of these cases. `present_fixtures` and `present_beyond` are the smallest
    drops that the present cases show, on themselves and beyond them. None: it cannot be told, or no number suffices.
    """

    replicates: int
    cases: int | None
    calls: int | None
    cost_usd: float | None
    present_fixtures: float | None
    present_beyond: float | None


class Sizing(FrozenModel):
    """The choices for one model. With `replicates_needed` the present cases show the drop on themselves.

    `between_cases` and `between_replicates` are standard deviations.
    """

    model_id: str
    run_id: str
    skill_version: str
    metric: str
    strict_mean: float | None
    cases: int
    replicates: int
    between_cases: float | None
    between_replicates: float | None
    cost_per_call_usd: float | None
    replicates_needed: int | None
    choices: list[Choice]
    remarks: list[str]


class SizingPlan(FrozenModel):
    """The designs that show a drop of `detect` with this power at this level, for every model of a component."""

    skill: str
    detect: float
    power: float = POWER
    alpha: float = ALPHA
    models: list[Sizing]


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


def drop_beyond(spread: Spread, cases: int, replicates: int) -> float | None:
    """Return the smallest drop that a comparison of this size shows beyond its cases with 80 % power; None for no drop.

    (t₀.₉₇₅ + t₀.₈) · √((ω² + 2 σ_w² ÷ replicates) ÷ cases), Miller 2024 (arXiv:2411.00640, section 5). ω², how
    differently a change strikes the cases, cannot be seen before the change is made. The variance between cases stands
    in for it, which is right when the scores of a case before and after correlate by one half. Where `case_effects`
    looks at the range of the differences, they are taken to be normal here.
    """
    if cases < 2:
        return None
    variance_of_differences = spread.between + 2 * spread.noise / replicates
    tail = float(ndtri((cases - 0.375) / (cases + 0.25)))  # the expected largest of so many, Blom 1958
    squared = variance_of_differences * (1 / cases + (tail / cases) ** 2)
    return _drop(squared, cases - 1, cases, least_flipping_p(cases))


def drop_on_fixtures(spread: Spread, replicates: int) -> float | None:
    """Return the smallest drop that so many replicates show on the cases themselves; None for no drop.

    The variance is that of `replicate_effect` when the candidate's answers vary as the baseline's do.
    """
    if replicates < 2:
        return None
    count, total = len(spread.within), sum(spread.within)
    answers = count * replicates
    dealt = min(replicates, _ENOUGH)
    least = least_dealing_p([(dealt, dealt)] * count)
    if total < _SLACK:
        return _drop(0.0, 1, answers, least)
    degrees = 2 * (replicates - 1) * total**2 / sum(own**2 for own in spread.within)
    further = 2 * (spread.widest / 2 / answers) ** 2
    return _drop(2 * total / replicates / count**2 + further, degrees, answers, least)


def _drop(squared_error: float, degrees: float, n: int, least_p: float) -> float | None:
    """Return the smallest drop that a comparison with such an error reports as detectable."""
    error = 0.0 if squared_error < _SLACK else math.sqrt(squared_error)
    return Effect(
        difference=0.0, ci95=(-1.0, 1.0), p=1.0, n=n, error=error, degrees=degrees, least_p=least_p
    ).detectable(ALPHA)


def _fewest(detect: float, drop_of: Callable[[int], float | None]) -> int | None:
    """Return the smallest number, from 2 to a million, whose smallest drop seen is no larger than `detect`.

    More never shows less, so it is found by doubling and bisection.
    """

    def suffices(number: int) -> bool:
        drop = drop_of(number)
        return drop is not None and drop <= detect

    low = high = 2
    while not suffices(high):
        high *= 2
        if high > _MOST:
            return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle + 1, high)
    return low


def sizing_of(record: Record, metric: str, detect: float) -> Sizing:
    """Return the choices for one model, from its record."""
    scores = [scores for case in record.per_case if (scores := strict_scores(case, metric))]
    spread = spread_of(scores)
    answered = sum(outcome in ANSWERED for case in record.per_case for outcome in case.outcomes)
    per_call = None if record.cost_usd is None or not answered else record.cost_usd / answered
    choices = []
    if spread is not None:
        for replicates in REPLICATES:
            cases = _fewest(detect, partial(drop_beyond, spread, replicates=replicates))
            choice = Choice(
                replicates=replicates,
                cases=cases,
                calls=None if cases is None else cases * replicates,
                cost_usd=None if cases is None or per_call is None else round(cases * replicates * per_call, 6),
                present_fixtures=rounded(drop_on_fixtures(spread, replicates)),
                present_beyond=rounded(drop_beyond(spread, len(scores), replicates)),
            )
            choices.append(choice)
    return Sizing(
        model_id=record.model_id,
        run_id=record.run_id,
        skill_version=record.skill_version,
        metric=metric,
        strict_mean=rounded(mean_or_none([fmean(case) for case in scores])),
        cases=len(scores),
        replicates=record.replicates,
        between_cases=None if spread is None else round(math.sqrt(spread.between), 6),
        between_replicates=None if spread is None else round(math.sqrt(spread.noise), 6),
        cost_per_call_usd=per_call,
        replicates_needed=None if spread is None else _fewest(detect, partial(drop_on_fixtures, spread)),
        choices=choices,
        remarks=[_TOO_FEW_CASES] if len(scores) < 2 else [_ONE_REPLICATE] if spread is None else [],
    )
