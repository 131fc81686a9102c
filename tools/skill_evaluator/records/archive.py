"""The recorded runs of a component: its leaderboard, the records of its rows, and the accepted versions."""

import datetime
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import lru_cache
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, TypeVar

import semver
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.files import (
    FrozenModel,
    decoded,
    json_text,
    locked,
    parse_json,
    read_bytes,
    read_versioned,
    refuse_newer,
    replace_text,
    validated,
)
from skill_evaluator.identifiers import ComponentName, Label, ModelId, RunId, is_baseline, is_file_name
from skill_evaluator.library.components import Component
from skill_evaluator.library.sources import BOARD_SIZE
from skill_evaluator.library.versions import Problem
from skill_evaluator.records.record import (
    BOARD_VERSION,
    PARTIAL,
    Record,
    Row,
    parse_record,
    read_record,
    short_digest,
    short_digests,
    write_record,
)
from skill_evaluator.repository import Repository, within

# scores are comparable only if these digests are equal
_COMPARED_DIGESTS = ("schema", "contract", "datasets", "settings", "scenario")
_BOARD, _RECORDS = "leaderboard.json", "evals/records/"
_ACCEPTED_VERSION = 1

_CONFLICT = re.compile(  # git's conflict markers; the common ancestor may be between the two sides
    rb"(?ms)^<<<<<<< [^\n]*\n(?P<ours>.*?)(?:^\|{7} .*?)?^=======[^\n]*\n(?P<theirs>.*?)^>>>>>>> [^\n]*\n?"
)


