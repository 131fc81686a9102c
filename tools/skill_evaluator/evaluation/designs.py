"""The runs of an evaluation that ask a version which is recorded already: beside a new one, or again.

New runs of the work tree's component in, the runs of the design out, with the component that each of them asks.
`plan` looks here for baselines, too, so that a workflow measures what a person at a terminal would.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count

from skill_evaluator.errors import RunError, SkillEvaluatorError
from skill_evaluator.evaluation.inputs import Inputs
from skill_evaluator.evaluation.request import EvaluationRequest
from skill_evaluator.identifiers import BASELINE
from skill_evaluator.library.cases import refuse_unfilled
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import Model, Policy
from skill_evaluator.library.scenarios import apply_scenario
from skill_evaluator.library.versions import PastPrompt, component_at, component_with
from skill_evaluator.records.archive import Archive, RecordedRun
from skill_evaluator.records.record import SCORER_VERSION, Record, short_digests
from skill_evaluator.records.selection import runs_alike, usual_baseline
from skill_evaluator.runner.journal import Manifest
from skill_evaluator.runner.runs import Run, input_digests, run_of_other
from skill_evaluator.runner.schedule import replicates_beside
from skill_evaluator.text import listed


def find_baseline(component: Component, model: Model, archive: Archive, policy: Policy) -> RecordedRun | None:
    """Return the run that a new run of the component would be compared with."""
    return usual_baseline(_planned(component, model), archive, policy)


def find_recorded(component: Component, model: Model, archive: Archive) -> RecordedRun | None:
    """Return the newest complete run of the highest version recorded of a model."""
    alike = runs_alike(archive.entries, _planned(component, model))
    return max(alike, key=lambda entry: entry.standing, default=None)


def past_prompt_of(run: Record | Manifest) -> PastPrompt:
    """Return what a record, or the manifest of a run, says of the prompt that is measured."""
    return PastPrompt(
        version=run.skill_version,
        digest=run.digests["prompt"],
        schema=run.digests.get("schema"),
        commit=run.prompt_commit,
    )


def fresh_seed(archive: Archive, model_id: str, versions: Iterable[str], first: int) -> int:
    """Return the first seed from `first` on that no recorded run of these versions of a model had.

    With the same seed a provider that keeps to it would give the same answers again, which say nothing of chance.
    """
    wanted = set(versions)
    runs = (entry for entry in archive.runs_of(model_id) if entry.complete and entry.version in wanted)
    used = {archive.record(entry).seed for entry in runs}
    return next(seed for seed in count(first) if seed not in used)


def _planned(component: Component, model: Model) -> RecordedRun:
    """Return what a leaderboard would say of a run of the component that is about to be made."""
    return RecordedRun(
        run_id="planned",
        skill_version=component.version,
        model_id=model.id,
        scenario=component.scenario,
        complete=False,
        timestamp="",
        digests=short_digests({**input_digests(component, model), "datasets": component.digests["datasets"]}),
        scorer_version=SCORER_VERSION,
    )


Pieces = tuple[Run, Component]
_NO_LOWER = "there is no complete record of a lower version to ask beside it"
_NO_RECORD = "there is no complete record of it yet"


def design_runs(plain: Sequence[Run], inputs: Inputs, request: EvaluationRequest) -> list[Pieces]:
    """Return the runs of the design that the options name, instead of the plain ones of the work tree's version.

    Each comes with the component that it asks. A model of which nothing is recorded is left out, with a warning; raise
    RunError when none is left.
    """
    design: Callable[[Run, Inputs, EvaluationRequest, Archive], Iterator[Pieces]]
    if request.with_baseline or request.failing:
        design, lacking = _beside_baseline, _NO_LOWER
    else:
        design, lacking = _once_more, _NO_RECORD
    archive = Archive(inputs.component)
    pieces: list[Pieces] = []
    for run in plain:
        of_model = list(design(run, inputs, request, archive))
        if not of_model:
            print(f"warning: skipping {run.model.id}: {lacking}", file=sys.stderr)
        pieces += of_model
    if not pieces:
        raise RunError(
            f"no model of '{inputs.component.name}' is left to run: {lacking}; evaluate it without this option first"
        )
    return pieces


def failing_runs(plain: Sequence[Run], inputs: Inputs) -> list[Run]:
    """Return the runs cut to the cases that failed in the newest record of the version, with a line on each model.

    A model of which none failed has no run; raise RunError where there is no record.
    """
    archive, component, cut = Archive(inputs.component), inputs.component, []
    for run in plain:
        planned = _planned(component, run.model)
        alike = [entry for entry in runs_alike(archive.entries, planned) if entry.version == planned.version]
        newest = next((entry for entry in alike if entry.prompt == planned.prompt), None)
        if newest is None:
            told = f"there is no complete record of {component.version} on {run.model.id} in which a case failed"
            raise RunError(f"{told}; evaluate '{component.name}' without --failing first")
        record = archive.record(newest)
        failed = {case.case_id for case in record.per_case if not all(case.passed(record.primary_metric))}
        cases = {case_id: digest for case_id, digest in run.manifest.cases.items() if case_id in failed}
        print(f"{run.model.id}: {listed(list(cases)) or 'no case'} failed in {newest.run_id}", file=sys.stderr)
        if cases:
            manifest = run.manifest.model_copy(update={"cases": cases, "selection": tuple(cases)})
            cut.append(replace(run, manifest=manifest))
    return cut


def runs_beside(plain: Sequence[Run], inputs: Inputs, request: EvaluationRequest) -> list[Pieces]:
    """Return the runs, each with that of its baseline beside it; say of a baseline that cannot be asked why not."""
    archive = Archive(inputs.component)
    pieces: list[Pieces] = []
    absent: dict[str, list[str]] = {}
    for run in plain:
        pair: list[Pieces] = []
        try:
            if run.model.provider != "replay":  # which answers every prompt alike
                pair += _beside_baseline(run, inputs, request, archive)
        except SkillEvaluatorError as problem:
            absent.setdefault(str(problem), []).append(run.model.id)
        pieces += pair or [(run, inputs.component)]
    for why, ids in absent.items():
        asked = "is asked without its" if len(ids) == 1 else "are asked without their"
        print(f"warning: {listed(ids)} {asked} baseline: {why}", file=sys.stderr)
    return pieces


def component_of(manifest: Manifest, inputs: Inputs, request: EvaluationRequest) -> Component:
    """Return what a run that was begun asks; raise ComponentError or GitError where its prompt is gone."""
    if manifest.role is None:
        return inputs.component
    today = load_component(request.components, request.skill, inputs.settings.limits, request.fixtures)
    component, _ = component_with(today, past_prompt_of(manifest))
    return apply_scenario(component, request.config, manifest.scenario)


def _beside_baseline(run: Run, inputs: Inputs, request: EvaluationRequest, archive: Archive) -> Iterator[Pieces]:
    """Yield the run of the new version and that of its baseline, each with the id of the other."""
    commit: str | None
    if request.baseline_commit is not None:
        today = load_component(request.components, request.skill, inputs.settings.limits, request.fixtures)
        again, commit = component_at(today, request.baseline_commit)
        refuse_unfilled(again, inputs.cases, inputs.component)
    else:
        entry = find_baseline(inputs.component, run.model, archive, inputs.settings.policy)
        if entry is None:
            return
        again, commit = _read_again(entry, archive, request, inputs)
    again = apply_scenario(again, request.config, request.scenario)
    run = _reseeded(run, archive, (again.version, inputs.component.version), request)
    baseline = run_of_other(run, again, BASELINE, "baseline", commit)
    half = {"replicates": replicates_beside(run.manifest.replicates)}
    baseline = replace(baseline, manifest=baseline.manifest.model_copy(update=half))
    yield _beside(run, baseline), inputs.component
    yield _beside(baseline, run), again


def _once_more(run: Run, inputs: Inputs, request: EvaluationRequest, archive: Archive) -> Iterator[Pieces]:
    """Yield a further run of the version that is recorded."""
    entry = find_recorded(inputs.component, run.model, archive)
    if entry is None:
        return
    again, commit = _read_again(entry, archive, request, inputs)
    again = apply_scenario(again, request.config, request.scenario)
    run = _reseeded(run, archive, (entry.version,), request)
    yield run_of_other(run, again, "", "again", commit), again


def _read_again(
    entry: RecordedRun, archive: Archive, request: EvaluationRequest, inputs: Inputs
) -> tuple[Component, str | None]:
    """Return the component with the prompt of a recorded run, without a scenario, and the commit that holds it."""
    today = load_component(request.components, request.skill, inputs.settings.limits, request.fixtures)
    again, commit = component_with(today, past_prompt_of(archive.record(entry)))
    refuse_unfilled(again, inputs.cases, inputs.component)
    return again, commit


def _reseeded(run: Run, archive: Archive, versions: Sequence[str], request: EvaluationRequest) -> Run:
    """Return the run with a seed that none of these versions had, unless a person named the seed."""
    if request.seed is not None:
        return run
    seed = fresh_seed(archive, run.model.id, versions, run.manifest.seed)
    return replace(run, manifest=run.manifest.model_copy(update={"seed": seed}))


def _beside(run: Run, other: Run) -> Run:
    return replace(run, manifest=run.manifest.model_copy(update={"beside": other.manifest.run_id}))
