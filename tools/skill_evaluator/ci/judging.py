"""What a judge is to compare once answers are there: planned before a call, and drawn up again from the artifacts.

A component declares its judge in settings.yaml. The job that asks the judge and `collect` draw up the same questions
from the same answers, so that nothing but the judge's own answers is taken from that job.
"""

import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from skill_evaluator.ci.arrivals import Arrivals, GatheredRun, gather, take_arrived
from skill_evaluator.ci.matrix import Checkout, Wanted, environment_of, job_id, key_variable_of
from skill_evaluator.ci.outcome import JudgedOutcome, JudgedStatus
from skill_evaluator.ci.plan import OnModels, Plan, PlannedJudging, PlannedRun, read_plan
from skill_evaluator.display.options import words_of
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, JudgeError, PlanError, RunError, SkillEvaluatorError
from skill_evaluator.evaluation.inputs import judge_of as judge_of_checks
from skill_evaluator.evaluation.judged import JudgedRun, judged_by, judged_items
from skill_evaluator.judges.asking.judging import judge_manifest, taken_up
from skill_evaluator.judges.asking.questions import question_sizes
from skill_evaluator.judges.asking.results import record_of
from skill_evaluator.judges.asking.story import Bench, JudgingSize
from skill_evaluator.judges.calibration.results import read_calibration
from skill_evaluator.judges.modes.asked_sentences import SentenceAnswers, SentencesJudge, ask_sentences
from skill_evaluator.judges.modes.findings import reduce_regressions
from skill_evaluator.judges.modes.regression_batch import (
    ComparedOutputs,
    RegressionBatch,
    batch_of,
    outputs_of_answers,
    pairs_of_outputs,
    side_notes,
)
from skill_evaluator.judges.modes.sentences import judge_estimate
from skill_evaluator.judges.stories.batches import regression_task
from skill_evaluator.judges.stories.judging import Drawn, Judged, judge_batch
from skill_evaluator.judges.stories.requests import RegressionRequest
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import ComponentJudge, Model, Policy
from skill_evaluator.providers import Configuration
from skill_evaluator.providers.base import ProviderKind
from skill_evaluator.records.pinned import PinnedOutput, PinnedOutputs, read_pinned
from skill_evaluator.runner.journal import Manifest, merged_outcomes, read_answers
from skill_evaluator.runner.prices import Estimate, estimate, price_of
from skill_evaluator.runner.runs import Run
from skill_evaluator.runner.schedule import Replicate
from skill_evaluator.runner.session import Watch, with_keys
from skill_evaluator.text import nearest

_JUDGE, _CHECKS = "judge", "checks"
_FIXED = ("judges", "items", "candidate", "baseline", "dimensions", "preset", "blocking", "stakes", "against")
_OF_PLANS = (*_FIXED, "replicates", "seed")
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
        sentences = any(case.sentences for case in cases)
        if declared is None or (sentences and one.model.id not in pinned):
            continue
        try:
            if scenario is not None:
                raise JudgeError("answers under a scenario are not compared with pinned outputs")
            judgings.append(_plan_judging(one, declared, cases, pinned, configuration))
        except JudgeError as problem:
            unjudged.append(OnModels(skill=one.component.name, models=[one.model.id], reason=str(problem)))
    return judgings, unjudged


def plan_checks(
    wanted: Iterable[Wanted], cases: Sequence[Case], configuration: Configuration
) -> tuple[list[tuple[PlannedJudging, Estimate]], list[OnModels]]:
    """Return the jobs of the judges that decide checks, with their estimates, and why others have none."""
    judgings, unjudged = [], []
    for one in wanted:
        mine = [case for case in cases if case.id in one.cases]
        name, asked = one.component.name, one.model
        try:
            judge, _ = judge_of_checks(one.component, mine, (asked,), configuration.models, configuration.settings)
        except SkillEvaluatorError as problem:
            unjudged.append(OnModels(skill=name, models=[asked.id], reason=str(problem)))
            continue
        if judge is None:
            continue
        kind = configuration.kinds[judge.provider]
        size = judge_estimate(judge, kind, mine, asked, one.calls_each)
        judgings.append((_job_of(one, judge, kind, _CHECKS, size), size))
    return judgings, unjudged


def _job_of(wanted: Wanted, judge: Model, kind: ProviderKind, what: str, size: Estimate) -> PlannedJudging:
    return PlannedJudging(
        id=job_id(wanted.component.name, wanted.model.id, what),
        skill=wanted.component.name,
        candidate=wanted.model.id,
        model_id=judge.id,
        provider=judge.provider,
        environment=environment_of(judge, kind),
        key_variable=key_variable_of(judge, kind),
        seed=wanted.seed,
        calls=size.calls,
        cost_upper_usd=size.cost_upper_usd,
    )


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
    judging = _job_of(wanted, model, kind, _JUDGE, size)
    return judging.model_copy(update={"baseline": baseline.run_id, "pinned": _digests_of(baseline)}), size


