"""Read human labels and judges' verdicts from JSON Lines, and join them by item."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from skill_evaluator.errors import JudgeError
from skill_evaluator.files import StrictModel, first_problem, read_checked
from skill_evaluator.identifiers import Label
from skill_evaluator.judges.calibration.results import LabelMode
from skill_evaluator.judges.judge_run import ORDERS, Level, StoredLine, StoredScore, StoredVerdict, Winner
from skill_evaluator.judges.modes.pairwise import OVERALL
from skill_evaluator.judges.modes.ship_rules import FindingVerdict, Impact
from skill_evaluator.judges.prompting.questions import ItemT
from skill_evaluator.stats import by_key
from skill_evaluator.text import counted

_AsTuple = BeforeValidator(lambda value: value if isinstance(value, list | tuple) else (value,))
Scores = Annotated[tuple[Level, ...], _AsTuple, Field(min_length=1)]


class LabelledItem(StrictModel):
    """The fields that labels of outputs, pairs and sentences share."""

    id: Label = Field(min_length=1)
    stratum: Label = Field(default="all", description="the kind of item; a judge is measured by kind")
    input: str | None = None

    def as_item(self, kind: type[ItemT]) -> ItemT:
        """Convert the label into an item to judge. Raise JudgeError if the label lacks a text that `kind` requires."""
        try:
            return kind.model_validate(self.model_dump(exclude_none=True))
        except ValidationError as problem:
            reason = first_problem(problem)
            raise JudgeError(f"item '{self.id}' lacks a text that --judge requires: {reason}") from None


class ScoredItem(LabelledItem):
    """An output with human scores by criterion; `model` wrote it."""

    scores: dict[Label, Scores] = Field(min_length=1, description="by criterion, a score or one score per person")
    output: str | None = None
    source: str | None = None
    reference: str | None = None
    model: Label | None = None
    mode: ClassVar[LabelMode] = "score"
    requests: ClassVar[int] = 1

    @property
    def labels(self) -> Mapping[str, Scores]:
        """The scores by criterion."""
        return self.scores


class LabelledPair(LabelledItem):
    """Two outputs for one input and the output that people prefer, overall or by criteria."""

    human: Winner | None = Field(default=None, description="the output that people prefer, or tie")
    criteria: dict[Label, Winner] = Field(default={}, description="the preferred output by criterion")
    output_1: str | None = None
    output_2: str | None = None
    model_1: Label | None = Field(default=None, description="the model that wrote output 1")
    model_2: Label | None = None
    mode: ClassVar[LabelMode] = "pairwise"
    requests: ClassVar[int] = len(ORDERS)

    @model_validator(mode="after")
    def _need_a_label(self) -> Self:
        if self.human is None and not self.criteria:
            raise ValueError("expected human (the preferred output: 1, 2 or tie) or criteria")
        return self

    @property
    def labels(self) -> Mapping[str, tuple[Winner, ...]]:
        """The preferred output of each criterion, as a tuple of one; `overall` is first."""
        preferences = self.criteria if self.human is None else {OVERALL: self.human, **self.criteria}
        return {name: (winner,) for name, winner in preferences.items()}


class RegressionLabel(StrictModel):
    """The human finding about a pair in one dimension; a worse candidate may have an impact."""

    id: Label = Field(min_length=1, description="the id of the pair")
    dimension: Label = Field(min_length=1)
    human: FindingVerdict
    impact: Impact | None = None


class SentenceLabel(LabelledItem):
    """The human verdict on whether a sentence holds for an output; `id` is the output's id."""

    sentence: str = Field(min_length=1)
    human: bool = Field(strict=True, description="whether the sentence holds")
    output: str = Field(min_length=1)


LabelLine = LabelledPair | ScoredItem | RegressionLabel | SentenceLabel
KindT = TypeVar("KindT", bound=LabelLine)
LineT = TypeVar("LineT", bound=LabelLine | StoredScore | StoredVerdict)
_IDENTITY_KEYS = ("id", "judge", "order", "criterion", "replicate", "dimension", "sentence")  # unique together


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """The lines of a file of labels, in its order."""

    path: Path
    lines: Sequence[LabelLine]

    def of(self, kind: type[KindT]) -> list[KindT]:
        """Return the labels of one kind."""
        return [line for line in self.lines if isinstance(line, kind)]


def read_labels(path: Path) -> Labels:
    """Read a file of labels. Raise JudgeError for an empty file and for an invalid or repeated label."""
    return Labels(path=path, lines=[line for _, line in _unique_lines(path, _parse_label)])


def _parse_label(value: Any) -> LabelLine:
    keys = value if isinstance(value, dict) else ()
    if "scores" in keys:
        return ScoredItem.model_validate(value)
    if "sentence" in keys:
        return SentenceLabel.model_validate(value)
    return (RegressionLabel if "dimension" in keys else LabelledPair).model_validate(value)


