"""The recorded runs of a component, and which of them are compared.

By default, for each model, the newest complete run of the highest version meets the newest of a lower version. The
choice reads little of a leaderboard; the chosen records are read afterwards.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import semver
from pydantic import BaseModel, ValidationError

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.files import parse_json, read_text
from skill_evaluator.library.components import Component
from skill_evaluator.records.record import Record, parse_record, read_record, refuse_newer
from skill_evaluator.repository import Repository
from skill_evaluator.text import key_path, nearest

_NO_LOWER = "there is no complete record of a lower version to compare with"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """What a leaderboard, or a record's file, says of a run."""

    run_id: str
    version: str
    model_id: str
    scenario: str | None
    complete: bool
    timestamp: str
    beside: str | None = None

    @property
    def order(self) -> tuple[str, str]:
        """The key that sorts older runs first."""
        return self.timestamp, self.run_id

    @property
    def standing(self) -> tuple[semver.Version, str, str]:
        """The key that sorts lower versions first, and older runs of a version first."""
        return semver.Version.parse(self.version), *self.order


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenRuns:
    """The runs of one model to compare; `absent` says why there is no baseline."""

    candidate: RecordedRun
    baseline: RecordedRun | None
    absent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Every choice, and the models that have nothing to judge, with the reason."""

    choices: tuple[ChosenRuns, ...]
    left_out: Mapping[str, str]


class _RowLine(BaseModel):
    run_id: str
    skill_version: str
    model_id: str
    scenario: str | None = None
    beside: str | None = None
    complete: bool
    timestamp: str


class _Lines(BaseModel):
    """The keys that are read; all others are passed over while parsing, which takes a third of the time."""

    schema_version: int = 0
    runs: list[_RowLine]


class Archive:
    """The recorded runs of a component that can be a baseline: in the work tree, and at other commits."""

    def __init__(self, component: Component, repository: Repository | None = None, refs: Iterable[str] = ()) -> None:
        """Read the leaderboards of the work tree and of the refs; a commit that is not here is left out."""
        self._component = component
        self._repository = repository
        self._blobs: dict[str, str] = {}
        self.entries: list[RecordedRun] = read_entries(component.leaderboard_path)
        if repository is None:
            return
        folder = repository.place(component.folder)
        for commit in filter(None, map(repository.commit, refs)):
            files = repository.files(commit, folder)
            board = files.get(f"{folder}/leaderboard.json")
            if board is not None:
                run_ids = {entry.run_id for entry in self.entries}
                text = repository.contents([board])[board].decode("utf-8", "replace")
                entries = parse_entries(text, Path(f"{commit}:{folder}/leaderboard.json"))
                self.entries += [entry for entry in entries if entry.run_id not in run_ids]
            self._blobs |= {path.removeprefix(f"{folder}/evals/records/"): blob for path, blob in files.items()}

    def record(self, entry: RecordedRun) -> Record:
        """Read the record of a run; raise LeaderboardError."""
        path = self._component.records_dir / f"{entry.run_id}.json"
        blob = self._blobs.get(path.name)
        if path.exists() or self._repository is None or blob is None:
            return read_record(path)
        text = self._repository.contents([blob])[blob].decode("utf-8", "replace")
        return parse_record(parse_json(text, path, LeaderboardError), path)


def read_entries(path: Path) -> list[RecordedRun]:
    """Return the runs on a leaderboard, newest first, none without a file; raise LeaderboardError."""
    return parse_entries(read_text(path, LeaderboardError), path) if path.exists() else []


def parse_entries(content: str, path: Path) -> list[RecordedRun]:
    """Return the runs in a leaderboard's text, newest first; raise LeaderboardError."""
    try:
        board = _Lines.model_validate_json(content)
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        raise LeaderboardError(
            f"{path} is not a leaderboard: {first['msg']} at {key_path(first['loc']) or 'the top'}"
        ) from None
    refuse_newer({"schema_version": board.schema_version}, path)
    versions = set(filter(semver.Version.is_valid, {line.skill_version for line in board.runs}))
    entries = [
        RecordedRun(
            run_id=line.run_id,
            version=line.skill_version,
            model_id=line.model_id,
            scenario=line.scenario,
            complete=line.complete,
            timestamp=line.timestamp,
            beside=line.beside,
        )
        for line in board.runs
        if line.skill_version in versions
    ]
    return sorted(entries, key=lambda entry: entry.order, reverse=True)


def entry_of(record: Record) -> RecordedRun:
    """Return what a leaderboard would say of a record that was named by its file."""
    return RecordedRun(
        run_id=record.run_id,
        version=record.skill_version,
        model_id=record.model_id,
        scenario=record.scenario,
        complete=record.complete,
        timestamp=record.timestamp,
        beside=record.beside,
    )


def load_record(entry: RecordedRun, records_dir: Path) -> Record:
    """Read the record of a run from its component; raise LeaderboardError."""
    path = records_dir / f"{entry.run_id}.json"
    if path.parent != records_dir:
        raise LeaderboardError(f"run id '{entry.run_id}' cannot be the name of a record in {records_dir}")
    record = read_record(path)
    if record.run_id != entry.run_id:
        raise LeaderboardError(f"{path} holds the record of another run, '{record.run_id}'")
    return record


