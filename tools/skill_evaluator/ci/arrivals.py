"""The artifacts of a plan's jobs → the planned outputs of every component and model.

An artifact counts for its own job alone, and nothing in it is trusted: links are not followed, and an unreadable file
is a remark, not an error.
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
    KNOWN_LATER,
    MANIFEST,
    RECORD,
    Manifest,
    merged_outcomes,
    read_answers,
    read_manifest,
    run_id_of,
)
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.stats import by_key
from skill_evaluator.text import counted, is_generated, listed

CLOCKS_APART = datetime.timedelta(days=1)  # more than the clocks of any two machines differ
SKIPPED = ".skipped"  # a file `<job>.skipped` holds the reason why a job did not run
_MAX_NAMED = 3
_MAX_NOTE_BYTES = 1000
Part = tuple[PlannedRun, Manifest]
"""A planned run, and the manifest that its folder should have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivedRun:
    """A run folder, and the artifact that it was in if known; `problem` is the reason why there is no manifest."""

    folder: Path
    place: str
    job: str | None
    manifest: Manifest | None
    problem: str = ""

    def claims(self, planned: Manifest, job: str) -> bool:
        """Return whether the folder is the result of a planned run, by its job and its run id."""
        if planned.run_id not in (self.folder.name, self.manifest and self.manifest.run_id):
            return False
        if self.job is not None:
            return self.job == job
        return self.manifest is None or self.manifest.skill == planned.skill


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """The run folders below `root`, and the reasons of the jobs that did not run."""

    root: Path
    runs: tuple[ArrivedRun, ...]
    notes: dict[str, str]


def find_arrivals(root: Path, plan: Plan) -> Arrivals:
    """Find the run folders and the notes of a plan's jobs below a folder, at any depth."""
    planned = {job.id for job in plan.jobs}
    runs: list[ArrivedRun] = []
    notes: dict[str, str] = {}
    for name, _, files in sorted(os.walk(root)):
        folder = Path(name)
        job = next((part for part in folder.relative_to(root).parts if part in planned), None)
        if MANIFEST in files:
            runs.append(_read_run(folder, root, job))
        for file in files:
            of_job = file.removesuffix(SKIPPED)
            if of_job != file and of_job in planned and job in (None, of_job) and _is_own_file(folder / file):
                notes[of_job] = _read_note(folder / file)
    return Arrivals(root=root, runs=tuple(runs), notes=notes)


def _is_own_file(path: Path) -> bool:
    """Return whether a path is a regular file. Links are excluded because they could lead to any file of this
    machine.
    """
    return path.is_file() and not path.is_symlink()


def _read_run(folder: Path, root: Path, job: str | None) -> ArrivedRun:
    manifest, problem = None, ""
    try:
        for name in (MANIFEST, ANSWERS, RECORD):
            if os.path.lexists(folder / name) and not _is_own_file(folder / name):
                raise RunError(f"{folder / name} is not a regular file")
        manifest = read_manifest(folder)
    except RunError as caught:
        problem = str(caught)
    place = visible(str(folder.relative_to(root)))
    return ArrivedRun(folder=folder, place=place, job=job, manifest=manifest, problem=problem)


def _read_note(path: Path) -> str:
    try:
        with path.open("rb") as handle:
            lines = handle.read(_MAX_NOTE_BYTES).decode("utf-8", "replace").splitlines()
    except OSError as problem:
        return f"skipped, and the reason cannot be read: {problem.strerror}"
    return visible(lines[0].strip()) if lines and lines[0].strip() else "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredRun:
    """The outputs of a component on a model that arrived, its shards joined; a baseline is a run of its own.

    `manifest` is the manifest of the whole run, `judge` the id of its planned judge. `folders` are the run folders that
    count, empty if nothing arrived. `remarks` explain why a job stopped or did not run, and name unplanned files.
    """

    manifest: Manifest
    judge: str | None
    answers: Mapping[Call, Replicate]
    folders: tuple[Path, ...]
    skipped: bool
    remarks: tuple[str, ...]


def parts_of_runs(plan: Plan) -> list[list[Part]]:
    """Return the parts (shards) of the run of each component and model, and of each baseline, as planned."""
    key = attrgetter("skill", "model_id", "role")
    return list(by_key((key(manifest), (run, manifest)) for run, manifest in plan.manifests()).values())


def answers_size(plan: Plan, parts: Iterable[Part], arrivals: Arrivals) -> int:
    """Return the size in bytes of the outputs of these parts that arrived."""
    files = {arrived.folder / ANSWERS for part in parts for arrived in _claimants(plan, part, arrivals)}
    return sum(file.stat().st_size for file in files if _is_own_file(file))


def _claimants(plan: Plan, part: Part, arrivals: Arrivals) -> list[ArrivedRun]:
    run, manifest = part
    job = plan.job_of(run)
    return [arrived for arrived in arrivals.runs if arrived.claims(manifest, job)]


