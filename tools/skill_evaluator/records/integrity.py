"""Check that a component's leaderboard and records agree, and that a change only adds to them."""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.files import read_bytes
from skill_evaluator.library.versions import (
    ComponentVersion,
    Problem,
    read_version,
    read_versions,
    version_before,
    versioning_problems,
)
from skill_evaluator.records import archive
from skill_evaluator.records.record import Record, Row, parse_record, short_digest
from skill_evaluator.repository import Repository, within
from skill_evaluator.stats import by_key
from skill_evaluator.text import canonical_json, digest, nearest

_RUN_ID = re.compile(r'"run_id"\s*:\s*"([^"]+)"')
_COMMITTED_FILE = re.compile(r"(?P<skill>[^/]+)/(?:leaderboard|evals/records/(?P<run>[^/]+))\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedRecords:
    """The contents of a component's leaderboard (None: no file) and records by run id. `formerly`: its former names."""

    skill: str
    folder: str
    leaderboard: bytes | None
    records: Mapping[str, bytes]
    formerly: Sequence[str] = ()

    @property
    def board_path(self) -> str:
        """The path of the leaderboard, for `Problem.file`."""
        return f"{self.folder}/leaderboard.json"

    def record_path(self, run_id: str) -> str:
        """Return the path of a run's record, for `Problem.file`."""
        return f"{self.folder}/evals/records/{run_id}.json"

    def board_problem(self, message: str, run_id: str | None = None) -> Problem:
        """Build a problem of the leaderboard, at the line of a run's row, or at line 1 if there is no row."""
        lines = {} if run_id is None else _lines_of_runs(self.leaderboard or b"")
        return Problem(file=self.board_path, line=lines.get(run_id or "", 1), message=message)

    def record_problem(self, message: str, run_id: str) -> Problem:
        """Build a problem of a run's record, at line 1."""
        return Problem(file=self.record_path(run_id), line=1, message=message)


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryAtCommit:
    """The components at a commit. `versions` has the version of each component, by name.

    `committed` has the leaderboards and records of the components that `library_at_commit` selected, by name.
    """

    versions: Mapping[str, ComponentVersion]
    committed: Mapping[str, CommittedRecords]


def library_at_commit(repository: Repository, commit: str, folder: str, names: Iterable[str]) -> LibraryAtCommit:
    """Read the versions of all components at a commit, and the leaderboards and records of selected ones.

    The selected components are those in `names`, and those whose folder was deleted or renamed since.
    """
    (versions,) = read_versions(repository, (commit,), folder)
    selected = {*names, *(name for name in versions if not (repository.root / folder / name).exists())}
    blobs: dict[str, dict[str | None, str]] = {}  # keys: component, then run id, or None for the leaderboard
    for path, blob in repository.files(commit, folder).items():
        match = _COMMITTED_FILE.fullmatch(path.removeprefix(within(folder, "")))
        if match and match["skill"] in selected:
            blobs.setdefault(match["skill"], {})[match["run"]] = blob
    contents = repository.contents(blob for blobs_of_skill in blobs.values() for blob in blobs_of_skill.values())
    files = {
        skill: CommittedRecords(
            skill=skill,
            folder=within(folder, skill),
            leaderboard=contents[blobs_of_skill[None]] if None in blobs_of_skill else None,
            records={run_id: contents[blob] for run_id, blob in blobs_of_skill.items() if run_id is not None},
        )
        for skill, blobs_of_skill in blobs.items()
    }
    return LibraryAtCommit(versions=versions, committed=files)


def problems_of(components: Path, name: str, folder: str, past: LibraryAtCommit | None) -> list[Problem]:
    """Return the problems of a component's records and acceptances, and of their changes since the commit `past`.

    Without `past`, a changed prompt or schema is found only if its version is recorded. The paths in problems begin
    with `folder`. Raise LeaderboardError if a file cannot be read.
    """
    component = components / name
    after = read_version(component, within(folder, name))
    names = (name,) if after is None else (name, *after.formerly)
    board = component / "leaderboard.json"
    files = CommittedRecords(
        skill=name,
        folder=within(folder, name),
        leaderboard=read_bytes(board, LeaderboardError) if board.exists() else None,
        records={path.stem: read_bytes(path, LeaderboardError) for path in component.glob("evals/records/*.json")},
        formerly=names[1:],
    )
    problems = [*disagreements(files, after), *_acceptance_problems(component / "evals" / "accepted.json", files)]
    if past is None:
        return problems
    for former in names:
        if former in past.committed:
            problems += edits_of(past.committed[former], files)
    return problems if after is None else [*versioning_problems(version_before(past.versions, after), after), *problems]


def disagreements(files: CommittedRecords, current: ComponentVersion | None) -> Iterator[Problem]:
    """Yield the problems of the files: invalid files, wrong rows, edited prompts, rows unlike their records."""
    records: dict[str, tuple[Any, Record]] = {}
    for run_id, raw in sorted(files.records.items()):
        try:
            records[run_id] = _read_record(raw, files, run_id)
        except LeaderboardError as problem:
            yield files.record_problem(str(problem), run_id)
    try:
        rows = _read_rows(files)
    except LeaderboardError as problem:
        advice = "; `lint --fix` resolves the conflict" if b"<<<<<<< " in (files.leaderboard or b"") else ""
        yield files.board_problem(f"{problem}{advice}")
        return
    yield from _disorder(files, rows)
    yield from _edited_prompts(files, rows, current)
    for row in rows:
        if row.skill not in (files.skill, *files.formerly):
            yield files.board_problem(f"row '{row.run_id}' is of '{row.skill}', not of '{files.skill}'", row.run_id)
        elif row.run_id not in files.records:
            path = files.record_path(row.run_id)
            yield files.board_problem(f"row '{row.run_id}' has no record: {path} is missing", row.run_id)
        elif row.run_id in records:
            yield from _contradictions(files, row, *records[row.run_id])
    in_rows = {row.run_id for row in rows}
    for run_id, (_, record) in records.items():
        if run_id not in in_rows and record.has_row:
            yield files.record_problem(f"{files.board_path} has no row of this record; restore the row", run_id)


def _disorder(files: CommittedRecords, rows: Sequence[Row]) -> Iterator[Problem]:
    for run_id, count in Counter(row.run_id for row in rows).items():
        if count > 1:
            yield files.board_problem(f"run '{run_id}' has more than one row", run_id)
    for upper, lower in pairwise(rows):
        if archive.order(lower) > archive.order(upper):
            message = f"row '{lower.run_id}' is newer than the row above; rows are sorted newest first"
            yield files.board_problem(message, lower.run_id)


def _edited_prompts(
    files: CommittedRecords, rows: Sequence[Row], current: ComponentVersion | None
) -> Iterator[Problem]:
    entries = archive.mark_edited([archive.entry_of(row) for row in rows])
    first = archive.first_runs(entries)
    if current is not None and current.version in first:
        after = replace(current, prompt=short_digest(current.prompt or ""), schema=short_digest(current.schema or ""))
        equal = (run for run in entries if run.complete and (run.version, run.prompt) == (after.version, after.prompt))
        run = next(equal, first[current.version])
        before = replace(after, prompt=run.prompt, schema=run.digests.get("schema", after.schema))
        yield from versioning_problems(before, after)
    for entry in entries:
        if entry.complete and entry.edited:
            message = (
                f"row '{entry.run_id}' measured another prompt than {entry.version}'s first run, "
                f"'{first[entry.version].run_id}', so it is skipped as a baseline; measure that prompt as a new version"
            )
            yield files.board_problem(message, entry.run_id)


def _contradictions(files: CommittedRecords, row: Row, value: Any, record: Record) -> Iterator[Problem]:
    if record.draft:
        message = f"row '{row.run_id}' belongs to a draft, and drafts have no row; remove it"
        yield files.board_problem(message, row.run_id)
    actual, expected = row.model_dump(), Row.model_validate(value | {"digest": row.digest}).model_dump()
    keys = [key for key in {**actual, **expected} if actual.get(key) != expected.get(key)]
    if keys:
        yield files.board_problem(f"row '{row.run_id}' and its record differ in {', '.join(keys)}", row.run_id)
    # a newer evaluator may write more keys, which the digest of `record` lacks
    if row.digest not in (None, digest(canonical_json(value))) and row.digest != record.digest:
        message = f"this record was edited: its digest is not the one in row '{row.run_id}' of {files.board_path}"
        yield files.record_problem(message, row.run_id)


def _acceptance_problems(path: Path, files: CommittedRecords) -> Iterator[Problem]:
    file = f"{files.folder}/evals/accepted.json"
    try:
        acceptances = archive.read_acceptances(path)
        rows = _read_rows(files) if acceptances else []
    except LeaderboardError as problem:
        yield Problem(file=file, line=1, message=str(problem))
        return
    runs = {row.run_id: (row.skill_version, row.model_id) for row in rows if row.complete and row.scenario is None}
    edited = {entry.run_id for entry in archive.mark_edited([archive.entry_of(row) for row in rows]) if entry.edited}
    for index, acceptance in enumerate(acceptances):
        for message in _acceptance_faults(acceptance, f"at accepted[{index}] in {file}", runs, edited):
            yield Problem(file=file, line=1, message=message)


def _acceptance_faults(
    acceptance: archive.Acceptance, location: str, runs: Mapping[str, tuple[str, str]], edited: Collection[str]
) -> Iterator[str]:
    """Yield an error message for each run or model of an accepted version that the leaderboard does not confirm.

    `runs` has (version, model id) by run id. `edited` has the ids of runs with another prompt than their version.
    """
    version, versions = acceptance.version, {version for version, _ in runs.values()}
    if version not in versions:
        yield f"no complete run of version '{version}' {location} {nearest(version, versions)}"
        return
    for model_id in acceptance.models or ():
        if (version, model_id) not in runs.values():
            yield f"no complete run of version '{version}' by model '{model_id}' {location}"
    for model_id, run_ids in acceptance.run_ids.items():
        for run_id in run_ids:
            if runs.get(run_id) != (version, model_id):
                yield f"'{run_id}' is not a complete run of {version} by '{model_id}' {location}"
            elif run_id in edited:
                yield f"'{run_id}' measured another prompt than {version}'s first run {location}"


def edits_of(before: CommittedRecords, after: CommittedRecords) -> Iterator[Problem]:
    """Yield a problem for each row or record of `before` that was removed or edited. Drafts may be removed."""
    old_rows, new_rows = _rows_as_text(before), _rows_as_text(after)
    if old_rows is not None and new_rows is not None:
        for run_id, rows in old_rows.items():
            if run_id not in new_rows:
                yield after.board_problem(f"row '{run_id}' was removed; rows are only added")
            elif new_rows[run_id] != rows:
                yield after.board_problem(f"row '{run_id}' was edited; rows are only added", run_id)
    for run_id, raw in before.records.items():
        if raw == after.records.get(run_id):
            continue
        record = _json_or_none(raw)
        if run_id not in after.records:
            if not (isinstance(record, dict) and record.get("draft") is True):
                yield after.record_problem("this record was removed; records are only added", run_id)
        elif record is None or _as_text(record) != _as_text(_json_or_none(after.records[run_id])):
            yield after.record_problem("this record was edited; records are only added", run_id)


def _read_rows(files: CommittedRecords) -> list[Row]:
    if files.leaderboard is None:
        return []
    path = Path(files.board_path)
    archive.json_of(files.leaderboard, path)  # refuses duplicate keys and NaN, which `parse_board` accepts
    return archive.parse_board(files.leaderboard, path, archive.Leaderboard, (files.skill, *files.formerly)).runs


def _read_record(raw: bytes, files: CommittedRecords, run_id: str) -> tuple[Any, Record]:
    path = Path(files.record_path(run_id))
    value = archive.json_of(raw, path)
    record = parse_record(value, path)
    if record.run_id != run_id or record.skill not in (files.skill, *files.formerly):
        raise LeaderboardError(
            f"{path} holds run '{record.run_id}' of '{record.skill}'; expected '{run_id}' of '{files.skill}'"
        )
    return value, record


@lru_cache(maxsize=2)
def _lines_of_runs(leaderboard: bytes) -> dict[str, int]:
    numbered = [*enumerate(leaderboard.decode("utf-8", "replace").splitlines(), 1)]
    return {run_id: number for number, line in reversed(numbered) for run_id in _RUN_ID.findall(line)}


def _rows_as_text(files: CommittedRecords) -> dict[str, list[str]] | None:
    """Return a leaderboard's rows as JSON texts by run id. Return None if it cannot be parsed."""
    value = {"runs": []} if files.leaderboard is None else _json_or_none(files.leaderboard)
    if not isinstance(value, dict) or not isinstance(value.get("runs"), list):
        return None
    return by_key((str(row.get("run_id")) if isinstance(row, dict) else "", _as_text(row)) for row in value["runs"])


def _as_text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)  # 1, 1.0 and true are equal in Python, and their texts differ


def _json_or_none(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None
