"""Check the inputs of an evaluation before any call, and plan its runs: new runs, baselines, reruns, resumed runs.

The outputs of unfinished runs are reused, so that no call is paid twice. Outputs of drafts and of `--failing` are never
reused, because the best of many tries would look like an improvement.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from skill_evaluator.errors import ConfigError, RunError, SkillEvaluatorError
from skill_evaluator.files import try_lock
from skill_evaluator.identifiers import BASELINE, invocation_of
from skill_evaluator.judges.calibration.results import read_calibration
from skill_evaluator.judges.modes.sentences import judge_estimate
from skill_evaluator.library import options as cli
from skill_evaluator.library.cases import Case, load_cases, refuse_unfilled
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import Limits, Model, Policy, Settings, select_models
from skill_evaluator.library.scenarios import SCHEMA_ALONE, apply_scenario
from skill_evaluator.library.versions import component_at, component_with
from skill_evaluator.providers import Configuration, missing_key, read_configuration, refuse_unbatched, with_program
from skill_evaluator.records.archive import (
    Archive,
    RecordedRun,
    append_rows,
    check_leaderboard,
    read_entries,
    refusal_reason,
)
from skill_evaluator.records.record import SCORER_VERSION, Record, read_record, short_digests
from skill_evaluator.records.selection import default_baseline, runs_like
from skill_evaluator.repository import Repository, tolerating_git
from skill_evaluator.runner import journal
from skill_evaluator.runner.journal import ComponentRun, Manifest, Role, Run, RunSize
from skill_evaluator.runner.prices import input_sizes, max_call_cost, price_of, refuse_unpriced
from skill_evaluator.runner.schedule import Shard, refuse_amounts, replicates_of_baseline
from skill_evaluator.stats import total_or_none
from skill_evaluator.text import counted, listed
from skill_evaluator.verdicts.component import RecordedComponent


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedValues:
    """The values that a plan sets for a run. The command line has no options for them."""

    invocation: str  # the prefix of run ids
    baseline_commit: str | None = None  # the commit of the interleaved baseline's prompt
    limits: Mapping[str, Limits] = field(default_factory=dict)  # the run's shares of rate limits, by model id


@cli.options
class CallOptions:
    """The options that select the calls of a run: models, cases, replicates, seed and shard."""

    replicates: int | None = cli.option("Calls per case and model; default 10 (settings.yaml).", None, "-n")
    models: cli.OnlyModels = ()
    dry_run: bool = cli.flag("Check inputs and print the maximum cost; make no call.")
    cases: cli.Cases = ()
    seed: int | None = cli.rare("Seed; default: settings.yaml; with a baseline: a new seed.")
    shard: str | None = cli.rare("Run only the I-th of N parts of the cases.", metavar="I/N")


@cli.options
class ResumeOptions:
    """The options that continue an unfinished run, or prevent that."""

    resume: bool = cli.flag("Continue the newest unfinished run.")
    run: str | None = cli.option("Continue the run with this id or in this folder.", metavar="ID")
    no_reuse: bool = cli.flag("Start a new run, even if an unfinished one could continue.")

    @property
    def resumed(self) -> str | None:
        """The unfinished run to continue: an id, a folder or `latest` (the newest). None if the options name no run."""
        return self.run or (cli.LATEST if self.resume else None)


@cli.options
class EvaluationRequest(ResumeOptions, CallOptions, cli.LimitsOption, cli.LibraryOptions):
    """The options of `evaluate`. `planned` is set by a plan, or by `Library.evaluate` with `invocation`."""

    skill: str = cli.argument(cli.SKILL, metavar="COMPONENT")
    scenario: str | None = cli.rare("Wrap the prompt in the file .evaluator/scenarios/NAME.md.", metavar="NAME")
    no_prompt: bool = cli.flag("Send only the output schema instead of the prompt.")
    recorded_baseline: bool = cli.flag("Compare with the baseline's record; do not run it again.")
    failing: bool = cli.flag("Run again only the cases that failed in the newest record.")
    with_baseline: bool = cli.rare("Also run the baseline, even for a draft.", False)
    rerun_baseline: bool = cli.rare("Run the highest recorded version again to measure noise.", False)
    planned: PlannedValues | None = None
    draft: bool = cli.flag("Make a draft: it is in no leaderboard and never a baseline.")
    batch: cli.Batch = False
    results: Path | None = cli.rare("Folder for the runs; default: the component's evals/results.", metavar="DIR")
    leaderboard: bool = cli.rare(
        "Whether to add the record to leaderboard.json; default: yes.", True, negative="--no-leaderboard"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs(Configuration):
    """The checked request and inputs of an evaluation. `judge` is None if there are no `expect` checks."""

    request: EvaluationRequest
    component: Component
    cases: tuple[Case, ...]
    shard: Shard | None
    results_dir: Path
    judge: Model | None = None

    def recorded(self) -> RecordedComponent:
        """Return the component with its recorded runs, as they are now."""
        return RecordedComponent(component=self.component, archive=Archive(self.component), settings=self.settings)


def read_inputs(request: EvaluationRequest) -> Inputs:
    """Read settings, component, cases and models, and check the leaderboard. Raise SkillEvaluatorError if invalid."""
    if request.no_prompt:
        if request.scenario is not None or request.rerun_baseline or request.with_baseline:
            raise RunError("--no-prompt cannot be combined with --scenario, --with-baseline or --rerun-baseline")
        request = replace(request, no_prompt=False, scenario=SCHEMA_ALONE)
    amounts = {"--replicates": request.replicates, "--concurrency": request.concurrency}
    refuse_amounts(amounts, request.max_calls, request.max_cost)
    if request.resumed is not None and (request.dry_run or request.no_reuse):
        raise RunError("--resume and --run cannot be combined with --dry-run or --no-reuse")
    _refuse_designs(request)
    configuration = read_configuration(request.config)
    settings, all_models = configuration.settings, configuration.models
    component = load_component(request.components, request.skill, settings.limits, request.fixtures)
    component = apply_scenario(component, request.config, request.scenario)
    configuration = with_program(configuration, component)
    with tolerating_git():  # fails before any paid call
        Repository(component.files.prompts[0])
    patterns = () if request.resumed else request.cases  # a resumed run has its cases in its manifest
    cases = load_cases(component, patterns)
    check_leaderboard(component)
    models = select_models(configuration.models, request.models)
    if request.batch:
        refuse_unbatched(models)
    judge, models = judge_of(component, cases, models, all_models, settings)
    if judge is not None:
        read_calibration(request.config, settings)
    if request.max_cost is not None:
        refuse_unpriced([*models, *([judge] if judge else [])], configuration.kinds)
    return Inputs(
        request=request,
        component=component,
        cases=cases,
        models=models,
        kinds=configuration.kinds,
        keys=configuration.keys,
        settings=configuration.settings,
        shard=Shard.parse(request.shard) if request.shard else None,
        results_dir=request.results or component.results_dir,
        judge=judge,
    )


def _refuse_designs(request: EvaluationRequest) -> None:
    designs = {
        "--recorded-baseline": request.recorded_baseline,
        "--with-baseline": request.with_baseline,
        "--failing": request.failing,
        "--rerun-baseline": request.rerun_baseline,
    }
    chosen = [flag for flag, is_chosen in designs.items() if is_chosen]
    if len(chosen) > 1:
        raise RunError(f"{' and '.join(chosen)} cannot be combined; use one of them")
    restrictions = {
        "--case": bool(request.cases),
        "--shard": request.failing and request.shard is not None,
        "--scenario": request.failing and request.scenario is not None,
    }
    conflicts = [flag for flag, is_chosen in restrictions.items() if is_chosen]
    cases = "the cases that failed" if request.failing else "all cases"
    if chosen and conflicts and not request.recorded_baseline:
        raise RunError(f"{chosen[0]} runs {cases} and cannot be combined with {conflicts[0]}")
    if request.draft and request.rerun_baseline:
        raise RunError("--draft runs the current prompt and --rerun-baseline a recorded version; use one of them")


def judge_of(
    component: Component,
    cases: Iterable[Case],
    selected: tuple[Model, ...],
    models: tuple[Model, ...],
    settings: Settings,
) -> tuple[Model | None, tuple[Model, ...]]:
    """Return (judge, models to evaluate). The judge is None if the component has no `expect` checks.

    The judge's model is not evaluated, unless `policy.components` sets the judge of this component. Raise ConfigError
    if no judge is set, if the judge's model is the only model, or if `--model` selects the judge's model.
    """
    if not any(case.sentences for case in cases):
        return None, selected
    name = component.name
    own_judge = settings.policy.judge_of(name)
    judge_id = own_judge or settings.policy.judge.model
    if judge_id is None:
        raise ConfigError(
            f"'{name}' has `expect` checks but no judge: set policy.judge.model or policy.components.{name}.judge in "
            "settings.yaml"
        )
    (judge,) = select_models(models, (judge_id,))
    same_models = [model for model in selected if (model.provider, model.api_name) == (judge.provider, judge.api_name)]
    if own_judge is not None or not same_models:
        return judge, selected
    if len(same_models) == len(selected) or len(selected) < len(models):
        raise ConfigError(
            f"{judge.id} would judge its own outputs, those of {same_models[0].id}: choose another judge, or allow "
            f"this with policy.components.{name}.judge in settings.yaml"
        )
    print(f"{judge.id} judges the outputs of {name} and is not evaluated itself", file=sys.stderr)
    return judge, tuple(model for model in selected if model not in same_models)


_NO_REUSE_HINT = "(--no-reuse begins a new one)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A run with its record, which is saved among the component's records or only in the run folder."""

    run: Run
    record: Record
    record_path: Path

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.run.folder


