"""What people say and what judges said, one on each line of two JSON Lines files: paths in, checked values out.

People prefer one of two outputs, or score one output by criteria; judges likewise. The texts may be left out: labels
and verdicts are figures, and can be passed on where the texts cannot.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from skill_evaluator.errors import JudgeError
from skill_evaluator.files import ModelT, StrictModel, first_problem, read_lines
from skill_evaluator.identifiers import Label
from skill_evaluator.judges.asking.results import Level, StoredScore, StoredVerdict, Winner

Split = Literal["development", "held_out"]


def _as_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value if isinstance(value, tuple) else (value,)


Scores = Annotated[tuple[Level, ...], BeforeValidator(_as_tuple), Field(min_length=1)]
ItemSplit = Annotated[
    Split | None,
    Field(description="development: rubric and threshold were made with it; held_out: nobody looked at it"),
]


class LabelledItem(StrictModel):
    """What every line of the items has."""

    id: Label = Field(min_length=1)
    stratum: Label = Field(default="all", description="the kind of item; a judge is measured by kind")
    split: ItemSplit = None
    input: str | None = None


class ScoredItem(LabelledItem):
    """A line of the items: one output, and how people score it by each criterion; `model` is who wrote it."""

    scores: dict[Label, Scores] = Field(min_length=1, description="by criterion a score, or one of each person")
    output: str | None = None
    source: str | None = None
    reference: str | None = None
    model: Label | None = None


class LabelledPair(LabelledItem):
    """A line of the items: two outputs for one input, and which of them people prefer, overall or by criteria."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Labelled pairs by id, and by judge the verdicts on them: by id and order, a tuple of replicates."""

    pairs: Mapping[str, LabelledPair]
    judges: Mapping[str, Mapping[str, Mapping[int, tuple[StoredVerdict, ...]]]]


ItemT = TypeVar("ItemT", bound=LabelledItem)
SaidT = TypeVar("SaidT", StoredVerdict, StoredScore)


def of_split(items: Mapping[str, ItemT], split: Split | None) -> Mapping[str, ItemT]:
    """Return the items of one split, or all without one; raise JudgeError where there is none."""
    inside = {name: item for name, item in items.items() if split in (None, item.split)}
    if not inside:
        raise JudgeError(f'no item is in the split {split}; give items the key "split": "{split}"')
    return inside


def held_out_part(items: Mapping[str, ItemT]) -> Mapping[str, ItemT]:
    """Return the held-out items where there are others, too, else nothing."""
    inside = {name: item for name, item in items.items() if item.split == "held_out"}
    return inside if len(inside) < len(items) else {}


def by_stratum(items: Iterable[ItemT], said: Container[str]) -> dict[str, list[ItemT]]:
    """Return items by the strata in which something was said of one."""
    strata: dict[str, list[ItemT]] = {}
    for item in items:
        strata.setdefault(item.stratum, []).append(item)
    return {stratum: mine for stratum, mine in strata.items() if any(item.id in said for item in mine)}


def judged_by(pairs: Mapping[str, LabelledPair], verdicts: Iterable[StoredVerdict]) -> Judged:
    """Put verdicts beside the pairs that they are on, by judge, pair, order and replicate."""
    judges: dict[str, dict[str, dict[int, tuple[StoredVerdict, ...]]]] = {}
    for verdict in verdicts:
        if verdict.id in pairs:
            orders = judges.setdefault(verdict.judge, {}).setdefault(verdict.id, {})
            given = (*orders.get(verdict.order, ()), verdict)
            orders[verdict.order] = tuple(sorted(given, key=lambda one: one.replicate))
    return Judged(pairs=pairs, judges=judges)


def holds_scores(items: Path) -> bool:
    """Return whether a file of items has people's scores, and not pairs; raise JudgeError for one that is not JSON."""
    first = next(read_lines(items, JudgeError), (0, None))[1]
    return isinstance(first, dict) and "scores" in first


def read_pairs(path: Path) -> dict[str, LabelledPair]:
    """Read labelled pairs by id; raise JudgeError with file and line of what is wrong or repeated."""
    return _read_items(path, LabelledPair)


def read_scored(path: Path) -> dict[str, ScoredItem]:
    """Read outputs that people scored by id; raise JudgeError with file and line of what is wrong or repeated."""
    return _read_items(path, ScoredItem)


def _read_items(path: Path, model: type[ItemT]) -> dict[str, ItemT]:
    items: dict[str, ItemT] = {}
    lines: dict[object, int] = {}
    for number, item in _read(path, model):
        _refuse_repeated(lines, item.id, f"the id '{item.id}'", path, number)
        items[item.id] = item
    return items


def read_said(path: Path, model: type[SaidT], items: Mapping[str, LabelledItem], items_path: Path) -> list[SaidT]:
    """Read what judges said; raise JudgeError with file and line of what is wrong, or repeated, or of no item."""
    lines: dict[object, int] = {}
    said = []
    for number, one in _read(path, model):
        if one.id not in items:
            raise JudgeError(f"{path}:{number}: id '{one.id}' is no item of {items_path}")
        where = f"in order {one.order}" if isinstance(one, StoredVerdict) else f"by '{one.criterion}'"
        what = f"replicate {one.replicate} of {one.judge} on '{one.id}' {where}"
        _refuse_repeated(lines, (one.judge, one.id, where, one.replicate), what, path, number)
        said.append(one)
    return said


def _read(path: Path, model: type[ModelT]) -> Iterator[tuple[int, ModelT]]:
    """Yield the lines of a file with their numbers; raise JudgeError for the first that is wrong, or for none."""
    number = 0
    for number, value in read_lines(path, JudgeError):
        try:
            line = model.model_validate(value)
        except ValidationError as problem:
            raise JudgeError(f"{path}:{number}: {first_problem(problem)}") from None
        yield number, line
    if not number:
        raise JudgeError(f"{path} is empty; it needs a JSON object on each line")


def _refuse_repeated(lines: dict[object, int], key: object, what: str, path: Path, number: int) -> None:
    first = lines.setdefault(key, number)
    if first != number:
        raise JudgeError(f"{path}:{number}: {what} is on line {first} already")
