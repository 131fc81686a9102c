"""The review queue in the repository: `reviews/queue.jsonl`, and `reviews/labels.jsonl` with what people say of it.

Lines are only added. Several people and programs may add at once: each holds the lock while it reads what is there and
adds its own. A line that is there twice, as after a merge, counts once. Labels go out and come back as CSV, too.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from pydantic import BaseModel, Field, ValidationError

from skill_evaluator.errors import JudgeError
from skill_evaluator.files import (
    FrozenModel,
    LinesWriter,
    ModelT,
    StrictModel,
    first_problem,
    locked,
    read_checked,
    read_text,
)
from skill_evaluator.identifiers import Label, Timestamp
from skill_evaluator.judges.asking.results import Order
from skill_evaluator.judges.modes.ship_rules import Finding, Impact
from skill_evaluator.judges.people.items import ReviewId, ReviewItem, ReviewKind, ReviewQuestion
from skill_evaluator.judges.statistics.bounded import Figure
from skill_evaluator.library.tables import separator_of
from skill_evaluator.text import listed, nearest

PICKS = ("1", "2", "tie")
FINDINGS: tuple[str, ...] = get_args(Finding)


class ReviewAnswer(StrictModel):
    """What a person answers to one question.

    `answer`: of a pair 1, 2 or tie; of a regression candidate_better, same or candidate_worse; of a score the score.
    """

    question: Label = Field(min_length=1)
    answer: Label = Field(min_length=1)
    impact: Impact | None = Field(default=None, description="of a regression: how much the difference matters")


class ReviewLabel(StrictModel):
    """A line of the labels. Of several by one reviewer for one item the latest counts; none is ever taken out."""

    item: ReviewId = Field(description="the id of the item in the queue")
    reviewer: Label = Field(min_length=1)
    at: Timestamp
    first: Order | None = Field(default=None, description="the output that stood first before the reviewer")
    answers: tuple[ReviewAnswer, ...] = Field(min_length=1)
    note: str = Field(default="", max_length=10_000, description="what made it hard: it may become an edge case")

    @property
    def content(self) -> tuple[str, str, str, frozenset[ReviewAnswer], str]:
        """What makes it the same label: everything but the order of the outputs before the reviewer."""
        return self.item, self.reviewer, self.at, frozenset(self.answers), self.note


def allowed_answers(item: ReviewItem, question: ReviewQuestion) -> tuple[str, ...]:
    """Return the answers that a question can have."""
    if item.kind == "score":
        return tuple(str(score) for score in sorted(question.levels))
    return PICKS if item.kind == "pairwise" else FINDINGS


def refuse_misfit(label: ReviewLabel, item: ReviewItem) -> None:
    """Raise JudgeError unless a label answers every question of its item, once and with an answer it can have."""
    given = [answer.question for answer in label.answers]
    twice = [name for name in dict.fromkeys(given) if given.count(name) > 1]
    missing = [question.name for question in item.questions if question.name not in given]
    if twice or missing:
        raise JudgeError(
            f"the label of {item.id} by {label.reviewer} has {'two answers' if twice else 'no answer'} to "
            f"{listed(twice or missing)}"
        )
    for answer in label.answers:
        question = item.question(answer.question)
        if question is None:
            raise JudgeError(f"item {item.id} has no question '{answer.question}'")
        allowed = allowed_answers(item, question)
        if answer.answer not in allowed:
            raise JudgeError(
                f"'{answer.answer}' is no answer to '{question.name}' of item {item.id} (one of {listed(allowed, 10)})"
            )
        if answer.answer == "candidate_worse" and answer.impact is None:
            raise JudgeError(f"'{question.name}' of item {item.id} is worse: its impact is missing (low, medium, high)")
        if answer.impact is not None and (item.kind != "regression" or answer.answer == "same"):
            raise JudgeError(f"'{question.name}' of item {item.id} is answered '{answer.answer}': that has no impact")


def latest(labels: Iterable[ReviewLabel]) -> Mapping[str, Mapping[str, ReviewLabel]]:
    """Return the labels that count: by item and reviewer the one of the latest time, of two the later line."""
    counting: dict[str, dict[str, ReviewLabel]] = {}
    for label in labels:
        reviewers = counting.setdefault(label.item, {})
        if label.reviewer not in reviewers or label.at >= reviewers[label.reviewer].at:
            reviewers[label.reviewer] = label
    return counting


REVIEWS = "reviews"  # in the configuration folder
QUEUE = "queue.jsonl"
LABELS = "labels.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewQueue:
    """The queue of a folder, such as `.evaluator/reviews`; nothing is kept in memory between two calls."""

    folder: Path

    def items(self) -> dict[str, ReviewItem]:
        """Return the items by id, the first queued first; raise JudgeError with file and line of what is wrong."""
        items: dict[str, ReviewItem] = {}
        for _, item in _read(self.folder / QUEUE, ReviewItem):
            items.setdefault(item.id, item)
        return items

    def labels(self, items: Mapping[str, ReviewItem]) -> list[ReviewLabel]:
        """Return all labels, oldest first; raise JudgeError for a label of no item here."""
        labels = []
        for number, label in _read(self.folder / LABELS, ReviewLabel):
            try:
                refuse_misfit(label, item_of(items, label.item))
            except JudgeError as problem:
                raise JudgeError(f"{self.folder / LABELS}:{number}: {problem}") from None
            labels.append(label)
        return list(dict.fromkeys(labels))

    def add(self, items: Iterable[ReviewItem]) -> list[ReviewItem]:
        """Queue what is not there yet, and return that; raise StorageError."""
        with locked(self.folder / ".reviews.lock"):
            there = self.items()
            fresh = {item.id: item for item in items if item.id not in there}
            _append(self.folder / QUEUE, list(fresh.values()))
        return list(fresh.values())

    def label(self, labels: Iterable[ReviewLabel]) -> list[ReviewLabel]:
        """Add what people say, and return what was not there yet.

        A reviewer's last answer to an item is not repeated, nor is a line that is there. Raise JudgeError before
        anything is written where a label does not fit its item, and StorageError.
        """
        with locked(self.folder / ".reviews.lock"):
            items = self.items()
            there = self.labels(items)
            lines = {label.content for label in there}
            counting = {item: dict(reviewers) for item, reviewers in latest(there).items()}
            fresh = []
            for label in labels:
                refuse_misfit(label, item_of(items, label.item))
                reviewers = counting.setdefault(label.item, {})
                last = reviewers.get(label.reviewer)
                if label.content in lines or (last and label.content[3:] == last.content[3:]):  # the same but its time
                    continue
                lines.add(label.content)
                fresh.append(label)
                if last is None or label.at >= last.at:
                    reviewers[label.reviewer] = label
            _append(self.folder / LABELS, fresh)
        return fresh


def queue_in(config: Path) -> ReviewQueue:
    """Return the queue of a configuration folder."""
    return ReviewQueue(folder=config / REVIEWS)


def begun_queue(config: Path) -> ReviewQueue:
    """Return the queue of a configuration folder; raise JudgeError where nothing was ever queued."""
    queue = queue_in(config)
    if not (queue.folder / QUEUE).exists():
        raise JudgeError(f"{queue.folder / QUEUE} does not exist; queue something with `review add FILE`")
    return queue


def item_of(items: Mapping[str, ReviewItem], item_id: str) -> ReviewItem:
    """Return an item of the queue; raise JudgeError if its id is unknown."""
    if item_id not in items:
        raise JudgeError(f"the queue has no item '{item_id}' {nearest(item_id, items)}")
    return items[item_id]


def _append(path: Path, lines: Sequence[BaseModel]) -> None:
    if lines:
        writer = LinesWriter(path)
        try:
            for line in lines:
                writer.append(line.model_dump(mode="json", exclude_defaults=True))
        finally:
            writer.close()


def _read(path: Path, model: type[ModelT]) -> Iterator[tuple[int, ModelT]]:
    """Yield the lines of a file with their numbers; a file that is not there has none."""
    return read_checked(path, model.model_validate, JudgeError) if path.exists() else iter(())


COLUMNS = ("item", "reviewer", "at", "first", "question", "answer", "impact", "note", "source")
_REQUIRED = ("item", "reviewer", "question", "answer")
_FORMULA = ("=", "+", "-", "@", "'", "\t")  # what a spreadsheet would compute; an apostrophe before it is not shown


def labels_table(items: Mapping[str, ReviewItem], labels: Iterable[ReviewLabel]) -> str:
    """Return labels as CSV; `source` is the item's id in its judging, for people to read."""
    page = io.StringIO()
    rows = csv.writer(page, lineterminator="\n")
    rows.writerow(COLUMNS)
    for label in labels:
        who = (label.item, label.reviewer, label.at, label.first or "")
        for place, answer in enumerate(label.answers):
            said = (answer.question, answer.answer, answer.impact or "", label.note if place == 0 else "")
            rows.writerow(_inert(str(cell)) for cell in (*who, *said, items[label.item].item))
    return page.getvalue()