def plan_runs(inputs: Inputs) -> tuple[Sequence[ComponentRun], list[Finished]]:
    """Return (runs to call, runs already recorded). Raise RunError if an option or a record forbids a run."""
    request, recorded = inputs.request, read_entries(inputs.component.leaderboard_path)
    if request.resumed is not None:
        runs, finished = _resume_runs(inputs, request.resumed)
    else:
        runs, finished = _new_runs(inputs), []
        if not (request.no_reuse or request.dry_run or request.draft or request.failing or request.planned):
            runs, finished = _with_unfinished_runs(runs, inputs, [entry for entry in recorded if entry.complete])
    is_recorded = request.leaderboard or request.planned is not None  # `ci collect` records a planned run
    for manifest in (run.manifest for run in runs if is_recorded and run.manifest.whole and not run.manifest.draft):
        refusal = refusal_reason(recorded, manifest.skill_version, manifest.digests["prompt"])
        if refusal is not None:
            raise RunError(f"'{inputs.component.name}' {refusal}")
    new = [run for run in runs if not run.folder.exists()]
    for line in () if request.dry_run else baseline_notes(new):  # a dry run prints the notes with its estimates
        print(line, file=sys.stderr)
    return runs, finished


def _new_runs(inputs: Inputs) -> list[ComponentRun]:
    request, component = inputs.request, inputs.component
    size = RunSize(
        replicates=request.replicates or inputs.settings.replicates,
        seed=inputs.settings.seed if request.seed is None else request.seed,
        shard=inputs.shard,
        selection=request.cases,
        invocation=request.planned.invocation if request.planned else None,
        draft=request.draft,
        transport="batch" if request.batch else "direct",
    )
    new = journal.new_runs(component, inputs.cases, inputs.models, inputs.results_dir, inputs.kinds, size)
    for run in new:
        if not run.manifest.cases:
            reasons = listed([f"{case_id} ({reason})" for case_id, reason in run.manifest.not_applicable.items()])
            print(f"warning: skipping {run.model.id}: no case is applicable to it: {reasons}", file=sys.stderr)
    new = [run for run in new if run.manifest.cases]
    if not new:
        raise RunError(f"no case of '{component.name}' is applicable to a model; see the reasons in the warnings above")
    designed = request.with_baseline or request.failing or request.rerun_baseline
    has_no_verdict = request.draft or request.cases or request.shard or request.scenario
    plain = has_no_verdict or request.recorded_baseline or request.planned  # a plan has chosen the baselines
    if not designed and (plain or inputs.settings.policy.design != "beside"):
        return new
    if request.failing and not (new := _failing_runs(new, inputs)):
        return []
    if designed:
        return _design_runs(new, inputs)
    interleaved = _interleaved_runs(new, inputs)
    if reason := _limit_message(new, interleaved, inputs):
        print(f"warning: {component.name} is called without its baseline: {reason}", file=sys.stderr)
        return new
    return interleaved


