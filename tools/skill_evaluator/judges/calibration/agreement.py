"""Labels and a judge's verdicts or scores on the same items → agreement with people, and biases. Makes no call.

Several people may score an item: the judge is compared with each of them alike, because a mean of several people is
steadier than any person.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean
from typing import TypeVar

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.asking.criteria import family_of
from skill_evaluator.judges.asking.results import NoUsableOutput, StoredScore, StoredVerdict
from skill_evaluator.judges.calibration.labels import LabelledItem, LabelledPair, ScoredItem
from skill_evaluator.judges.calibration.results import (
    BiasResult,
    JudgeResult,
    LabelAgreement,
    LabelMode,
    MeanConfidence,
    Position,
    SentenceErrors,
)
from skill_evaluator.judges.modes.pairwise import OVERALL
from skill_evaluator.judges.statistics.agreement import Floats, confusion, spearman, trust_of
from skill_evaluator.judges.statistics.biases import own_noise, position_bias, shift
from skill_evaluator.judges.statistics.bounded import BAR, Figure, difference, mean_within, rate
from skill_evaluator.library.rubrics import SCALES
from skill_evaluator.stats import by_key

CATEGORIES = (1, 2, "tie", None)  # None: the output could not be read
_ORDERS = (1, 2)
_NEAR = 0.5  # levels: a score so near to the mean of people is right
UnitT = TypeVar("UnitT", "PairUnit", "ScoreUnit")


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationOptions:
    """`bar`: the κ of a trusted judge. `scales`: by criterion the highest score, else the shortest scale that fits.

    `families`: by id, the family of a model whose name does not show it.
    """

    bar: float = BAR
    scales: Mapping[str, int] = field(default_factory=dict)
    families: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairUnit:
    """A labelled pair with the verdicts in each order, the first replicate first."""

    item: LabelledPair
    human: Hashable
    orders: Mapping[int, Sequence[StoredVerdict]]

    @property
    def winners(self) -> dict[int, Hashable]:
        """The winner of the first replicate in each order."""
        return {order: replicates[0].winner for order, replicates in self.orders.items()}

    @property
    def decided(self) -> Hashable:
        """The verdict of both orders: a tie if they differ, None if an output could not be read."""
        winners = set(self.winners.values())
        return winners.pop() if len(winners) == 1 else None if None in winners else "tie"

    def preference(self, output: int) -> float:
        """Return how far the judge prefers an output, from 0 to 1, over both orders."""
        return fmean(pick(winner, output) for winner in self.winners.values())

    @property
    def confidence(self) -> float | None:
        """The mean confidence of both orders; None unless both have one."""
        given = [replicates[0].confidence for replicates in self.orders.values()]
        known = [confidence for confidence in given if confidence is not None]
        return fmean(known) if len(known) == len(_ORDERS) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreUnit:
    """A scored output with people's scores and the judge's scores by one criterion, the first replicate first."""

    item: ScoredItem
    people: Sequence[int]
    replicates: Sequence[StoredScore]

    @property
    def score(self) -> int:
        """The judge's first score."""
        return self.replicates[0].score or 0

    @property
    def gap(self) -> float:
        """The judge's score minus the mean of people, in levels."""
        return self.score - fmean(self.people)


