"""Labels and a judge's verdicts or scores on the same items → what the judge is worth, by stratum. Makes no call.

Several people may score an item: agreement is with each of them alike, never with a mean of them that is steadier than
any person. Self-preference is here, too, since it is seen in what was judged anyway.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from statistics import fmean
from types import MappingProxyType
from typing import Any

from scipy.stats import mannwhitneyu

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.asking.criteria import family_of
from skill_evaluator.judges.asking.results import StoredScore, StoredVerdict
from skill_evaluator.judges.calibration.labels import LabelledPair, Labels, ScoredItem, by_stratum
from skill_evaluator.judges.calibration.results import (
    BiasResult,
    ConfidenceResult,
    JudgedMode,
    JudgeResult,
    ReliabilityBin,
    ReliabilityResult,
    ScoreResult,
    StratumResult,
)
from skill_evaluator.judges.modes.pairwise import OVERALL
from skill_evaluator.judges.statistics.agreement import Floats, cohen_kappa, confusion, krippendorff, spearman, trust_of
from skill_evaluator.judges.statistics.bounded import Figure, difference, mean_within, rate
from skill_evaluator.judges.statistics.habits import middle_excess, own_noise, position_bias, shift, spread_ratio
from skill_evaluator.library.rubrics import SCALES

SELF_PREFERENCE = "self_preference"
_SMALL = 0.1  # of the scale: a shift that an interval leaves no room for beyond it is none to speak of
_CATEGORIES = (1, 2, "tie", None)  # None: not parsed
_ORDERS = (1, 2)
_BINS = 10
_BEYOND_CHANCE = 0.025
_NEAR = 0.5  # of a level: a score so far from the mean of people is right
_NOTHING = Figure(value=None, ci95=None, n=0)
GivenVerdicts = Mapping[str, Mapping[int, tuple[StoredVerdict, ...]]]
"""By pair and order the verdicts, in the order of their replicates."""
GivenScores = Mapping[str, Sequence[StoredScore]]
_Seen = Sequence[tuple[LabelledPair, Mapping[int, StoredVerdict]]]
_Scored = Sequence[tuple[ScoredItem, StoredScore]]


def against_people(
    labels: Labels,
    verdicts: Iterable[StoredVerdict],
    scores: Iterable[StoredScore],
    bar: float,
    scales: Mapping[str, int],
    families: Mapping[str, str] = MappingProxyType({}),
) -> list[JudgeResult]:
    """Measure every judge on the labelled pairs and outputs that it judged; `bar` is that of trust.

    `scales`: by criterion the highest score; without, the shortest scale that has all scores. `families`: by the id of
    a judge or writer whose model it is, where its name does not say so. Raise JudgeError for a score beyond its scale.
    """
    return [
        *_of_pairs(labels.pairs, verdicts, bar, families),
        *_of_scores(labels.scored, scores, bar, scales, families),
    ]


def bias_of(
    bias: str,
    mode: JudgedMode,
    criterion: str,
    shift: Figure,
    moved: Figure | None = None,
    way: str = "",
    lost: int = 0,
) -> BiasResult:
    """Return the row of a bias; by the interval of its shift it is present, negligible or undecided."""
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
        shift=shift,
        moved=moved,
        lost=lost,
        present=present,
    )


def _of_pairs(
    pairs: Mapping[str, LabelledPair], verdicts: Iterable[StoredVerdict], bar: float, families: Mapping[str, str]
) -> list[JudgeResult]:
    judges: dict[str, dict[str, dict[int, tuple[StoredVerdict, ...]]]] = {}
    for verdict in sorted(verdicts, key=lambda one: one.replicate):
        if verdict.id in pairs:
            orders = judges.setdefault(verdict.judge, {}).setdefault(verdict.id, {})
            orders[verdict.order] = (*orders.get(verdict.order, ()), verdict)
    overall = [pair for pair in pairs.values() if pair.human is not None]
    names = dict.fromkeys(name for pair in pairs.values() for name in pair.criteria)
    return [
        JudgeResult(
            judge=judge,
            strata=_strata(overall, given, bar),
            criteria={name: strata for name in names if (strata := _strata(*_by(name, pairs, given), bar))},
            biases=_own_in_pairs(overall, given, judge, families),
        )
        for judge, given in judges.items()
    ]


def _own_in_pairs(
    pairs: Sequence[LabelledPair], verdicts: GivenVerdicts, judge_id: str, families: Mapping[str, str]
) -> list[BiasResult]:
    """Return how much oftener than people the judge prefers its own family's output, where a pair has one of it."""
    judge, people, family = [], [], family_of(judge_id, families)
    for pair in pairs:
        mine = [writer is not None and family_of(writer, families) == family for writer in (pair.model_1, pair.model_2)]
        if pair.id in verdicts and pair.model_1 and pair.model_2 and sum(mine) == 1:
            own = mine.index(True) + 1
            judge.append(fmean(_pick(replicates[0].winner, own) for replicates in verdicts[pair.id].values()))
            people.append(_pick(pair.human, own))
    return [bias_of(SELF_PREFERENCE, "pairwise", OVERALL, shift(people, judge))] if judge else []