def baseline_notes(runs: Sequence[Run]) -> list[str]:
    """Return notes on interleaved baselines, such as "interleaved with 1.0.0: 1.5 × the calls of m1 and m2"."""
    replicates = {run.manifest.run_id: run.manifest.replicates for run in runs}
    models: dict[str, list[str]] = {}
    for manifest in (run.manifest for run in runs if run.manifest.role == "baseline"):
        if manifest.beside in replicates:
            times = 1 + manifest.replicates / replicates[manifest.beside]
            note = f"interleaved with {manifest.skill_version}: {times:.3g} × the calls"
            models.setdefault(note, []).append(manifest.model_id)
    is_optional = not any(run.manifest.reruns_failing for run in runs)
    hint = " (--recorded-baseline runs the new version alone)" * is_optional
    return [f"{note} of {listed(ids)}{hint}" for note, ids in models.items()]


def _limit_message(alone: Sequence[ComponentRun], interleaved: Sequence[ComponentRun], inputs: Inputs) -> str | None:
    """Return a message if a limit covers the new version `alone` but not both versions. Return None otherwise."""
    request, plans = inputs.request, (alone, interleaved)
    if request.max_calls is not None:
        calls, both_calls = (sum(run.manifest.calls for run in runs) for runs in plans)
        if calls <= request.max_calls < both_calls:
            covered = f"covers the new version (at most {calls:,} calls), but not both versions ({both_calls:,})"
            return f"--max-calls {request.max_calls:,} {covered}; raise it to compare them in one run"
    if request.max_cost is not None:  # a limit of the cost requires prices
        cost, both_cost = (sum(c or 0.0 for c in max_remaining_costs(runs, inputs).values()) for runs in plans)
        if cost <= request.max_cost < both_cost:
            covered = f"covers the new version (at most ${cost:,.2f}), but not both versions (${both_cost:,.2f})"
            return f"--max-cost {request.max_cost:g} {covered}; raise it to compare them in one run"
    return None


