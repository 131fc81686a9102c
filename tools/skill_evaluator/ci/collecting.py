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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from skill_evaluator.ci import plan as ci
from skill_evaluator.ci.plan import CiOptions
from skill_evaluator.display import MIN_CASES_FOR_INTERVAL, abridged, value_pair, visible
from skill_evaluator.errors import LeaderboardError, PlanError, RunError, SkillEvaluatorError
from skill_evaluator.evaluation.outputs import JudgedRun, judged_by, judged_items
from skill_evaluator.files import json_text, replace_text
from skill_evaluator.identifiers import BASELINE, invocation_of, moment
from skill_evaluator.judges.modes.sentences import SentenceAnswers, SentencesJudge
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.library.options import FormatOption, PlatformName, argument, options, rare, words_of
from skill_evaluator.providers import with_program
from skill_evaluator.providers.access import result_or_error
from skill_evaluator.records.archive import refusal_reason
from skill_evaluator.records.record import PARTIAL, Record, fault_lines, read_record, write_record
from skill_evaluator.runner import journal
from skill_evaluator.runner.journal import Manifest
from skill_evaluator.runner.schedule import Call, Replicate, schedule_calls
from skill_evaluator.scoring.answer_views import answer_changes
from skill_evaluator.scoring.recording import Recorder
from skill_evaluator.scoring.scorer import TOO_COSTLY, open_scorer, score_outcomes, takes_programs
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
ArrivedFolder = tuple[Path, str | None, Manifest | RunError]
"""A run folder, the job of its artifact (None if unknown), and its manifest or the error of reading it."""


