"""Have a model draft a rubric, a family of scenarios, or cases; a draft is marked as unreviewed."""

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from pydantic import Field, ValidationError

from skill_evaluator.errors import (
    EXIT_INCOMPLETE,
    ComponentError,
    ConfigError,
    FixtureError,
    JudgeError,
    NotEvaluatedError,
)
from skill_evaluator.files import FrozenModel, first_problem, replace_text
from skill_evaluator.identifiers import NAME_RULE, is_component_name
from skill_evaluator.judges.prompting.judging import (
    JUDGING,
    RUNS,
    JudgeMode,
    JudgeRunSize,
    JudgeSession,
    JudgeTask,
    read_judge_run,
)
from skill_evaluator.judges.prompting.questions import Form, load_prompt, mark_of
from skill_evaluator.judges.prompting.reading import Unscored, last_valid_verdict, text_of
from skill_evaluator.judges.workflows import requests
from skill_evaluator.library.case_table import files_of, place_of_new, write_cases
from skill_evaluator.library.cases import Case, cases_of_table, read_cases
from skill_evaluator.library.cases import text_of as text_of_input
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import load_settings
from skill_evaluator.library.reading import yaml_text
from skill_evaluator.library.rubrics import USUAL_METHOD, Rubric, RubricLevels
from skill_evaluator.library.scenarios import SLOT, new_family, write_family
from skill_evaluator.library.tables import CaseRows
from skill_evaluator.runner.journal import answered_calls
from skill_evaluator.runner.schedule import Replicate
from skill_evaluator.runner.session import Watch
from skill_evaluator.text import canonical_json, digest, listed

DraftT = TypeVar("DraftT")
HEADER = "# Drafted by a model and not reviewed. Read it, change it, then remove `unreviewed`.\n"
_SCORE = Form({"type": "integer", "enum": [1, 2, 3, 4, 5]}, 1)
_LEVEL = Form.object_of(
    {"score": _SCORE, "label": Form.text(), "description": Form.text(), "characteristics": Form.list_of(Form.text())}
)
_RUBRIC = Form.object_of(
    {
        "name": Form.text(),
        "type": Form.one_of(("objective", "subjective"), " or "),
        "description": Form.text("Whether …"),
        "levels": Form.list_of(_LEVEL),
        "edgeCases": Form.list_of(Form.object_of({"situation": Form.text(), "guidance": Form.text()})),
        "scoringGuidelines": Form.list_of(Form.text()),
    }
)


class NoAnswerError(JudgeError):
    """The model gave no output, or drafted no usable case (exit code 4)."""

    exit_code = EXIT_INCOMPLETE
    label = ""


def draft_rubric(request: requests.RubricDraftRequest, watch: Watch | None = None) -> JudgeRunSize | None:
    """Have a model draft a rubric and write it to `request.out`. Return the size in a dry run, else None."""
    out = request.out
    if out.exists():
        raise JudgeError(f"{out} exists already; name a new file")
    if not request.draft.strip():
        raise JudgeError("--draft is empty: describe what should be judged")
    if out.suffix not in (".yaml", ".yml") or not is_component_name(out.stem):
        raise JudgeError(f"--out {out} must be a .yaml or .yml file; its name is the rubric's id ({NAME_RULE})")
    task = draft_task("rubric", out.stem, _RUBRIC, {"wish": request.draft}, request.seed)
    rubric = draft(request.calling(request.judge), task, lambda value: _rubric_of(value, out.stem), watch)
    if isinstance(rubric, JudgeRunSize):
        return rubric
    text = yaml_text(rubric.model_dump(mode="json", exclude_defaults=True))
    replace_text(out, f"# yaml-language-server: $schema=../schemas/rubric.json\n{HEADER}{text}")
    return None


def _rubric_of(value: Any, name: str) -> Rubric:
    drafted = RubricLevels.model_validate(value)
    if sorted(level.score for level in drafted.levels) != [1, 2, 3, 4, 5] or not drafted.edgeCases:
        raise ValueError("expected the levels 1 to 5, each once, and at least one edge case")
    primary = USUAL_METHOD[drafted.type or "objective"]
    further = ["position_swap", "ties_allowed"] if primary == "pairwise_comparison" else ["evidence_required"]
    method = {"primary": primary, "bias_mitigations": ["require_justification_first", *further]}
    drafted = RubricLevels.model_validate({**drafted.model_dump(), "scale": "1-5", "method": method})
    return drafted.rubric(name).model_copy(update={"unreviewed": True})


