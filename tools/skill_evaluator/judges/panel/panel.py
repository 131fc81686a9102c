"""Several judges of the same outputs → one verdict, by majority or weighted mean, and how far the judges agree.

A judge whose verdict does not count has no vote. A majority can block a regression; a single judge can hold a pair
back, since a pair ships only if every judge lets it ship.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from operator import eq
from typing import Any, TypeVar

from skill_evaluator.judges.modes.pairwise import (
    OVERALL,
    PAIR,
    SHARES,
    JudgePreferences,
    Preferred,
    rank_outputs,
    winner_of,
)
from skill_evaluator.judges.modes.regression import JudgedPair
from skill_evaluator.judges.modes.regression_results import DECISIONS, JudgeRegressions, PairResult
from skill_evaluator.judges.modes.results import JudgeFigures
from skill_evaluator.judges.modes.scoring import JudgeScores, weighted_summary
from skill_evaluator.judges.modes.ship_rules import Impact, ShipRules, decide, highest
from skill_evaluator.judges.panel.results import JudgeAgreement, PanelDecision, PanelResult, Verdict
from skill_evaluator.judges.statistics.bounded import Figure, mean_within, rate
from skill_evaluator.library.rubrics import Criterion
from skill_evaluator.stats import rounded

Weights = Mapping[str, float]
"""The weight of each judge; a judge that is not named has 1."""
ResultT = TypeVar("ResultT")
VerdictT = TypeVar("VerdictT")


def vote(votes: Mapping[str, VerdictT], weights: Weights, otherwise: VerdictT) -> VerdictT | None:
    """Return the verdict with more than half of the weight, or `otherwise`; None if no judge has a verdict.

    >>> vote({"a": "same", "b": "worse"}, {"a": 2.0}, "uncertain")
    'same'
    """
    totals = dict.fromkeys(votes.values(), 0.0)
    for judge, verdict in votes.items():
        totals[verdict] += weights.get(judge, 1.0)
    half = sum(totals.values()) / 2
    won = next((verdict for verdict, weight in totals.items() if weight > half * (1 + 1e-9)), otherwise)
    return won if votes else None


def weighted_mean(votes: Mapping[str, float], weights: Weights) -> float | None:
    """Return the mean of the judges' scores by their weights; None if no judge has a score."""
    total = sum(weights.get(judge, 1.0) for judge in votes)
    return rounded(sum(score * weights.get(judge, 1.0) for judge, score in votes.items()) / total) if votes else None


def panel_scores(judges: Sequence[JudgeScores], criteria: Sequence[Criterion], weights: Weights) -> PanelResult:
    """Return the weighted mean of the judges' scores; scores that are less than a level apart agree."""
    decisions = []
    for items in _by_judge(judges, [judge.items for judge in judges]):
        votes = {one.id: _given({judge: item.scores[one.id] for judge, item in items.items()}) for one in criteria}
        scores = {name: weighted_mean(given, weights) for name, given in votes.items()}
        item_id = next(iter(items.values())).id
        verdict = weighted_summary(scores, criteria)
        decisions.append(PanelDecision(item=item_id, verdict=verdict, verdicts=scores, votes=votes))
    return _result(
        judges,
        decisions,
        weights,
        figures={
            one.id: _mean([decision.verdicts[one.id] for decision in decisions], 1.0, float(one.highest))
            for one in criteria
        },
        summary=_mean([decision.verdict for decision in decisions]),
        agree=lambda left, right: abs(left - right) < 1,
    )


def panel_preferences(judges: Sequence[JudgePreferences], criteria: Sequence[str], weights: Weights) -> PanelResult:
    """Return the winners of the majority by criterion and overall; without a majority a match is a tie."""
    decisions = []
    for results in _by_judge(judges, [judge.matches for judge in judges]):
        match = next(iter(results.values()))
        votes: dict[str, dict[str, Preferred]] = {
            name: _given({judge: winner_of(result.shares[name]) for judge, result in results.items()})
            for name in criteria
        }
        winners: dict[str, Preferred | None] = {name: vote(given, weights, "tie") for name, given in votes.items()}
        decisions.append(
            PanelDecision(item=match.item, names=match.names, verdict=winners[OVERALL], verdicts=winners, votes=votes)
        )
    pairs = [decision.verdicts for decision in decisions if decision.names == PAIR]
    several = [(one.item, one.names, SHARES.get(one.verdict)) for one in decisions if one.names != PAIR]
    figures = {name: _mean([SHARES.get(winners[name]) for winners in pairs]) for name in criteria}
    return _result(judges, decisions, weights, figures, [OVERALL], win_rates=rank_outputs(several))


