"""Labels of people and verdicts of judges, a JSON object on each line of two files: paths in, checked values out.

People prefer one of two outputs, score an output by criteria, or say of a new output whether it is worse; one file of
labels holds all of these. The texts may be left out: labels and verdicts can be passed on where the texts cannot.
"""

import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BeforeValidator, Field, model_validator

from skill_evaluator.errors import JudgeError
from skill_evaluator.files import StrictModel, read_checked
from skill_evaluator.identifiers import Label
from skill_evaluator.judges.asking.items import OutputItem
from skill_evaluator.judges.asking.results import Level, StoredScore, StoredVerdict, Winner
from skill_evaluator.judges.modes.pairwise import PairItem
from skill_evaluator.judges.modes.ship_rules import NONE, Finding, Impact
from skill_evaluator.stats import by_key
from skill_evaluator.text import counted

Split = Literal["development", "held_out"]
_AsTuple = BeforeValidator(lambda value: value if isinstance(value, list | tuple) else (value,))
Scores = Annotated[tuple[Level, ...], _AsTuple, Field(min_length=1)]
ItemSplit = Annotated[
    Split | None,
    Field(description="development: rubric and threshold were made with it; held_out: nobody looked at it"),
]


class LabelledItem(StrictModel):
    """What the label of a pair and that of an output have."""

    id: Label = Field(min_length=1)
    stratum: Label = Field(default="all", description="the kind of item; a judge is measured by kind")
    split: ItemSplit = None
    input: str | None = None


class ScoredItem(LabelledItem):
    """A line of the labels: one output, and how people score it by each criterion; `model` is who wrote it."""

    scores: dict[Label, Scores] = Field(min_length=1, description="by criterion a score, or one of each person")
    output: str | None = None
    source: str | None = None
    reference: str | None = None
    model: Label | None = None

    @property
    def item(self) -> OutputItem:
        """The output as a judge is asked about it; raise ValidationError where its text is left out."""
        return OutputItem.model_validate(self.model_dump(exclude_none=True))


class LabelledPair(LabelledItem):
    """A line of the labels: two outputs for one input, and which of them people prefer, overall or by criteria."""

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
        """The outputs as a judge is asked about them; raise ValidationError where a text is left out."""
        return PairItem.model_validate(self.model_dump(exclude_none=True))

    @property
    def longer(self) -> Winner | None:
        """The longer output by characters; None where a text is left out."""
        if self.output_1 is None or self.output_2 is None:
            return None
        difference = len(self.output_1) - len(self.output_2)
        return "tie" if difference == 0 else 1 if difference > 0 else 2

    @property
    def preferred(self) -> str | None:
        """The output that people prefer, of a tie the first; None without an overall label."""
        return None if self.human is None else self.output_2 if self.human == 2 else self.output_1


class RegressionLabel(StrictModel):
    """A line of the labels: what people find of a pair in a dimension, and of a worse one how much it matters."""

    id: Label = Field(min_length=1, description="that of the pair")
    dimension: Label = Field(min_length=1)
    human: Finding
    impact: Impact | None = None

    @property
    def severity(self) -> str | None:
        """The impact of a worse one, `none` of any other; None where it was not rated."""
        return self.impact if self.human == "candidate_worse" else NONE


class SentenceLabel(LabelledItem):
    """A line of the labels: whether a sentence holds of an output, as people read it; `id` is that of the output."""

    sentence: str = Field(min_length=1)
    human: bool = Field(strict=True, description="whether it holds")
    output: str = Field(min_length=1)


ItemT = TypeVar("ItemT", bound=LabelledItem)
LabelLine = LabelledPair | ScoredItem | RegressionLabel | SentenceLabel


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """All labels of a file: pairs and scored outputs by id, findings of regressions by pair and dimension.

    Labels of sentences are by output and sentence.
    """

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

    def of_split(self, split: Split | None) -> "Labels":
        """Return the items of one split, or all without one; raise JudgeError if it is empty."""
        if split is None:
            return self
        pairs, scored = _part(self.pairs, split), _part(self.scored, split)
        if not pairs and not scored:
            raise JudgeError(f'no item is in the split {split}; give items the key "split": "{split}"')
        return replace(self, pairs=pairs, scored=scored)

    @property
    def held_out(self) -> "Labels":
        """The held-out items of each kind that has others, too."""
        pairs, scored = _part(self.pairs, "held_out"), _part(self.scored, "held_out")
        some = len(pairs) < len(self.pairs), len(scored) < len(self.scored)
        return replace(self, pairs=pairs if some[0] else {}, scored=scored if some[1] else {})


def _part(items: Mapping[str, ItemT], split: Split) -> dict[str, ItemT]:
    return {name: item for name, item in items.items() if item.split == split}


def by_stratum(items: Iterable[ItemT], said: Container[str]) -> dict[str, list[ItemT]]:
    """Return items by the strata in which they were judged."""
    strata = by_key((item.stratum, item) for item in items)
    return {stratum: mine for stratum, mine in strata.items() if any(item.id in said for item in mine)}


def read_labels(path: Path) -> Labels:
    """Read people's labels; raise JudgeError with file and line of what is wrong or repeated."""
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
    """Read the verdicts on labelled pairs and outputs, and say of how many others there are.

    Raise JudgeError with file and line for what is repeated, and where none is of a labelled item.
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
            raise JudgeError(f"{path}:{number}: id '{name}' is no item of {labels.path}")
    if others:
        print(f"{counted(len(others), 'item')} of {path} without a label in {labels.path}: left aside", file=sys.stderr)
    return verdicts, scores


def _said(value: Any) -> StoredScore | StoredVerdict:
    scored = isinstance(value, dict) and "score" in value
    return (StoredScore if scored else StoredVerdict).model_validate(value)


LineT = TypeVar("LineT", bound=LabelLine | StoredScore | StoredVerdict)


def _lines(path: Path, check: Callable[[Any], LineT]) -> Iterator[tuple[int, LineT]]:
    """Yield the lines of a file; raise JudgeError if the file has none, a wrong one, or two about the same."""
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
            raise JudgeError(f"{path}:{number}: {what} is on line {first[type(line), what]} already")
        yield number, line
    if not first:
        raise JudgeError(f"{path} is empty; it needs a JSON object on each line")
