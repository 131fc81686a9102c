"""Everything that `evaluate` reads, checked before any call."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from skill_evaluator.errors import ConfigError, RunError
from skill_evaluator.evaluation.request import EvaluationRequest
from skill_evaluator.judges.calibration.results import read_calibration
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import Model, Settings, select_models
from skill_evaluator.library.scenarios import SCHEMA_ALONE, apply_scenario
from skill_evaluator.providers import Configuration, read_configuration, refuse_unbatched, with_program
from skill_evaluator.records.archive import check_leaderboard
from skill_evaluator.repository import Repository, tolerating_git
from skill_evaluator.runner.prices import refuse_unpriced
from skill_evaluator.runner.schedule import Shard, refuse_amounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs(Configuration):
    """The request of an evaluation, and everything that it reads, checked; `judge` decides `expect` checks."""

    request: EvaluationRequest
    component: Component
    cases: tuple[Case, ...]
    shard: Shard | None
    results_dir: Path
    judge: Model | None = None


def read_inputs(request: EvaluationRequest, configuration: Configuration | None = None) -> Inputs:
    """Read settings, component, cases and models, and check the leaderboard. Raise SkillEvaluatorError if invalid.

    Pass `configuration` to evaluate repeatedly without reading models and keys again.
    """
    request = _with_scenario(request)
    amounts = {"--replicates": request.replicates, "--concurrency": request.concurrency}
    refuse_amounts(amounts, request.max_calls, request.max_cost)
    if request.resumed is not None and (request.dry_run or request.no_reuse):
        raise RunError("--resume and --run cannot be combined with --dry-run or --no-reuse")
    _refuse_designs(request)
    configuration = configuration or read_configuration(request.config)
    component = apply_scenario(
        load_component(request.components, request.skill, configuration.settings.limits, request.fixtures),
        request.config,
        request.scenario,
    )
    configuration_of_component = with_program(configuration, component)
    with tolerating_git():  # fails before any paid call
        Repository(component.files[0])
    patterns = () if request.resumed else request.cases  # a resumed run has its cases in its manifest
    cases = load_cases(component, request.fixtures, patterns)
    check_leaderboard(component)
    models = select_models(configuration_of_component.models, request.models)
    if request.batch:
        refuse_unbatched(models)
    judge, models = judge_of(component, cases, models, configuration.models, configuration.settings)
    if judge is not None:
        read_calibration(request.config, configuration.settings)
    if request.max_cost is not None:
        refuse_unpriced([*models, *([judge] if judge else [])], configuration_of_component.kinds)
    return Inputs(
        request=request,
        component=component,
        cases=cases,
        models=models,
        kinds=configuration_of_component.kinds,
        keys=configuration_of_component.keys,
        settings=configuration_of_component.settings,
        shard=Shard.parse(request.shard) if request.shard else None,
        results_dir=request.results or component.results_dir,
        judge=judge,
    )


def _with_scenario(request: EvaluationRequest) -> EvaluationRequest:
    if not request.no_prompt:
        return request
    if request.scenario is not None or request.rerun_baseline or request.with_baseline:
        raise RunError("--no-prompt cannot be combined with --scenario, --with-baseline or --rerun-baseline")
    return replace(request, no_prompt=False, scenario=SCHEMA_ALONE)


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
    """Return the judge of a component's `expect` checks, None if it has none, and the models to call.

    If all models are selected, the judge is not called. Raise ConfigError if no judge is configured, or if a model
    would judge itself and the component's policy does not allow that.
    """
    if not any(case.sentences for case in cases):
        return None, selected
    name = component.name
    component_policy = settings.policy.judge_of(name)
    judge_id = (component_policy or settings.policy.judge).model
    if judge_id is None:
        raise ConfigError(
            f"'{name}' has `expect` checks but no judge: set policy.judge.model or policy.components.{name}.judge in "
            "settings.yaml"
        )
    (judge,) = select_models(models, (judge_id,))
    same_models = [model for model in selected if (model.provider, model.api_name) == (judge.provider, judge.api_name)]
    if component_policy is not None or not same_models:
        return judge, selected
    if len(same_models) == len(selected) or len(selected) < len(models):
        raise ConfigError(
            f"{judge.id} would judge its own outputs as {same_models[0].id}: choose another judge, or name it as "
            f"policy.components.{name}.judge in settings.yaml to allow this"
        )
    print(f"{judge.id} judges the outputs of {name} and is not evaluated itself", file=sys.stderr)
    return judge, tuple(model for model in selected if model not in same_models)
