"""Several judges of the same outputs → one verdict, by majority or weighted mean, and how far the judges agree.

A judge whose verdict does not count has no vote. A majority can block a regression; a single judge can hold a pair
back, since a pair ships only if every judge lets it ship.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from operator import eq
from typing import Any

from skill_evaluator.judges.modes.pairwise import (
    OVERALL,
    PAIR,
    SHARES,
    JudgePreferences,
    PanelMatch,
    PanelPreferences,
    rank_outputs,
    winner_of,
)
from skill_evaluator.judges.modes.regression import JudgedPair
from skill_evaluator.judges.modes.regression_results import (
    DECISIONS,
    JudgeRegressions,
    PairResult,
    PairVerdict,
    PanelPair,
    PanelRegressions,
    most_careful,
)
from skill_evaluator.judges.modes.scoring import JudgeScores, PanelItem, PanelScores, weighted_summary
from skill_evaluator.judges.modes.ship_rules import IMPACTS, Impact, ShipRules, decide
from skill_evaluator.judges.panel.results import JudgeAgreement
from skill_evaluator.judges.statistics.bounded import Figure, mean_within, rate
from skill_evaluator.library.rubrics import Criterion
from skill_evaluator.stats import rounded

Weights = Mapping[str, float]
"""The weight of each judge; a judge that is not named has 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ballot:
    """The verdicts of the judges that have one, by judge, the weight behind each verdict, and the panel's verdict."""

    verdicts: Mapping[str, Any]
    votes: Mapping[str, float] = field(default_factory=dict)
    panel: Any


def vote(verdicts: Mapping[str, Any], weights: Weights, otherwise: Any) -> Ballot:
    """Return the verdict with more than half of the weight, or `otherwise`; None if no judge has a verdict.

    >>> vote({"a": "same", "b": "worse"}, {"a": 2.0}, "uncertain").panel
    'same'
    """
    given = {judge: verdict for judge, verdict in verdicts.items() if verdict is not None}
    votes = dict.fromkeys(given.values(), 0.0)
    for judge, verdict in given.items():
        votes[verdict] += weights.get(judge, 1.0)
    half = sum(votes.values()) / 2
    won = next((verdict for verdict, weight in votes.items() if weight > half * (1 + 1e-9)), otherwise)
    by_word = {str(verdict): weight for verdict, weight in votes.items()}
    return Ballot(verdicts=given, votes=by_word, panel=won if given else None)


def agreements(
    judges: Sequence[str], ballots: Sequence[Ballot], weights: Weights, agree: Callable[[Any, Any], bool] = eq
) -> tuple[Figure, list[JudgeAgreement]]:
    """Return the share of ballots on which all of several judges agree, and how often each agrees with the panel."""
    unanimous = [
        all(agree(left, right) for left, right in combinations(ballot.verdicts.values(), 2))
        for ballot in ballots
        if len(ballot.verdicts) > 1
    ]
    rows = []
    for judge in judges:
        agrees = [agree(ballot.verdicts[judge], ballot.panel) for ballot in ballots if judge in ballot.verdicts]
        rows.append(JudgeAgreement(judge=judge, weight=weights.get(judge, 1.0), agrees=rate(sum(agrees), len(agrees))))
    return rate(sum(unanimous), len(unanimous)), rows


def panel_scores(judges: Sequence[JudgeScores], criteria: Sequence[Criterion], weights: Weights) -> PanelScores:
    """Return the weighted mean of the judges' scores; scores that are less than a level apart agree."""
    names = [judge.judge.model_id for judge in judges]
    items: list[PanelItem] = []
    ballots: list[Ballot] = []
    for results in zip(*(judge.items for judge in judges), strict=True):
        scores: dict[str, float | None] = {}
        for criterion in criteria:
            every = {name: item.scores[criterion.id] for name, item in zip(names, results, strict=True)}
            given = {name: score for name, score in every.items() if score is not None}
            total = sum(weights.get(name, 1.0) for name in given)
            mean = sum(score * weights.get(name, 1.0) for name, score in given.items()) / total if given else None
            scores[criterion.id] = rounded(mean)
            ballots.append(Ballot(verdicts=given, panel=mean))
        items.append(PanelItem(id=results[0].id, summary=weighted_summary(scores, criteria), scores=scores))
    agreement, rows = agreements(names, ballots, weights, lambda left, right: abs(left - right) < 1)
    return PanelScores(
        summary=mean_within([item.summary for item in items if item.summary is not None]),
        scores={
            one.id: mean_within(
                [score for item in items if (score := item.scores[one.id]) is not None], 1.0, float(one.highest)
            )
            for one in criteria
        },
        agreement=agreement,
        judges=rows,
        items=items,
    )


