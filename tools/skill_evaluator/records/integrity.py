"""Check a component's leaderboard and records: whether they agree, and whether a change only added to them.

The input is the files in the work tree and at a commit; the output is problems, each with file and line.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.files import decoded, parse_json, read_bytes, read_text
from skill_evaluator.library.versions import (
    ComponentVersion,
    Problem,
    read_version,
    read_versions,
    version_before,
    versioning_problems,
)
from skill_evaluator.records.archive import entry_of, first_runs, marked, order, parse_acceptances, parse_leaderboard
from skill_evaluator.records.record import Record, Row, parse_record
from skill_evaluator.repository import Repository, within
from skill_evaluator.stats import by_key
from skill_evaluator.text import canonical_json, digest, nearest

_RUN_ID = re.compile(r'"run_id"\s*:\s*"([^"]+)"')
_BOOK = re.compile(r"(?P<skill>[^/]+)/(?:leaderboard|evals/records/(?P<run>[^/]+))\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """A component's leaderboard (None: no file) and its records by run id, as bytes; `folder` is for the problems.

    Rows and records may also have one of its `formerly` names.
    """

    skill: str
    folder: str
    leaderboard: bytes | None
    records: Mapping[str, bytes]
    formerly: Sequence[str] = ()

    @property
    def board_path(self) -> str:
        """The path of the leaderboard, which may not exist."""
        return f"{self.folder}/leaderboard.json"

    def record_path(self, run_id: str) -> str:
        """Return the path of a run's record, which may not exist."""
        return f"{self.folder}/evals/records/{run_id}.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """The components of a folder at a commit, by name: their versions, leaderboards and records."""

    versions: Mapping[str, ComponentVersion]
    books: Mapping[str, Books]


def past_at(repository: Repository, commit: str, folder: str, names: Iterable[str]) -> Past:
    """Read components at a commit: those named, and those that no longer exist and may have been renamed."""
    (versions,) = read_versions(repository, (commit,), folder)
    wanted = {*names, *(name for name in versions if not (repository.root / folder / name).exists())}
    blobs: dict[str, dict[str | None, str]] = {}  # by component, then by run id; None is the leaderboard
    for path, blob in repository.files(commit, folder).items():
        match = _BOOK.fullmatch(path.removeprefix(within(folder, "")))
        if match and match["skill"] in wanted:
            blobs.setdefault(match["skill"], {})[match["run"]] = blob
    contents = repository.contents(blob for of_skill in blobs.values() for blob in of_skill.values())
    books = {
        skill: Books(
            skill=skill,
            folder=within(folder, skill),
            leaderboard=contents[of_skill[None]] if None in of_skill else None,
            records={run_id: contents[blob] for run_id, blob in of_skill.items() if run_id is not None},
        )
        for skill, of_skill in blobs.items()
    }
    return Past(versions=versions, books=books)


def books_in(components: Path, name: str, folder: str, formerly: Sequence[str] = ()) -> Books:
    """Read a component's leaderboard and records in the work tree; raise LeaderboardError if one is unreadable."""
    board = components / name / "leaderboard.json"
    records = sorted((components / name / "evals" / "records").glob("*.json"))
    return Books(
        skill=name,
        folder=within(folder, name),
        leaderboard=read_bytes(board, LeaderboardError) if board.exists() else None,
        records={path.stem: read_bytes(path, LeaderboardError) for path in records},
        formerly=formerly,
    )


def problems_of(components: Path, name: str, folder: str, past: Past | None) -> list[Problem]:
    """Return the problems of a component's leaderboard and records, and of their changes since `past`.

    `folder` is the components folder in problems. Raise LeaderboardError if a file cannot be read.
    """
    after = read_version(components / name, within(folder, name))
    names = (name,) if after is None else (name, *after.formerly)
    books = books_in(components, name, folder, names[1:])
    problems = [*disagreements(books), *_wrong_acceptances(components / name / "evals" / "accepted.json", books)]
    if past is None:
        return problems
    for former in names:
        if former in past.books:
            problems += rewritings(past.books[former], books)
    return problems if after is None else [*versioning_problems(version_before(past.versions, after), after), *problems]


