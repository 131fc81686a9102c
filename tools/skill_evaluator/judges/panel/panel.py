"""Several judges of the same outputs → one verdict, by majority or weighted mean, and how far the judges agree.

A judge whose verdict does not count has no vote. A majority can block a regression; a single judge can hold a pair
back, since a pair ships only if every judge lets it ship.
"""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

from skill_evaluator.judges.modes.pairwise import (
    OVERALL,
    PAIR,
    SHARES,
    JudgePreferences,
    PanelMatch,
    PanelPreferences,
    Preferred,
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

VerdictT = TypeVar("VerdictT", bound=Hashable)
Weights = Mapping[str, float]
"""The weight of each judge; a judge that is not named has 1."""
_LEVEL = 1.0  # of a scale: scores that far apart disagree


def votes_of(verdicts: Mapping[str, VerdictT], weights: Weights) -> dict[VerdictT, float]:
    """Return the weight of the judges behind each verdict."""
    votes: dict[VerdictT, float] = defaultdict(float)
    for judge, verdict in verdicts.items():
        votes[verdict] += weights.get(judge, 1.0)
    return dict(votes)


def majority(votes: Mapping[VerdictT, float]) -> VerdictT | None:
    """Return the verdict with more than half of the weight. Return None without a majority.

    >>> majority({"same": 2.0, "worse": 1.0}), majority({"same": 1.0, "worse": 1.0})
    ('same', None)
    """
    half = sum(votes.values()) / 2
    return next((verdict for verdict, weight in votes.items() if weight > half * (1 + 1e-9)), None)


Verdicts = Sequence[tuple[Mapping[str, Hashable], Hashable]]
"""For each thing that is judged: the verdict of every judge that has one, and the panel's."""


def agreement(verdicts: Verdicts) -> Figure:
    """Return the share of the verdicts on which all judges agree, among those of two judges or more."""
    several = [set(by_judge.values()) for by_judge, _ in verdicts if len(by_judge) > 1]
    return rate(sum(len(different) == 1 for different in several), len(several))


def agreements(names: Sequence[str], verdicts: Verdicts, weights: Weights) -> list[JudgeAgreement]:
    """Return how often each judge agrees with the panel."""
    rows = []
    for name in names:
        agrees = [by_judge[name] == panel for by_judge, panel in verdicts if name in by_judge]
        rows.append(JudgeAgreement(judge=name, weight=weights.get(name, 1.0), agrees=rate(sum(agrees), len(agrees))))
    return rows


def panel_scores(judges: Sequence[JudgeScores], criteria: Sequence[Criterion], weights: Weights) -> PanelScores:
    """Return the weighted mean of the judges' scores."""
    names = [judge.judge.model_id for judge in judges]
    items, close = [], []
    for given in zip(*(judge.items for judge in judges), strict=True):
        scores: dict[str, float | None] = {}
        for criterion in criteria:
            by_judge = {
                name: score
                for name, item in zip(names, given, strict=True)
                if (score := item.scores[criterion.id]) is not None
            }
            total = sum(weights.get(name, 1.0) for name in by_judge)
            mean = sum(score * weights.get(name, 1.0) for name, score in by_judge.items()) / total if by_judge else None
            scores[criterion.id] = rounded(mean)
            close.append((by_judge, mean))
        items.append(PanelItem(id=given[0].id, summary=weighted_summary(scores, criteria), scores=scores))
    several = [(by_judge, mean) for by_judge, mean in close if len(by_judge) > 1]
    near = [({name: abs(score - (mean or 0.0)) < _LEVEL for name, score in said.items()}, True) for said, mean in close]
    return PanelScores(
        summary=mean_within([item.summary for item in items if item.summary is not None]),
        scores={
            one.id: mean_within(
                [score for item in items if (score := item.scores[one.id]) is not None], 1.0, float(one.highest)
            )
            for one in criteria
        },
        agreement=rate(sum(max(said.values()) - min(said.values()) < _LEVEL for said, _ in several), len(several)),
        judges=agreements(names, near, weights),
        items=items,
    )


def panel_preferences(
    judges: Sequence[JudgePreferences], criteria: Sequence[str], weights: Weights
) -> PanelPreferences:
    """Return the winners of the majority by criterion and overall; without a majority a match is a tie."""
    names = [judge.judge.model_id for judge in judges]
    matches, overall = [], []
    for given in zip(*(judge.matches for judge in judges), strict=True):
        winners: dict[str, Preferred | None] = {}
        votes: dict[str, dict[str, float]] = {}
        for criterion in criteria:
            by_judge = {
                name: winner
                for name, match in zip(names, given, strict=True)
                if (winner := winner_of(match.shares[criterion])) is not None
            }
            behind = votes_of(by_judge, weights)
            winners[criterion] = (majority(behind) or "tie") if behind else None
            votes[criterion] = {str(winner): weight for winner, weight in behind.items()}
            if criterion == OVERALL:
                overall.append((by_judge, winners[criterion]))
        matches.append(PanelMatch(item=given[0].item, names=given[0].names, winners=winners, votes=votes))
    shares = [
        (one, {name: None if won is None else SHARES[won] for name, won in one.winners.items()}) for one in matches
    ]
    return PanelPreferences(
        wins={
            name: mean_within([share for one, by in shares if one.names == PAIR and (share := by[name]) is not None])
            for name in criteria
        },
        outputs=rank_outputs([(one.item, one.names, by[OVERALL]) for one, by in shares if one.names != PAIR]),
        agreement=agreement(overall),
        judges=agreements(names, overall, weights),
        matches=matches,
    )


def panel_regressions(
    judges: Sequence[JudgeRegressions], pairs: Sequence[JudgedPair], rules: ShipRules, weights: Weights
) -> PanelRegressions:
    """Return the majority's verdict in each dimension, and the decision by the ship rules."""
    names = [judge.judge.model_id for judge in judges]
    results: list[PanelPair] = []
    verdicts: list[tuple[Mapping[str, Hashable], Hashable]] = []
    for pair, given in zip(pairs, zip(*(judge.pairs for judge in judges), strict=True), strict=True):
        result, votes = _panel_pair(pair, dict(zip(names, given, strict=True)), rules, weights)
        results.append(result)
        verdicts += votes
    decided = [pair.ship_decision for pair in results if pair.ship_decision is not None]
    return PanelRegressions(
        ship_decision=most_careful([pair.ship_decision for pair in results]),
        decisions={name: rate(decided.count(name), len(decided)) for name in DECISIONS},
        agreement=agreement(verdicts),
        judges=agreements(names, verdicts, weights),
        pairs=results,
    )


def _panel_pair(
    pair: JudgedPair, given: Mapping[str, PairResult], rules: ShipRules, weights: Weights
) -> tuple[PanelPair, Verdicts]:
    """Return the panel's result on a pair, and the verdicts of the judges and of the panel by dimension."""
    verdicts: dict[str, PairVerdict] = {}
    votes: dict[str, dict[str, float]] = {}
    worse: dict[str, Impact] = {}
    both: list[tuple[Mapping[str, Hashable], Hashable]] = []
    for dimension in (one.name for one in pair.dimensions):
        found = {
            judge: one
            for judge, result in given.items()
            for one in result.dimensions
            if one.dimension == dimension and None not in one.by_order
        }
        by_judge = {judge: one.verdict for judge, one in found.items()}
        behind = votes_of(by_judge, weights)
        verdicts[dimension] = majority(behind) or "uncertain"
        votes[dimension] = {str(verdict): weight for verdict, weight in behind.items()}
        impacts = [one.impact for one in found.values() if one.impact is not None]
        if verdicts[dimension] == "candidate_worse" and impacts:
            worse[dimension] = max(impacts, key=IMPACTS.index)
        both.append((by_judge, verdicts[dimension]))
    decision, reason = decide(worse, pair.dimensions, rules)
    held = [
        f"{judge}: {result.ship_decision or 'no decision'} ({'; '.join(result.reasons)})"
        for judge, result in given.items()
        if result.ship_decision != "ship"
    ]
    if held and decision == "ship":
        decision, reason = "review_required", "not every judge lets it ship"
    judged = any(result.ship_decision is not None for result in given.values())
    return (
        PanelPair(
            id=pair.id,
            ship_decision=decision if judged else None,
            reasons=[reason, *held],
            verdicts=verdicts,
            votes=votes,
        ),
        both,
    )
