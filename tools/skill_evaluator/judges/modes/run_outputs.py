"""The outputs to judge: from a file of items, from runs, and pinned outputs.

Pinned outputs are a model's outputs in `evals/pinned/*.json`, committed as a baseline for judges.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import Field

from skill_evaluator import identifiers as ids
from skill_evaluator.errors import JudgeError, LeaderboardError, RunError
from skill_evaluator.files import StrictModel, json_text, read_versioned, replace_text
from skill_evaluator.judges.modes.regression import RegressionItem, RegressionResults
from skill_evaluator.judges.modes.results import ModeResults
from skill_evaluator.judges.prompting.criteria import NamedRubric
from skill_evaluator.judges.prompting.questions import OutputItem, read_items, value_at
from skill_evaluator.judges.workflows.requests import RegressionRequest, ScoreRequest
from skill_evaluator.library.cases import Case, load_cases, parse_case_output
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import SafetyLimits
from skill_evaluator.library.reading import ConfinedFolder
from skill_evaluator.records.record import Record, read_record
from skill_evaluator.runner.journal import MANIFEST, Manifest, find_run, outcomes, read_component_manifest, slug
from skill_evaluator.text import digest, listed

PINNED_FOLDER = Path("evals", "pinned")  # relative to the folder of a component
PINNED_VERSION = 1
NOT_APPLICABLE = "not applicable to the model"  # skipped on purpose, so no review is required


class PinnedOutput(StrictModel):
    """One output of a model, with the digests of its case and of its text."""

    case: ids.Digest
    digest: ids.Digest
    text: str


class PinnedRun(StrictModel):
    """The run whose outputs are pinned, with its digests of prompt, schema and settings."""

    pinned_version: int = PINNED_VERSION
    skill: ids.ComponentName
    skill_version: ids.VersionText
    model_id: ids.ModelId
    run_id: ids.RunId
    created: ids.Timestamp
    digests: dict[str, ids.Digest]


class PinnedOutputs(PinnedRun):
    """The pinned outputs of one run: the first output of each selected case."""

    outputs: dict[ids.CaseId, PinnedOutput] = Field(min_length=1)


class PinReport(PinnedRun):
    """The JSON output of `judge pin`: the file it wrote, and the cases whose outputs it contains."""

    path: str
    cases: list[ids.CaseId]


def _counted(reasons: Mapping[str, str]) -> str:
    return listed([f"{count} × {reason}" for reason, count in Counter(reasons.values()).most_common()], 3)


def judged_words(results: ModeResults, components: Path) -> str:
    """Name the judged outputs, such as `receipts 1.1.0 against 1.0.0 with gpt-5`, or `items of pairs.jsonl`."""
    source = (results.judging.source or "").replace("\\", "/").rpartition("/")[2]  # a file, a run's folder or its id
    runs = [source]
    if isinstance(results, RegressionResults):
        runs = [run for run in (results.candidate, results.baseline) if run is not None]
    if results.judging.skill is None or not runs:
        return f"items of {source or 'a file'}"
    versions, models = zip(*(_run_title(run, components) for run in runs), strict=True)
    if len(set(models)) == 1:
        return f"{results.judging.skill} {' against '.join(versions)} with {models[0]}"
    titles = (f"{version} with {model}" for version, model in zip(versions, models, strict=True))
    return f"{results.judging.skill} {' against '.join(titles)}"


def _run_title(run_id: str, components: Path) -> tuple[str, str]:
    """Return the version and the model of a run. If its files are not found, its id takes the place of the version."""
    name = run_id if ids.is_file_name(run_id) else ""  # no pattern
    run: Manifest | Record | None = None
    for path in components.glob(f"*/evals/results/{name}/{MANIFEST}"):
        with suppress(RunError):
            run = read_component_manifest(path.parent)
    for path in () if run else components.glob(f"*/evals/records/{name}.json"):
        with suppress(LeaderboardError):
            run = read_record(path)
    if run is not None:
        return f"{run.skill_version}{' (draft)' * run.draft}", run.model_id
    return run_id, "unknown model"


def outputs_of_run(folder: Path) -> tuple[PinnedOutputs, dict[str, str]]:
    """Return the output of each case's first answered replicate, and the reasons for missing outputs by case id.

    Raise JudgeError if the run has no output or used a scenario.
    """
    manifest = read_component_manifest(folder)
    if manifest.scenario is not None:
        raise JudgeError(f"{folder} used the scenario '{manifest.scenario}': use a run without a scenario")
    outputs: dict[str, PinnedOutput] = {}
    reasons = dict.fromkeys(manifest.cases, "not answered") | dict.fromkeys(manifest.not_applicable, NOT_APPLICABLE)
    for call, replicate in sorted(outcomes(folder).items(), key=lambda item: item[0].replicate):
        if call.case_id not in manifest.cases or call.case_id in outputs:
            continue
        if replicate.failure is not None:
            reasons[call.case_id] = replicate.failure.kind
        elif replicate.completion is not None:
            case, text = manifest.cases[call.case_id], replicate.output
            outputs[call.case_id] = PinnedOutput(case=case, digest=digest(text), text=text)
            del reasons[call.case_id]
    if not outputs:
        raise JudgeError(f"{folder} has no output: {_counted(reasons)}")
    return PinnedOutputs.view(manifest, outputs=outputs), reasons


def read_outputs(
    request: ScoreRequest, rubric: NamedRubric, limits: SafetyLimits
) -> tuple[list[OutputItem], dict[str, str], str | None]:
    """Return the outputs, the reason for each skipped case by id, and the component's name (None with --items).

    Raise JudgeError, or the error of the run, component or cases that cannot be read.
    """
    if (request.items is None) == (request.run is None):
        raise JudgeError("use either --items FILE, or --run RUN for the outputs of a component's run")
    if request.items is not None:
        return read_items(request.items, OutputItem), {}, None
    folder = find_run(request.run or "", request.components)
    run, left_out = outputs_of_run(folder)
    component = load_component(request.components, run.skill, limits, request.fixtures)
    cases = {case.id: case for case in load_cases(component)}
    field = request.field or rubric.field_of(component.name)
    items: list[OutputItem] = []
    for case_id, output in run.outputs.items():
        case = cases.get(case_id)
        if case is None or not case.was(output.case):
            raise JudgeError(f"case '{case_id}' changed since {folder} was run; check out its commit")
        parsed = parse_case_output(component, case, output.text)
        value = value_at(parsed.value, field) if parsed.problem is None else None
        if value in (None, "", []):
            left_out[case_id] = f"no {field} in the answer" if field and parsed.problem is None else "unparseable"
        else:
            truth = value_at(case.truth, field) if case.labelled else None
            texts = {"input": case.document, "source": case.document, "reference": "" if truth is None else truth}
            item = {"id": case_id, **texts, "output": value, "model": run.model_id}
            items.append(OutputItem.model_validate(item))
    if not items:
        raise JudgeError(f"{folder} has no output to judge: {_counted(left_out)}")
    return items, left_out, component.name


def read_pairs(
    request: RegressionRequest, limits: SafetyLimits
) -> tuple[list[RegressionItem], dict[str, str], dict[str, PinnedOutputs]]:
    """Return the pairs of outputs, the reason for each skipped case by id, and the runs `baseline` and `candidate`.

    With --items there are no runs. Raise JudgeError, or the error of the run, component or cases that cannot be read.
    """
    if (request.items is None) == (request.candidate is None) or (request.items and request.baseline):
        raise JudgeError("use either --items FILE, or --candidate RUN with or without --baseline RUN")
    if request.items is not None:
        return read_items(request.items, RegressionItem), {}, {}
    candidate, unanswered = outputs_of_run(find_run(request.candidate or "", request.components))
    component = load_component(request.components, candidate.skill, limits, request.fixtures)
    if request.baseline is not None:
        baseline, baseline_reasons = outputs_of_run(find_run(request.baseline, request.components))
    else:
        baseline, baseline_reasons = pinned_of_model(component.files.folder, component.name, candidate.model_id), {}
    pairs, left_out = _pairs_of_runs(component, load_cases(component), baseline, candidate, unanswered)
    for case_id, reason in baseline_reasons.items():
        left_out[case_id] = reason if reason == NOT_APPLICABLE else f"baseline: {reason}"
    return pairs, left_out, {"baseline": baseline, "candidate": candidate}


def _pairs_of_runs(
    component: Component,
    cases: Sequence[Case],
    baseline: PinnedOutputs,
    candidate: PinnedOutputs,
    unanswered: Mapping[str, str],
) -> tuple[list[RegressionItem], dict[str, str]]:
    if baseline.skill != component.name:
        raise JudgeError(
            f"the baseline {baseline.run_id} is a run of component '{baseline.skill}', not '{component.name}'"
        )
    if candidate.digests.get("prompt") != component.digests["prompt"]:
        raise JudgeError(f"the prompt changed since the candidate {candidate.run_id}; check out its commit")
    by_id = {case.id: case for case in cases}
    pairs: list[RegressionItem] = []
    left_out: dict[str, str] = {}
    for case_id, before in baseline.outputs.items():
        case, after = by_id.get(case_id), candidate.outputs.get(case_id)
        if case is None:
            left_out[case_id] = "the case was deleted"
        elif not case.was(before.case):
            left_out[case_id] = "the case changed since the baseline was run"
        elif after is None:
            reason = unanswered.get(case_id, "not in the run")
            left_out[case_id] = reason if reason == NOT_APPLICABLE else f"candidate: {reason}"
        elif case.digest != after.case:
            left_out[case_id] = "the case changed since the candidate was run"
        elif not before.text.strip():
            left_out[case_id] = "baseline: empty"
        else:
            pair = RegressionItem(
                id=case_id,
                input=f"{component.prompt.text}\n\n{case.document}".rstrip(),
                baseline_output=before.text,
                candidate_output=after.text,
                baseline_model=baseline.model_id,
                candidate_model=candidate.model_id,
            )
            pairs.append(pair)
    if not pairs:
        raise JudgeError(f"no case of {candidate.run_id} can be compared: {_counted(left_out)}")
    return pairs, left_out


def read_pinned(component: Path, skill: str) -> dict[str, PinnedOutputs]:
    """Return the pinned outputs of a component by model id. Raise JudgeError if a file is invalid or was edited."""
    root = ConfinedFolder(component, JudgeError)
    pinned: dict[str, PinnedOutputs] = {}
    for path in sorted((component / PINNED_FOLDER).glob("*.json")):
        outputs = read_versioned(PinnedOutputs, root.inside(path), "pinned_version", PINNED_VERSION, JudgeError)
        if outputs.skill != skill:
            raise JudgeError(f"{path} holds outputs of '{outputs.skill}', not of '{skill}'; remove it")
        if outputs.model_id in pinned:
            raise JudgeError(f"{path} is a second file with outputs of {outputs.model_id}; remove one")
        edited = [case_id for case_id, output in outputs.outputs.items() if digest(output.text) != output.digest]
        if edited:
            raise JudgeError(f"{path}: the output of case '{edited[0]}' was edited; pin the run again")
        pinned[outputs.model_id] = outputs
    return pinned


def pinned_of_model(component: Path, skill: str, model_id: str) -> PinnedOutputs:
    """Return the pinned outputs of a model.

    If the model has none and exactly one other model has, return the other model's outputs. Otherwise raise JudgeError.
    """
    pinned = read_pinned(component, skill)
    if model_id in pinned:
        return pinned[model_id]
    if len(pinned) == 1:
        return next(iter(pinned.values()))
    hint = f" (only of {', '.join(pinned)})" if pinned else ""
    raise JudgeError(
        f"no outputs of '{skill}' are pinned for {model_id}{hint}: use --baseline RUN, or run `judge pin RUN` first"
    )


def pin_outputs(folder: Path, component: Component, cases: Sequence[Case]) -> PinReport:
    """Pin the outputs of a run on these cases. They replace all pinned outputs of the same model.

    Skip cases that the run did not include. Raise JudgeError if the run is a draft or included none of the cases. Raise
    JudgeError if an included case has no output or changed after the run.
    """
    if read_component_manifest(folder).draft:
        raise JudgeError(f"{folder} is a draft, which cannot be a baseline; pin a run of a recorded version")
    run, unanswered = outputs_of_run(folder)
    outputs_to_pin: dict[str, PinnedOutput] = {}
    for case in cases:
        if case.id in unanswered:
            reason = unanswered[case.id]
            raise JudgeError(f"case '{case.id}' of {folder} has no output ({reason}); name other cases with --case")
        if case.id in run.outputs:
            if not case.was(run.outputs[case.id].case):
                raise JudgeError(f"case '{case.id}' changed since {folder} was run; pin a newer run")
            outputs_to_pin[case.id] = run.outputs[case.id]
    if not outputs_to_pin:
        raise JudgeError(f"{folder} has none of the selected cases of component '{component.name}'; pin a newer run")
    path = component.files.folder / PINNED_FOLDER / f"{slug(run.model_id)}.json"
    pinned = run.model_copy(update={"outputs": outputs_to_pin})
    replace_text(path, json_text(pinned.model_dump(mode="json")))
    return PinReport(**run.model_dump(exclude={"outputs"}), path=path.as_posix(), cases=list(outputs_to_pin))
