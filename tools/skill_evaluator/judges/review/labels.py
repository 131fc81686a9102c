"""What people say of an item: a line of labels.jsonl, checked against the item that it is about."""

from collections.abc import Iterable, Mapping
from typing import get_args

from pydantic import Field

from skill_evaluator.errors import JudgeError
from skill_evaluator.files import StrictModel
from skill_evaluator.identifiers import Label, Timestamp
from skill_evaluator.judges.asking.results import Order
from skill_evaluator.judges.modes.ship_rules import Finding, Impact
from skill_evaluator.judges.review.items import ReviewId, ReviewItem, ReviewQuestion
from skill_evaluator.text import listed

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

    def says_the_same(self, other: "ReviewLabel | None") -> bool:
        """Return whether two labels have the same answers and note, whenever they were given."""
        return other is not None and self.content[3:] == other.content[3:]


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
