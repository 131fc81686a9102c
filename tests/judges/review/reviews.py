"""Items of a review queue, written shortly."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skill_evaluator.judges.modes.ship_rules import dimensions_of
from skill_evaluator.judges.review.queue import (
    ReviewAnswer,
    ReviewItem,
    ReviewLabel,
    ReviewQuestion,
    ReviewQueue,
    ReviewReason,
    review_item,
)

OVERALL = ReviewQuestion(name="overall", text="Which output is better?")
SCALE = ReviewQuestion(name="tone", text="Is it friendly?", levels={1: "rude", 2: "curt", 3: "friendly"})
NOON = "2026-03-01T12:00:00Z"


def pair(name: str = "p1", **changed: Any) -> ReviewItem:
    outputs = (f"{name} opens at 8.", f"{name} opens at nine.")
    fields: dict[str, Any] = {"document": f"When does {name} open?", "outputs": outputs, **changed}
    return review_item("pairwise", name, fields.pop("outputs"), [OVERALL], **fields)


def change(name: str = "c1", reasons: Sequence[ReviewReason] = ("block",), judging: str | None = None) -> ReviewItem:
    questions = [ReviewQuestion(name=one.name, text=one.question) for one in dimensions_of(("factuality", "tone"))]
    outputs = (f"{name}: 3 items", f"{name}: 2 items")
    return review_item("regression", name, outputs, questions, reasons=tuple(reasons), judging=judging)


def scored(name: str = "s1", reasons: Sequence[ReviewReason] = ("low_confidence",)) -> ReviewItem:
    return review_item("score", name, (f"{name} says hello",), [SCALE], reasons=tuple(reasons))


def label(item: ReviewItem, reviewer: str = "ada", at: str = NOON, note: str = "", **answers: str) -> ReviewLabel:
    """A label; of a regression `worse high` is an answer with its impact."""
    given = []
    for question in item.questions:
        answer, _, impact = answers[question.name].partition(" ")
        given.append(
            ReviewAnswer.model_validate({"question": question.name, "answer": answer, "impact": impact or None})
        )
    return ReviewLabel(item=item.id, reviewer=reviewer, at=at, answers=tuple(given), note=note)


def queue_of(folder: Path, *items: ReviewItem) -> ReviewQueue:
    queue = ReviewQueue(folder=folder / ".evaluator" / "reviews")
    queue.add(items)
    return queue


def label_queue(root: Path, reviewer: str = "ada", *, note: str = "", **answers: str) -> None:
    """Label every item that has these questions; a keyword is the answer to its question."""
    queue = ReviewQueue(folder=root / ".evaluator" / "reviews")
    for item in queue.items().values():
        if {question.name for question in item.questions} == set(answers):
            queue.label(label(item, reviewer, note=note, **answers))
