"""Labelled pairs and a judge's verdicts on them → what the judge is worth, by stratum. Makes no call."""

from collections.abc import Hashable, Mapping, Sequence
from statistics import fmean
from types import MappingProxyType

from scipy.stats import mannwhitneyu

from skill_evaluator.judges.asking.results import FigureResult, StoredVerdict, figure
from skill_evaluator.judges.calibration.biases import Given, own_in_pairs, pick
from skill_evaluator.judges.calibration.files import Judged, LabelledPair, by_stratum
from skill_evaluator.judges.calibration.judge_results import JudgeResult
from skill_evaluator.judges.calibration.results import (
    ConfidenceResult,
    ReliabilityBin,
    ReliabilityResult,
    StratumResult,
)
from skill_evaluator.judges.statistics.agreement import cohen_kappa, confusion, trust_of
from skill_evaluator.judges.statistics.bounded import Bounded, mean_within, rate
from skill_evaluator.judges.statistics.habits import excess, flips_beyond_noise, own_noise, position_bias
from skill_evaluator.stats import rounded

_CATEGORIES = (1, 2, "tie", None)  # None: not parsed
_ORDERS = (1, 2)
_BINS = 10
_BEYOND_CHANCE = 0.025
_NOTHING = Bounded(value=None, ci95=None, n=0)
Verdicts = Mapping[int, StoredVerdict]


def calibrate(judged: Judged, bar: float, families: Mapping[str, str] = MappingProxyType({})) -> list[JudgeResult]:
    """Measure every judge on every stratum that it has a verdict in; `bar` is that of trust.

    `families`: by the id of a judge or writer whose model it is, where its name does not say so.
    """
    overall = [pair for pair in judged.pairs.values() if pair.human is not None]
    names = dict.fromkeys(name for pair in judged.pairs.values() for name in pair.criteria)
    return [
        JudgeResult(
            judge=judge,
            strata=_strata(overall, verdicts, bar),
            criteria={
                name: by_stratum for name in names if (by_stratum := _strata(*_by(name, judged.pairs, verdicts), bar))
            },
            biases=own_in_pairs(overall, verdicts, judge, families),
        )
        for judge, verdicts in judged.judges.items()
    ]


def _by(criterion: str, pairs: Mapping[str, LabelledPair], verdicts: Given) -> tuple[list[LabelledPair], Given]:
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


def _strata(pairs: Sequence[LabelledPair], verdicts: Given, bar: float) -> dict[str, StratumResult]:
    return {stratum: _stratum(mine, verdicts, bar) for stratum, mine in by_stratum(pairs, verdicts).items()}


def _stratum(pairs: Sequence[LabelledPair], verdicts: Given, bar: float) -> StratumResult:
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
        noise=None if noise is None else figure(noise),
        flips_beyond_noise=None if noise is None else figure(flips_beyond_noise(flips, noise)),
        length=_length(seen),
        confidence=_confidence(complete),
        trusted=trust.trusted,
        more_labels=trust.more_labels,
    )


def _name(category: Hashable) -> str:
    return "unparsed" if category is None else str(category)


def _against_people(seen: Sequence[tuple[LabelledPair, Verdicts]], order: int) -> tuple[Bounded, Bounded]:
    """Return the share right and κ with people of the verdicts in one order."""
    given = [(verdicts[order].winner, pair.human) for pair, verdicts in seen if order in verdicts]
    judge, people = [winner for winner, _ in given], [human for _, human in given]
    return rate(sum(winner == human for winner, human in given), len(given)), _kappa(judge, people)


def _kappa(left: Sequence[Hashable], right: Sequence[Hashable]) -> Bounded:
    return cohen_kappa(confusion(left, right, _CATEGORIES))


def _decided(given: Verdicts) -> Hashable:
    """Return the verdict of all orders together: a tie where they differ, not parsed where any was not."""
    winners = {verdict.winner for verdict in given.values()}
    return winners.pop() if len(winners) == 1 else None if None in winners else "tie"


def _length(seen: Sequence[tuple[LabelledPair, Verdicts]]) -> FigureResult | None:
    """Return how much oftener the judge prefers the longer output than people do; None without texts."""
    unequal = [(pair, given, pair.longer) for pair, given in seen if pair.longer in _ORDERS]
    if not unequal:
        return None
    judge = [
        sum(pick(verdict.winner, longer) for verdict in given.values()) / len(given) for _, given, longer in unequal
    ]
    return figure(excess(judge, [pick(pair.human, longer) for pair, _, longer in unequal]))


def _confidence(complete: Sequence[tuple[LabelledPair, Verdicts]]) -> ConfidenceResult | None:
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
    >>> held.error.value, held.overconfidence.value, held.ranking.value
    (0.4, 0.3, 0.625)
    """
    verdicts, table = list(zip(sure, right, strict=True)), []
    for place in range(_BINS):
        low, high = place / _BINS, (place + 1) / _BINS
        inside = [verdict for verdict in verdicts if low < verdict[0] <= high or verdict[0] == low == 0.0]
        if inside:
            share = figure(rate(sum(was for _, was in inside), len(inside)))
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
        error=FigureResult(value=rounded(off / len(sure) if sure else None), ci95=None, n=len(sure)),
        overconfidence=figure(mean_within([confidence - was for confidence, was in verdicts], -1.0, 1.0)),
        ranking=FigureResult(value=rounded(area), ci95=None, n=len(sure)),
        follows=follows,
        table=table,
    )