def max_remaining_costs(runs: Iterable[ComponentRun], inputs: Inputs) -> dict[str, float | None]:
    """Return the maximum cost in USD of the remaining calls, by id of model or judge (None: no price).

    The cost of a judge includes the calls that are already made. Runs of models without a key are left out.
    """
    costs: dict[str, list[float | None]] = {}
    for run in runs:
        if missing_key(run.model, inputs.kinds[run.model.provider], inputs.keys):
            continue
        manifest, model = run.manifest, run.model
        cases = [case for case in inputs.cases if case.id in manifest.cases]
        answered = Counter(call.case_id for call in journal.answered_calls(run.folder))
        price, batch = price_of(model, inputs.kinds[model.provider]), manifest.transport == "batch"
        for case_id, size in input_sizes(run.component, cases).items():
            model_size = size.of_model(model, inputs.kinds[model.provider])
            max_cost = max_call_cost(model, price, model_size.maximum, batch=batch)
            remaining = manifest.replicates - answered[case_id]
            costs.setdefault(model.id, []).append(None if max_cost is None else remaining * max_cost)
        if (judge := inputs.judge) is not None:
            judge_calls = judge_estimate(judge, inputs.kinds[judge.provider], cases, model, manifest.replicates)
            costs.setdefault(judge.id, []).append(judge_calls.cost_upper_usd)
    return {model_id: total_or_none(parts) for model_id, parts in costs.items()}


def _with_unfinished_runs(
    planned: Sequence[ComponentRun], inputs: Inputs, recorded: Sequence[RecordedRun]
) -> tuple[list[ComponentRun], list[Finished]]:
    """Replace planned runs by unfinished runs with the same inputs. Return (runs to call, runs already recorded).

    An unfinished run with fewer calls than planned is extended to the planned cases and replicates.
    """
    request = inputs.request
    runs = [run for run in planned if not missing_key(run.model, inputs.kinds[run.model.provider], inputs.keys)]
    earlier = {run.manifest.run_id: run for run in _earlier_runs(runs, inputs)}
    for invocation in sorted({invocation_of(name) for name in earlier}, reverse=True):
        names = [invocation + run.manifest.run_id.removeprefix(invocation_of(run.manifest.run_id)) for run in runs]
        unfinished = [earlier[name] for name in names if name in earlier]
        has_same_plan = len(unfinished) == len(runs) and all(
            earlier_run.manifest.has_same_plan(run.manifest) for earlier_run, run in zip(unfinished, runs, strict=True)
        )
        if has_same_plan and any(_is_continuable(earlier_run, recorded) for earlier_run in unfinished):
            print(f"continuing the unfinished run {invocation} {_NO_REUSE_HINT}", file=sys.stderr)
            request = replace(request, models=tuple(run.model.id for run in runs))
            return _resume_runs(replace(inputs, request=request), invocation)
    continuable = [run for run in earlier.values() if _is_continuable(run, recorded)]
    runs_or_parts = []
    for run in planned:
        parts = [part for part in continuable if part.manifest.is_part_of(run.manifest)]
        runs_or_parts.append(_extended(parts[-1], run) if parts else run)
    return runs_or_parts, []


