"""Two records → the scores that the looks at an adaptive run see, as arrays in the order of its replicates."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from skill_evaluator.records.record import CaseRecord, Record, strict_score
from skill_evaluator.verdicts.comparability import Measure, common_part, field_scores, measures, strict_scores
from skill_evaluator.verdicts.randomisation import Floats
from skill_evaluator.verdicts.rules import VerdictRules

_MISSING = float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arms:
    """One measure of both records: a row for each of the candidate's cases, not a number where not measured.

    Of a case that the baseline lacks, or has changed, nothing was measured before.
    """

    before: Floats
    after: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """The critical measures, with the drop of each that is tolerated: arms of shape (measures, cases, replicates)."""

    before: Floats
    after: Floats
    tolerances: Floats


def critical_measures(baseline: Record, candidate: Record, rules: VerdictRules) -> Iterator[Measure]:
    """Yield the measures that must give the verdict more strictly at a look."""
    for measure in measures(common_part(baseline, candidate).cases, candidate.accuracy):
        if rules.tier(measure) == "critical":
            yield measure


def watch(baseline: Record, candidate: Record, rules: VerdictRules) -> Watched | None:
    """Return what looks see of the critical measures; None where no order of the replicates could change it.

    Agreement between replicates is one value a case, whatever their order.
    """
    seen = [one for one in critical_measures(baseline, candidate, rules) if one.kind != "reproducibility"]
    arms = [_arms(_reader(measure), baseline, candidate) for measure in seen]
    if not arms:
        return None
    return Watched(
        before=np.array([arm.before for arm in arms]),
        after=np.array([arm.after for arm in arms]),
        tolerances=np.array([rules.tolerance(measure) for measure in seen]),
    )


def metric_arms(baseline: Record, candidate: Record) -> dict[str, Arms]:
    """Return the accuracy metrics that some answer of the candidate was measured by."""
    arms = {name: _arms(partial(_in_order, metric=name), baseline, candidate) for name in candidate.accuracy}
    return {name: arm for name, arm in arms.items() if np.isfinite(arm.after).any()}


def _reader(measure: Measure) -> Callable[[CaseRecord], list[float]]:
    """Return what reads the scores of a case in the order of its replicates; of a field that order is not recorded."""
    if measure.kind == "field":
        return lambda case: list(field_scores(case, measure.name))
    return partial(_in_order, metric=measure.name)


def _in_order(case: CaseRecord, metric: str) -> list[float]:
    """Return the strict scores of a case's replicates, not a number where one has none."""
    if not strict_scores(case, metric):
        return []
    strict = map(strict_score, case.outcomes, case.replicates.get(metric, []))
    return [_MISSING if score is None else score for score in strict]


def _arms(read: Callable[[CaseRecord], list[float]], baseline: Record, candidate: Record) -> Arms:
    before = {old.case_id: old for old, _ in common_part(baseline, candidate).cases}
    old = [read(before[case.case_id]) if case.case_id in before else [] for case in candidate.per_case]
    new = [read(case) for case in candidate.per_case]
    return Arms(before=_table(old, baseline.replicates), after=_table(new, candidate.replicates))


def _table(rows: list[list[float]], replicates: int) -> Floats:
    return np.array([[*row, *[_MISSING] * (replicates - len(row))] for row in rows])
