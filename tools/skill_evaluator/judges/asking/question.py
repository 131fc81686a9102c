"""One question to a judge: its instructions, the delimited texts and the form of its answer → the request of a call."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from skill_evaluator.judges.asking.delimiting import delimited
from skill_evaluator.judges.asking.prompts import JudgePrompt, fill
from skill_evaluator.providers.base import Request
from skill_evaluator.runner.prices import InputSize
from skill_evaluator.runner.prompting import estimate_input_tokens, most_input_tokens, replicate_seed
from skill_evaluator.text import digest


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeQuestion:
    """What a judge is asked once, by the id under which the journal has it: `<item>`, or `<item>/<order>`.

    The keys of `schema` are in the order in which the judge writes: findings before the verdict.
    """

    case_id: str
    system: str
    user: str
    schema: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """The digest of all that a judge reads, and of the form of its answer, the order of the keys included."""
        return digest(json.dumps([self.system, self.user, self.schema], ensure_ascii=False))

    def request(self, replicate: int, seed: int, max_output_tokens: int) -> Request:
        """Return the request of one replicate."""
        return Request(
            case_id=self.case_id,
            replicate=replicate,
            system=self.system,
            user=self.user,
            max_output_tokens=max_output_tokens,
            seed=replicate_seed(seed, self.case_id, replicate),
            schema=self.schema,
            schema_name="verdict",
        )


def make_question(
    case_id: str,
    prompt: JudgePrompt,
    instructions: Mapping[str, str],
    texts: Mapping[str, str],
    schema: Mapping[str, Any],
    mark: str,
) -> JudgeQuestion:
    """Fill a prompt: `instructions` with what is asked, `texts` with what is judged, each delimited; an empty one goes.

    The system text is the same for all items of a rubric, so that a vendor can cache it.
    """
    judged = {name: delimited(name, text, mark) if text else "" for name, text in texts.items()}
    return JudgeQuestion(
        case_id=case_id,
        system=fill(prompt.instructions, instructions),
        user=fill(prompt.texts, {"mark": mark, **judged}),
        schema=schema,
    )


def object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with exactly these keys, in this order."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def question_sizes(questions: Iterable[JudgeQuestion]) -> dict[str, InputSize]:
    """Return the size of each question's request, by its id."""
    sizes = {}
    for question in questions:
        request = question.request(replicate=0, seed=0, max_output_tokens=1)
        sizes[question.case_id] = InputSize(likely=estimate_input_tokens(request), most=most_input_tokens(request))
    return sizes