def draft_task(mode: JudgeMode, name: str, form: Form, texts: Mapping[str, str], seed: int) -> JudgeTask:
    """Return a task with one question, whose answer has this form. `texts` fill the slots in the mode's prompt."""
    prompt, wish = load_prompt(mode), digest("".join(texts.values()))
    question = prompt.question("draft", {"slot": SLOT}, texts, form, mark_of(seed, wish))
    items = {"draft": wish}
    return JudgeTask(mode=mode, rubric=wish, criteria=[name], prompts=[mode], items=items, questions=[question])


def draft(
    request: requests.JudgeRequest, task: JudgeTask, read: Callable[[Any], DraftT], watch: Watch | None
) -> DraftT | JudgeRunSize:
    """Call the model and return its output, parsed by `read`. In a dry run, return the size of the judge run.

    Raise JudgeError if there is no output or `read` does not accept it.
    """
    session = JudgeSession.of(request, watch)
    if request.dry_run:
        return session.size(task)
    judged = session.ask(task)
    (part,) = judged.runs

    def check(value: Any) -> DraftT | Unscored:
        try:
            return read(value)
        except ValueError as problem:
            detail = first_problem(problem) if isinstance(problem, ValidationError) else str(problem)
            return Unscored(reason="wrong_format", detail=detail)

    drafted = last_valid_verdict(part.output("draft", 0), check)
    if not isinstance(drafted, Unscored):
        return drafted
    if drafted.reason == "not_answered":
        reason = str(part.stopped) if part.stopped else drafted.detail
        raise NoAnswerError(f"{request.judges[0]} gave no output: {reason}")
    noun = "rubric" if task.mode == "rubric" else "family of scenarios"
    raise JudgeError(f"the output contains no {noun}: {drafted.reason}: {drafted.detail}")


_SCENARIO = Form.object_of({"name": Form.text(), "intent": Form.text(), "template": Form.text(f"…\n\n{SLOT}")})
_SCENARIOS = Form.object_of({"scenarios": Form.list_of(_SCENARIO)})


class _Scenario(FrozenModel):
    name: str = Field(pattern="[A-Za-z0-9]", max_length=60)
    intent: str = Field(min_length=1, max_length=500)
    template: str = Field(max_length=4000)


class _Family(FrozenModel):
    scenarios: tuple[_Scenario, ...] = Field(min_length=8)


def draft_scenarios(request: requests.ScenariosDraftRequest, watch: Watch | None = None) -> JudgeRunSize | Path:
    """Have a model draft eight to ten scenarios. Return the folder of the family, or the size in a dry run."""
    if not request.task.strip():
        raise ConfigError("--task is empty: name the domain in a few words")
    family = request.family or _file_name(request.task)
    folder = new_family(request.config, family)
    task = draft_task("scenarios", family, _SCENARIOS, {"domain": request.task}, request.seed)
    texts = draft(request.calling(request.model), task, lambda value: _family_of(value, family), watch)
    if isinstance(texts, JudgeRunSize):
        return texts
    write_family(folder, texts)
    return folder


def _family_of(value: Any, family: str) -> dict[str, str]:
    scenarios = _Family.model_validate(value).scenarios[:10]
    templates = [scenario.template.strip() for scenario in scenarios]
    if len(set(templates)) < len(templates) or any(template.count(SLOT) != 1 for template in templates):
        raise ValueError(f"expected distinct templates, each with {SLOT} exactly once")
    texts = {}
    for number, (scenario, template) in enumerate(zip(scenarios, templates, strict=True), 1):
        name = f"{family}-{number:02}-{_file_name(scenario.name)}"
        front = {"name": name, "intent": " ".join(scenario.intent.split()), "unreviewed": True}
        texts[name] = f"---\n{HEADER}{yaml_text(front)}---\n{template}\n"
    return texts


def _file_name(text: str) -> str:
    return re.sub("[^a-z0-9]+", "-", text.lower()).strip("-")


_KINDS = 8  # the prompt numbers eight kinds of cases
_MAX_EXAMPLES, _MAX_EXAMPLE = 5, 2_000  # existing cases that are shown, and characters of each


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftedCases:
    """The cases that a model drafted, and the number of skipped drafts by reason."""

    component: Component
    folder: Path
    inputs: set[str]  # the inputs of all cases, existing and drafted
    cases: dict[str, Sequence[str]] = field(default_factory=dict)  # names of files by case id
    left_out: Counter[str] = field(default_factory=Counter)

    def add(self, replicate: Replicate) -> None:
        """Write the case that a call drafted. If the draft is not usable, count the reason."""
        case_id = replicate.call.case_id
        case = last_valid_verdict(text_of(replicate), partial(self._case, case_id))
        if isinstance(case, Unscored):
            self.left_out[case.detail or case.reason] += 1
            return
        files = files_of(case, self.component.output)
        write_cases(self.folder, {case_id: files})
        self.inputs.add(_inputs_of(case))
        self.cases[case_id] = sorted(files)

    def _case(self, case_id: str, value: Any) -> Case | Unscored:
        inputs = value.get("inputs") if isinstance(value, dict) else None
        if not isinstance(inputs, dict) or value.get("ground_truth") is None:
            return Unscored(reason="wrong_format", detail="no inputs or no ground_truth")
        row = {"inputs": inputs, "ground_truth": value["ground_truth"], "unreviewed": True}
        try:
            case = cases_of_table(CaseRows(path=Path("draft"), rows=[(case_id, 1, row)]), self.component)[case_id]
        except FixtureError as problem:
            detail = str(problem).removeprefix("draft:1: ").replace(f"'{case_id}' ", "")
            return Unscored(reason="wrong_format", detail=detail)
        is_known = _inputs_of(case) in self.inputs
        return Unscored(reason="copied", detail="a case with these inputs exists") if is_known else case