def judge_planned(request: RegressionRequest, watch: Watch | None, drawn: Drawn) -> Judged | JudgingSize:
    """Ask what a plan has a judge do; go on with what an earlier attempt left, unless answers have changed since.

    Raise PlanError when the plan has no job of that name.
    """
    if words_of(request, *_OF_PLANS):
        raise JudgeError("--planned fixes what is compared, by which judge and how: remove the other options")
    plan = read_plan(request.plan)
    jobs = {judging.id: judging for judging in plan.judgings}
    judging = jobs.get(request.planned or "")
    if judging is None:
        raise PlanError(f"the plan has no judging '{request.planned}' {nearest(request.planned or '', list(jobs))}")
    request = replace(request, judges=(judging.model_id,), seed=judging.seed, replicates=1)
    bench = Bench.of(request, watch)
    settings = bench.configuration.settings
    component = load_component(request.components, judging.skill, settings.limits, request.fixtures)
    cases = load_cases(component, request.fixtures)
    if judging.baseline is None:
        return _judge_checks(judging, plan, request, bench, cases)
    gathered = next(
        run
        for run in gather(plan, request.artifacts)
        if (run.skill, run.model_id) == (judging.skill, judging.candidate) and not run.is_baseline
    )
    if gathered.manifest is None:  # which the jobs that were to answer have said
        why = "; ".join(gathered.remarks)
        return Judged(results=None, folder=request.out, code=EXIT_OK, stopped=[f"nothing to judge: {why}"])
    batch = drawn_batch(judging, gathered, component, cases, settings.policy)
    task = regression_task(batch, bench, plan.invocation)
    folder = request.out / plan.invocation
    if not request.dry_run and folder.exists():
        try:
            taken_up(bench.planned(task.asking), plan.invocation, request.out)
            bench = replace(bench, request=replace(request, resume=plan.invocation))
        except JudgeError as changed:
            print(f"begun anew: {changed}", file=sys.stderr)
            shutil.rmtree(folder)
    return judge_batch(task, bench, drawn)


def _judge_checks(
    judging: PlannedJudging, plan: Plan, request: RegressionRequest, bench: Bench, cases: Sequence[Case]
) -> Judged | JudgingSize:
    """Ask a judge which sentences hold of the answers that arrived, of a new version and of that beside it."""
    if request.dry_run:
        raise JudgeError("the plan says what its judges cost: leave out --dry-run")
    (model,) = with_keys(bench.models, bench.configuration).values()
    session, stopped = bench.session(), list[str]()
    for run in gather(plan, request.artifacts):
        if (run.skill, run.model_id) != (judging.skill, judging.candidate) or run.manifest is None:
            continue
        manifest = run.manifest
        folder = request.out / manifest.run_id
        judge = SentencesJudge(model=model, asked_for=manifest.run_id, seed=manifest.seed, folder=folder)
        asked = ask_sentences(list(judged_items(cases, run.answers).values()), judge, session)
        stopped += [] if asked.stopped is None else [f"{model.id} stopped: {asked.stopped}"]
    return Judged(results=None, folder=request.out, code=EXIT_INCOMPLETE if stopped else EXIT_OK, stopped=stopped)


def arrived_verdicts(
    judging: PlannedJudging, gathered: GatheredRun, arrivals: Arrivals, cases: Sequence[Case], checkout: Checkout
) -> JudgedRun:
    """Return a judge's verdicts on the outputs of a run. Verdicts on other texts are ignored."""
    manifest, configuration = gathered.manifest, checkout.configuration
    assert manifest is not None  # noqa: S101  (only what arrived is scored)
    model = judge_of(judging, configuration)
    judge = SentencesJudge(model=model, asked_for=manifest.run_id, seed=manifest.seed, folder=Path())
    answered: dict[str, Replicate] = {}
    first: Manifest | None = None
    for run in arrivals.runs:
        of_job = run.manifest is not None and run.job in (None, judging.id) and run.manifest.judging == manifest.run_id
        if run.manifest is None or not of_job or run.manifest.digests != judge.digests:
            continue
        first = first or run.manifest
        with suppress(RunError):  # what cannot be read was not judged
            made = read_answers(run.folder, lambda _: None)
            answered |= {one.call.case_id: one for one in made if one.answered}
    items = judged_items(cases, gathered.answers)
    asked = SentenceAnswers(manifest=first, answered=answered)
    return judged_by(items, asked, manifest.seed, configuration, checkout.config, model)


def judge_of(judging: PlannedJudging, configuration: Configuration) -> Model:
    """Return the judge of a planned judging; raise PlanError when it is no longer in models.yaml."""
    for model in configuration.models:
        if model.id == judging.model_id:
            return model
    raise PlanError(f"the judge '{judging.model_id}' is no longer in models.yaml; check out the plan's commit")


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
        raise PlanError(f"the pinned output of '{component.name}' changed since the plan; check out the plan's commit")
    manifest = gathered.manifest
    candidate, unanswered = outputs_of_answers(manifest, gathered.answers, manifest.run_id)
    items, left_out = pairs_of_outputs(component, cases, baseline, candidate, unanswered)
    compared = ComparedOutputs(
        items=items,
        left_out=left_out,
        skill=component.name,
        baseline=baseline.run_id,
        candidate=candidate.run_id,
        source=candidate.run_id,
        notes=side_notes(baseline, candidate),
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
    from skill_evaluator.judges.calibration.detection import with_alerts  # imports numpy

    model = judge_of(judging, configuration)
    drawn = batch.asking(plan.invocation).judging([model], seed=judging.seed, created=plan.created)
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
