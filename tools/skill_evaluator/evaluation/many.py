"""Dry runs, evaluations of several components one after the other, and `switch`: two models on every component."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from skill_evaluator import errors
from skill_evaluator.display import with_progress
from skill_evaluator.errors import ConfigError, RunError, SkillEvaluatorError
from skill_evaluator.evaluation.pipeline import EvaluationResult, evaluate
from skill_evaluator.evaluation.runs import EvaluationRequest, baseline_notes, plan_runs, read_inputs
from skill_evaluator.judges.modes.sentences import judge_estimate
from skill_evaluator.library import options as cli
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import Model, Policy, SafetyLimits, VerdictName, select_models
from skill_evaluator.library.sources import component_names
from skill_evaluator.library.versions import bump, needs_evaluation, read_version, read_versions
from skill_evaluator.providers import missing_key, read_configuration
from skill_evaluator.providers.access import result_or_error
from skill_evaluator.providers.structured import schema_problems
from skill_evaluator.records.archive import Archive
from skill_evaluator.records.record import strict_score, unusable_text
from skill_evaluator.records.selection import runs_of_versions
from skill_evaluator.repository import Repository, within
from skill_evaluator.runner import prices
from skill_evaluator.runner.journal import Run
from skill_evaluator.runner.session import Watch, print_resume_command
from skill_evaluator.scoring.scorer import open_scorer, wait_for
from skill_evaluator.stats import rounded, total_or_none
from skill_evaluator.text import counted, listed, nearest
from skill_evaluator.verdicts.decide.comparison import compare_records
from skill_evaluator.verdicts.decide.results import ComparisonResult, per_1000
from skill_evaluator.verdicts.decide.rules import exit_code, rules_for


@cli.options
class ManyRequest(EvaluationRequest):
    """The options of `evaluate` for one or several components."""

    skill: str = cli.argument("A component, its folder, or a glob; default: all that can run.", "", "COMPONENT")
    changed: bool = cli.flag("Run only the components that this branch changed.")
    base: str | None = cli.option("With --changed: compare with this commit; default: main.", metavar="COMMIT")
    yes: bool = cli.flag("Run several components without confirmation.")


@cli.options
class SwitchRequest(cli.LibraryOptions):
    """The options of `switch`."""

    old: str = cli.argument("The model to replace.")
    new: str = cli.argument("The new model, an id of models.yaml.")
    skills: tuple[str, ...] = cli.argument(cli.SKILLS, (), "COMPONENT")
    replicates: int | None = cli.option("Calls per case and model; default 10 (settings.yaml).", None, "-n")
    dry_run: bool = cli.flag("Print the maximum cost; make no call.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """A planned evaluation with its costs. `further` has remarks, `problems` the problems of the output schema."""

    component: Component
    cases: Sequence[Case]
    estimates: Sequence[prices.ModelEstimate]
    forecasts: Sequence[prices.Forecast]
    further: Sequence[str]
    problems: Sequence[str]

    @property
    def calls(self) -> int:
        """The number of calls of all models, plus the maximum number of calls of the judge."""
        return sum(each.calls for each in self.estimates)

    @property
    def cost_at_most_usd(self) -> float | None:
        """The maximum cost of all models and the judge in USD. It is None if a price is unknown."""
        return total_or_none(each.cost_upper_usd for each in self.estimates)


_FILES = "tokens of images and of pages of PDFs are estimates, by each vendor's rule of November 2026"


def dry_run(request: EvaluationRequest) -> DryRun:
    """Estimate the calls and cost of an evaluation without a call. Raise SkillEvaluatorError if an input is invalid."""
    inputs = read_inputs(request)
    kinds = inputs.kinds
    runs, _ = plan_runs(replace(inputs, request=replace(inputs.request, dry_run=True)))
    chosen = [case for case in inputs.cases if any(case.id in run.manifest.cases for run in runs)]
    _check_truth(inputs.component, chosen)
    estimates_of_model: dict[str, list[prices.CostEstimate]] = {}
    remarks = _extra_calls(runs)
    for run in runs:
        run_cases = [case for case in chosen if case.id in run.manifest.cases]
        sizes = prices.input_sizes(run.component, run_cases)
        kind, replicates = kinds[run.model.provider], run.manifest.replicates
        run_estimate = prices.estimate(sizes, run.model, kind, replicates, batch=request.batch)
        estimates_of_model.setdefault(run.model.id, []).append(run_estimate)
        if (judge := inputs.judge) is not None:
            judge_share = judge_estimate(judge, kinds[judge.provider], run_cases, run.model, replicates)
            estimates_of_model.setdefault(judge.id, []).append(judge_share)
            remarks.append(f"{judge.id} judges each output with one to three calls, mostly one")
        excluded = [f"{case_id} ({reason})" for case_id, reason in run.manifest.not_applicable.items()]
        remarks += [f"not applicable to {run.model.id} and not called: {listed(excluded)}"] if excluded else []
        model_sizes = {case_id: size.of_model(run.model, kind) for case_id, size in sizes.items()}
        remarks += _too_long(model_sizes, run.model, prices.context_of(run.model, kind))
        remarks += [_FILES] if any(size.files for size in sizes.values()) else []
    remarks += [prices.COST_OF_BATCHES] if request.batch else []
    estimates = [
        prices.ModelEstimate.of(model, kinds[model.provider], inputs.keys, prices.sum_of(estimates_of_model[model.id]))
        for model in {model.id: model for model in (*(run.model for run in runs), inputs.judge) if model}.values()
        if model.id in estimates_of_model
    ]
    unpriced = listed([each.model_id for each in estimates if each.cost_upper_usd is None], 3)
    remarks += [f"the price of {unpriced} is unknown: set `price` in models.yaml"] if unpriced else []
    return DryRun(
        component=inputs.component,
        cases=chosen,
        estimates=estimates,
        forecasts=prices.forecasts_of((each.model_id, each) for each in estimates),
        further=list(dict.fromkeys(remarks)),
        problems=schema_problems(inputs.component, inputs.models),
    )


def _extra_calls(runs: Sequence[Run]) -> list[str]:
    versions: dict[str, list[str]] = {}
    for run in runs:
        manifest = run.manifest
        if manifest.role == "again":
            suffix = f" under {manifest.scenario}" if manifest.scenario else ""
            versions.setdefault(run.model.id, []).append(f"{manifest.skill_version}{suffix}")
    recorded = [f"{name} is called with recorded prompts: {', '.join(of)}" for name, of in versions.items()]
    return [*baseline_notes(runs), *recorded]


def _too_long(sizes: Mapping[str, prices.InputSize], model: Model, context: int | None) -> Iterator[str]:
    too_long = [(name, size.likely) for name, size in sizes.items() if context and size.likely > context]
    if too_long:
        cases = listed([f"{name} (about {tokens:,} tokens)" for name, tokens in too_long])
        yield f"longer than the context of {model.id} ({context:,} tokens): {cases}"


def _check_truth(component: Component, cases: Sequence[Case]) -> None:
    """Score each ground truth as an output of its case. Raise FixtureError if a metric has a score other than 1."""
    cases = [replace(case, checks=()) for case in cases if case.labelled]  # checks may run programs
    with open_scorer(component, cases, calls=0) as scorer:
        for case in cases:
            scorer.undefined(case.id)  # raises FixtureError if a ground truth is too costly to score
            text = json.dumps(case.truth) if component.output == "json" else case.truth
            scored = wait_for(scorer.begin(case.id, text))
            for name, value in (scored.metrics or {component.scoring.primary_metric: None}).items():
                score = strict_score(scored.outcome, value)
                if score is not None and rounded(score) != 1.0:
                    raise errors.FixtureError(
                        f"the ground truth of case '{case.id}' has {rounded(score)} instead of 1 on {name} if it is "
                        "compared with itself; check how its fields are compared in evals/datasets.json"
                    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyPlanned:
    """The dry runs of the selected components. `left_out` has the error of each failed dry run by component name."""

    ready: Sequence[DryRun]
    left_out: Mapping[str, SkillEvaluatorError]

    @property
    def calls(self) -> int:
        """The number of calls of all components."""
        return sum(plan.calls for plan in self.ready)

    @property
    def cost_at_most_usd(self) -> float | None:
        """The maximum cost of all components in USD. It is None if a price is unknown."""
        return total_or_none(plan.cost_at_most_usd for plan in self.ready)


def all_components(folder: Path) -> list[str]:
    """Return the names of all components in a folder. Raise ComponentError if there are none."""
    names = list(component_names(folder))
    if not names:
        remedy = "`skill-evaluator init` creates one, and --components DIR names another folder"
        raise errors.ComponentError(f"{folder} has no component: {remedy}")
    return names


def plan_many(request: ManyRequest) -> ManyPlanned:
    """Make a dry run of each component that matches `request.skill`. With --changed, skip unchanged components.

    Components with an error are in `left_out`. Raise ComponentError if no component matches, ConfigError if the
    configuration or an option is invalid, and GitError if the base commit is not found.
    """
    all_names, pattern = all_components(request.components), request.skill or "*"
    names = [name for name in all_names if fnmatchcase(name, pattern)]
    if not names:
        raise errors.ComponentError(f"no component matches '{pattern}' {nearest(request.skill, all_names)}")
    if request.changed:
        names = _changed(request, names, request.base)
    elif request.base is not None:
        raise ConfigError("--base requires --changed")
    ready: list[DryRun] = []
    left_out: dict[str, SkillEvaluatorError] = {}
    for name in with_progress(names, len(names), "components"):
        component_request = replace(request, skill=name, dry_run=request.resumed is None)
        plan = result_or_error(name, partial(dry_run, component_request))
        if isinstance(plan, SkillEvaluatorError):
            left_out[name] = plan
        else:
            ready.append(plan)
    if left_out and not ready and all(isinstance(problem, ConfigError) for problem in left_out.values()):
        raise next(iter(left_out.values()))  # models.yaml or an option is wrong for all components
    return ManyPlanned(ready=ready, left_out=left_out)


def _changed(request: ManyRequest, names: Sequence[str], ref: str | None) -> list[str]:
    """Return the components that changed since the merge base of HEAD and `ref` (None: the main branch).

    A component changed if it is new or unreadable, its prompt or schema differs, or its major or minor version is
    higher. Cases are ignored. Raise GitError if there is no merge base.
    """
    repository = Repository(request.components if request.components.exists() else request.config)
    main, head = ref or repository.main_branch() or "", repository.commit("HEAD")
    tip = next(filter(None, map(repository.commit, [ref] if ref else [f"origin/{main}", main])), None)
    base = tip and repository.merge_base(tip)
    if base is None or (base == head and not ref and repository.is_shallow):
        message = f"--base {ref} is not a commit here" if ref else "found no merge base of HEAD and the main branch"
        raise errors.GitError(
            f"{message}; fetch more commits (`fetch-depth: 0` in CI), or name a commit: --changed --base COMMIT"
        )
    folder = repository.relative_path(request.components)
    (versions,) = read_versions(repository, (base,), folder)
    changed = []
    for name in names:
        old, new = versions.get(name), read_version(request.components / name, within(folder, name))
        is_bumped = new and new.version and needs_evaluation(bump(old.version if old else None, new.version))
        if is_bumped or old is None or new is None or (old.prompt, old.schema) != (new.prompt, new.schema):
            changed.append(name)
    if skipped := len(names) - len(changed):
        description = f"HEAD, which is on {main}" if base == head else f"{base[:12]}, the merge base with {main}"
        counts = f"{skipped:,} of {counted(len(names), 'component')} skipped"
        print(f"{counts}: prompt, schema and version are unchanged since {description}", file=sys.stderr)
    return changed


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchedComponent:
    """The result of `switch` for one component. `verdict` and `comparison` are None if nothing was compared."""

    component: str
    calls: int = 0
    cost_at_most_usd: float | None = 0.0
    verdict: VerdictName | None = None
    usd_per_1000_old: float | None = None
    usd_per_1000_new: float | None = None
    comparison: ComparisonResult | None = None
    remark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """The result of a switch, or of its dry run: one row per component."""

    request: SwitchRequest
    policy: Policy
    rows: Sequence[SwitchedComponent]

    @property
    def exit_code(self) -> int:
        """The lowest nonzero exit code of the components, else 0. A failed or incomparable component has 4."""
        if self.request.dry_run:
            return errors.EXIT_INCOMPLETE if any(row.remark and not row.calls for row in self.rows) else errors.EXIT_OK
        verdicts = [row.verdict for row in self.rows]
        codes = [exit_code(verdict, self.policy.fail_on) for verdict in verdicts if verdict is not None]
        codes += [errors.EXIT_INCOMPLETE for verdict in verdicts if verdict in (None, "incomparable")]
        return min(filter(None, codes), default=errors.EXIT_OK)


def switched_components(
    request: SwitchRequest, watch: Watch
) -> Iterator[tuple[SwitchedComponent, EvaluationResult | None]]:
    """Evaluate each requested component, by default all, with the old and the new model. Yield (row, evaluation).

    The evaluation is None in a dry run, and if it failed. If the old model can no longer be called, a recorded run of
    this model is used. Programs and components without cases are skipped. Raise ConfigError if all components are
    skipped, or if the new model cannot be called.
    """
    configuration = read_configuration(request.config)
    (new,) = select_models(configuration.models, (request.new,))
    lack = missing_key(new, configuration.kinds[new.provider], configuration.keys)
    if request.old == request.new or (lack and not request.dry_run):
        raise ConfigError(f"cannot switch to {request.new}: {lack or 'it is the old model; name a different model'}")
    old = next((model for model in configuration.models if model.id == request.old), None)
    is_retired = old is not None and old.retires is not None and old.retires <= datetime.now(UTC).date()
    evaluation = EvaluationRequest(
        skill="",
        replicates=request.replicates,
        models=(request.new,) if old is None or is_retired else (request.old, request.new),
        recorded_baseline=True,
        components=request.components,
        fixtures=request.fixtures,
        config=request.config,
    )
    names = list(dict.fromkeys(request.skills or all_components(request.components)))
    n_skipped = 0
    for name in names:
        component_request, evaluated = replace(evaluation, skill=name), None
        try:
            row = _plan_switch(component_request, request, configuration.settings.limits)
            if not request.dry_run:
                evaluated = evaluate(component_request, watch)
                row = _compare_models(row, evaluated, request)
        except errors.NotEvaluatedError as problem:
            print(f"warning: skipping {name}: {problem}", file=sys.stderr)
            n_skipped += 1
            continue
        except SkillEvaluatorError as problem:
            row = SwitchedComponent(component=name, remark=str(problem))
        yield row, evaluated
    if n_skipped == len(names):
        raise ConfigError("there is no component to compare: all were skipped")


def _plan_switch(evaluation: EvaluationRequest, request: SwitchRequest, limits: SafetyLimits) -> SwitchedComponent:
    component, remark = load_component(request.components, evaluation.skill, limits, request.fixtures), ""
    if component.program is not None:
        raise errors.NotEvaluatedError(f"'{component.name}' is a program, whose model `switch` cannot change")
    size = dry_run(evaluation)
    if request.old not in evaluation.models:
        runs = runs_of_versions(Archive(component).entries).get(request.old, {}).get(component.version)
        if not runs:
            raise RunError(f"{request.old} can no longer be called, and no run of {component.version} is recorded")
        remark = f"{request.old} can no longer be called; compared with its run {runs[-1].run_id} of another day"
    return SwitchedComponent(
        component=component.name, calls=size.calls, cost_at_most_usd=size.cost_at_most_usd, remark=remark
    )


def _compare_models(row: SwitchedComponent, evaluated: EvaluationResult, request: SwitchRequest) -> SwitchedComponent:
    print_resume_command(evaluated.resume_command())
    records = {run.record.model_id: run.record for run in evaluated.finished}
    remarks = [row.remark] if row.remark else []
    models, settings = evaluated.inputs.request.models, evaluated.inputs.settings
    for name in models:
        record = records.get(name)
        if record is None or not record.complete:
            reason = record.stopped or unusable_text(record) if record else "it was not called"
            remarks.append(f"{name} is incomplete ({reason or 'too few outputs'})")
    new = records.get(request.new)
    if new is None or not new.complete:
        return replace(row, remark="; ".join(remarks))
    recorded = evaluated.inputs.recorded()
    pair = recorded.pair_of_models((request.old, request.new), new.skill_version)
    old, new = pair.baseline, pair.candidate
    assert old is not None  # noqa: S101  (a pair of models has both)
    is_new = old.run_id in {record.run_id for record in records.values()}
    if request.old in models and not is_new:
        remarks.append(f"compared with run {old.run_id} of another day")
    served_models = [served for record in (old, new) if (served := record.served_note)]
    result = compare_records([pair], rules_for(settings, new))
    return replace(
        row,
        verdict="incomparable" if served_models and settings.policy.served == "same" else result.verdict,
        usd_per_1000_old=per_1000(old.cost.cost_usd, old.outputs),
        usd_per_1000_new=per_1000(new.cost.cost_usd, new.outputs),
        comparison=result.model_copy(update={"ship": recorded.ship_words()}),
        remark="; ".join([*remarks, *served_models]),
    )