@options
class CollectRequest(CiOptions, FormatOption):
    """The options of `ci collect`."""

    artifacts: Path | None = argument("Folder with the artifacts of the plan's jobs.", None)
    plan: Path = rare("The file that `ci plan` wrote.", Path("plan.json"), metavar="FILE")
    plan_sha256: str | None = rare("The SHA-256 that the plan's file must have.", metavar="HEX")
    out: Path = rare("Folder for records and outcome.json.", Path("collected"), metavar="DIR")
    platform: PlatformName | None = rare("On GitHub Actions: also write the job summary.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivedRun:
    """One run of the plan, joined from its shards, with the run folders that arrived below `root`.

    An interleaved baseline is a run of its own. `folders` has the accepted run folders with their manifests, and
    `remarks` the reasons of ignored folders and missing jobs. `judge` is the judge's model id. `judge_folders` has the
    run folders of the judge with their manifests. `skipped`: all jobs of the run were skipped.
    """

    root: Path
    manifest: Manifest
    folders: Mapping[Path, Manifest]
    remarks: Sequence[str]
    judge: str | None
    judge_folders: Mapping[Path, Manifest]
    skipped: bool

    @property
    def output_bytes(self) -> int:
        """The size of the accepted files with outputs."""
        files = (folder / journal.ANSWERS for folder in self.folders)
        return sum(file.stat().st_size for file in files if file.exists())


def collect(request: CollectRequest) -> tuple[ci.Outcome, list[SkillEvaluatorError]]:
    """Score the outputs of a plan's jobs and write the records and outcome.json. Return the outcome and all errors."""
    plan, runs = _read_arrivals(request)
    is_drift = plan.event.trigger == "drift"
    scored, records, problems = _score_runs(runs, request)
    verdicts, undecided = _verdicts(records.values(), request, is_drift=is_drift)
    for verdict in verdicts if is_drift else ():
        for run_id, drift in drifts_in(verdict).items():
            _write(records[run_id].model_copy(update={"drift": drift}), request)
    arrived = {outcome.run_id: run for outcome, run in zip(scored, runs, strict=True)}
    lost_values: dict[str | None, list[ci.LostValue]] = {}
    for model in (model for verdict in verdicts for model in verdict.models if model.lost_fields and not is_drift):
        before, after = (records.get(run.run_id) if run else None for run in (model.baseline, model.candidate))
        # cases in another repository may be confidential
        if before and after and request.configuration.settings.fixtures is None:
            compared = [(record, read_outputs(arrived[record.run_id])[0]) for record in (before, after)]
            values = result_or_error(after.skill, partial(_lost_values, model, compared, request))
            if isinstance(values, SkillEvaluatorError):
                problems.append(values)
            else:
                lost_values[after.run_id] = values
    outcomes = []
    for outcome in scored:
        problem = undecided.get(outcome.skill) if outcome.run_id in records else None
        reasons = (outcome.reason, f"no verdict: {visible(str(problem))}" if problem else "")
        update = {"lost_values": lost_values.get(outcome.run_id, []), "reason": "; ".join(filter(None, reasons))}
        outcomes.append(outcome.model_copy(update=update))
    result = ci.Outcome.view(
        plan,
        runs=outcomes,
        verdicts=[] if is_drift else verdicts,
        drift=verdicts if is_drift else [],
    )
    replace_text(request.out / ci.OUTCOME, json_text(result.model_dump(mode="json")))
    return result, [*problems, *undecided.values()]


def _score_runs(
    runs: Sequence[ArrivedRun], request: CollectRequest
) -> tuple[list[ci.RunOutcome], dict[str, Record], list[SkillEvaluatorError]]:
    """Score the runs. Return their outcomes and their records by run id, in the order of the plan, and the errors.

    Small runs are scored first. Each run gets an equal share of the remaining `limits.collect_seconds`, so the time
    that small runs leave is used by large runs.
    """
    deadline = time.monotonic() + request.configuration.settings.limits.collect_seconds
    scored: dict[int, tuple[ci.RunOutcome, Record | None]] = {}
    problems: list[SkillEvaluatorError] = []
    for index in sorted(range(len(runs)), key=lambda index: runs[index].output_bytes):
        now, run = time.monotonic(), runs[index]
        until = now + (deadline - now) / (len(runs) - len(scored))
        outputs, remarks = read_outputs(run)
        result = result_or_error(run.manifest.skill, partial(_score_run, run, outputs, remarks, request, until))
        if isinstance(result, SkillEvaluatorError):
            problems.append(result)
            result = _run_outcome(run, "missing", *remarks, f"not collected: {visible(str(result))}"), None
        scored[index] = result
    ordered = [scored[index] for index in range(len(runs))]
    records = {record.run_id: record for _, record in ordered if record is not None}
    return [outcome for outcome, _ in ordered], records, problems


def _read_arrivals(request: CollectRequest) -> tuple[ci.Plan, list[ArrivedRun]]:
    plan = ci.read_plan(request.plan)
    if request.plan_sha256 not in (None, ci.sha256_of(request.plan)):
        raise PlanError(f"{request.plan} is not what `ci plan` wrote: its SHA-256 is not {request.plan_sha256}")
    if request.artifacts is None or not request.artifacts.is_dir():
        problem = "" if request.artifacts is None else f"{request.artifacts} is not a folder; "
        raise PlanError(f"{problem}name the folder with the jobs' artifacts: skill-evaluator ci collect DIR")
    return plan, find_arrivals(request.artifacts, plan)


def resume_commands(request: CollectRequest, outcome: ci.Outcome) -> list[str]:
    """Return the shell commands that make the missing calls of incomplete and missing runs, one per planned run."""
    unfinished = {(run.skill, run.model_id) for run in outcome.runs if run.status in ("incomplete", "missing")}
    plan, runs = _read_arrivals(request)
    arrived = by_key((shard.run_id, folder) for run in runs for folder, shard in run.folders.items())
    folders: dict[str, Path] = {}
    for run, manifest in plan.manifests():
        run_folders = arrived.get(manifest.run_id, [])
        outputs = journal.merged_outcomes((manifest, _read_journal(folder)[0]) for folder in run_folders)
        answered = sum(replicate.answered for replicate in outputs.values())
        if (run.skill, run.model_id) in unfinished and answered < manifest.calls:
            job_folder = runs[0].root / plan.job_of(run)
            folders.setdefault(run.id, run_folders[0].parent if run_folders else job_folder)
    evaluate = ("skill-evaluator", "evaluate", f"--plan={request.plan}")
    return [
        shlex.join([*evaluate, f"--planned={run_id}", f"--results={folder}", *words_of(request)])
        for run_id, folder in folders.items()
    ]


def _judged(
    run: ArrivedRun, outputs: Mapping[Call, Replicate], cases: Sequence[Case], request: CollectRequest
) -> JudgedRun:
    """Return the judge's verdicts on a run's outputs. Ignore verdicts if the judge's prompt or settings changed."""
    configuration, manifest = request.configuration, run.manifest
    if not any(case.sentences for case in cases):
        return JudgedRun()
    model = next((model for model in configuration.models if model.id == run.judge), None)
    if model is None:
        raise PlanError(f"the judge '{run.judge}' is no longer in models.yaml; check out the plan's commit")
    judge = SentencesJudge(model=model, judged_run=manifest.run_id, seed=manifest.seed, folder=Path())
    answered: dict[str, Replicate] = {}
    manifests: list[Manifest] = []
    for folder, judge_manifest in run.judge_folders.items():
        if judge_manifest.digests != judge.digests:
            continue
        manifests.append(judge_manifest)
        with suppress(RunError):  # an output with an unreadable verdict counts as not judged
            replicates = journal.read_journal(folder, [])
            answered |= {replicate.call.case_id: replicate for replicate in replicates if replicate.answered}
    answers = SentenceAnswers(manifest=manifests[0] if manifests else None, answered=answered)
    items = judged_items(cases, outputs.values())
    return judged_by(items, answers, manifest.seed, configuration, request.config, model)


def _verdicts(
    records: Iterable[Record], request: CiOptions, *, is_drift: bool
) -> tuple[list[ComparisonResult], dict[str, SkillEvaluatorError]]:
    """Compare finished runs with their baselines. Return the verdicts, and errors by component.

    If `is_drift`, compare the runs with earlier runs of the same prompt instead.
    """

    def compare_component(skill: str, final: Sequence[Record]) -> ComparisonResult | None:
        component, settings = request.component(skill), request.configuration.settings
        archive = request.archive(component).with_records(final)
        recorded = RecordedComponent(component=component, archive=archive, settings=settings)
        verdict = recorded.drift_of(final) if is_drift else recorded.verdict_on(final)
        return verdict and verdict.model_copy(update={"ship": recorded.ship_words()})

    verdicts, undecided = [], {}
    for skill, final in by_key((record.skill, record) for record in records if record.is_final).items():
        verdict = result_or_error(skill, partial(compare_component, skill, final))
        if isinstance(verdict, SkillEvaluatorError):
            undecided[skill] = verdict
        elif verdict is not None:
            verdicts.append(verdict)
    return verdicts, undecided


def _lost_values(
    verdict: ModelVerdict, runs: Sequence[tuple[Record, Mapping[Call, Replicate]]], request: CollectRequest
) -> list[ci.LostValue]:
    """Return an example case for each of the first three lost fields. `runs`: baseline and candidate, with outputs."""
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
    run: ArrivedRun, outputs: Mapping[Call, Replicate], remarks: Sequence[str], request: CollectRequest, until: float
) -> tuple[ci.RunOutcome, Record | None]:
    """Score a run and write its record. The record is None for a refused run, or an unfinished run without scores."""
    if not run.folders:
        return _run_outcome(run, "skipped" if run.skipped else "missing", *remarks), None
    record = _record(run, outputs, remarks, request, until)
    failed = {kind: count for kind, count in record.failures.items() if kind != "not_run"}
    reasons = (*remarks, *fault_lines(record, visible))
    if not (record.scored or record.is_final):
        counts = ci.CallCounts(planned=run.manifest.calls, failed=failed)
        return _run_outcome(run, "missing", *reasons).model_copy(update={"counts": counts}), None
    accuracy = record.accuracy[record.primary_metric]
    agreement = record.reproducibility.get("pairwise_exact_match")
    outcome = ci.RunOutcome.view(
        record,
        is_baseline=run.manifest.role == BASELINE,
        status="complete" if record.complete else "incomplete",
        reason="; ".join(reasons),
        counts=ci.CallCounts.view(record, failed=failed),
        hit_rate=record.cost.tokens.hit_rate,
        figures=ci.Figures(
            skill_version=record.skill_version,
            accuracy=accuracy.strict_mean,
            ci95=accuracy.ci95 if accuracy.n_cases >= MIN_CASES_FOR_INTERVAL else None,
            reproducibility=agreement.strict_mean if agreement else None,
        ),
    )
    refusal = _refusal_reason(record, request)
    if refusal is not None:  # publishing would refuse it, too; the outputs stay in the artifacts
        refused = {"status": "refused", "reason": refusal, "run_id": None, "figures": None}
        return outcome.model_copy(update=refused), None
    _write(record, request)
    return outcome, record


