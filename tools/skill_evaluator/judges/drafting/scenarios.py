"""A domain, in words → the question to a model; its answer → a family of scenarios that are marked unreviewed."""

import json
import re
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from skill_evaluator.errors import JudgeError
from skill_evaluator.files import FrozenModel, first_problem
from skill_evaluator.judges.asking.questions import (
    JudgePrompt,
    JudgeQuestion,
    load_prompt,
    make_question,
    mark_of,
    object_schema,
)
from skill_evaluator.judges.asking.reading import Unscored, last_whole
from skill_evaluator.library.reading import yaml_text
from skill_evaluator.library.scenarios import SLOT
from skill_evaluator.text import digest

QUESTION = "draft"
_HEADER = (
    "# Drafted by a model, and read by nobody yet. Read it, change what is not yours, then take `unreviewed` out.\n"
)
_FEWEST, _MOST = 8, 10
_LONGEST = 4000  # letters of a template
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


def _refuse_other_slots(template: str) -> str:
    if template.count(SLOT) != 1:
        raise ValueError(f"a template must hold {SLOT} once")
    return template.strip()


class DraftedScenario(FrozenModel):
    """One template as a model writes it; code adds its number and where it goes."""

    name: str = Field(pattern="[A-Za-z0-9]", max_length=60)
    intent: str = Field(min_length=1, max_length=500)
    template: Annotated[str, Field(max_length=_LONGEST), AfterValidator(_refuse_other_slots)]


class DraftedFamily(FrozenModel):
    """What a model answers."""

    scenarios: tuple[DraftedScenario, ...] = Field(min_length=_FEWEST)

    @model_validator(mode="after")
    def _refuse_equal_templates(self) -> Self:
        if len({scenario.template for scenario in self.scenarios}) < len(self.scenarios):
            raise ValueError("two templates are the same")
        return self


def name_of(text: str) -> str:
    """Return a text as a part of a file's name.

    >>> name_of("Legal document analysis (US)")
    'legal-document-analysis-us'
    """
    return _NOT_IN_NAMES.sub("-", text.lower()).strip("-")


def scenarios_question(domain: str, seed: int) -> tuple[JudgeQuestion, JudgePrompt]:
    """Return the question that has a model draft scenarios for a domain."""
    prompt = load_prompt("scenarios")
    form = {"scenarios": [{"name": "…", "intent": "…", "template": f"…\n\n{SLOT}"}]}
    slots = {"form": json.dumps(form, indent=2, ensure_ascii=False), "slot": SLOT}
    mark = mark_of(seed, digest(domain))
    return make_question(QUESTION, prompt, slots, {"domain": domain}, _schema(), mark), prompt


def read_scenarios(answer: str | Unscored, family: str) -> dict[str, str]:
    """Return the texts of the files by name, eight to ten; raise JudgeError where the answer holds no such family."""

    def check(value: Any) -> DraftedFamily | Unscored:
        try:
            return DraftedFamily.model_validate(value)
        except ValidationError as problem:
            return Unscored(reason="wrong_format", detail=first_problem(problem))

    drafted = answer if isinstance(answer, Unscored) else last_whole(answer, check)
    if isinstance(drafted, Unscored):
        raise JudgeError(f"the answer holds no family of scenarios: {drafted.reason}: {drafted.detail}")
    texts = {}
    for number, scenario in enumerate(drafted.scenarios[:_MOST], 1):
        name = f"{family}-{number:02}-{name_of(scenario.name)}"
        front = {"name": name, "intent": " ".join(scenario.intent.split()), "unreviewed": True}
        texts[name] = f"---\n{_HEADER}{yaml_text(front)}---\n{scenario.template}\n"
    return texts


def _schema() -> dict[str, object]:
    text = {"type": "string"}
    scenario = object_schema({"name": text, "intent": text, "template": text})
    return object_schema({"scenarios": {"type": "array", "items": scenario}})
