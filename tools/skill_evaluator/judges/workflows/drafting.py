"""A sentence → a rubric that a model drafts; a domain → a family of scenarios. Both are marked as unreviewed."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import Field, ValidationError

from skill_evaluator.errors import EXIT_INCOMPLETE, ConfigError, JudgeError
from skill_evaluator.files import FrozenModel, first_problem, replace_text
from skill_evaluator.identifiers import is_component_name
from skill_evaluator.judges.prompting import questions
from skill_evaluator.judges.prompting.judging import JudgeMode, JudgeTask
from skill_evaluator.judges.prompting.questions import TEXT, TEXTS, Form, form_of, list_of, one_of
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
_SCORE: Form = ({"type": "integer", "enum": [1, 2, 3, 4, 5]}, 1)
_LEVEL = form_of({"score": _SCORE, "label": TEXT, "description": TEXT, "characteristics": TEXTS})
_SCENARIO = form_of({"name": TEXT, "intent": TEXT, "template": (TEXT[0], f"…\n\n{SLOT}")})
_RUBRIC = form_of(
    {
        "name": TEXT,
        "type": one_of(("objective", "subjective"), " or "),
        "description": (TEXT[0], "Whether …"),
        "levels": list_of(_LEVEL),
        "edgeCases": list_of(form_of({"situation": TEXT, "guidance": TEXT})),
        "scoringGuidelines": TEXTS,
    }
)
_SCENARIOS = form_of({"scenarios": list_of(_SCENARIO)})


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
    task = _task("rubric", out.stem, _RUBRIC, {"wish": request.draft}, request.seed)
    rubric = _draft(_judging(request, request.judge), task, lambda value: _rubric_of(value, out.stem), watch)
    if isinstance(rubric, JudgeRunSize):
        return rubric
    text = yaml_text(rubric.model_dump(mode="json", exclude_defaults=True))
    replace_text(out, f"# yaml-language-server: $schema=../schemas/rubric.json\n{_HEADER}{text}")
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
    task = _task("scenarios", family, _SCENARIOS, {"domain": request.task}, request.seed)
    texts = _draft(_judging(request, request.model), task, lambda value: _family_of(value, family), watch)
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


def _task(mode: JudgeMode, name: str, form: Form, texts: dict[str, str], seed: int) -> JudgeTask:
    prompt, wish = questions.load_prompt(mode), digest("".join(texts.values()))
    mark = questions.mark_of(seed, wish)
    asked = questions.make_question("draft", prompt, {"slot": SLOT}, texts, form, mark)
    items = {"draft": wish}
    return JudgeTask(mode=mode, rubric=wish, criteria=[name], prompts=[prompt], items=items, questions=[asked])


def _judging(request: RubricDraftRequest | ScenariosDraftRequest, model: str) -> JudgeRequest:
    shared = {name: getattr(request, name) for name in ("seed", "max_cost", "dry_run", "config")}
    return JudgeRequest(judges=(model,), **shared)


def _draft(
    judging: JudgeRequest, task: JudgeTask, read: Callable[[Any], DraftT], watch: Watch | None
) -> DraftT | JudgeRunSize:
    """Call a model and read its draft; for a dry run return the size. `read` raises ValueError for no draft."""
    session = JudgeSession.of(judging, watch)
    if judging.dry_run:
        return session.size(task)
    (part,) = session.ask(task).runs

    def check(value: Any) -> DraftT | Unscored:
        try:
            return read(value)
        except ValueError as problem:
            detail = first_problem(problem) if isinstance(problem, ValidationError) else str(problem)
            return Unscored(reason="wrong_format", detail=detail)

    text = text_of(part.answers.get(Call("draft", 0)))
    drafted = last_whole(text, check) if isinstance(text, str) else text
    if not isinstance(drafted, Unscored):
        return drafted
    if drafted.reason == "not_answered":
        reason = f"{part.stopped.reason}: {part.stopped.message}" if part.stopped else drafted.detail
        raise NoAnswerError(f"{judging.judges[0]} gave no answer: {reason}")
    noun = "rubric" if task.mode == "rubric" else "family of scenarios"
    raise JudgeError(f"the answer holds no {noun}: {drafted.reason}: {drafted.detail}")
