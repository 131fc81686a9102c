"""Collect the artifacts of a plan's jobs: one record per component and model, and the outcome of every call.

Collecting makes no call and changes no leaderboard. It scores the outputs again and joins shards into one run.
"""

import re
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from skill_evaluator.ci.artifacts import Arrivals, GatheredRun, Part, answers_size, find_arrivals, gather, parts_of_runs
from skill_evaluator.ci.matrix import CiOptions
from skill_evaluator.ci.outcome import OUTCOME, RECORDS, Figures, LostValue, Outcome, RunOutcome, Status
from skill_evaluator.ci.plan import Plan, read_plan, sha256_of
from skill_evaluator.display import MIN_CASES_FOR_INTERVAL
from skill_evaluator.display.options import FormatOption, PlatformOption, argument, options, rare, words_of
from skill_evaluator.display.safe_text import value_pair, visible
from skill_evaluator.errors import InternalError, PlanError, RunError, SkillEvaluatorError
from skill_evaluator.evaluation.outputs import JudgedRun, judged_by, judged_items
from skill_evaluator.files import json_text, replace_text
from skill_evaluator.identifiers import BASELINE
from skill_evaluator.judges.modes.sentences import SentenceAnswers, SentencesJudge
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.providers import with_program
from skill_evaluator.providers.redaction import result_or_error
from skill_evaluator.records.archive import refusal_reason
from skill_evaluator.records.record import PARTIAL, Record, fault_lines, write_record
from skill_evaluator.runner.journal import JUDGE, Manifest, input_digests, read_answers
from skill_evaluator.runner.schedule import Replicate, schedule_calls
from skill_evaluator.scoring.answer_views import answer_changes
from skill_evaluator.scoring.answers import TOO_COSTLY, takes_programs
from skill_evaluator.scoring.recording import Recorder, commits_of
from skill_evaluator.scoring.scorer import Scorer, open_scores
from skill_evaluator.stats import by_key
from skill_evaluator.text import listed
from skill_evaluator.verdicts.component import RecordedComponent, drifts_in
from skill_evaluator.verdicts.decide.results import ComparisonResult, ModelVerdict

_MAX_LISTED = 3
_MAX_LOST_FIELDS = 3  # lost fields named per model
_INDEX = re.compile(r"\[\d+\]")


@options
class CollectRequest(CiOptions, PlatformOption, FormatOption):
    """The options of `collect`."""

    artifacts: Path | None = argument("Folder of the artifacts of the plan's jobs.", None)
    plan: Path = rare("The file that `ci plan` wrote.", Path("plan.json"), metavar="FILE")
    plan_sha256: str | None = rare("The SHA-256 that the plan's file must have.", metavar="HEX")
    out: Path = rare("Folder for records and outcome.json.", Path("collected"), metavar="DIR")


def collect(request: CollectRequest) -> Outcome:
    """Score the outputs of a plan's jobs, write the records and outcome.json, and return the outcome."""
    plan, arrivals = _read_arrivals(request)
    planned, is_drift = parts_of_runs(plan), plan.trigger == "drift"
    scored, problems = _score_runs(plan, planned, arrivals, request)
    records = {record.run_id: record for _, record in scored if record is not None}
    verdicts, undecided = _verdicts(records.values(), request, again=is_drift)
    drifts = {run_id: drift for verdict in verdicts if is_drift for run_id, drift in drifts_in(verdict).items()}
    for run_id, drift in drifts.items():
        _write(records[run_id].model_copy(update={"drift": drift}), request)
    outputs = {
        run.run_id: partial(gather, plan, parts, arrivals) for (run, _), parts in zip(scored, planned, strict=True)
    }
    lost_by_run = dict(_lost_values([] if is_drift else verdicts, records, outputs, request))
    problems += [values for values in lost_by_run.values() if isinstance(values, SkillEvaluatorError)]
    runs = []
    for run, record in scored:
        values = lost_by_run.get(run.run_id or "", [])
        run = run.model_copy(update={"lost_values": values if isinstance(values, list) else []})
        if record is not None and (problem := undecided.get(run.skill)):
            reasons = filter(None, (run.reason, f"no verdict: {visible(str(problem))}"))
            run = run.model_copy(update={"reason": "; ".join(reasons)})
        runs.append(run)
    outcome = Outcome.view(
        plan,
        runs=runs,
        verdicts=[] if is_drift else verdicts,
        drift=verdicts if is_drift else [],
        has_bug=any(isinstance(problem, InternalError) for problem in (*problems, *undecided.values())),
    )
    replace_text(request.out / OUTCOME, json_text(outcome.model_dump(mode="json")))
    return outcome


