"""The artifacts of a plan's jobs → one record per component and model, and the outcome of every call.

It makes no call and touches no leaderboard. It scores the answers itself, so that shards become one run.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from skill_evaluator.ci.arrivals import Arrivals, GatheredRun, find_arrivals, gather, parts_of_runs
from skill_evaluator.ci.judging import arrived_verdicts, drawn_batch, outcome_without, read_judging
from skill_evaluator.ci.matrix import Checkout
from skill_evaluator.ci.outcome import OUTCOME, RECORDS, Figures, JudgedOutcome, Outcome, RunOutcome, Status
from skill_evaluator.ci.plan import Plan, PlannedJudging, read_plan
from skill_evaluator.display import FEWEST_CASES
from skill_evaluator.display.options import argument, options, rare
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import InternalError, PlanError, SkillEvaluatorError
from skill_evaluator.evaluation.judged import JudgedRun
from skill_evaluator.evaluation.repeats import drift_of, drifts_in
from skill_evaluator.files import json_text, replace_text
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.library.scenarios import apply_scenario
from skill_evaluator.providers import asking
from skill_evaluator.providers.redaction import attempted
from skill_evaluator.records.archive import why_refused
from skill_evaluator.records.faults import fault_lines
from skill_evaluator.records.record import PARTIAL, Record, write_record
from skill_evaluator.runner.journal import Manifest
from skill_evaluator.runner.runs import input_digests
from skill_evaluator.runner.schedule import schedule_calls
from skill_evaluator.scoring.answers import TOO_COSTLY
from skill_evaluator.scoring.checked import takes_programs
from skill_evaluator.scoring.recording import Recorder, origin_of
from skill_evaluator.scoring.scorer import Scorer, open_scores
from skill_evaluator.stats import by_key
from skill_evaluator.text import listed
from skill_evaluator.verdicts.decide.results import ComparisonResult

_NAMED = 3  # of what changed
Judges = Callable[[Sequence[Case], Checkout], JudgedRun]


@options
class CollectRequest(Checkout):
    """What is to be collected, and where it goes."""

    artifacts: Path | None = argument("Folder that holds the run folders of a plan's jobs, at any depth.", None)
    plan: Path = rare("The plan.", Path("plan.json"), metavar="FILE")
    out: Path = rare("Where records and outcome.json go.", Path("collected"), metavar="DIR")


def collect(request: CollectRequest) -> Outcome:
    """Score what the jobs of a plan brought; write its records and outcome.json, and return the outcome.

    Each run may take an equal share of the time that is left of `limits.collect_seconds`. As the small ones come first,
    none is cut short while all together take less.
    """
    plan = read_plan(request.plan)
    if request.artifacts is None or not request.artifacts.is_dir():
        named = "no folder is named" if request.artifacts is None else f"{request.artifacts} is not a folder"
        raise PlanError(f"{named}; name the folder with the jobs' artifacts")
    judgings, deciding = (
        {(one.skill, one.candidate): one for one in plan.judgings if (one.baseline is None) is of_checks}
        for of_checks in (False, True)
    )
    arrivals = find_arrivals(request.artifacts, (job.id for job in plan.jobs))
    places = {key: place for place, key in enumerate(parts_of_runs(plan))}
    ends = time.monotonic() + request.configuration.settings.limits.collect_seconds
    scored, judged = [], []
    problems: list[SkillEvaluatorError] = []
    for number, gathered in enumerate(gather(plan, request.artifacts)):
        now = time.monotonic()
        until = now + (ends - now) / (len(places) - number)
        decide = deciding.get((gathered.skill, gathered.model_id))
        verdicts_of = None if decide is None else partial(arrived_verdicts, decide, gathered, arrivals)
        done = attempted(gathered.skill, partial(_score_run, gathered, request, request.out, until, verdicts_of))
        if isinstance(done, SkillEvaluatorError):  # the other runs' records land all the same
            problems.append(done)
            done = _run_outcome(gathered, "missing", *gathered.remarks, f"not collected: {visible(str(done))}"), None
        scored.append(done)
        judging = judgings.get((gathered.skill, gathered.model_id))
        if judging is not None and not gathered.is_baseline:
            found = attempted(judging.skill, partial(_judged, plan, judging, gathered, arrivals, request))
            if isinstance(found, SkillEvaluatorError):  # a fault in verdicts costs no record
                problems.append(found)
                found = outcome_without(judging, "missing", visible(str(found)))
            judged.append(found)
    scored.sort(key=lambda pair: places[pair[0].skill, pair[0].model_id, pair[0].is_baseline])
    judged.sort(key=lambda one: places[one.skill, one.candidate, False])
    records = {record.run_id: record for _, record in scored if record is not None}
    again = plan.trigger == "drift"
    verdicts, undecided = _verdicts(records.values(), request, again=again)
    drifts = {run_id: drift for verdict in verdicts if again for run_id, drift in drifts_in(verdict).items()}
    for run_id, drift in drifts.items():
        marked = records[run_id].model_copy(update={"drift": drift})
        write_record(request.out / RECORDS / marked.skill / f"{marked.run_id}.json", marked)
    runs = []
    for run, record in scored:
        problem = None if record is None else undecided.get(run.skill)
        reasons = [run.reason, *([] if problem is None else [f"no verdict: {visible(str(problem))}"])]
        runs.append(run.model_copy(update={"reason": "; ".join(filter(None, reasons))}))
    outcome = Outcome.view(
        plan,
        runs=runs,
        verdicts=[] if again else verdicts,
        drift=verdicts if again else [],
        judged=judged,
        has_bug=any(isinstance(problem, InternalError) for problem in (*problems, *undecided.values())),
    )
    replace_text(request.out / OUTCOME, json_text(outcome.model_dump(mode="json")))
    return outcome


def _judged(
    plan: Plan, judging: PlannedJudging, gathered: GatheredRun, arrivals: Arrivals, checkout: Checkout
) -> JudgedOutcome:
    """Read a judge's verdicts on a run's answers."""
    if gathered.manifest is None:
        return outcome_without(judging, "unjudged", f"there is no answer of {judging.candidate} to judge")
    component = checkout.component(judging.skill)
    cases = load_cases(component, checkout.fixtures)
    batch = drawn_batch(judging, gathered, component, cases, checkout.configuration.settings.policy)
    return read_judging(plan, judging, batch, arrivals, checkout.configuration, checkout.config)


def _verdicts(
    records: Iterable[Record], checkout: Checkout, *, again: bool
) -> tuple[list[ComparisonResult], dict[str, SkillEvaluatorError]]:
    """Judge final runs against what is recorded, here or on a branch; by component, also why that was not possible.

    A leaderboard that cannot be read keeps no record from being published.
    """
    verdicts, undecided = [], {}
    for skill, final in by_key((record.skill, record) for record in records if record.is_final).items():
        verdict = attempted(skill, partial(_verdict, skill, final, checkout, again=again))
        if isinstance(verdict, SkillEvaluatorError):
            undecided[skill] = verdict
        elif verdict is not None:
            verdicts.append(verdict)
    return verdicts, undecided


def _verdict(skill: str, final: Sequence[Record], checkout: Checkout, *, again: bool) -> ComparisonResult | None:
    recorded = checkout.recorded_component(skill)
    return drift_of(final, recorded) if again else recorded.verdict_on(final)


def _score_run(
    gathered: GatheredRun, checkout: Checkout, out: Path, until: float, verdicts_of: Judges | None
) -> tuple[RunOutcome, Record | None]:
    """Score what arrived of one run and write its record, unless nothing was scored or the run cannot be taken."""
    if gathered.manifest is None:
        return _run_outcome(gathered, "skipped" if gathered.skipped else "missing", *gathered.remarks), None
    record = _record(gathered, gathered.manifest, checkout, until, verdicts_of)
    is_written = record.scored or record.is_final
    status: Status = "complete" if record.complete else "incomplete" if is_written else "missing"
    outcome = _run_outcome(gathered, status, *gathered.remarks, *fault_lines(record, visible))
    failed = {kind: count for kind, count in record.failures.items() if kind != "not_run"}
    if status == "missing":
        return outcome.model_copy(update={"failed": failed}), None
    accuracy = record.accuracy[record.primary_metric]
    agreement = record.reproducibility.get("pairwise_exact_match")
    figures = Figures(
        skill_version=record.skill_version,
        accuracy=accuracy.strict_mean,
        ci95=accuracy.ci95 if accuracy.n_cases >= FEWEST_CASES else None,
        reproducibility=agreement.strict_mean if agreement else None,
    )
    measured = {
        "planned": record.planned,
        "scored": record.scored,
        "failed": failed,
        "primary_metric": record.primary_metric,
        "cost_usd": record.cost_usd,
        "hit_rate": record.tokens.hit_rate,
    }
    refusal = _why_refused(record, checkout)
    if refusal is not None:  # publishing it would be refused, too; its answers stay in the artifacts
        return outcome.model_copy(update={**measured, "status": "refused", "reason": refusal}), None
    write_record(out / RECORDS / record.skill / f"{record.run_id}.json", record)
    return outcome.model_copy(update={**measured, "run_id": record.run_id, "figures": figures}), record


def _why_refused(record: Record, checkout: Checkout) -> str | None:
    """Return why a complete run cannot be recorded: meanwhile its version was, with a different prompt."""
    if not record.complete:
        return None
    try:
        archive = checkout.archive(checkout.component(record.skill))
    except SkillEvaluatorError:  # what cannot be read is said where verdicts are drawn
        return None
    return why_refused(archive.entries, record.skill_version, record.digests.get("prompt"))


def _run_outcome(gathered: GatheredRun, status: Status, *reasons: str) -> RunOutcome:
    """Return the outcome of a run as long as nothing of it is scored."""
    return RunOutcome.view(gathered, status=status, reason="; ".join(reasons), scored=0, failed={})


def _record(
    gathered: GatheredRun, manifest: Manifest, checkout: Checkout, until: float, verdicts_of: Judges | None
) -> Record:
    """Score the answers of a run, until then; raise PlanError where this checkout is not what was planned."""
    component = checkout.component(gathered.skill)
    component = apply_scenario(component, checkout.config, manifest.scenario)
    read = asking(checkout.configuration, component)
    model = next((model for model in read.models if model.id == gathered.model_id), None)
    if model is None:
        raise PlanError(f"model '{gathered.model_id}' is no longer in models.yaml; check out the plan's commit")
    cases = {case.id: case for case in load_cases(component, checkout.fixtures)}
    present = {case_id: case.digest for case_id, case in cases.items() if case_id in manifest.cases}
    digests = manifest.digests if gathered.is_baseline else input_digests(component, model)
    changed = manifest.differences(manifest.model_copy(update={"cases": present, "digests": digests}))
    if changed:
        raise PlanError(
            f"{listed(changed, _NAMED)} of '{component.name}' changed since the plan; check out the plan's commit"
        )
    mine = [cases[case_id] for case_id in manifest.cases]
    planned = schedule_calls(tuple(manifest.cases), manifest.replicates)
    with open_scores(component, mine, len(planned), until) as scores:
        scorer = Scorer(component, mine, manifest.replicates, scores)
        scorer.add_all(gathered.answers[call] for call in planned if call in gathered.answers)
        judged = JudgedRun() if verdicts_of is None else verdicts_of(mine, checkout)
        if verdicts_of is None and any(case.sentences for case in mine):
            judged = JudgedRun(stopped="not judged: the plan has no judge for its checks")
        scorer.take(judged.scores)
        scorecard = scorer.scorecard()
    whole = all(call in gathered.answers for call in planned)
    origin = origin_of(component, checkout.fixtures)
    recorder = Recorder(component=component, settings=read.settings, kinds=read.kinds, origin=origin)
    stopped = judged.stopped if whole else "; ".join(gathered.remarks) or "calls are missing"
    record = recorder.record(model, manifest, scorecard, stopped=stopped)
    record = record.model_copy(update={"judged": judged.summary})
    takes_time = TOO_COSTLY in record.reasons or any(map(takes_programs, mine))
    if record.is_final and takes_time and time.monotonic() > until:  # time ran out: no model's fault
        stopped = "collect_seconds were too few to score it"
        record = record.model_copy(update={"complete": False, "usable": None, "stopped": stopped})
    if record.is_final:
        return record
    # an id of its own: the run may yet be completed, and recorded under the first
    return record.model_copy(update={"run_id": f"{record.run_id}{PARTIAL}{record.scored}"})
