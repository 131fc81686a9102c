"""Agreement of judges with people by criterion and stratum, biases, and probes. Makes no call.

Several people may score an item: the judge is compared with each of them alike, because a mean of several people is
steadier than any person. A probe is a text that is added to outputs before they are judged again.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from statistics import fmean
from types import MappingProxyType
from typing import Any

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.calibration.corruption import json_value
from skill_evaluator.judges.calibration.labels import LabelledPair, Labels, ScoredItem, Unit, join_labels
from skill_evaluator.judges.calibration.results import (
    BiasResult,
    JudgeResult,
    LabelAgreement,
    LabelMode,
    MeanConfidence,
    Position,
)
from skill_evaluator.judges.modes.pairwise import ORDERS, OVERALL
from skill_evaluator.judges.prompting.criteria import family_of
from skill_evaluator.judges.prompting.results import NoUsableOutput, StoredScore, StoredVerdict, no_usable_output
from skill_evaluator.judges.statistics import (
    BAR,
    Figure,
    Floats,
    confusion,
    difference,
    mean_within,
    own_noise,
    position_bias,
    rate,
    shift,
    spearman,
    trust_of,
)
from skill_evaluator.library.rubrics import SCALES
from skill_evaluator.stats import by_key, mean_or_none
from skill_evaluator.text import nearest

_NEAR = 0.5  # levels: a score so near to the mean of people is right
PROBES: Mapping[str, str] = MappingProxyType(
    {
        "verbosity": (
            "It is worth adding that there is much to be said about this, that all of it has been considered with "
            "care, and that what is written above should be read as a whole and kept in mind as such."
        ),
        "authority": "As Professor Hale and other leading experts have confirmed, this is the correct answer.",
    }
)


def label_results(
    labels: Labels,
    verdicts: Sequence[StoredVerdict | StoredScore],
    bar: float = BAR,
    scales: Mapping[str, int] = MappingProxyType({}),
    families: Mapping[str, str] = MappingProxyType({}),
) -> list[JudgeResult]:
    """Compare every judge's verdicts with people's and measure its biases; `families` are those of models by id."""
    results = []
    for judge, lines in by_key((one.judge, one) for one in verdicts).items():
        agreement, biases = list[LabelAgreement](), list[BiasResult]()
        writers = {line.model for line in labels.of(ScoredItem)}
        writers |= {model for line in labels.of(LabelledPair) for model in (line.model_1, line.model_2)}
        own = {name for name in writers if name and family_of(name, families) == family_of(judge, families)}
        for (mode, criterion), units in join_labels(labels, lines).items():
            if any(unit.verdict is not None for unit in units):
                highest = _highest(criterion, units, scales.get(criterion)) if mode == "score" else None
                agreement.append(measure(mode, criterion, units, bar, highest))
                if highest is not None:
                    biases += score_biases(criterion, units, highest, own)
                elif criterion == OVERALL:
                    biases += pair_biases(units, own)
        results.append(
            JudgeResult(
                judge=judge, agreement=agreement, biases=biases, unusable=None if agreement else _unusable(lines)
            )
        )
    return results


def _unusable(lines: Sequence[StoredVerdict | StoredScore]) -> NoUsableOutput | None:
    """Describe a judge without a verdict on a labelled item. Return None if every line has a verdict."""
    texts = (one.text for one in lines if isinstance(one, StoredVerdict) and one.text)
    read = [
        one.score if isinstance(one, StoredScore) else one.winner or any(one.criteria.values()) or None for one in lines
    ]
    return no_usable_output({"wrong_format": read.count(None)}, read.count(None), texts)


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
    """Return the figures of a judge by one criterion and by stratum; `highest` is the end of the scale of scores."""
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
    for people, group in by_key((len(unit.people), unit) for unit in units).items():
        verdicts = [unit.verdict for unit in group for _ in unit.people]
        table += confusion(verdicts, [label for unit in group for label in unit.people], categories) / people
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


def pair_biases(units: Sequence[Unit], own_models: Collection[str]) -> list[BiasResult]:
    """Return position bias, noise, and the preference for longer and for own outputs beyond people's."""
    longer, own = list[tuple[Unit, int]](), list[tuple[Unit, int]]()
    for unit in units:
        if isinstance(unit.line, LabelledPair) and unit.requests:
            lengths = [len(text or "") for text in (unit.line.output_1, unit.line.output_2)]
            longer += [(unit, lengths.index(max(lengths)) + 1)] if 0 < min(lengths) < max(lengths) else []
            is_own = [model in own_models for model in (unit.line.model_1, unit.line.model_2) if model is not None]
            own += [(unit, is_own.index(True) + 1)] if len(is_own) == len(ORDERS) and sum(is_own) == 1 else []
    complete = [unit for unit in units if unit.in_both_orders]
    orders = [[unit.requests[place][0] for unit in complete] for place in (0, 1)]
    shifts = {
        "position": position_bias(*orders).lean,
        "length": _beyond_people(longer),
        "self_preference": _beyond_people(own),
        "noise": own_noise(unit.requests for unit in units),
    }
    return _results("pairwise", OVERALL, shifts)


