"""The review queue in the repository: `reviews/queue.jsonl` holds the items, `reviews/labels.jsonl` their labels.

Lines are only appended, under a lock, because several people and programs may write at once. A line that is repeated,
as after a merge, counts once.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from pydantic import BaseModel, Field

from skill_evaluator.errors import JudgeError
from skill_evaluator.files import LinesWriter, ModelT, StrictModel, locked, read_checked
from skill_evaluator.identifiers import Label, Timestamp
from skill_evaluator.judges.asking.results import Order
from skill_evaluator.judges.modes.ship_rules import Finding, Impact
from skill_evaluator.judges.review.items import ReviewId, ReviewItem, ReviewQuestion
from skill_evaluator.text import listed, nearest

PICKS = ("1", "2", "tie")
FINDINGS: tuple[str, ...] = get_args(Finding)
REVIEWS = "reviews"  # in the configuration folder
QUEUE = "queue.jsonl"
LABELS = "labels.jsonl"


class ReviewAnswer(StrictModel):
    """A reviewer's answer to one question.

    `answer`: 1, 2 or tie for a pair; candidate_better, same or candidate_worse for a regression; else the score.
    """

    question: Label = Field(min_length=1)
    answer: Label = Field(min_length=1)
    impact: Impact | None = Field(default=None, description="of a regression: how much the difference matters")


class ReviewLabel(StrictModel):
    """A line of labels.jsonl. The latest label of a reviewer for an item counts; none is ever deleted."""

    item: ReviewId = Field(description="the id of the item in the queue")
    reviewer: Label = Field(min_length=1)
    at: Timestamp
    first: Order | None = Field(default=None, description="the output that the reviewer saw first")
    answers: tuple[ReviewAnswer, ...] = Field(min_length=1)
    note: str = Field(default="", max_length=10_000, description="what made it hard: it may become an edge case")


LabelsByItem = Mapping[str, Mapping[str, ReviewLabel]]
"""The labels that count, by item id and reviewer."""


def allowed_answers(item: ReviewItem, question: ReviewQuestion) -> tuple[str, ...]:
    """Return the possible answers to a question, scores in ascending order."""
    if item.kind == "score":
        return tuple(str(score) for score in sorted(question.levels))
    return PICKS if item.kind == "pairwise" else FINDINGS


def refuse_misfit(label: ReviewLabel, item: ReviewItem) -> None:
    """Raise JudgeError unless a label answers every question of its item once, with an allowed answer."""
    name = f"the label of {item.id} by {label.reviewer}"
    questions = {question.name: question for question in item.questions}
    if sorted(answer.question for answer in label.answers) != sorted(questions):
        raise JudgeError(f"{name} must have one answer to each of {listed(list(questions), 10)}")
    for answer in label.answers:
        allowed = allowed_answers(item, questions[answer.question])
        if answer.answer not in allowed:
            choices = listed(allowed, 10)
            raise JudgeError(f"{name}: '{answer.answer}' is no answer to '{answer.question}' (one of {choices})")
        if answer.answer == "candidate_worse" and answer.impact is None:
            raise JudgeError(f"{name}: '{answer.question}' is worse and lacks its impact (low, medium, high)")
        if answer.impact is not None and (item.kind != "regression" or answer.answer == "same"):
            raise JudgeError(f"{name}: '{answer.question}' is answered '{answer.answer}', which has no impact")


def latest(labels: Iterable[ReviewLabel]) -> LabelsByItem:
    """Return the latest label of each reviewer for each item; of equal times the later line counts."""
    counting: dict[str, dict[str, ReviewLabel]] = {}
    for label in labels:
        reviewers = counting.setdefault(label.item, {})
        if label.reviewer not in reviewers or label.at >= reviewers[label.reviewer].at:
            reviewers[label.reviewer] = label
    return counting


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewQueue:
    """The queue in a folder, such as `.evaluator/reviews`. Nothing is cached between two calls."""

    folder: Path

    def items(self) -> dict[str, ReviewItem]:
        """Return the items by id, oldest first. Raise JudgeError with file and line for an invalid one."""
        items: dict[str, ReviewItem] = {}
        for _, item in _lines(self.folder / QUEUE, ReviewItem):
            items.setdefault(item.id, item)
        return items

    def labels(self, items: Mapping[str, ReviewItem]) -> list[ReviewLabel]:
        """Return all labels, oldest first. Raise JudgeError with file and line for an invalid one."""
        labels = []
        for number, label in _lines(self.folder / LABELS, ReviewLabel):
            try:
                refuse_misfit(label, item_of(items, label.item))
            except JudgeError as problem:
                raise JudgeError(f"{self.folder / LABELS}:{number}: {problem}") from None
            labels.append(label)
        return list(dict.fromkeys(labels))

    def add(self, items: Iterable[ReviewItem]) -> list[ReviewItem]:
        """Append the items that are not queued yet and return them. Raise StorageError."""
        with locked(self.folder / ".reviews.lock"):
            queued = self.items()
            fresh = {item.id: item for item in items if item.id not in queued}
            _append(self.folder / QUEUE, list(fresh.values()))
        return list(fresh.values())

    def label(self, label: ReviewLabel) -> bool:
        """Append a label and return whether it says something new.

        Raise JudgeError before anything is written if the label does not fit its item, and StorageError.
        """
        with locked(self.folder / ".reviews.lock"):
            items = self.items()
            refuse_misfit(label, item_of(items, label.item))
            last = latest(self.labels(items)).get(label.item, {}).get(label.reviewer)
            if last is not None and (set(last.answers), last.note) == (set(label.answers), label.note):
                return False
            _append(self.folder / LABELS, [label])
        return True


def queue_in(config: Path) -> ReviewQueue:
    """Return the queue of a configuration folder."""
    return ReviewQueue(folder=config / REVIEWS)


def begun_queue(config: Path) -> ReviewQueue:
    """Return the queue of a configuration folder. Raise JudgeError if nothing was ever queued."""
    queue = queue_in(config)
    if not (queue.folder / QUEUE).exists():
        raise JudgeError(f"{queue.folder / QUEUE} does not exist; queue something with `review add FILE`")
    return queue


def item_of(items: Mapping[str, ReviewItem], item_id: str) -> ReviewItem:
    """Return an item of the queue. Raise JudgeError if its id is unknown."""
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


def _lines(path: Path, model: type[ModelT]) -> Iterator[tuple[int, ModelT]]:
    """Yield the lines of a file with their numbers; a missing file has none."""
    return read_checked(path, model.model_validate, JudgeError) if path.exists() else iter(())