def pair_results(
    pairs: Mapping[str, LabelledPair], verdicts: Iterable[StoredVerdict], options: CalibrationOptions
) -> list[JudgeResult]:
    """Compare every judge's verdicts with people's, overall and by criterion, and measure its biases."""
    judges: dict[str, dict[str, dict[int, list[StoredVerdict]]]] = {}
    for verdict in sorted(verdicts, key=lambda verdict: verdict.replicate):
        if verdict.id in pairs:
            orders = judges.setdefault(verdict.judge, {}).setdefault(verdict.id, {})
            orders.setdefault(verdict.order, []).append(verdict)
    names = [OVERALL, *dict.fromkeys(name for pair in pairs.values() for name in pair.criteria)]
    results = []
    for judge, given in judges.items():
        everything = [verdict for orders in given.values() for verdicts in orders.values() for verdict in verdicts]
        if all(verdict.winner is None and not any(verdict.criteria.values()) for verdict in everything):
            example = next((verdict.text for verdict in everything if verdict.text), None) or ""
            results.append(JudgeResult(judge=judge, unusable=NoUsableOutput(unscored={}, example=example)))
            continue
        units = {name: pair_units(name, pairs, given) for name in names}
        labels = {name: [pair for pair in pairs.values() if human_winner(name, pair) is not None] for name in names}
        agreement = [
            _by_stratum(mine, labels[name], partial(_pairs, name, options.bar)) for name, mine in units.items() if mine
        ]
        biases = _pair_biases(judge, units[OVERALL], options.families) if units[OVERALL] else []
        results.append(JudgeResult(judge=judge, agreement=agreement, biases=biases))
    return results


def human_winner(criterion: str, pair: LabelledPair) -> Hashable:
    """Return the output that people prefer by a criterion. Return None if the pair has no such label."""
    return pair.human if criterion == OVERALL else pair.criteria.get(criterion)


def pair_units(
    criterion: str, pairs: Mapping[str, LabelledPair], given: Mapping[str, Mapping[int, Sequence[StoredVerdict]]]
) -> list[PairUnit]:
    """Join the labels by a criterion with a judge's verdicts by it; only the overall verdict has a confidence."""
    units = []
    for name, orders in given.items():
        human = human_winner(criterion, pairs[name])
        if criterion != OVERALL:
            orders = {
                order: mine
                for order, verdicts in orders.items()
                if (mine := [_by_criterion(one, criterion) for one in verdicts if criterion in one.criteria])
            }
        if human is not None and orders:
            units.append(PairUnit(item=pairs[name], human=human, orders=orders))
    return units


def _by_criterion(verdict: StoredVerdict, criterion: str) -> StoredVerdict:
    return verdict.model_copy(update={"winner": verdict.criteria[criterion], "confidence": None})


def _by_stratum(
    units: Sequence[UnitT], items: Sequence[LabelledItem], measure: Callable[[Sequence[UnitT], int], LabelAgreement]
) -> LabelAgreement:
    """Measure all units and, if there are several strata, each stratum by itself."""
    strata = by_key((unit.item.stratum, unit) for unit in units)
    counts = by_key((item.stratum, item) for item in items)
    whole = measure(units, len(items))
    if len(strata) < 2:
        return whole
    parts = {stratum: measure(mine, len(counts[stratum])) for stratum, mine in strata.items()}
    return whole.model_copy(update={"strata": parts})


def _pairs(criterion: str, bar: float, units: Sequence[PairUnit], labels: int) -> LabelAgreement:
    complete = [unit for unit in units if len(unit.orders) == len(_ORDERS)]
    judged = complete or units
    decided = [unit.decided for unit in judged]
    people = [unit.human for unit in judged]
    right = [verdict == human for verdict, human in zip(decided, people, strict=True)]
    return LabelAgreement(
        mode="pairwise",
        criterion=criterion,
        labels=labels,
        n=len(judged),
        unusable=decided.count(None),
        agreement=rate(sum(right), len(right)),
        trust=trust_of(confusion(decided, people, CATEGORIES), bar),
        sensitivity=_recall(decided, people, 1),
        specificity=_recall(decided, people, 2),
        position=_position(complete) if complete else None,
        confidence=mean_confidence([unit.confidence for unit in judged], right),
    )


def _recall(judge: Sequence[Hashable], people: Sequence[Hashable], label: Hashable) -> Figure:
    """Return the share of one human label that the judge gives, too."""
    given = [verdict == label for verdict, human in zip(judge, people, strict=True) if human == label]
    return rate(sum(given), len(given))


def _position(complete: Sequence[PairUnit]) -> Position:
    by_order = [[unit.winners[order] for unit in complete] for order in _ORDERS]
    bias = position_bias(*by_order)
    people = [unit.human for unit in complete]
    agreement = [
        rate(sum(winner == human for winner, human in zip(winners, people, strict=True)), len(people))
        for winners in by_order
    ]
    return Position(flips=bias.flips, first=bias.picks_first, agreement=(agreement[0], agreement[1]))


