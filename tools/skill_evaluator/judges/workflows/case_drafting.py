"""`cases draft`: the prompt and output schema of a component → cases that a model drafts, marked as unreviewed.

Each call drafts one case, which is written as soon as it is returned.
"""

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from skill_evaluator.display.options import (
    ComponentsOption,
    ConfigOption,
    FixturesOption,
    MaxCost,
    argument,
    flag,
    option,
    options,
    rare,
)
from skill_evaluator.errors import ComponentError, FixtureError, NotEvaluatedError
from skill_evaluator.judges.prompting.judging import JudgeTask
from skill_evaluator.judges.prompting.questions import TEXT, Form, load_prompt, make_question, mark_of
from skill_evaluator.judges.prompting.reading import Unscored, last_valid_verdict, text_of
from skill_evaluator.judges.prompting.session import JudgeRunSize, JudgeSession
from skill_evaluator.judges.workflows.drafting import NoAnswerError
from skill_evaluator.judges.workflows.requests import JudgeRequest
from skill_evaluator.library.case_table import files_of, place_of_new, write_cases
from skill_evaluator.library.cases import Case, cases_of_table, read_cases
from skill_evaluator.library.cases import text_of as text_of_input
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import load_settings
from skill_evaluator.library.tables import CaseRows
from skill_evaluator.runner.schedule import Replicate
from skill_evaluator.runner.session import Watch
from skill_evaluator.text import canonical_json, digest, listed

_KINDS = 8  # the prompt numbers eight kinds of cases
_MAX_EXAMPLES, _MAX_EXAMPLE = 5, 2_000  # existing cases that are shown, and characters of each


@options
class CasesDraftRequest(ComponentsOption, FixturesOption, ConfigOption):
    """The cases that a model drafts."""

    skill: str = argument("The component.", metavar="COMPONENT")
    model: str = option("The model that drafts; an id of models.yaml.", ..., "-m", metavar="ID")
    count: int = option("Number of cases to draft.", 10, "-n", min=1, max=200)
    seed: int = rare("Seed of the calls.", 0)
    max_cost: MaxCost = None
    dry_run: bool = flag("Print the maximum cost; make no call.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftedCases:
    """The drafted cases by id with their files, their folder, and the number of drafts left out by reason.

    `inputs` has the inputs of all cases as JSON.
    """

    component: Component
    folder: Path
    inputs: set[str]
    cases: dict[str, Sequence[str]] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)

    def add(self, _: object, replicate: Replicate) -> None:
        """Write the case of a call, or count the reason why there is none."""
        case_id, text = replicate.call.case_id, text_of(replicate)
        read_case = partial(self._case, case_id)
        case = text if isinstance(text, Unscored) else last_valid_verdict(text, read_case)
        if isinstance(case, Unscored):
            self.left_out[case.detail or case.reason] += 1
            return
        files = files_of(case, self.component.output)
        write_cases(self.folder, {case_id: files})
        self.inputs.add(_inputs_of(case))
        self.cases[case_id] = sorted(files)

    def _case(self, case_id: str, value: Any) -> Case | Unscored:
        """Return the case of a draft, checked as every case is, or the reason why it is invalid."""
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


def draft_cases(request: CasesDraftRequest, watch: Watch | None = None) -> DraftedCases | JudgeRunSize:
    """Have a model draft cases and write the valid ones; for a dry run return the size.

    Raise NoAnswerError if there is no valid draft, and ComponentError or FixtureError if a component cannot have any.
    """
    limits = load_settings(request.config).limits
    component = load_component(request.components, request.skill, limits, request.fixtures)
    if component.program is not None:
        raise ComponentError(f"'{component.name}' is a program: there is no prompt to draft cases from")
    existing: tuple[Case, ...] = ()
    with suppress(NotEvaluatedError):
        existing = read_cases(component, request.fixtures)
    folder, inputs = place_of_new(component, request.fixtures, (), ""), set(map(_inputs_of, existing))
    drafted, task = DraftedCases(component=component, folder=folder, inputs=inputs), _task(component, existing, request)
    judge_request = JudgeRequest(
        judges=(request.model,),
        seed=request.seed,
        max_cost=request.max_cost,
        dry_run=request.dry_run,
        config=request.config,
    )
    session = JudgeSession.of(judge_request, watch)
    if request.dry_run:
        return session.size(task)
    results = session.ask(task, on_outcome=drafted.add)
    if unmade := request.count - len(drafted.cases) - drafted.left_out.total():
        drafted.left_out["; ".join(results.stopped) or "its call was not made"] = unmade
    if not drafted.cases:
        reasons = [f"{count} × {reason}" for reason, count in drafted.left_out.items()]
        raise NoAnswerError(f"{request.model} drafted no case that can be used: {listed(reasons, 3)}")
    return drafted


def _task(component: Component, existing: Sequence[Case], request: CasesDraftRequest) -> JudgeTask:
    """Return a question for each case, with ids that no case has yet."""
    taken = {case.id for case in existing}
    free = (name for number in range(1, 10_000) if (name := f"draft-{number:02}") not in taken)
    schema = "" if component.schema is None else json.dumps(component.schema, indent=2, ensure_ascii=False)
    shown = "\n".join(_inputs_of(case)[:_MAX_EXAMPLE] for case in existing[:_MAX_EXAMPLES])
    texts = {"prompt": component.prompt.text, "schema": schema, "cases": shown}
    truth = "the output text" if component.output == "text" else "the output, as JSON"
    form: Form = ({}, {"inputs": dict.fromkeys(component.prompt.inputs, TEXT[1]), "ground_truth": truth})
    prompt, whole = load_prompt("cases"), digest(canonical_json(texts))
    questions = {}
    for number, case_id in enumerate(islice(free, request.count)):
        kind, mark = {"kind": str(number % _KINDS + 1)}, mark_of(request.seed, f"{case_id}/{whole}")
        questions[case_id] = make_question(case_id, prompt, kind, texts, form, mark)
    return JudgeTask(
        mode="cases",
        rubric=whole,
        criteria=["cases"],
        prompts=[prompt],
        items=dict.fromkeys(questions, whole),
        questions=list(questions.values()),
    )


def _inputs_of(case: Case) -> str:
    return canonical_json({name: text_of_input(value) for name, value in case.inputs.items()})
