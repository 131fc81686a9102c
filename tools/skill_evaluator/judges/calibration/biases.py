"""What ought not to matter to a judge, and what it does: every bias is one row of the same shape.

Self-preference is here: it is seen in what was judged anyway. The others are asked for, by `probes`.
"""

from collections.abc import Hashable, Mapping, Sequence
from statistics import fmean
from typing import Literal

from skill_evaluator.judges.asking.criteria import family_of
from skill_evaluator.judges.asking.results import StoredScore, StoredVerdict, figure
from skill_evaluator.judges.calibration.files import LabelledPair, ScoredItem
from skill_evaluator.judges.calibration.results import BiasResult
from skill_evaluator.judges.modes.pairwise import OVERALL
from skill_evaluator.judges.statistics.bounded import Bounded
from skill_evaluator.judges.statistics.habits import excess, favour

SELF_PREFERENCE = "self_preference"
_SMALL = 0.1  # of the scale: a shift that an interval leaves no room for beyond it is none to speak of
JudgedMode = Literal["pairwise", "score", "regression"]
Given = Mapping[str, Mapping[int, tuple[StoredVerdict, ...]]]


def bias_of(
    bias: str, mode: JudgedMode, criterion: str, shift: Bounded, moved: Bounded | None = None, way: str = ""
) -> BiasResult:
    """Return the row of a bias; by the interval of its shift it is there, is none to speak of, or is undecided."""
    present = None
    if shift.ci95 is not None:
        low, high = shift.ci95
        present = True if low > 0 or high < 0 else False if low >= -_SMALL and high <= _SMALL else None
    return BiasResult(
        bias=bias,
        mode=mode,
        criterion=criterion,
        way=way,
        items=shift.n,
        shift=figure(shift),
        moved=None if moved is None else figure(moved),
        present=present,
    )


def own_in_pairs(
    pairs: Sequence[LabelledPair], verdicts: Given, judge_id: str, families: Mapping[str, str]
) -> list[BiasResult]:
    """Return how much oftener the judge prefers what its own family wrote than people do, if one output of a pair is.

    Nothing where that is said of no pair.
    """
    judge, people, family = [], [], family_of(judge_id, families)
    for pair in pairs:
        mine = [writer is not None and family_of(writer, families) == family for writer in (pair.model_1, pair.model_2)]
        if pair.id in verdicts and pair.model_1 and pair.model_2 and sum(mine) == 1:
            own = mine.index(True) + 1
            winners = [replicates[0].winner for replicates in verdicts[pair.id].values()]
            judge.append(fmean(pick(winner, own) for winner in winners))
            people.append(pick(pair.human, own))
    return [bias_of(SELF_PREFERENCE, "pairwise", OVERALL, excess(judge, people))] if judge else []


def pick(winner: Hashable, wanted: Hashable) -> float:
    """Return 1 for the output that is asked about, 0 for the other, 0.5 for neither."""
    return float(winner == wanted) if winner in (1, 2) else 0.5


def own_in_scores(
    criterion: str,
    scored: Sequence[tuple[ScoredItem, StoredScore]],
    highest: int,
    judge_id: str,
    families: Mapping[str, str],
) -> list[BiasResult]:
    """Return how much more the judge scores above people what its own family wrote; nothing unless others did, too."""
    gaps: dict[bool, list[float]] = {True: [], False: []}
    for item, one in scored:
        if item.model is not None:
            gap = ((one.score or 0) - fmean(item.scores[criterion])) / (highest - 1)
            gaps[family_of(item.model, families) == family_of(judge_id, families)].append(gap)
    if not gaps[True] or not gaps[False]:
        return []
    return [bias_of(SELF_PREFERENCE, "score", criterion, favour(gaps[True], gaps[False]))]