def _extended(unfinished: Run, run: ComponentRun) -> ComponentRun:
    names = ("cases", "replicates", "selection", "not_applicable")
    manifest = unfinished.manifest.model_copy(update={name: getattr(run.manifest, name) for name in names})
    journal.create_run(unfinished.folder, manifest)
    size = f"{counted(len(manifest.cases), 'case')} × {counted(manifest.replicates, 'replicate')}"
    print(f"continuing the unfinished run {manifest.run_id} with {size} {_NO_REUSE_HINT}", file=sys.stderr)
    return replace(run, manifest=manifest, folder=unfinished.folder)


def _changed(run: ComponentRun, **values: Any) -> ComponentRun:
    return replace(run, manifest=run.manifest.model_copy(update=values))


def _earlier_runs(runs: Sequence[Run], inputs: Inputs) -> Iterator[Run]:
    """Yield the saved runs with the same inputs as one of `runs`, except runs that a process is making now.

    If the request names a seed, yield only runs with that seed. Runs of the provider `replay` are skipped.
    """
    models = {run.model.id: run.model for run in runs if run.model.provider != "replay"}  # replay is free
    for folder in sorted(path.parent for path in inputs.results_dir.glob(f"*/{journal.MANIFEST}")):
        with suppress(RunError):  # skips unreadable folders
            manifest = journal.read_component_manifest(folder)
            is_same_plan = manifest.model_id in models and any(manifest.has_same_inputs(run.manifest) for run in runs)
            has_name_and_seed = manifest.run_id == folder.name and inputs.request.seed in (None, manifest.seed)
            if is_same_plan and has_name_and_seed and try_lock(folder / ".lock") is not None:  # released at once
                yield Run(model=models[manifest.model_id], manifest=manifest, folder=folder)


def _is_continuable(run: Run, recorded: Sequence[RecordedRun]) -> bool:
    rows = (row for row in recorded if (row.model_id, row.scenario) == (run.model.id, run.manifest.scenario))
    newest = max((invocation_of(row.run_id) for row in rows), default="")
    return newest <= invocation_of(run.manifest.run_id) and journal.is_unfinished(run.folder)


def _resume_runs(inputs: Inputs, name: str) -> tuple[list[ComponentRun], list[Finished]]:
    component = inputs.component
    unfinished, finished = [], []
    for run in _saved_runs(inputs, name):
        path = component.records_dir / f"{run.manifest.run_id}.json"
        if not path.exists():
            unfinished.append(run)
            continue
        record = read_record(path)
        complete = " and complete" * record.complete
        if record.has_row:  # a crash may have prevented its row
            append_rows(component.leaderboard_path, component.name, [record.row()])
        print(f"{run.manifest.run_id} is recorded{complete}: there is nothing to resume", file=sys.stderr)
        finished.append(Finished(run=run, record=record, record_path=path))
    return unfinished, finished


def _saved_runs(inputs: Inputs, name: str) -> list[ComponentRun]:
    request = inputs.request
    cases = {case.id: case for case in inputs.cases}
    models = {model.id: model for model in inputs.models}
    folders = _with_interleaved_runs(journal.find_runs(inputs.results_dir, name, inputs.component.name))
    for folder, manifest in folders:
        if manifest.scenario != request.scenario:
            option = f"--scenario {manifest.scenario}" if manifest.scenario else "--scenario"
            option = "--no-prompt" if (manifest.scenario or request.scenario) == SCHEMA_ALONE else option
            started = f"{'with' if manifest.scenario else 'without'} {option}"
            raise RunError(f"cannot resume {folder}: the run was started {started}; resume it {started}")
    selected = [(folder, manifest) for folder, manifest in folders if not request.models or manifest.model_id in models]
    if not selected:
        raise RunError(f"the runs to resume are not of --model {' '.join(request.models)}; remove --model")
    runs = []
    for folder, manifest in selected:
        component = _component_of(manifest, inputs)
        run = journal.saved_run(folder, component, models)
        if changes := journal.changes_since(run, component, cases):
            raise RunError(f"cannot resume {folder}; changed since it began: {', '.join(changes)}; start a new run")
        runs.append(run)
    _check_planned_options(runs, request)
    return runs


