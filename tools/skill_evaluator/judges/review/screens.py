"""A review item as a reviewer sees it: outputs A and B in a random order, questions with keys, marked differences."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from skill_evaluator.errors import JudgeError
from skill_evaluator.identifiers import now
from skill_evaluator.judges.modes.ship_rules import Impact
from skill_evaluator.judges.review.items import ReviewItem, ReviewQuestion
from skill_evaluator.judges.review.queue import ReviewAnswer, ReviewLabel, allowed_answers, refuse_misfit

_IMPACT = "impact of the difference in"
_IMPACTS: Mapping[str, Impact] = {"1": "low", "2": "medium", "3": "high"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewStep:
    """One question to a reviewer. `choices`: the text of each key; `answers`: the answer of each key.

    `only_after`: a step and the keys after which this step is asked.
    """

    name: str
    text: str
    choices: Mapping[str, str]
    answers: Mapping[str, str]
    only_after: tuple[str, tuple[str, ...]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewScreen:
    """An item as one reviewer sees it. `first`: the output that is shown first, drawn at random."""

    item: ReviewItem
    reviewer: str
    first: Literal[1, 2] = 1

    @classmethod
    def of(cls, item: ReviewItem, reviewer: str, seed: int) -> "ReviewScreen":
        """Return the screen of an item, always the same for a reviewer and a seed."""
        drawn = hashlib.sha256(f"{seed}/{reviewer}/{item.id}".encode("utf-8", "surrogatepass")).digest()[0] % 2
        return cls(item=item, reviewer=reviewer, first=1 if drawn or len(item.outputs) == 1 else 2)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The outputs in the order in which they are shown."""
        return self.item.outputs if self.first == 1 else self.item.outputs[::-1]

    @property
    def steps(self) -> list[ReviewStep]:
        """The questions in order, each question of a regression followed by its impact.

        The impact is asked whichever output is better, because a reviewer does not know which one is the baseline.
        """
        steps = []
        for question in self.item.questions:
            steps.append(self._step(question))
            if self.item.kind == "regression":
                impact = ReviewStep(
                    name=f"{_IMPACT} {question.name}",
                    text="How much does the difference matter?",
                    choices=_IMPACTS,
                    answers=_IMPACTS,
                    only_after=(question.name, ("1", "2")),
                )
                steps.append(impact)
        return steps

    def _step(self, question: ReviewQuestion) -> ReviewStep:
        allowed = allowed_answers(self.item, question)
        if self.item.kind == "score":
            keys = {str(int(score) % 10): score for score in allowed}  # the key of a 10 is 0
            choices = {key: f"{score} {question.levels[int(score)]}".rstrip() for key, score in keys.items()}
            return ReviewStep(name=question.name, text=question.text, choices=choices, answers=keys)
        better = ("1", "2") if self.item.kind == "pairwise" else ("candidate_worse", "candidate_better")
        neither = "tie" if self.item.kind == "pairwise" else "same"
        if self.first == 2:
            better = better[::-1]
        choices = {"1": "A is better", "2": "B is better", "0": "neither" if neither == "tie" else "the same"}
        answers = {"1": better[0], "2": better[1], "0": neither}
        return ReviewStep(name=question.name, text=question.text, choices=choices, answers=answers)

    def label(self, keys: Mapping[str, str], at: str | None = None, note: str = "") -> ReviewLabel:
        """Return the label of the keys pressed in each step. Raise JudgeError for an unknown key or step."""
        steps = {step.name: step for step in self.steps}
        for name, key in keys.items():
            if name not in steps or key not in steps[name].answers:
                raise JudgeError(f"key '{key}' for '{name}' is no answer to item {self.item.id}")
        answers = []
        for question in self.item.questions:
            if question.name not in keys:
                raise JudgeError(f"there is no answer to '{question.name}' of item {self.item.id}")
            answer = steps[question.name].answers[keys[question.name]]
            impact = None if answer == "same" else _IMPACTS.get(keys.get(f"{_IMPACT} {question.name}", ""))
            answers.append(ReviewAnswer(question=question.name, answer=answer, impact=impact))
        label = ReviewLabel(
            item=self.item.id,
            reviewer=self.reviewer,
            at=at or now(),
            first=self.first,
            answers=tuple(answers),
            note=note,
        )
        refuse_misfit(label, self.item)
        return label

    def keys(self, label: ReviewLabel) -> dict[str, str]:
        """Return the keys that give a label."""
        answers = {answer.question: answer.answer for answer in label.answers}
        answers |= {f"{_IMPACT} {answer.question}": answer.impact for answer in label.answers if answer.impact}
        return {
            step.name: key
            for step in self.steps
            for key, answer in step.answers.items()
            if answer == answers.get(step.name)
        }


Piece = tuple[str, bool]
_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")
_MAX_TOKENS = 20_000  # of both texts; the time grows with the square


def differences(left: str, right: str) -> tuple[list[Piece], list[Piece]]:
    """Split both texts into pieces and mark the pieces that the other text lacks. Very long texts stay unmarked.

    >>> differences("It opens at 8", "It opens at nine")
    ([('It opens at ', False), ('8', True)], [('It opens at ', False), ('nine', True)])
    """
    from rapidfuzz.distance import LCSseq

    first, second = _TOKEN.findall(left), _TOKEN.findall(right)
    if len(first) + len(second) > _MAX_TOKENS:
        return [(left, False)], [(right, False)]
    marked_left, marked_right = [False] * len(first), [False] * len(second)
    for step in LCSseq.editops(first, second):
        if step.tag == "delete":
            marked_left[step.src_pos] = True
        else:
            marked_right[step.dest_pos] = True
    return _pieces(first, marked_left), _pieces(second, marked_right)


def _pieces(tokens: Sequence[str], marked: list[bool]) -> list[Piece]:
    """Join tokens with the same mark; a space between two marked words is marked, too."""
    for index in range(1, len(tokens) - 1):
        if tokens[index].isspace() and marked[index - 1] and marked[index + 1]:
            marked[index] = True
    return [
        ("".join(token for token, _ in run), kind)
        for kind, run in groupby(zip(tokens, marked, strict=True), key=lambda pair: pair[1])
    ]
