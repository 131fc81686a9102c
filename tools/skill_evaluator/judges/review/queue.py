"""The review queue in the repository: `reviews/queue.jsonl` and `reviews/labels.jsonl`, to which lines are only added.

Several people and programs may add at once: each holds the lock while it reads what is there and adds its own. A line
that is there twice, as after a merge, counts once.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ValidationError

from skill_evaluator.errors import JudgeError
from skill_evaluator.files import LinesWriter, ModelT, first_problem, locked, read_lines
from skill_evaluator.judges.review.items import ReviewItem
from skill_evaluator.judges.review.labels import ReviewLabel, latest, refuse_misfit
from skill_evaluator.text import nearest

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
        """Return all labels, the first given first; raise JudgeError for one that does not belong to these items."""
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

        What a reviewer said of an item last is not said twice, nor is a line that is there. Raise JudgeError before
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
                if label.content in lines or label.says_the_same(last):
                    continue
                lines.add(label.content)
                fresh.append(label)
                if last is None or label.at >= last.at:
                    reviewers[label.reviewer] = label
            _append(self.folder / LABELS, fresh)
        return fresh


def item_of(items: Mapping[str, ReviewItem], item_id: str) -> ReviewItem:
    """Return an item of the queue; raise JudgeError where there is none of that id."""
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
    if not path.exists():
        return
    for number, value in read_lines(path, JudgeError):
        try:
            yield number, model.model_validate(value)
        except ValidationError as problem:
            raise JudgeError(f"{path}:{number}: {first_problem(problem)}") from None