def read_verdicts(path: Path, labels: Labels) -> list[StoredLine]:
    """Read the verdicts on labelled items. Skip other items and print their number.

    Raise JudgeError if all items are skipped, or for an invalid or repeated line.
    """
    labelled = {(line.mode, line.id) for line in labels.lines if isinstance(line, LabelledPair | ScoredItem)}
    verdicts, unlabelled = list[StoredLine](), dict[str, tuple[int, str]]()
    for number, line in _unique_lines(path, _parse_verdict):
        mode, keys = ("score", "scores") if isinstance(line, StoredScore) else ("pairwise", "human or criteria")
        if (mode, line.id) in labelled:
            verdicts.append(line)
        else:
            unlabelled.setdefault(line.id, (number, keys))
    for name, (number, keys) in unlabelled.items():
        if not verdicts:
            where = f"'{name}' (line {number}, key {keys})"
            raise JudgeError(f"{labels.path} has no label for the items of {path}, such as {where}")
    if unlabelled:
        print(f"{counted(len(unlabelled), 'item')} of {path} without a label in {labels.path} skipped", file=sys.stderr)
    return verdicts


def _parse_verdict(value: Any) -> StoredScore | StoredVerdict:
    scored = isinstance(value, dict) and "score" in value
    return (StoredScore if scored else StoredVerdict).model_validate(value)


def _unique_lines(path: Path, check: Callable[[Any], LineT]) -> Iterator[tuple[int, LineT]]:
    first_lines: dict[tuple[type, str], int] = {}
    for number, line in read_checked(path, check, JudgeError):
        name = ", ".join(f"{key} '{getattr(line, key)}'" for key in _IDENTITY_KEYS if hasattr(line, key))
        if first_lines.setdefault((type(line), name), number) != number:
            raise JudgeError(f"{path}:{number}: {name} repeats line {first_lines[type(line), name]}")
        yield number, line
    if not first_lines:
        raise JudgeError(f"{path} is empty; expected a JSON object on each line")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A labelled item: its human labels (`people`) and a judge's verdicts on one criterion or dimension.

    `requests` has a list of verdicts for each order of the two outputs. `verdict` combines the orders: for example, it
    is "tie" if the judge prefers a different output in each order. It is None if an order has no usable verdict.
    """

    line: LabelledPair | ScoredItem | None = None
    people: Sequence[Any]
    requests: Sequence[Sequence[Any]]
    verdict: Any
    confidence: float | None = None

    @property
    def label(self) -> Any:
        """The human label; the mean if several people scored the item."""
        return self.people[0] if len(self.people) == 1 else fmean(self.people)

    @property
    def in_both_orders(self) -> bool:
        """Whether the judge was called in both orders."""
        return len(self.requests) == len(ORDERS)


def join_labels(labels: Labels, verdicts: Iterable[StoredLine]) -> dict[tuple[LabelMode, str], list[Unit]]:
    """Join human labels with a judge's verdicts on the same items, by mode and criterion. Items may lack a verdict."""
    answers = by_key(_answers_by_criterion(sorted(verdicts, key=lambda verdict: verdict.replicate)))
    return by_key(
        ((line.mode, criterion), _unit(line, people, answers.get((line.mode, criterion, line.id), [])))
        for line in labels.lines
        if isinstance(line, LabelledPair | ScoredItem)
        for criterion, people in line.labels.items()
    )


Answer = tuple[int, Any, float | None]
"""Order, winner or score, and confidence. Only overall winners and scores have a confidence."""


def _answers_by_criterion(verdicts: Iterable[StoredLine]) -> Iterator[tuple[tuple[LabelMode, str, str], Answer]]:
    for verdict in verdicts:
        if isinstance(verdict, StoredScore):
            yield ("score", verdict.criterion, verdict.id), (1, verdict.score, verdict.confidence)
        else:
            yield ("pairwise", OVERALL, verdict.id), (verdict.order, verdict.winner, verdict.confidence)
            for name, winner in verdict.criteria.items():
                yield ("pairwise", name, verdict.id), (verdict.order, winner, None)


def _unit(line: LabelledPair | ScoredItem, people: Sequence[Any], answers: Sequence[Answer]) -> Unit:
    orders = by_key((order, (verdict, confidence)) for order, verdict, confidence in answers)
    requests = [orders[order] for order in sorted(orders)]
    verdicts = {replicates[0][0] for replicates in requests}
    confidences = [replicates[0][1] for replicates in requests if replicates[0][1] is not None]
    return Unit(
        line=line,
        people=people,
        requests=[[verdict for verdict, _ in replicates] for replicates in requests],
        verdict=None if None in verdicts or not verdicts else verdicts.pop() if len(verdicts) == 1 else "tie",
        confidence=fmean(confidences) if len(confidences) == line.requests else None,
    )