def disagreements(books: Books) -> Iterator[Problem]:
    """Yield a problem for each unreadable file, misplaced row, and row or record that is missing or differs."""
    records: dict[str, tuple[Any, Record]] = {}
    for run_id, raw in sorted(books.records.items()):
        try:
            records[run_id] = _read_record(raw, books, run_id)
        except LeaderboardError as problem:
            yield Problem(file=books.record_path(run_id), line=1, message=str(problem))
    try:
        rows = _read_rows(books)
    except LeaderboardError as problem:
        advice = "; `lint --fix` resolves the conflict" if b"<<<<<<< " in (books.leaderboard or b"") else ""
        yield Problem(file=books.board_path, line=1, message=f"{problem}{advice}")
        return
    yield from _disorder(books, rows)
    yield from _edited_prompts(books, rows)
    for row in rows:
        if row.skill not in (books.skill, *books.formerly):
            yield _problem_at_row(books, row.run_id, f"row '{row.run_id}' is of '{row.skill}', not of '{books.skill}'")
        elif row.run_id not in books.records:
            missing = books.record_path(row.run_id)
            yield _problem_at_row(books, row.run_id, f"row '{row.run_id}' has no record: {missing} is missing")
        elif row.run_id in records:
            yield from _contradictions(books, row, *records[row.run_id])
    in_rows = {row.run_id for row in rows}
    for run_id, (_, record) in records.items():
        if run_id not in in_rows and record.has_row:
            message = f"{books.board_path} has no row of this record; the two are added together"
            yield Problem(file=books.record_path(run_id), line=1, message=message)


def _edited_prompts(books: Books, rows: Sequence[Row]) -> Iterator[Problem]:
    """Yield a problem for each complete run whose prompt differs from its version's first run."""
    entries = marked([entry_of(row) for row in rows])
    first = first_runs(entries)
    for entry in entries:
        if entry.complete and entry.edited:
            message = (
                f"row '{entry.run_id}' measured another prompt than {entry.version}'s first run, "
                f"'{first[entry.version].run_id}', so it is skipped as a baseline; measure that prompt as a new version"
            )
            yield _problem_at_row(books, entry.run_id, message)


def _contradictions(books: Books, row: Row, value: Any, record: Record) -> Iterator[Problem]:
    """Yield the differences between a row and its record, and whether the record was edited after the row was added."""
    if record.draft:
        yield _problem_at_row(
            books, row.run_id, f"row '{row.run_id}' belongs to a draft, and drafts have no row; remove it"
        )
    if row == Row.model_validate(value | {"digest": row.digest}) and row.digest == digest(canonical_json(value)):
        return  # the usual case; otherwise the record may have other keys and is compared key by key
    expected = record.row()
    keys = [key for key in Row.model_fields if key != "digest" and getattr(row, key) != getattr(expected, key)]
    if keys:
        message = f"row '{row.run_id}' says otherwise than its record of {', '.join(keys)}"
        yield _problem_at_row(books, row.run_id, message)
    if row.digest not in (None, expected.digest, digest(canonical_json(value))):  # a later evaluator may know more keys
        message = f"this record was edited: its digest is not the one in row '{row.run_id}' of {books.board_path}"
        yield Problem(file=books.record_path(row.run_id), line=1, message=message)


def _wrong_acceptances(path: Path, books: Books) -> Iterator[Problem]:
    """Yield the problems of the accepted versions: an invalid file, or versions and runs that are not recorded."""
    place = f"{books.folder}/evals/accepted.json"
    try:
        acceptances = parse_acceptances(read_text(path, LeaderboardError), Path(place)) if path.exists() else []
        rows = _read_rows(books) if acceptances else []
    except LeaderboardError as problem:
        yield Problem(file=place, line=1, message=str(problem))
        return
    runs = {row.run_id: (row.skill_version, row.model_id) for row in rows if row.complete and row.scenario is None}
    edited = {entry.run_id for entry in marked([entry_of(row) for row in rows]) if entry.edited}
    recorded = set(runs.values())
    versions = {version for version, _ in recorded}
    for at, acceptance in enumerate(acceptances):
        version, where = acceptance.version, f"accepted[{at}] in {place}"
        if version not in versions:
            message = f"no complete run of version '{version}' at {where} {nearest(version, versions)}"
            yield Problem(file=place, line=1, message=message)
            continue
        for model_id in acceptance.models or ():
            if (version, model_id) not in recorded:
                message = f"no complete run of version '{version}' by model '{model_id}' at {where}"
                yield Problem(file=place, line=1, message=message)
        for model_id, run_ids in acceptance.run_ids.items():
            for run_id in run_ids:
                if runs.get(run_id) != (version, model_id):
                    message = f"'{run_id}' is no complete run of {version} by '{model_id}' at {where}"
                    yield Problem(file=place, line=1, message=message)
                elif run_id in edited:
                    message = f"'{run_id}' measured another prompt than {version}'s first run at {where}"
                    yield Problem(file=place, line=1, message=message)


