"""The recorded runs of a component, as its leaderboards list them, and their records.

Little of a leaderboard is read; a record is read when it is asked for.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import semver
from pydantic import BaseModel, ValidationError

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.files import parse_json, read_text
from skill_evaluator.library.components import Component
from skill_evaluator.records.acceptance import Acceptance, read_acceptances
from skill_evaluator.records.record import Record, parse_record, read_record, refuse_newer
from skill_evaluator.repository import Repository
from skill_evaluator.text import key_path

_MEASURED_BY = ("schema", "datasets", "settings", "scenario")  # digests; scores of others are not comparable
_BOARD, _RECORDS = "leaderboard.json", "evals/records/"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """What a leaderboard, or a record's file, says of a run; `beside` is the run whose calls alternated with its.

    `adaptive`: its calls stopped early, at a score that happened to settle the verdict.
    """

    run_id: str
    version: str
    model_id: str
    scenario: str | None
    complete: bool
    timestamp: str
    digests: Mapping[str, str] = field(default_factory=dict)
    scorer_version: int = 1
    beside: str | None = None
    adaptive: bool = False

    @property
    def order(self) -> tuple[str, str]:
        """The key that sorts older runs first."""
        return self.timestamp, self.run_id

    @property
    def standing(self) -> tuple[semver.Version, str, str]:
        """The key that sorts lower versions first, and older runs of a version first."""
        return semver.Version.parse(self.version), *self.order

    def is_comparable(self, other: "RecordedRun") -> bool:
        """Return whether the two were measured alike: by the same scorer, schema, declarations, settings, scenario."""
        alike = all(self.digests.get(name) == other.digests.get(name) for name in _MEASURED_BY)
        return alike and self.scorer_version == other.scorer_version


class _RowLine(BaseModel):
    run_id: str
    skill_version: str
    model_id: str
    scenario: str | None = None
    complete: bool
    timestamp: str
    digests: dict[str, str] = {}
    scorer_version: int = 1
    beside: str | None = None
    saved_calls: int = 0


class _Lines(BaseModel):
    """The keys that are read; all others are passed over while parsing, which takes a third of the time."""

    schema_version: int = 0
    runs: list[_RowLine]


class Archive:
    """What is recorded of a component: runs in the work tree and at other commits, and the versions accepted here.

    A branch of records may be older than the work tree, and have an acceptance that was taken back.
    """

    def __init__(self, component: Component, repository: Repository | None = None, refs: Iterable[str] = ()) -> None:
        """Read the leaderboards of the work tree and of the refs; a commit that is not here is left out."""
        self._component = component
        self.folder = component.folder.absolute()
        self._repository = repository
        self._blobs: dict[str, str] = {}
        self._read: dict[str, Record] = {}
        self.entries: list[RecordedRun] = read_entries(component.leaderboard_path)
        self.accepted: list[Acceptance] = read_acceptances(component.accepted_path)
        if repository is None:
            return
        for commit in filter(None, map(repository.commit, refs)):
            self._add(commit, repository)

    def _add(self, commit: str, repository: Repository) -> None:
        """Add the runs that are recorded at a commit and not here."""
        folder = repository.place(self._component.folder)
        blobs = {path.removeprefix(f"{folder}/"): blob for path, blob in repository.files(commit, folder).items()}
        if _BOARD in blobs:
            text = repository.contents([blobs[_BOARD]])[blobs[_BOARD]].decode("utf-8", "replace")
            run_ids = {entry.run_id for entry in self.entries}
            entries = parse_entries(text, Path(f"{commit}:{folder}/{_BOARD}"))
            self.entries += [entry for entry in entries if entry.run_id not in run_ids]
        self._blobs |= {path.removeprefix(_RECORDS): blob for path, blob in blobs.items()}

    def record(self, entry: RecordedRun) -> Record:
        """Read the record of a run, once; raise LeaderboardError."""
        if entry.run_id not in self._read:
            self._read[entry.run_id] = self._find_record(entry)
        return self._read[entry.run_id]

    def add(self, records: Iterable[Record]) -> None:
        """Add runs that were just made and may not be recorded yet."""
        made = {record.run_id: record for record in records}
        self._read |= made
        self.entries = [*map(entry_of, made.values()), *(entry for entry in self.entries if entry.run_id not in made)]

    def _find_record(self, entry: RecordedRun) -> Record:
        path = self._component.records_dir / f"{entry.run_id}.json"
        blob = self._blobs.get(path.name)
        if path.exists() or self._repository is None or blob is None:
            return load_record(entry, self._component.records_dir)
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
    entries = [entry_of(line) for line in board.runs if line.skill_version in versions]
    return sorted(entries, key=lambda entry: entry.order, reverse=True)


def entry_of(record: Record | _RowLine) -> RecordedRun:
    """Return what a leaderboard says of a run, or would say of a record that was named by its file."""
    return RecordedRun(
        run_id=record.run_id,
        version=record.skill_version,
        model_id=record.model_id,
        scenario=record.scenario,
        complete=record.complete,
        timestamp=record.timestamp,
        digests=record.digests,
        scorer_version=record.scorer_version,
        beside=record.beside,
        adaptive=record.saved_calls > 0,
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
