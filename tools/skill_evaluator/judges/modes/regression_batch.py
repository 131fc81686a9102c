"""The outputs of runs, to compare case by case: two runs, or a run and pinned outputs; and the pinning of outputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.modes.regression import RegressionItem
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.records.pinned import PinnedOutput, PinnedOutputs, PinReport, pinned_folder, write_pinned
from skill_evaluator.runner.journal import outcomes, read_component_manifest, slug


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedOutputs:
    """Items, and of a component its name and the two runs. `left_out`: by case, the reason why it is not compared.

    `source`: the file or the run of the outputs.
    """

    items: Mapping[str, RegressionItem]
    left_out: Mapping[str, str] = field(default_factory=dict)
    skill: str | None = None
    baseline: str | None = None
    candidate: str | None = None
    source: str | None = None
    notes: Sequence[str] = ()


NOT_APPLICABLE = "not applicable to the model"  # planned out, so that nobody need look at it
_CHANGED_FOR = "the case is not as it was for the {}"


def outputs_of_run(folder: Path) -> tuple[PinnedOutputs, dict[str, str]]:
    """Return the first output of every case of a run, and the reasons why other cases have none.

    Raise RunError if it is not a run of a component, and JudgeError for a run under a scenario or without any output.
    """
    manifest = read_component_manifest(folder)
    if manifest.scenario is not None:
        raise JudgeError(f"{folder} was run under the scenario '{manifest.scenario}': use a run of the prompt alone")
    outputs: dict[str, PinnedOutput] = {}
    missing = dict.fromkeys(manifest.cases, "not answered") | dict.fromkeys(manifest.not_applicable, NOT_APPLICABLE)
    for call, replicate in sorted(outcomes(folder).items(), key=lambda item: item[0].replicate):
        if call.case_id not in manifest.cases or call.case_id in outputs:
            continue
        if replicate.failure is not None:
            missing[call.case_id] = replicate.failure.kind
        elif replicate.completion is not None:
            outputs[call.case_id] = PinnedOutput.of(manifest.cases[call.case_id], replicate.output)
            del missing[call.case_id]
    if not outputs:
        raise JudgeError(f"{folder} has no output: {next(iter(missing.values()))}")
    return PinnedOutputs.view(manifest, outputs=outputs), missing


def pairs_of_outputs(
    component: Component,
    cases: Sequence[Case],
    baseline: PinnedOutputs,
    candidate: PinnedOutputs,
    unanswered: Mapping[str, str],
) -> tuple[dict[str, RegressionItem], dict[str, str]]:
    """Return a pair for each case of the baseline, and by case the reasons why others cannot be compared.

    The prompt of a pair is the candidate's, with the case's document. `unanswered` has the reasons why cases of the
    candidate have no output. Raise JudgeError if the component is not the candidate's.
    """
    if baseline.skill != component.name:
        raise JudgeError(
            f"the baseline {baseline.run_id} is of '{baseline.skill}', the candidate of '{component.name}'"
        )
    if candidate.digests.get("prompt") != component.digests["prompt"]:
        raise JudgeError(
            f"the prompt of '{component.name}' is not that of the candidate {candidate.run_id}; check out its commit"
        )
    by_id = {case.id: case for case in cases}
    items: dict[str, RegressionItem] = {}
    left_out: dict[str, str] = {}
    for case_id, before in baseline.outputs.items():
        case, after = by_id.get(case_id), candidate.outputs.get(case_id)
        if case is None:
            left_out[case_id] = "the case is no longer there"
        elif not case.was(before.case):
            left_out[case_id] = _CHANGED_FOR.format("baseline")
        elif after is None:
            why = unanswered.get(case_id, "not asked")
            left_out[case_id] = why if why == NOT_APPLICABLE else f"candidate: {why}"
        elif case.digest != after.case:
            left_out[case_id] = _CHANGED_FOR.format("candidate")
        elif not before.text.strip():
            left_out[case_id] = "baseline: empty"
        else:
            items[case_id] = RegressionItem(
                id=case_id,
                input=f"{component.prompt.text}\n\n{case.document}".rstrip(),
                baseline_output=before.text,
                candidate_output=after.text,
                baseline_model=baseline.model_id,
                candidate_model=candidate.model_id,
            )
    if not items:
        raise JudgeError(f"nothing to compare: {next(iter(left_out.values()))}, for each of {len(left_out)} cases")
    return items, left_out


def pin_outputs(folder: Path, component: Component, cases: Sequence[Case]) -> PinReport:
    """Pin a run's first outputs of these cases in the component, in place of those of the same model.

    Raise JudgeError for a draft, and if a case has no output or changed since the run.
    """
    if read_component_manifest(folder).draft:
        raise JudgeError(f"{folder} is a draft, which cannot be a baseline; pin a run of a recorded version")
    run, unanswered = outputs_of_run(folder)
    pinned: dict[str, PinnedOutput] = {}
    for case in cases:
        if case.id in unanswered:
            reason = unanswered[case.id]
            raise JudgeError(f"case '{case.id}' of {folder} has no answer ({reason}); name others with --case")
        if case.id in run.outputs:
            if not case.was(run.outputs[case.id].case):
                raise JudgeError(f"case '{case.id}' changed since {folder} was run; pin a newer run")
            pinned[case.id] = run.outputs[case.id]
    if not pinned:
        raise JudgeError(f"{folder} asked none of these cases")
    path = pinned_folder(component.folder) / f"{slug(run.model_id)}.json"
    write_pinned(path, run.model_copy(update={"outputs": pinned}))
    return PinReport(**run.model_dump(exclude={"outputs"}), path=path.as_posix(), cases=list(pinned))
