"""What an evaluation is asked and what it reads: the command line, typed, and every input, checked before any call."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from skill_evaluator.display.sheets import Format
from skill_evaluator.errors import RunError
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import Model, Settings, load_models, load_settings, select_models
from skill_evaluator.library.scenarios import apply_scenario
from skill_evaluator.providers import Kinds, kinds_of
from skill_evaluator.records.leaderboard import load_leaderboard
from skill_evaluator.runner.asking import refuse_amounts, refuse_unpriced
from skill_evaluator.runner.runs import is_invocation
from skill_evaluator.runner.schedule import Shard


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateOptions:
    """The command line, typed."""

    skill: str
    replicates: int | None = None
    models: tuple[str, ...] = ()
    dry_run: bool = False
    components: Path = Path("components")
    fixtures: Path | None = None
    config: Path = Path(".evaluator")
    cases: tuple[str, ...] = ()
    concurrency: int | None = None
    seed: int | None = None
    resume: str | None = None
    max_cost: float | None = None
    max_calls: int | None = None
    shard: str | None = None
    invocation: str | None = None
    scenario: str | None = None
    results: Path | None = None
    leaderboard: bool = True
    adaptive: bool = False
    format: Format = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Everything an evaluation reads, checked."""

    component: Component
    cases: tuple[Case, ...]
    models: tuple[Model, ...]
    kinds: Kinds
    settings: Settings
    shard: Shard | None


def read_inputs(options: EvaluateOptions) -> Inputs:
    """Settings, component, cases and models, and a leaderboard that can be added to: all errors a user can make."""
    refuse_amounts(
        {"--replicates": options.replicates, "--concurrency": options.concurrency}, options.max_calls, options.max_cost
    )
    if options.resume is not None and (not options.resume or options.dry_run):
        raise RunError("--resume takes a run id, a run folder or nothing, and does not go with --dry-run")
    if options.invocation is not None and not is_invocation(options.invocation):
        raise RunError(f"--invocation '{options.invocation}' is not <time>-<token>, such as 20261121T093000Z-3fa9c1")
    if options.adaptive and (options.shard is not None or options.cases):
        raise RunError("--adaptive needs all cases, for a verdict is on them: it does not go with --shard or --case")
    settings = load_settings(options.config)
    models = load_models(options.config)
    kinds = kinds_of(models, str(options.config / "models.yaml"))
    component = apply_scenario(load_component(options.components, options.skill), options.config, options.scenario)
    patterns = () if options.resume is not None else options.cases  # a resumed run remembers its cases
    cases = load_cases(component, options.fixtures, patterns)
    load_leaderboard(component.leaderboard_path, component.name)
    chosen = select_models(models, options.models)
    if options.max_cost is not None:
        refuse_unpriced(chosen, kinds)
    return Inputs(
        component=component,
        cases=cases,
        models=chosen,
        kinds=kinds,
        settings=settings,
        shard=Shard.parse(options.shard) if options.shard else None,
    )


def words_of(flags: Iterable[tuple[str, object, object]]) -> list[str]:
    """A command line that says again what was given: of (flag, value, default) those that are not the default.

    >>> words_of([("--config", Path("elsewhere"), Path(".evaluator")), ("--seed", None, None)])
    ['--config', 'elsewhere']
    """
    return [word for flag, value, default in flags if value != default for word in (flag, str(value))]
