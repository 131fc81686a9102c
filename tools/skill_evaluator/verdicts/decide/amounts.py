"""Output tokens, cost and latency per output as measures of a pair.

The score of a case is −ln of its mean amount per output, so an increase counts as a drop.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from statistics import fmean

import numpy as np

from skill_evaluator.library.config import VerdictName
from skill_evaluator.records.record import Record
from skill_evaluator.records.summaries import AMOUNTS
from skill_evaluator.stats import ROUNDING, rounded
from skill_evaluator.verdicts.decide.comparability import CasePairs, Pair, PairedScores
from skill_evaluator.verdicts.decide.measuring import ArmStatistics, Compared, MeasureEffects, paired_effect
from skill_evaluator.verdicts.decide.results import AMOUNT_NAMES, AmountResult
from skill_evaluator.verdicts.decide.rules import VerdictRules, is_harmed_everywhere

_DOUBLED = math.log(2)  # an increase by more than this in every case needs no test
_MAX_LOG = 50.0  # bounds the relative change that is shown
_FREE = "it is 0 in both runs"


def with_amounts(compared: Compared) -> Compared:
    """Measure the amounts of a compared pair, unless it compares two models or two scenarios."""
    pair, common, baseline = compared.pair, compared.common, compared.pair.baseline
    if common is None or common.barriers or baseline is None:
        return compared
    if (baseline.model_id, baseline.scenario) != (pair.candidate.model_id, pair.candidate.scenario):
        return compared
    return replace(compared, amounts={name: _measured(name, pair, baseline, common.cases) for name in AMOUNTS})


def _measured(name: str, pair: Pair, baseline: Record, cases: CasePairs) -> MeasureEffects | str:
    """Measure an amount in the cases in which both versions have more than 0, or return why it cannot be measured.

    The latency of runs that are not interleaved is not compared.
    """
    candidate = pair.candidate
    if name == "latency_s" and (candidate.is_from_elsewhere or not pair.is_beside):
        return f"the two runs were not interleaved, as those of `skill-evaluator evaluate {candidate.skill}` are"
    for side, record in (("baseline", baseline), ("candidate", candidate)):
        if not any(case.amounts for case in record.per_case):
            return f"the record of the {side} has no amounts by case, which a new run has"
    both = {old.case_id: [case.amounts[name].mean for case in (old, new) if name in case.amounts] for old, new in cases}
    usable = {case_id: means for case_id, means in both.items() if len(means) == 2 and min(means) > 0.0}
    if not usable and both and all(means == [0.0, 0.0] for means in both.values()):
        return _FREE
    if not usable:
        price = f"; `price` of {candidate.model_id} in models.yaml gives it" if name == "cost_usd" else ""
        return f"no case has a value above 0 in both runs{price}"
    old, new = (tuple((-math.log(mean),) for mean in means) for means in zip(*usable.values(), strict=True))
    before, after = ArmStatistics.of(old), ArmStatistics.of(new)
    measure = PairedScores(name=name, kind="amount", case_ids=tuple(usable), before=old, after=new)
    effect = paired_effect(before, after, limit=math.inf)
    return MeasureEffects(measure=measure, before=before, after=after, effect=effect)


def amount_results(compared: Compared, rules: VerdictRules, *, covered: bool) -> list[AmountResult]:
    """Return the result of each amount; `covered` tells whether enough outputs were scored for a verdict."""
    return [
        _unmeasured(name, amount, rules) if isinstance(amount, str) else _result(amount, rules, covered=covered)
        for name, amount in compared.amounts.items()
    ]


def _unmeasured(name: str, reason: str, rules: VerdictRules) -> AmountResult:
    measure = PairedScores(name=name, kind="amount", case_ids=(), before=(), after=())
    tier, tolerance = rules.tier(measure), rules.tolerance(measure)
    verdict: VerdictName | None = "unchanged" if reason == _FREE else "inconclusive"
    verdict = None if tier == "advisory" else verdict
    return AmountResult(amount=name, tier=tier, tolerance=tolerance, verdict=verdict, unmeasured=reason)


def _result(measured: MeasureEffects, rules: VerdictRules, *, covered: bool) -> AmountResult:
    measure, effect, q = measured.measure, measured.effect, measured.q
    tier, tolerance = rules.tier(measure), rules.tolerance(measure)
    increases, limit = measured.before.means - measured.after.means, math.log1p(tolerance)
    increase = float(increases.mean())
    level = rules.alpha / 2 if tier == "advisory" else rules.levels(measure).fall
    is_significant = is_harmed_everywhere(measured, max(_DOUBLED, limit)) or (q is not None and q <= level)
    moved = covered and is_significant and abs(increase) > limit + ROUNDING
    verdict: VerdictName = "regressed" if moved and increase > 0.0 else "inconclusive"
    if covered and effect is not None and effect.lowest >= -limit - ROUNDING:
        verdict = "unchanged"
    before, after = (fmean(math.exp(-score) for (score,) in arm) for arm in (measure.before, measure.after))
    return AmountResult(
        amount=measure.name,
        tier=tier,
        tolerance=tolerance,
        baseline=rounded(before, 9),
        candidate=rounded(after, 9),
        change=_relative(increase),
        ci95=None if effect is None else (_relative(-effect.ci95[1]), _relative(-effect.ci95[0])),
        q=rounded(q),
        n_cases=len(measure.case_ids),
        moved=moved,
        rose_most=measure.case_ids[int(np.argmax(increases))],
        verdict=None if tier == "advisory" else verdict,
    )


def _relative(log_ratio: float) -> float:
    """Convert the logarithm of a ratio to a relative change: ln 1.5 to 0.5."""
    return round(math.expm1(max(-_MAX_LOG, min(_MAX_LOG, log_ratio))), 6)


def amount_reasons(amounts: Iterable[AmountResult], calls: int) -> Iterator[str]:
    """Yield the reasons for a verdict from the amounts that a policy names; costs are per run of `calls` calls."""
    for result in amounts:
        name, tolerated = AMOUNT_NAMES[result.amount], f"{result.tolerance:.0%}"
        if result.verdict == "regressed":
            increase = f"more than the tolerated increase of {tolerated}, most in case {result.rose_most}"
            yield f"{result.words(calls)}: {increase}"
        elif result.verdict is not None and result.unmeasured:
            yield f"{name} is not measured: {result.unmeasured}"
        elif result.tier == "critical" and result.verdict == "inconclusive":
            yield f"{name}: an increase of more than {tolerated} is not ruled out; more cases would decide it"
