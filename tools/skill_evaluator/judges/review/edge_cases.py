"""Reviewers' notes → edge cases to be put into a rubric: YAML that a person reads, edits and copies from."""

import json
from collections.abc import Mapping

from skill_evaluator.judges.review.items import ReviewItem
from skill_evaluator.judges.review.labels import ReviewAnswer, ReviewLabel

_HEAD = (
    "# Proposed from reviewers' notes. Edit what holds, and put it under edge_cases of the criterion in its rubric.\n"
)


def proposed_edge_cases(items: Mapping[str, ReviewItem], counting: Mapping[str, Mapping[str, ReviewLabel]]) -> str:
    """Return an edge case for each note, by criterion or dimension: the note, and what its writer and others answered.

    Empty where nobody wrote one.
    """
    proposed: dict[str, list[str]] = {}
    for item_id, given in counting.items():
        for reviewer, label in given.items():
            for answer in label.answers if label.note else ():
                others = {name: other for name, other in _answers(given, answer.question).items() if name != reviewer}
                said = [f"{reviewer}: {_words(answer)}", *(f"{name}: {_words(one)}" for name, one in others.items())]
                differ = len({one.answer for one in (answer, *others.values())}) > 1
                proposed.setdefault(answer.question, []).append(
                    f"  - situation: {_quoted(label.note)}\n"
                    f"    guidance: {_quoted('; '.join(said) + ('; decide which' if differ else ''))}"
                    f"  # item {json.dumps(items[item_id].item)}\n"
                )
    pages = (f"{_quoted(question)}:\n{''.join(cases)}" for question, cases in proposed.items())
    return _HEAD + "".join(pages) if proposed else ""


def _answers(given: Mapping[str, ReviewLabel], question: str) -> dict[str, ReviewAnswer]:
    return {name: one for name, label in given.items() for one in label.answers if one.question == question}


def _words(answer: ReviewAnswer) -> str:
    return answer.answer if answer.impact is None else f"{answer.answer} ({answer.impact})"


def _quoted(text: str) -> str:
    return json.dumps(text)  # which YAML reads, too
