"""Everything that `evaluate` reads, checked before any call."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from skill_evaluator.commands.evaluate_options import EvaluateOptions
from skill_evaluator.commands.options import refuse_submit_only
from skill_evaluator.errors import RunError
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import Model, Settings, select_models
from skill_evaluator.library.scenarios import SCHEMA_ALONE, apply_scenario
from skill_evaluator.providers import Configuration, Keys, Kinds, read_configuration, refuse_unbatched
from skill_evaluator.records.leaderboard import read_board, with_rows
from skill_evaluator.runner.prices import refuse_unpriced
from skill_evaluator.runner.runs import is_invocation
from skill_evaluator.runner.schedule import Shard, refuse_amounts

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Everything an evaluation reads, checked."""

    component: Component
    cases: tuple[Case, ...]
    models: tuple[Model, ...]
    kinds: Kinds
    keys: Keys
    settings: Settings
    shard: Shard | None
    results_dir: Path


def as_asked(options: EvaluateOptions) -> EvaluateOptions:
    """Return the options with --bare as the scenario that it is; raise RunError where it does not go with others."""
    if not options.bare:
        return options
    if options.scenario is not None or options.aa or options.with_baseline or options.neutral is not None:
        raise RunError(
            "--bare leaves the prompt out: it does not go with --scenario, --with-baseline, --aa or --neutral"
        )
    return replace(options, bare=False, scenario=SCHEMA_ALONE)


def read_inputs(options: EvaluateOptions, configuration: Configuration | None = None) -> Inputs:
    """Read settings, component, cases and models, and see that the leaderboard can be added to; raise for any fault.

    Who evaluates several times reads the `configuration` once, since that takes the keys out of the environment.
    """
    refuse_amounts(
        {"--replicates": options.replicates, "--concurrency": options.concurrency}, options.max_calls, options.max_cost
    )
    if options.resume is not None and (not options.resume or options.dry_run):
        raise RunError("--resume takes a run id, a run folder or nothing, and does not go with --dry-run")
    if options.top_up is not None and (options.resume or options.adaptive or options.dry_run):
        raise RunError("--top-up asks all that a run left out: it does not go with --resume, --adaptive or --dry-run")
    if options.invocation is not None and not is_invocation(options.invocation):
        raise RunError(f"--invocation '{options.invocation}' is not <time>-<token>, such as 20261121T093000Z-3fa9c1")
    if options.adaptive and (options.shard is not None or options.cases):
        raise RunError("--adaptive needs all cases, for a verdict is on them: it does not go with --shard or --case")
    _refuse_designs(options)
    _refuse_batches(options)
    configuration = configuration or read_configuration(options.config)
    component = apply_scenario(
        load_component(options.components, options.skill, configuration.settings.limits, options.fixtures),
        options.config,
        options.scenario,
    )
    patterns = () if options.resume or options.top_up else options.cases  # a run that is there remembers its cases
    cases = load_cases(component, options.fixtures, patterns)
    with_rows(read_board(component.leaderboard_path), component.leaderboard_path, component.name, ())
    models = select_models(configuration.models, options.models)
    if options.batch:
        refuse_unbatched(models)
    if options.max_cost is not None:
        refuse_unpriced(models, configuration.kinds)
    return Inputs(
        component=component,
        cases=cases,
        models=models,
        kinds=configuration.kinds,
        keys=configuration.keys,
        settings=configuration.settings,
        shard=Shard.parse(options.shard) if options.shard else None,
        results_dir=options.results or component.results_dir,
    )


def _refuse_batches(options: EvaluateOptions) -> None:
    """Raise RunError for options that batches do not go with."""
    refuse_submit_only(submit_only=options.submit_only, batch=options.batch, resume=options.resume)
    if options.batch and options.adaptive:
        raise RunError("--adaptive looks between replicates, and --batch asks all of them at once; give one of them")
    if options.batch and options.top_up:
        raise RunError("--top-up goes on as its run was begun, call by call; leave --batch out")


def _refuse_designs(options: EvaluateOptions) -> None:
    """Raise RunError for designs that do not go with each other, or with another option."""
    designs = {
        "--recorded": options.recorded,
        "--with-baseline": options.with_baseline,
        "--aa": options.aa,
        "--neutral": options.neutral is not None,
    }
    given = [flag for flag, is_given in designs.items() if is_given]
    if len(given) > 1:
        raise RunError(f"{' and '.join(given)} ask different questions; give one of them")
    others = {
        "--adaptive": options.adaptive,
        "--case": bool(options.cases),
    }
    clashing = [flag for flag, is_given in others.items() if is_given]
    if given and clashing and not options.recorded:
        raise RunError(f"{given[0]} does not go with {clashing[0]}: it asks all cases, and as often as is planned")
    if options.draft and (options.aa or options.neutral is not None):
        raise RunError(f"--draft measures the prompt as it is, and {given[0]} a recorded version; give one of them")
    if options.baseline_commit is not None and not options.with_baseline:
        raise RunError("--baseline-commit says which prompt --with-baseline asks: give both")
    if options.neutral is not None and options.scenario is not None:
        raise RunError("--neutral does not go with --scenario: it draws the scenarios itself")
