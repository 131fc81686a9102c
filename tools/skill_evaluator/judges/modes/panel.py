"""Several judges of the same outputs → one verdict by majority or weighted mean, and the agreement of the judges.

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
from skill_evaluator.judges.modes.results import JudgeAgreement, JudgeFigures, PanelDecision, PanelResult, Verdict
from skill_evaluator.judges.modes.scoring import JudgeScores, weighted_summary
from skill_evaluator.judges.modes.ship_rules import ShipRules, decide, highest
from skill_evaluator.judges.statistics import Figure, mean_within, rate
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
    """Return the mean of the judges' scores by their weights. Return None if no judge has a score."""
    total = sum(weights.get(judge, 1.0) for judge in votes)
    return rounded(sum(score * weights.get(judge, 1.0) for judge, score in votes.items()) / total) if votes else None


def panel_scores(judges: Sequence[JudgeScores], criteria: Sequence[Criterion], weights: Weights) -> PanelResult:
    """Return the weighted mean of the judges' scores; scores that are less than a level apart agree."""
    decisions = []
    for items in _by_item(judges, [judge.items for judge in judges]):
        votes = _votes(items, [one.id for one in criteria], lambda item, name: item.scores[name])
        scores = {name: weighted_mean(given, weights) for name, given in votes.items()}
        verdict, item_id = weighted_summary(scores, criteria), next(iter(items.values())).id
        decisions.append(PanelDecision(item=item_id, verdict=verdict, verdicts=scores, votes=votes))
    figures = {
        one.id: _mean([decision.verdicts[one.id] for decision in decisions], 1.0, float(one.highest))
        for one in criteria
    }
    result = _result(judges, decisions, weights, figures, agree=lambda left, right: abs(left - right) < 1)
    return result.model_copy(update={"summary": _mean([decision.verdict for decision in decisions])})


def panel_preferences(judges: Sequence[JudgePreferences], criteria: Sequence[str], weights: Weights) -> PanelResult:
    """Return the winners of the majority by criterion and overall; without a majority a match is a tie."""
    decisions = []
    for results in _by_item(judges, [judge.matches for judge in judges]):
        match = next(iter(results.values()))
        votes: dict[str, dict[str, Preferred]] = _votes(
            results, criteria, lambda result, name: winner_of(result.shares[name])
        )
        winners: dict[str, Preferred | None] = {name: vote(given, weights, "tie") for name, given in votes.items()}
        decisions.append(
            PanelDecision(item=match.item, names=match.names, verdict=winners[OVERALL], verdicts=winners, votes=votes)
        )
    pairs = [decision.verdicts for decision in decisions if decision.names == PAIR]
    several = [(one.item, one.names, SHARES.get(one.verdict)) for one in decisions if one.names != PAIR]
    figures = {name: _mean([SHARES.get(winners[name]) for winners in pairs]) for name in criteria}
    result = _result(judges, decisions, weights, figures, [OVERALL])
    return result.model_copy(update={"win_rates": rank_outputs(several)})


def panel_regressions(
    judges: Sequence[JudgeRegressions], pairs: Sequence[JudgedPair], rules: ShipRules, weights: Weights
) -> PanelResult:
    """Return the majority's verdict in each dimension, and the decision by the ship rules."""
    by_item = _by_item(judges, [judge.pairs for judge in judges])
    decisions = [_decide(pair, results, rules, weights) for pair, results in zip(pairs, by_item, strict=True)]
    decided = [decision.verdict for decision in decisions if decision.verdict is not None]
    figures: dict[str, Figure] = {name: rate(decided.count(name), len(decided)) for name in DECISIONS}
    return _result(judges, decisions, weights, figures)


def _decide(pair: JudgedPair, results: Mapping[str, PairResult], rules: ShipRules, weights: Weights) -> PanelDecision:
    """Return the majority's verdicts on a pair. It ships only if every judge lets it ship."""
    counting = {judge: {one.dimension: one for one in result.counted} for judge, result in results.items()}
    names = [dimension.name for dimension in pair.dimensions]
    votes = _votes(counting, names, lambda found, name: found[name].verdict if name in found else None)
    verdicts = {name: vote(given, weights, "uncertain") or "uncertain" for name, given in votes.items()}
    impacts = {
        name: highest(one.impact for found in counting.values() if (one := found.get(name)) and one.impact)
        for name, verdict in verdicts.items()
        if verdict == "candidate_worse"
    }
    worse = {name: impact for name, impact in impacts.items() if impact is not None}
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
        item=pair.id, verdict=decision if judged else None, reasons=[reason, *held], verdicts=verdicts, votes=votes
    )


def _result(
    judges: Sequence[JudgeFigures],
    decisions: Sequence[PanelDecision],
    weights: Weights,
    figures: Mapping[str, Figure],
    compared: Sequence[str] = (),
    agree: Callable[[Any, Any], bool] = eq,
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
    return PanelResult(figures=figures, agreement=rate(unanimous, len(several)), judges=rows, by_item=list(decisions))


def _by_item(judges: Sequence[JudgeFigures], results: Sequence[Sequence[ResultT]]) -> list[dict[str, ResultT]]:
    """Return the results on each item, by judge."""
    names = [judge.judge.model_id for judge in judges]
    return [dict(zip(names, of_item, strict=True)) for of_item in zip(*results, strict=True)]


def _votes(
    results: Mapping[str, ResultT], names: Sequence[str], verdict_of: Callable[[ResultT, str], VerdictT | None]
) -> dict[str, dict[str, VerdictT]]:
    """Return the verdicts that count, by criterion or dimension and judge."""
    verdicts = {name: {judge: verdict_of(result, name) for judge, result in results.items()} for name in names}
    return {name: {judge: one for judge, one in given.items() if one is not None} for name, given in verdicts.items()}


def _mean(values: Sequence[Verdict | None], low: float = 0.0, high: float = 1.0) -> Figure:
    """Return the mean of the numbers among the values."""
    return mean_within([float(value) for value in values if isinstance(value, int | float)], low, high)
