"""Combine several judges of the same outputs by majority or weighted mean, and measure their agreement."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from operator import eq
from typing import Any, TypeVar

from skill_evaluator.judges.modes import pairwise
from skill_evaluator.judges.modes.pairwise import OVERALL, PAIR, JudgePreferences, Preferred
from skill_evaluator.judges.modes.regression import DECISIONS, JudgeRegressions, PairResult
from skill_evaluator.judges.modes.results import Decision, JudgeAgreement, JudgeFigures, PanelResult, Verdict
from skill_evaluator.judges.modes.scoring import JudgeScores, weighted_summary
from skill_evaluator.judges.modes.ship_rules import ShipRules, decide, highest
from skill_evaluator.judges.statistics import Estimate, mean_within, rate
from skill_evaluator.library.rubrics import Criterion
from skill_evaluator.stats import rounded

Weights = Mapping[str, float]
"""The weight of each judge; the default is 1."""
ResultT = TypeVar("ResultT")
VerdictT = TypeVar("VerdictT")


def vote(votes: Mapping[str, VerdictT], weights: Weights, default: VerdictT) -> VerdictT | None:
    """Return the verdict with more than half of the judges' weight, else `default`. Return None if `votes` is empty.

    >>> vote({"a": "same", "b": "worse"}, {"a": 2.0}, "uncertain")  # judge b has the default weight 1
    'same'
    """
    totals = dict.fromkeys(votes.values(), 0.0)
    for judge, verdict in votes.items():
        totals[verdict] += weights.get(judge, 1.0)
    half = sum(totals.values()) / 2
    majority = next((verdict for verdict, weight in totals.items() if weight > half * (1 + 1e-9)), default)
    return majority if votes else None


def weighted_mean(votes: Mapping[str, float], weights: Weights) -> float | None:
    """Return the mean of one score per judge, weighted by judge (default 1). Return None if there are no votes."""
    total = sum(weights.get(judge, 1.0) for judge in votes)
    return rounded(sum(score * weights.get(judge, 1.0) for judge, score in votes.items()) / total) if votes else None


def panel_scores(judges: Sequence[JudgeScores], criteria: Sequence[Criterion], weights: Weights) -> PanelResult:
    """Combine the judges' scores by weighted mean. Scores less than a level apart agree."""
    decisions = []
    for items in _results_by_item(judges, [judge.items for judge in judges]):
        votes = _votes(items, [one.id for one in criteria], lambda item, name: item.scores[name])
        scores = {name: weighted_mean(ballots, weights) for name, ballots in votes.items()}
        verdict, item_id = weighted_summary(scores, criteria), next(iter(items.values())).id
        decisions.append(Decision(item=item_id, verdict=verdict, verdicts=scores, votes=votes))
    scales = {one.id: float(one.highest) for one in criteria}
    figures = {name: _mean([one.verdicts[name] for one in decisions], 1.0, highest) for name, highest in scales.items()}
    result = _panel_result(judges, decisions, weights, figures, agree=lambda first, second: abs(first - second) < 1)
    return result.model_copy(update={"summary": _mean([decision.verdict for decision in decisions])})


def panel_preferences(judges: Sequence[JudgePreferences], criteria: Sequence[str], weights: Weights) -> PanelResult:
    """Combine the judges' winners by weighted majority. Without a majority the winner is a tie."""
    decisions = []
    for results in _results_by_item(judges, [judge.matches for judge in judges]):
        match = next(iter(results.values()))
        votes: dict[str, dict[str, Preferred]] = _votes(
            results, criteria, lambda result, name: pairwise.winner_of(result.shares[name])
        )
        winners: dict[str, Preferred | None] = {name: vote(ballots, weights, "tie") for name, ballots in votes.items()}
        decisions.append(
            Decision(item=match.item, names=match.names, verdict=winners[OVERALL], verdicts=winners, votes=votes)
        )
    several = {decision.item for decision in decisions if decision.names != PAIR}  # items with further outputs
    pairs = [decision.verdicts for decision in decisions if decision.item not in several]
    shares = [(one.item, one.names, pairwise.SHARES.get(one.verdict)) for one in decisions if one.item in several]
    figures = {name: _mean([pairwise.SHARES.get(winners[name]) for winners in pairs]) for name in criteria}
    result = _panel_result(judges, decisions, weights, figures, [OVERALL])
    return result.model_copy(update={"win_rates": pairwise.rank_outputs(shares)})


