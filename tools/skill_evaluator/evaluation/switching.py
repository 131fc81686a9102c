"""The story of `switch`: plan every component for two models → ask both in the same minutes → judge the new one."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from skill_evaluator.errors import (
    EXIT_INCOMPLETE,
    EXIT_OK,
    ConfigError,
    NotEvaluatedError,
    RunError,
    SkillEvaluatorError,
)
from skill_evaluator.evaluation.inputs import Inputs, read_inputs
from skill_evaluator.evaluation.request import EvaluationRequest, SwitchRequest
from skill_evaluator.evaluation.runs import PlannedRuns, plan_runs
from skill_evaluator.evaluation.story import OnKept, ask_and_score, keep, print_how_to_resume
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import Policy, VerdictName, select_models
from skill_evaluator.library.sources import component_names
from skill_evaluator.providers import Configuration, lack_of, read_configuration
from skill_evaluator.records.archive import Archive
from skill_evaluator.records.faults import unusable_words
from skill_evaluator.records.selection import runs_of_versions
from skill_evaluator.runner.prices import estimate, input_sizes
from skill_evaluator.runner.runs import new_invocation
from skill_evaluator.runner.session import Watch
from skill_evaluator.stats import total_or_none
from skill_evaluator.verdicts.decide.comparison import compare_records
from skill_evaluator.verdicts.decide.results import ComparisonResult, per_1000
from skill_evaluator.verdicts.decide.rules import exit_code, rules_for
from skill_evaluator.verdicts.history.baselines import models_pair


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchedComponent:
    """A component of two models: what asking them takes, and the comparison of the new one with the old one, if any.

    `verdict` is *incomparable* if a different model answered than was requested.
    """

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
    """A switch of models, run or only planned, with one row per component."""

    request: SwitchRequest
    policy: Policy
    rows: Sequence[SwitchedComponent]
    is_whole: bool

    @property
    def exit_code(self) -> int:
        """The least of the codes of its components that is not 0: 4 where one could not be compared, or planned."""
        if self.request.dry_run:
            return EXIT_OK if self.is_whole else EXIT_INCOMPLETE
        codes = [
            EXIT_INCOMPLETE if row.verdict in (None, "incomparable") else exit_code(row.verdict, self.policy.fail_on)
            for row in self.rows
        ]
        return min(filter(None, codes), default=EXIT_OK)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    row: SwitchedComponent
    request: EvaluationRequest
    inputs: Inputs
    runs: PlannedRuns


def switch(request: SwitchRequest, watch: Watch, on_kept: OnKept) -> Switch:
    """Ask every component of two models; the answers are recorded like any others.

    Where the old model does not answer, its newest record stands in. A dry run makes no call.
    """
    configuration = read_configuration(request.config)
    alone = _why_alone(request, configuration)
    names = request.old, request.new
    asked = EvaluationRequest(
        skill="",
        replicates=request.replicates,
        components=request.components,
        fixtures=request.fixtures,
        config=request.config,
        models=names[1:] if alone else names,
        recorded=True,
        invocation=new_invocation(datetime.now(UTC)),
    )
    rows: dict[str, SwitchedComponent] = {}
    plans: list[_Plan] = []
    for name in dict.fromkeys(request.skills or component_names(request.components)):
        rows[name] = SwitchedComponent(component=name)
        try:
            plans.append(_plan(replace(asked, skill=name), request.old, alone, configuration))
            rows[name] = plans[-1].row
        except NotEvaluatedError as problem:
            print(f"warning: {rows.pop(name).component} is left out: {problem}", file=sys.stderr)
        except SkillEvaluatorError as problem:
            rows[name] = replace(rows[name], remark=str(problem))
    if not rows:
        raise ConfigError(f"{request.components} holds no component to ask; name its folder with --components DIR")
    for plan in () if request.dry_run else plans:
        rows[plan.row.component], is_stopped = _ask(plan, names, watch, on_kept)
        if is_stopped:
            break
    return Switch(
        request=request,
        policy=configuration.settings.policy,
        rows=list(rows.values()),
        is_whole=len(plans) == len(rows),
    )


def _why_alone(request: SwitchRequest, configuration: Configuration) -> str:
    """Return why the old model is not asked, or nothing; raise ConfigError where the new one cannot be."""
    (new,) = select_models(configuration.models, (request.new,))
    lack = lack_of(new, configuration.kinds[new.provider], configuration.keys)
    if request.old == request.new or (lack and not request.dry_run):
        raise ConfigError(
            f"{request.new} cannot be switched to: {lack or 'it is the old model; name a different model'}"
        )
    old = next((model for model in configuration.models if model.id == request.old), None)
    if old is None:
        return "is not in models.yaml"
    is_off = old.retires is not None and old.retires <= datetime.now(UTC).date()
    return f"was switched off on {old.retires}" if is_off else ""


def _plan(request: EvaluationRequest, old: str, alone: str, configuration: Configuration) -> _Plan:
    """Plan the runs of a component; raise SkillEvaluatorError where it cannot be asked, or held against anything."""
    component = load_component(request.components, request.skill, configuration.settings.limits, request.fixtures)
    if component.program is not None:
        raise NotEvaluatedError(f"'{component.name}' is a program, which asks its own model")
    inputs = read_inputs(request, configuration)
    planned, version, remark = plan_runs(inputs, request), inputs.component.version, ""
    if alone:
        runs = runs_of_versions(Archive(inputs.component).entries).get(old, {}).get(version)
        if not runs:
            raise RunError(f"{old} {alone}, and no run of {version} is recorded")
        remark = f"{old} {alone}; its run {runs[-1].run_id} stands in, with days between"
    sizes = input_sizes(inputs.component, inputs.cases)
    taken = []
    for run in planned.runs:
        asked = {case_id: sizes[case_id] for case_id in run.manifest.cases}
        taken.append(estimate(asked, run.model, inputs.kinds[run.model.provider], run.manifest.replicates))
    row = SwitchedComponent(
        component=request.skill,
        calls=sum(one.calls for one in taken),
        cost_at_most_usd=total_or_none(one.cost_upper_usd for one in taken),
        remark=remark,
    )
    return _Plan(row=row, request=request, inputs=inputs, runs=planned)


def _ask(plan: _Plan, names: tuple[str, str], watch: Watch, on_kept: OnKept) -> tuple[SwitchedComponent, bool]:
    """Ask the runs of a component and judge them; return also whether the user stopped that."""
    request, inputs, planned, remark = plan.request, plan.inputs, plan.runs, plan.row.remark
    scored, _ = ask_and_score(planned, inputs, request, watch)
    problems = keep(planned, scored, inputs, request, on_kept)
    print_how_to_resume(planned, inputs, request)
    records = {run.record.model_id: run.record for run in planned.finished}
    is_stopped = any("interrupted" in (record.stopped or "") for record in records.values())
    for name in request.models:
        record = records.get(name)
        if record is None or not record.complete:
            why = [*map(str, problems), record and (record.stopped or unusable_words(record))]
            remark = f"{name} did not answer ({next(filter(None, why), 'too few answers')})"
    after, archive = records.get(names[1]), Archive(inputs.component)
    pair = models_pair(archive.entries, names, archive, after.skill_version) if after and after.complete else None
    if pair is None or pair.baseline is None:
        return replace(plan.row, remark=remark), is_stopped
    result = compare_records(request.skill, [pair], rules_for(inputs.settings, request.config, pair.candidate))
    if remark and names[0] in request.models:
        remark += f"; its run {pair.baseline.run_id} stands in, with days between"
    others = [words for one in (pair.baseline, pair.candidate) if (words := one.served_otherwise)]
    row = replace(
        plan.row,
        verdict="incomparable" if others and inputs.settings.policy.served == "same" else result.verdict,
        usd_per_1000_old=per_1000(pair.baseline.cost_usd, pair.baseline.outputs),
        usd_per_1000_new=per_1000(pair.candidate.cost_usd, pair.candidate.outputs),
        comparison=result,
        remark="; ".join(filter(None, (remark, *others))),
    )
    return row, is_stopped
