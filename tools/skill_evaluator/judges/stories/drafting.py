"""A sentence → a rubric that a model drafts; a domain → a family of scenarios. Both are marked as unreviewed.

A person reads the file, changes it and removes the mark.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from skill_evaluator.errors import EXIT_INCOMPLETE, ConfigError, JudgeError
from skill_evaluator.files import FrozenModel, ModelT, first_problem, storing
from skill_evaluator.identifiers import is_component_name
from skill_evaluator.judges.asking.judging import Asking, JudgeMode
from skill_evaluator.judges.asking.questions import (
    TEXT,
    TEXTS,
    Form,
    form_of,
    form_text,
    list_of,
    load_prompt,
    make_question,
    mark_of,
    one_of,
)
from skill_evaluator.judges.asking.reading import Unscored, last_whole, text_of
from skill_evaluator.judges.asking.story import Bench, JudgingSize
from skill_evaluator.judges.stories.requests import JudgingRequest, RubricDraftRequest, ScenariosDraftRequest
from skill_evaluator.library.reading import yaml_text
from skill_evaluator.library.rubrics import USUAL_METHOD, EdgeCase, Rubric, ScoredLevel, Text
from skill_evaluator.library.scenarios import SLOT, new_family, write_family
from skill_evaluator.runner.schedule import Call
from skill_evaluator.runner.session import Watch
from skill_evaluator.text import digest

QUESTION = "draft"
_HEADER = "# Drafted by a model and not reviewed. Read it, change it, then remove `unreviewed`.\n"
_MITIGATIONS = {
    "direct_scoring": ["require_justification_first", "evidence_required"],
    "pairwise_comparison": ["require_justification_first", "position_swap", "ties_allowed"],
}
_LEVEL = {
    "score": ({"type": "integer", "enum": [1, 2, 3, 4, 5]}, 1),
    "label": TEXT,
    "description": TEXT,
    "characteristics": TEXTS,
}
RUBRIC_FORM: Form = form_of(
    {
        "name": TEXT,
        "type": one_of(("objective", "subjective"), " or "),
        "description": (TEXT[0], "Whether …"),
        "levels": list_of(form_of(_LEVEL)),
        "edge_cases": list_of(form_of({"situation": TEXT, "guidance": TEXT})),
        "scoring_guidelines": TEXTS,
    }
)
SCENARIOS_FORM: Form = form_of(
    {"scenarios": list_of(form_of({"name": TEXT, "intent": TEXT, "template": (TEXT[0], f"…\n\n{SLOT}")}))}
)
_MIN_SCENARIOS, _MAX_SCENARIOS = 8, 10
_MAX_TEMPLATE = 4000  # characters
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


class DraftedCriterion(FrozenModel):
    """One criterion with five levels; code adds its id and method."""

    name: Text
    type: Literal["objective", "subjective"]
    description: Text
    levels: tuple[ScoredLevel, ...]
    edge_cases: tuple[EdgeCase, ...] = Field(min_length=1)
    scoring_guidelines: tuple[Text, ...] = ()

    @model_validator(mode="after")
    def _require_five_levels(self) -> Self:
        if sorted(level.score for level in self.levels) != [1, 2, 3, 4, 5]:
            raise ValueError("levels must have the scores 1 to 5, each once")
        return self


def _require_slot(template: str) -> str:
    if template.count(SLOT) != 1:
        raise ValueError(f"a template must hold {SLOT} once")
    return template.strip()


class DraftedScenario(FrozenModel):
    """One template; code adds its number and its file."""

    name: str = Field(pattern="[A-Za-z0-9]", max_length=60)
    intent: str = Field(min_length=1, max_length=500)
    template: Annotated[str, Field(max_length=_MAX_TEMPLATE), AfterValidator(_require_slot)]


class DraftedFamily(FrozenModel):
    """A family of scenarios."""

    scenarios: tuple[DraftedScenario, ...] = Field(min_length=_MIN_SCENARIOS)

    @model_validator(mode="after")
    def _refuse_equal_templates(self) -> Self:
        if len({scenario.template for scenario in self.scenarios}) < len(self.scenarios):
            raise ValueError("two templates are the same")
        return self


def _drafted(answer: str | Unscored, model: type[ModelT], noun: str) -> ModelT:
    """Return the draft in a model's output; raise JudgeError if it has none."""

    def check(value: Any) -> ModelT | Unscored:
        try:
            return model.model_validate(value)
        except ValidationError as problem:
            return Unscored(reason="wrong_format", detail=first_problem(problem))

    drafted = answer if isinstance(answer, Unscored) else last_whole(answer, check)
    if isinstance(drafted, Unscored):
        raise JudgeError(f"the answer holds no {noun}: {drafted.reason}: {drafted.detail}")
    return drafted


def read_draft(answer: str | Unscored, name: str) -> Rubric:
    """Return the drafted rubric, its criterion called `name`; raise JudgeError if the output has none."""
    drafted = _drafted(answer, DraftedCriterion, "rubric")
    method = USUAL_METHOD[drafted.type]
    criterion = {
        **drafted.model_dump(exclude={"levels"}),
        "id": name,
        "scale": "1-5",
        "rubric": {level.score: level.model_dump(exclude={"score"}) for level in drafted.levels},
        "method": {"primary": method, "bias_mitigations": _MITIGATIONS[method]},
    }
    try:
        return Rubric.model_validate({"unreviewed": True, "criteria": [criterion]})
    except ValidationError as problem:
        raise JudgeError(f"the answer holds no rubric: {first_problem(problem)}") from None