def _write(record: Record, request: CollectRequest) -> None:
    write_record(request.out / ci.RECORDS / record.skill / f"{record.run_id}.json", record)


def _refusal_reason(record: Record, request: CiOptions) -> str | None:
    """Return the reason to refuse a complete run whose version is recorded with another prompt, otherwise None."""
    if record.complete:
        with suppress(SkillEvaluatorError):  # an unreadable archive is reported with the missing verdict
            archive = request.archive(request.component(record.skill))
            return refusal_reason(archive.entries, record.skill_version, record.digests.get("prompt"))
    return None


def _run_outcome(run: ArrivedRun, status: ci.Status, *reasons: str) -> ci.RunOutcome:
    manifest = run.manifest
    return ci.RunOutcome(
        skill=manifest.skill,
        model_id=manifest.model_id,
        is_baseline=manifest.role == BASELINE,
        status=status,
        reason="; ".join(reasons),
        counts=ci.CallCounts(planned=manifest.calls),
    )


def _record(
    run: ArrivedRun, outputs: Mapping[Call, Replicate], remarks: Sequence[str], request: CollectRequest, until: float
) -> Record:
    """Score the outputs of a run until a deadline. Raise PlanError if component or models changed since the plan."""
    manifest = run.manifest
    component = request.component(manifest.skill)
    configuration = with_program(request.configuration, component)
    model = next((model for model in configuration.models if model.id == manifest.model_id), None)
    if model is None:
        raise PlanError(f"model '{manifest.model_id}' is no longer in models.yaml; check out the plan's commit")
    cases = {case.id: case for case in load_cases(component)}
    present = {case_id: case.digest for case_id, case in cases.items() if case_id in manifest.cases}
    digests = manifest.digests if manifest.role == BASELINE else journal.input_digests(component, model)
    changed = manifest.differences(manifest.model_copy(update={"cases": present, "digests": digests}))
    if changed:
        raise PlanError(
            f"{listed(changed, _MAX_LISTED)} of component '{component.name}' with {model.id} changed since the plan; "
            "check out the plan's commit"
        )
    run_cases = [cases[case_id] for case_id in manifest.cases]
    planned = schedule_calls(tuple(manifest.cases), manifest.replicates)
    outcomes = [outputs[call] for call in planned if call in outputs]
    judged = _judged(run, outputs, run_cases, request)
    with open_scorer(component, run_cases, len(outcomes), until) as scorer:
        scorecard = score_outcomes(scorer, manifest, outcomes, judged.scores)
    recorder = Recorder.of(component, configuration)
    stopped = judged.stopped if len(outcomes) == len(planned) else "; ".join(remarks) or "calls are missing"
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