def _score_runs(
    plan: Plan, planned: Sequence[Sequence[Part]], arrivals: Arrivals, request: CollectRequest
) -> tuple[list[tuple[RunOutcome, Record | None]], list[SkillEvaluatorError]]:
    """Score the runs; return each outcome with its record if there is one, in the order of the plan, and the errors.

    Small runs are scored first, each for at most an equal share of the rest of `limits.collect_seconds`, so no run is
    cut short unless all runs together take longer. An error in one run does not stop the others.
    """
    order = sorted(range(len(planned)), key=lambda index: answers_size(plan, planned[index], arrivals))
    deadline = time.monotonic() + request.configuration.settings.limits.collect_seconds
    scored: dict[int, tuple[RunOutcome, Record | None]] = {}
    problems: list[SkillEvaluatorError] = []
    for index in order:
        now = time.monotonic()
        until = now + (deadline - now) / (len(planned) - len(scored))
        gathered = gather(plan, planned[index], arrivals)
        result = result_or_error(gathered.manifest.skill, partial(_score_run, gathered, arrivals, request, until))
        if isinstance(result, SkillEvaluatorError):
            problems.append(result)
            reasons = (*gathered.remarks, f"not collected: {visible(str(result))}")
            result = _run_outcome(gathered, "missing", *reasons), None
        scored[index] = result
    return [scored[index] for index in range(len(planned))], problems


def _read_arrivals(request: CollectRequest) -> tuple[Plan, Arrivals]:
    """Read the plan and find the artifacts of its jobs.

    Raise PlanError if the plan has another SHA-256 or the folder does not exist.
    """
    plan = read_plan(request.plan)
    if request.plan_sha256 not in (None, sha256_of(request.plan)):
        raise PlanError(f"{request.plan} is not what `ci plan` wrote: its SHA-256 is not {request.plan_sha256}")
    if request.artifacts is None or not request.artifacts.is_dir():
        problem = "" if request.artifacts is None else f"{request.artifacts} is not a folder; "
        raise PlanError(f"{problem}name the folder with the jobs' artifacts: skill-evaluator ci collect DIR")
    return plan, find_arrivals(request.artifacts, plan)


def resume_commands(request: CollectRequest, outcome: Outcome) -> list[str]:
    """Return the commands that make the missing calls of incomplete and missing runs."""
    unfinished = {(run.skill, run.model_id) for run in outcome.runs if run.status in ("incomplete", "missing")}
    plan, arrivals = _read_arrivals(request)
    folders: dict[str, Path] = {}
    for run, manifest in plan.manifests():
        gathered = gather(plan, [(run, manifest)], arrivals)
        answered = sum(replicate.answered for replicate in gathered.answers.values())
        if (run.skill, run.model_id) in unfinished and answered < manifest.calls:
            run_folders = [folder.parent for folder in gathered.folders]
            folders.setdefault(run.id, run_folders[0] if run_folders else arrivals.root / plan.job_of(run))
    evaluate = ("skill-evaluator", "evaluate", f"--plan={request.plan}")
    return [
        shlex.join([*evaluate, f"--planned={run_id}", f"--results={folder}", *words_of(request)])
        for run_id, folder in folders.items()
    ]


def _judged(gathered: GatheredRun, arrivals: Arrivals, cases: Sequence[Case], request: CollectRequest) -> JudgedRun:
    """Read the verdicts of a run's judge on its outputs, except verdicts by an earlier judge prompt."""
    configuration, manifest = request.configuration, gathered.manifest
    if not any(case.sentences for case in cases):
        return JudgedRun()
    model = next((model for model in configuration.models if model.id == gathered.judge), None)
    if model is None:
        raise PlanError(f"the judge '{gathered.judge}' is no longer in models.yaml; check out the plan's commit")
    judge = SentencesJudge(model=model, judged_run=manifest.run_id, seed=manifest.seed, folder=Path())
    answered: dict[str, Replicate] = {}
    manifests: list[Manifest] = []
    for run in arrivals.runs:
        is_of_run = run.folder.parent.name == JUDGE and run.folder.parent.parent in gathered.folders
        if run.manifest is None or not is_of_run or run.manifest.digests != judge.digests:
            continue
        manifests.append(run.manifest)
        with suppress(RunError):  # an output with an unreadable verdict counts as not judged
            replicates = read_answers(run.folder, lambda _: None)
            answered |= {replicate.call.case_id: replicate for replicate in replicates if replicate.answered}
    answers = SentenceAnswers(manifest=manifests[0] if manifests else None, answered=answered)
    return judged_by(
        judged_items(cases, gathered.answers), answers, manifest.seed, configuration, request.config, model
    )


