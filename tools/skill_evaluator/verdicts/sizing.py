"""The smallest drop that a number of cases and replicates can detect: as a sentence, and as a table from a record.

scipy is not imported: `lint` prints the sentence.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from statistics import NormalDist, fmean, variance
from typing import Literal

from skill_evaluator.errors import ConfigError, LeaderboardError
from skill_evaluator.files import FrozenModel
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Policy
from skill_evaluator.records.archive import Archive
from skill_evaluator.records.record import Record, strict_by_replicate
from skill_evaluator.records.selection import newest_of_versions, runs_of_models
from skill_evaluator.stats import ALPHA, POWER, mean_or_none, rounded, smallest_drop
from skill_evaluator.text import counted
from skill_evaluator.verdicts.decide.comparability import RUN_SD
from skill_evaluator.verdicts.decide.rules import CRITICAL_SHARE

FEW_CASES = 8  # components with fewer cases get a hint
_SPREAD = 0.1  # standard deviation of the difference of one case: ten flaky fields, 10 and 5 outputs
_DROP = 0.05  # the default tolerance
_MAX_CASES_NAMED = 1000
_MIN_DOUBTED = 3  # cases with several outputs that are needed to doubt a profile


def detectable_drop(cases: int, variance_of_case: float, day: float = 0.0, alpha: float = ALPHA) -> float | None:
    """Return the smallest drop of the mean that a comparison detects with 80 % power. Return None for a single case.

    `variance_of_case` is the variance of a case's difference between unchanged versions; two days add `day`.
    """
    if cases < 2:
        return None
    quantiles = t_quantile(1 - alpha * CRITICAL_SHARE, cases - 1) + t_quantile(POWER, cases - 1)
    return smallest_drop(variance_of_case / cases + day, cases, quantiles)


def t_quantile(p: float, degrees: int) -> float:
    """Approximate the quantile of Student's t, to 1 % from p = 0.5 to 0.98 (Abramowitz and Stegun 26.7.5).

    >>> round(t_quantile(0.965, 2), 2), round(t_quantile(0.8, 11), 3)
    (3.56, 0.876)
    """
    z = NormalDist().inv_cdf(p)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / degrees**power for power, term in enumerate(terms, start=1))


def can_show(cases: int) -> str:
    """Return a sentence on the drop that this number of cases can detect, given a typical spread.

    >>> can_show(3)
    '3 cases can detect a drop of 0.42 or the loss of a field; about 30 cases could detect a drop of 0.05'
    """
    if cases < 2:
        return "1 case cannot detect a drop unless its outputs are drawn independently (`profile: sampled`)"
    drop = detectable_drop(cases, _SPREAD**2)
    enough = _fewest(cases, lambda count: (detectable_drop(count, _SPREAD**2) or 1.0) <= _DROP) or _MAX_CASES_NAMED
    detects = f"{counted(cases, 'case')} can detect "
    detects += "the loss of a field" if drop is None else f"a drop of {drop:.2g}"
    if drop is not None and drop <= _DROP:
        return detects
    detects += " or the loss of a field" if drop is not None and cases < FEW_CASES else ""
    return f"{detects}; about {enough} cases could detect a drop of {_DROP:g}"


def profile_doubt(record: Record) -> str:
    """Return the reason to doubt a model's `profile`: sampled outputs are equal or others differ; "" if none."""
    shares = [case.reproducibility.get("pairwise_exact_match") for case in record.per_case]
    differ = [share < 1.0 for share in shares if share is not None]
    cases = counted(len(differ), "case")
    if record.settings is None or record.provider == "replay" or len(differ) < _MIN_DOUBTED:
        return ""
    if record.settings.profile == "sampled":
        same = f"the outputs of all {cases} are identical, which contradicts `profile: sampled` of {record.model_id}"
        return "" if any(differ) else same
    differing = f"outputs differ in {sum(differ)} of {cases}: if each is an independent sample, declare"
    profile = f"`profile: sampled` of {record.model_id} in models.yaml"
    return f"{differing} {profile}" if 2 * sum(differ) >= len(differ) else ""


PlannedDesign = Literal["beside", "recorded"]
REPLICATES = (1, 2, 3, 5, 10, 20)
_UNSEEN = 0.25  # minimum variation of outputs: a single output differs, by half the range of scores
_MAX_SIZE = 1_000_000  # cases or replicates


