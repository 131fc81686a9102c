"""An item as a reviewer meets it: two outputs as A and B in an order of the reviewer's own, and keys to answer with.

The terminal and the page show the same steps and mark the same differences; here the keys become a label, and a label
the keys again.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from skill_evaluator.errors import JudgeError
from skill_evaluator.identifiers import now
from skill_evaluator.judges.modes.ship_rules import Impact
from skill_evaluator.judges.people.items import ReviewItem, ReviewQuestion
from skill_evaluator.judges.people.queue import ReviewAnswer, ReviewLabel, ReviewQueue, latest, refuse_misfit

_IMPACT = "impact of the difference in"
_BETTER = {"1": "A is better", "2": "B is better", "0": "neither"}
_DEGREES: Mapping[str, Impact] = {"1": "low", "2": "medium", "3": "high"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewStep:
    """One thing to press a key for. `choices`: key → its meaning, for people.

    `only_after`: a step and keys; this step is asked only after one of those keys.
    """

    name: str
    text: str
    choices: Mapping[str, str]
    only_after: tuple[str, tuple[str, ...]] | None = None

    def is_asked(self, keys: Mapping[str, str]) -> bool:
        """Return whether it is asked after these keys."""
        return self.only_after is None or keys.get(self.only_after[0]) in self.only_after[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewScreen:
    """An item before a reviewer; `first`: the output that stands first, of a pair either, by chance."""

    item: ReviewItem
    reviewer: str
    first: Literal[1, 2] = 1

    @classmethod
    def of(cls, item: ReviewItem, reviewer: str, seed: int) -> "ReviewScreen":
        """Return what a reviewer is shown of an item, which is always the same."""
        drawn = hashlib.sha256(f"{seed}/{reviewer}/{item.id}".encode("utf-8", "surrogatepass")).digest()[0] % 2
        return cls(item=item, reviewer=reviewer, first=1 if drawn or len(item.outputs) == 1 else 2)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The outputs in the order in which they are shown."""
        return self.item.outputs if self.first == 1 else self.item.outputs[::-1]

    @property
    def steps(self) -> list[ReviewStep]:
        """What is asked, in order: each question, after a regression's how much it matters.

        A reviewer does not know which output is the baseline: the impact is asked whichever is better.
        """
        steps = []
        for question in self.item.questions:
            steps.append(ReviewStep(name=question.name, text=question.text, choices=_choices(self.item, question)))
            if self.item.kind == "regression":
                steps.append(
                    ReviewStep(
                        name=f"{_IMPACT} {question.name}",
                        text="How much does the difference matter?",
                        choices=_DEGREES,
                        only_after=(question.name, ("1", "2")),
                    )
                )
        return steps

    def label(self, keys: Mapping[str, str], at: str | None = None, note: str = "") -> ReviewLabel:
        """Return the label that keys give, step → key; raise JudgeError for a key or a step that is not there."""
        item, steps = self.item, {step.name: step for step in self.steps}
        for name, key in keys.items():
            if name not in steps or key not in steps[name].choices:
                raise JudgeError(f"key '{key}' for '{name}' is no answer to item {item.id}")
        answers = []
        for question in item.questions:
            if question.name not in keys:
                raise JudgeError(f"there is no answer to '{question.name}' of item {item.id}")
            impact = _DEGREES.get(keys.get(f"{_IMPACT} {question.name}", ""))
            answer = _meaning(item, keys[question.name], self.first)
            answers.append(
                ReviewAnswer(question=question.name, answer=answer, impact=None if answer == "same" else impact)
            )
        label = ReviewLabel(
            item=item.id, reviewer=self.reviewer, at=at or now(), first=self.first, answers=tuple(answers), note=note
        )
        refuse_misfit(label, item)
        return label

    def keys(self, label: ReviewLabel) -> dict[str, str]:
        """Return the keys for labelling."""
        keys = {}
        for answer in label.answers:
            if self.item.kind == "score":
                keys[answer.question] = _score_key(int(answer.answer))
                continue
            keys[answer.question] = next(
                key for key in _BETTER if _meaning(self.item, key, self.first) == answer.answer
            )
            if answer.impact is not None:
                degree = next(key for key, name in _DEGREES.items() if name == answer.impact)
                keys[f"{_IMPACT} {answer.question}"] = degree
        return keys


def screens_of(queue: ReviewQueue, reviewer: str, seed: int) -> list[ReviewScreen]:
    """Return what a reviewer has not labelled yet, the first queued first."""
    items = queue.items()
    counting = latest(queue.labels(items))
    return [
        ReviewScreen.of(item, reviewer, seed) for item in items.values() if reviewer not in counting.get(item.id, {})
    ]


def _choices(item: ReviewItem, question: ReviewQuestion) -> Mapping[str, str]:
    if item.kind != "score":
        return {**_BETTER, "0": "the same"} if item.kind == "regression" else _BETTER
    return {_score_key(score): f"{score} {text}".rstrip() for score, text in sorted(question.levels.items())}


def _score_key(score: int) -> str:
    return str(score % 10)  # 10 is the key 0


def _meaning(item: ReviewItem, key: str, first: int) -> str:
    """Return the answer that a key stands for; of a regression, output 1 is the baseline."""
    if item.kind == "score":
        return "10" if key == "0" else key
    if key == "0":
        return "tie" if item.kind == "pairwise" else "same"
    better = int(key) if first == 1 else 3 - int(key)
    return str(better) if item.kind == "pairwise" else "candidate_better" if better == 2 else "candidate_worse"


Piece = tuple[str, bool]
_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")
_MOST_TOKENS = 20_000  # of both; the time grows with the square, and nobody reads that


def differences(left: str, right: str) -> tuple[list[Piece], list[Piece]]:
    """Return both texts in pieces, each with whether the other text lacks it; very long texts as one common piece.

    >>> differences("It opens at 8", "It opens at nine")
    ([('It opens at ', False), ('8', True)], [('It opens at ', False), ('nine', True)])
    """
    from rapidfuzz.distance import LCSseq

    first, second = _TOKEN.findall(left), _TOKEN.findall(right)
    if len(first) + len(second) > _MOST_TOKENS:
        return [(left, False)], [(right, False)]
    own_left, own_right = [False] * len(first), [False] * len(second)
    for step in LCSseq.editops(first, second):
        if step.tag == "delete":
            own_left[step.src_pos] = True
        else:
            own_right[step.dest_pos] = True
    return _pieces(first, own_left), _pieces(second, own_right)


def _pieces(tokens: Sequence[str], own: list[bool]) -> list[Piece]:
    """Join tokens of a kind; a blank between two words of one's own is one's own, too."""
    for place in range(1, len(tokens) - 1):
        if tokens[place].isspace() and own[place - 1] and own[place + 1]:
            own[place] = True
    return [
        ("".join(token for token, _ in run), kind)
        for kind, run in groupby(zip(tokens, own, strict=True), key=lambda pair: pair[1])
    ]