@lru_cache(maxsize=10_000)
def precedence(version: str) -> tuple[Any, ...]:
    """Return a sort key for semver order; raise ValueError for an invalid version."""
    parsed = semver.Version.parse(version)
    parts = parsed.prerelease.split(".") if parsed.prerelease else []
    identifiers = tuple((not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts)
    return parsed.major, parsed.minor, parsed.patch, not parts, identifiers


class RecordedRun(BaseModel):
    """A run as listed on a leaderboard, with only the keys that select runs.

    `beside` is the id of the run whose calls were interleaved with this run's. `edited` is true if the prompt differs
    from that of the version's first complete run.
    """

    model_config = ConfigDict(frozen=True)

    run_id: RunId
    version: str = Field(alias="skill_version")
    model_id: ModelId
    scenario: Label | None = None
    complete: bool
    usable: float | None = None
    timestamp: Label
    digests: Annotated[dict[str, str], AfterValidator(short_digests)] = {}
    scorer_version: int = 1
    beside: RunId | None = None
    scored: int = 0
    draft: bool = False
    edited: bool = False

    @property
    def prompt(self) -> str | None:
        """The digest of the component's own prompt, without a scenario's text. None if it is unknown."""
        return self.digests.get("prompt")

    @property
    def is_baseline(self) -> bool:
        """Whether the run is the interleaved baseline of a candidate's run."""
        return is_baseline(self.run_id, self.beside)

    @property
    def version_order(self) -> tuple[Any, ...]:
        """The sort key for lower versions first, then older runs."""
        return precedence(self.version), *order(self)

    def is_comparable(self, run: "RecordedRun") -> bool:
        """Return whether two runs have the same scorer version, schema, field rules, model settings and scenario."""
        has_equal_digests = all(self.digests.get(name) == run.digests.get(name) for name in _COMPARED_DIGESTS)
        return has_equal_digests and self.scorer_version == run.scorer_version


class LeaderboardKeys(BaseModel):
    """A leaderboard whose rows have only the keys that select runs. Parsing it is faster than a `Leaderboard`."""

    skill: ComponentName
    schema_version: Literal[2] = BOARD_VERSION
    runs: list[RecordedRun] = []


class Leaderboard(FrozenModel):
    """The leaderboard file; `runs` are newest first."""

    skill: ComponentName
    schema_version: Literal[2] = BOARD_VERSION
    runs: list[Row] = []


BoardT = TypeVar("BoardT", LeaderboardKeys, Leaderboard)


class Acceptance(FrozenModel):
    """The acceptance of a version for `models` (None: all). `run_ids`: the version's runs by model id, oldest first."""

    version: str
    by: str = Field(min_length=1)
    why: str = Field(min_length=1)
    date: datetime.date
    run_ids: dict[ModelId, list[RunId]]
    models: list[ModelId] | None = None

    @field_validator("version")
    @classmethod
    def _semver(cls, version: str) -> str:
        if not semver.Version.is_valid(version):
            raise ValueError(f"version '{version}' is not semver")
        return version


class AcceptedVersions(FrozenModel):
    """The file evals/accepted.json: the acceptances of a component, newest last."""

    skill: ComponentName
    schema_version: int = _ACCEPTED_VERSION
    accepted: list[Acceptance] = []


def read_acceptances(path: Path) -> list[Acceptance]:
    """Return the acceptances in a file, newest last, or [] if it does not exist. Raise LeaderboardError if invalid."""
    if not path.exists():
        return []
    return read_versioned(AcceptedVersions, path, "schema_version", _ACCEPTED_VERSION, LeaderboardError).accepted


def accept_version(path: Path, lock: Path, skill: str, acceptance: Acceptance) -> Acceptance | None:
    """Add an acceptance to a file and return None. If an equal one (version, models, reason) exists, return it."""
    with locked(lock):
        before = read_acceptances(path)
        for existing in before:
            if all(getattr(existing, key) == getattr(acceptance, key) for key in ("version", "models", "why")):
                return existing
        file = AcceptedVersions(skill=skill, accepted=[*before, acceptance])
        replace_text(path, json_text(file.model_dump(mode="json")))
    return None


def versions_accepted(acceptances: Iterable[Acceptance], model_id: str) -> frozenset[str]:
    """Return the versions that were accepted for a model or for all models."""
    return frozenset(
        acceptance.version for acceptance in acceptances if acceptance.models is None or model_id in acceptance.models
    )


class Archive:
    """The recorded runs of a component in the work tree and at other commits, and its accepted versions.

    Accepted versions are read only from the work tree, because a branch of records may contain a withdrawn acceptance.
    `entries` are the runs, newest first. Two kinds are skipped: interleaved baselines, and incomplete attempts at runs
    that were completed.
    """

    def __init__(self, component: Component, repository: Repository | None = None, refs: Iterable[str] = ()) -> None:
        """Read the leaderboards of the work tree and of the refs; a ref that is not in the clone is skipped."""
        self._component = component
        self.folder = component.files.folder.absolute()
        self._folders = component.files.folders
        self._repository = repository
        self._blobs: dict[str, str] = {}
        self._read: dict[str, Record] = {}
        self.entries: list[RecordedRun] = []
        self.accepted: list[Acceptance] = []
        for folder in self._folders:
            self._add_entries(read_entries(folder / _BOARD))
            self.accepted = [*read_acceptances(folder / "evals" / component.accepted_path.name), *self.accepted]
        if repository is not None:
            for commit in filter(None, map(repository.commit, refs)):
                self._add_commit(commit, repository)
        self.entries = _selectable(self.entries)

    def _add_commit(self, commit: str, repository: Repository) -> None:
        for folder in map(repository.relative_path, self._folders):
            blobs = {path.removeprefix(f"{folder}/"): blob for path, blob in repository.files(commit, folder).items()}
            if _BOARD in blobs:
                board = repository.contents([blobs[_BOARD]])[blobs[_BOARD]]
                self._add_entries(parse_entries(board, Path(f"{commit}:{folder}/{_BOARD}")))
            self._blobs |= {path.removeprefix(_RECORDS): blob for path, blob in blobs.items()}

    def _add_entries(self, entries: Iterable[RecordedRun]) -> None:
        run_ids = {entry.run_id for entry in self.entries}
        self.entries += [entry for entry in entries if entry.run_id not in run_ids]

    def _record_path(self, run_id: str) -> Path:
        paths = [folder / _RECORDS / f"{run_id}.json" for folder in self._folders]
        return next((path for path in paths if path.exists()), paths[0])

    def record(self, run: RecordedRun | str) -> Record:
        """Return the record of a run or run id; raise LeaderboardError if it is missing or invalid."""
        run_id = run if isinstance(run, str) else run.run_id
        if run_id not in self._read:
            path = self._record_path(run_id)
            blob = self._blobs.get(path.name)
            if path.exists() or self._repository is None or blob is None:
                record = read_record(path)
            else:
                text = self._repository.contents([blob])[blob].decode("utf-8", "replace")
                record = parse_record(parse_json(text, path, LeaderboardError), path)
            if record.run_id != run_id:
                raise LeaderboardError(f"{path} holds run '{record.run_id}' instead of '{run_id}'; restore the file")
            if record.skill in self._component.files.formerly:
                record = record.model_copy(update={"skill": self._component.name})
            self._read[run_id] = record
        return self._read[run_id]

    def interleaved_baseline(self, run: RecordedRun) -> RecordedRun | None:
        """Return the interleaved baseline of a candidate's run. Return None if it is absent or unfinished.

        Raise LeaderboardError if its record is invalid.
        """
        if run.beside is None or run.is_baseline:
            return None
        path = self._record_path(run.beside)
        if run.beside not in self._read and not path.exists() and path.name not in self._blobs:
            return None
        baseline = self.record(run.beside)
        return entry_of(baseline) if baseline.is_final and baseline.beside == run.run_id else None

    def runs_of(self, model_id: str) -> list[RecordedRun]:
        """Return the entries of a model, followed by the interleaved baselines of these entries."""
        entries = [entry for entry in self.entries if entry.model_id == model_id]
        return [*entries, *filter(None, map(self.interleaved_baseline, entries))]

    def draft(self, run_id: str) -> Record | None:
        """Return a draft of the work tree, or None if no draft has this id. Raise LeaderboardError if it is invalid."""
        path = self._component.records_dir / f"{run_id}.json"
        if not is_file_name(run_id) or not path.exists():
            return None
        record = read_record(path)
        return record if record.draft else None

    def with_records(self, records: Iterable[Record]) -> "Archive":
        """Return an archive that also has these records, which need not be saved. They replace entries by run id."""
        new, archive = {record.run_id: record for record in records}, copy(self)
        archive._read = self._read | new
        older = [entry for entry in self.entries if entry.run_id not in new]
        archive.entries = _selectable([*map(entry_of, new.values()), *older])
        return archive


def _selectable(entries: Iterable[RecordedRun]) -> list[RecordedRun]:
    """Return the runs, newest first, without interleaved baselines and without partial records of completed runs."""
    newest_first = sorted((entry for entry in entries if not entry.is_baseline), key=order, reverse=True)
    complete = {entry.run_id for entry in newest_first if entry.complete}
    return mark_edited(
        [entry for entry in newest_first if entry.complete or entry.run_id.partition(PARTIAL)[0] not in complete]
    )


def read_entries(path: Path) -> list[RecordedRun]:
    """Return a leaderboard's runs whose version is semver, newest first, or [] if the file does not exist."""
    content = read_board(path)
    return [] if content is None else parse_entries(content, path)


def parse_entries(content: bytes, path: Path) -> list[RecordedRun]:
    """Return a leaderboard's runs whose version is semver, newest first. Raise LeaderboardError if it is invalid."""
    runs = parse_board(content, path, LeaderboardKeys).runs
    versions = set(filter(semver.Version.is_valid, {run.version for run in runs}))
    return sorted((run for run in runs if run.version in versions), key=order, reverse=True)


def parse_board(content: bytes, path: Path, model: type[BoardT], names: Sequence[str] = ()) -> BoardT:
    """Parse the content of a leaderboard as `model`. Raise LeaderboardError if it is invalid or of a newer format.

    `names` are the name and the former names of a component. Unless `names` is empty, raise LeaderboardError if the
    leaderboard belongs to another component.
    """
    try:
        board = model.model_validate_json(content)
    except ValidationError:  # the slower parser locates the mistake
        value = json_of(content, path)
        refuse_newer(value, path, "schema_version", BOARD_VERSION, LeaderboardError)
        board = validated(model, value, path, LeaderboardError)
    if names and board.skill not in names:
        raise LeaderboardError(
            f"{path} is the leaderboard of '{board.skill}', not of '{names[0]}': name the component '{board.skill}', "
            "remove leaderboard.json and evals/records here, or, if the component was renamed, add "
            f"`formerly: {board.skill}` to prompt.md"
        )
    return board


def json_of(content: bytes, path: Path) -> Any:
    """Parse the JSON of a leaderboard or record; raise LeaderboardError if it has errors, duplicate keys or NaN."""
    return parse_json(decoded(content, path, LeaderboardError), path, LeaderboardError)


def entry_of(record: Record | Row) -> RecordedRun:
    """Convert a row or record to a `RecordedRun`."""
    return RecordedRun.model_validate(record, from_attributes=True)


def first_runs(entries: Iterable[RecordedRun]) -> dict[str, RecordedRun]:
    """Return each version's oldest complete run with a known prompt, by version."""
    candidates = [entry for entry in entries if entry.complete and entry.prompt is not None]
    return {entry.version: entry for entry in sorted(candidates, key=order, reverse=True)}


def mark_edited(entries: Sequence[RecordedRun]) -> list[RecordedRun]:
    """Set `edited` of each run: whether its prompt differs from that of its version's first complete run.

    A run with an unknown prompt is not edited. If a version has no complete run, its runs with a known prompt are.
    """
    prompts = {version: run.prompt for version, run in first_runs(entries).items()}
    runs = ((run, run.prompt not in (None, prompts.get(run.version))) for run in entries)
    return [run if run.edited is edited else run.model_copy(update={"edited": edited}) for run, edited in runs]


def refusal_reason(entries: Iterable[RecordedRun], version: str, prompt: str | None) -> str | None:
    """Return an error message if a version is already recorded with another prompt digest, else None."""
    first = first_runs(entries).get(version)
    if first is None or prompt is None or short_digest(prompt) == first.prompt:
        return None
    return (
        f"{version} was recorded with another prompt by run {first.run_id}; raise the version, "
        "or measure this prompt as a draft with `evaluate --draft`"
    )


def load_leaderboard(path: Path, skill: str, formerly: Sequence[str] = ()) -> Leaderboard:
    """Read a leaderboard, or return an empty one. Raise LeaderboardError if it is invalid or of another component."""
    content = read_board(path)
    names = (skill, *formerly)
    return Leaderboard(skill=skill) if content is None else parse_board(content, path, Leaderboard, names)


def check_leaderboard(component: Component) -> None:
    """Raise LeaderboardError if no row can be added to a component's leaderboard."""
    path = component.leaderboard_path
    content = read_board(path)
    if content is not None:
        json_of(content, path)
        parse_board(content, path, LeaderboardKeys, (component.name, *component.files.formerly))


def newest_recorded(content: bytes, path: str) -> dict[str, RecordedRun]:
    """Return each model's newest run of its highest version in a leaderboard, by model id.

    Skip incomplete runs and runs under a scenario. Raise LeaderboardError if the leaderboard's `content` is invalid.
    """
    json_of(content, Path(path))  # no calls are planned for a leaderboard that `with_rows` refuses
    measured = [run for run in parse_entries(content, Path(path)) if run.complete and run.scenario is None]
    return {run.model_id: run for run in sorted(measured, key=lambda run: run.version_order)}


def recorded_runs(
    repository: Repository, refs: Iterable[str], folder: str
) -> tuple[dict[str, list[RecordedRun]], list[Problem]]:
    """Return the recorded runs by component, and a problem for each invalid leaderboard at `refs`.

    For each leaderboard and model, only the newest complete run of the highest version counts. Skip runs under a
    scenario, and refs that do not exist here.
    """
    commits = dict.fromkeys(filter(None, map(repository.commit, refs)))
    depth = within(folder, "name/leaderboard.json").count("/")
    blobs = dict.fromkeys(
        (path, blob)
        for commit in commits
        for path, blob in repository.files(commit, folder).items()
        if path.endswith("/leaderboard.json") and path.count("/") == depth
    )
    texts = repository.contents(blob for _, blob in blobs)
    runs: dict[str, list[RecordedRun]] = {}
    problems: dict[str, Problem] = {}
    for path, blob in blobs:
        try:
            newest = newest_recorded(texts[blob], path)
        except LeaderboardError as problem:
            problems[str(problem)] = Problem(file=path, line=1, message=str(problem))
        else:
            runs.setdefault(PurePosixPath(path).parent.name, []).extend(newest.values())
    return runs, list(problems.values())


def order(row: Row | RecordedRun) -> tuple[str, str, bool, int, str]:
    """Return the sort key of runs: by time, then by run id, a partial record before the complete record of a run."""
    return row.timestamp, row.run_id.partition(PARTIAL)[0], row.complete, row.scored, row.run_id


def append_rows(path: Path, skill: str, rows: Iterable[Row], records: Mapping[Path, Record] | None = None) -> None:
    """Write records, and add rows to the leaderboard. If a row is refused, write nothing and raise LeaderboardError."""
    with locked(path.parent / "evals" / "results" / ".leaderboard.lock"):
        content, refused = with_rows(read_board(path), path, skill, rows)
        for refusal in refused.values():
            raise refusal
        for record_path, record in (records or {}).items():
            write_record(record_path, record)
        if content is not None:
            replace_text(path, content)


def read_board(path: Path) -> bytes | None:
    """Return the content of a leaderboard, or None if it does not exist. Raise LeaderboardError if it is unreadable."""
    return read_bytes(path, LeaderboardError, BOARD_SIZE) if path.exists() else None


def with_rows(
    content: bytes | None, path: Path, skill: str, rows: Iterable[Row]
) -> tuple[bytes | None, dict[str, LeaderboardError]]:
    """Add rows to the content of a leaderboard (None: no file yet). Skip runs that already have a row.

    Return the new content (None if no row was added), and the errors of refused rows by run id. A complete run is
    refused if its version was recorded with another prompt. Raise LeaderboardError if the content is invalid, or if a
    row is not of the component `skill`. Errors name `path`.
    """
    new = {row.run_id: row for row in rows}
    for row in new.values():
        if row.skill != skill:
            raise LeaderboardError(f"run '{row.run_id}' belongs to '{row.skill}', but {path} to '{skill}'")
    board = LeaderboardKeys(skill=skill) if content is None else parse_board(content, path, LeaderboardKeys)
    for recorded in board.runs:
        new.pop(recorded.run_id, None)
    first_runs_of_versions = list(first_runs(board.runs).values())
    refused: dict[str, LeaderboardError] = {}
    for entry in sorted(map(entry_of, new.values()), key=order):
        reason = refusal_reason(first_runs_of_versions, entry.version, entry.prompt) if entry.complete else None
        if reason is None:
            first_runs_of_versions.append(entry)
        else:
            refused[entry.run_id] = LeaderboardError(f"run '{entry.run_id}' is not added to {path}: {reason}")
    added = [(order(row), row.as_json()) for row in new.values() if row.run_id not in refused]
    if not added:
        return None, refused
    value = {} if content is None else json_of(content, path)
    existing = zip(map(order, board.runs), value.get("runs", []), strict=True)
    newest_first = sorted([*existing, *added], key=itemgetter(0), reverse=True)
    return format_leaderboard({**value, "skill": skill}, [row for _, row in newest_first]), refused


def resolve_conflicts(path: Path, skill: str) -> bool:
    """Resolve git's conflict markers in a leaderboard and return True. Return False if it has none.

    Keep the rows of both sides, drop a side that cannot be read, and add a row for each record that lacks one. Raise
    LeaderboardError if a remaining row or a record is invalid.
    """
    text = read_board(path) or b""
    if b"\n<<<<<<< " not in b"\n" + text:
        return False
    rows: dict[str, dict[str, Any]] = {}
    for side in (b"ours", b"theirs"):
        with suppress(ValueError, KeyError, TypeError):  # the rows of an unreadable side are written from the records
            value = json.loads(_CONFLICT.sub(rb"\g<%b>" % side, text))
            rows |= {row["run_id"]: row for row in value["runs"]}
    for record in map(read_record, sorted(path.parent.glob("evals/records/*.json"))):
        if record.has_row and record.run_id not in rows:
            rows[record.run_id] = record.row().as_json()
    oldest_first = sorted(rows.values(), key=lambda row: order(validated(Row, row, path, LeaderboardError)))
    replace_text(path, format_leaderboard({"skill": skill}, reversed(oldest_first)))
    return True


def format_leaderboard(header: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Format a leaderboard as UTF-8 JSON, with a line for each key, metric and case of a row."""
    keys = {**header, "schema_version": BOARD_VERSION}
    lines = [f"  {_json(key)}: {_json(value)},\n" for key, value in keys.items() if key != "runs"]
    text = "".join(["{\n", *lines, '  "runs": [\n', ",\n".join(map(_row_text, rows)), "\n  ]\n}\n"])
    return text.encode("utf-8", "backslashreplace")


def _row_text(row: Mapping[str, Any]) -> str:
    keys = sorted(row, key="per_case".__eq__)  # cases last
    return "    {\n" + ",\n".join(f"      {_json(key)}: {_format_value(row[key])}" for key in keys) + "\n    }"


def _format_value(value: Any) -> str:
    """Format a value on one line, or one line per member if it contains lists or mappings."""
    members = list(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
    if not any(isinstance(member, dict | list) for member in members):
        return _json(value)
    keys = [f"{_json(key)}: " for key in value] if isinstance(value, dict) else [""] * len(members)
    lines = ",\n".join(f"        {key}{_json(member)}" for key, member in zip(keys, members, strict=True))
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n{lines}\n      {closing}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
