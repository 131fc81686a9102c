"""The outputs that judges read: items of a file, a component's run, or the pairs of two runs."""

from collections.abc import Mapping
from pathlib import Path

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.asking.criteria import NamedRubric
from skill_evaluator.judges.asking.items import OutputItem, case_item, read_items, value_at
from skill_evaluator.judges.asking.judging import RESULTS, find_judging
from skill_evaluator.judges.modes.regression import RegressionItem
from skill_evaluator.judges.modes.regression_batch import (
    NOT_APPLICABLE,
    ComparedOutputs,
    outputs_of_run,
    pairs_of_outputs,
    side_notes,
)
from skill_evaluator.judges.modes.regression_results import RegressionResults, read_regressions
from skill_evaluator.judges.stories.requests import RegressionRequest, ScoreRequest
from skill_evaluator.library.cases import load_cases, parse_case_output
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import SafetyLimits
from skill_evaluator.records.pinned import pinned_of_model
from skill_evaluator.runner.journal import find_run


def read_outputs(
    request: ScoreRequest, rubric: NamedRubric, limits: SafetyLimits
) -> tuple[dict[str, OutputItem], dict[str, str], str | None]:
    """Read the outputs to score: by id the items and the reasons why cases have none, and the component of a run.

    An item of a run is the first output to a case, or its value of a field such as `budget[].amount`. Raise JudgeError,
    RunError, ComponentError or FixtureError.
    """
    if (request.items is None) == (request.run is None):
        raise JudgeError("use either --items FILE, or --run RUN for the outputs of a component's run")
    if request.items is not None:
        return read_items(request.items, OutputItem), {}, None
    folder = find_run(request.run or "", request.components)
    run, left_out = outputs_of_run(folder)
    component = load_component(request.components, run.skill, limits, request.fixtures)
    cases = {case.id: case for case in load_cases(component, request.fixtures)}
    field = request.field or rubric.field_of(component.name)
    items: dict[str, OutputItem] = {}
    for case_id, output in run.outputs.items():
        case = cases.get(case_id)
        if case is None or not case.was(output.case):
            raise JudgeError(f"case '{case_id}' changed since {folder} was run; check out its commit")
        parsed = parse_case_output(component, case, output.text)
        value = value_at(parsed.value, field) if parsed.problem is None else None
        if value in (None, "", []):
            left_out[case_id] = f"no {field} in the answer" if field and parsed.problem is None else "unparseable"
        else:
            items[case_id] = case_item(case, field, value, run.model_id)
    if not items:
        raise JudgeError(f"{folder} has no output to judge: {next(iter(left_out.values()))}")
    return items, left_out, component.name


def read_compared(request: RegressionRequest, limits: SafetyLimits) -> ComparedOutputs:
    """Read the outputs to compare; raise JudgeError, RunError, ComponentError or FixtureError."""
    if (request.items is None) == (request.candidate is None) or (request.items and request.baseline):
        raise JudgeError("use either --items FILE, or --candidate RUN with or without --baseline RUN")
    if request.items is not None:
        return ComparedOutputs(items=read_items(request.items, RegressionItem), source=str(request.items))
    candidate, unanswered = outputs_of_run(find_run(request.candidate or "", request.components))
    component = load_component(request.components, candidate.skill, limits, request.fixtures)
    missing: Mapping[str, str] = {}
    if request.baseline is None:
        baseline = pinned_of_model(component.folder, component.name, candidate.model_id)
    else:
        baseline, missing = outputs_of_run(find_run(request.baseline, request.components))
    cases = load_cases(component, request.fixtures)
    items, left_out = pairs_of_outputs(component, cases, baseline, candidate, unanswered)
    for case_id, reason in missing.items():
        left_out[case_id] = reason if reason == NOT_APPLICABLE else f"baseline: {reason}"
    return ComparedOutputs(
        items=items,
        left_out=left_out,
        skill=component.name,
        baseline=baseline.run_id,
        candidate=candidate.run_id,
        source=candidate.run_id,
        notes=side_notes(baseline, candidate),
    )


def read_earlier(against: str, place: Path) -> RegressionResults:
    """Read the results of an earlier judge run: a file, a folder or an id."""
    path = Path(against)
    if not path.is_file():
        path = find_judging(against, place, "regression") / RESULTS
        if not path.exists():
            raise JudgeError(f"--against {against}: {path} does not exist; that judge run is incomplete")
    return read_regressions(path)