def _pick(winner: Hashable, wanted: Hashable) -> float:
    return float(winner == wanted) if winner in _ORDERS else 0.5


def _by(
    criterion: str, pairs: Mapping[str, LabelledPair], verdicts: GivenVerdicts
) -> tuple[list[LabelledPair], GivenVerdicts]:
    """Return pairs and verdicts by a criterion as if they were the overall ones, without the one confidence for all."""
    labelled = [
        pair.model_copy(update={"human": pair.criteria[criterion]})
        for pair in pairs.values()
        if criterion in pair.criteria
    ]
    given: dict[str, dict[int, tuple[StoredVerdict, ...]]] = {}
    for name, orders in verdicts.items():
        for order, replicates in orders.items():
            mine = tuple(
                verdict.model_copy(update={"winner": verdict.criteria[criterion], "confidence": None})
                for verdict in replicates
                if criterion in verdict.criteria
            )
            if mine:
                given.setdefault(name, {})[order] = mine
    return labelled, given


def _strata(pairs: Sequence[LabelledPair], verdicts: GivenVerdicts, bar: float) -> dict[str, StratumResult]:
    return {stratum: _stratum(mine, verdicts, bar) for stratum, mine in by_stratum(pairs, verdicts).items()}


def _stratum(pairs: Sequence[LabelledPair], verdicts: GivenVerdicts, bar: float) -> StratumResult:
    answered = [(pair, verdicts[pair.id]) for pair in pairs if pair.id in verdicts]
    seen = [(pair, {order: replicates[0] for order, replicates in given.items()}) for pair, given in answered]
    noise = own_noise([[one.winner for one in mine] for mine in given.values()] for _, given in answered)
    complete = [(pair, given) for pair, given in seen if len(given) == len(_ORDERS)]
    right, kappa_people = zip(*(_in_order(seen, order) for order in _ORDERS), strict=True)
    flips = first = lean = kappa_orders = _NOTHING
    if complete:
        in_order, swapped = ([given[order].winner for _, given in complete] for order in _ORDERS)
        flips, first, lean = position_bias(in_order, swapped)
        kappa_orders = cohen_kappa(confusion(in_order, swapped, _CATEGORIES))
    judged_fully = complete or seen
    decided = [_decided(given) for _, given in judged_fully]
    table = confusion(decided, [pair.human for pair, _ in judged_fully], _CATEGORIES)
    trust = trust_of(table, bar)
    figures = {
        "flip_rate": flips,
        "picks_first": first,
        "lean": lean,
        "kappa_people": kappa_people[0],
        "kappa_orders": kappa_orders,
        "kappa_both": trust.kappa,
    }
    return StratumResult(
        n=len(seen),
        incomplete=len(seen) - len(complete),
        unjudged=len(pairs) - len(seen),
        unparsed=sum(verdict.winner is None for _, given in seen for verdict in given.values()),
        accuracy=[share.value for share in right],
        accuracy_ci95=[share.ci95 for share in right],
        **{name: figure.value for name, figure in figures.items()},
        **{f"{name}_ci95": figure.ci95 for name, figure in figures.items()},
        confusion={
            judge: {str(human): int(count) for human, count in zip(_CATEGORIES[:-1], row, strict=False)}
            for judge, row in zip(("1", "2", "tie", "unparsed"), table, strict=True)
        },
        noise=noise,
        flips_beyond_noise=None if noise is None else difference(flips, noise),
        length=_length_of_pairs(seen),
        confidence=_confidence_of_pairs(complete),
        trusted=trust.trusted,
        more_labels=trust.more_labels,
    )


def _in_order(seen: _Seen, order: int) -> tuple[Figure, Figure]:
    """Return the share right and κ with people of the verdicts in one order."""
    given = [(verdicts[order].winner, pair.human) for pair, verdicts in seen if order in verdicts]
    judge, people = [winner for winner, _ in given], [human for _, human in given]
    right = rate(sum(winner == human for winner, human in given), len(given))
    return right, cohen_kappa(confusion(judge, people, _CATEGORIES))


