"""What a number of cases and replicates shows: a sentence before anything is measured, and a table from a record.

Nothing here is a verdict. It is the paired t of a comparison, turned around. scipy is imported only for the table.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from statistics import NormalDist, fmean, variance
from typing import Literal

from skill_evaluator.files import FrozenModel
from skill_evaluator.records.record import Record, strict_by_replicate
from skill_evaluator.stats import POWER, mean_or_none, rounded
from skill_evaluator.text import counted
from skill_evaluator.verdicts.decide.rules import OF_CRITICAL

FEW_CASES = 8  # fewer are announced
_SPREAD = 0.15  # standard deviation of one case's difference between two versions, typical of flaky fields
_FALL, _POWER = 0.96, 0.8  # one-sided at four fifths of alpha, as a verdict is; seen in four of five comparisons
_LEAST = 4  # cases: the paired t of fewer cannot reach that level, whatever they do
_ENOUGH, _MOST_TOLD = 12, 1000  # cases
_DROP = 0.05  # the tolerance of a policy that says nothing else


def can_show(cases: int) -> str:
    """Return what this number of cases can and cannot show, if their differences spread as is typical.

    >>> can_show(3)
    '3 cases: a lost field is seen, a drop of 0.05 is not; 12 would see 0.12'
    """
    if cases < 2:
        return "1 case: nothing can turn red unless its answers are known to be independent (`profile: sampled`)"
    size, seen = counted(cases, "case"), typical_drop(cases)
    if seen is not None and seen <= _DROP:
        return f"{size}: a drop of {seen:.2g} is seen"
    more = f"{_ENOUGH} would see {typical_drop(_ENOUGH):.2g}"
    if cases >= _ENOUGH:
        enough = next((more for more in range(cases, _MOST_TOLD) if (typical_drop(more) or 1.0) <= _DROP), _MOST_TOLD)
        more = f"about {enough} would see it"
    lost = "a lost field" if seen is None else f"a drop of {seen:.2g}"
    return f"{size}: {lost} is seen, a drop of {_DROP:g} is not; {more}"


def typical_drop(cases: int) -> float | None:
    """Return the drop of the mean that a paired t over this number of cases sees; None where it sees none."""
    if cases < _LEAST:
        return None
    return (_quantile(_FALL, cases - 1) + _quantile(_POWER, cases - 1)) * _SPREAD / math.sqrt(cases)


def _quantile(p: float, degrees: int) -> float:
    """Return Student's t to about one per cent, without scipy: `lint` shall not wait for it (Fisher's expansion)."""
    z = NormalDist().inv_cdf(p)
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)


PlannedDesign = Literal["beside", "recorded"]
REPLICATES = (1, 2, 3, 5, 10, 20)
_UNSEEN = 0.25  # one answer in all, half the range of scores away, is the least that answers are taken to vary by
_MOST = 1_000_000  # cases or replicates; more is no plan
_TOO_FEW_CASES = "its record has fewer than two cases with a score: nothing can be told from it"
_ONE_REPLICATE = "its record has one replicate a case: evaluate with --replicates 2 or more to know how answers vary"


class Choice(FrozenModel):
    """A number of replicates of the candidate, and the fewest cases with which they show the drop.

    `calls` and `cost_usd` are those of one run of these cases. `shows` is the smallest drop that the present cases
    show. None: it cannot be told, or no number suffices.
    """

    replicates: int
    cases: int | None
    calls: int | None
    cost_usd: float | None
    shows: float


class Sizing(FrozenModel):
    """What one model's newest record shows: a drop of `shows` with its own cases and replicates.

    `between_replicates` is the standard deviation of an answer to a case, `between_runs` that of a day between two
    runs. `replicates_needed` of the present cases show the drop that was asked for.
    """

    model_id: str
    run_id: str
    skill_version: str
    metric: str
    strict_mean: float | None
    cases: int
    replicates: int
    between_replicates: float | None = None
    between_runs: float | None = None
    cost_per_call_usd: float | None
    shows: float | None = None
    replicates_needed: int | None = None
    choices: list[Choice] = []
    remarks: list[str] = []


class SizingPlan(FrozenModel):
    """What shows a drop of `detect` with this power at this level, for every model of a component.

    `design`: the baseline is asked `beside` the candidate, half as often, or was `recorded` on an earlier day.
    """

    skill: str
    detect: float
    design: PlannedDesign
    power: float = POWER
    alpha: float
    models: list[Sizing]


def smallest_drop(
    cases: int, replicates: int, baseline_replicates: int, *, within: float, day: float, alpha: float
) -> float:
    """Return the smallest drop that a comparison of this size calls regressed with 80 % power.

    `within` is the variance of the answers to a case, which are taken to be independent, and `day` that of a run.
    """
    from scipy.special import stdtrit

    of_a_case = within * (1 / replicates + 1 / baseline_replicates)
    quantiles = stdtrit(cases - 1, [1 - alpha * OF_CRITICAL, POWER])
    return min(1.0, float(quantiles.sum()) * math.sqrt(of_a_case / cases + 2 * day))


def sizing_of(record: Record, detect: float, design: PlannedDesign, alpha: float) -> Sizing:
    """Return what a model's record shows, and what would show a drop of `detect`."""
    from skill_evaluator.verdicts.decide.measuring import RUN_SD

    by_case = (strict_by_replicate(case, record.primary_metric) for case in record.per_case)
    scores = [case for case in ([score for score in answers if score is not None] for answers in by_case) if case]
    sizing = Sizing.view(
        record,
        metric=record.primary_metric,
        strict_mean=rounded(mean_or_none([fmean(case) for case in scores])),
        cases=len(scores),
        cost_per_call_usd=record.cost_usd / record.outputs if record.cost_usd is not None and record.outputs else None,
    )
    repeated = [case for case in scores if len(case) > 1]
    if len(scores) < 2 or not repeated:
        remark = _TOO_FEW_CASES if len(scores) < 2 else _ONE_REPLICATE
        return sizing.model_copy(update={"remarks": [remark]})
    squares = sum(variance(case) * (len(case) - 1) for case in repeated)
    within = max(squares / sum(len(case) - 1 for case in repeated), _UNSEEN / sum(map(len, scores)))
    beside = design == "beside"
    day = 0.0 if beside else (RUN_SD * fmean(fmean(case) * (1 - fmean(case)) for case in scores)) ** 2

    def drop(replicates: int, cases: int = len(scores)) -> float:
        baseline = -(-replicates // 2) if beside else record.replicates
        return smallest_drop(cases, replicates, baseline, within=within, day=day, alpha=alpha)

    def choice(replicates: int) -> Choice:
        baseline = -(-replicates // 2) if beside else 0
        cases = _fewest(2, lambda number: drop(replicates, number) <= detect)
        calls = None if cases is None else cases * (replicates + baseline)
        cost = None if calls is None or sizing.cost_per_call_usd is None else calls * sizing.cost_per_call_usd
        shows = round(drop(replicates), 6)
        return Choice(replicates=replicates, cases=cases, calls=calls, cost_usd=rounded(cost), shows=shows)

    changed = {
        "between_replicates": round(math.sqrt(within), 6),
        "between_runs": round(math.sqrt(day), 6),
        "shows": round(drop(record.replicates), 6),
        "replicates_needed": _fewest(1, lambda number: drop(number) <= detect),
        "choices": list(map(choice, REPLICATES)),
    }
    return sizing.model_copy(update=changed)


def _fewest(least: int, suffices: Callable[[int], bool]) -> int | None:
    """Return the smallest number that suffices, where every larger one does, too; None if a million does not."""
    numbers = range(least, _MOST)
    place = bisect_left(numbers, True, key=suffices)
    return numbers[place] if place < len(numbers) else None