def choose(
    entries: Sequence[RecordedRun], candidate: str | RecordedRun | None, baseline: str | RecordedRun | None
) -> Selection:
    """Choose the runs to compare; candidate and baseline are a version, a run id, a run, or None for the usual choice.

    The usual candidate is the newest complete run of the highest version that any model has; the usual baseline the
    newest complete run of the same model of the highest version below. A run under a scenario is a candidate only by
    its id, and then has a baseline of the same scenario. Raise LeaderboardError where nothing can be judged.
    """
    candidates, left_out = _choose_candidates(entries, candidate)
    named = _find_run(entries, baseline)
    if named is not None and not isinstance(candidate, RecordedRun):
        of_model = [run for run in candidates if run.model_id == named.model_id]
        if of_model:
            candidates, left_out = of_model, {}
    if named is not None or baseline is None:
        choices = [
            ChosenRuns(candidate=run, baseline=named or next_lower(entries, run), absent=_NO_LOWER)
            for run in candidates
        ]
    else:
        version = str(baseline)
        absent = f"there is no complete record of {version}"
        choices = [
            ChosenRuns(
                candidate=run,
                baseline=next((entry for entry in _alike(entries, run) if entry.version == version), None),
                absent=absent,
            )
            for run in candidates
        ]
        if all(choice.baseline is None for choice in choices):
            raise _no_such_run(entries, version)
    return Selection(choices=tuple(choices), left_out=left_out)


def choose_candidate(entries: Sequence[RecordedRun], wanted: str | None) -> RecordedRun:
    """Choose the run to judge among those of one model; raise LeaderboardError when there is none."""
    return choose(entries, wanted, None).choices[0].candidate


def _choose_candidates(
    entries: Sequence[RecordedRun], wanted: str | RecordedRun | None
) -> tuple[list[RecordedRun], dict[str, str]]:
    """Return the run of each model to judge, and the models that have none, with why."""
    named = _find_run(entries, wanted)
    if named is not None:
        return [named], {}
    measuring = [entry for entry in entries if entry.complete and entry.scenario is None]
    if wanted is None:
        highest = max(measuring, key=lambda entry: entry.standing, default=None)
        if highest is None:
            raise LeaderboardError("no run is complete: there is nothing to judge")
        version = highest.version
    else:
        version = str(wanted)
    newest: dict[str, RecordedRun] = {}
    for entry in measuring:
        if entry.version == version:
            newest.setdefault(entry.model_id, entry)
    if not newest:
        raise _no_such_run(entries, version)
    models = dict.fromkeys(entry.model_id for entry in entries)
    absent = {model_id: f"no complete run of {version}" for model_id in models if model_id not in newest}
    return list(newest.values()), absent


def newest_of_versions(entries: Iterable[RecordedRun]) -> dict[str, list[RecordedRun]]:
    """Return by model the newest complete run of each version without a scenario, the lowest version first."""
    newest: dict[str, dict[str, RecordedRun]] = {}
    for entry in sorted(entries, key=lambda entry: entry.standing):
        if entry.complete and entry.scenario is None:
            newest.setdefault(entry.model_id, {})[entry.version] = entry
    return {model_id: list(by_version.values()) for model_id, by_version in newest.items()}


def next_lower(entries: Sequence[RecordedRun], candidate: RecordedRun) -> RecordedRun | None:
    """Return the usual baseline: the newest complete run of the highest version below, of equal model and scenario.

    A lower version that was asked beside the candidate comes before any other.
    """
    if not semver.Version.is_valid(candidate.version):
        return None
    version = semver.Version.parse(candidate.version)
    lower = [entry for entry in _alike(entries, candidate) if semver.Version.parse(entry.version) < version]
    beside = next((entry for entry in lower if entry.run_id == candidate.beside), None)
    return beside or max(lower, key=lambda entry: entry.standing, default=None)


def runs_of_models(entries: Sequence[RecordedRun], wanted: Sequence[str], where: Path) -> list[RecordedRun]:
    """Return the runs of the models wanted, or all; raise LeaderboardError for a model that has none."""
    models = {entry.model_id for entry in entries}
    for model_id in wanted:
        if model_id not in models:
            raise LeaderboardError(f"no run of model '{model_id}' in {where} {nearest(model_id, models)}")
    return [entry for entry in entries if not wanted or entry.model_id in wanted]


def _find_run(entries: Sequence[RecordedRun], wanted: str | RecordedRun | None) -> RecordedRun | None:
    if isinstance(wanted, RecordedRun):
        return wanted
    return next((entry for entry in entries if entry.run_id == wanted), None)


def _alike(entries: Sequence[RecordedRun], candidate: RecordedRun) -> list[RecordedRun]:
    """Return the complete runs of a candidate's model and scenario, newest first."""
    kind = candidate.model_id, candidate.scenario
    return [entry for entry in entries if entry.complete and (entry.model_id, entry.scenario) == kind]


def _no_such_run(entries: Sequence[RecordedRun], wanted: str) -> LeaderboardError:
    complete = (entry.version for entry in entries if entry.complete and entry.scenario is None)
    names = dict.fromkeys([*complete, *(entry.run_id for entry in entries)])
    models = sorted({entry.model_id for entry in entries})
    of_model = f" of '{models[0]}'" if len(models) == 1 else ""
    return LeaderboardError(f"no complete run{of_model} of version or id '{wanted}' {nearest(wanted, names)}")