class Choice(FrozenModel):
    """A number of replicates, and the number of cases that detect the requested drop with them (None: no number)."""

    replicates: int
    cases: int | None
    calls: int | None
    cost_usd: float | None
    shows: float  # the drop that the present cases detect with these replicates


class Sizing(FrozenModel):
    """The size of a test, from one model's newest record: its cases and replicates detect a drop of `shows`.

    `between_replicates` is the standard deviation of the outputs of a case, and `between_runs` that of the means of
    runs on different days. With `replicates_needed` the present cases detect the requested drop.
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
    """The sizes of a test that detects a drop of `detect` with this power and level, for every model of a component."""

    skill: str
    detect: float
    design: PlannedDesign
    power: float = POWER
    alpha: float
    models: list[Sizing]


def size_plan(component: Component, archive: Archive, models: Sequence[str], drop: float, policy: Policy) -> SizingPlan:
    """Return the numbers of cases and replicates that detect `drop`, by the newest record of each model."""
    if not 0 < drop < 1:  # false for NaN, too
        raise ConfigError(f"--detect must be a drop between 0 and 1, such as 0.05, not {drop:g}")
    board = component.leaderboard_path
    newest = newest_of_versions(runs_of_models(archive.entries, models, board))
    if not newest:
        raise LeaderboardError(f"{board} has no complete run to plan from; evaluate '{component.name}' first")
    records = [archive.record(versions[-1]) for _, versions in sorted(newest.items())]
    sizings = [sizing_of(record, drop, policy.design, policy.alpha) for record in records]
    return SizingPlan(skill=component.name, detect=drop, design=policy.design, alpha=policy.alpha, models=sizings)


def sizing_of(record: Record, detect: float, design: PlannedDesign, alpha: float) -> Sizing:
    """Return the drop that a test like the record detects, and the cases and replicates that detect `detect`."""
    by_case = (strict_by_replicate(case, record.primary_metric) for case in record.per_case)
    scores = [case for case in ([score for score in answers if score is not None] for answers in by_case) if case]
    cost_per_call = record.cost_usd / record.outputs if record.cost_usd is not None and record.outputs else None
    sizing = Sizing.view(
        record,
        metric=record.primary_metric,
        strict_mean=rounded(mean_or_none([fmean(case) for case in scores])),
        cases=len(scores),
        cost_per_call_usd=cost_per_call,
    )
    repeated = [case for case in scores if len(case) > 1]
    if len(scores) < 2:
        remark = "its record has fewer than two cases with a score, too few to estimate the spread"
        return sizing.model_copy(update={"remarks": [remark]})
    if not repeated:
        remark = "its record has one replicate a case: evaluate with --replicates 2 or more to measure how outputs vary"
        return sizing.model_copy(update={"remarks": [remark]})
    squares = sum(variance(case) * (len(case) - 1) for case in repeated)
    within = max(squares / sum(len(case) - 1 for case in repeated), _UNSEEN / sum(map(len, scores)))
    beside = design == "beside"
    day = 0.0 if beside else (RUN_SD * fmean(fmean(case) * (1 - fmean(case)) for case in scores)) ** 2

    def drop(replicates: int, cases: int = len(scores)) -> float:
        baseline = -(-replicates // 2) if beside else record.replicates
        of_a_case = within * (1 / replicates + 1 / baseline)
        return detectable_drop(cases, of_a_case, 2 * day, alpha) or 1.0

    def choice(replicates: int) -> Choice:
        cases = _fewest(2, lambda number: drop(replicates, number) <= detect)
        calls = None if cases is None else cases * (replicates + (-(-replicates // 2) if beside else 0))
        cost = None if calls is None or cost_per_call is None else rounded(calls * cost_per_call)
        return Choice(replicates=replicates, cases=cases, calls=calls, cost_usd=cost, shows=round(drop(replicates), 6))

    changed = {
        "between_replicates": round(math.sqrt(within), 6),
        "between_runs": round(math.sqrt(day), 6),
        "shows": round(drop(record.replicates), 6),
        "replicates_needed": _fewest(1, lambda number: drop(number) <= detect),
        "choices": list(map(choice, REPLICATES)),
    }
    return sizing.model_copy(update=changed)


def _fewest(least: int, suffices: Callable[[int], bool]) -> int | None:
    """Return the smallest number from `least` on that suffices. Return None if a million does not."""
    numbers = range(least, _MAX_SIZE)
    index = bisect_left(numbers, True, key=suffices)
    return numbers[index] if index < len(numbers) else None
