"""`switch`: evaluate every component with two models and compare them."""

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
from skill_evaluator.evaluation.dry_run import dry_run
from skill_evaluator.evaluation.pipeline import EvaluationResult, WriteReport, evaluate
from skill_evaluator.evaluation.request import EvaluationRequest, SwitchRequest
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import Policy, VerdictName, select_models
from skill_evaluator.library.sources import component_names
from skill_evaluator.providers import missing_key, read_configuration
from skill_evaluator.records.archive import Archive
from skill_evaluator.records.record import unusable_text
from skill_evaluator.records.selection import runs_of_versions
from skill_evaluator.runner.session import Watch, print_resume_command
from skill_evaluator.stats import total_or_none
from skill_evaluator.verdicts.decide.results import ComparisonResult, per_1000
from skill_evaluator.verdicts.decide.rules import exit_code
from skill_evaluator.verdicts.history.component import RecordedComponent


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchedComponent:
    """A component with two models: the calls, their maximum cost, and the comparison of the new with the old model.

    `verdict` is None if nothing was compared, and *incomparable* if another model was served than requested.
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
    """The result of a switch, or of its dry run: one row per component."""

    request: SwitchRequest
    policy: Policy
    rows: Sequence[SwitchedComponent]

    @property
    def exit_code(self) -> int:
        """The lowest nonzero exit code of the components, else 0. It is 4 for a component that was not compared."""
        if self.request.dry_run:
            return EXIT_INCOMPLETE if any(row.remark and not row.calls for row in self.rows) else EXIT_OK
        verdicts = [row.verdict for row in self.rows]
        codes = [exit_code(verdict, self.policy.fail_on) for verdict in verdicts if verdict is not None]
        codes += [EXIT_INCOMPLETE for verdict in verdicts if verdict in (None, "incomparable")]
        return min(filter(None, codes), default=EXIT_OK)


def switch(request: SwitchRequest, watch: Watch, write_report: WriteReport) -> Switch:
    """Evaluate every component with both models and compare them; a dry run makes no call.

    If the old model can no longer be called, its newest record is used. Raise ConfigError if the new model cannot be
    called or there is no component.
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
    rows = []
    for name in dict.fromkeys(request.skills or component_names(request.components)):
        component_request = replace(evaluation, skill=name)
        try:
            row = _plan(component_request, request)
            if not request.dry_run:
                row = _compare(row, evaluate(component_request, watch, write_report), request)
            rows.append(row)
        except NotEvaluatedError as problem:
            print(f"warning: skipping {name}: {problem}", file=sys.stderr)
        except SkillEvaluatorError as problem:
            rows.append(SwitchedComponent(component=name, remark=str(problem)))
    if not rows:
        raise ConfigError(f"no component in {request.components}; name its folder with --components DIR")
    return Switch(request=request, policy=configuration.settings.policy, rows=rows)


def _plan(evaluation: EvaluationRequest, request: SwitchRequest) -> SwitchedComponent:
    """Estimate the calls of a component. Raise SkillEvaluatorError if it cannot be evaluated or compared."""
    component, remark = load_component(request.components, evaluation.skill, fixtures_dir=request.fixtures), ""
    if component.program is not None:
        raise NotEvaluatedError(f"'{component.name}' is a program, which chooses its own model")
    size = dry_run(evaluation)
    if request.old not in evaluation.models:
        runs = runs_of_versions(Archive(component).entries).get(request.old, {}).get(component.version)
        if not runs:
            raise RunError(f"{request.old} can no longer be called, and no run of {component.version} is recorded")
        remark = f"{request.old} can no longer be called; compared with its run {runs[-1].run_id} of another day"
    return SwitchedComponent(
        component=component.name,
        calls=sum(each.calls for each in size.estimates),
        cost_at_most_usd=total_or_none(each.cost_upper_usd for each in size.estimates),
        remark=remark,
    )


def _compare(row: SwitchedComponent, evaluated: EvaluationResult, request: SwitchRequest) -> SwitchedComponent:
    """Compare the new model with the old model on an evaluated component."""
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
    component = evaluated.inputs.component
    recorded = RecordedComponent(component=component, archive=Archive(component), settings=settings)
    chosen = recorded.chosen_models((request.old, request.new), new.skill_version)
    old, new = chosen.pairs[0].baseline, chosen.pairs[0].candidate
    assert old is not None  # noqa: S101  (a pair of models has both)
    is_new = old.run_id in {record.run_id for record in records.values()}
    if request.old in models and not is_new:
        remarks.append(f"compared with run {old.run_id} of another day")
    served_models = [served for record in (old, new) if (served := record.served_note)]
    result = chosen.judged(settings)
    return replace(
        row,
        verdict="incomparable" if served_models and settings.policy.served == "same" else result.verdict,
        usd_per_1000_old=per_1000(old.cost_usd, old.outputs),
        usd_per_1000_new=per_1000(new.cost_usd, new.outputs),
        comparison=result,
        remark="; ".join([*remarks, *served_models]),
    )
