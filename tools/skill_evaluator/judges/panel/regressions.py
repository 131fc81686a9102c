"""What several judges find of pairs → the panel's verdicts by majority, and the decision that code takes on them.

A majority can block. A single judge can hold a pair back: it ships only if it ships by every judge.
"""

from collections import Counter
from collections.abc import Sequence

from skill_evaluator.judges.asking.results import figure
from skill_evaluator.judges.modes.regression import JudgedPair
from skill_evaluator.judges.modes.regression_results import (
    FOR_PEOPLE,
    DimensionResult,
    JudgeRegressions,
    PairResult,
    PanelDimension,
    PanelPair,
    PanelRegressions,
    PanelSummary,
    most_careful,
)
from skill_evaluator.judges.modes.ship_rules import IMPACTS, ShipRules, decide
from skill_evaluator.judges.panel.reduction import Voices, majority, votes_of
from skill_evaluator.judges.statistics.agreement import krippendorff
from skill_evaluator.judges.statistics.bounded import rate


def reduce_panel_regressions(
    judges: Sequence[JudgeRegressions], pairs: Sequence[JudgedPair], rules: ShipRules, voices: Voices
) -> PanelRegressions:
    """Return what several judges find as one; a judge of whom an answer on a pair did not count has no voice there."""
    names = [judge.judge.model_id for judge in judges]
    by_pair = [dict(zip(names, given, strict=True)) for given in zip(*(judge.pairs for judge in judges), strict=True)]
    found = [_pair(pair, given, rules, voices) for pair, given in zip(pairs, by_pair, strict=True)]
    dimensions = dict.fromkeys(dimension.name for pair in pairs for dimension in pair.dimensions)
    return PanelRegressions(
        policy=voices.policy,
        ship_decision=most_careful([pair.ship_decision for pair in found]),
        dimensions=[_summary(name, found, by_pair) for name in dimensions],
        pairs=found,
    )


def _pair(pair: JudgedPair, given: dict[str, PairResult], rules: ShipRules, voices: Voices) -> PanelPair:
    dimensions = [_dimension(dimension.name, pair.id, given, voices) for dimension in pair.dimensions]
    worse = {one.dimension: one.impact for one in dimensions if one.impact is not None}
    decision, reason = decide(worse, pair.dimensions, rules)
    doubts = [
        f"{judge}: {result.ship_decision or 'no decision'} ({'; '.join(result.reasons)})"
        for judge, result in given.items()
        if result.ship_decision != "ship"
    ]
    if doubts and decision == "ship":
        decision, reason = "review_required", "not every judge lets it ship"
    judged = any(result.ship_decision is not None for result in given.values())
    return PanelPair(
        id=pair.id,
        stratum=pair.stratum,
        ship_decision=decision if judged else None,
        reasons=[reason, *doubts],
        dimensions=dimensions,
    )


def _said(given: dict[str, PairResult], dimension: str) -> dict[str, DimensionResult]:
    """Return what each judge whose answers both count says of a dimension."""
    results = {
        judge: next((one for one in result.dimensions if one.dimension == dimension), None)
        for judge, result in given.items()
    }
    return {judge: one for judge, one in results.items() if one is not None and None not in one.by_order}


def _dimension(name: str, item: str, given: dict[str, PairResult], voices: Voices) -> PanelDimension:
    said = _said(given, name)
    weights = {judge: voices.weight(judge, item, name) for judge in said}
    votes = votes_of({judge: one.verdict for judge, one in said.items()}, weights)
    verdict = majority(votes) or "uncertain"
    impacts = [
        one.impact
        for one in said.values()
        if one.verdict == verdict and one.impact is not None and not FOR_PEOPLE & {*one.flags}
    ]
    return PanelDimension(
        dimension=name,
        verdict=verdict,
        impact=max(impacts, key=IMPACTS.index) if impacts else None,
        votes={str(finding): weight for finding, weight in votes.items()},
    )


def _summary(name: str, pairs: Sequence[PanelPair], by_pair: Sequence[dict[str, PairResult]]) -> PanelSummary:
    mine = [one for pair in pairs for one in pair.dimensions if one.dimension == name and one.votes]
    units = [Counter(one.verdict for one in _said(given, name).values()) for given in by_pair]
    return PanelSummary(
        dimension=name,
        worse=figure(rate(sum(one.verdict == "candidate_worse" for one in mine), len(mine))),
        uncertain=sum(one.verdict == "uncertain" for one in mine),
        disputed=sum(len(one.votes) > 1 for one in mine),
        agreement=figure(krippendorff(units, "nominal")),
    )