def read_labels_table(path: Path, items: Mapping[str, ReviewItem], moment: str) -> list[ReviewLabel]:
    """Read labels from CSV, with commas, semicolons or tabs; raise JudgeError with the line of what is wrong.

    Rows with the same item, reviewer and time are one label. Where the time is empty it is this `moment`.
    """
    labels = []
    for (item, reviewer, at), rows in _grouped(path).items():
        line, first = rows[0]
        answers = [
            {"question": row["question"], "answer": row["answer"], "impact": row.get("impact") or None}
            for _, row in rows
        ]
        try:
            order = {"1": 1, "2": 2}.get(first.get("first", ""))
            note = next((row["note"] for _, row in rows if row.get("note")), "")
            who = {"item": item, "reviewer": reviewer, "at": at or moment, "first": order}
            label = ReviewLabel.model_validate({**who, "answers": answers, "note": note})
            refuse_misfit(label, item_of(items, item))
        except ValidationError as problem:
            raise JudgeError(f"{path}:{line}: {first_problem(problem)}") from None
        except JudgeError as problem:
            raise JudgeError(f"{path}:{line}: {problem}") from None
        labels.append(label)
    return labels


def _grouped(path: Path) -> dict[tuple[str, str, str], list[tuple[int, dict[str, str]]]]:
    """Return the rows of each label with their lines."""
    groups: dict[tuple[str, str, str], list[tuple[int, dict[str, str]]]] = {}
    for line, row in _csv_rows(path):
        for name in _REQUIRED:
            if not row[name]:
                raise JudgeError(f"{path}:{line}: the column {name} is empty")
        groups.setdefault((row["item"], row["reviewer"], row.get("at", "")), []).append((line, row))
    return groups


