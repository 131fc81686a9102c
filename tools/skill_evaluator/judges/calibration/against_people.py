"""Labels and a judge's verdicts or scores on the same items → what the judge is worth, by stratum. Makes no call.

Several people may score an item: agreement is with each of them alike, never with a mean of them that is steadier than
any person. Self-preference is here, too, since it is seen in what was judged anyway.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from statistics import fmean
from types import MappingProxyType

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
from skill_evaluator.judges.statistics.bounded import Figure, mean_within, rate
from skill_evaluator.judges.statistics.habits import (
    central_tendency,
    excess,
    favour,
    flips_beyond_noise,
    own_noise,
    position_bias,
    shift,
)
from skill_evaluator.library.rubrics import SCALES

SELF_PREFERENCE = "self_preference"
_SMALL = 0.1  # of the scale: a shift that an interval leaves no room for beyond it is none to speak of
GivenVerdicts = Mapping[str, Mapping[int, tuple[StoredVerdict, ...]]]


def bias_of(
    bias: str, mode: JudgedMode, criterion: str, shift: Figure, moved: Figure | None = None, way: str = ""
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
        shift=shift,
        moved=None if moved is None else moved,
        present=present,
    )


def own_in_pairs(
    pairs: Sequence[LabelledPair], verdicts: GivenVerdicts, judge_id: str, families: Mapping[str, str]
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


_CATEGORIES = (1, 2, "tie", None)  # None: not parsed
_ORDERS = (1, 2)
_BINS = 10
_BEYOND_CHANCE = 0.025
_NOTHING = Figure(value=None, ci95=None, n=0)
Verdicts = Mapping[int, StoredVerdict]


def against_people(
    labels: Labels,
    verdicts: Iterable[StoredVerdict],
    scores: Iterable[StoredScore],
    bar: float,
    scales: Mapping[str, int] = MappingProxyType({}),
    families: Mapping[str, str] = MappingProxyType({}),
) -> list[JudgeResult]:
    """Measure every judge on the labelled pairs and outputs that it said something of; `bar` is that of trust.

    `scales`: by criterion the highest score. `families`: by the id of a judge or writer whose model it is, where its
    name does not say so. Raise JudgeError for a score beyond its scale.
    """
    return [
        *calibrate(labels.pairs, verdicts, bar, families),
        *calibrate_scores(labels.scored, scores, bar, scales, families),
    ]


def calibrate(
    pairs: Mapping[str, LabelledPair],
    verdicts: Iterable[StoredVerdict],
    bar: float,
    families: Mapping[str, str] = MappingProxyType({}),
) -> list[JudgeResult]:
    """Measure every judge on every stratum of pairs that it has a verdict in; `bar` is that of trust.

    `families`: by the id of a judge or writer whose model it is, where its name does not say so.
    """
    judges: dict[str, dict[str, dict[int, tuple[StoredVerdict, ...]]]] = {}
    for verdict in verdicts:
        if verdict.id in pairs:
            orders = judges.setdefault(verdict.judge, {}).setdefault(verdict.id, {})
            replicates = (*orders.get(verdict.order, ()), verdict)
            orders[verdict.order] = tuple(sorted(replicates, key=lambda one: one.replicate))
    overall = [pair for pair in pairs.values() if pair.human is not None]
    names = dict.fromkeys(name for pair in pairs.values() for name in pair.criteria)
    return [
        JudgeResult(
            judge=judge,
            strata=_strata(overall, given, bar),
            criteria={name: strata for name in names if (strata := _strata(*_by(name, pairs, given), bar))},
            biases=own_in_pairs(overall, given, judge, families),
        )
        for judge, given in judges.items()
    ]


def _by(
    criterion: str, pairs: Mapping[str, LabelledPair], verdicts: GivenVerdicts
) -> tuple[list[LabelledPair], GivenVerdicts]:
    """Return the pairs that people labelled by a criterion, and the verdicts by it, as if they were the overall ones.

    A judge gives one confidence for all criteria, so there is none.
    """
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
    right, kappa_people = zip(*(_against_people(seen, order) for order in _ORDERS), strict=True)
    position = kappa_orders = None
    if complete:
        in_order, swapped = ([given[order].winner for _, given in complete] for order in _ORDERS)
        position, kappa_orders = position_bias(in_order, swapped), _kappa(in_order, swapped)
    judged_fully = complete or seen
    decided = [_decided(given) for _, given in judged_fully]
    table = confusion(decided, [pair.human for pair, _ in judged_fully], _CATEGORIES)
    trust = trust_of(table, bar)
    flips, first, lean = (position.flips, position.picks_first, position.lean) if position else [_NOTHING] * 3
    orders = kappa_orders or _NOTHING
    return StratumResult(
        n=len(seen),
        incomplete=len(seen) - len(complete),
        unjudged=len(pairs) - len(seen),
        unparsed=sum(verdict.winner is None for _, given in seen for verdict in given.values()),
        accuracy=[share.value for share in right],
        accuracy_ci95=[share.ci95 for share in right],
        flip_rate=flips.value,
        flip_rate_ci95=flips.ci95,
        picks_first=first.value,
        picks_first_ci95=first.ci95,
        lean=lean.value,
        lean_ci95=lean.ci95,
        kappa_people=kappa_people[0].value,
        kappa_people_ci95=kappa_people[0].ci95,
        kappa_orders=orders.value,
        kappa_orders_ci95=orders.ci95,
        kappa_both=trust.kappa.value,
        kappa_both_ci95=trust.kappa.ci95,
        confusion={
            _name(judge): {_name(human): int(count) for human, count in zip(_CATEGORIES[:-1], row, strict=False)}
            for judge, row in zip(_CATEGORIES, table, strict=True)
        },
        noise=noise,
        flips_beyond_noise=None if noise is None else flips_beyond_noise(flips, noise),
        length=_length_of_pairs(seen),
        confidence=_confidence_of_pairs(complete),
        trusted=trust.trusted,
        more_labels=trust.more_labels,
    )


def _name(category: Hashable) -> str:
    return "unparsed" if category is None else str(category)


def _against_people(seen: Sequence[tuple[LabelledPair, Verdicts]], order: int) -> tuple[Figure, Figure]:
    """Return the share right and κ with people of the verdicts in one order."""
    given = [(verdicts[order].winner, pair.human) for pair, verdicts in seen if order in verdicts]
    judge, people = [winner for winner, _ in given], [human for _, human in given]
    return rate(sum(winner == human for winner, human in given), len(given)), _kappa(judge, people)


def _kappa(left: Sequence[Hashable], right: Sequence[Hashable]) -> Figure:
    return cohen_kappa(confusion(left, right, _CATEGORIES))


def _decided(given: Verdicts) -> Hashable:
    """Return the verdict of all orders together: a tie where they differ, not parsed where any was not."""
    winners = {verdict.winner for verdict in given.values()}
    return winners.pop() if len(winners) == 1 else None if None in winners else "tie"


def _length_of_pairs(seen: Sequence[tuple[LabelledPair, Verdicts]]) -> Figure | None:
    """Return how much oftener the judge prefers the longer output than people do; None without texts."""
    unequal = [(pair, given, pair.longer) for pair, given in seen if pair.longer in _ORDERS]
    if not unequal:
        return None
    judge = [
        sum(pick(verdict.winner, longer) for verdict in given.values()) / len(given) for _, given, longer in unequal
    ]
    return excess(judge, [pick(pair.human, longer) for pair, _, longer in unequal])


def _confidence_of_pairs(complete: Sequence[tuple[LabelledPair, Verdicts]]) -> ConfidenceResult | None:
    """Hold the mean confidence of both orders against labels and against the other order; None where none was given."""
    sure, right, same = [], [], []
    for pair, given in complete:
        confidences = [verdict.confidence for verdict in given.values() if verdict.confidence is not None]
        if len(confidences) == len(_ORDERS):
            sure.append(sum(confidences) / len(confidences))
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
            mean = fmean(confidence for confidence, _ in inside)
            table.append(ReliabilityBin(low=low, high=high, confidence=mean, right=share))
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


_NEAR = 0.5  # of a level: a score so far from the mean of people is right
GivenScores = Mapping[str, Sequence[StoredScore]]
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
                stratum: _score_stratum(criterion, mine, given, highest, bar)
                for stratum, mine in by_stratum(labelled, given).items()
            }
            biases += own_in_scores(criterion, _pairs(labelled, given), highest, judge, families)
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


def _pairs(items: Sequence[ScoredItem], given: GivenScores) -> list[tuple[ScoredItem, StoredScore]]:
    """Return the items with the judge's first score, where it counts."""
    return [(item, given[item.id][0]) for item in items if item.id in given and given[item.id][0].score is not None]