def find_arrivals(root: Path, plan: ci.Plan) -> list[ArrivedRun]:
    """Return the runs of a plan. Find their folders and the notes of skipped jobs at any depth below `root`."""
    jobs = {job.id for job in plan.jobs}
    folders: list[ArrivedFolder] = []
    notes: dict[str, str] = {}
    for name, _, files in sorted(os.walk(root)):
        folder = Path(name)
        job_of_artifact = next((part for part in folder.relative_to(root).parts if part in jobs), None)
        if journal.MANIFEST in files:
            folders.append((folder, job_of_artifact, _read_manifest(folder)))
        for file in files:
            job = file.removesuffix(_SKIPPED)
            is_note = job != file and job in jobs and job_of_artifact in (None, job)
            if is_note and _is_regular_file(folder / file):
                notes[job] = _read_note(folder / file)
    runs = by_key(((shard.skill, shard.model_id, shard.role), (run, shard)) for run, shard in plan.manifests())
    return [_join(shards, plan, root, folders, notes) for shards in runs.values()]


def _is_regular_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()  # a link could lead to any file of this machine


def _read_manifest(folder: Path) -> Manifest | RunError:
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


def _join(
    shards: Sequence[tuple[ci.PlannedRun, Manifest]],
    plan: ci.Plan,
    root: Path,
    folders: Sequence[ArrivedFolder],
    notes: Mapping[str, str],
) -> ArrivedRun:
    accepted, remarks, absent_jobs = dict[Path, Manifest](), list[str](), list[str]()
    for run, planned in shards:
        job = plan.job_of(run)
        arrived = list(_arrived_folders(planned, job, folders))
        for folder, manifest in arrived:
            problem = str(manifest) if isinstance(manifest, RunError) else _differences(manifest, planned)
            if problem or isinstance(manifest, RunError):
                remarks.append(f"{visible(str(folder.relative_to(root)))} is ignored: {problem}")
            else:
                accepted[folder] = manifest
        if not arrived:
            absent_jobs.append(job)
            manifests = (manifest for _, _, manifest in folders if isinstance(manifest, Manifest))
            invocations = {invocation_of(manifest.run_id) for manifest in manifests} - {plan.invocation}
            others = f"; the folder has runs of other plans: {listed(sorted(invocations), _MAX_LISTED)}"
            remarks.append(notes.get(job) or f"no artifact of {job} arrived{others * bool(invocations)}")
    (run, first), *_ = shards
    whole = run.model_copy(update={"shard": None})
    run_id, counterpart = whole.run_id(plan.invocation), whole.run_id(plan.invocation, BASELINE)
    if first.role == BASELINE:
        run_id, counterpart = counterpart, run_id
    joined = {
        "run_id": run_id,
        "beside": None if first.beside is None else counterpart,
        "created": min((manifest.created for manifest in accepted.values()), default=first.created),
        "server": next((manifest.server for manifest in accepted.values() if manifest.server), None),
        "shard": None,
        "cases": dict(sorted(case for _, planned in shards for case in planned.cases.items())),
    }
    return ArrivedRun(
        root=root,
        manifest=first.model_copy(update=joined),
        folders=accepted,
        remarks=remarks,
        judge=None if run.judge is None else run.judge.model_id,
        judge_folders={
            folder: manifest
            for folder, _, manifest in folders
            if folder.parent.name == journal.JUDGE and folder.parent.parent in accepted
            if isinstance(manifest, Manifest)
        },
        skipped=len(absent_jobs) == len(shards) and all(job in notes for job in absent_jobs),
    )