def _with_interleaved_runs(folders: Sequence[tuple[Path, Manifest]]) -> list[tuple[Path, Manifest]]:
    manifests = dict(folders)
    for folder, manifest in folders:
        if manifest.beside is not None:
            interleaved = folder.parent / manifest.beside
            manifests.setdefault(interleaved, journal.read_manifest(interleaved))
    return list(manifests.items())


def _check_planned_options(runs: Sequence[Run], request: EvaluationRequest) -> None:
    for run in runs:
        manifest = run.manifest
        for flag, value, planned in (
            ("--replicates", None if manifest.role == "baseline" else request.replicates, manifest.replicates),
            ("--seed", request.seed, manifest.seed),
            ("--shard", request.shard, manifest.shard),
            ("--case", request.cases or None, manifest.selection or None),
            ("--with-baseline", request.with_baseline or None, manifest.beside is not None),
            ("--failing", request.failing or None, manifest.reruns_failing),
            ("--rerun-baseline", request.rerun_baseline or None, manifest.role == "again"),
            ("--draft", request.draft or None, manifest.draft),
            ("--batch", request.batch or None, manifest.transport == "batch"),
        ):
            if value is not None and value != planned:
                option = flag if value is True else f"{flag} {_option_text(value)}"
                was_set = value is not True and planned is not None
                original = f"with {flag} {_option_text(planned)}" if was_set else f"without {flag}"
                raise RunError(f"cannot resume {run.folder} with {option}: the run was planned {original}; omit {flag}")


def _option_text(value: object) -> str:
    return " ".join(value) if isinstance(value, tuple) else str(value)


def find_baseline(component: Component, model: Model, archive: Archive, policy: Policy) -> RecordedRun | None:
    """Return the run that a new run of the component would be compared with. Return None if there is none."""
    return default_baseline(_future_run(component, model), archive, policy)


def fresh_seed(archive: Archive, model_id: str, versions: Iterable[str], first: int) -> int:
    """Return the lowest seed ≥ `first` that the model's complete runs of these versions did not use."""
    # a provider that honours seeds would repeat the outputs of a used seed
    names = set(versions)
    runs = (entry for entry in archive.runs_of(model_id) if entry.complete and entry.version in names)
    used = {archive.record(entry).seed for entry in runs}
    return next(seed for seed in count(first) if seed not in used)


def _future_run(component: Component, model: Model) -> RecordedRun:
    return RecordedRun(
        run_id="planned",
        skill_version=component.version,
        model_id=model.id,
        scenario=component.scenario,
        complete=False,
        timestamp="",
        digests=short_digests({**journal.input_digests(component, model), "datasets": component.digests["datasets"]}),
        scorer_version=SCORER_VERSION,
    )


def _design_runs(plain: Sequence[ComponentRun], inputs: Inputs) -> list[ComponentRun]:
    request, archive = inputs.request, Archive(inputs.component)
    option = "--failing" if request.failing else "--with-baseline"
    reason = "there is no complete record of a lower version as its baseline"
    if request.rerun_baseline:
        option, reason = "--rerun-baseline", "there is no complete record yet"
    runs: list[ComponentRun] = []
    for run in plain:
        design = _rerun if request.rerun_baseline else _run_with_baseline
        model_runs = design(run, inputs, archive)
        if not model_runs:
            print(f"warning: skipping {run.model.id}: {reason}", file=sys.stderr)
        runs += model_runs
    if not runs:
        name = inputs.component.name
        raise RunError(f"no model of '{name}' can run: {reason}; evaluate it without {option} first")
    return runs


def _failing_runs(plain: Sequence[ComponentRun], inputs: Inputs) -> list[ComponentRun]:
    archive, component, failing = Archive(inputs.component), inputs.component, []
    for run in plain:
        planned = _future_run(component, run.model)
        runs = [entry for entry in runs_like(archive.entries, planned) if entry.version == planned.version]
        newest = next((entry for entry in runs if entry.prompt == planned.prompt), None)
        if newest is None:
            message = f"there is no complete record of {component.version} with this prompt and {run.model.id}"
            raise RunError(f"{message}; evaluate '{component.name}' without --failing first")
        record = archive.record(newest)
        failed = {case.case_id for case in record.per_case if not all(case.passed(record.primary_metric))}
        cases = {case_id: digest for case_id, digest in run.manifest.cases.items() if case_id in failed}
        print(f"{run.model.id}: {listed(list(cases)) or 'no case'} failed in {newest.run_id}", file=sys.stderr)
        if cases:
            failing.append(_changed(run, cases=cases, selection=tuple(cases)))
    return failing


