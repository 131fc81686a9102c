"""Agreement of judges with people, by criterion and stratum. Makes no call.

Several people may score an item: the judge is compared with each of them alike, because a mean of several people is
steadier than any person.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import fmean
from types import MappingProxyType
from typing import Any

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.asking.criteria import family_of
from skill_evaluator.judges.asking.results import NoUsableOutput, StoredScore, StoredVerdict, no_usable_output
from skill_evaluator.judges.calibration.biases import is_of_family, pair_biases, score_biases
from skill_evaluator.judges.calibration.labels import Labels, ScoredItem, Unit, join_labels
from skill_evaluator.judges.calibration.results import (
    BiasResult,
    JudgeResult,
    LabelAgreement,
    LabelMode,
    MeanConfidence,
    Position,
)
from skill_evaluator.judges.modes.pairwise import OVERALL
from skill_evaluator.judges.statistics.agreement import Floats, confusion, spearman, trust_of
from skill_evaluator.judges.statistics.biases import position_bias
from skill_evaluator.judges.statistics.bounded import BAR, mean_within, rate
from skill_evaluator.library.rubrics import SCALES
from skill_evaluator.stats import by_key, mean_or_none

_NEAR = 0.5  # levels: a score so near to the mean of people is right


def label_results(
    labels: Labels,
    verdicts: Sequence[StoredVerdict | StoredScore],
    bar: float = BAR,
    scales: Mapping[str, int] = MappingProxyType({}),
    families: Mapping[str, str] = MappingProxyType({}),
) -> list[JudgeResult]:
    """Compare every judge's verdicts and scores with people's, and measure its biases.

    `bar` is the κ of a trusted judge. `scales` has the highest score of a criterion, by default that of the shortest
    scale that fits. `families` has the family of a model whose name does not show it. Raise JudgeError for a score
    beyond its scale.
    """
    results = []
    for judge, lines in by_key((one.judge, one) for one in verdicts).items():
        agreement, biases = list[LabelAgreement](), list[BiasResult]()
        is_own = partial(is_of_family, family_of(judge, families), families)
        for (mode, criterion), units in join_labels(labels, lines).items():
            if any(unit.verdict is not None for unit in units):
                highest = _highest(criterion, units, scales.get(criterion)) if mode == "score" else None
                agreement.append(measure(mode, criterion, units, bar, highest))
                if highest is not None:
                    biases += score_biases(criterion, units, highest, is_own)
                elif criterion == OVERALL:
                    biases += pair_biases(units, is_own)
        results.append(JudgeResult(judge=judge, agreement=agreement, biases=biases, unusable=_unusable(lines)))
    return results


def _unusable(lines: Sequence[StoredVerdict | StoredScore]) -> NoUsableOutput | None:
    """Describe a judge of which no stored line has a verdict; the lines do not say why."""
    texts = (one.text for one in lines if isinstance(one, StoredVerdict) and one.text)
    read = [
        one.score if isinstance(one, StoredScore) else one.winner or any(one.criteria.values()) or None for one in lines
    ]
    return no_usable_output({"wrong_format": read.count(None)}, len(lines), texts)


def _highest(criterion: str, units: Sequence[Unit], named: int | None) -> int:
    """Return the highest score of the named scale, else of the shortest scale that has all scores."""
    given = (score for unit in units for score in (*unit.people, *(unit.requests[0] if unit.verdict else ())))
    highest = max(score or 1 for score in given)
    if named is not None and highest > named:
        raise JudgeError(f"a score by '{criterion}' is {highest}, and its scale ends at {named}")
    return named or next(end for end in SCALES.values() if highest <= end)


def measure(
    mode: LabelMode, criterion: str, units: Sequence[Unit], bar: float, highest: int | None = None
) -> LabelAgreement:
    """Return the figures of a judge by one criterion, over all units and by stratum.

    `highest` is the end of the scale of scores. Pairs that were judged in one order are left out beside others.
    """
    called = [unit for unit in units if unit.requests]
    called = [unit for unit in called if unit.in_both_orders] or called
    judged = [unit for unit in called if unit.verdict is not None or mode == "pairwise"]
    verdicts, people = [unit.verdict for unit in judged], [unit.label for unit in judged]
    side = _side_of(mode, highest)
    sides = [(side(label), side(verdict)) for verdict, label in zip(verdicts, people, strict=True)]
    found, quiet = ([given == label for label, given in sides if label is wanted] for wanted in (True, False))
    strata = by_key((unit.line.stratum if unit.line else "all", unit) for unit in units)
    parts = {name: part for name, part in strata.items() if any(unit.requests for unit in part)}
    return LabelAgreement(
        mode=mode,
        criterion=criterion,
        labels=len(units),
        n=len(judged),
        unusable=sum(unit.verdict is None for unit in called),
        agreement=mean_within([fmean(label == unit.verdict for label in unit.people) for unit in judged]),
        trust=trust_of(_table(judged, highest), bar, "nominal" if highest is None else "linear"),
        correlation=None if highest is None else spearman(verdicts, people),
        sensitivity=rate(sum(found), len(found)),
        specificity=rate(sum(quiet), len(quiet)),
        position=_position(judged),
        confidence=_confidence(judged),
        strata={name: measure(mode, criterion, part, bar, highest) for name, part in parts.items() if len(parts) > 1},
    )


def _side_of(mode: LabelMode, highest: int | None) -> Callable[[Any], bool | None]:
    """Return the function that says of a verdict whether it is positive; None is neither, as a tie."""
    if highest is not None:
        return lambda score: score > (1 + highest) / 2
    return {1: True, 2: False}.get if mode == "pairwise" else lambda verdict: verdict == 1  # a regression, or yes


def _table(units: Sequence[Unit], highest: int | None) -> Floats:
    """Return the table [judge, people] of counts: each item counts once, and each of its people alike."""
    given = dict.fromkeys(label for unit in units for label in (unit.verdict, *unit.people))
    categories = list(given) if highest is None else list(range(1, highest + 1))
    table = confusion([], [], categories)
    for unit in units:
        table += confusion([unit.verdict] * len(unit.people), unit.people, categories) / len(unit.people)
    return table


def _position(units: Sequence[Unit]) -> Position | None:
    """Return the figures of both orders. Return None if the judge was called in one."""
    if not units or not units[0].in_both_orders:
        return None
    orders = [[unit.requests[place][0] for unit in units] for place in (0, 1)]
    bias = position_bias(*orders)
    right = [sum(winner == unit.label for winner, unit in zip(order, units, strict=True)) for order in orders]
    agreement = (rate(right[0], len(units)), rate(right[1], len(units)))
    return Position(flips=bias.flips, first=bias.picks_first, agreement=agreement)


def _confidence(units: Sequence[Unit]) -> MeanConfidence | None:
    """Return the mean confidence of right and of wrong verdicts. Return None if no verdict has a confidence."""
    sure: dict[bool, list[float]] = {True: [], False: []}
    for unit in units:
        if unit.confidence is not None:
            near = isinstance(unit.line, ScoredItem) and abs(unit.verdict - unit.label) <= _NEAR
            sure[near or unit.verdict == unit.label].append(unit.confidence)
    means = {right: mean_or_none(given) for right, given in sure.items()}
    return MeanConfidence(right=means[True], wrong=means[False]) if any(sure.values()) else None
