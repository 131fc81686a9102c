"""A pair of records → what the looks at an adaptive run see, as arrays in the order of its replicates."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from skill_evaluator.library.config import Gate
from skill_evaluator.records.record import CaseRecord
from skill_evaluator.records.strict import strict_score
from skill_evaluator.verdicts.comparability import Measure, Pair, common_part, field_scores, strict_scores
from skill_evaluator.verdicts.effects import NO_EXTRA, Extra
from skill_evaluator.verdicts.measuring import Measured, measure_all
from skill_evaluator.verdicts.pooling import pooled
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
class Unseen:
    """The noise of a measure that no run shows by itself: what is `unshown` on these cases, and that of whole `run`s.

    `unshown` is None where the replicates of a case count as one draw.
    """

    unshown: Extra | None = NO_EXTRA
    run: Extra = NO_EXTRA


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """The critical measures, arms of shape (measures, cases, replicates), and by which question they are judged.

    `tolerances` and `noises` have an entry for each measure.
    """

    gate: Gate
    before: Floats
    after: Floats
    tolerances: Floats
    noises: tuple[Unseen, ...]


def critical_measures(pair: Pair, rules: VerdictRules) -> list[Measured]:
    """Return the measures that must give the verdict more strictly at a look."""
    (compared,) = measure_all([pair], rules.primary_metric, rules.is_critical)
    return [own for own in compared.measured if rules.is_critical(own.measure)]


def watch(pair: Pair, rules: VerdictRules) -> Watched | None:
    """Return what looks see of the critical measures; None where no order of the replicates could change it.

    Agreement between replicates is one value a case, whatever their order.
    """
    seen = [own for own in critical_measures(pair, rules) if own.measure.kind != "reproducibility"]
    arms = [_arms(_reader(own.measure), pair) for own in seen]
    if not arms:
        return None
    noises = (own.noise for own in seen)
    return Watched(
        gate=rules.policy.gate,
        before=np.array([arm.before for arm in arms]),
        after=np.array([arm.after for arm in arms]),
        tolerances=np.array([rules.tolerance(own.measure) for own in seen]),
        noises=tuple(
            Unseen(unshown=None if noise.case_run is None else noise.unshown, run=noise.run) for noise in noises
        ),
    )


def metric_arms(pair: Pair) -> dict[str, Arms]:
    """Return the accuracy metrics that some answer of the candidate was measured by."""
    arms = {name: _arms(partial(_in_order, metric=name), pair) for name in pair.candidate.accuracy}
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


def _arms(read: Callable[[CaseRecord], list[float]], pair: Pair) -> Arms:
    """Return the scores of the candidate's own run, and those of all runs of the baseline's version."""
    candidate, before = pair.candidate, {}
    if pair.baseline is not None:
        baseline = pooled(pair.baseline, pair.baseline_again)
        before = {old.case_id: old for old, _ in common_part(baseline, candidate).cases}
    old = [read(before[case.case_id]) if case.case_id in before else [] for case in candidate.per_case]
    new = [read(case) for case in candidate.per_case]
    return Arms(before=_table(old, max(map(len, old), default=0)), after=_table(new, candidate.replicates))


def _table(rows: list[list[float]], replicates: int) -> Floats:
    return np.array([[*row, *[_MISSING] * (replicates - len(row))] for row in rows])