def _csv_rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows below the head with the line on which each begins."""
    text = read_text(path, JudgeError)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator_of(text), strict=True)
    try:
        head = next(reader, [])
        _refuse_columns(path, head)
        before = reader.line_num
        for cells in reader:
            line, before = before + 1, reader.line_num
            if not any(cells):
                continue
            if len(cells) != len(head):
                raise JudgeError(f"{path}:{line}: {len(cells)} cells where the head has {len(head)} columns")
            row = dict(zip(head, cells, strict=True))
            yield line, {name: _bare(cell if name == "note" else cell.strip()) for name, cell in row.items()}
    except csv.Error as problem:
        raise JudgeError(f"{path}:{reader.line_num}: not CSV: {problem}") from None


def _refuse_columns(path: Path, head: Sequence[str]) -> None:
    for name in _REQUIRED:
        if name not in head:
            raise JudgeError(f"{path}:1: the column {name} is missing; the columns are {', '.join(COLUMNS)}")
    for name in head:
        if name not in COLUMNS:
            raise JudgeError(f"{path}:1: unknown column '{name}' {nearest(name, COLUMNS)}")
        if head.count(name) > 1:
            raise JudgeError(f"{path}:1: the column {name} is there twice")


def _inert(cell: str) -> str:
    """Return a cell that no spreadsheet takes for a formula.

    >>> _inert("=1+1"), _bare("'=1+1"), _inert("fine")
    ("'=1+1", '=1+1', 'fine')
    """
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def _bare(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """What came to a queue: how many items were new."""

    folder: Path
    fresh: int
    given: int


class ReviewerAgreement(FrozenModel):
    """Two reviewers on one question. `agreed` of `n` items; κ is weighted by distance for scores."""

    question: str
    kind: ReviewKind
    reviewers: tuple[str, str]
    n: int
    agreed: int
    kappa: Figure


class DisputedItem(FrozenModel):
    """An item of which reviewers say different things: a rubric may need an edge case for it. Notes by reviewer."""

    item: str
    id: str
    question: str
    answers: dict[str, str]
    notes: dict[str, str]


class ReviewStatus(FrozenModel):
    """How far a queue is: items by kind and reason, items without a label, labels by reviewer, and agreement.

    `open`: the items without a label by reason; `oldest`: when the judging began that left the oldest of them, where
    that is known. `newest_label`: the time of the latest label.
    """

    items: int
    unlabelled: int
    reasons: dict[str, int]
    open: dict[str, int]
    oldest: Timestamp | None
    newest_label: Timestamp | None
    reviewers: dict[str, int]
    agreement: list[ReviewerAgreement]
    disputed: list[DisputedItem]
