"""Labels of people and verdicts of judges: JSON Lines, one checked value a line.

A file of labels may hold pairs, scored outputs, findings of regressions and sentences. The texts may be omitted, so
that labels and verdicts can be shared where the texts cannot.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import BeforeValidator, Field, model_validator

from skill_evaluator.errors import JudgeError
from skill_evaluator.files import StrictModel, read_checked
from skill_evaluator.identifiers import Label
from skill_evaluator.judges.asking.items import OutputItem
from skill_evaluator.judges.asking.results import Level, StoredScore, StoredVerdict, Winner
from skill_evaluator.judges.modes.pairwise import PairItem
from skill_evaluator.judges.modes.ship_rules import NONE, Finding, Impact
from skill_evaluator.text import counted

_AsTuple = BeforeValidator(lambda value: value if isinstance(value, list | tuple) else (value,))
Scores = Annotated[tuple[Level, ...], _AsTuple, Field(min_length=1)]


class LabelledItem(StrictModel):
    """The fields that all labels of an item have."""

    id: Label = Field(min_length=1)
    stratum: Label = Field(default="all", description="the kind of item; a judge is measured by kind")
    input: str | None = None


class ScoredItem(LabelledItem):
    """An output with people's scores by criterion; `model` wrote it."""

    scores: dict[Label, Scores] = Field(min_length=1, description="by criterion a score, or one score of each person")
    output: str | None = None
    source: str | None = None
    reference: str | None = None
    model: Label | None = None

    @property
    def item(self) -> OutputItem:
        """The output as an item for a judge. Raise ValidationError if its text is omitted."""
        return OutputItem.model_validate(self.model_dump(exclude_none=True))


class LabelledPair(LabelledItem):
    """Two outputs for one input and the output that people prefer, overall or by criteria."""

    human: Winner | None = Field(default=None, description="the output that people prefer, or tie")
    criteria: dict[Label, Winner] = Field(default={}, description="the same by each criterion of a rubric")
    output_1: str | None = None
    output_2: str | None = None
    model_1: Label | None = Field(default=None, description="who wrote output 1")
    model_2: Label | None = None

    @model_validator(mode="after")
    def _need_a_label(self) -> Self:
        if self.human is None and not self.criteria:
            raise ValueError("human is needed: the output that people prefer, 1, 2 or tie; or criteria")
        return self

    @property
    def item(self) -> PairItem:
        """The pair as an item for a judge. Raise ValidationError if a text is omitted."""
        return PairItem.model_validate(self.model_dump(exclude_none=True))

    @property
    def longer(self) -> Winner | None:
        """The longer output by characters; None if a text is omitted."""
        if self.output_1 is None or self.output_2 is None:
            return None
        difference = len(self.output_1) - len(self.output_2)
        return "tie" if difference == 0 else 1 if difference > 0 else 2

    @property
    def preferred(self) -> str | None:
        """The text of the output that people prefer, the first of a tie; None without an overall label."""
        return None if self.human is None else self.output_2 if self.human == 2 else self.output_1


class RegressionLabel(StrictModel):
    """People's finding about a pair in one dimension; a worse candidate has an impact."""

    id: Label = Field(min_length=1, description="that of the pair")
    dimension: Label = Field(min_length=1)
    human: Finding
    impact: Impact | None = None

    @property
    def severity(self) -> str | None:
        """The impact of a worse candidate, `none` for other findings; None if it was not rated."""
        return self.impact if self.human == "candidate_worse" else NONE


class SentenceLabel(LabelledItem):
    """Whether a sentence holds for an output; `id` is that of the output."""

    sentence: str = Field(min_length=1)
    human: bool = Field(strict=True, description="whether it holds")
    output: str = Field(min_length=1)


