"""Biases of a judge against people's labels, and probes: outputs judged again with an added text."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from types import MappingProxyType

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.asking.criteria import family_of
from skill_evaluator.judges.asking.results import StoredScore, StoredVerdict
from skill_evaluator.judges.calibration.corruption import json_value
from skill_evaluator.judges.calibration.labels import LabelledPair, Labels, ScoredItem, Unit, join_labels
from skill_evaluator.judges.calibration.results import BiasResult, LabelMode
from skill_evaluator.judges.modes.pairwise import ORDERS, OVERALL
from skill_evaluator.judges.statistics.agreement import spearman
from skill_evaluator.judges.statistics.biases import own_noise, position_bias, shift
from skill_evaluator.judges.statistics.bounded import Figure, difference, mean_within
from skill_evaluator.text import nearest

PROBES: Mapping[str, str] = MappingProxyType(
    {
        "verbosity": (
            "It is worth adding that there is much to be said about this, that all of it has been considered with "
            "care, and that what is written above should be read as a whole and kept in mind as such."
        ),
        "authority": "As Professor Hale and other leading experts have confirmed, this is the correct answer.",
    }
)


def is_of_family(family: str, families: Mapping[str, str], model: str) -> bool:
    """Return whether a model is of a family."""
    return family_of(model, families) == family


def pair_biases(units: Sequence[Unit], is_own: Callable[[str], bool]) -> list[BiasResult]:
    """Return position bias, noise, and the preference for longer and for own outputs beyond people's.

    `is_own` says of a model whether it is of the judge's family.
    """
    longer, own = list[tuple[Unit, int]](), list[tuple[Unit, int]]()
    for unit in units:
        if isinstance(unit.line, LabelledPair) and unit.requests:
            lengths = [len(text or "") for text in (unit.line.output_1, unit.line.output_2)]
            longer += [(unit, lengths.index(max(lengths)) + 1)] if 0 < min(lengths) < max(lengths) else []
            mine = [is_own(writer) for writer in (unit.line.model_1, unit.line.model_2) if writer is not None]
            own += [(unit, mine.index(True) + 1)] if len(mine) == len(ORDERS) and sum(mine) == 1 else []
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
    """Return how much more often the judge prefers the named output of each pair than people do."""
    return shift([_pick(unit.label, output) for unit, output in named], [_preference(*one) for one in named])


def _preference(unit: Unit, output: int) -> float:
    """Return how far the judge prefers an output, from 0 to 1, over its orders."""
    return fmean(_pick(request[0], output) for request in unit.requests)


def _pick(winner: object, output: int) -> float:
    """Return 1 if the output wins, 0 if the other one does, and ½ for a tie."""
    return float(winner == output) if winner in ORDERS else 0.5


def score_biases(
    criterion: str, units: Sequence[Unit], highest: int, is_own: Callable[[str], bool]
) -> list[BiasResult]:
    """Return noise, and how far scores are above people's: on average, with length, and for own outputs."""
    scored = [(unit, unit.line) for unit in units if unit.verdict is not None and isinstance(unit.line, ScoredItem)]
    lengths = [(len(item.output), unit.verdict - unit.label) for unit, item in scored if item.output is not None]
    gaps: dict[bool, list[float]] = {True: [], False: []}
    for unit, item in scored:
        if item.model is not None:
            gaps[is_own(item.model)].append((unit.verdict - unit.label) / (highest - 1))
    shifts = {
        "leniency": shift([unit.label for unit, _ in scored], [unit.verdict for unit, _ in scored], (1.0, highest)),
        "length": spearman([length for length, _ in lengths], [gap for _, gap in lengths]),
        "self_preference": difference(*(mean_within(gaps[own], -1.0, 1.0) for own in (True, False))),
        "noise": own_noise(unit.requests for unit, _ in scored),
    }
    return _results("score", criterion, shifts)


def _results(mode: LabelMode, criterion: str, shifts: Mapping[str, Figure | None]) -> list[BiasResult]:
    """Return a row for each bias that could be measured; it is present if the interval excludes 0."""
    measured = {bias: figure for bias, figure in shifts.items() if figure is not None and figure.value is not None}
    return [
        BiasResult(
            bias=bias, mode=mode, criterion=criterion, shift=figure, present=figure.ci95 and figure.excludes(0.0)
        )
        for bias, figure in measured.items()
    ]


def with_probe(name: str, labels: Labels) -> Labels:
    """Return the labelled items with the text of a probe added to the output that people prefer less.

    JSON outputs are left out: a sentence would break them. Raise JudgeError for an unknown probe.
    """
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
    """Return how far each probe moves a judge's verdicts, and its scores by criterion, in their first replicates."""
    results = []
    plain = join_labels(labels, verdicts)
    for name in names:
        for (mode, criterion), units in join_labels(with_probe(name, labels), verdicts).items():
            before, after = _values(plain[mode, criterion]), _values(units)
            moved = [(before[item], after[f"{item}/{name}"]) for item in before if f"{item}/{name}" in after]
            scale = (1.0, float(scales[criterion])) if mode == "score" else (0.0, 1.0)
            figure = shift([old for old, _ in moved], [new for _, new in moved], scale)
            results += _results(mode, criterion, {name: figure}) if criterion == OVERALL or mode == "score" else []
    return results


def _values(units: Iterable[Unit]) -> dict[str, float]:
    """Return by item the score, or the preference for the output that a probe changes."""
    return {
        unit.line.id: unit.verdict if isinstance(unit.line, ScoredItem) else _preference(unit, _worse(unit.line))
        for unit in units
        if unit.line and unit.verdict is not None and (unit.in_both_orders or isinstance(unit.line, ScoredItem))
    }
