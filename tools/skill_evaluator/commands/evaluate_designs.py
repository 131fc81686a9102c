"""The runs of `evaluate` that ask a version which is recorded already: beside a new one, again, or reworded.

New runs of the work tree's component in, the runs of the design out, with the component that each of them asks.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from skill_evaluator.commands.evaluate_inputs import Inputs
from skill_evaluator.commands.evaluate_options import EvaluateOptions
from skill_evaluator.errors import RunError, SkillEvaluatorError
from skill_evaluator.evaluation.designs import ask_again, find_baseline, find_recorded, fresh_seed
from skill_evaluator.identifiers import BASELINE
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import SafetyLimits
from skill_evaluator.library.scenarios import apply_scenario, load_scenario, spread_scenarios
from skill_evaluator.library.versions import PastPrompt, component_at, component_with
from skill_evaluator.records.archive import Archive, RecordedRun
from skill_evaluator.runner.journal import Manifest
from skill_evaluator.runner.runs import Run, run_of_other
from skill_evaluator.runner.schedule import replicates_beside
from skill_evaluator.text import listed

Pieces = tuple[Run, Component]
_NO_LOWER = "there is no complete record of a lower version to ask beside it"
_NO_RECORD = "there is no complete record of it yet"


def design_runs(plain: Sequence[Run], inputs: Inputs, options: EvaluateOptions) -> list[Pieces]:
    """Return the runs of the design that the options name, instead of the plain ones of the work tree's version.

    Each comes with the component that it asks. A model of which nothing is recorded is left out, with a warning; raise
    RunError when none is left.
    """
    design: Callable[[Run, Inputs, EvaluateOptions, Archive], Iterator[Pieces]]
    if options.with_baseline:
        design, lacking = _beside_baseline, _NO_LOWER
    elif options.aa:
        design, lacking = _once_more, _NO_RECORD
    else:
        design, lacking = _under_scenarios, _NO_RECORD
    archive = Archive(inputs.component)
    pieces: list[Pieces] = []
    for run in plain:
        of_model = list(design(run, inputs, options, archive))
        if not of_model:
            print(f"warning: skipping {run.model.id}: {lacking}", file=sys.stderr)
        pieces += of_model
    if not pieces:
        raise RunError(
            f"no model of '{inputs.component.name}' is left to run: {lacking}; evaluate it without this option first"
        )
    return pieces


def runs_beside(plain: Sequence[Run], inputs: Inputs, options: EvaluateOptions) -> list[Pieces]:
    """Return the runs, each with that of its baseline beside it; say of a baseline that cannot be asked why not."""
    archive = Archive(inputs.component)
    pieces: list[Pieces] = []
    absent: dict[str, list[str]] = {}
    for run in plain:
        pair: list[Pieces] = []
        try:
            if run.model.provider != "replay":  # which answers every prompt alike
                pair += _beside_baseline(run, inputs, options, archive)
        except SkillEvaluatorError as problem:
            absent.setdefault(str(problem), []).append(run.model.id)
        pieces += pair or [(run, inputs.component)]
    for why, ids in absent.items():
        print(f"warning: {listed(ids)} is asked without its baseline: {why}", file=sys.stderr)
    return pieces


def component_of(manifest: Manifest, inputs: Inputs, options: EvaluateOptions) -> Component:
    """Return what a run that was begun asks; raise ComponentError or GitError where its prompt is gone."""
    if manifest.role is None:
        return inputs.component
    past = PastPrompt(
        version=manifest.skill_version,
        digest=manifest.digests["prompt"],
        schema=manifest.digests.get("schema"),
        commit=manifest.prompt_commit,
    )
    today = load_component(options.components, options.skill, inputs.settings.limits, options.fixtures)
    component, _ = component_with(today, past)
    return apply_scenario(component, options.config, manifest.scenario)


def _beside_baseline(run: Run, inputs: Inputs, options: EvaluateOptions, archive: Archive) -> Iterator[Pieces]:
    """Yield the run of the new version and that of its baseline, each with the id of the other."""
    commit: str | None
    if options.baseline_commit is not None:
        today = load_component(options.components, options.skill, inputs.settings.limits, options.fixtures)
        again, commit = component_at(today, options.baseline_commit)
    else:
        entry = find_baseline(inputs.component, run.model, archive, inputs.settings.policy)
        if entry is None:
            return
        again, commit = _read_again(entry, archive, options, inputs.settings.limits)
    again = apply_scenario(again, options.config, options.scenario)
    run = _reseeded(run, archive, (again.version, inputs.component.version), options)
    baseline = run_of_other(run, again, BASELINE, "baseline", commit)
    half = {"replicates": replicates_beside(run.manifest.replicates)}
    baseline = replace(baseline, manifest=baseline.manifest.model_copy(update=half))
    yield _beside(run, baseline), inputs.component
    yield _beside(baseline, run), again


def _once_more(run: Run, inputs: Inputs, options: EvaluateOptions, archive: Archive) -> Iterator[Pieces]:
    """Yield a further run of the version that is recorded."""
    entry = find_recorded(inputs.component, run.model, archive)
    if entry is None:
        return
    again, commit = _read_again(entry, archive, options, inputs.settings.limits)
    again = apply_scenario(again, options.config, options.scenario)
    run = _reseeded(run, archive, (entry.version,), options)
    yield run_of_other(run, again, "", "again", commit), again


def _under_scenarios(run: Run, inputs: Inputs, options: EvaluateOptions, archive: Archive) -> Iterator[Pieces]:
    """Yield a run of the baseline, or without one of the version that is recorded, under each of the scenarios."""
    lower = find_baseline(inputs.component, run.model, archive, inputs.settings.policy)
    entry = lower or find_recorded(inputs.component, run.model, archive)
    if entry is None:
        return
    again, commit = _read_again(entry, archive, options, inputs.settings.limits)
    run = _reseeded(run, archive, (entry.version,), options)
    for name in spread_scenarios(options.config, options.neutral or 0, inputs.settings.seed):
        under = load_scenario(options.config, name, inputs.settings.limits).around(again)
        yield run_of_other(run, under, name, "neutral", commit), under


def _read_again(
    entry: RecordedRun, archive: Archive, options: EvaluateOptions, limits: SafetyLimits
) -> tuple[Component, str | None]:
    again = ask_again(entry, archive, load_component(options.components, options.skill, limits, options.fixtures))
    return again.component, again.commit


def _reseeded(run: Run, archive: Archive, versions: Sequence[str], options: EvaluateOptions) -> Run:
    """Return the run with a seed that none of these versions had, unless a person named the seed."""
    if options.seed is not None:
        return run
    seed = fresh_seed(archive, run.model.id, versions, run.manifest.seed)
    return replace(run, manifest=run.manifest.model_copy(update={"seed": seed}))


def _beside(run: Run, other: Run) -> Run:
    return replace(run, manifest=run.manifest.model_copy(update={"beside": other.manifest.run_id}))