LabelLine = LabelledPair | ScoredItem | RegressionLabel | SentenceLabel


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """The labels of a file: pairs and scored outputs by id, findings by pair and dimension, sentences by output."""

    path: Path
    pairs: Mapping[str, LabelledPair] = field(default_factory=dict)
    scored: Mapping[str, ScoredItem] = field(default_factory=dict)
    regressions: Mapping[str, Mapping[str, RegressionLabel]] = field(default_factory=dict)
    sentences: Mapping[tuple[str, str], SentenceLabel] = field(default_factory=dict)

    @property
    def lines(self) -> Iterator[LabelLine]:
        """All lines, by kind."""
        yield from self.pairs.values()
        yield from self.scored.values()
        yield from self.sentences.values()
        for dimensions in self.regressions.values():
            yield from dimensions.values()


def read_labels(path: Path) -> Labels:
    """Read a file of labels. Raise JudgeError with file and line for an invalid or repeated one."""
    pairs: dict[str, LabelledPair] = {}
    scored: dict[str, ScoredItem] = {}
    regressions: dict[str, dict[str, RegressionLabel]] = {}
    sentences: dict[tuple[str, str], SentenceLabel] = {}
    for _, line in _lines(path, _label):
        if isinstance(line, ScoredItem):
            scored[line.id] = line
        elif isinstance(line, RegressionLabel):
            regressions.setdefault(line.id, {})[line.dimension] = line
        elif isinstance(line, SentenceLabel):
            sentences[line.id, line.sentence] = line
        else:
            pairs[line.id] = line
    return Labels(path=path, pairs=pairs, scored=scored, regressions=regressions, sentences=sentences)


def _label(value: Any) -> LabelLine:
    keys = value if isinstance(value, dict) else ()
    if "scores" in keys:
        return ScoredItem.model_validate(value)
    if "sentence" in keys:
        return SentenceLabel.model_validate(value)
    return (RegressionLabel if "dimension" in keys else LabelledPair).model_validate(value)


def read_verdicts(path: Path, labels: Labels) -> tuple[list[StoredVerdict], list[StoredScore]]:
    """Read the verdicts and scores of labelled items; print how many items have no label.

    Raise JudgeError with file and line for an invalid or repeated one, and if no item is labelled.
    """
    verdicts, scores, others = list[StoredVerdict](), list[StoredScore](), dict[str, int]()
    for number, line in _lines(path, _said):
        if line.id not in (labels.scored if isinstance(line, StoredScore) else labels.pairs):
            others.setdefault(line.id, number)
        elif isinstance(line, StoredScore):
            scores.append(line)
        else:
            verdicts.append(line)
    for name, number in others.items():
        if not verdicts and not scores:
            raise JudgeError(f"{path}:{number}: id '{name}' has no label in {labels.path}")
    if others:
        print(f"{counted(len(others), 'item')} of {path} without a label in {labels.path} skipped", file=sys.stderr)
    return verdicts, scores


def _said(value: Any) -> StoredScore | StoredVerdict:
    scored = isinstance(value, dict) and "score" in value
    return (StoredScore if scored else StoredVerdict).model_validate(value)


LineT = TypeVar("LineT", bound=LabelLine | StoredScore | StoredVerdict)


def _lines(path: Path, check: Callable[[Any], LineT]) -> Iterator[tuple[int, LineT]]:
    """Yield the lines of a file. Raise JudgeError for an empty file and for an invalid or repeated line."""
    first: dict[object, int] = {}
    for number, line in read_checked(path, check, JudgeError):
        if isinstance(line, StoredScore | StoredVerdict):
            where = f"by '{line.criterion}'" if isinstance(line, StoredScore) else f"in order {line.order}"
            what = f"replicate {line.replicate} of {line.judge} on '{line.id}' {where}"
        elif isinstance(line, RegressionLabel):
            what = f"a label of '{line.id}' for '{line.dimension}'"
        elif isinstance(line, SentenceLabel):
            what = f"a label of '{line.id}' for '{line.sentence}'"
        else:
            what = f"the id '{line.id}'"
        if first.setdefault((type(line), what), number) != number:
            raise JudgeError(f"{path}:{number}: {what} repeats line {first[type(line), what]}")
        yield number, line
    if not first:
        raise JudgeError(f"{path} is empty; expected a JSON object on each line")
