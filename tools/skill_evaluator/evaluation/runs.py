"""The runs of an evaluation: new ones, those of a design with a recorded version, or unfinished runs to resume.

Nobody pays twice for an output of the same call. Drafts, so also `try`, and `--failing` neither give outputs to a later
run nor reuse any: the best of many drafts would pass for an improvement. `plan` finds baselines here, too, so that a
workflow measures what a person at a terminal would.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from skill_evaluator.errors import RunError, SkillEvaluatorError
from skill_evaluator.evaluation.inputs import Inputs
from skill_evaluator.evaluation.request import EvaluationRequest
from skill_evaluator.files import try_lock
from skill_evaluator.identifiers import BASELINE, invocation_of
from skill_evaluator.judges.modes.sentences import judge_estimate
from skill_evaluator.library.cases import refuse_unfilled
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import Model, Policy
from skill_evaluator.library.scenarios import apply_scenario
from skill_evaluator.library.versions import PastPrompt, component_at, component_with
from skill_evaluator.providers import lack_of
from skill_evaluator.records.archive import Archive, RecordedRun, append_rows, read_entries, why_refused
from skill_evaluator.records.record import SCORER_VERSION, Record, read_record, short_digests
from skill_evaluator.records.selection import runs_alike, usual_baseline
from skill_evaluator.runner.journal import (
    MANIFEST,
    Manifest,
    Role,
    Run,
    RunSize,
    create_run,
    find_runs,
    input_digests,
    is_unfinished,
    new_runs,
    outcomes,
    read_component_manifest,
    read_manifest,
    resumed_run,
    run_of_other,
)
from skill_evaluator.runner.prices import input_sizes, most_cost, price_of
from skill_evaluator.runner.schedule import replicates_beside
from skill_evaluator.scoring.recording import Finished
from skill_evaluator.stats import total_or_none
from skill_evaluator.text import counted, listed

_NEW_RUN = "(--no-reuse begins a new run)"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRuns:
    """The runs to call, and runs that are recorded already; by run id the component that a run calls, and its role."""

    runs: Sequence[Run]
    components: Mapping[str, Component]
    finished: Sequence[Finished] = ()
    roles: Mapping[str, Role | None]


def plan_runs(inputs: Inputs, request: EvaluationRequest) -> PlannedRuns:
    """Return the runs to call; with `--resume` also the recorded runs, which are not changed.

    Raise RunError for runs that the options do not allow, or that could not be recorded after their calls.
    """
    recorded = read_entries(inputs.component.leaderboard_path)
    if request.resumed is not None:
        planned = _resume_runs(inputs, request, request.resumed)
    else:
        planned = _new_runs(inputs, request)
        if not (request.no_reuse or request.dry_run or request.draft or request.failing or request.invocation):
            planned = _with_unfinished_runs(planned, inputs, request, [entry for entry in recorded if entry.complete])
    for manifest in (run.manifest for run in planned.runs if is_recordable(run, request)):
        if manifest.draft:
            continue
        why = why_refused(recorded, manifest.skill_version, manifest.digests["prompt"])
        if why is not None:
            raise RunError(f"'{inputs.component.name}' {why}")
    anew = [run for run in planned.runs if not run.folder.exists()]
    for line in () if request.dry_run else beside_words(anew):  # a dry run says it itself
        print(line, file=sys.stderr)
    return planned


def is_recordable(run: Run, request: EvaluationRequest) -> bool:
    """Return whether the run, once complete, is kept among the component's records."""
    return request.leaderboard and run.manifest.whole


def _new_runs(inputs: Inputs, request: EvaluationRequest) -> PlannedRuns:
    size = RunSize(
        replicates=request.replicates or inputs.settings.replicates,
        seed=inputs.settings.seed if request.seed is None else request.seed,
        shard=inputs.shard,
        selection=request.cases,
        invocation=request.invocation,
        transport="batch" if request.batch else "direct",
    )
    plain = new_runs(inputs.component, inputs.cases, inputs.models, inputs.results_dir, inputs.kinds, size)
    for run in plain:
        if not run.manifest.cases:
            reasons = listed([f"{case_id} ({why})" for case_id, why in run.manifest.not_applicable.items()])
            print(f"warning: skipping {run.model.id}: no case is applicable to it: {reasons}", file=sys.stderr)
    plain = [run for run in plain if run.manifest.cases]
    if not plain:
        raise RunError(
            f"no case of '{inputs.component.name}' is applicable to a model; see not_applicable in meta.json"
        )
    alone = _planned([(run, inputs.component) for run in plain], request)
    designed = request.with_baseline or request.failing or request.rerun_baseline
    if not designed and not _goes_beside(request, inputs.settings.policy):
        return alone

    if request.failing and not (plain := failing_runs(plain, inputs)):
        return _planned([], request)
    planned = _planned((design_runs if designed else runs_beside)(plain, inputs, request), request)
    if not designed and (why := _suffices_for_one(planned, alone, inputs, request)):
        print(f"warning: {inputs.component.name} is called without its baseline: {why}", file=sys.stderr)
        return alone
    return planned


