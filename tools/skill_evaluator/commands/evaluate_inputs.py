"""The options of `evaluate`, everything it reads, checked before any call, and the runs that follow from both."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from skill_evaluator.commands.options import (
    COMPONENTS,
    CONFIG,
    Components,
    Concurrency,
    Config,
    Fixtures,
    Form,
    MaxCalls,
    MaxCost,
    Skill,
)
from skill_evaluator.errors import RunError
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import Model, Settings, select_models
from skill_evaluator.library.scenarios import apply_scenario
from skill_evaluator.providers import Kinds, read_configuration
from skill_evaluator.records.leaderboard import append_rows, load_leaderboard
from skill_evaluator.records.record import read_record
from skill_evaluator.runner.execute import refuse_amounts, refuse_unpriced
from skill_evaluator.runner.journal import find_runs
from skill_evaluator.runner.runs import Run, is_invocation, new_runs, resumed_run
from skill_evaluator.runner.schedule import Shard
from skill_evaluator.scoring.recording import Finished


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateOptions:
    """The options of `evaluate`."""

    skill: Skill
    replicates: Annotated[
        int | None, typer.Option("--replicates", "-n", help="Answers per case and model; default 10 (settings.yaml).")
    ] = None
    models: Annotated[
        tuple[str, ...],
        typer.Option("--model", "-m", metavar="ID", help="Model of models.yaml; repeatable; default: all with a key."),
    ] = ()
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, make no call, print the cost at most.")
    ] = False
    components: Components = COMPONENTS
    fixtures: Fixtures = None
    config: Config = CONFIG
    cases: Annotated[tuple[str, ...], typer.Option("--case", metavar="GLOB", help="Only these cases; repeatable.")] = ()
    concurrency: Concurrency = None
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of the replicates' seeds; default 0.")] = None
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="[RUN]",
            help="Go on with an unfinished run (default: the newest): asks only what has no answer.",
        ),
    ] = None
    max_cost: MaxCost = None
    max_calls: MaxCalls = None
    shard: Annotated[
        str | None, typer.Option("--shard", metavar="I/N", help="Only the I-th of N parts of the cases.")
    ] = None
    scenario: Annotated[
        str | None,
        typer.Option("--scenario", metavar="NAME", help="Put the prompt into .evaluator/scenarios/NAME.md."),
    ] = None
    invocation: Annotated[
        str | None,
        typer.Option("--invocation", metavar="ID", help="What the run ids begin with; plan gives one to all its jobs."),
    ] = None
    adaptive: Annotated[
        bool,
        typer.Option("--adaptive", help="Stop asking a model once its verdict against a lower version is settled."),
    ] = False
    results: Annotated[
        Path | None, typer.Option("--results", metavar="DIR", help="Where run folders go; default: in the component.")
    ] = None
    leaderboard: Annotated[bool, typer.Option(help="Append the record to the component's leaderboard.json.")] = True
    format: Form = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Everything an evaluation reads, checked."""

    component: Component
    cases: tuple[Case, ...]
    models: tuple[Model, ...]
    kinds: Kinds
    settings: Settings
    shard: Shard | None
    results_dir: Path


def read_inputs(options: EvaluateOptions) -> Inputs:
    """Read settings, component, cases and models, and see that the leaderboard can be added to; raise for any fault."""
    refuse_amounts(
        {"--replicates": options.replicates, "--concurrency": options.concurrency}, options.max_calls, options.max_cost
    )
    if options.resume is not None and (not options.resume or options.dry_run):
        raise RunError("--resume takes a run id, a run folder or nothing, and does not go with --dry-run")
    if options.invocation is not None and not is_invocation(options.invocation):
        raise RunError(f"--invocation '{options.invocation}' is not <time>-<token>, such as 20261121T093000Z-3fa9c1")
    if options.adaptive and (options.shard is not None or options.cases):
        raise RunError("--adaptive needs all cases, for a verdict is on them: it does not go with --shard or --case")
    configuration = read_configuration(options.config)
    component = apply_scenario(load_component(options.components, options.skill), options.config, options.scenario)
    patterns = () if options.resume is not None else options.cases  # a resumed run remembers its cases
    cases = load_cases(component, options.fixtures, patterns)
    load_leaderboard(component.leaderboard_path, component.name)
    models = select_models(configuration.models, options.models)
    if options.max_cost is not None:
        refuse_unpriced(models, configuration.kinds)
    return Inputs(
        component=component,
        cases=cases,
        models=models,
        kinds=configuration.kinds,
        settings=configuration.settings,
        shard=Shard.parse(options.shard) if options.shard else None,
        results_dir=options.results or component.results_dir,
    )


def plan_runs(inputs: Inputs, options: EvaluateOptions) -> tuple[list[Run], list[Finished]]:
    """Return the runs to ask; with `--resume` also those that are recorded already and stay as they are."""
    if options.resume is not None:
        return _resume_runs(inputs, options, options.resume)
    runs = new_runs(
        inputs.component,
        inputs.cases,
        inputs.models,
        inputs.results_dir,
        replicates=options.replicates or inputs.settings.replicates,
        seed=inputs.settings.seed if options.seed is None else options.seed,
        shard=inputs.shard,
        selection=options.cases,
        invocation=options.invocation,
        adaptive=options.adaptive,
    )
    return runs, []


def record_path(run: Run, component: Component) -> Path:
    """Return where the record of a complete run is kept."""
    return component.records_dir / f"{run.manifest.run_id}.json"


def _resume_runs(inputs: Inputs, options: EvaluateOptions, resume: str) -> tuple[list[Run], list[Finished]]:
    """Find the runs that `--resume` means, each planned as the options say; raise RunError."""
    component = inputs.component
    cases = {case.id: case for case in inputs.cases}
    models = {model.id: model for model in inputs.models}
    folders = find_runs(inputs.results_dir, resume, component.name)
    for folder, manifest in folders:
        if manifest.scenario != options.scenario:
            how = f"with --scenario {manifest.scenario}" if manifest.scenario else "without --scenario"
            raise RunError(f"cannot resume {folder} like this: it was begun {how}")
    runs = [
        resumed_run(folder, component, cases, models)
        for folder, manifest in folders
        if not options.models or manifest.model_id in models
    ]
    if not runs:
        raise RunError(f"no run of --model {' '.join(options.models)} among those to resume")
    for run in runs:
        for flag, given, planned in (
            ("--replicates", options.replicates, run.manifest.replicates),
            ("--seed", options.seed, run.manifest.seed),
            ("--shard", options.shard, run.manifest.shard),
            ("--case", options.cases or None, run.manifest.selection),
        ):
            if given is not None and given != planned:
                was = f"with {_wording(planned)}" if planned not in (None, ()) else "without it"
                raise RunError(f"cannot resume {run.folder} with {flag} {_wording(given)}: it was planned {was}")
        if options.adaptive and not run.manifest.adaptive:
            raise RunError(f"cannot resume {run.folder} with --adaptive: it was planned without it")
    unfinished = [run for run in runs if not record_path(run, component).exists()]
    finished = []
    for run in runs:
        if run not in unfinished:
            record = read_record(record_path(run, component))
            append_rows(component.leaderboard_path, component.name, [record.row()])  # a crash may have come before it
            print(f"{run.manifest.run_id} is recorded and complete: there is nothing to resume", file=sys.stderr)
            finished.append(Finished(record=record, record_path=record_path(run, component), folder=run.folder))
    return unfinished, finished


def _wording(value: object) -> str:
    return " ".join(value) if isinstance(value, tuple) else str(value)
