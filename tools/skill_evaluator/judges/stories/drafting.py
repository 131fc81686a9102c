"""A sentence → a rubric that a model drafts; a domain → a family of scenarios. Both are marked as read by nobody yet.

A person reads the file, changes what is not theirs, and takes the mark out.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from skill_evaluator.errors import EXIT_INCOMPLETE, ConfigError, JudgeError
from skill_evaluator.files import FrozenModel, ModelT, first_problem, storing
from skill_evaluator.identifiers import is_component_name
from skill_evaluator.judges.asking.judging import Asking, JudgeMode
from skill_evaluator.judges.asking.options import JudgingRequest
from skill_evaluator.judges.asking.questions import (
    JudgePrompt,
    JudgeQuestion,
    load_prompt,
    make_question,
    mark_of,
    object_schema,
)
from skill_evaluator.judges.asking.reading import Unscored, last_whole, text_of
from skill_evaluator.judges.asking.story import Bench, JudgingSize
from skill_evaluator.judges.stories.requests import RubricDraftRequest, ScenariosDraftRequest
from skill_evaluator.library.reading import yaml_text
from skill_evaluator.library.rubrics import USUAL_METHOD, EdgeCase, Rubric, ScoredLevel, Text
from skill_evaluator.library.scenarios import SLOT, new_family, write_family
from skill_evaluator.runner.schedule import Call
from skill_evaluator.runner.session import Watch
from skill_evaluator.text import digest

QUESTION = "draft"
_HEADER = (
    "# Drafted by a model, and read by nobody yet. Read it, change what is not yours, then take `unreviewed` out.\n"
)
_MITIGATIONS = {
    "direct_scoring": ["require_justification_first", "evidence_required"],
    "pairwise_comparison": ["require_justification_first", "position_swap", "ties_allowed"],
}


class DraftedCriterion(FrozenModel):
    """What a model answers: one criterion with five levels; code adds its id and method."""

    name: Text
    type: Literal["objective", "subjective"]
    description: Text
    levels: tuple[ScoredLevel, ...]
    edge_cases: tuple[EdgeCase, ...] = Field(min_length=1)
    scoring_guidelines: tuple[Text, ...] = ()

    @model_validator(mode="after")
    def _refuse_other_scales(self) -> Self:
        if sorted(level.score for level in self.levels) != [1, 2, 3, 4, 5]:
            raise ValueError("levels must have the scores 1 to 5, each once")
        return self


def draft_question(wish: str, seed: int) -> tuple[JudgeQuestion, JudgePrompt]:
    """Return the question that has a model draft a criterion for a wish."""
    prompt = load_prompt("rubric")
    form = {
        "name": "…",
        "type": "objective or subjective",
        "description": "Whether …",
        "levels": [{"score": 1, "label": "…", "description": "…", "characteristics": ["…"]}],
        "edge_cases": [{"situation": "…", "guidance": "…"}],
        "scoring_guidelines": ["…"],
    }
    slots = {"form": json.dumps(form, indent=2, ensure_ascii=False)}
    mark = mark_of(seed, digest(wish))
    return make_question(QUESTION, prompt, slots, {"wish": wish}, _schema(), mark), prompt


def _drafted(answer: str | Unscored, model: type[ModelT], what: str) -> ModelT:
    """Return what an answer holds; raise JudgeError where it holds none."""

    def check(value: Any) -> ModelT | Unscored:
        try:
            return model.model_validate(value)
        except ValidationError as problem:
            return Unscored(reason="wrong_format", detail=first_problem(problem))

    drafted = answer if isinstance(answer, Unscored) else last_whole(answer, check)
    if isinstance(drafted, Unscored):
        raise JudgeError(f"the answer holds no {what}: {drafted.reason}: {drafted.detail}")
    return drafted


def read_draft(answer: str | Unscored, name: str) -> Rubric:
    """Return the rubric of an answer, its criterion called `name`; raise JudgeError where the answer holds none."""
    drafted = _drafted(answer, DraftedCriterion, "rubric")
    method = USUAL_METHOD[drafted.type]
    criterion: Mapping[str, Any] = {
        "name": drafted.name,
        "id": name,
        "type": drafted.type,
        "description": drafted.description,
        "scale": "1-5",
        "rubric": {level.score: level.model_dump(exclude={"score"}) for level in drafted.levels},
        "edge_cases": [case.model_dump() for case in drafted.edge_cases],
        "scoring_guidelines": drafted.scoring_guidelines,
        "method": {"primary": method, "bias_mitigations": _MITIGATIONS[method]},
    }
    try:
        return Rubric.model_validate({"unreviewed": True, "criteria": [criterion]})
    except ValidationError as problem:
        raise JudgeError(f"the answer holds no rubric: {first_problem(problem)}") from None


def _schema() -> dict[str, object]:
    text = {"type": "string"}
    texts = {"type": "array", "items": text}
    level = {"score": {"type": "integer", "enum": [1, 2, 3, 4, 5]}, "label": text, "description": text}
    return object_schema(
        {
            "name": text,
            "type": {"type": "string", "enum": ["objective", "subjective"]},
            "description": text,
            "levels": {"type": "array", "items": object_schema({**level, "characteristics": texts})},
            "edge_cases": {"type": "array", "items": object_schema({"situation": text, "guidance": text})},
            "scoring_guidelines": texts,
        }
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
    scenario = object_schema({key: {"type": "string"} for key in ("name", "intent", "template")})
    schema = object_schema({"scenarios": {"type": "array", "items": scenario}})
    return make_question(QUESTION, prompt, slots, {"domain": domain}, schema, mark), prompt


def read_scenarios(answer: str | Unscored, family: str) -> dict[str, str]:
    """Return the texts of the files by name, eight to ten; raise JudgeError where the answer holds no such family."""
    texts = {}
    for number, scenario in enumerate(_drafted(answer, DraftedFamily, "family of scenarios").scenarios[:_MOST], 1):
        name = f"{family}-{number:02}-{name_of(scenario.name)}"
        front = {"name": name, "intent": " ".join(scenario.intent.split()), "unreviewed": True}
        texts[name] = f"---\n{_HEADER}{yaml_text(front)}---\n{scenario.template}\n"
    return texts


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftedScenarios:
    """A family that was drafted: its name, the folder it lies in, and how many scenarios it has."""

    family: str
    folder: Path
    scenarios: int


class NoAnswerError(JudgeError):
    """A model that was to draft something gave no answer: shown as one line, exit code 4."""

    exit_code = EXIT_INCOMPLETE
    label = ""


def draft_rubric(request: RubricDraftRequest, watch: Watch | None = None) -> JudgingSize | None:
    """Have a model draft a rubric and write it; of a dry run return what that would take.

    Raise JudgeError where the file is there already, or for an answer that holds no rubric: then nothing is written.
    """
    out = request.out
    if out.exists():
        raise JudgeError(f"{out} exists already; name a new file")
    if out.suffix not in (".yaml", ".yml") or not request.draft.strip():
        raise JudgeError("--draft says what should be judged, and --out FILE ends in .yaml")
    if not is_component_name(out.stem):
        raise JudgeError(f"--out {out}: its name becomes the criterion's id, of letters, digits, `.`, `_` and `-`")
    question = draft_question(request.draft, request.seed)
    answer = _answer(request, request.judge, "rubric", out.stem, request.draft, question, watch)
    if isinstance(answer, JudgingSize):
        return answer
    text = yaml_text(read_draft(answer, out.stem).model_dump(mode="json", exclude_defaults=True))
    with storing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        with out.open("x", encoding="utf-8") as file:  # x: nothing is overwritten, whoever was faster
            file.write(f"# yaml-language-server: $schema=../schemas/rubric.json\n{_HEADER}{text}")
    return None


def draft_scenarios(request: ScenariosDraftRequest, watch: Watch | None = None) -> JudgingSize | DraftedScenarios:
    """Have a model draft a family of scenarios and write it; of a dry run return what that would take.

    Raise ConfigError where the family is there already, and JudgeError for an answer that holds none.
    """
    if not request.task.strip():
        raise ConfigError("--task says in a few words what the scenarios are for")
    family = request.family or name_of(request.task)
    folder = new_family(request.config, family)
    question = scenarios_question(request.task, request.seed)
    answer = _answer(request, request.model, "scenarios", family, request.task, question, watch)
    if isinstance(answer, JudgingSize):
        return answer
    texts = read_scenarios(answer, family)
    write_family(folder, texts)
    return DraftedScenarios(family=family, folder=folder, scenarios=len(texts))


def _answer(
    request: RubricDraftRequest | ScenariosDraftRequest,
    model: str,
    mode: JudgeMode,
    name: str,
    wish: str,
    asked: tuple[JudgeQuestion, JudgePrompt],
    watch: Watch | None,
) -> str | Unscored | JudgingSize:
    """Ask a model for a draft; return its answer, or of a dry run what that would take."""
    judging = JudgingRequest(
        judges=(model,), seed=request.seed, max_cost=request.max_cost, dry_run=request.dry_run, config=request.config
    )
    bench = Bench.of(judging, watch)
    question, prompt = asked
    asking = Asking(
        mode=mode,
        rubric=digest(wish),
        criteria=[name],
        prompts=[prompt],
        items={QUESTION: digest(wish)},
        questions=[question],
    )
    if request.dry_run:
        return bench.size(asking)
    (part,) = bench.ask(asking).runs
    answer = part.answers.get(Call(QUESTION, 0))
    if answer is None or not answer.answered:
        failure = part.stopped or (None if answer is None else answer.failure)
        why = "it was not asked" if failure is None else f"{failure.reason}: {failure.message}"
        raise NoAnswerError(f"{model} gave no answer: {why}")
    return text_of(answer)