def _score_stratum(
    criterion: str, items: Sequence[ScoredItem], given: GivenScores, highest: int, bar: float
) -> ScoreResult:
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
        right=mean_within([scores.count(mine) / len(scores) for mine, scores in zip(judge, people, strict=True)]),
        kappa_linear=trust.kappa,
        kappa_quadratic=cohen_kappa(table, "quadratic"),
        alpha=krippendorff([Counter((mine, *scores)) for mine, scores in zip(judge, people, strict=True)], "ordinal"),
        people_alpha=krippendorff([Counter(scores) for scores in people], "ordinal"),
        spearman=spearman(judge, means),
        higher=shift(means, judge, scale),
        middle=tendency.middle,
        spread=tendency.spread,
        noise=noise,
        length=_length_of_scores(scored, means),
        confidence=_confidence_of_scores(scored, means),
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


def _length_of_scores(scored: _Scored, means: Sequence[float]) -> Figure | None:
    """Return how far the judge scores longer outputs higher than people do; None without texts."""
    beyond = [
        (len(item.output), (one.score or 0) - mean)
        for (item, one), mean in zip(scored, means, strict=True)
        if item.output is not None
    ]
    return spearman([length for length, _ in beyond], [gap for _, gap in beyond]) if beyond else None


def _confidence_of_scores(scored: _Scored, means: Sequence[float]) -> ReliabilityResult | None:
    """Hold confidence against whether the score is that of people, or the one nearest to their mean."""
    given = [
        (one.confidence, abs((one.score or 0) - mean) <= _NEAR)
        for (_, one), mean in zip(scored, means, strict=True)
        if one.confidence is not None
    ]
    return reliability_of([sure for sure, _ in given], [right for _, right in given]) if given else None
