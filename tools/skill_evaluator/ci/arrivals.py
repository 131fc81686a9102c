"""What the jobs of a plan left in a folder → the answers of every component and model, taken only as they were planned.

An artifact speaks for its own job alone, and none of it is believed: links are not followed, and what cannot be read is
a sentence, not an end.
"""

import datetime
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from skill_evaluator.ci.plan import ExpectedRun, Plan, expected_runs
from skill_evaluator.display.safe_text import abridged, visible
from skill_evaluator.errors import LeaderboardError, RunError
from skill_evaluator.identifiers import BASELINE, invocation_of, moment
from skill_evaluator.records.record import read_record
from skill_evaluator.runner.journal import (
    ANSWERS,
    MANIFEST,
    RECORD,
    TOLD_LATER,
    Manifest,
    merged_outcomes,
    read_answers,
    read_manifest,
)
from skill_evaluator.runner.runs import run_id_of
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.stats import by_key
from skill_evaluator.text import counted, is_generated, listed

CLOCKS_APART = datetime.timedelta(days=1)  # more than any two machines' clocks differ
_NAMED = 3  # of what differs
RunKey = tuple[str, str, bool]  # the component, the model, and whether it is the baseline
SKIPPED = ".skipped"  # a file `<job>.skipped` holds why a job did not run
_NOTE_BYTES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivedRun:
    """A run folder. `job` is the artifact it lay in, if that is told; without a manifest, `problem` says why."""

    folder: Path
    place: str
    job: str | None
    manifest: Manifest | None
    problem: str = ""

    def claims(self, run: ExpectedRun) -> bool:
        """Return whether the folder is to be taken for a planned run, by its place and by one of its two names."""
        if run.manifest.run_id not in (self.folder.name, self.manifest and self.manifest.run_id):
            return False
        if self.job is not None:
            return self.job == run.job
        return self.manifest is None or self.manifest.skill == run.manifest.skill


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """Everything that arrived; `notes` says by job why it did not run."""

    root: Path
    runs: tuple[ArrivedRun, ...]
    notes: dict[str, str]

    def shown(self, sentence: str) -> str:
        """Return a sentence for people, its paths relative to the folder of the artifacts."""
        return visible(sentence.replace(f"{self.root}{os.sep}", ""))


def find_arrivals(root: Path, jobs: Iterable[str]) -> Arrivals:
    """Find what lies below a folder, at any depth."""
    planned = set(jobs)
    runs: list[ArrivedRun] = []
    notes: dict[str, str] = {}
    for name, _, files in sorted(os.walk(root)):
        folder = Path(name)
        job = next((part for part in folder.relative_to(root).parts if part in planned), None)
        if MANIFEST in files:
            runs.append(_read_run(folder, root, job))
        for file in files:
            of_job = file.removesuffix(SKIPPED)
            if of_job != file and of_job in planned and job in (None, of_job) and is_own_file(folder / file):
                notes[of_job] = _read_note(folder / file)
    return Arrivals(root=root, runs=tuple(runs), notes=notes)


def is_own_file(path: Path) -> bool:
    """Return whether a path is a file itself: no link to one, which could be any file of this machine, and no pipe."""
    return path.is_file() and not path.is_symlink()


def _read_run(folder: Path, root: Path, job: str | None) -> ArrivedRun:
    place = visible(str(folder.relative_to(root)))
    try:
        for name in (MANIFEST, ANSWERS, RECORD):
            if os.path.lexists(folder / name) and not is_own_file(folder / name):
                raise RunError(f"{folder / name} is not a regular file")
        return ArrivedRun(folder=folder, place=place, job=job, manifest=read_manifest(folder))
    except RunError as problem:
        return ArrivedRun(folder=folder, place=place, job=job, manifest=None, problem=str(problem))