def draft_cases(request: requests.CasesDraftRequest, watch: Watch | None = None) -> DraftedCases | JudgeRunSize:
    """Have a model draft cases, write them and return them. Return the size in a dry run.

    Raise ComponentError if the component is a program, and NoAnswerError if no draft is usable.
    """
    limits = load_settings(request.config).limits
    component = load_component(request.components, request.skill, limits, request.fixtures)
    if component.program is not None:
        raise ComponentError(f"component '{component.name}' is a program: there is no prompt to draft cases from")
    existing: tuple[Case, ...] = ()
    with suppress(NotEvaluatedError):
        existing = read_cases(component)
    folder, inputs = place_of_new(component, (), ""), set(map(_inputs_of, existing))
    drafted, task = DraftedCases(component=component, folder=folder, inputs=inputs), _task(component, existing, request)
    session = JudgeSession.of(request.calling(request.model), watch)
    if request.dry_run:
        return session.size(task)
    if killed := _killed_run(session, task):
        print(f"continuing {killed}: its drafts were not written", file=sys.stderr)
        session = replace(session, request=replace(session.request, judge_run=str(killed)))
    judged = session.ask(task)
    for part in judged.runs:
        for replicate in part.answers.values():
            drafted.add(replicate)
    if unmade := request.count - len(drafted.cases) - drafted.left_out.total():
        drafted.left_out["; ".join(judged.stopped) or "its call was not made"] = unmade
    if not drafted.cases:
        reasons = [f"{count} × {reason}" for reason, count in drafted.left_out.items()]
        raise NoAnswerError(f"{request.model} drafted no case that can be used: {listed(reasons, 3)}")
    return drafted


def _killed_run(session: JudgeSession, task: JudgeTask) -> Path | None:
    """Return the folder of an unfinished judge run with the same questions, or None if there is none."""
    planned = session.planned(task)
    for path in session.request.out.glob(f"*/{JUDGING}"):
        with suppress(JudgeError):
            earlier = read_judge_run(path.parent)
            answered = [len(answered_calls(folder)) for folder in (path.parent / RUNS).glob("*")]
            if earlier.mode == "cases" and 0 < sum(answered) < len(task.items) and not planned.changes_since(earlier):
                return path.parent
    return None


def _task(component: Component, existing: Sequence[Case], request: requests.CasesDraftRequest) -> JudgeTask:
    taken = {case.id for case in existing}
    free = (name for number in range(1, 10_000) if (name := f"draft-{number:02}") not in taken)
    schema = component.contract.schema
    schema_text = "" if schema is None else json.dumps(schema, indent=2, ensure_ascii=False)
    shown = "\n".join(_inputs_of(case)[:_MAX_EXAMPLE] for case in existing[:_MAX_EXAMPLES])
    texts = {"prompt": component.prompt.text, "schema": schema_text, "cases": shown}
    truth = "the output text" if component.output == "text" else "the output, as JSON"
    form = Form({}, {"inputs": dict.fromkeys(component.prompt.inputs, "…"), "ground_truth": truth})
    prompt, whole = load_prompt("cases"), digest(canonical_json(texts))
    questions = {}
    for number, case_id in enumerate(islice(free, request.count)):
        kind, mark = {"kind": str(number % _KINDS + 1)}, mark_of(request.seed, f"{case_id}/{whole}")
        questions[case_id] = prompt.question(case_id, kind, texts, form, mark)
    return JudgeTask(
        mode="cases",
        rubric=whole,
        criteria=["cases"],
        prompts=["cases"],
        items=dict.fromkeys(questions, whole),
        questions=list(questions.values()),
    )


def _inputs_of(case: Case) -> str:
    return canonical_json({name: text_of_input(value) for name, value in case.inputs.items()})
