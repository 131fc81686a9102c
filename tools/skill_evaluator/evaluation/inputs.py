"""Everything that `evaluate` reads, checked before any call."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from skill_evaluator.errors import ConfigError, RunError
from skill_evaluator.evaluation.request import EvaluationRequest
from skill_evaluator.judges.calibration.results import read_calibration  # for the few that have a judge
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import Model, Settings, select_models
from skill_evaluator.library.scenarios import SCHEMA_ALONE, apply_scenario
from skill_evaluator.providers import Configuration, asking, read_configuration, refuse_unbatched
from skill_evaluator.records.archive import check_leaderboard
from skill_evaluator.repository import Repository, tolerating_git
from skill_evaluator.runner.prices import refuse_unpriced
from skill_evaluator.runner.schedule import Shard, refuse_amounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs(Configuration):
    """Everything an evaluation reads, checked. `models`: those to be asked now; `judge`: who judges sentences."""

    component: Component
    cases: tuple[Case, ...]
    shard: Shard | None
    results_dir: Path
    judge: Model | None = None


def expand_bare(request: EvaluationRequest) -> EvaluationRequest:
    """Return the options with --no-prompt as the scenario that it is; raise RunError if that clashes."""
    if not request.no_prompt:
        return request
    if request.scenario is not None or request.rerun_baseline or request.with_baseline:
        raise RunError("--no-prompt cannot be combined with --scenario, --with-baseline or --rerun-baseline")
    return replace(request, no_prompt=False, scenario=SCHEMA_ALONE)


def read_inputs(request: EvaluationRequest, configuration: Configuration | None = None) -> Inputs:
    """Read settings, component, cases and models, and see that the leaderboard can be added to; raise for any fault.

    Pass `configuration` when evaluating repeatedly: reading it removes the keys from the environment.
    """
    refuse_amounts(
        {"--replicates": request.replicates, "--concurrency": request.concurrency}, request.max_calls, request.max_cost
    )
    if request.resumed is not None and (request.dry_run or request.no_reuse):
        raise RunError("--resume and --run cannot be combined with --dry-run or --no-reuse")
    _refuse_designs(request)
    configuration = configuration or read_configuration(request.config)
    component = apply_scenario(
        load_component(request.components, request.skill, configuration.settings.limits, request.fixtures),
        request.config,
        request.scenario,
    )
    asked = asking(configuration, component)
    with tolerating_git():  # before a call is paid for
        Repository(component.files[0])
    patterns = () if request.resumed else request.cases  # a run that is there remembers its cases
    cases = load_cases(component, request.fixtures, patterns)
    check_leaderboard(component)
    models = select_models(asked.models, request.models)
    if request.batch:
        refuse_unbatched(models)
    judge, models = judge_of(component, cases, models, configuration.models, configuration.settings)
    if judge is not None:
        read_calibration(request.config, configuration.settings)
    if request.max_cost is not None:
        refuse_unpriced([*models, *([judge] if judge else [])], asked.kinds)
    return Inputs(
        component=component,
        cases=cases,
        models=models,
        kinds=asked.kinds,
        keys=asked.keys,
        settings=asked.settings,
        shard=Shard.parse(request.shard) if request.shard else None,
        results_dir=request.results or component.results_dir,
        judge=judge,
    )


def _refuse_designs(request: EvaluationRequest) -> None:
    """Raise RunError for designs or options that cannot be combined."""
    designs = {
        "--recorded-baseline": request.recorded_baseline,
        "--with-baseline": request.with_baseline,
        "--failing": request.failing,
        "--rerun-baseline": request.rerun_baseline,
    }
    given = [flag for flag, is_given in designs.items() if is_given]
    if len(given) > 1:
        raise RunError(f"{' and '.join(given)} cannot be combined; use one of them")
    others = {
        "--case": bool(request.cases),
        "--shard": request.failing and request.shard is not None,
        "--scenario": request.failing and request.scenario is not None,
    }
    clashing = [flag for flag, is_given in others.items() if is_given]
    cases = "the cases that failed" if request.failing else "all cases"
    if given and clashing and not request.recorded_baseline:
        raise RunError(f"{given[0]} cannot be combined with {clashing[0]}: it asks {cases}, as often as planned")
    if request.draft and request.rerun_baseline:
        raise RunError(f"--draft measures the prompt as it is, and {given[0]} a recorded version; use one of them")


def judge_of(
    component: Component, cases: Iterable[Case], asked: tuple[Model, ...], models: tuple[Model, ...], settings: Settings
) -> tuple[Model | None, tuple[Model, ...]]:
    """Return the judge of a component's sentence checks, or None if it has none, and the models to call.

    If all models are chosen, the judge is removed from them. Raise ConfigError if no judge is named, or if a model
    would judge itself and the component does not declare that.
    """
    if not any(case.sentences for case in cases):
        return None, asked
    name = component.name
    named = settings.policy.judge_of(name)
    chosen = (named or settings.policy.judge).model
    if chosen is None:
        raise ConfigError(
            f"'{name}' has checks with `expect`, and no judge: name one as policy.judge.model in settings.yaml, or as "
            f"policy.components.{name}.judge"
        )
    (judge,) = select_models(models, (chosen,))
    own = [model for model in asked if (model.provider, model.api_name) == (judge.provider, judge.api_name)]
    if named is not None or not own:
        return judge, asked
    if len(own) == len(asked) or len(asked) < len(models):
        raise ConfigError(
            f"{judge.id} would judge its own answers as {own[0].id}: name a different judge, or it as "
            f"policy.components.{name}.judge in settings.yaml if that is meant"
        )
    print(f"{judge.id} judges the answers of {name}, and is not asked for its own", file=sys.stderr)
    return judge, tuple(model for model in asked if model not in own)
