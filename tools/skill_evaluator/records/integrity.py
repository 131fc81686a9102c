"""A component's leaderboard and records: whether they agree, and whether they were only ever added to.

Pure: files as they are, and as they were, in; problems out. What is compared are values, so that layout is free.

What a work tree changed since a commit that it may not: versions that are not honest, records that were rewritten.

Reads components here and there; the rules themselves are in `versions` and `bookkeeping`.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.files import parse_json, read_bytes
from skill_evaluator.library.versions import ComponentVersion, Problem, read_version, read_versions, versioning_problems
from skill_evaluator.records.leaderboard import board_of, order
from skill_evaluator.records.record import Record, Row, record_of
from skill_evaluator.repository import Repository, within


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """What a component has: its leaderboard (None: no file), and by the name of their files its records.

    `folder` is the component's, as problems are to name it.
    """

    skill: str
    folder: str
    leaderboard: bytes | None
    records: Mapping[str, bytes]

    @property
    def board_path(self) -> str:
        """Where the leaderboard is, or would be."""
        return f"{self.folder}/leaderboard.json"

    def record_path(self, run_id: str) -> str:
        """Where the record of a run is, or would be."""
        return f"{self.folder}/evals/records/{run_id}.json"


def disagreements(books: Books) -> Iterator[Problem]:
    """What is wrong with the files as they are: unreadable, out of order, or a row and a record that differ."""
    records: dict[str, Record] = {}
    for run_id, raw in sorted(books.records.items()):
        try:
            records[run_id] = _record(raw, books, run_id)
        except LeaderboardError as problem:
            yield Problem(file=books.record_path(run_id), line=1, message=str(problem))
    try:
        rows = _rows(books)
    except LeaderboardError as problem:
        yield Problem(file=books.board_path, line=1, message=str(problem))
        return
    yield from _disorder(books, rows)
    for row in rows:
        if row.skill != books.skill:
            yield _at_row(books, row.run_id, f"row '{row.run_id}' is of '{row.skill}', not of '{books.skill}'")
        elif row.run_id not in books.records:
            missing = books.record_path(row.run_id)
            yield _at_row(books, row.run_id, f"row '{row.run_id}' has no record: {missing} is missing")
        elif row.run_id in records and (keys := _differing(row, records[row.run_id].row())):
            yield _at_row(books, row.run_id, f"row '{row.run_id}' says otherwise than its record of {', '.join(keys)}")
    with_row = {row.run_id for row in rows}
    for run_id in records:
        if run_id not in with_row:
            message = f"{books.board_path} has no row of this record; the two are added together"
            yield Problem(file=books.record_path(run_id), line=1, message=message)


def rewritings(before: Books, after: Books) -> Iterator[Problem]:
    """What was there and is not any more, or is another: of rows and records, none may be edited or removed."""
    there, now = _raw_rows(before), _raw_rows(after)
    if there is not None and now is not None:
        yield from _rewritten_rows(there, now, after)
    for run_id, raw in before.records.items():
        path = after.record_path(run_id)
        if run_id not in after.records:
            yield Problem(file=path, line=1, message="this record was removed; records are only added")
        elif raw != after.records[run_id] and _exact(raw) != _exact(after.records[run_id]):
            yield Problem(file=path, line=1, message="this record was edited; records are only added")


def _rewritten_rows(there: Mapping[str, str], now: Mapping[str, str], books: Books) -> Iterator[Problem]:
    for run_id, row in there.items():
        if run_id not in now:
            yield Problem(file=books.board_path, line=1, message=f"row '{run_id}' was removed; rows are only added")
        elif row != now[run_id]:
            yield _at_row(books, run_id, f"row '{run_id}' was edited; rows are only added")


def _rows(books: Books) -> list[Row]:
    if books.leaderboard is None:
        return []
    path = Path(books.board_path)
    return board_of(parse_json(_text(books.leaderboard, path), path, LeaderboardError), path, books.skill).runs


def _record(raw: bytes, books: Books, run_id: str) -> Record:
    path = Path(books.record_path(run_id))
    record = record_of(parse_json(_text(raw, path), path, LeaderboardError), path)
    if (record.run_id, record.skill) != (run_id, books.skill):
        raise LeaderboardError(f"{path} holds run '{record.run_id}' of '{record.skill}'; a record is named by its run")
    return record


def _text(raw: bytes, path: Path) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise LeaderboardError(f"{path} is not UTF-8 text (byte {problem.start})") from None


def _disorder(books: Books, rows: list[Row]) -> Iterator[Problem]:
    """Newest first, and every run once."""
    seen: set[str] = set()
    for row in rows:
        if row.run_id in seen:
            yield _at_row(books, row.run_id, f"run '{row.run_id}' has more than one row")
        seen.add(row.run_id)
    for above, below in pairwise(rows):
        if order(below) > order(above):
            yield _at_row(books, below.run_id, f"row '{below.run_id}' is newer than the one above; newest come first")


def _differing(row: Row, other: Row) -> list[str]:
    return [key for key in Row.model_fields if getattr(row, key) != getattr(other, key)]


def _at_row(books: Books, run_id: str, message: str) -> Problem:
    """A problem at the line of leaderboard.json that names a run."""
    lines = (books.leaderboard or b"").decode("utf-8", "replace").splitlines()
    named = (number for number, line in enumerate(lines, 1) if '"run_id"' in line and json.dumps(run_id) in line)
    return Problem(file=books.board_path, line=next(named, 1), message=message)


def _raw_rows(books: Books) -> dict[str, str] | None:
    """By run id, the rows as they are written; None of a leaderboard that is none, to which nothing can be held.

    Of several rows of a run all count.
    """
    value = {"runs": []} if books.leaderboard is None else _json(books.leaderboard)
    if not isinstance(value, dict) or not isinstance(value.get("runs"), list):
        return None
    rows: dict[str, str] = {}
    for row in value["runs"]:
        run_id = str(row.get("run_id")) if isinstance(row, dict) else ""
        rows[run_id] = rows.get(run_id, "") + json.dumps(row, sort_keys=True)
    return rows


def _exact(raw: bytes) -> str | bytes:
    """What tells two files apart: their value, or where they are no JSON, their bytes."""
    value = _json(raw)
    return raw if value is None else json.dumps(value, sort_keys=True)


def _json(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


_BOOK = re.compile(r"(?P<skill>[^/]+)/(?:leaderboard|evals/records/(?P<run>[^/]+))\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """The components at a commit: by name, what they were and which leaderboards and records they had."""

    versions: Mapping[str, ComponentVersion]
    books: Mapping[str, Books]


def past_at(repository: Repository, commit: str, folder: str, names: Iterable[str]) -> Past:
    """What some components in a folder were at a commit."""
    (versions,) = read_versions(repository, (commit,), folder)
    return Past(versions=versions, books=_books_at(repository, commit, folder, names))


def problems_of(components: Path, name: str, folder: str, past: Past | None) -> list[Problem]:
    """What is wrong with a component's leaderboard and records, and with what it became since; may raise.

    `folder` is how problems are to call that of the components.
    """
    books = _books_here(components, name, folder)
    found = list(disagreements(books))
    if past is None:
        return found
    if name in past.books:
        found += rewritings(past.books[name], books)
    after = read_version(components / name, within(folder, name))
    return found if after is None else [*versioning_problems(past.versions.get(name), after), *found]


def _books_here(components: Path, name: str, folder: str) -> Books:
    board = components / name / "leaderboard.json"
    records = sorted((components / name / "evals" / "records").glob("*.json"))
    return Books(
        skill=name,
        folder=within(folder, name),
        leaderboard=read_bytes(board, LeaderboardError) if board.exists() else None,
        records={path.stem: read_bytes(path, LeaderboardError) for path in records},
    )


def _books_at(repository: Repository, commit: str, folder: str, names: Iterable[str]) -> dict[str, Books]:
    """The books that the components had at a commit, if any."""
    blobs: dict[str, dict[str | None, str]] = {}
    for skill, run_id, blob in _book_files(repository, commit, folder):
        blobs.setdefault(skill, {})[run_id] = blob
    wanted = [name for name in names if name in blobs]
    texts = repository.contents(blob for name in wanted for blob in blobs[name].values())
    return {
        name: Books(
            skill=name,
            folder=within(folder, name),
            leaderboard=texts[blobs[name][None]] if None in blobs[name] else None,
            records={run_id: texts[blob] for run_id, blob in blobs[name].items() if run_id is not None},
        )
        for name in wanted
    }


def _book_files(repository: Repository, commit: str, folder: str) -> Iterator[tuple[str, str | None, str]]:
    """Of every leaderboard and record, the component, the run (None: the leaderboard), and the blob."""
    prefix = within(folder, "")
    for path, blob in repository.files(commit, folder).items():
        match = _BOOK.fullmatch(path.removeprefix(prefix))
        if match:
            yield match["skill"], match["run"], blob