def _verdicts(
    records: Iterable[Record], checkout: CiOptions, *, again: bool
) -> tuple[list[ComparisonResult], dict[str, SkillEvaluatorError]]:
    """Compare final runs with their recorded baselines; return the verdicts, and the errors by component.

    A component whose leaderboard is unreadable has an error instead of a verdict; its records are still published.
    """
    verdicts, undecided = [], {}
    for skill, final in by_key((record.skill, record) for record in records if record.is_final).items():
        verdict = result_or_error(skill, partial(_verdict, skill, final, checkout, again=again))
        if isinstance(verdict, SkillEvaluatorError):
            undecided[skill] = verdict
        elif verdict is not None:
            verdicts.append(verdict)
    return verdicts, undecided


def _verdict(skill: str, final: Sequence[Record], checkout: CiOptions, *, again: bool) -> ComparisonResult | None:
    component, settings = checkout.component(skill), checkout.configuration.settings
    recorded = RecordedComponent(component=component, archive=checkout.archive(component), settings=settings)
    verdict = recorded.drift_of(final) if again else recorded.verdict_on(final)
    return verdict and verdict.model_copy(update={"ship": recorded.ship_words()})


def _lost_values(
    verdicts: Iterable[ComparisonResult],
    records: Mapping[str, Record],
    outputs: Mapping[str | None, Callable[[], GatheredRun]],
    request: CollectRequest,
) -> Iterator[tuple[str, list[LostValue] | SkillEvaluatorError]]:
    """Yield the id of each run with an interleaved baseline, and its lost values or the error.

    Yield nothing if the cases are in another repository, which may have other readers.
    """
    if request.configuration.settings.fixtures is not None:
        return
    for model in (model for verdict in verdicts for model in verdict.models if model.lost_fields):
        ids = (model.baseline.run_id if model.baseline else "", model.candidate.run_id)
        if all(run_id in records for run_id in ids):
            runs = [(records[run_id], outputs[run_id]()) for run_id in ids]
            yield ids[1], result_or_error(runs[0][0].skill, partial(_lost_values_of_model, model, runs, request))


def _lost_values_of_model(
    verdict: ModelVerdict, runs: Sequence[tuple[Record, GatheredRun]], request: CollectRequest
) -> list[LostValue]:
    """Return a value before and after for the first lost fields, each from the case with the largest drop."""
    (before, gathered_before), (after, gathered_after) = runs
    component = request.component(after.skill)
    cases, outputs = load_cases(component, request.fixtures), (gathered_before.answers, gathered_after.answers)
    changes = list(answer_changes(component, cases, before, after, outputs))
    changes.sort(key=lambda change: (change.score_after or 0.0) - (change.score_before or 0.0))
    lost = []
    for field in verdict.lost_fields[:_MAX_LOST_FIELDS]:
        values = ((change.case_id, value) for change in changes for value in change.values)
        example = next(((case_id, value) for case_id, value in values if _INDEX.sub("[]", value.path) == field), None)
        if example is not None:
            case_id, value = example
            old, new = value_pair(value.before, value.after)
            lost.append(LostValue(case_id=case_id, path=value.path, before=old, after=new))
    return lost