def gather(plan: Plan, parts: Sequence[Part], arrivals: Arrivals) -> GatheredRun:
    """Collect the planned outputs of a run's parts, with a remark for each folder or output that was not planned."""
    taken: list[tuple[Manifest, list[Replicate]]] = []
    begun, folders, remarks = list[Manifest](), list[Path](), list[str]()
    absent, judge = list[str](), parts[0][0].judge
    for run, planned in parts:
        claimants = _claimants(plan, (run, planned), arrivals)
        for arrived in claimants:
            wrong = arrived.problem if arrived.manifest is None else _differences(arrived.manifest, planned)
            if wrong or arrived.manifest is None:
                remarks.append(f"{arrived.place} is left out: {wrong}")
                continue
            answers, problems = _read_answers(arrived, planned)
            taken.append((planned, answers))
            begun.append(arrived.manifest)
            folders.append(arrived.folder)
            remarks += [visible(problem.replace(f"{arrivals.root}{os.sep}", "")) for problem in problems]
        if not claimants:
            absent.append(plan.job_of(run))
            remarks.append(arrivals.notes.get(absent[-1]) or _nothing_arrived(absent[-1], planned, arrivals))
    return GatheredRun(
        manifest=_whole_manifest(plan, parts, begun),
        judge=None if judge is None else judge.model_id,
        answers=merged_outcomes(taken),
        folders=tuple(folders),
        skipped=len(absent) == len(parts) and all(job in arrivals.notes for job in absent),
        remarks=tuple(dict.fromkeys(remarks)),
    )


def _nothing_arrived(job: str, planned: Manifest, arrivals: Arrivals) -> str:
    found = {invocation_of(arrived.manifest.run_id) for arrived in arrivals.runs if arrived.manifest is not None}
    others = sorted(found - {invocation_of(planned.run_id)})
    besides = f"; what lies there of {listed(others, _MAX_NAMED)} is of a different plan" if others else ""
    return f"nothing arrived of {job}{besides}"


def _differences(manifest: Manifest, planned: Manifest) -> str:
    """Return the fields in which a manifest differs from the plan, in words; empty if it is as planned."""
    wrong = []
    for name in Manifest.model_fields:
        here, there = getattr(manifest, name), getattr(planned, name)
        if name == "created":
            first, last = moment(there) - CLOCKS_APART, datetime.datetime.now(datetime.UTC) + CLOCKS_APART
            if not first <= moment(here) <= last:
                wrong.append(f"created is {here}, the plan was made at {there}")
        elif isinstance(there, dict) and here != there:
            names = sorted(key for key in here.keys() | there.keys() if here.get(key) != there.get(key))
            wrong.append(f"{name}: {listed(names, _MAX_NAMED)} not as the plan says")
        elif name == "skill_version" and is_generated(str(here)) and is_generated(str(there)):
            continue  # a job does not see the branch of records that numbers versions; the digests identify the prompt
        elif name in KNOWN_LATER or (name == "beside" and here is None):  # the run had no interleaved baseline
            continue
        elif here != there:
            wrong.append(f"{name} is {_shown(here)}, the plan says {_shown(there)}")
    return visible(listed(wrong, _MAX_NAMED))


def _shown(value: object) -> str:
    return "none" if value is None or value == () else abridged(str(value))


def _read_answers(arrived: ArrivedRun, planned: Manifest) -> tuple[list[Replicate], list[str]]:
    """Return the readable outputs of planned calls, and the problems of all others."""
    made, problems, unplanned = list[Replicate](), list[str](), 0
    try:
        for replicate in read_answers(arrived.folder, problems.append):
            if planned.asks(replicate.call):
                made.append(replicate)
            else:
                unplanned += 1
    except RunError as problem:
        problems.append(str(problem))
    if unplanned:
        problems.append(f"{arrived.place}: {counted(unplanned, 'answer')} left out, of calls that were not planned")
    try:
        stopped = read_record(arrived.folder / RECORD).stopped
    except LeaderboardError:
        stopped = "a job ended before it could say how it went"
    return made, [*problems, abridged(stopped, 300)] if stopped else problems


def _whole_manifest(plan: Plan, parts: Iterable[Part], begun: Sequence[Manifest]) -> Manifest:
    """Return the manifest of the run that the parts belong to, over all planned cases."""
    planned = [manifest for _, manifest in parts]
    first = planned[0]
    cases = {case_id: digest for manifest in planned for case_id, digest in manifest.cases.items()}
    new, baseline = (run_id_of(plan.invocation, first.skill, first.model_id, mark=mark) for mark in ("", BASELINE))
    own, other = (baseline, new) if first.role == BASELINE else (new, baseline)
    return first.model_copy(
        update={
            "run_id": own,
            "beside": None if first.beside is None else other,
            "created": min((manifest.created for manifest in begun), default=first.created),
            "server": next((manifest.server for manifest in begun if manifest.server), None),
            "shard": None,
            "cases": dict(sorted(cases.items())),
        }
    )