def _interleaved_runs(plain: Sequence[ComponentRun], inputs: Inputs) -> list[ComponentRun]:
    archive = Archive(inputs.component)
    runs: list[ComponentRun] = []
    errors: dict[str, list[str]] = {}
    for run in plain:
        pair: list[ComponentRun] = []
        try:
            if run.model.provider != "replay":  # replay returns the same outputs for every prompt
                pair = _run_with_baseline(run, inputs, archive)
        except SkillEvaluatorError as problem:
            errors.setdefault(str(problem), []).append(run.model.id)
        runs += pair or [run]
    for reason, ids in errors.items():
        verb = "is called without its" if len(ids) == 1 else "are called without their"
        print(f"warning: {listed(ids)} {verb} baseline: {reason}", file=sys.stderr)
    return runs


def _component_of(manifest: Manifest, inputs: Inputs) -> Component:
    if manifest.role is None:
        return inputs.component
    component, _ = component_with(_component_on_disk(inputs), manifest, manifest.prompt_commit)
    return apply_scenario(component, inputs.request.config, manifest.scenario)


def _component_on_disk(inputs: Inputs) -> Component:
    request = inputs.request
    return load_component(request.components, request.skill, inputs.settings.limits, request.fixtures)


def _run_with_baseline(run: ComponentRun, inputs: Inputs, archive: Archive) -> list[ComponentRun]:
    """Return the run and its interleaved baseline. Return [] if no run is recorded that can be its baseline."""
    planned = inputs.request.planned
    commit = planned.baseline_commit if planned else None
    if commit is not None:
        component, commit = component_at(_component_on_disk(inputs), commit)
    else:
        entry = find_baseline(inputs.component, run.model, archive, inputs.settings.policy)
        if entry is None:
            return []
        record = archive.record(entry)
        component, commit = component_with(_component_on_disk(inputs), record, record.git.prompt_commit)
    run = _with_fresh_seed(run, inputs, archive, component.version, inputs.component.version)
    baseline = _run_of_version(run, component, "baseline", commit, inputs)
    replicates = replicates_of_baseline(run.manifest.replicates)
    return [
        _changed(run, beside=baseline.manifest.run_id),
        _changed(baseline, beside=run.manifest.run_id, replicates=replicates),
    ]


def _rerun(run: ComponentRun, inputs: Inputs, archive: Archive) -> list[ComponentRun]:
    """Return a new run of the highest recorded version. Return [] if no version is recorded."""
    recorded = runs_like(archive.entries, _future_run(inputs.component, run.model))
    if not recorded:
        return []
    entry = max(recorded, key=lambda entry: entry.version_order)
    record = archive.record(entry)
    component, commit = component_with(_component_on_disk(inputs), record, record.git.prompt_commit)
    run = _with_fresh_seed(run, inputs, archive, entry.version)
    return [_run_of_version(run, component, "again", commit, inputs)]


def _with_fresh_seed(run: ComponentRun, inputs: Inputs, archive: Archive, *versions: str) -> ComponentRun:
    if inputs.request.seed is not None:
        return run
    return _changed(run, seed=fresh_seed(archive, run.model.id, versions, run.manifest.seed))


def _run_of_version(
    run: ComponentRun, component: Component, role: Role, prompt_commit: str | None, inputs: Inputs
) -> ComponentRun:
    """Return a run of the version `component` with the model, cases and invocation of `run`."""
    refuse_unfilled(component, inputs.cases, inputs.component)
    component = apply_scenario(component, inputs.request.config, inputs.request.scenario)
    invocation, mark = invocation_of(run.manifest.run_id), BASELINE if role == "baseline" else ""
    run_id = journal.run_id_of(invocation, component.name, run.model.id, inputs.shard, mark)
    changed = _changed(
        run,
        run_id=run_id,
        skill_version=component.version,
        scenario=component.scenario,
        inputs=component.prompt.inputs,
        digests=journal.input_digests(component, run.model),
        role=role,
        prompt_commit=prompt_commit,
    )
    return replace(changed, folder=run.folder.parent / run_id, component=component)