def _goes_beside(request: EvaluationRequest, policy: Policy) -> bool:
    """Return whether new versions are interleaved with their baselines by default.

    That requires a verdict on all cases. A job of a plan, which has its invocation, calls the planned runs only.
    """
    otherwise = (request.draft, request.cases, request.shard, request.scenario, request.invocation)
    return policy.design == "beside" and not request.recorded_baseline and not any(otherwise)


def _planned(pieces: Sequence[tuple[Run, Component]], request: EvaluationRequest) -> PlannedRuns:
    runs = [replace(run, manifest=run.manifest.model_copy(update={"draft": request.draft})) for run, _ in pieces]
    components = {run.manifest.run_id: component for run, component in pieces}
    return PlannedRuns(runs=runs, components=components, roles=_roles_of(runs))


def beside_words(runs: Sequence[Run]) -> list[str]:
    """Return a line per interleaved baseline, with the factor by which it raises the calls of each model."""
    replicates = {run.manifest.run_id: run.manifest.replicates for run in runs}
    models: dict[str, list[str]] = {}
    for manifest in (
        run.manifest for run in runs if run.manifest.role == "baseline" and run.manifest.beside in replicates
    ):
        times = 1 + manifest.replicates / replicates[str(manifest.beside)]
        models.setdefault(f"interleaved with {manifest.skill_version}: {times:.3g} × the calls", []).append(
            manifest.model_id
        )
    alone = "" if any(run.manifest.asked_again for run in runs) else " (--recorded-baseline runs the new version alone)"
    return [f"{words} of {listed(ids)}{alone}" for words, ids in models.items()]


def _suffices_for_one(
    beside: PlannedRuns, alone: PlannedRuns, inputs: Inputs, request: EvaluationRequest
) -> str | None:
    """Return a message if a limit suffices for the new versions but not for their baselines, too, else None."""
    if request.max_calls is None and request.max_cost is None:
        return None
    plans = (alone, beside)
    calls = [float(sum(run.manifest.calls for run in planned.runs)) for planned in plans]
    costs = [total_or_none(max_remaining_costs(planned, inputs).values()) for planned in plans]
    limits: Sequence[tuple[str, float | None, Sequence[float | None]]] = (
        ("--max-calls", request.max_calls, calls),
        ("--max-cost", request.max_cost, costs),
    )
    for name, limit, (one, both) in limits:
        if limit is not None and one is not None and both is not None and one <= limit < both:
            return f"{name}, {limit:,g}, is enough for the new version (at most {one:,g}), not for both ({both:,g})"
    return None


def max_remaining_costs(planned: PlannedRuns, inputs: Inputs) -> dict[str, float | None]:
    """Return the maximum cost of the remaining calls by model in USD. The cost is None if a price is unknown."""
    costs: dict[str, float | None] = {}
    usable = [run for run in planned.runs if not lack_of(run.model, inputs.kinds[run.model.provider], inputs.keys)]
    for run in usable:
        manifest, model = run.manifest, run.model
        cases = [case for case in inputs.cases if case.id in manifest.cases]
        answered = Counter(call.case_id for call, replicate in outcomes(run.folder).items() if replicate.answered)
        price, batch = price_of(model, inputs.kinds[model.provider]), manifest.transport == "batch"
        for case_id, size in input_sizes(planned.components[manifest.run_id], cases).items():
            of_model = size.of_model(model, inputs.kinds[model.provider])
            most = most_cost(price, of_model.most, model.params.max_output_tokens, batch=batch)
            before = costs.get(model.id, 0.0)
            left = manifest.replicates - answered[case_id]
            costs[model.id] = None if most is None or before is None else before + left * most
        if (judge := inputs.judge) is not None:
            most = judge_estimate(judge, inputs.kinds[judge.provider], cases, model, manifest.replicates).cost_upper_usd
            before = costs.get(judge.id, 0.0)
            costs[judge.id] = None if most is None or before is None else before + most
    return costs


