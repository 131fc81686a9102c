"""The verdicts of several judges on matches → the panel's by majority, and how far the judges agree."""

from collections import Counter
from collections.abc import Sequence

from skill_evaluator.judges.asking.results import figure
from skill_evaluator.judges.modes.pairwise import (
    JudgePreferences,
    MatchResult,
    PanelMatch,
    PanelPreference,
    PanelPreferences,
    Preferred,
    pairs_among,
    winner_of,
)
from skill_evaluator.judges.modes.reduce_pairs import SHARES, rank
from skill_evaluator.judges.panel.reduction import Voices, majority, votes_of
from skill_evaluator.judges.statistics.agreement import krippendorff
from skill_evaluator.judges.statistics.bounded import mean_within


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
        criteria=[_criterion(name, matches, pairs, by_match) for name in criteria],
        rankings=[rank(name, named) for name in criteria] if named else [],
        matches=matches,
    )


def _said(given: dict[str, MatchResult], criterion: str) -> dict[str, Preferred]:
    """Return the verdict of each judge that has one."""
    winners = {judge: winner_of(match.shares[criterion]) for judge, match in given.items()}
    return {judge: winner for judge, winner in winners.items() if winner is not None}


def _match(given: dict[str, MatchResult], criteria: Sequence[str], voices: Voices) -> PanelMatch:
    first = next(iter(given.values()))
    votes = {}
    for criterion in criteria:
        said = _said(given, criterion)
        votes[criterion] = votes_of(said, {judge: voices.weight(judge, first.item, criterion) for judge in said})
    return PanelMatch(
        item=first.item,
        stratum=first.stratum,
        names=first.names,
        winners={name: (majority(behind) or "tie") if behind else None for name, behind in votes.items()},
        votes={name: {str(winner): weight for winner, weight in behind.items()} for name, behind in votes.items()},
    )


def _as_result(match: PanelMatch) -> MatchResult:
    shares = {name: None if winner is None else SHARES[winner] for name, winner in match.winners.items()}
    return MatchResult(item=match.item, stratum=match.stratum, names=match.names, shares=shares, judgements=[])


def _criterion(
    name: str, matches: Sequence[PanelMatch], pairs: Sequence[PanelMatch], by_match: Sequence[dict[str, MatchResult]]
) -> PanelPreference:
    winners = [winner for match in matches if (winner := match.winners[name]) is not None]
    of_pairs = [winner for match in pairs if (winner := match.winners[name]) is not None]
    return PanelPreference(
        criterion=name,
        counts=dict(Counter(map(str, winners))),
        wins=figure(mean_within([SHARES[winner] for winner in of_pairs])),
        disputed=sum(len(match.votes[name]) > 1 for match in matches),
        agreement=figure(krippendorff([Counter(_said(given, name).values()) for given in by_match], "nominal")),
    )
