"""Read the artifacts of a plan's jobs and join the planned outputs of every component and model.

An artifact counts only for its own job and is not trusted: links are not followed, and an unreadable file is a remark,
not an error.
"""

import datetime
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from skill_evaluator.ci.plan import Plan, PlannedRun
from skill_evaluator.display.safe_text import abridged, visible
from skill_evaluator.errors import LeaderboardError, RunError
from skill_evaluator.identifiers import BASELINE, invocation_of, moment
from skill_evaluator.records.record import read_record
from skill_evaluator.runner.journal import (
    ANSWERS,
    MANIFEST,
    RECORD,
    SET_DURING_RUN,
    Manifest,
    merged_outcomes,
    read_answers,
    read_manifest,
    run_id_of,
)
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.stats import by_key
from skill_evaluator.text import counted, is_generated, listed

MAX_CLOCK_SKEW = datetime.timedelta(days=1)
SKIPPED = ".skipped"  # the file JOB.skipped holds the reason why a job did not run
_MAX_LISTED = 3
_MAX_NOTE_BYTES = 1000
Part = tuple[PlannedRun, Manifest]
"""A planned run, and the manifest that its folder should have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivedRun:
    """A run folder and, if known, the job whose artifact holds it. `problem` explains why there is no manifest."""

    folder: Path
    path: str
    job: str | None
    manifest: Manifest | None
    problem: str = ""

    def claims(self, planned: Manifest, job: str) -> bool:
        """Return whether the folder has the run id of a planned run and comes from its job."""
        if planned.run_id not in (self.folder.name, self.manifest and self.manifest.run_id):
            return False
        if self.job is not None:
            return self.job == job
        return self.manifest is None or self.manifest.skill == planned.skill


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """The run folders below `root`; `notes` has the reasons of skipped jobs by job id."""

    root: Path
    runs: tuple[ArrivedRun, ...]
    notes: dict[str, str]


def find_arrivals(root: Path, plan: Plan) -> Arrivals:
    """Find the run folders and the skip notes of a plan's jobs below `root`, at any depth."""
    planned = {job.id for job in plan.jobs}
    runs: list[ArrivedRun] = []
    notes: dict[str, str] = {}
    for name, _, files in sorted(os.walk(root)):
        folder = Path(name)
        job = next((part for part in folder.relative_to(root).parts if part in planned), None)
        if MANIFEST in files:
            runs.append(_read_run(folder, root, job))
        for file in files:
            skipped_job = file.removesuffix(SKIPPED)
            is_note = skipped_job != file and skipped_job in planned and job in (None, skipped_job)
            if is_note and _is_regular_file(folder / file):
                notes[skipped_job] = _read_note(folder / file)
    return Arrivals(root=root, runs=tuple(runs), notes=notes)


def _is_regular_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()  # a link could lead to any file of this machine


def _read_run(folder: Path, root: Path, job: str | None) -> ArrivedRun:
    manifest, problem = None, ""
    try:
        for path in (folder / MANIFEST, folder / ANSWERS, folder / RECORD):
            if os.path.lexists(path) and not _is_regular_file(path):
                raise RunError(f"{path} is not a regular file")
        manifest = read_manifest(folder)
    except RunError as caught:
        problem = str(caught)
    path_text = visible(str(folder.relative_to(root)))
    return ArrivedRun(folder=folder, path=path_text, job=job, manifest=manifest, problem=problem)


def _read_note(path: Path) -> str:
    """Return the first line of a skipped job's note, "skipped" if it is blank, or the reason why it is unreadable."""
    try:
        with path.open("rb") as handle:
            first_line, *_ = handle.read(_MAX_NOTE_BYTES).decode("utf-8", "replace").splitlines() or [""]
    except OSError as problem:
        return f"skipped, and the reason cannot be read: {problem.strerror}"
    return visible(first_line.strip()) or "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredRun:
    """The outputs of a run that arrived, its shards joined. An interleaved baseline is another run.

    `manifest` is the manifest of the whole run, `judge` the id of its planned judge. `folders` are the accepted run
    folders, empty if nothing arrived. `remarks` explain why a job stopped or did not run, and name unplanned files.
    """

    manifest: Manifest
    judge: str | None
    answers: Mapping[Call, Replicate]
    folders: tuple[Path, ...]
    skipped: bool
    remarks: tuple[str, ...]


def parts_of_runs(plan: Plan) -> list[list[Part]]:
    """Return the planned parts (shards) of each run: those with the same component, model and role."""
    key = attrgetter("skill", "model_id", "role")
    return list(by_key((key(manifest), (run, manifest)) for run, manifest in plan.manifests()).values())