def mean_confidence(confidences: Sequence[float | None], right: Sequence[bool]) -> MeanConfidence | None:
    """Return the mean confidence of right and of wrong verdicts. Return None if no verdict has a confidence."""
    known = [(given, was) for given, was in zip(confidences, right, strict=True) if given is not None]
    means = [
        fmean(given) if (given := [one for one, was in known if was is wanted]) else None for wanted in (True, False)
    ]
    return MeanConfidence(right=means[0], wrong=means[1]) if known else None


def bias_result(bias: str, mode: LabelMode, criterion: str, shift: Figure) -> BiasResult:
    """Build the row of a bias, which is present if the interval of its shift excludes 0."""
    bounds = None if shift.ci95 is None else (round(shift.ci95[0], 6), round(shift.ci95[1], 6))  # as files have them
    present = None if bounds is None else bounds[0] > 0 or bounds[1] < 0
    return BiasResult(bias=bias, mode=mode, criterion=criterion, shift=shift, present=present)


def _pair_biases(judge: str, units: Sequence[PairUnit], families: Mapping[str, str]) -> list[BiasResult]:
    complete = [unit.winners for unit in units if len(unit.orders) == len(_ORDERS)]
    shifts = {"position": position_bias(*([winners[order] for winners in complete] for order in _ORDERS)).lean}
    shifts["length"] = _preference(units, [unit.item.longer for unit in units])
    own = []
    for unit in units:
        writers = (unit.item.model_1, unit.item.model_2)
        same = [_same_family(judge, writer, families) for writer in writers]
        own.append(same.index(True) + 1 if None not in writers and sum(same) == 1 else None)
    shifts["self_preference"] = _preference(units, own)
    noise = own_noise([[one.winner for one in replicates] for replicates in unit.orders.values()] for unit in units)
    if noise is not None:
        shifts["noise"] = noise
    return [bias_result(bias, "pairwise", OVERALL, figure) for bias, figure in shifts.items() if figure.n]


def _same_family(judge: str, writer: str | None, families: Mapping[str, str]) -> bool:
    return writer is not None and family_of(writer, families) == family_of(judge, families)


def _preference(units: Sequence[PairUnit], outputs: Sequence[Hashable]) -> Figure:
    """Return how much more often the judge prefers the named output of each pair than people do."""
    named = [(unit, output) for unit, output in zip(units, outputs, strict=True) if output in _ORDERS]
    people = [pick(unit.human, output) for unit, output in named]
    return shift(people, [unit.preference(int(str(output))) for unit, output in named])


def pick(winner: Hashable, output: Hashable) -> float:
    """Return 1 if the output wins, 0 if the other one does, and ½ for a tie."""
    return float(winner == output) if winner in _ORDERS else 0.5


def score_results(
    items: Mapping[str, ScoredItem], scores: Iterable[StoredScore], options: CalibrationOptions
) -> list[JudgeResult]:
    """Compare every judge's scores with people's by criterion, and measure its biases.

    Raise JudgeError for a score beyond its scale.
    """
    judges: dict[str, dict[str, dict[str, list[StoredScore]]]] = {}
    for score in sorted(scores, key=lambda score: score.replicate):
        if score.id in items and score.criterion in items[score.id].scores:
            criteria = judges.setdefault(score.judge, {})
            criteria.setdefault(score.criterion, {}).setdefault(score.id, []).append(score)
    results = []
    for judge, criteria in judges.items():
        agreement, biases = [], list[BiasResult]()
        for criterion, given in criteria.items():
            labelled = [item for item in items.values() if criterion in item.scores]
            units = [
                ScoreUnit(item=item, people=item.scores[criterion], replicates=given[item.id])
                for item in labelled
                if item.id in given and given[item.id][0].score is not None
            ]
            if units:
                highest = _scale(criterion, units, options.scales.get(criterion))
                whole = _by_stratum(units, labelled, partial(_scores, criterion, options.bar, highest))
                agreement.append(whole.model_copy(update={"unusable": len(given) - len(units)}))
                biases += _score_biases(criterion, units, highest, judge, options.families)
        unusable = None if agreement else NoUsableOutput(unscored={})
        results.append(JudgeResult(judge=judge, agreement=agreement, biases=biases, unusable=unusable))
    return results


