"""Outputs that people scored and a judge's scores of them → what its scores are worth, by criterion and stratum.

Makes no call. People may be several for an item: agreement is with each of them alike, never with a mean of them that
is steadier than any person.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from types import MappingProxyType

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.asking.results import FigureResult, StoredScore, figure
from skill_evaluator.judges.calibration.biases import own_in_scores
from skill_evaluator.judges.calibration.calibrating import reliability_of
from skill_evaluator.judges.calibration.files import ScoredItem, by_stratum
from skill_evaluator.judges.calibration.judge_results import JudgeResult
from skill_evaluator.judges.calibration.results import ReliabilityResult, ScoreResult
from skill_evaluator.judges.statistics.agreement import Floats, cohen_kappa, confusion, krippendorff, spearman, trust_of
from skill_evaluator.judges.statistics.bounded import mean_within
from skill_evaluator.judges.statistics.habits import central_tendency, own_noise, shift
from skill_evaluator.library.rubrics import SCALES

_NEAR = 0.5  # of a level: a score so far from the mean of people is right
Given = Mapping[str, Sequence[StoredScore]]
_Scored = Sequence[tuple[ScoredItem, StoredScore]]


def calibrate_scores(
    items: Mapping[str, ScoredItem],
    scores: Iterable[StoredScore],
    bar: float,
    scales: Mapping[str, int] = MappingProxyType({}),
    families: Mapping[str, str] = MappingProxyType({}),
) -> list[JudgeResult]:
    """Measure every judge on every criterion and stratum that it has a score in; `bar` is that of trust.

    `scales`: by criterion the highest score; without, the shortest scale that has all scores. `families`: by the id of
    a judge or writer whose model it is, where its name does not say so. Raise JudgeError for a score beyond its scale.
    """
    judges: dict[str, dict[str, dict[str, list[StoredScore]]]] = {}
    for one in scores:
        if one.id in items and one.criterion in items[one.id].scores:
            judges.setdefault(one.judge, {}).setdefault(one.criterion, {}).setdefault(one.id, []).append(one)
    results = []
    for judge, criteria in judges.items():
        measured: dict[str, dict[str, ScoreResult]] = {}
        biases = []
        for criterion, said in criteria.items():
            given = {name: sorted(replicates, key=lambda one: one.replicate) for name, replicates in said.items()}
            labelled = [item for item in items.values() if criterion in item.scores]
            highest = _scale(criterion, labelled, given, scales.get(criterion))
            measured[criterion] = {
                stratum: _stratum(criterion, mine, given, highest, bar)
                for stratum, mine in by_stratum(labelled, given).items()
            }
            biases += own_in_scores(criterion, _pairs(labelled, given), highest, judge, families)
        results.append(JudgeResult(judge=judge, scores=measured, biases=biases))
    return results


def _scale(criterion: str, items: Sequence[ScoredItem], given: Given, named: int | None) -> int:
    """Return the end of the scale that is named, else of the shortest one that has all scores."""
    seen = max(
        *(score for item in items for score in item.scores[criterion]),
        *(one.score or 1 for replicates in given.values() for one in replicates),
    )
    if named is not None and seen > named:
        raise JudgeError(f"a score by '{criterion}' is {seen}, and its scale ends at {named}")
    return named or next(end for end in SCALES.values() if seen <= end)


def _pairs(items: Sequence[ScoredItem], given: Given) -> list[tuple[ScoredItem, StoredScore]]:
    """Return the items with the judge's first score, where it counts."""
    return [(item, given[item.id][0]) for item in items if item.id in given and given[item.id][0].score is not None]


def _stratum(criterion: str, items: Sequence[ScoredItem], given: Given, highest: int, bar: float) -> ScoreResult:
    scored = _pairs(items, given)
    judge = [one.score or 0 for _, one in scored]
    people = [item.scores[criterion] for item, _ in scored]
    means = [fmean(scores) for scores in people]
    table = _table(judge, people, highest)
    trust = trust_of(table, bar, "linear")
    scale = (1.0, float(highest))
    tendency = central_tendency(judge, [scores[0] for scores in people], scale)
    counts = Counter((mine, score) for mine, scores in zip(judge, people, strict=True) for score in scores)
    judged = [replicates for item in items if (replicates := given.get(item.id))]
    noise = own_noise([[one.score for one in replicates]] for replicates in judged)
    return ScoreResult(
        n=len(scored),
        unscored=len(judged) - len(scored),
        unjudged=len(items) - len(judged),
        raters=max((len(scores) for scores in people), default=0),
        right=figure(
            mean_within([scores.count(mine) / len(scores) for mine, scores in zip(judge, people, strict=True)])
        ),
        kappa_linear=figure(trust.kappa),
        kappa_quadratic=figure(cohen_kappa(table, "quadratic")),
        alpha=figure(
            krippendorff([Counter((mine, *scores)) for mine, scores in zip(judge, people, strict=True)], "ordinal")
        ),
        people_alpha=figure(krippendorff([Counter(scores) for scores in people], "ordinal")),
        spearman=figure(spearman(judge, means)),
        higher=figure(shift(means, judge, scale)),
        middle=figure(tendency.middle),
        spread=figure(tendency.spread),
        noise=None if noise is None else figure(noise),
        length=_length(scored, means),
        confidence=_confidence(scored, means),
        confusion={
            mine: {score: counts[mine, score] for score in range(1, highest + 1)} for mine in range(1, highest + 1)
        },
        trusted=trust.trusted,
        more_labels=trust.more_labels,
    )


def _table(judge: Sequence[int], people: Sequence[Sequence[int]], highest: int) -> Floats:
    """Return the table [judge's score, people's score]: each item counts once, and each person of it alike."""
    levels = range(1, highest + 1)
    return sum(
        (
            confusion([mine] * len(scores), scores, levels) / len(scores)
            for mine, scores in zip(judge, people, strict=True)
        ),
        start=confusion([], [], levels),
    )


def _length(scored: _Scored, means: Sequence[float]) -> FigureResult | None:
    """Return how far the judge scores longer outputs higher than people do; None without texts."""
    beyond = [
        (len(item.output), (one.score or 0) - mean)
        for (item, one), mean in zip(scored, means, strict=True)
        if item.output is not None
    ]
    return figure(spearman([length for length, _ in beyond], [gap for _, gap in beyond])) if beyond else None


def _confidence(scored: _Scored, means: Sequence[float]) -> ReliabilityResult | None:
    """Hold confidence against whether the score is that of people, or the one nearest to their mean."""
    given = [
        (one.confidence, abs((one.score or 0) - mean) <= _NEAR)
        for (_, one), mean in zip(scored, means, strict=True)
        if one.confidence is not None
    ]
    return reliability_of([sure for sure, _ in given], [right for _, right in given]) if given else None