def panel_regressions(
    judges: Sequence[JudgeRegressions], pairs: Sequence[JudgedPair], rules: ShipRules, weights: Weights
) -> PanelResult:
    """Return the majority's verdict in each dimension, and the decision by the ship rules."""
    by_judge = _by_judge(judges, [judge.pairs for judge in judges])
    decisions = [_decide(pair, results, rules, weights) for pair, results in zip(pairs, by_judge, strict=True)]
    decided = [decision.verdict for decision in decisions if decision.verdict is not None]
    figures: dict[str, Figure] = {name: rate(decided.count(name), len(decided)) for name in DECISIONS}
    return _result(judges, decisions, weights, figures)


def _decide(pair: JudgedPair, results: Mapping[str, PairResult], rules: ShipRules, weights: Weights) -> PanelDecision:
    """Return the majority's verdicts on a pair. It ships only if every judge lets it ship."""
    verdicts: dict[str, str] = {}
    votes: dict[str, dict[str, str]] = {}
    worse: dict[str, Impact] = {}
    for name in (dimension.name for dimension in pair.dimensions):
        found = {
            judge: one
            for judge, result in results.items()
            for one in result.dimensions
            if one.dimension == name and None not in one.by_order
        }
        votes[name] = {judge: one.verdict for judge, one in found.items()}
        verdicts[name] = vote(votes[name], weights, "uncertain") or "uncertain"
        impact = highest(one.impact for one in found.values() if one.impact is not None)
        if verdicts[name] == "candidate_worse" and impact is not None:
            worse[name] = impact
    decision, reason = decide(worse, pair.dimensions, rules)
    held = [
        f"{judge}: {result.ship_decision or 'no decision'} ({'; '.join(result.reasons)})"
        for judge, result in results.items()
        if result.ship_decision != "ship"
    ]
    if held and decision == "ship":
        decision, reason = "review_required", "not every judge lets it ship"
    judged = any(result.ship_decision is not None for result in results.values())
    return PanelDecision(
        item=pair.id,
        verdict=decision if judged else None,
        reasons=[reason, *held],
        verdicts=verdicts,
        votes=votes,
    )


def _result(
    judges: Sequence[JudgeFigures],
    decisions: Sequence[PanelDecision],
    weights: Weights,
    figures: Mapping[str, Figure],
    compared: Sequence[str] = (),
    agree: Callable[[Any, Any], bool] = eq,
    **more: Any,
) -> PanelResult:
    """Return the result of a panel with the agreement of its judges on the `compared` criteria, by default on all."""
    ballots = [
        (votes, decision.verdicts[name])
        for decision in decisions
        for name, votes in decision.votes.items()
        if name in compared or not compared
    ]
    several = [list(votes.values()) for votes, _ in ballots if len(votes) > 1]
    unanimous = sum(all(agree(left, right) for left, right in combinations(votes, 2)) for votes in several)
    rows = []
    for judge in (one.judge.model_id for one in judges):
        agrees = [agree(votes[judge], verdict) for votes, verdict in ballots if judge in votes]
        rows.append(JudgeAgreement(judge=judge, weight=weights.get(judge, 1.0), agrees=rate(sum(agrees), len(agrees))))
    agreement = rate(unanimous, len(several))
    return PanelResult(figures=figures, agreement=agreement, judges=rows, by_item=list(decisions), **more)


def _by_judge(judges: Sequence[JudgeFigures], results: Sequence[Sequence[ResultT]]) -> list[dict[str, ResultT]]:
    """Return the results of all judges on each item."""
    names = [judge.judge.model_id for judge in judges]
    return [dict(zip(names, of_item, strict=True)) for of_item in zip(*results, strict=True)]


def _given(verdicts: Mapping[str, VerdictT | None]) -> dict[str, VerdictT]:
    """Return the verdicts that count, by judge."""
    return {judge: verdict for judge, verdict in verdicts.items() if verdict is not None}


def _mean(values: Sequence[Verdict | None], low: float = 0.0, high: float = 1.0) -> Figure:
    """Return the mean of the numbers among the values."""
    return mean_within([float(value) for value in values if isinstance(value, int | float)], low, high)
