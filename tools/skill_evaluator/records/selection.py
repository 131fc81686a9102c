"""Which runs are compared: by default, per model, the newest complete one of the highest version with one of a lower.

Reads of a leaderboard only what the choice needs; the records themselves are read afterwards.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import semver
from pydantic import BaseModel, ValidationError

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.files import read_text
from skill_evaluator.records.record import Record, read_record, refuse_newer
from skill_evaluator.text import key_path, nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """What a leaderboard, or a record's file, says of a run."""

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

    @property
    def standing(self) -> tuple[semver.Version, str, str]:
        """Lower versions first, older runs of a version first."""
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
    complete: bool
    timestamp: str


class _Lines(BaseModel):
    """The keys that are read; all others are passed over while parsing, which takes a third of the time."""

    schema_version: int = 0
    runs: list[_RowLine]


def read_entries(path: Path) -> list[RecordedRun]:
    """Every run on a leaderboard, newest first; none where there is no file. Raises LeaderboardError."""
    return parse_entries(read_text(path, LeaderboardError), path) if path.exists() else []


def parse_entries(content: str, path: Path) -> list[RecordedRun]:
    """The same from the text of the file."""
    try:
        board = _Lines.model_validate_json(content)
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        raise LeaderboardError(
            f"{path} is not a leaderboard: {first['msg']} at {key_path(first['loc']) or 'the top'}"
        ) from None
    refuse_newer({"schema_version": board.schema_version}, path)
    versions = set(filter(semver.Version.is_valid, {line.skill_version for line in board.runs}))
    found = [
        RecordedRun(
            run_id=line.run_id,
            version=line.skill_version,
            model_id=line.model_id,
            scenario=line.scenario,
            complete=line.complete,
            timestamp=line.timestamp,
        )
        for line in board.runs
        if line.skill_version in versions
    ]
    return sorted(found, key=lambda entry: entry.order, reverse=True)


def entry_of(record: Record) -> RecordedRun:
    """A record that was named by its file, as if it were on a leaderboard."""
    return RecordedRun(
        run_id=record.run_id,
        version=record.skill_version,
        model_id=record.model_id,
        scenario=record.scenario,
        complete=record.complete,
        timestamp=record.timestamp,
    )


def choose(
    entries: Sequence[RecordedRun], candidate: str | RecordedRun | None, baseline: str | RecordedRun | None
) -> Selection:
    """What to compare with what: a version, a run id, the entry of a file, or None for the usual choice.

    The usual candidate is the newest complete run of the highest version that any model has; the usual baseline the
    newest complete run of the same model of the highest version below. A run under a scenario is a candidate only by
    its id, and then has a baseline of the same scenario. Raises LeaderboardError where nothing can be judged.
    """
    candidates, left_out = _candidates(entries, candidate)
    named = _of_id(entries, baseline)
    if (
        named is not None
        and not isinstance(candidate, RecordedRun)
        and named.model_id in {one.model_id for one in candidates}
    ):
        candidates, left_out = [one for one in candidates if one.model_id == named.model_id], {}
    if named is not None or baseline is None:
        choices = [
            ChosenRuns(candidate=one, baseline=named or next_lower(entries, one), absent=_NO_LOWER)
            for one in candidates
        ]
    else:
        choices = [_of_version(entries, one, str(baseline)) for one in candidates]
        if all(one.baseline is None for one in choices):
            raise _unknown(entries, str(baseline))
    return Selection(choices=tuple(choices), left_out=left_out)


def choose_candidate(entries: Sequence[RecordedRun], wanted: str | None) -> RecordedRun:
    """The run to judge among those of one model; raises LeaderboardError when there is none."""
    return choose(entries, wanted, None).choices[0].candidate


_NO_LOWER = "there is no complete record of a lower version to compare with"


