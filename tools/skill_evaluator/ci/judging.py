"""What a judge is to compare once answers are there: planned before a call, and drawn up again from the artifacts.

A component declares its judge in settings.yaml. The job that asks the judge and `collect` draw up the same questions
from the same answers, so that nothing but the judge's own answers is taken from that job.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from skill_evaluator.ci.arrivals import Arrivals, GatheredRun, take_arrived
from skill_evaluator.ci.matrix import Wanted, environment_of, job_id, key_variable_of
from skill_evaluator.ci.outcome import JudgedOutcome, JudgedStatus
from skill_evaluator.ci.plan import OnModels, Plan, PlannedJudging, PlannedRun
from skill_evaluator.errors import JudgeError, PlanError
from skill_evaluator.judges.asking.judging import judge_manifest
from skill_evaluator.judges.asking.questions import question_sizes
from skill_evaluator.judges.asking.results import record_of
from skill_evaluator.judges.modes.regression_batch import (
    ComparedOutputs,
    RegressionBatch,
    batch_of,
    outputs_of_answers,
    pairs_of_outputs,
)
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import ComponentJudge, Model, Policy
from skill_evaluator.providers import Configuration
from skill_evaluator.records.pinned import PinnedOutput, PinnedOutputs, read_pinned
from skill_evaluator.runner.journal import merged_outcomes
from skill_evaluator.runner.prices import Estimate, estimate, price_of
from skill_evaluator.runner.runs import Run
from skill_evaluator.text import nearest

_JUDGE = "judge"
_BYTES_A_TOKEN = 4  # of a new answer, which may be as long as its model writes


def plan_judgings(
    wanted: Iterable[Wanted],
    cases: Sequence[Case],
    pinned: Mapping[str, PinnedOutputs],
    configuration: Configuration,
    scenario: str | None,
) -> tuple[list[tuple[PlannedJudging, Estimate]], list[OnModels]]:
    """Return the jobs of the judges that components declare, with its estimate, and why others have none."""
    judgings, unjudged = [], []
    for one in wanted:
        declared = configuration.settings.policy.judge_of(one.component.name)
        if declared is None:
            continue
        try:
            if scenario is not None:
                raise JudgeError("answers under a scenario are compared with no pinned ones")
            judgings.append(_plan_judging(one, declared, cases, pinned, configuration))
        except JudgeError as problem:
            unjudged.append(OnModels(skill=one.component.name, models=[one.model.id], reason=str(problem)))
    return judgings, unjudged


def _plan_judging(
    wanted: Wanted,
    declared: ComponentJudge,
    cases: Sequence[Case],
    pinned: Mapping[str, PinnedOutputs],
    configuration: Configuration,
) -> tuple[PlannedJudging, Estimate]:
    """Return the job of a judge on what a component and model will answer, as large as it can get.

    Raise JudgeError where nothing is pinned that these answers could be compared with.
    """
    component, candidate = wanted.component, wanted.model
    if candidate.id not in pinned:
        raise JudgeError(f"nothing is pinned of '{component.name}' for {candidate.id}: `judge pin RUN` first")
    baseline = pinned[candidate.id]
    longest = "x" * (_BYTES_A_TOKEN * candidate.params.max_output_tokens)
    awaited = baseline.model_copy(
        update={
            "digests": {"prompt": component.digests["prompt"]},
            "outputs": {case.id: PinnedOutput.of(case.digest, longest) for case in cases if case.id in wanted.cases},
        }
    )
    items, _ = pairs_of_outputs(component, cases, baseline, awaited, {})
    compared = ComparedOutputs(items=items, skill=component.name)
    batch = _batch(compared, configuration.settings.policy, wanted.seed)
    model = next(model for model in configuration.models if model.id == declared.model)
    kind = configuration.kinds[model.provider]
    size = estimate(question_sizes(batch.questions), model, kind, 1)
    judging = PlannedJudging(
        id=job_id(component.name, candidate.id, _JUDGE),
        skill=component.name,
        candidate=candidate.id,
        model_id=model.id,
        provider=model.provider,
        environment=environment_of(model, kind),
        key_variable=key_variable_of(model, kind),
        seed=wanted.seed,
        baseline=baseline.run_id,
        pinned=_digests_of(baseline),
        calls=size.calls,
        cost_upper_usd=size.cost_upper_usd,
    )
    return judging, size


def planned_judging(plan: Plan, job: str) -> PlannedJudging:
    """Return the judging of a plan by its job; raise PlanError when the plan has none of that name."""
    for judging in plan.judgings:
        if judging.id == job:
            return judging
    raise PlanError(f"the plan has no judging '{job}' {nearest(job, [judging.id for judging in plan.judgings])}")


def judge_of(judging: PlannedJudging, configuration: Configuration) -> Model:
    """Return the judge of a planned judging; raise PlanError when it is not in models.yaml any more."""
    for model in configuration.models:
        if model.id == judging.model_id:
            return model
    raise PlanError(f"the judge '{judging.model_id}' is not in models.yaml any more; check out the plan's commit")


def drawn_batch(
    judging: PlannedJudging, gathered: GatheredRun, component: Component, cases: Sequence[Case], policy: Policy
) -> RegressionBatch:
    """Return the questions of a planned judging, from the answers that arrived and what is pinned in this checkout.

    Raise JudgeError without answers, and PlanError where what is pinned is not what was planned.
    """
    if gathered.manifest is None:
        raise JudgeError(f"there is no answer of {judging.candidate} to judge")
    baseline = read_pinned(component.folder, component.name).get(judging.candidate)
    if baseline is None or (baseline.run_id, _digests_of(baseline)) != (judging.baseline, judging.pinned):
        raise PlanError(f"what is pinned of '{component.name}' is not as it was planned; check out the plan's commit")
    manifest = gathered.manifest
    candidate, unanswered = outputs_of_answers(manifest, gathered.answers, manifest.run_id)
    items, left_out = pairs_of_outputs(component, cases, baseline, candidate, unanswered)
    compared = ComparedOutputs(
        items=items,
        left_out=left_out,
        skill=component.name,
        baseline=baseline.run_id,
        candidate=candidate.run_id,
        notes=[
            f"{side}: {run.skill_version} by {run.model_id}, {run.run_id}"
            for side, run in (("baseline", baseline), ("candidate", candidate))
        ],
    )
    return _batch(compared, policy, judging.seed)


def _batch(compared: ComparedOutputs, policy: Policy, seed: int) -> RegressionBatch:
    """Return what the judge is asked of a component, by what the component declares."""
    declared = policy.judge_of(compared.skill or "")
    if declared is None:
        raise JudgeError(f"'{compared.skill}' declares no judge any more; check out the plan's commit")
    return batch_of(compared, policy, seed, dimensions=declared.dimensions, preset=declared.preset)


def read_judging(
    plan: Plan,
    judging: PlannedJudging,
    batch: RegressionBatch,
    arrivals: Arrivals,
    configuration: Configuration,
    config: Path,
) -> JudgedOutcome:
    """Return what a judge found, by those of its answers that arrived and were asked for.

    `config` is the folder of the settings, in which the judge's calibration is. Raise JudgeError for a broken one.
    """
    from skill_evaluator.judges.calibration.detection import read_calibration, with_alerts
    from skill_evaluator.judges.modes.reduce_regressions import reduce_regressions  # imports scipy: not for a plan

    model = judge_of(judging, configuration)
    drawn = batch.judging(plan.invocation, plan.created, model, judging.seed)
    drawn = drawn.model_copy(update={"evaluator_version": plan.evaluator_version or drawn.evaluator_version})
    manifest = judge_manifest(drawn, model)
    taken = take_arrived(PlannedRun(job=judging.id, manifest=manifest), arrivals)
    reason = "; ".join(dict.fromkeys(taken.remarks))
    if not taken.begun:
        skipped = taken.nothing and judging.id in arrivals.notes
        return outcome_without(judging, "skipped" if skipped else "missing", reason)
    answers = merged_outcomes((manifest, part) for part in taken.answers)
    price = price_of(model, configuration.kinds[model.provider])
    record = record_of(Run(model=model, manifest=manifest, folder=Path(judging.id)), answers, price, None)
    judged = reduce_regressions(batch.pairs, answers, 1, batch.rules, record, declared_strong=model.judge == "strong")
    settings = configuration.settings
    results = batch.results(drawn, [judged])
    results = with_alerts(results, settings.policy.judge, read_calibration(config, settings))
    return outcome_without(judging, "judged", reason).model_copy(update={"results": results})


def outcome_without(judging: PlannedJudging, status: JudgedStatus, reason: str) -> JudgedOutcome:
    """Return the outcome of a judging without results."""
    return JudgedOutcome(
        skill=judging.skill, candidate=judging.candidate, judge=judging.model_id, status=status, reason=reason
    )


def _digests_of(pinned: PinnedOutputs) -> dict[str, str]:
    return {case_id: output.digest for case_id, output in pinned.outputs.items()}