def _read_note(path: Path) -> str:
    try:
        with path.open("rb") as handle:
            lines = handle.read(_NOTE_BYTES).decode("utf-8", "replace").splitlines()
    except OSError as problem:
        return f"skipped, and the reason cannot be read: {problem.strerror}"
    return visible(lines[0].strip()) if lines and lines[0].strip() else "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredRun:
    """All that arrived of a component on a model; `manifest`, of the whole run, is None when nothing arrived.

    `parts` are the expected runs it is put together from, one a shard. A baseline that was called beside a new version
    is a run of its own. `folders` are those that were taken. `remarks` say why a job stopped, did not run, or brought
    what was not planned.
    """

    skill: str
    model_id: str
    parts: tuple[ExpectedRun, ...]
    manifest: Manifest | None
    answers: Mapping[Call, Replicate]
    folders: frozenset[Path]
    skipped: bool
    remarks: tuple[str, ...]

    @property
    def planned(self) -> int:
        """The number of planned calls."""
        return sum(part.calls for part in self.parts)

    @property
    def is_baseline(self) -> bool:
        """Whether it was asked beside a new version."""
        return self.parts[0].is_baseline


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenRuns:
    """What was taken of a planned run: the answers and the manifest of each attempt. `nothing`: not even a folder."""

    answers: Sequence[Sequence[Replicate]]
    begun: Sequence[Manifest]
    folders: Sequence[Path]
    remarks: Sequence[str]
    nothing: bool


def gather(plan: Plan, arrivals: Arrivals) -> Iterator[GatheredRun]:
    """Yield the run of every component and model of a plan from what arrived, the smallest first."""
    groups = parts_of_runs(plan)
    for parts in sorted(groups.values(), key=lambda parts: _answers_size(parts, arrivals)):
        yield _gather_run(plan, parts, arrivals)


def parts_of_runs(plan: Plan) -> dict[RunKey, list[ExpectedRun]]:
    """Return by component, model and whether it is a baseline the planned runs that are put together, as planned.

    After the run of a new version comes that of its baseline, if the two were asked beside each other.
    """
    return by_key(((run.manifest.skill, run.manifest.model_id, run.is_baseline), run) for run in expected_runs(plan))


def _answers_size(parts: Iterable[ExpectedRun], arrivals: Arrivals) -> int:
    """Return how many bytes of answers arrived of some planned runs."""
    files = {run.folder / ANSWERS for part in parts for run in arrivals.runs if run.claims(part)}
    return sum(file.stat().st_size for file in files if is_own_file(file))


def _gather_run(plan: Plan, parts: list[ExpectedRun], arrivals: Arrivals) -> GatheredRun:
    taken: list[tuple[Manifest, Iterable[Replicate]]] = []
    remarks: list[str] = []
    begun, folders, nothing_came = list[Manifest](), list[Path](), True
    for part in parts:
        arrived = take_arrived(part, arrivals)
        taken += [(part.manifest, answers) for answers in arrived.answers]
        begun += arrived.begun
        folders += arrived.folders
        remarks += arrived.remarks
        nothing_came = nothing_came and arrived.nothing
    return GatheredRun(
        skill=parts[0].manifest.skill,
        model_id=parts[0].manifest.model_id,
        parts=tuple(parts),
        manifest=_whole_manifest(plan, parts, begun) if begun else None,
        answers=merged_outcomes(taken),
        folders=frozenset(folders),
        skipped=nothing_came and all(part.job in arrivals.notes for part in parts),
        remarks=tuple(dict.fromkeys(remarks)),
    )