def rewritings(before: Books, after: Books) -> Iterator[Problem]:
    """Yield a problem for each row or record that was edited or removed; only drafts may be removed."""
    old_rows, new_rows = _raw_rows(before), _raw_rows(after)
    if old_rows is not None and new_rows is not None:
        for run_id, rows in old_rows.items():
            if run_id not in new_rows:
                message = f"row '{run_id}' was removed; rows are only added"
                yield Problem(file=after.board_path, line=1, message=message)
            elif new_rows[run_id] != rows:
                yield _problem_at_row(after, run_id, f"row '{run_id}' was edited; rows are only added")
    for run_id, raw in before.records.items():
        path = after.record_path(run_id)
        if run_id not in after.records:
            record = _json_or_none(raw)
            if not (isinstance(record, dict) and record.get("draft") is True):
                yield Problem(file=path, line=1, message="this record was removed; records are only added")
        elif raw != after.records[run_id] and _comparable(raw) != _comparable(after.records[run_id]):
            yield Problem(file=path, line=1, message="this record was edited; records are only added")


def _read_rows(books: Books) -> list[Row]:
    if books.leaderboard is None:
        return []
    path = Path(books.board_path)
    return parse_leaderboard(_parse(books.leaderboard, path), path, books.skill, books.formerly).runs


def _read_record(raw: bytes, books: Books, run_id: str) -> tuple[Any, Record]:
    path = Path(books.record_path(run_id))
    value = _parse(raw, path)
    record = parse_record(value, path)
    if record.run_id != run_id or record.skill not in (books.skill, *books.formerly):
        raise LeaderboardError(f"{path} holds run '{record.run_id}' of '{record.skill}'; a record is named by its run")
    return value, record


def _parse(raw: bytes, path: Path) -> Any:
    return parse_json(decoded(raw, path, LeaderboardError), path, LeaderboardError)


def _disorder(books: Books, rows: list[Row]) -> Iterator[Problem]:
    """Yield a problem for each duplicate row of a run, and for each row above a newer one."""
    seen: set[str] = set()
    for row in rows:
        if row.run_id in seen:
            yield _problem_at_row(books, row.run_id, f"run '{row.run_id}' has more than one row")
        seen.add(row.run_id)
    for above, below in pairwise(rows):
        if order(below) > order(above):
            message = f"row '{below.run_id}' is newer than the one above; newest come first"
            yield _problem_at_row(books, below.run_id, message)


def _problem_at_row(books: Books, run_id: str, message: str) -> Problem:
    return Problem(file=books.board_path, line=_lines_of_runs(books.leaderboard or b"").get(run_id, 1), message=message)


@lru_cache(maxsize=2)
def _lines_of_runs(leaderboard: bytes) -> dict[str, int]:
    numbered = [*enumerate(leaderboard.decode("utf-8", "replace").splitlines(), 1)]
    return {run_id: number for number, line in reversed(numbered) for run_id in _RUN_ID.findall(line)}


def _raw_rows(books: Books) -> dict[str, list[Any]] | None:
    """Return a leaderboard's rows grouped by run id, or None if it cannot be read."""
    value = {"runs": []} if books.leaderboard is None else _json_or_none(books.leaderboard)
    if not isinstance(value, dict) or not isinstance(value.get("runs"), list):
        return None
    return by_key((str(row.get("run_id")) if isinstance(row, dict) else "", row) for row in value["runs"])


def _comparable(raw: bytes) -> str | bytes:
    """Return a file's JSON in a normal form, so that layout is ignored, or the bytes if it is not JSON."""
    value = _json_or_none(raw)
    return raw if value is None else json.dumps(value, sort_keys=True)


def _json_or_none(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None
