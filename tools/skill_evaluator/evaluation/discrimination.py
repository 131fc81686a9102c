"""Records of versions and models → what each case tells: does it tell them apart, and does it agree with the rest?

Item analysis of test theory: a case is an item, and a version with a model is a test-taker. A case that all solve alike
tells nothing of them; a case that the better of them get wrong may have a wrong ground truth.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import StatisticsError, correlation, fmean
from typing import Literal

from scipy.special import stdtr

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.files import FrozenModel
from skill_evaluator.records.record import CaseRecord, Record
from skill_evaluator.records.selection import runs_of_models
from skill_evaluator.stats import ROUNDING
from skill_evaluator.verdicts.decide.cases import FALSE_NAMES
from skill_evaluator.verdicts.decide.comparability import is_measured_alike, strict_scores
from skill_evaluator.verdicts.decide.effects import adjusted
from skill_evaluator.verdicts.history.component import RecordedComponent

CaseStanding = Literal["tells apart", "all right", "all wrong", "all alike", "disagrees", "too few"]
_LEAST_TAKERS = 4  # a correlation of fewer has no error to be judged by
Scores = Mapping[str, float]
"""The strict mean of a version with a model in each case."""


class AuditedCase(FrozenModel):
    """What one case tells: its lowest and highest mean over versions and models (n), and who has it.

    `discrimination` is the correlation with the rest of the cases, and `q` how often chance alone would show one as far
    below 0; null where a case or the rest does not vary, or too few took it.
    """

    case_id: str
    standing: CaseStanding
    n: int
    lowest: float | None = None
    lowest_by: str | None = None
    highest: float | None = None
    highest_by: str | None = None
    discrimination: float | None = None
    q: float | None = None


class CaseAudit(FrozenModel):
    """The cases of a component by what they tell, from the records of `takers` (a version with a model)."""

    skill: str
    metric: str
    tolerance: float
    takers: list[str]
    left_out: dict[str, str]
    cases: list[AuditedCase]


def audit_component(recorded: RecordedComponent, models: Sequence[str] = ()) -> CaseAudit:
    """Return what the cases of a component tell of the versions and models that are recorded in full."""
    component, archive, policy = recorded.component, recorded.archive, recorded.settings.policy
    entries = [
        entry
        for entry in runs_of_models(archive.entries, models, component.leaderboard_path)
        if entry.complete and entry.scenario is None and not entry.edited
    ]
    runs: dict[str, list[Record]] = {}
    for entry in sorted(entries, key=lambda entry: entry.standing):
        runs.setdefault(f"{entry.version} {entry.model_id}", []).append(archive.record(entry))
    if len(runs) < 2:
        where = component.leaderboard_path
        raise LeaderboardError(f"{where} holds complete runs of {len(runs)} version and model; 2 are needed")
    newest = archive.record(max(entries, key=lambda entry: entry.order))
    own = policy.components.get(component.name)
    tolerance = policy.tolerance if own is None or own.tolerance is None else own.tolerance
    return audit_cases(component.name, newest.primary_metric, runs, newest, tolerance)


def audit_cases(
    skill: str, metric: str, records: Mapping[str, Sequence[Record]], newest: Record, tolerance: float
) -> CaseAudit:
    """Return what the cases of the newest record tell of versions and models, whose records come by name.

    Answers to a case count as long as its document and truth are those of the newest record, and scores as long as the
    same rules gave them.
    """
    cases = {case.case_id: case for case in newest.per_case}
    scored = {
        name: [run for run in runs if is_measured_alike(run, newest, "schema", "contract", "datasets")]
        for name, runs in records.items()
    }
    left_out = {name: "scored by other rules, or by another schema" for name, runs in scored.items() if not runs}
    takers = {name: _scores(runs, cases, metric) for name, runs in scored.items() if runs}
    left_out |= {name: "has no case in common with the newest run" for name, scores in takers.items() if not scores}
    takers = {name: scores for name, scores in takers.items() if scores}
    audited = [_audited(case_id, takers, tolerance) for case_id in cases]
    return CaseAudit(
        skill=skill,
        metric=metric,
        tolerance=tolerance,
        takers=list(takers),
        left_out=left_out,
        cases=_with_disagreement(audited),
    )


def discrimination(case_id: str, takers: Mapping[str, Scores]) -> tuple[float, int] | None:
    """Return the item-rest correlation of a case, and the number of takers; None where it is not defined.

    r = corr(xᵢ, mean of the other cases' x) over the takers of the case. For scores of 0 and 1 that is the
    point-biserial correlation. The case itself is left out of the rest, which would else agree with it by itself
    (Henrysson 1963, doi:10.1007/BF02289618). Range: −1 to 1. Best: 1. Undefined for fewer than four takers, or where
    either does not vary.

    >>> scores = {"a": 0.0, "b": 0.2, "c": 0.6, "d": 1.0}
    >>> r, n = discrimination("x", {name: {"x": 1 - score, "y": score} for name, score in scores.items()})
    >>> round(r, 6), n
    (-1.0, 4)
    """
    mine = [scores for scores in takers.values() if case_id in scores]
    if len(mine) < _LEAST_TAKERS:
        return None
    rest = set.intersection(*(set(scores) for scores in mine)) - {case_id}
    if not rest:
        return None
    try:
        others = [fmean(scores[other] for other in sorted(rest)) for scores in mine]
        return correlation([scores[case_id] for scores in mine], others), len(mine)
    except StatisticsError:  # one of them is constant
        return None


def _scores(runs: Sequence[Record], cases: Mapping[str, CaseRecord], metric: str) -> Scores:
    """Return the mean of all answers to each unchanged case."""
    answers: dict[str, list[float]] = {}
    for run in runs:
        for case in run.per_case:
            if case.case_id in cases and cases[case.case_id].asks_what(case):
                answers.setdefault(case.case_id, []).extend(strict_scores(case, metric))
    return {case_id: fmean(scores) for case_id, scores in answers.items() if scores}


def _audited(case_id: str, takers: Mapping[str, Scores], tolerance: float) -> AuditedCase:
    mine = {name: scores[case_id] for name, scores in takers.items() if case_id in scores}
    if len(mine) < 2:
        return AuditedCase(case_id=case_id, standing="too few", n=len(mine))
    lowest, highest = min(mine, key=mine.__getitem__), max(mine, key=mine.__getitem__)
    apart = mine[highest] - mine[lowest] > tolerance + ROUNDING
    found = discrimination(case_id, takers)
    return AuditedCase(
        case_id=case_id,
        standing="tells apart" if apart else _alike(mine[lowest], mine[highest], tolerance),
        n=len(mine),
        lowest=round(mine[lowest], 6),
        lowest_by=lowest,
        highest=round(mine[highest], 6),
        highest_by=highest,
        discrimination=None if found is None else round(found[0], 6),
    )


def _alike(lowest: float, highest: float, tolerance: float) -> CaseStanding:
    if lowest >= 1.0 - tolerance - ROUNDING:
        return "all right"
    return "all wrong" if highest <= tolerance + ROUNDING else "all alike"


def _with_disagreement(cases: Sequence[AuditedCase]) -> list[AuditedCase]:
    """Return the cases, with q of a correlation below 0; they disagree with the rest at a false discovery rate of 10 %.

    p is one-sided, by Student's t with n − 2 degrees of freedom.
    """
    tested = [case for case in cases if case.discrimination is not None and case.standing == "tells apart"]
    q_values = adjusted([_chance_of(case.discrimination or 0.0, case.n) for case in tested])
    of_case = {case.case_id: q for case, q in zip(tested, q_values, strict=True)}
    return [
        case
        if (q := of_case.get(case.case_id)) is None
        else case.model_copy(update={"q": round(q, 6), **({"standing": "disagrees"} if q <= FALSE_NAMES else {})})
        for case in cases
    ]


def _chance_of(r: float, n: int) -> float:
    if abs(r) >= 1.0 - ROUNDING:
        return 0.0 if r < 0 else 1.0
    return float(stdtr(n - 2, r * math.sqrt((n - 2) / (1 - r * r))))