def _decided(given: Mapping[int, StoredVerdict]) -> Hashable:
    """Return the verdict of all orders together: a tie where they differ, not parsed where any was not."""
    winners = {verdict.winner for verdict in given.values()}
    return winners.pop() if len(winners) == 1 else None if None in winners else "tie"


def _length_of_pairs(seen: _Seen) -> Figure | None:
    """Return how much oftener the judge prefers the longer output than people do; None without texts."""
    unequal = [(pair, given, pair.longer) for pair, given in seen if pair.longer in _ORDERS]
    judge = [fmean(_pick(verdict.winner, longer) for verdict in given.values()) for _, given, longer in unequal]
    return shift([_pick(pair.human, longer) for pair, _, longer in unequal], judge) if unequal else None


def _confidence_of_pairs(complete: _Seen) -> ConfidenceResult | None:
    """Hold the mean confidence of both orders against labels and against the other order; None without any."""
    sure, right, same = [], [], []
    for pair, given in complete:
        confidences = [verdict.confidence for verdict in given.values() if verdict.confidence is not None]
        if len(confidences) == len(_ORDERS):
            sure.append(fmean(confidences))
            right.append(_decided(given) == pair.human)
            same.append(given[1].winner == given[2].winner)
    return ConfidenceResult(labels=reliability_of(sure, right), orders=reliability_of(sure, same)) if sure else None


def reliability_of(sure: Sequence[float], right: Sequence[bool]) -> ReliabilityResult:
    """Hold confidences in [0, 1] against whether each verdict was right, or the same in both orders.

    The expected calibration error is Σ bins n_b ÷ n |share right − mean confidence| over ten bins of equal width:
    Naeini et al. 2015 (doi:10.1609/aaai.v29i1.9602). The ranking is the area under the ROC curve.
    Confidence follows being right beyond chance by the one-sided test of Mann and Whitney at 2.5 %.

    >>> held = reliability_of([0.9, 0.9, 0.8, 0.6], [True, False, True, False])
    >>> [round(figure.value or 0, 3) for figure in (held.error, held.overconfidence, held.ranking)]
    [0.4, 0.3, 0.625]
    """
    verdicts, table = list(zip(sure, right, strict=True)), []
    for place in range(_BINS):
        low, high = place / _BINS, (place + 1) / _BINS
        inside = [verdict for verdict in verdicts if low < verdict[0] <= high or verdict[0] == low == 0.0]
        if inside:
            share = rate(sum(was for _, was in inside), len(inside))
            table.append(ReliabilityBin(low=low, high=high, confidence=fmean(one for one, _ in inside), right=share))
    off = sum(abs(bin.right.n * ((bin.right.value or 0.0) - bin.confidence)) for bin in table)
    of_right, of_wrong = ([confidence for confidence, was in verdicts if was is wanted] for wanted in (True, False))
    area = follows = None
    if of_right and of_wrong:
        tested = mannwhitneyu(of_right, of_wrong, alternative="greater", method="asymptotic")
        area = float(tested.statistic) / (len(of_right) * len(of_wrong))
        follows = bool(tested.pvalue < _BEYOND_CHANCE)
    return ReliabilityResult(
        error=Figure(value=off / len(sure) if sure else None, ci95=None, n=len(sure)),
        overconfidence=mean_within([confidence - was for confidence, was in verdicts], -1.0, 1.0),
        ranking=Figure(value=area, ci95=None, n=len(sure)),
        follows=follows,
        table=table,
    )


def _of_scores(
    items: Mapping[str, ScoredItem],
    scores: Iterable[StoredScore],
    bar: float,
    scales: Mapping[str, int],
    families: Mapping[str, str],
) -> list[JudgeResult]:
    judges: dict[str, dict[str, dict[str, list[StoredScore]]]] = {}
    for one in sorted(scores, key=lambda one: one.replicate):
        if one.id in items and one.criterion in items[one.id].scores:
            judges.setdefault(one.judge, {}).setdefault(one.criterion, {}).setdefault(one.id, []).append(one)
    results = []
    for judge, criteria in judges.items():
        measured: dict[str, dict[str, ScoreResult]] = {}
        biases = []
        for criterion, given in criteria.items():
            labelled = [item for item in items.values() if criterion in item.scores]
            highest = _scale(criterion, labelled, given, scales.get(criterion))
            measured[criterion] = {
                stratum: _score_stratum(criterion, mine, given, highest, bar)
                for stratum, mine in by_stratum(labelled, given).items()
            }
            biases += _own_in_scores(criterion, _scored(labelled, given), highest, judge, families)
        results.append(JudgeResult(judge=judge, scores=measured, biases=biases))
    return results


