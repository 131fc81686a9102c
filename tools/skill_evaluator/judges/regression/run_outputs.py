"""The outputs of two runs of a component, or of one and what was pinned of another → pairs, case by case.

A pair is the first answer to a case on either side: the case is the unit, and every further pair costs two calls.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.regression.pairs import RegressionItem
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.records.pinned import PinnedOutput, PinnedOutputs
from skill_evaluator.runner.journal import Manifest, outcomes, read_component_manifest
from skill_evaluator.runner.schedule import Call, Replicate

NOT_APPLICABLE = "not applicable to the model"  # planned out, so that nobody need look at it
_CHANGED_FOR = "the case is not as it was for the {}"


def outputs_of_run(folder: Path) -> tuple[PinnedOutputs, dict[str, str]]:
    """Return the first answer of every case of a run, and by case why another has none.

    Raise RunError for what is no run of a component, JudgeError for one under a scenario, or without any answer.
    """
    manifest = read_component_manifest(folder)
    if manifest.scenario is not None:
        raise JudgeError(f"{folder} was run under the scenario '{manifest.scenario}': take a run of the prompt itself")
    return outputs_of_answers(manifest, outcomes(folder), str(folder))


def outputs_of_answers(
    manifest: Manifest, answers: Mapping[Call, Replicate], place: str
) -> tuple[PinnedOutputs, dict[str, str]]:
    """Return the same of a run's answers, wherever they lie; raise JudgeError without any."""
    made = sorted(answers.items(), key=lambda item: item[0].replicate)
    outputs: dict[str, PinnedOutput] = {}
    unanswered = dict.fromkeys(manifest.cases, "not answered")
    unanswered |= dict.fromkeys(manifest.not_applicable, NOT_APPLICABLE)
    for call, replicate in made:
        if call.case_id not in manifest.cases or call.case_id in outputs:
            continue
        if replicate.failure is not None:
            unanswered[call.case_id] = replicate.failure.kind
        elif replicate.completion is not None:
            text = replicate.completion.text
            outputs[call.case_id] = PinnedOutput.of(manifest.cases[call.case_id], text)
    unanswered = {case_id: why for case_id, why in unanswered.items() if case_id not in outputs}
    if not outputs:
        raise JudgeError(f"{place} holds no answer: {next(iter(unanswered.values()))}")
    pinned = PinnedOutputs(
        skill=manifest.skill,
        skill_version=manifest.skill_version,
        model_id=manifest.model_id,
        run_id=manifest.run_id,
        created=manifest.created,
        digests=manifest.digests,
        outputs=outputs,
    )
    return pinned, unanswered


def pairs_of_outputs(
    component: Component,
    cases: Sequence[Case],
    baseline: PinnedOutputs,
    candidate: PinnedOutputs,
    unanswered: Mapping[str, str],
) -> tuple[dict[str, RegressionItem], dict[str, str]]:
    """Return a pair for each case of the baseline, and by case why another cannot be compared.

    The prompt of a pair is the candidate's, with the case's document: that is what is demanded now. `unanswered` says
    of the candidate's cases why one has no output. Raise JudgeError where the component is not the candidate's.
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
        elif case.digest != before.case:
            left_out[case_id] = _CHANGED_FOR.format("baseline")
        elif after is None:
            why = unanswered.get(case_id, "not asked")
            left_out[case_id] = why if why == NOT_APPLICABLE else f"candidate: {why}"
        elif case.digest != after.case:
            left_out[case_id] = _CHANGED_FOR.format("candidate")
        elif not before.text.strip():
            left_out[case_id] = "baseline: empty"
        else:
            items[case_id] = RegressionItem.model_validate(
                {
                    "id": case_id,
                    "prompt": f"{component.prompt}\n\n{case.document}",
                    "baseline_output": before.text,
                    "candidate_output": after.text,
                    "baseline_model": baseline.model_id,
                    "candidate_model": candidate.model_id,
                }
            )
    if not items:
        raise JudgeError(f"nothing to compare: {next(iter(left_out.values()))}, for each of {len(left_out)} cases")
    return items, left_out
