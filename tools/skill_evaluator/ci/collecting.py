"""Collect the artifacts of a plan's jobs: write one record per run, and the results of all runs to outcome.json.

Collecting makes no call and changes no leaderboard. It scores the outputs again and joins shards into one run. An
artifact counts only for its own job and is not trusted: links are not followed, and an unreadable file is a remark, not
an error.
"""

import datetime
import os
import re
import shlex
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path

from skill_evaluator.ci import plan as ci
from skill_evaluator.ci.matrix import CiOptions
from skill_evaluator.display import MIN_CASES_FOR_INTERVAL
from skill_evaluator.display.safe_text import abridged, value_pair, visible
from skill_evaluator.errors import InternalError, LeaderboardError, PlanError, RunError, SkillEvaluatorError
from skill_evaluator.evaluation.outputs import JudgedRun, judged_by, judged_items
from skill_evaluator.files import json_text, replace_text
from skill_evaluator.identifiers import BASELINE, invocation_of, moment
from skill_evaluator.judges.modes.sentences import SentenceAnswers, SentencesJudge
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.library.options import FormatOption, PlatformName, argument, options, rare, words_of
from skill_evaluator.providers import with_program
from skill_evaluator.providers.redaction import result_or_error
from skill_evaluator.records.archive import refusal_reason
from skill_evaluator.records.record import PARTIAL, Record, fault_lines, read_record, write_record
from skill_evaluator.runner import journal
from skill_evaluator.runner.schedule import Call, Replicate, schedule_calls
from skill_evaluator.scoring.answer_views import answer_changes
from skill_evaluator.scoring.answers import TOO_COSTLY, takes_programs
from skill_evaluator.scoring.recording import Recorder
from skill_evaluator.scoring.scorer import Scorer, open_scores
from skill_evaluator.stats import by_key
from skill_evaluator.text import counted, is_generated, listed
from skill_evaluator.verdicts.component import RecordedComponent, drifts_in
from skill_evaluator.verdicts.decide.results import ComparisonResult, ModelVerdict

MAX_CLOCK_SKEW = datetime.timedelta(days=1)
_SKIPPED = ".skipped"  # the file JOB.skipped holds the reason why a job did not run
_MAX_NOTE_BYTES = 1000
_MAX_LISTED = 3
_MAX_LOST_FIELDS = 3  # lost fields named per model
_INDEX = re.compile(r"\[\d+\]")
Part = tuple[ci.PlannedRun, journal.Manifest]
"""A planned run, and the manifest of the run or of its baseline that the run folder should have."""


