"""Items with two outputs, or with several by name → matches of two, and the questions about each in both orders."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Self

from pydantic import model_validator

from skill_evaluator.errors import JudgeError
from skill_evaluator.identifiers import Label
from skill_evaluator.judges.asking.criteria import NamedRubric, criteria_text, mitigations_of
from skill_evaluator.judges.asking.delimiting import mark_of
from skill_evaluator.judges.asking.items import JudgedItem, JudgedText
from skill_evaluator.judges.asking.prompts import JudgePrompt, load_prompt
from skill_evaluator.judges.asking.question import JudgeQuestion, make_question, object_schema
from skill_evaluator.judges.calibration.files import Order
from skill_evaluator.library.rubrics import Criterion

ORDERS: tuple[Order, Order] = (1, 2)  # in the second one output 2 stands first
PAIR = ("1", "2")


class PairItem(JudgedItem):
    """Two outputs, or several by name; `model_1`, `model_2` and `models` say who wrote them, where that is known."""

    output_1: JudgedText | None = None
    output_2: JudgedText | None = None
    outputs: dict[Label, JudgedText] = {}
    model_1: Label | None = None
    model_2: Label | None = None
    models: dict[Label, Label] = {}

    @model_validator(mode="after")
    def _refuse_other_forms(self) -> Self:
        given = [output for output in (self.output_1, self.output_2) if output]
        if not ((len(given) == 2 and not self.outputs) or (not given and len(self.outputs) > 1)):
            raise ValueError("output_1 and output_2 are needed, or outputs with two texts or more by name")
        if not all(self.outputs.values()):
            raise ValueError("an output is empty")
        return self

    @property
    def texts(self) -> Mapping[str, str]:
        """The outputs by name; those of a pair are called 1 and 2."""
        return self.outputs or dict(zip(PAIR, (self.output_1 or "", self.output_2 or ""), strict=True))

    @property
    def writers(self) -> tuple[str | None, ...]:
        """Who wrote each output, None where it is not said."""
        if self.outputs:
            return tuple(self.models.get(name) for name in self.outputs)
        return self.model_1, self.model_2


@dataclass(frozen=True, slots=True, kw_only=True)
class PairMatch:
    """Two outputs of an item by name, and the questions about them: in order, then exchanged."""

    item: PairItem
    names: tuple[str, str]
    questions: tuple[JudgeQuestion, JudgeQuestion]

    @property
    def outputs(self) -> tuple[str, str]:
        """The two texts."""
        left, right = self.names
        return self.item.texts[left], self.item.texts[right]

    @property
    def shown(self) -> tuple[str, ...]:
        """All texts that the judge sees."""
        return tuple(text for text in (*self.outputs, self.item.input) if text)

    @property
    def of_a_pair(self) -> bool:
        """Whether the item has just these two outputs."""
        return not self.item.outputs


def make_matches(
    rubric: NamedRubric, items: Sequence[PairItem], seed: int, opponents: int | None = None
) -> tuple[list[PairMatch], JudgePrompt]:
    """Return the matches of all items with the prompt; of several outputs all pairs, or each with so many opponents."""
    prompt = load_prompt("pairwise")
    instructions = {
        "criteria": criteria_text(rubric.rubric, rubric.criteria, prompt.mitigations, scored=False),
        "form": _form(rubric.criteria),
    }
    schema = preference_schema(rubric.criteria)
    matches = []
    for item in items:
        places = {name: place for place, name in enumerate(item.texts, 1)}
        mark = mark_of(seed, item.digest)
        for left, right in drawn_pairs(tuple(item.texts), opponents, f"{seed}/{item.id}"):
            between = "" if not item.outputs else f"/{places[left]}-{places[right]}"
            asked = []
            for order in ORDERS:
                first, second = (left, right) if order == ORDERS[0] else (right, left)
                texts = {"first_output": item.texts[first], "second_output": item.texts[second]}
                case_id = f"{item.id}{between}/{order}"
                asked.append(make_question(case_id, prompt, instructions, {"input": item.input, **texts}, schema, mark))
            matches.append(PairMatch(item=item, names=(left, right), questions=(asked[0], asked[1])))
    return matches, prompt


def drawn_pairs(names: Sequence[str], opponents: int | None, seed: str) -> list[tuple[str, str]]:
    """Return all pairs of some names, or so few that each name meets `opponents` (an even number) others.

    The few lie on a circle that the seed draws: each meets its neighbours, so that any two are linked.

    >>> len(drawn_pairs("abcdef", None, "")), len(drawn_pairs("abcdef", 2, ""))
    (15, 6)
    """
    if opponents is None or opponents >= len(names) - 1:
        return list(combinations(names, 2))
    if opponents < 2 or opponents % 2:
        raise JudgeError(f"--opponents must be an even number from 2, not {opponents}")
    circle = list(names)
    random.Random(seed).shuffle(circle)  # noqa: S311 (no secret)
    place = {name: index for index, name in enumerate(names)}
    drawn = {
        tuple(sorted((circle[start], circle[(start + step) % len(circle)]), key=place.__getitem__))
        for start in range(len(circle))
        for step in range(1, opponents // 2 + 1)
    }
    return [pair for pair in combinations(names, 2) if pair in drawn]


def preference_schema(criteria: Sequence[Criterion]) -> dict[str, Any]:
    """Return the schema of an answer; the order of its keys has the judge argue before it decides."""
    pieces = {"type": "array", "items": {"type": "string"}}
    return object_schema(
        {
            "criteria": object_schema(
                {
                    criterion.id: object_schema(
                        {
                            "evidence_first": pieces,
                            "evidence_second": pieces,
                            "justification": {"type": "string"},
                            "winner": {"type": "string", "enum": winners_of(criterion)},
                            "confidence": {"type": "number", "description": "from 0 to 1"},
                        }
                    )
                    for criterion in criteria
                }
            )
        }
    )


def winners_of(criterion: Criterion) -> list[str]:
    """Return the words for a winner that a criterion allows."""
    return ["first", "second", *(["tie"] if "ties_allowed" in mitigations_of(criterion) else [])]


def _form(criteria: Sequence[Criterion]) -> str:
    form = {
        criterion.id: {
            "evidence_first": ["…"],
            "evidence_second": ["…"],
            "justification": "…",
            "winner": " or ".join(winners_of(criterion)),
            "confidence": "a number from 0 to 1",
        }
        for criterion in criteria
    }
    return json.dumps({"criteria": form}, indent=2, ensure_ascii=False)
