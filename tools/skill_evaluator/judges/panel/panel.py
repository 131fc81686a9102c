"""Several judges of one thing → what they say together, by majority, mean or median, and how far they agree.

A judge whose verdict does not count has no voice. A majority can block a regression; a single judge can hold a pair
back, since it ships only if it ships by every judge.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TypeVar

from skill_evaluator.judges.asking.criteria import Voices
from skill_evaluator.judges.modes.pairwise import (
    SHARES,
    JudgePreferences,
    MatchResult,
    PanelMatch,
    PanelPreference,
    PanelPreferences,
    Preferred,
    pairs_among,
    rank,
    winner_of,
)
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
from skill_evaluator.judges.modes.scoring import (
    ItemScores,
    JudgeScores,
    PanelCriterion,
    PanelItem,
    PanelScores,
    weighted_summary,
)
from skill_evaluator.judges.modes.ship_rules import IMPACTS, ShipRules, decide
from skill_evaluator.judges.statistics.agreement import krippendorff
from skill_evaluator.judges.statistics.bounded import mean_within, rate
from skill_evaluator.library.rubrics import Criterion
from skill_evaluator.stats import rounded

ValueT = TypeVar("ValueT")


def votes_of(said: Mapping[str, ValueT], weights: Mapping[str, float]) -> dict[ValueT, float]:
    """Return the weight behind each verdict; both arguments are by judge."""
    votes: dict[ValueT, float] = defaultdict(float)
    for judge, verdict in said.items():
        votes[verdict] += weights[judge]
    return dict(votes)


def majority(votes: Mapping[ValueT, float]) -> ValueT | None:
    """Return the verdict with more than half of the weight, None without one.

    >>> majority({"same": 2.0, "worse": 1.0}), majority({"same": 1.0, "worse": 1.0})
    ('same', None)
    """
    half = sum(votes.values()) / 2
    return next((verdict for verdict, weight in votes.items() if weight > half * (1 + 1e-9)), None)


def reduced_score(scores: Sequence[float], weights: Sequence[float], how: str) -> float:
    """Return the mean of scores by weight, or their median: the score that has half of the weight on either side.

    >>> reduced_score([1, 4, 5], [1, 1, 1], "median"), reduced_score([1, 4], [3, 1], "mean")
    (4, 1.75)
    """
    if how == "mean":
        return sum(score * weight for score, weight in zip(scores, weights, strict=True)) / sum(weights)
    half, passed = sum(weights) / 2, 0.0
    ranked = sorted(zip(scores, weights, strict=True))
    for place, (score, weight) in enumerate(ranked):
        passed += weight
        if abs(passed - half) < half * 1e-9:
            return fmean((score, ranked[place + 1][0]))
        if passed > half:
            return score
    return ranked[-1][0]


_A_LEVEL = 1.0


def reduce_panel_scores(judges: Sequence[JudgeScores], criteria: Sequence[Criterion], voices: Voices) -> PanelScores:
    """Return what several judges say as one; a judge without a score of a criterion has no voice there."""
    names = [judge.judge.model_id for judge in judges]
    by_item = [dict(zip(names, given, strict=True)) for given in zip(*(judge.items for judge in judges), strict=True)]
    items = [_panel_item(given, criteria, voices) for given in by_item]
    return PanelScores(
        policy=voices.policy,
        summary=mean_within([item.summary for item in items if item.summary is not None]),
        criteria=[_scored_criterion(criterion, items, by_item) for criterion in criteria],
        items=items,
    )


def _panel_item(given: dict[str, ItemScores], criteria: Sequence[Criterion], voices: Voices) -> PanelItem:
    first = next(iter(given.values()))
    scores: dict[str, float | None] = {}
    spread: dict[str, float | None] = {}
    for criterion in criteria:
        said = {judge: score for judge, item in given.items() if (score := item.scores[criterion.id]) is not None}
        weights = [voices.weight(judge, first.id, criterion.id) for judge in said]
        values = list(said.values())
        scores[criterion.id] = rounded(reduced_score(values, weights, voices.policy.scores)) if said else None
        spread[criterion.id] = rounded(max(values) - min(values)) if len(said) > 1 else None
    summary = weighted_summary(scores, criteria)
    return PanelItem(id=first.id, stratum=first.stratum, summary=summary, scores=scores, spread=spread)


def _scored_criterion(
    criterion: Criterion, items: Sequence[PanelItem], by_item: Sequence[dict[str, ItemScores]]
) -> PanelCriterion:
    values = [score for item in items if (score := item.scores[criterion.id]) is not None]
    units = [
        Counter(score for item in given.values() if (score := item.scores[criterion.id]) is not None)
        for given in by_item
    ]
    return PanelCriterion(
        criterion=criterion.id,
        score=mean_within(values, 1.0, float(criterion.highest)),
        normalised=mean_within([(value - 1) / (criterion.highest - 1) for value in values]),
        disputed=sum((item.spread[criterion.id] or 0.0) >= _A_LEVEL for item in items),
        agreement=krippendorff(units, "interval"),
    )


def reduce_panel_pairs(judges: Sequence[JudgePreferences], voices: Voices) -> PanelPreferences:
    """Return what several judges say as one; a judge whose verdict on a match does not count has no voice there."""
    names = [judge.judge.model_id for judge in judges]
    criteria = [criterion.criterion for criterion in judges[0].criteria]
    by_match = [
        dict(zip(names, given, strict=True)) for given in zip(*(judge.matches for judge in judges), strict=True)
    ]
    matches = [_match(given, criteria, voices) for given in by_match]
    pairs = pairs_among(matches)
    named = [_as_result(match) for match in matches if match not in pairs]
    return PanelPreferences(
        policy=voices.policy,
        criteria=[_preferred_criterion(name, matches, pairs, by_match) for name in criteria],
        rankings=[rank(name, named) for name in criteria] if named else [],
        matches=matches,
    )


def _winners(given: dict[str, MatchResult], criterion: str) -> dict[str, Preferred]:
    """Return the verdict of each judge that has one."""
    winners = {judge: winner_of(match.shares[criterion]) for judge, match in given.items()}
    return {judge: winner for judge, winner in winners.items() if winner is not None}


def _match(given: dict[str, MatchResult], criteria: Sequence[str], voices: Voices) -> PanelMatch:
    first = next(iter(given.values()))
    votes = {}
    for criterion in criteria:
        said = _winners(given, criterion)
        votes[criterion] = votes_of(said, {judge: voices.weight(judge, first.item, criterion) for judge in said})
    return PanelMatch.view(
        first,
        winners={name: (majority(behind) or "tie") if behind else None for name, behind in votes.items()},
        votes={name: {str(winner): weight for winner, weight in behind.items()} for name, behind in votes.items()},
    )


def _as_result(match: PanelMatch) -> MatchResult:
    shares = {name: None if winner is None else SHARES[winner] for name, winner in match.winners.items()}
    return MatchResult(item=match.item, stratum=match.stratum, names=match.names, shares=shares, judgements=[])


def _preferred_criterion(
    name: str, matches: Sequence[PanelMatch], pairs: Sequence[PanelMatch], by_match: Sequence[dict[str, MatchResult]]
) -> PanelPreference:
    winners = [winner for match in matches if (winner := match.winners[name]) is not None]
    of_pairs = [winner for match in pairs if (winner := match.winners[name]) is not None]
    return PanelPreference(
        criterion=name,
        counts=dict(Counter(map(str, winners))),
        wins=mean_within([SHARES[winner] for winner in of_pairs]),
        disputed=sum(len(match.votes[name]) > 1 for match in matches),
        agreement=krippendorff([Counter(_winners(given, name).values()) for given in by_match], "nominal"),
    )


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
        dimensions=[_dimension_summary(name, found, by_pair) for name in dimensions],
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
        stratum=pair.item.stratum,
        ship_decision=decision if judged else None,
        reasons=[reason, *doubts],
        dimensions=dimensions,
    )


def _findings(given: dict[str, PairResult], dimension: str) -> dict[str, DimensionResult]:
    """Return what each judge whose answers both count says of a dimension."""
    results = {
        judge: next((one for one in result.dimensions if one.dimension == dimension), None)
        for judge, result in given.items()
    }
    return {judge: one for judge, one in results.items() if one is not None and None not in one.by_order}


def _dimension(name: str, item: str, given: dict[str, PairResult], voices: Voices) -> PanelDimension:
    said = _findings(given, name)
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


def _dimension_summary(name: str, pairs: Sequence[PanelPair], by_pair: Sequence[dict[str, PairResult]]) -> PanelSummary:
    mine = [one for pair in pairs for one in pair.dimensions if one.dimension == name and one.votes]
    units = [Counter(one.verdict for one in _findings(given, name).values()) for given in by_pair]
    return PanelSummary(
        dimension=name,
        worse=rate(sum(one.verdict == "candidate_worse" for one in mine), len(mine)),
        uncertain=sum(one.verdict == "uncertain" for one in mine),
        disputed=sum(len(one.votes) > 1 for one in mine),
        agreement=krippendorff(units, "nominal"),
    )
