"""`score` and `explain`: score the outputs of a saved run again, or show them with the ground truth, without a call."""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import RunError
from skill_evaluator.evaluation.judged import judged_items, read_judged_run, scores_of
from skill_evaluator.judges.modes.sentences import read_sentence_answers
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import load_settings
from skill_evaluator.library.scenarios import apply_scenario
from skill_evaluator.providers import read_configuration, with_program
from skill_evaluator.records.record import write_record
from skill_evaluator.runner.journal import (
    ANSWERS,
    JUDGE,
    RECORD,
    Manifest,
    changes_since,
    edited_since,
    find_run,
    outcomes,
    read_component_manifest,
    saved_run,
)
from skill_evaluator.runner.schedule import Call, schedule_calls
from skill_evaluator.scoring.answer_views import CaseView, case_view, only_field, read_answers
from skill_evaluator.scoring.recording import Finished, Recorder, commits_of
from skill_evaluator.scoring.scorer import Scorer, open_scores
from skill_evaluator.text import nearest

_INDEX = re.compile(r"\[[^\]]*\]")


def score_again(folder: Path, components: Path, config: Path, fixtures: Path | None) -> tuple[Finished, Component]:
    """Score a saved run again and rewrite its record.json. Return the run, and the component on disk."""
    configuration = read_configuration(config)
    manifest = read_component_manifest(folder)
    component = load_component(components, manifest.skill, configuration.settings.limits, fixtures)
    component = apply_scenario(component, config, manifest.scenario)
    configuration = with_program(configuration, component)
    run = saved_run(folder, component, {model.id: model for model in configuration.models})
    cases = {case.id: case.as_used(run.manifest.inputs) for case in load_cases(component, fixtures)}
    run_cases = _cases_of(folder, run.manifest.cases, cases, "scored")
    changed = changes_since(run, component, cases)
    if run.manifest.role is not None:  # a rerun or baseline has an earlier prompt by design
        changed = [name for name in changed if name != "prompt"]
    _warn_of_changes(changed)
    journal = outcomes(folder)
    planned = schedule_calls(tuple(run.manifest.cases), run.manifest.replicates)
    calls = [call for call in planned if call in journal]
    if not calls:
        raise RunError(f"{folder} has no outputs yet; finish the run with `skill-evaluator evaluate`")
    with open_scores(component, run_cases, len(calls)) as scores:
        scorer = Scorer(component, run_cases, run.manifest.replicates, scores)
        scorer.add_all(journal[call] for call in calls)
        judged = read_judged_run(run, run_cases, configuration, config)
        scorer.take(judged.scores)
        scorecard = scorer.scorecard()
    origin = commits_of(component, fixtures)
    recorder = Recorder(component=component, settings=configuration.settings, kinds=configuration.kinds, origin=origin)
    stopped = judged.stopped if len(calls) == len(planned) else "unfinished: calls are missing"
    record = recorder.record(run.model, run.manifest, scorecard, stopped=stopped, judge=judged.summary)
    write_record(folder / RECORD, record)
    return Finished(record=record, record_path=folder / RECORD, folder=folder), component


def explain(
    run: str, components: Path, config: Path, fixtures: Path | None, *, case: str | None, field: str | None
) -> tuple[Manifest, list[CaseView]]:
    """Return the manifest of a saved run, and the views of one case or of one field in all cases."""
    folder = find_run(run, components)
    manifest = read_component_manifest(folder)
    _refuse_unknown(manifest, case, field)
    settings = load_settings(config)
    component = load_component(components, manifest.skill, settings.limits, fixtures)
    cases = {case.id: case.as_used(manifest.inputs) for case in load_cases(component, fixtures)}
    current_digests = {name: digest for name, digest in component.digests.items() if name != "datasets"}
    digests = {**manifest.digests, **current_digests}
    if manifest.skill_version != component.version and "prompt" in manifest.digests:  # another version, another prompt
        digests["prompt"] = manifest.digests["prompt"]
    present = {case_id: cases[case_id].digest for case_id in manifest.cases if case_id in cases}
    _warn_of_changes(manifest.differences(manifest.model_copy(update={"cases": present, "digests": digests})))
    record = edited_since(folder, manifest, component.records_dir)
    if record is not None:
        print(f"warning: {record} was made from other outputs than {folder / ANSWERS} has", file=sys.stderr)
    run_cases = _cases_of(folder, manifest.cases if case is None else [case], cases, "explained")
    journal = outcomes(folder)
    calls = [call for call in schedule_calls([each.id for each in run_cases], manifest.replicates) if call in journal]
    with open_scores(component, run_cases, len(calls)) as scores:
        scorer = Scorer(component, run_cases, manifest.replicates, scores)
        scorer.add_all(journal[call] for call in calls)
        judged = read_sentence_answers(folder / JUDGE)
        scorer.take(scores_of(judged_items(run_cases, {call: journal[call] for call in calls}), judged, manifest.seed))
        views = []
        for each in run_cases:
            replicates = [journal.get(Call(each.id, index)) for index in range(manifest.replicates)]
            scored = scorer.by_replicate(each.id)
            outcomes_of_case = {index: score.outcome for index, score in scored.items()}
            answers = [
                replace(answer, checks=scored[answer.index].checks, metrics=scored[answer.index].metrics)
                if answer.index in scored
                else replace(answer, metrics=dict.fromkeys(component.metrics))
                for answer in read_answers(component, each, replicates, outcomes_of_case)
            ]
            views.append(case_view(component, each, answers))
    return manifest, views if field is None else only_field(views, component, _INDEX.sub("[]", field))


def _cases_of(folder: Path, case_ids: Iterable[str], cases: Mapping[str, Case], purpose: str) -> list[Case]:
    missing = [case_id for case_id in case_ids if case_id not in cases]
    if missing:
        raise RunError(f"{folder} cannot be {purpose}: case '{missing[0]}' is no longer among the fixtures")
    return [cases[case_id] for case_id in case_ids]


def _warn_of_changes(changed: Sequence[str]) -> None:
    if changed:
        print(f"warning: changed since this run: {visible(', '.join(changed))}", file=sys.stderr)


def _refuse_unknown(manifest: Manifest, case: str | None, field: str | None) -> None:
    """Raise RunError if the run does not have the case, or if neither case nor field is named."""
    if case in manifest.not_applicable:
        reason = manifest.not_applicable[case]
        raise RunError(f"case '{case}' is not applicable to {manifest.model_id} and was not called: {reason}")
    if case is not None and case not in manifest.cases:
        raise RunError(f"unknown case '{case}' in {manifest.run_id} {nearest(case, manifest.cases)}")
    if field is None and case is None:
        cases = ", ".join(manifest.cases)
        raise RunError(f"--case ID or --field PATH is required (the cases of the run: {cases})")