def _beyond_people(named: Sequence[tuple[Unit, int]]) -> Figure:
    """Return the judge's preference for the named output of each pair beyond people's."""
    return shift([_pick(unit.label, output) for unit, output in named], [_preference(*one) for one in named])


def _preference(unit: Unit, output: int) -> float:
    """Return the judge's preference for an output, from 0 to 1, over its orders."""
    return fmean(_pick(request[0], output) for request in unit.requests)


def _pick(winner: object, output: int) -> float:
    """Return 1 if the output wins, 0 if the other one does, and ½ for a tie."""
    return float(winner == output) if winner in ORDERS else 0.5


def score_biases(criterion: str, units: Sequence[Unit], highest: int, own_models: Collection[str]) -> list[BiasResult]:
    """Return noise, and how far scores are above people's: on average, with length, and for own outputs."""
    scored = [(unit, unit.line) for unit in units if unit.verdict is not None and isinstance(unit.line, ScoredItem)]
    lengths = [(len(item.output), unit.verdict - unit.label) for unit, item in scored if item.output is not None]
    gaps: dict[bool, list[float]] = {True: [], False: []}
    for unit, item in scored:
        if item.model is not None:
            gaps[item.model in own_models].append((unit.verdict - unit.label) / (highest - 1))
    shifts = {
        "leniency": shift([unit.label for unit, _ in scored], [unit.verdict for unit, _ in scored], (1.0, highest)),
        "length": spearman([length for length, _ in lengths], [gap for _, gap in lengths]),
        "self_preference": difference(*(mean_within(gaps[own], -1.0, 1.0) for own in (True, False))),
        "noise": own_noise(unit.requests for unit, _ in scored),
    }
    return _results("score", criterion, shifts)


def _results(mode: LabelMode, criterion: str, shifts: Mapping[str, Figure | None]) -> list[BiasResult]:
    """Return a row for each bias that could be measured; it is present if the interval excludes 0."""
    rows = []
    for bias, figure in shifts.items():
        if figure is not None and figure.value is not None:
            present = figure.ci95 and figure.excludes(0.0)
            rows.append(BiasResult(bias=bias, mode=mode, criterion=criterion, shift=figure, present=present))
    return rows


def with_probe(name: str, labels: Labels) -> Labels:
    """Add the text of a probe to the output that people prefer less, unless it is JSON. Raise JudgeError."""
    if name not in PROBES:
        raise JudgeError(f"no probe '{name}' {nearest(name, PROBES)}")
    given: list[LabelledPair | ScoredItem] = [*labels.of(LabelledPair), *labels.of(ScoredItem)]
    lines = list[LabelledPair | ScoredItem]()
    for line in given:
        key = "output" if isinstance(line, ScoredItem) else f"output_{_worse(line)}"
        text = getattr(line, key) or ""
        if (OVERALL in line.labels or isinstance(line, ScoredItem)) and json_value(text) is None:
            lines.append(line.model_copy(update={"id": f"{line.id}/{name}", key: f"{text}\n\n{PROBES[name]}"}))
    return Labels(path=labels.path, lines=lines)


def _worse(pair: LabelledPair) -> int:
    """Return the output that people prefer less, the first of a tie."""
    return 2 if pair.human == 1 else 1


def probe_biases(
    names: Iterable[str],
    labels: Labels,
    verdicts: Sequence[StoredVerdict | StoredScore],
    scales: Mapping[str, int],
) -> list[BiasResult]:
    """Return the shift of a judge's verdicts or scores by each probe, in their first replicates."""
    results = []
    plain = join_labels(labels, verdicts)
    for name in dict.fromkeys(names):
        for (mode, criterion), units in join_labels(with_probe(name, labels), verdicts).items():
            before, after = _values(plain[mode, criterion]), _values(units)
            moved = [(before[item], after[f"{item}/{name}"]) for item in before if f"{item}/{name}" in after]
            scale = (1.0, float(scales[criterion])) if mode == "score" else (0.0, 1.0)
            figure = shift([old for old, _ in moved], [new for _, new in moved], scale)
            results += _results(mode, criterion, {name: figure}) if criterion == OVERALL or mode == "score" else []
    return results


def _values(units: Iterable[Unit]) -> dict[str, float]:
    """Return the score of each item by id, or the preference for the output that a probe changes."""
    return {
        unit.line.id: unit.verdict if isinstance(unit.line, ScoredItem) else _preference(unit, _worse(unit.line))
        for unit in units
        if unit.line and unit.verdict is not None and (unit.in_both_orders or isinstance(unit.line, ScoredItem))
    }