def _scale(criterion: str, units: Sequence[ScoreUnit], named: int | None) -> int:
    """Return the highest score of the named scale, else of the shortest scale that has all scores."""
    highest = max(max(*unit.people, *(one.score or 1 for one in unit.replicates)) for unit in units)
    if named is not None and highest > named:
        raise JudgeError(f"a score by '{criterion}' is {highest}, and its scale ends at {named}")
    return named or next(end for end in SCALES.values() if highest <= end)


def _scores(criterion: str, bar: float, highest: int, units: Sequence[ScoreUnit], labels: int) -> LabelAgreement:
    judge, means = [unit.score for unit in units], [fmean(unit.people) for unit in units]
    middle = (1 + highest) / 2
    high = [unit.score > middle for unit in units if fmean(unit.people) > middle]
    low = [unit.score <= middle for unit in units if fmean(unit.people) <= middle]
    return LabelAgreement(
        mode="score",
        criterion=criterion,
        labels=labels,
        n=len(units),
        agreement=mean_within([list(unit.people).count(unit.score) / len(unit.people) for unit in units]),
        trust=trust_of(_score_table(units, range(1, highest + 1)), bar, "linear"),
        correlation=spearman(judge, means),
        sensitivity=rate(sum(high), len(high)),
        specificity=rate(sum(low), len(low)),
        confidence=mean_confidence(
            [unit.replicates[0].confidence for unit in units], [abs(unit.gap) <= _NEAR for unit in units]
        ),
    )


def _score_table(units: Sequence[ScoreUnit], levels: Sequence[int]) -> Floats:
    """Return the table [judge's score, people's score]: each item counts once, and each of its people alike."""
    tables = (confusion([unit.score] * len(unit.people), unit.people, levels) / len(unit.people) for unit in units)
    return sum(tables, start=confusion([], [], levels))


def _score_biases(
    criterion: str, units: Sequence[ScoreUnit], highest: int, judge: str, families: Mapping[str, str]
) -> list[BiasResult]:
    means = [fmean(unit.people) for unit in units]
    shifts = {"leniency": shift(means, [unit.score for unit in units], (1.0, float(highest)))}
    lengths = [(len(unit.item.output), unit.gap) for unit in units if unit.item.output is not None]
    shifts["length"] = spearman([length for length, _ in lengths], [gap for _, gap in lengths])
    gaps: dict[bool, list[float]] = {True: [], False: []}
    for unit in units:
        if unit.item.model is not None:
            gaps[_same_family(judge, unit.item.model, families)].append(unit.gap / (highest - 1))
    shifts["self_preference"] = difference(*(mean_within(gaps[own], -1.0, 1.0) for own in (True, False)))
    noise = own_noise([[one.score for one in unit.replicates]] for unit in units)
    if noise is not None:
        shifts["noise"] = noise
    return [
        bias_result(bias, "score", criterion, figure) for bias, figure in shifts.items() if figure.value is not None
    ]


def sentence_agreement(errors: SentenceErrors, bar: float) -> LabelAgreement:
    """Build the agreement on labelled sentences from the errors over all of them."""
    import numpy as np

    table = np.array(
        [[errors.yes_right, errors.no - errors.no_right], [errors.yes - errors.yes_right, errors.no_right]]
    )
    return LabelAgreement(
        mode="sentences",
        criterion="all",
        labels=errors.labels + errors.lost,
        n=errors.labels,
        unusable=errors.lost,
        agreement=rate(errors.yes_right + errors.no_right, errors.labels),
        trust=trust_of(table.astype(float), bar),
        sensitivity=rate(errors.yes_right, errors.yes),
        specificity=rate(errors.no_right, errors.no),
    )