def _score_run(
    gathered: GatheredRun, arrivals: Arrivals, request: CollectRequest, until: float
) -> tuple[RunOutcome, Record | None]:
    """Score the outputs of one run and write its record, unless no output was scored or the record is refused."""
    if not gathered.folders:
        return _run_outcome(gathered, "skipped" if gathered.skipped else "missing", *gathered.remarks), None
    record = _record(gathered, arrivals, request, until)
    status: Status = "complete" if record.complete else "incomplete" if record.scored or record.is_final else "missing"
    failed = {kind: count for kind, count in record.failures.items() if kind != "not_run"}
    outcome = _run_outcome(gathered, status, *gathered.remarks, *fault_lines(record, visible))
    if status == "missing":
        return outcome.model_copy(update={"failed": failed}), None
    accuracy = record.accuracy[record.primary_metric]
    agreement = record.reproducibility.get("pairwise_exact_match")
    measured = {
        "scored": record.scored,
        "failed": failed,
        "primary_metric": record.primary_metric,
        "cost_usd": record.cost_usd,
        "hit_rate": record.tokens.hit_rate,
    }
    refusal = _refusal_reason(record, request)
    if refusal is not None:  # publishing would refuse it, too; the outputs stay in the artifacts
        return outcome.model_copy(update={**measured, "status": "refused", "reason": refusal}), None
    _write(record, request)
    figures = Figures(
        skill_version=record.skill_version,
        accuracy=accuracy.strict_mean,
        ci95=accuracy.ci95 if accuracy.n_cases >= MIN_CASES_FOR_INTERVAL else None,
        reproducibility=agreement.strict_mean if agreement else None,
    )
    return outcome.model_copy(update={**measured, "run_id": record.run_id, "figures": figures}), record


def _write(record: Record, request: CollectRequest) -> None:
    write_record(request.out / RECORDS / record.skill / f"{record.run_id}.json", record)


def _refusal_reason(record: Record, checkout: CiOptions) -> str | None:
    """Return the reason to refuse a complete run, if its version is recorded with another prompt, or None."""
    if record.complete:
        with suppress(SkillEvaluatorError):  # an unreadable archive is reported with the missing verdict
            archive = checkout.archive(checkout.component(record.skill))
            return refusal_reason(archive.entries, record.skill_version, record.digests.get("prompt"))
    return None


def _run_outcome(gathered: GatheredRun, status: Status, *reasons: str) -> RunOutcome:
    """Return the outcome of a run that has no scored outputs."""
    manifest = gathered.manifest
    return RunOutcome(
        skill=manifest.skill,
        model_id=manifest.model_id,
        is_baseline=manifest.role == BASELINE,
        status=status,
        reason="; ".join(reasons),
        planned=manifest.calls,
        scored=0,
        failed={},
    )


def _record(gathered: GatheredRun, arrivals: Arrivals, checkout: CollectRequest, until: float) -> Record:
    """Score the outputs of a run until a deadline; raise PlanError if this checkout differs from the plan."""
    manifest = gathered.manifest
    component = checkout.component(manifest.skill)
    configuration = with_program(checkout.configuration, component)
    model = next((model for model in configuration.models if model.id == manifest.model_id), None)
    if model is None:
        raise PlanError(f"model '{manifest.model_id}' is no longer in models.yaml; check out the plan's commit")
    cases = {case.id: case for case in load_cases(component, checkout.fixtures)}
    present = {case_id: case.digest for case_id, case in cases.items() if case_id in manifest.cases}
    digests = manifest.digests if manifest.role == BASELINE else input_digests(component, model)
    changed = manifest.differences(manifest.model_copy(update={"cases": present, "digests": digests}))
    if changed:
        raise PlanError(
            f"{listed(changed, _MAX_LISTED)} of '{component.name}' changed since the plan; check out the plan's commit"
        )
    run_cases = [cases[case_id] for case_id in manifest.cases]
    planned = schedule_calls(tuple(manifest.cases), manifest.replicates)
    with open_scores(component, run_cases, len(planned), until) as scores:
        scorer = Scorer(component, run_cases, manifest.replicates, scores)
        scorer.add_all(gathered.answers[call] for call in planned if call in gathered.answers)
        judged = _judged(gathered, arrivals, run_cases, checkout)
        scorer.take(judged.scores)
        scorecard = scorer.scorecard()
    is_whole = all(call in gathered.answers for call in planned)
    origin = commits_of(component, checkout.fixtures)
    recorder = Recorder(component=component, settings=configuration.settings, kinds=configuration.kinds, origin=origin)
    stopped = judged.stopped if is_whole else "; ".join(gathered.remarks) or "calls are missing"
    record = recorder.record(model, manifest, scorecard, stopped=stopped, judge=judged.summary)
    takes_time = TOO_COSTLY in record.reasons or any(map(takes_programs, run_cases))
    # the time limit was reached, which is not the model's fault
    if record.is_final and takes_time and time.monotonic() > until:
        stopped = "scoring took longer than limits.collect_seconds"
        record = record.model_copy(update={"complete": False, "usable": None, "stopped": stopped})
    if record.is_final:
        return record
    # the run may still be completed and recorded under its own id
    return record.model_copy(update={"run_id": f"{record.run_id}{PARTIAL}{record.scored}"})