@options
class CollectRequest(CiOptions, FormatOption):
    """The options of `collect`."""

    artifacts: Path | None = argument("Folder with the artifacts of the plan's jobs.", None)
    plan: Path = rare("The file that `ci plan` wrote.", Path("plan.json"), metavar="FILE")
    plan_sha256: str | None = rare("The SHA-256 that the plan's file must have.", metavar="HEX")
    out: Path = rare("Folder for records and outcome.json.", Path("collected"), metavar="DIR")
    platform: PlatformName | None = rare("On GitHub Actions: also write the job summary.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """The run folders below `root`, each with its manifest or the error of reading it.

    `notes` has the reasons of skipped jobs by job id.
    """

    plan: ci.Plan
    root: Path
    manifests: dict[Path, journal.Manifest | RunError]
    notes: dict[str, str]

    def job_of(self, folder: Path) -> str | None:
        """Return the id of the job whose artifact contains a folder. Return None if no part of the path is a job id."""
        jobs = {job.id for job in self.plan.jobs}
        return next((part for part in folder.relative_to(self.root).parts if part in jobs), None)

    def folders_of(self, part: Part) -> Iterator[Path]:
        """Yield the folders with the run id of a planned run that are in the artifact of its job, or of no job."""
        run, planned = part
        for folder, manifest in self.manifests.items():
            ids = [folder.name] if isinstance(manifest, RunError) else [folder.name, manifest.run_id]
            if planned.run_id not in ids:
                continue
            job = self.job_of(folder)
            is_of_component = isinstance(manifest, RunError) or manifest.skill == planned.skill
            if job == self.plan.job_of(run) or (job is None and is_of_component):
                yield folder


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredRun:
    """One run with the outputs that arrived, joined from its shards. An interleaved baseline is a run of its own.

    `judge` is the planned judge's model id. `folders` are the accepted run folders. `skipped` means that all jobs of
    the run were skipped. `remarks` explain why a job stopped or did not run, and name ignored folders and outputs.
    """

    manifest: journal.Manifest
    judge: str | None
    answers: Mapping[Call, Replicate]
    folders: tuple[Path, ...]
    skipped: bool
    remarks: tuple[str, ...]


def collect(request: CollectRequest) -> ci.Outcome:
    """Score the outputs of a plan's jobs, write the records and outcome.json, and return the outcome."""
    arrivals = _read_arrivals(request)
    planned, is_drift = parts_of_runs(arrivals.plan), arrivals.plan.trigger == "drift"
    scored, problems = _score_runs(planned, arrivals, request)
    records = {record.run_id: record for _, record in scored if record is not None}
    verdicts, undecided = _verdicts(records.values(), request, again=is_drift)
    for verdict in verdicts if is_drift else ():
        for run_id, drift in drifts_in(verdict).items():
            _write(records[run_id].model_copy(update={"drift": drift}), request)
    parts_by_run = {run.run_id: parts for (run, _), parts in zip(scored, planned, strict=True)}
    lost_values: dict[str | None, list[ci.LostValue]] = {}
    for model in (model for verdict in verdicts for model in verdict.models if model.lost_fields and not is_drift):
        before, after = (records.get(run.run_id) if run else None for run in (model.baseline, model.candidate))
        # cases in another repository may be confidential
        if before and after and request.configuration.settings.fixtures is None:
            compared = [(record, gather(parts_by_run[record.run_id], arrivals).answers) for record in (before, after)]
            values = result_or_error(after.skill, partial(_lost_values, model, compared, request))
            if isinstance(values, SkillEvaluatorError):
                problems.append(values)
            else:
                lost_values[after.run_id] = values
    runs = []
    for run, record in scored:
        problem = undecided.get(run.skill) if record else None
        reasons = (run.reason, f"no verdict: {visible(str(problem))}" if problem else "")
        update = {"lost_values": lost_values.get(run.run_id, []), "reason": "; ".join(filter(None, reasons))}
        runs.append(run.model_copy(update=update))
    outcome = ci.Outcome.view(
        arrivals.plan,
        runs=runs,
        verdicts=[] if is_drift else verdicts,
        drift=verdicts if is_drift else [],
        has_bug=any(isinstance(problem, InternalError) for problem in (*problems, *undecided.values())),
    )
    replace_text(request.out / ci.OUTCOME, json_text(outcome.model_dump(mode="json")))
    return outcome


def _score_runs(
    planned: Sequence[Sequence[Part]], arrivals: Arrivals, request: CollectRequest
) -> tuple[list[tuple[ci.RunOutcome, Record | None]], list[SkillEvaluatorError]]:
    """Score the runs. Return their outcomes with their records (or None) in the order of the plan, and the errors.

    Small runs are scored first, each within an equal share of the remaining `limits.collect_seconds`, so no run is cut
    short unless all runs together take longer.
    """
    deadline = time.monotonic() + request.configuration.settings.limits.collect_seconds
    scored: dict[int, tuple[ci.RunOutcome, Record | None]] = {}
    problems: list[SkillEvaluatorError] = []
    for index in sorted(range(len(planned)), key=lambda index: answers_size(planned[index], arrivals)):
        now = time.monotonic()
        until = now + (deadline - now) / (len(planned) - len(scored))
        gathered = gather(planned[index], arrivals)
        result = result_or_error(gathered.manifest.skill, partial(_score_run, gathered, arrivals, request, until))
        if isinstance(result, SkillEvaluatorError):
            problems.append(result)
            reasons = (*gathered.remarks, f"not collected: {visible(str(result))}")
            result = _run_outcome(gathered, "missing", *reasons), None
        scored[index] = result
    return [scored[index] for index in range(len(planned))], problems


def _read_arrivals(request: CollectRequest) -> Arrivals:
    plan = ci.read_plan(request.plan)
    if request.plan_sha256 not in (None, ci.sha256_of(request.plan)):
        raise PlanError(f"{request.plan} is not what `ci plan` wrote: its SHA-256 is not {request.plan_sha256}")
    if request.artifacts is None or not request.artifacts.is_dir():
        problem = "" if request.artifacts is None else f"{request.artifacts} is not a folder; "
        raise PlanError(f"{problem}name the folder with the jobs' artifacts: skill-evaluator ci collect DIR")
    return find_arrivals(request.artifacts, plan)


def resume_commands(request: CollectRequest, outcome: ci.Outcome) -> list[str]:
    """Return the shell commands that make the missing calls of incomplete and missing runs, one per planned run."""
    unfinished = {(run.skill, run.model_id) for run in outcome.runs if run.status in ("incomplete", "missing")}
    arrivals = _read_arrivals(request)
    folders: dict[str, Path] = {}
    for run, manifest in arrivals.plan.manifests():
        gathered = gather([(run, manifest)], arrivals)
        answered = sum(replicate.answered for replicate in gathered.answers.values())
        if (run.skill, run.model_id) in unfinished and answered < manifest.calls:
            run_folders = [folder.parent for folder in gathered.folders]
            folders.setdefault(run.id, run_folders[0] if run_folders else arrivals.root / arrivals.plan.job_of(run))
    evaluate = ("skill-evaluator", "evaluate", f"--plan={request.plan}")
    return [
        shlex.join([*evaluate, f"--planned={run_id}", f"--results={folder}", *words_of(request)])
        for run_id, folder in folders.items()
    ]


def _judged(gathered: GatheredRun, arrivals: Arrivals, cases: Sequence[Case], request: CollectRequest) -> JudgedRun:
    """Return the judge's verdicts on a run's outputs, except verdicts of a judge with other settings or prompt."""
    configuration, manifest = request.configuration, gathered.manifest
    if not any(case.sentences for case in cases):
        return JudgedRun()
    model = next((model for model in configuration.models if model.id == gathered.judge), None)
    if model is None:
        raise PlanError(f"the judge '{gathered.judge}' is no longer in models.yaml; check out the plan's commit")
    judge = SentencesJudge(model=model, judged_run=manifest.run_id, seed=manifest.seed, folder=Path())
    answered: dict[str, Replicate] = {}
    manifests: list[journal.Manifest] = []
    for folder, judge_manifest in arrivals.manifests.items():
        is_of_run = folder.parent.name == journal.JUDGE and folder.parent.parent in gathered.folders
        if not is_of_run or isinstance(judge_manifest, RunError) or judge_manifest.digests != judge.digests:
            continue
        manifests.append(judge_manifest)
        with suppress(RunError):  # an output with an unreadable verdict counts as not judged
            replicates = journal.read_answers(folder, [])
            answered |= {replicate.call.case_id: replicate for replicate in replicates if replicate.answered}
    answers = SentenceAnswers(manifest=manifests[0] if manifests else None, answered=answered)
    return judged_by(
        judged_items(cases, gathered.answers), answers, manifest.seed, configuration, request.config, model
    )


def _verdicts(
    records: Iterable[Record], checkout: CiOptions, *, again: bool
) -> tuple[list[ComparisonResult], dict[str, SkillEvaluatorError]]:
    """Compare final records with baselines or, if `again`, earlier runs. Return verdicts, and errors by component."""

    def verdict_on(skill: str, final: Sequence[Record]) -> ComparisonResult | None:
        component, settings = checkout.component(skill), checkout.configuration.settings
        recorded = RecordedComponent(component=component, archive=checkout.archive(component), settings=settings)
        verdict = recorded.drift_of(final) if again else recorded.verdict_on(final)
        return verdict and verdict.model_copy(update={"ship": recorded.ship_words()})

    verdicts, undecided = [], {}
    for skill, final in by_key((record.skill, record) for record in records if record.is_final).items():
        verdict = result_or_error(skill, partial(verdict_on, skill, final))
        if isinstance(verdict, SkillEvaluatorError):
            undecided[skill] = verdict
        elif verdict is not None:
            verdicts.append(verdict)
    return verdicts, undecided


def _lost_values(
    verdict: ModelVerdict, runs: Sequence[tuple[Record, Mapping[Call, Replicate]]], request: CollectRequest
) -> list[ci.LostValue]:
    """Return one lost value of each of the first three lost fields. `runs` are baseline and candidate with outputs."""
    (before, old_outputs), (after, new_outputs) = runs
    component = request.component(after.skill)
    cases = load_cases(component)
    changes = list(answer_changes(component, cases, before, after, (old_outputs, new_outputs)))
    changes.sort(key=lambda change: (change.score_after or 0.0) - (change.score_before or 0.0))
    lost = []
    for field in verdict.lost_fields[:_MAX_LOST_FIELDS]:
        values = ((change.case_id, value) for change in changes for value in change.values)
        example = next(((case_id, value) for case_id, value in values if _INDEX.sub("[]", value.path) == field), None)
        if example is not None:
            case_id, value = example
            old, new = value_pair(value.before, value.after)
            lost.append(ci.LostValue(case_id=case_id, path=value.path, before=old, after=new))
    return lost


def _score_run(
    gathered: GatheredRun, arrivals: Arrivals, request: CollectRequest, until: float
) -> tuple[ci.RunOutcome, Record | None]:
    """Score one run and write its record. The record is None if no output was scored, or if the record is refused."""
    if not gathered.folders:
        return _run_outcome(gathered, "skipped" if gathered.skipped else "missing", *gathered.remarks), None
    record = _record(gathered, arrivals, request, until)
    failed = {kind: count for kind, count in record.failures.items() if kind != "not_run"}
    reasons = (*gathered.remarks, *fault_lines(record, visible))
    if not (record.scored or record.is_final):
        return _run_outcome(gathered, "missing", *reasons).model_copy(update={"failed": failed}), None
    outcome = ci.RunOutcome.view(
        record,
        is_baseline=gathered.manifest.role == BASELINE,
        status="complete" if record.complete else "incomplete",
        reason="; ".join(reasons),
        failed=failed,
        hit_rate=record.tokens.hit_rate,
    )
    refusal = _refusal_reason(record, request)
    if refusal is not None:  # publishing would refuse it, too; the outputs stay in the artifacts
        return outcome.model_copy(update={"status": "refused", "reason": refusal, "run_id": None}), None
    _write(record, request)
    accuracy = record.accuracy[record.primary_metric]
    agreement = record.reproducibility.get("pairwise_exact_match")
    figures = ci.Figures(
        skill_version=record.skill_version,
        accuracy=accuracy.strict_mean,
        ci95=accuracy.ci95 if accuracy.n_cases >= MIN_CASES_FOR_INTERVAL else None,
        reproducibility=agreement.strict_mean if agreement else None,
    )
    return outcome.model_copy(update={"figures": figures}), record


def _write(record: Record, request: CollectRequest) -> None:
    write_record(request.out / ci.RECORDS / record.skill / f"{record.run_id}.json", record)


def _refusal_reason(record: Record, checkout: CiOptions) -> str | None:
    """Return a reason if the run is complete and its version is recorded with another prompt. Else return None."""
    if record.complete:
        with suppress(SkillEvaluatorError):  # an unreadable archive is reported with the missing verdict
            archive = checkout.archive(checkout.component(record.skill))
            return refusal_reason(archive.entries, record.skill_version, record.digests.get("prompt"))
    return None


def _run_outcome(gathered: GatheredRun, status: ci.Status, *reasons: str) -> ci.RunOutcome:
    manifest = gathered.manifest
    return ci.RunOutcome(
        skill=manifest.skill,
        model_id=manifest.model_id,
        is_baseline=manifest.role == BASELINE,
        status=status,
        reason="; ".join(reasons),
        planned=manifest.calls,
    )


def _record(gathered: GatheredRun, arrivals: Arrivals, checkout: CollectRequest, until: float) -> Record:
    """Score the outputs of a run until a deadline. Raise PlanError if component or models changed since the plan."""
    manifest = gathered.manifest
    component = checkout.component(manifest.skill)
    configuration = with_program(checkout.configuration, component)
    model = next((model for model in configuration.models if model.id == manifest.model_id), None)
    if model is None:
        raise PlanError(f"model '{manifest.model_id}' is no longer in models.yaml; check out the plan's commit")
    cases = {case.id: case for case in load_cases(component)}
    present = {case_id: case.digest for case_id, case in cases.items() if case_id in manifest.cases}
    digests = manifest.digests if manifest.role == BASELINE else journal.input_digests(component, model)
    changed = manifest.differences(manifest.model_copy(update={"cases": present, "digests": digests}))
    if changed:
        raise PlanError(
            f"{listed(changed, _MAX_LISTED)} of component '{component.name}' on {model.id} changed since the plan; "
            "check out the plan's commit"
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
    recorder = Recorder.of(component, configuration)
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


def find_arrivals(root: Path, plan: ci.Plan) -> Arrivals:
    """Find the run folders and the notes of skipped jobs below `root`, at any depth."""
    arrivals = Arrivals(plan=plan, root=root, manifests={}, notes={})
    planned = {job.id for job in plan.jobs}
    for name, _, files in sorted(os.walk(root)):
        folder = Path(name)
        if journal.MANIFEST in files:
            arrivals.manifests[folder] = _read_manifest(folder)
        for file in files:
            job = file.removesuffix(_SKIPPED)
            is_note = job != file and job in planned and arrivals.job_of(folder) in (None, job)
            if is_note and _is_regular_file(folder / file):
                arrivals.notes[job] = _read_note(folder / file)
    return arrivals


def _is_regular_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()  # a link could lead to any file of this machine


def _read_manifest(folder: Path) -> journal.Manifest | RunError:
    for path in (folder / journal.MANIFEST, folder / journal.ANSWERS, folder / journal.RECORD):
        if os.path.lexists(path) and not _is_regular_file(path):
            return RunError(f"{path} is not a regular file")
    try:
        return journal.read_manifest(folder)
    except RunError as problem:
        return problem


def _read_note(path: Path) -> str:
    try:
        with path.open("rb") as handle:
            first_line, *_ = handle.read(_MAX_NOTE_BYTES).decode("utf-8", "replace").splitlines() or [""]
    except OSError as problem:
        return f"skipped, and the reason cannot be read: {problem.strerror}"
    return visible(first_line.strip()) or "skipped"


def parts_of_runs(plan: ci.Plan) -> list[list[Part]]:
    """Return the planned parts (shards) of each run: those with the same component, model and role."""
    key = attrgetter("skill", "model_id", "role")
    return list(by_key((key(manifest), (run, manifest)) for run, manifest in plan.manifests()).values())


def answers_size(parts: Iterable[Part], arrivals: Arrivals) -> int:
    """Return the size in bytes of the output files that arrived for these parts of a run."""
    files = {folder / journal.ANSWERS for part in parts for folder in arrivals.folders_of(part)}
    return sum(file.stat().st_size for file in files if _is_regular_file(file))


def gather(parts: Sequence[Part], arrivals: Arrivals) -> GatheredRun:
    """Join the planned outputs of a run's parts. Remark on each ignored folder, ignored output and missing job."""
    outputs: list[tuple[journal.Manifest, list[Replicate]]] = []
    accepted, remarks, absent_jobs = dict[Path, journal.Manifest](), list[str](), list[str]()
    for run, planned in parts:
        folders = list(arrivals.folders_of((run, planned)))
        for folder in folders:
            manifest, path = arrivals.manifests[folder], folder.relative_to(arrivals.root)
            problem = str(manifest) if isinstance(manifest, RunError) else _differences(manifest, planned)
            if problem or isinstance(manifest, RunError):
                remarks.append(f"{visible(str(path))} is ignored: {problem}")
                continue
            accepted[folder] = manifest
            answers, problems = _read_answers(folder, visible(str(path)), planned)
            outputs.append((planned, answers))
            remarks += [visible(problem.replace(f"{arrivals.root}{os.sep}", "")) for problem in problems]
        if not folders:
            job = arrivals.plan.job_of(run)
            absent_jobs.append(job)
            readable = (manifest for manifest in arrivals.manifests.values() if isinstance(manifest, journal.Manifest))
            invocations = {invocation_of(manifest.run_id) for manifest in readable} - {arrivals.plan.invocation}
            others = f"; the folder has runs of other plans: {listed(sorted(invocations), _MAX_LISTED)}"
            remarks.append(arrivals.notes.get(job) or f"no artifact of {job} arrived{others * bool(invocations)}")
    judge = parts[0][0].judge
    return GatheredRun(
        manifest=_whole_manifest(arrivals.plan, [manifest for _, manifest in parts], accepted.values()),
        judge=None if judge is None else judge.model_id,
        answers=journal.merged_outcomes(outputs),
        folders=tuple(accepted),
        skipped=len(absent_jobs) == len(parts) and all(job in arrivals.notes for job in absent_jobs),
        remarks=tuple(dict.fromkeys(remarks)),
    )


def _differences(manifest: journal.Manifest, planned: journal.Manifest) -> str:
    """Format the differences between a manifest and the planned one; "" if there are none."""
    differences = []
    for name in journal.Manifest.model_fields:
        actual, expected = getattr(manifest, name), getattr(planned, name)
        if name == "created":
            earliest, latest = moment(expected) - MAX_CLOCK_SKEW, datetime.datetime.now(datetime.UTC) + MAX_CLOCK_SKEW
            if not earliest <= moment(actual) <= latest:
                differences.append(f"created is {actual}, the plan was made at {expected}")
        elif isinstance(expected, dict) and actual != expected:
            names = sorted(key for key in actual.keys() | expected.keys() if actual.get(key) != expected.get(key))
            differences.append(f"{name}: {listed(names, _MAX_LISTED)} differs from the plan")
        elif name == "skill_version" and is_generated(str(actual)) and is_generated(str(expected)):
            continue  # jobs do not see the branch of records that numbers versions; digests identify the prompt
        elif name in journal.SET_DURING_RUN or (name == "beside" and actual is None):
            continue  # `beside` is None if the baseline could not be called
        elif actual != expected:
            differences.append(f"{name} is {_shown(actual)}, the plan says {_shown(expected)}")
    return visible(listed(differences, _MAX_LISTED))


def _shown(value: object) -> str:
    return "none" if value is None or value == () else abridged(str(value))


def _read_answers(folder: Path, path: str, planned: journal.Manifest) -> tuple[list[Replicate], list[str]]:
    """Return the readable outputs of a run folder, unplanned ones included, and messages about problems."""
    replicates, problems = list[Replicate](), list[str]()
    try:
        for replicate in journal.read_answers(folder, problems):
            replicates.append(replicate)
    except RunError as problem:
        problems.append(str(problem))
    if unplanned := sum(not planned.includes(replicate.call) for replicate in replicates):
        problems.append(f"{path}: {counted(unplanned, 'output')} of unplanned calls ignored")
    try:
        stopped = read_record(folder / journal.RECORD).stopped
    except LeaderboardError:
        stopped = "a job ended before it wrote its record"
    return replicates, [*problems, abridged(stopped, 300)] if stopped else problems


def _whole_manifest(
    plan: ci.Plan, planned: Sequence[journal.Manifest], arrived: Collection[journal.Manifest]
) -> journal.Manifest:
    first = planned[0]
    cases = {case_id: digest for manifest in planned for case_id, digest in manifest.cases.items()}
    new, baseline = (
        journal.run_id_of(plan.invocation, first.skill, first.model_id, mark=mark) for mark in ("", BASELINE)
    )
    run_id, counterpart = (baseline, new) if first.role == BASELINE else (new, baseline)
    return first.model_copy(
        update={
            "run_id": run_id,
            "beside": None if first.beside is None else counterpart,
            "created": min((manifest.created for manifest in arrived), default=first.created),
            "server": next((manifest.server for manifest in arrived if manifest.server), None),
            "shard": None,
            "cases": dict(sorted(cases.items())),
        }
    )
