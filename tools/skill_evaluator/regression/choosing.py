"""Which two runs are compared: by default the newest complete one and the newest complete one of a lower version.

Reads of a leaderboard only what the choice needs; the records themselves are read afterwards.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import semver
from pydantic import BaseModel, ValidationError

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.records import Record, read_record
from skill_evaluator.text import key_path, nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a leaderboard says of a run."""

    run_id: str
    version: str
    model_id: str
    scenario: str | None
    complete: bool
    timestamp: str

    @property
    def order(self) -> tuple[str, str]:
        """Older runs first."""
        return self.timestamp, self.run_id


class _Line(BaseModel):
    run_id: str
    skill_version: str
    model_id: str
    scenario: str | None = None
    complete: bool
    timestamp: str


class _Lines(BaseModel):
    """The keys that are read; all others are passed over while parsing, which takes a third of the time."""

    runs: list[_Line]


def read_entries(path: Path) -> list[Entry]:
    """Every run on a leaderboard, newest first; none where there is no file. Raises LeaderboardError."""
    return parse_entries(path.read_bytes(), str(path)) if path.exists() else []


def parse_entries(content: bytes, where: str) -> list[Entry]:
    """The same from the content of the file."""
    try:
        lines = _Lines.model_validate_json(content).runs
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        raise LeaderboardError(
            f"{where} is not a leaderboard: {first['msg']} at {key_path(first['loc']) or 'the top'}"
        ) from None
    versions = set(filter(semver.Version.is_valid, {line.skill_version for line in lines}))
    found = [
        Entry(
            run_id=line.run_id,
            version=line.skill_version,
            model_id=line.model_id,
            scenario=line.scenario,
            complete=line.complete,
            timestamp=line.timestamp,
        )
        for line in lines
        if line.skill_version in versions
    ]
    return sorted(found, key=lambda entry: entry.order, reverse=True)


def choose_candidate(entries: Sequence[Entry], wanted: str | None) -> Entry:
    """The run to judge: by run id or version if one is named, else the newest complete one of the highest version.

    `entries` are those of one model. Raises LeaderboardError when there is none.
    """
    if wanted is not None:
        return _named(entries, wanted)
    complete = [entry for entry in entries if entry.complete and entry.scenario is None]
    if not complete:
        raise LeaderboardError(f"no complete run of '{entries[0].model_id}' to judge")
    return max(complete, key=lambda entry: (semver.Version.parse(entry.version), entry.order))


def choose_baseline(entries: Sequence[Entry], candidate: Entry | Record, wanted: str | None) -> Entry | None:
    """What the candidate is compared with: the run or version named, else the newest complete run of a lower version.

    None when there is no lower version; raises LeaderboardError when what is named is not there.
    """
    if wanted is not None:
        return _named(entries, wanted)
    version = candidate.version if isinstance(candidate, Entry) else candidate.skill_version
    lower = [
        entry
        for entry in entries
        if entry.complete
        and entry.scenario == candidate.scenario
        and semver.Version.parse(entry.version) < semver.Version.parse(version)
    ]
    return max(lower, key=lambda entry: (semver.Version.parse(entry.version), entry.order), default=None)


def _named(entries: Sequence[Entry], wanted: str) -> Entry:
    """The run of an id, or the newest complete one of a version."""
    for entry in entries:
        if wanted == entry.run_id or (wanted == entry.version and entry.complete):
            return entry
    known = dict.fromkeys([*(entry.version for entry in entries), *(entry.run_id for entry in entries)])
    model = f" of '{entries[0].model_id}'" if entries else ""
    raise LeaderboardError(f"no complete run{model} of version or id '{wanted}' {nearest(wanted, known)}")


def record_of(entry: Entry, records_dir: Path) -> Record:
    """The record of a run; raises LeaderboardError."""
    return read_record(records_dir / f"{entry.run_id}.json")