def panel_regressions(
    judges: Sequence[JudgeRegressions], rules_by_item: Mapping[str, ShipRules], weights: Weights
) -> PanelResult:
    """Combine the verdicts by majority in each dimension. A pair ships only if every judge lets it ship."""
    results_by_item = _results_by_item(judges, [judge.pairs for judge in judges])
    decisions = [_decide(results, rules_by_item, weights) for results in results_by_item]
    decided = [decision.verdict for decision in decisions if decision.verdict is not None]
    figures: dict[str, Estimate] = {name: rate(decided.count(name), len(decided)) for name in DECISIONS}
    return _panel_result(judges, decisions, weights, figures)


def _decide(results: Mapping[str, PairResult], rules_by_item: Mapping[str, ShipRules], weights: Weights) -> Decision:
    item_id = next(iter(results.values())).id
    rules = rules_by_item[item_id]
    counting = {judge: {one.dimension: one for one in result.counted} for judge, result in results.items()}
    names = [dimension.name for dimension in rules.dimensions]
    votes = _votes(counting, names, lambda dimensions, name: dimensions[name].verdict if name in dimensions else None)
    verdicts = {name: vote(ballots, weights, "uncertain") or "uncertain" for name, ballots in votes.items()}
    worse = {}
    for name, verdict in verdicts.items():
        findings = [dimensions[name] for dimensions in counting.values() if name in dimensions]
        impact = highest(finding.impact for finding in findings if finding.impact)
        if verdict == "candidate_worse" and impact is not None:
            worse[name] = impact
    decision, reason = decide(worse, rules)
    holding = [
        f"{judge}: {result.ship_decision or 'no decision'} ({'; '.join(result.reasons)})"
        for judge, result in results.items()
        if result.ship_decision != "ship"
    ]
    if holding and decision == "ship":
        decision, reason = "review_required", "not every judge lets it ship"
    judged = any(result.ship_decision is not None for result in results.values())
    return Decision(
        item=item_id,
        verdict=decision if judged else None,
        reasons=[reason, *holding],
        verdicts=verdicts,
        votes=votes,
    )


def _panel_result(
    judges: Sequence[JudgeFigures],
    decisions: Sequence[Decision],
    weights: Weights,
    figures: Mapping[str, Estimate],
    compared: Sequence[str] = (),
    agree: Callable[[Any, Any], bool] = eq,
) -> PanelResult:
    """Build the result of a panel. `compared`: the criteria to measure agreement on; if empty, all criteria."""
    ballots = [
        (votes, decision.verdicts[name])
        for decision in decisions
        for name, votes in decision.votes.items()
        if name in compared or not compared
    ]
    shared = [list(votes.values()) for votes, _ in ballots if len(votes) > 1]
    unanimous = sum(all(agree(left, right) for left, right in combinations(votes, 2)) for votes in shared)
    rows = []
    for judge in (one.judge.model_id for one in judges):
        agrees = [agree(votes[judge], verdict) for votes, verdict in ballots if judge in votes]
        rows.append(JudgeAgreement(judge=judge, weight=weights.get(judge, 1.0), agrees=rate(sum(agrees), len(agrees))))
    return PanelResult(figures=figures, agreement=rate(unanimous, len(shared)), judges=rows, by_item=list(decisions))


def _results_by_item(judges: Sequence[JudgeFigures], results: Sequence[Sequence[ResultT]]) -> list[dict[str, ResultT]]:
    names = [judge.judge.model_id for judge in judges]
    return [dict(zip(names, of_item, strict=True)) for of_item in zip(*results, strict=True)]


def _votes(
    results: Mapping[str, ResultT], names: Sequence[str], verdict_of: Callable[[ResultT, str], VerdictT | None]
) -> dict[str, dict[str, VerdictT]]:
    return {
        name: {judge: verdict for judge, result in results.items() if (verdict := verdict_of(result, name)) is not None}
        for name in names
    }


def _mean(values: Sequence[Verdict | None], low: float = 0.0, high: float = 1.0) -> Estimate:
    return mean_within([float(value) for value in values if isinstance(value, int | float)], low, high)