def _scale(criterion: str, items: Sequence[ScoredItem], given: GivenScores, named: int | None) -> int:
    """Return the end of the scale that is named, else of the shortest one that has all scores."""
    seen = max(
        *(score for item in items for score in item.scores[criterion]),
        *(one.score or 1 for replicates in given.values() for one in replicates),
    )
    if named is not None and seen > named:
        raise JudgeError(f"a score by '{criterion}' is {seen}, and its scale ends at {named}")
    return named or next(end for end in SCALES.values() if seen <= end)


def _scored(items: Sequence[ScoredItem], given: GivenScores) -> _Scored:
    """Return the items with the judge's first score, where it counts."""
    return [(item, given[item.id][0]) for item in items if item.id in given and given[item.id][0].score is not None]


def _own_in_scores(
    criterion: str, scored: _Scored, highest: int, judge_id: str, families: Mapping[str, str]
) -> list[BiasResult]:
    """Return how much more the judge scores above people what its own family wrote; nothing unless others did, too."""
    gaps: dict[bool, list[float]] = {True: [], False: []}
    for item, one in scored:
        if item.model is not None:
            gap = ((one.score or 0) - fmean(item.scores[criterion])) / (highest - 1)
            gaps[family_of(item.model, families) == family_of(judge_id, families)].append(gap)
    if not gaps[True] or not gaps[False]:
        return []
    own, others = (mean_within(gaps[mine], -1.0, 1.0) for mine in (True, False))
    return [bias_of(SELF_PREFERENCE, "score", criterion, difference(own, others))]


def _score_stratum(
    criterion: str, items: Sequence[ScoredItem], given: GivenScores, highest: int, bar: float
) -> ScoreResult:
    scored = _scored(items, given)
    judge = [one.score or 0 for _, one in scored]
    people = [item.scores[criterion] for item, _ in scored]
    both: list[tuple[int, Sequence[int]]] = list(zip(judge, people, strict=True))
    means, firsts = [fmean(scores) for scores in people], [scores[0] for scores in people]
    scale, levels = (1.0, float(highest)), range(1, highest + 1)
    table = _table(both, levels)
    trust = trust_of(table, bar, "linear")
    counts = Counter((mine, score) for mine, scores in both for score in scores)
    judged = [replicates for item in items if (replicates := given.get(item.id))]
    return ScoreResult(
        n=len(scored),
        unscored=len(judged) - len(scored),
        unjudged=len(items) - len(judged),
        raters=max((len(scores) for scores in people), default=0),
        right=mean_within([scores.count(mine) / len(scores) for mine, scores in both]),
        kappa_linear=trust.kappa,
        kappa_quadratic=cohen_kappa(table, "quadratic"),
        alpha=krippendorff([Counter((mine, *scores)) for mine, scores in both], "ordinal"),
        people_alpha=krippendorff([Counter(scores) for scores in people], "ordinal"),
        spearman=spearman(judge, means),
        higher=shift(means, judge, scale),
        middle=middle_excess(judge, firsts, scale),
        spread=spread_ratio(judge, firsts),
        noise=own_noise([[one.score for one in replicates]] for replicates in judged),
        confusion={mine: {score: counts[mine, score] for score in levels} for mine in levels},
        trusted=trust.trusted,
        more_labels=trust.more_labels,
        **_beside_means(scored, means),
    )


def _table(both: Sequence[tuple[int, Sequence[int]]], levels: Sequence[int]) -> Floats:
    """Return the table [judge's score, people's score]: each item counts once, and each person of it alike."""
    tables = (confusion([mine] * len(scores), scores, levels) / len(scores) for mine, scores in both)
    return sum(tables, start=confusion([], [], levels))


def _beside_means(scored: _Scored, means: Sequence[float]) -> dict[str, Any]:
    """Return how length and confidence go with the distance from people; None without texts, or without confidences.

    A score is right that is people's, or the one nearest to their mean.
    """
    apart = [
        (item.output, one.confidence, (one.score or 0) - mean) for (item, one), mean in zip(scored, means, strict=True)
    ]
    beyond = [(len(output), gap) for output, _, gap in apart if output is not None]
    sure = [(confidence, abs(gap) <= _NEAR) for _, confidence, gap in apart if confidence is not None]
    return {
        "length": spearman(*zip(*beyond, strict=True)) if beyond else None,
        "confidence": reliability_of(*zip(*sure, strict=True)) if sure else None,
    }
