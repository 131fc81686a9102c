"""A sentence → a rubric that a model drafts; a domain → a family of scenarios. Both are marked as unreviewed."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import Field, ValidationError

from skill_evaluator.errors import EXIT_INCOMPLETE, ConfigError, JudgeError
from skill_evaluator.files import FrozenModel, first_problem, storing
from skill_evaluator.identifiers import is_component_name
from skill_evaluator.judges.prompting import questions
from skill_evaluator.judges.prompting.judging import JudgeMode, JudgeTask
from skill_evaluator.judges.prompting.questions import TEXT, TEXTS, form_of, list_of, one_of
from skill_evaluator.judges.prompting.reading import Unscored, last_whole, text_of
from skill_evaluator.judges.prompting.session import JudgeRunSize, JudgeSession
from skill_evaluator.judges.workflows.requests import JudgeRequest, RubricDraftRequest, ScenariosDraftRequest
from skill_evaluator.library.reading import yaml_text
from skill_evaluator.library.rubrics import USUAL_METHOD, Rubric, RubricLevels
from skill_evaluator.library.scenarios import SLOT, new_family, write_family
from skill_evaluator.runner.schedule import Call
from skill_evaluator.runner.session import Watch
from skill_evaluator.text import digest

DraftT = TypeVar("DraftT")
_HEADER = "# Drafted by a model and not reviewed. Read it, change it, then remove `unreviewed`.\n"
_SCORE: questions.Form = ({"type": "integer", "enum": [1, 2, 3, 4, 5]}, 1)
_LEVEL = form_of({"score": _SCORE, "label": TEXT, "description": TEXT, "characteristics": TEXTS})
_SCENARIO = form_of({"name": TEXT, "intent": TEXT, "template": (TEXT[0], f"…\n\n{SLOT}")})
_FORMS = {
    "rubric": form_of(
        {
            "name": TEXT,
            "type": one_of(("objective", "subjective"), " or "),
            "description": (TEXT[0], "Whether …"),
            "levels": list_of(_LEVEL),
            "edgeCases": list_of(form_of({"situation": TEXT, "guidance": TEXT})),
            "scoringGuidelines": TEXTS,
        }
    ),
    "scenarios": form_of({"scenarios": list_of(_SCENARIO)}),
}


class NoAnswerError(JudgeError):
    """A model that was to draft something gave no answer: one line, exit code 4."""

    exit_code = EXIT_INCOMPLETE
    label = ""


class _Scenario(FrozenModel):
    name: str = Field(pattern="[A-Za-z0-9]", max_length=60)
    intent: str = Field(min_length=1, max_length=500)
    template: str = Field(max_length=4000)


class _Family(FrozenModel):
    scenarios: tuple[_Scenario, ...] = Field(min_length=8)


def draft_rubric(request: RubricDraftRequest, watch: Watch | None = None) -> JudgeRunSize | None:
    """Have a model draft a rubric and write it; for a dry run return the size.

    Raise JudgeError if the file exists, or the output has no rubric: then nothing is written.
    """
    out = request.out
    if out.exists():
        raise JudgeError(f"{out} exists already; name a new file")
    if not request.draft.strip():
        raise JudgeError("--draft is empty: say what should be judged")
    if out.suffix not in (".yaml", ".yml") or not is_component_name(out.stem):
        raise JudgeError(f"--out {out}: expected a .yaml file named like an id: letters, digits, `.`, `_` and `-`")
    rubric = _draft(request, out.stem, lambda value: _rubric_of(value, out.stem), watch)
    if isinstance(rubric, JudgeRunSize):
        return rubric
    text = yaml_text(rubric.model_dump(mode="json", exclude_defaults=True))
    with storing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        with out.open("x", encoding="utf-8") as file:  # x: another process may have created it
            file.write(f"# yaml-language-server: $schema=../schemas/rubric.json\n{_HEADER}{text}")
    return None


def _rubric_of(value: Any, name: str) -> Rubric:
    drafted = RubricLevels.model_validate(value)
    if sorted(level.score for level in drafted.levels) != [1, 2, 3, 4, 5] or not drafted.edgeCases:
        raise ValueError("the levels 1 to 5, each once, and an edge case are needed")
    primary = USUAL_METHOD[drafted.type or "objective"]
    further = ["position_swap", "ties_allowed"] if primary == "pairwise_comparison" else ["evidence_required"]
    method = {"primary": primary, "bias_mitigations": ["require_justification_first", *further]}
    drafted = RubricLevels.model_validate({**drafted.model_dump(), "scale": "1-5", "method": method})
    return drafted.rubric(name).model_copy(update={"unreviewed": True})


def draft_scenarios(request: ScenariosDraftRequest, watch: Watch | None = None) -> JudgeRunSize | Path:
    """Have a model draft a family of eight to ten scenarios and return its folder; for a dry run return the size.

    Raise ConfigError if the family exists, and JudgeError if the output has none.
    """
    if not request.task.strip():
        raise ConfigError("--task is empty: name the domain in a few words")
    family = request.family or _file_name(request.task)
    folder = new_family(request.config, family)
    texts = _draft(request, family, lambda value: _family_of(value, family), watch)
    if isinstance(texts, JudgeRunSize):
        return texts
    write_family(folder, texts)
    return folder


def _family_of(value: Any, family: str) -> dict[str, str]:
    """Return the texts of the scenario files by name."""
    scenarios = _Family.model_validate(value).scenarios[:10]
    templates = [scenario.template.strip() for scenario in scenarios]
    if len(set(templates)) < len(templates) or any(template.count(SLOT) != 1 for template in templates):
        raise ValueError(f"templates that differ are needed, with {SLOT} once in each")
    texts = {}
    for number, (scenario, template) in enumerate(zip(scenarios, templates, strict=True), 1):
        name = f"{family}-{number:02}-{_file_name(scenario.name)}"
        front = {"name": name, "intent": " ".join(scenario.intent.split()), "unreviewed": True}
        texts[name] = f"---\n{_HEADER}{yaml_text(front)}---\n{template}\n"
    return texts


def _file_name(text: str) -> str:
    return re.sub("[^a-z0-9]+", "-", text.lower()).strip("-")


def _draft(
    request: RubricDraftRequest | ScenariosDraftRequest, name: str, read: Callable[[Any], DraftT], watch: Watch | None
) -> DraftT | JudgeRunSize:
    """Call a model and read its draft; for a dry run return the size. `read` raises ValueError for no draft."""
    model = request.judge if isinstance(request, RubricDraftRequest) else request.model
    judging = JudgeRequest(
        judges=(model,), seed=request.seed, max_cost=request.max_cost, dry_run=request.dry_run, config=request.config
    )
    judge_session, asking = JudgeSession.of(judging, watch), _asking(request, name)
    if request.dry_run:
        return judge_session.size(asking)
    (part,) = judge_session.ask(asking).runs

    def check(value: Any) -> DraftT | Unscored:
        try:
            return read(value)
        except ValueError as problem:
            detail = first_problem(problem) if isinstance(problem, ValidationError) else str(problem)
            return Unscored(reason="wrong_format", detail=detail)

    text = text_of(part.answers.get(Call("draft", 0)))
    drafted = last_whole(text, check) if isinstance(text, str) else text
    if isinstance(drafted, Unscored) and drafted.reason == "not_answered":
        reason = f"{part.stopped.reason}: {part.stopped.message}" if part.stopped else drafted.detail
        raise NoAnswerError(f"{model} gave no answer: {reason}")
    if isinstance(drafted, Unscored):
        noun = "rubric" if asking.mode == "rubric" else "family of scenarios"
        raise JudgeError(f"the answer holds no {noun}: {drafted.reason}: {drafted.detail}")
    return drafted


def _asking(request: RubricDraftRequest | ScenariosDraftRequest, name: str) -> JudgeTask:
    mode: JudgeMode = "rubric" if isinstance(request, RubricDraftRequest) else "scenarios"
    texts = {"wish": request.draft} if isinstance(request, RubricDraftRequest) else {"domain": request.task}
    prompt, form, wish = questions.load_prompt(mode), _FORMS[mode], digest("".join(texts.values()))
    question = questions.make_question(
        "draft", prompt, {"slot": SLOT}, texts, form, questions.mark_of(request.seed, wish)
    )
    items = {"draft": wish}
    return JudgeTask(mode=mode, rubric=wish, criteria=[name], prompts=[prompt], items=items, questions=[question])