def answers_size(plan: Plan, parts: Iterable[Part], arrivals: Arrivals) -> int:
    """Return the size of the outputs of these parts that arrived, in bytes."""
    files = {arrived.folder / ANSWERS for part in parts for arrived in _claimants(plan, part, arrivals)}
    return sum(file.stat().st_size for file in files if _is_regular_file(file))


def _claimants(plan: Plan, part: Part, arrivals: Arrivals) -> list[ArrivedRun]:
    run, manifest = part
    job = plan.job_of(run)
    return [arrived for arrived in arrivals.runs if arrived.claims(manifest, job)]


def gather(plan: Plan, parts: Sequence[Part], arrivals: Arrivals) -> GatheredRun:
    """Join the planned outputs of a run's parts; remark on each ignored folder, ignored output and missing job."""
    outputs: list[tuple[Manifest, list[Replicate]]] = []
    manifests, folders, remarks, absent_jobs = list[Manifest](), list[Path](), list[str](), list[str]()
    judge = parts[0][0].judge
    for run, planned in parts:
        claimants = _claimants(plan, (run, planned), arrivals)
        for arrived in claimants:
            problem = arrived.problem if arrived.manifest is None else _differences(arrived.manifest, planned)
            if problem or arrived.manifest is None:
                remarks.append(f"{arrived.path} is ignored: {problem}")
                continue
            answers, problems = _read_answers(arrived, planned)
            outputs.append((planned, answers))
            manifests.append(arrived.manifest)
            folders.append(arrived.folder)
            remarks += [visible(problem.replace(f"{arrivals.root}{os.sep}", "")) for problem in problems]
        if not claimants:
            job = plan.job_of(run)
            absent_jobs.append(job)
            remarks.append(arrivals.notes.get(job) or _nothing_arrived(job, plan, arrivals))
    return GatheredRun(
        manifest=_whole_manifest(plan, [manifest for _, manifest in parts], manifests),
        judge=None if judge is None else judge.model_id,
        answers=merged_outcomes(outputs),
        folders=tuple(folders),
        skipped=len(absent_jobs) == len(parts) and all(job in arrivals.notes for job in absent_jobs),
        remarks=tuple(dict.fromkeys(remarks)),
    )


def _nothing_arrived(job: str, plan: Plan, arrivals: Arrivals) -> str:
    """Say that nothing arrived of a job, and which other plans' runs the folder has."""
    invocations = {invocation_of(arrived.manifest.run_id) for arrived in arrivals.runs if arrived.manifest is not None}
    others = listed(sorted(invocations - {plan.invocation}), _MAX_LISTED)
    return f"nothing arrived of {job}" + (f"; the folder has runs of other plans: {others}" if others else "")


def _differences(manifest: Manifest, planned: Manifest) -> str:
    """List the fields in which a manifest differs from the plan; empty if there are none."""
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
        elif name in SET_DURING_RUN or (name == "beside" and actual is None):  # the baseline could not be called
            continue
        elif actual != expected:
            differences.append(f"{name} is {_shown(actual)}, the plan says {_shown(expected)}")
    return visible(listed(differences, _MAX_LISTED))


def _shown(value: object) -> str:
    return "none" if value is None or value == () else abridged(str(value))


def _read_answers(arrived: ArrivedRun, planned: Manifest) -> tuple[list[Replicate], list[str]]:
    """Return the readable outputs of an artifact, and messages about unreadable outputs and an early end of its job.

    Outputs of calls that the plan does not name are returned, too, with a message that counts them.
    """
    replicates, problems = list[Replicate](), list[str]()
    try:
        for replicate in read_answers(arrived.folder, problems.append):
            replicates.append(replicate)
    except RunError as problem:
        problems.append(str(problem))
    if unplanned := sum(not planned.includes(replicate.call) for replicate in replicates):
        problems.append(f"{arrived.path}: {counted(unplanned, 'output')} of unplanned calls ignored")
    try:
        stopped = read_record(arrived.folder / RECORD).stopped
    except LeaderboardError:
        stopped = "a job ended before it wrote its record"
    return replicates, [*problems, abridged(stopped, 300)] if stopped else problems


def _whole_manifest(plan: Plan, planned: Sequence[Manifest], arrived: Sequence[Manifest]) -> Manifest:
    """Build the manifest of a whole run from the planned manifests of its parts and those that arrived."""
    first = planned[0]
    cases = {case_id: digest for manifest in planned for case_id, digest in manifest.cases.items()}
    new, baseline = (run_id_of(plan.invocation, first.skill, first.model_id, mark=mark) for mark in ("", BASELINE))
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