def record_path(run: Run, component: Component) -> Path:
    """Return the path of the record of a complete run."""
    return component.records_dir / f"{run.manifest.run_id}.json"


def _with_unfinished_runs(
    planned: PlannedRuns, inputs: Inputs, request: EvaluationRequest, recorded: Sequence[RecordedRun]
) -> PlannedRuns:
    """Return the planned runs, or the unfinished ones of the same plan; an unfinished run with fewer calls is extended.

    The unfinished ones are the newest on this machine.
    """
    runs = [run for run in planned.runs if not lack_of(run.model, inputs.kinds[run.model.provider], inputs.keys)]
    earlier = {run.manifest.run_id: run for run in _earlier_runs(runs, inputs, request)}
    for invocation in sorted({invocation_of(name) for name in earlier}, reverse=True):
        names = [invocation + run.manifest.run_id.removeprefix(invocation_of(run.manifest.run_id)) for run in runs]
        begun = [earlier[name] for name in names if name in earlier]
        alike = [was.manifest.is_planned_as(run.manifest) for was, run in zip(begun, runs, strict=False)]
        if len(begun) == len(runs) and all(alike) and any(_is_left(was, recorded) for was in begun):
            print(f"continuing the unfinished run {invocation} {_NEW_RUN}", file=sys.stderr)
            return _resume_runs(inputs, replace(request, models=tuple(run.model.id for run in runs)), invocation)
    left = [run for run in earlier.values() if _is_left(run, recorded)]
    pieces = []
    for run in planned.runs:
        parts = [one for one in left if one.manifest.is_part_of(run.manifest)]
        pieces.append((_extended(parts[-1], run) if parts else run, planned.components[run.manifest.run_id]))
    return _planned(pieces, request)


def _extended(unfinished: Run, run: Run) -> Run:
    """Add the cases and replicates of a planned run to an unfinished one, on disk too."""
    names = ("cases", "replicates", "selection", "not_applicable")
    manifest = unfinished.manifest.model_copy(update={name: getattr(run.manifest, name) for name in names})
    create_run(unfinished.folder, manifest)
    size = f"{counted(len(manifest.cases), 'case')} × {counted(manifest.replicates, 'replicate')}"
    print(f"continuing the unfinished run {manifest.run_id} with {size} {_NEW_RUN}", file=sys.stderr)
    return replace(unfinished, manifest=manifest)


def _earlier_runs(runs: Sequence[Run], inputs: Inputs, request: EvaluationRequest) -> Iterator[Run]:
    """Yield the runs on this machine whose prompt, contract and settings are those of new ones; none under way."""
    models = {run.model.id: run.model for run in runs if run.model.provider != "replay"}  # which costs nothing
    for folder in sorted(path.parent for path in inputs.results_dir.glob(f"*/{MANIFEST}")):
        with suppress(RunError):  # what cannot be read is nobody's
            manifest = read_component_manifest(folder)
            alike = manifest.model_id in models and any(manifest.asks_like(run.manifest) for run in runs)
            as_named = manifest.run_id == folder.name and request.seed in (None, manifest.seed)
            if alike and as_named and try_lock(folder / ".lock") is not None:  # which is given back at once
                yield Run(model=models[manifest.model_id], manifest=manifest, folder=folder)


def _is_left(run: Run, recorded: Sequence[RecordedRun]) -> bool:
    """Return whether a run is unfinished, and no later run of its model and scenario is recorded."""
    same = (entry for entry in recorded if (entry.model_id, entry.scenario) == (run.model.id, run.manifest.scenario))
    newest = max((invocation_of(entry.run_id) for entry in same), default="")
    return newest <= invocation_of(run.manifest.run_id) and is_unfinished(run.folder)