def _candidates(
    entries: Sequence[RecordedRun], wanted: str | RecordedRun | None
) -> tuple[list[RecordedRun], dict[str, str]]:
    """The run of each model to judge, and the models that have none, with why."""
    named = _of_id(entries, wanted)
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
    found = _newest_by_model(entry for entry in measuring if entry.version == version)
    if not found:
        raise _unknown(entries, version)
    models = dict.fromkeys(entry.model_id for entry in entries)
    return list(found.values()), {one: f"no complete run of {version}" for one in models if one not in found}


def newest_of_versions(entries: Iterable[RecordedRun]) -> dict[str, list[RecordedRun]]:
    """By model, the newest complete run of each version without a scenario, the lowest version first."""
    found: dict[str, dict[str, RecordedRun]] = {}
    for entry in sorted(entries, key=lambda one: one.standing):
        if entry.complete and entry.scenario is None:
            found.setdefault(entry.model_id, {})[entry.version] = entry
    return {model_id: list(by_version.values()) for model_id, by_version in found.items()}


def _newest_by_model(entries: Iterable[RecordedRun]) -> dict[str, RecordedRun]:
    found: dict[str, RecordedRun] = {}
    for entry in entries:
        found.setdefault(entry.model_id, entry)
    return found


def _of_id(entries: Sequence[RecordedRun], wanted: str | RecordedRun | None) -> RecordedRun | None:
    if isinstance(wanted, RecordedRun):
        return wanted
    return next((entry for entry in entries if entry.run_id == wanted), None)


def _like(entries: Sequence[RecordedRun], candidate: RecordedRun) -> list[RecordedRun]:
    """The complete runs that a candidate could be compared with, newest first."""
    kind = candidate.model_id, candidate.scenario
    return [entry for entry in entries if entry.complete and (entry.model_id, entry.scenario) == kind]


def next_lower(entries: Sequence[RecordedRun], candidate: RecordedRun) -> RecordedRun | None:
    """The usual baseline: the newest complete run of the same model and scenario of the highest version below."""
    if not semver.Version.is_valid(candidate.version):
        return None
    version = semver.Version.parse(candidate.version)
    lower = (entry for entry in _like(entries, candidate) if semver.Version.parse(entry.version) < version)
    return max(lower, key=lambda entry: entry.standing, default=None)


def _of_version(entries: Sequence[RecordedRun], candidate: RecordedRun, version: str) -> ChosenRuns:
    found = next((entry for entry in _like(entries, candidate) if entry.version == version), None)
    return ChosenRuns(candidate=candidate, baseline=found, absent=f"there is no complete record of {version}")


def _unknown(entries: Sequence[RecordedRun], wanted: str) -> LeaderboardError:
    complete = (entry.version for entry in entries if entry.complete and entry.scenario is None)
    known = dict.fromkeys([*complete, *(entry.run_id for entry in entries)])
    models = sorted({entry.model_id for entry in entries})
    of_model = f" of '{models[0]}'" if len(models) == 1 else ""
    return LeaderboardError(f"no complete run{of_model} of version or id '{wanted}' {nearest(wanted, known)}")


def of_models(entries: Sequence[RecordedRun], wanted: Sequence[str], where: Path) -> list[RecordedRun]:
    """The runs of the models named, or all; raises LeaderboardError for a model that has none."""
    known = {entry.model_id for entry in entries}
    for model_id in wanted:
        if model_id not in known:
            raise LeaderboardError(f"no run of model '{model_id}' in {where} {nearest(model_id, known)}")
    return [entry for entry in entries if not wanted or entry.model_id in wanted]


def record_of(entry: RecordedRun, records_dir: Path) -> Record:
    """The record of a run; raises LeaderboardError."""
    path = records_dir / f"{entry.run_id}.json"
    if path.parent != records_dir:
        raise LeaderboardError(f"run id '{entry.run_id}' cannot be the name of a record in {records_dir}")
    record = read_record(path)
    if record.run_id != entry.run_id:
        raise LeaderboardError(f"{path} holds the record of another run, '{record.run_id}'")
    return record