def _arrived_folders(
    planned: Manifest, job: str, folders: Iterable[ArrivedFolder]
) -> Iterator[tuple[Path, Manifest | RunError]]:
    """Yield a shard's run folders, with the manifest or the error of reading it. Skip artifacts of other jobs."""
    for folder, job_of_artifact, manifest in folders:
        ids, is_of_component = [folder.name], True
        if isinstance(manifest, Manifest):
            ids, is_of_component = [*ids, manifest.run_id], manifest.skill == planned.skill
        if planned.run_id in ids and (job_of_artifact == job or (job_of_artifact is None and is_of_component)):
            yield folder, manifest


def read_outputs(run: ArrivedRun) -> tuple[dict[Call, Replicate], list[str]]:
    """Return the planned outputs of a run, and remarks on missing jobs, ignored folders and ignored outputs."""
    outputs: list[tuple[Manifest, list[Replicate]]] = []
    remarks = [*run.remarks]
    for folder, manifest in run.folders.items():
        replicates, problems = _read_journal(folder)
        outputs.append((manifest, replicates))
        path = folder.relative_to(run.root)
        if unplanned := sum(not manifest.includes(replicate.call) for replicate in replicates):
            problems.append(f"{path}: {counted(unplanned, 'output')} of unplanned calls ignored")
        try:
            stopped = read_record(folder / journal.RECORD).stopped
        except LeaderboardError:
            stopped = "a job ended before it wrote its record"
        problems += [abridged(stopped, 300)] if stopped else []
        remarks += [visible(problem.replace(f"{run.root}{os.sep}", "")) for problem in problems]
    return journal.merged_outcomes(outputs), list(dict.fromkeys(remarks))


def _read_journal(folder: Path) -> tuple[list[Replicate], list[str]]:
    """Return the readable outputs of a run folder, unplanned ones included, and messages about problems."""
    replicates, problems = list[Replicate](), list[str]()
    try:
        for replicate in journal.read_journal(folder, problems):
            replicates.append(replicate)
    except RunError as problem:
        problems.append(str(problem))
    return replicates, problems


def _differences(manifest: Manifest, planned: Manifest) -> str:
    """Format the differences between a manifest and the planned one; "" if there are none."""
    differences = []
    for name in Manifest.model_fields:
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