def _resume_runs(inputs: Inputs, request: EvaluationRequest, resume: str) -> PlannedRuns:
    """Find the runs that `--resume` or `--run` means, each planned as the options say; raise RunError."""
    component = inputs.component
    runs, components = _saved_runs(inputs, request, resume)
    unfinished = [run for run in runs if not record_path(run, component).exists()]
    finished = []
    for run in runs:
        if run not in unfinished:
            record = read_record(record_path(run, component))
            complete = " and complete" * record.complete
            if record.has_row:  # a crash may have come before its row
                append_rows(component.leaderboard_path, component.name, [record.row()])
            print(f"{run.manifest.run_id} is recorded{complete}: there is nothing to resume", file=sys.stderr)
            finished.append(Finished(record=record, record_path=record_path(run, component), folder=run.folder))
    return PlannedRuns(runs=unfinished, components=components, finished=finished, roles=_roles_of(runs))


def _saved_runs(inputs: Inputs, request: EvaluationRequest, wanted: str) -> tuple[list[Run], dict[str, Component]]:
    """Find runs by id, folder or invocation, with the component that each calls; raise RunError."""

    cases = {case.id: case for case in inputs.cases}
    models = {model.id: model for model in inputs.models}
    folders = _with_those_beside(find_runs(inputs.results_dir, wanted, inputs.component.name))
    for folder, manifest in folders:
        if manifest.scenario != request.scenario:
            how = f"with --scenario {manifest.scenario}" if manifest.scenario else "without --scenario"
            raise RunError(f"cannot resume {folder} like this: it was begun {how}")
    mine = [(folder, manifest) for folder, manifest in folders if not request.models or manifest.model_id in models]
    if not mine:
        raise RunError(f"no run of --model {' '.join(request.models)} among those to resume")
    components = {manifest.run_id: component_of(manifest, inputs, request) for _, manifest in mine}
    runs = [resumed_run(folder, components[manifest.run_id], cases, models) for folder, manifest in mine]
    _refuse_other_plan(runs, request)
    return runs, components


def _roles_of(runs: Sequence[Run]) -> dict[str, Role | None]:
    return {run.manifest.run_id: run.manifest.role for run in runs}


def _with_those_beside(folders: Sequence[tuple[Path, Manifest]]) -> list[tuple[Path, Manifest]]:
    """Add the runs whose calls alternate with these; raise RunError if one is gone."""
    wanted = dict(folders)
    for folder, manifest in folders:
        if manifest.beside is not None:
            other = folder.parent / manifest.beside
            wanted.setdefault(other, read_manifest(other))
    return list(wanted.items())


def _refuse_other_plan(runs: Sequence[Run], request: EvaluationRequest) -> None:
    """Raise RunError for an option that a run was not planned with."""
    for run in runs:
        manifest = run.manifest
        for flag, given, planned in (
            ("--replicates", None if manifest.role == "baseline" else request.replicates, manifest.replicates),
            ("--seed", request.seed, manifest.seed),
            ("--shard", request.shard, manifest.shard),
            ("--case", request.cases or None, manifest.selection),
        ):
            if given is not None and given != planned:
                was = f"with {_wording(planned)}" if planned not in (None, ()) else "without it"
                raise RunError(f"cannot resume {run.folder} with {flag} {_wording(given)}: it was planned {was}")
        for flag, is_given, is_planned in (
            ("--with-baseline", request.with_baseline, manifest.beside is not None),
            ("--failing", request.failing, manifest.asked_again),
            ("--rerun-baseline", request.rerun_baseline, manifest.role == "again"),
            ("--draft", request.draft, manifest.draft),
            ("--batch", request.batch, manifest.transport == "batch"),
        ):
            if is_given and not is_planned:
                raise RunError(f"cannot resume {run.folder} with {flag}: it was planned without it")


def _wording(value: object) -> str:
    return " ".join(value) if isinstance(value, tuple) else str(value)


def find_baseline(component: Component, model: Model, archive: Archive, policy: Policy) -> RecordedRun | None:
    """Return the run that a new run of the component would be compared with."""
    return usual_baseline(_future_run(component, model), archive, policy)


def find_recorded(component: Component, model: Model, archive: Archive) -> RecordedRun | None:
    """Return the newest complete run of the highest version recorded of a model."""
    alike = runs_alike(archive.entries, _future_run(component, model))
    return max(alike, key=lambda entry: entry.standing, default=None)


def past_prompt_of(run: Record | Manifest) -> PastPrompt:
    """Return the version and digests of the prompt that a record or a manifest measures."""
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


def _future_run(component: Component, model: Model) -> RecordedRun:
    """Return the leaderboard row that a new run of the component would have."""
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
        planned = _future_run(component, run.model)
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
    """Return the component that an existing run calls; raise ComponentError or GitError if its prompt is gone."""
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