def name_of(text: str) -> str:
    """Return a text as a part of a file name.

    >>> name_of("Legal document analysis (US)")
    'legal-document-analysis-us'
    """
    return _NOT_IN_NAMES.sub("-", text.lower()).strip("-")


def read_scenarios(answer: str | Unscored, family: str) -> dict[str, str]:
    """Return the texts of eight to ten scenario files by name; raise JudgeError if the output has no family."""
    texts = {}
    drafted = _drafted(answer, DraftedFamily, "family of scenarios").scenarios[:_MAX_SCENARIOS]
    for number, scenario in enumerate(drafted, 1):
        name = f"{family}-{number:02}-{name_of(scenario.name)}"
        front = {"name": name, "intent": " ".join(scenario.intent.split()), "unreviewed": True}
        texts[name] = f"---\n{_HEADER}{yaml_text(front)}---\n{scenario.template}\n"
    return texts


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftedScenarios:
    """A drafted family: its name, its folder and the number of scenarios."""

    family: str
    folder: Path
    scenarios: int


class NoAnswerError(JudgeError):
    """A model that was to draft something gave no answer: one line, exit code 4."""

    exit_code = EXIT_INCOMPLETE
    label = ""


def draft_rubric(request: RubricDraftRequest, watch: Watch | None = None) -> JudgingSize | None:
    """Have a model draft a rubric and write it; for a dry run return the size.

    Raise JudgeError if the file exists, or the output has no rubric: then nothing is written.
    """
    out = request.out
    if out.exists():
        raise JudgeError(f"{out} exists already; name a new file")
    if not request.draft.strip():
        raise JudgeError("--draft is empty: say what should be judged")
    if out.suffix not in (".yaml", ".yml"):
        raise JudgeError(f"--out {out}: expected a .yaml file")
    if not is_component_name(out.stem):
        raise JudgeError(f"--out {out}: its name becomes the criterion's id, of letters, digits, `.`, `_` and `-`")
    answer = _draft(request, request.judge, "rubric", out.stem, {"wish": request.draft}, watch)
    if isinstance(answer, JudgingSize):
        return answer
    text = yaml_text(read_draft(answer, out.stem).model_dump(mode="json", exclude_defaults=True))
    with storing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        with out.open("x", encoding="utf-8") as file:  # x: another process may have created it
            file.write(f"# yaml-language-server: $schema=../schemas/rubric.json\n{_HEADER}{text}")
    return None


def draft_scenarios(request: ScenariosDraftRequest, watch: Watch | None = None) -> JudgingSize | DraftedScenarios:
    """Have a model draft a family of scenarios and write it; for a dry run return the size.

    Raise ConfigError if the family exists, and JudgeError if the output has none.
    """
    if not request.task.strip():
        raise ConfigError("--task is empty: name the domain in a few words")
    family = request.family or name_of(request.task)
    folder = new_family(request.config, family)
    answer = _draft(request, request.model, "scenarios", family, {"domain": request.task}, watch)
    if isinstance(answer, JudgingSize):
        return answer
    texts = read_scenarios(answer, family)
    write_family(folder, texts)
    return DraftedScenarios(family=family, folder=folder, scenarios=len(texts))


def _draft(
    request: RubricDraftRequest | ScenariosDraftRequest,
    model: str,
    mode: Literal["rubric", "scenarios"],
    name: str,
    texts: dict[str, str],
    watch: Watch | None,
) -> str | Unscored | JudgingSize:
    """Call a model for a draft and return its output; for a dry run return the size."""
    judging = JudgingRequest(
        judges=(model,), seed=request.seed, max_cost=request.max_cost, dry_run=request.dry_run, config=request.config
    )
    bench = Bench.of(judging, watch)
    asking = draft_asking(mode, name, texts, request.seed)
    if request.dry_run:
        return bench.size(asking)
    (part,) = bench.ask(asking).runs
    answer = part.answers.get(Call(QUESTION, 0))
    if answer is None or not answer.answered:
        failure = part.stopped or (None if answer is None else answer.failure)
        reason = "the call was not made" if failure is None else f"{failure.reason}: {failure.message}"
        raise NoAnswerError(f"{model} gave no answer: {reason}")
    return text_of(answer)


def draft_asking(mode: JudgeMode, name: str, texts: dict[str, str], seed: int) -> Asking:
    """Return the question that has a model draft a rubric or scenarios; `texts` has the wish or the domain."""
    prompt, form = load_prompt(mode), RUBRIC_FORM if mode == "rubric" else SCENARIOS_FORM
    wish = digest("".join(texts.values()))
    slots = {"form": form_text(form), "slot": SLOT}
    return Asking(
        mode=mode,
        rubric=wish,
        criteria=[name],
        prompts=[prompt],
        items={QUESTION: wish},
        questions=[make_question(QUESTION, prompt, slots, texts, form[0], mark_of(seed, wish))],
    )