def panel_preferences(
    judges: Sequence[JudgePreferences], criteria: Sequence[str], weights: Weights
) -> PanelPreferences:
    """Return the winners of the majority by criterion and overall; without a majority a match is a tie."""
    names = [judge.judge.model_id for judge in judges]
    matches: list[PanelMatch] = []
    overall: list[Ballot] = []
    for results in zip(*(judge.matches for judge in judges), strict=True):
        by_judge = dict(zip(names, results, strict=True))
        ballots = {
            criterion: vote(
                {name: winner_of(match.shares[criterion]) for name, match in by_judge.items()}, weights, "tie"
            )
            for criterion in criteria
        }
        overall.append(ballots[OVERALL])
        matches.append(
            PanelMatch(
                item=results[0].item,
                names=results[0].names,
                winners={name: ballot.panel for name, ballot in ballots.items()},
                votes={name: dict(ballot.votes) for name, ballot in ballots.items()},
            )
        )
    pairs = [match.winners for match in matches if match.names == PAIR]
    several = [(match.item, match.names, match.winners[OVERALL]) for match in matches if match.names != PAIR]
    agreement, rows = agreements(names, overall, weights)
    return PanelPreferences(
        wins={name: mean_within([SHARES[won] for won in (by[name] for by in pairs) if won]) for name in criteria},
        outputs=rank_outputs([(item, outputs, SHARES[won] if won else None) for item, outputs, won in several]),
        agreement=agreement,
        judges=rows,
        matches=matches,
    )


def panel_regressions(
    judges: Sequence[JudgeRegressions], pairs: Sequence[JudgedPair], rules: ShipRules, weights: Weights
) -> PanelRegressions:
    """Return the majority's verdict in each dimension, and the decision by the ship rules."""
    names = [judge.judge.model_id for judge in judges]
    panel: list[PanelPair] = []
    ballots: list[Ballot] = []
    for pair, results in zip(pairs, zip(*(judge.pairs for judge in judges), strict=True), strict=True):
        panel.append(_panel_pair(pair, dict(zip(names, results, strict=True)), rules, weights, ballots))
    decided = [pair.ship_decision for pair in panel if pair.ship_decision is not None]
    agreement, rows = agreements(names, ballots, weights)
    return PanelRegressions(
        ship_decision=most_careful([pair.ship_decision for pair in panel]),
        decisions={name: rate(decided.count(name), len(decided)) for name in DECISIONS},
        agreement=agreement,
        judges=rows,
        pairs=panel,
    )


def _panel_pair(
    pair: JudgedPair, results: Mapping[str, PairResult], rules: ShipRules, weights: Weights, ballots: list[Ballot]
) -> PanelPair:
    """Return the panel's result on a pair, and add a ballot for each dimension."""
    verdicts: dict[str, PairVerdict] = {}
    votes: dict[str, dict[str, float]] = {}
    worse: dict[str, Impact] = {}
    for name in (dimension.name for dimension in pair.dimensions):
        found = {
            judge: one
            for judge, result in results.items()
            for one in result.dimensions
            if one.dimension == name and None not in one.by_order
        }
        ballot = vote({judge: one.verdict for judge, one in found.items()}, weights, "uncertain")
        ballots.append(ballot)
        verdicts[name], votes[name] = ballot.panel or "uncertain", dict(ballot.votes)
        impacts = [one.impact for one in found.values() if one.impact is not None]
        if verdicts[name] == "candidate_worse" and impacts:
            worse[name] = max(impacts, key=IMPACTS.index)
    decision, reason = decide(worse, pair.dimensions, rules)
    held = [
        f"{judge}: {result.ship_decision or 'no decision'} ({'; '.join(result.reasons)})"
        for judge, result in results.items()
        if result.ship_decision != "ship"
    ]
    if held and decision == "ship":
        decision, reason = "review_required", "not every judge lets it ship"
    judged = any(result.ship_decision is not None for result in results.values())
    return PanelPair(
        id=pair.id,
        ship_decision=decision if judged else None,
        reasons=[reason, *held],
        verdicts=verdicts,
        votes=votes,
    )