def take_arrived(part: ExpectedRun, arrivals: Arrivals) -> TakenRuns:
    """Return what arrived of a planned run: only what is as planned, and by `remarks` why the rest is not taken."""
    claimed = [run for run in arrivals.runs if run.claims(part)]
    answers: list[list[Replicate]] = []
    begun: list[Manifest] = []
    folders: list[Path] = []
    remarks: list[str] = []
    for run in claimed:
        wrong = _refusal(run, part.manifest)
        if wrong or run.manifest is None:
            remarks.append(f"{run.place} is left out: {wrong}")
            continue
        sentences: list[str] = []
        answers.append(_read_answers(run, part.manifest, sentences))
        begun.append(run.manifest)
        folders.append(run.folder)
        remarks += map(arrivals.shown, sentences)
    if not claimed:
        of_plans = {invocation_of(run.manifest.run_id) for run in arrivals.runs if run.manifest is not None}
        others = sorted(of_plans - {invocation_of(part.manifest.run_id)})
        besides = f"; what lies there of {listed(others, 3)} is of a different plan" if others else ""
        remarks.append(arrivals.notes.get(part.job, f"nothing arrived of {part.job}{besides}"))
    return TakenRuns(answers=answers, begun=begun, folders=folders, remarks=remarks, nothing=not claimed)


def _refusal(run: ArrivedRun, planned: Manifest) -> str:
    """Say why a run is not taken: each field in which its manifest is not as planned; empty when it is."""
    if run.manifest is None:
        return run.problem
    wrong = []
    for name in Manifest.model_fields:
        here, there = getattr(run.manifest, name), getattr(planned, name)
        if name == "created":
            first, last = moment(there) - CLOCKS_APART, datetime.datetime.now(datetime.UTC) + CLOCKS_APART
            if not first <= moment(here) <= last:
                wrong.append(f"created is {here}, the plan was made at {there}")
        elif isinstance(there, dict) and here != there:
            names = sorted(key for key in here.keys() | there.keys() if here.get(key) != there.get(key))
            wrong.append(f"{name}: {listed(names, _NAMED)} not as the plan says")
        elif name == "skill_version" and is_generated(str(here)) and is_generated(str(there)):
            continue  # a job does not see the branch of records that numbers it; the digests tell the prompt
        elif (
            here != there and name not in TOLD_LATER and (name != "beside" or here is not None)
        ):  # asked alone, it lacks it
            wrong.append(f"{name} is {_shown(here)}, the plan says {_shown(there)}")
    return visible(listed(wrong, _NAMED))


def _shown(value: object) -> str:
    return "none" if value is None or value == () else abridged(str(value))


def _read_answers(run: ArrivedRun, planned: Manifest, sentences: list[str]) -> list[Replicate]:
    """Read the answers to what was planned as far as they can be read, and say what is wrong with the rest."""
    made: list[Replicate] = []
    strangers = 0
    try:
        for replicate in read_answers(run.folder, sentences.append):
            if planned.asks(replicate.call):
                made.append(replicate)
            else:
                strangers += 1
    except RunError as problem:
        sentences.append(str(problem))
    if strangers:
        sentences.append(f"{run.place}: {counted(strangers, 'answer')} left out, of calls that were not planned")
    try:
        stopped = read_record(run.folder / RECORD).stopped
    except LeaderboardError:
        stopped = "a job ended before it could say how it went"
    if stopped:
        sentences.append(abridged(stopped, 300))
    return made


def _whole_manifest(plan: Plan, parts: Iterable[ExpectedRun], begun: Sequence[Manifest]) -> Manifest:
    """Return the manifest of the run that the shards are parts of, over all planned cases."""
    cases = {case_id: digest for part in parts for case_id, digest in part.manifest.cases.items()}
    first = next(iter(parts)).manifest
    new, of_baseline = (run_id_of(plan.invocation, first.skill, first.model_id, mark=mark) for mark in ("", BASELINE))
    mine, other = (of_baseline, new) if first.role == BASELINE else (new, of_baseline)
    return first.model_copy(
        update={
            "run_id": mine,
            "beside": None if first.beside is None else other,
            "created": min(run.created for run in begun),
            "server": next((run.server for run in begun if run.server), None),
            "shard": None,
            "cases": dict(sorted(cases.items())),
        }
    )
