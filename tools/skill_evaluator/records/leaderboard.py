"""`leaderboard.json`: one row a run, newest first. Rows are added, never edited.

Rows are added under a lock, each run id once, and the file is replaced as a whole: writers that race lose nothing, and
a reader never sees half a file. What is there is copied; no more of it is parsed than the heads of its rows.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import semver

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.files import FrozenModel, decoded, locked, open_file, parse_json, replace_blocks, validated
from skill_evaluator.identifiers import ComponentName
from skill_evaluator.records.archive import RecordedRun, entry_of, first_runs, parse_entries, why_refused
from skill_evaluator.records.record import PARTIAL, Record, Row, refuse_newer, write_record
from skill_evaluator.records.rows import (
    BOARD_VERSION,
    TAIL,
    Edit,
    OtherLayout,
    RowHead,
    edited,
    header_text,
    laid_out,
    read_header,
    read_rows,
    row_text,
    whole_text,
)


class Leaderboard(FrozenModel):
    """The file; `runs` newest first. It may hold rows that an older evaluator added, in the shape of their time."""

    skill: ComponentName
    schema_version: int = BOARD_VERSION
    runs: list[Row] = []


def load_leaderboard(path: Path, skill: str) -> Leaderboard:
    """Read a leaderboard, an empty one if there is no file; raise LeaderboardError for a broken or newer one."""
    with open_board(path) as file:
        written = () if file is None else rows_as_written(file, path, skill)
        return Leaderboard(skill=skill, runs=[validated(Row, row, path, LeaderboardError) for row in written])


def rows_as_written(file: IO[bytes], path: Path, skill: str) -> Iterator[dict[str, Any]]:
    """Yield the rows as the file has them, each parsed by itself; raise LeaderboardError for what is no leaderboard."""
    try:
        header, _ = read_header(file)
        for row in read_rows(file):
            row.head()
    except OtherLayout:
        value = parse_json(whole_text(file, path), path, LeaderboardError)
        parse_leaderboard(value, path, skill)
        yield from value.get("runs", ())
        return
    parse_leaderboard(header, path, skill)
    for row in read_rows(file):
        yield parse_json(decoded(b"{%b}" % row.text, path, LeaderboardError), path, LeaderboardError)


def parse_leaderboard(value: Any, path: Path, skill: str) -> Leaderboard:
    """Return the leaderboard in a JSON value; raise LeaderboardError for a broken, newer or another component's one."""
    refuse_newer(value, path, BOARD_VERSION)
    board = validated(Leaderboard, value, path, LeaderboardError)
    if board.skill != skill:
        raise LeaderboardError(f"{path} is the leaderboard of '{board.skill}', not of '{skill}'")
    return board


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The highest version that a complete run of a model has on a leaderboard, and the schema it was run with."""

    version: str
    schema: str | None


def newest_recorded(content: bytes, where: str) -> dict[str, Recorded]:
    """Return the highest version measured of each model; raise LeaderboardError for what is no leaderboard.

    Runs that are incomplete, under a scenario, or of a version that is not semver do not count.
    """
    measured = [run for run in parse_entries(BytesIO(content), Path(where)) if run.complete and run.scenario is None]
    measured.sort(key=lambda run: semver.Version.parse(run.version))
    return {run.model_id: Recorded(version=run.version, schema=run.digests.get("schema")) for run in measured}


def order(row: Row | RowHead) -> tuple[str, str, bool, int, str]:
    """Return the key that sorts rows by time, then run; of attempts at a run, the one that came further is newer."""
    return row.timestamp, row.run_id.partition(PARTIAL)[0], row.complete, row.scored, row.run_id


def append_rows(path: Path, skill: str, rows: Iterable[Row]) -> None:
    """Add rows to the file; raise LeaderboardError or StorageError, and leave the file as it was."""
    with _adding(path, skill, rows):
        pass


def add_records(path: Path, records: Mapping[Path, Record]) -> None:
    """Write a component's records, then add their rows; raise LeaderboardError, and write nothing, if one is refused.

    A crash may come between the two: then `append_rows` adds the rows.
    """
    with _adding(path, next(iter(records.values())).skill, [record.row() for record in records.values()]):
        for record_path, record in records.items():
            write_record(record_path, record)


@contextmanager
def _adding(path: Path, skill: str, rows: Iterable[Row]) -> Iterator[None]:
    """Add rows to the file, which no other process writes meanwhile, after what is done while they are not refused."""
    with locked_board(path) as file:
        additions = with_rows(file, path, skill, rows)
        for refusal in additions.refused.values():
            raise refusal
        yield
        if additions.edits:
            replace_blocks(path, additions.blocks())


@contextmanager
def locked_board(path: Path) -> Iterator[IO[bytes] | None]:
    """Open a leaderboard to read while no other process writes it; None where there is no file."""
    with locked(path.parent / "evals" / "results" / ".leaderboard.lock"), open_board(path) as file:
        yield file


@contextmanager
def open_board(path: Path) -> Iterator[IO[bytes] | None]:
    """Open a leaderboard to read; None where there is no file."""
    with open_file(path, LeaderboardError) if path.exists() else nullcontext() as file:
        yield file


@dataclass(frozen=True, slots=True, kw_only=True)
class Additions:
    """What adds rows to the text of a leaderboard, and by run id why rows are refused."""

    file: IO[bytes]
    edits: Sequence[Edit]
    refused: Mapping[str, LeaderboardError]

    def blocks(self) -> Iterator[bytes]:
        """Yield the text with the rows added."""
        return edited(self.file, self.edits)


def with_rows(file: IO[bytes] | None, path: Path, skill: str, rows: Iterable[Row]) -> Additions:
    """Return what adds rows to a leaderboard (None: no file yet); no edit where none is new. `path` is for errors.

    Rows that are there stay as they are, byte for byte. Raise LeaderboardError for a text that cannot be added to.
    """
    by_id = {row.run_id: row for row in rows}
    for row in by_id.values():
        if row.skill != skill:
            raise LeaderboardError(f"run '{row.run_id}' is of '{row.skill}', {path} is the leaderboard of '{skill}'")
    value: dict[str, Any] = {}
    if file is not None:
        try:
            return _additions(file, path, skill, by_id)
        except OtherLayout:
            value = parse_json(whole_text(file, path), path, LeaderboardError)
            parse_leaderboard(value, path, skill)
    text = "".join(laid_out({"skill": skill}, value.get("runs", ())))
    return _additions(BytesIO(text.encode("utf-8", "backslashreplace")), path, skill, by_id)


def _refused(runs: Iterable[RecordedRun], path: Path, rows: Iterable[Row]) -> dict[str, LeaderboardError]:
    """Return by run id why rows cannot be added to the runs there: complete ones of a version with another prompt.

    Of new rows that contradict each other, the oldest is added.
    """
    entries = list(runs)
    refused = {}
    for new in sorted(map(entry_of, rows), key=lambda entry: entry.order):
        why = why_refused(entries, new.version, new.prompt) if new.complete else None
        if why is None:
            entries.append(new)
        else:
            refused[new.run_id] = LeaderboardError(f"run '{new.run_id}' is not added to {path}: {why}")
    return refused


def _additions(file: IO[bytes], path: Path, skill: str, new: Mapping[str, Row]) -> Additions:
    header, start = read_header(file)
    parse_leaderboard(header, path, skill)
    missing = dict(new)
    below: dict[str, int] = {}  # by run id, where the next older row begins
    first: dict[str, RecordedRun] = {}  # by version, as far as it is asked for
    versions = {row.skill_version for row in new.values()}
    for text in read_rows(file):
        head = text.head()
        missing.pop(head.run_id, None)
        for run_id in missing.keys() - below.keys():
            if order(head) < order(missing[run_id]):
                below[run_id] = text.start
        if head.skill_version in versions:
            first |= first_runs([*first.values(), entry_of(head)])
    refused = _refused(first.values(), path, missing.values())
    added = sorted((row for row in missing.values() if row.run_id not in refused), key=order, reverse=True)
    end = file.seek(0, os.SEEK_END) - len(TAIL)
    edits: list[Edit] = []
    for row in added:
        at, lines = below.get(row.run_id, end), row_text(row.as_json())
        is_alone = end < start and not edits
        lines = f"{lines},\n" if at < end else f"\n{lines}" if is_alone else f",\n{lines}"
        edits.append(Edit(at, at, lines.encode("utf-8", "backslashreplace")))
    if edits and header.get("schema_version") != BOARD_VERSION:
        edits.insert(0, Edit(0, start, header_text(header).encode()))
    return Additions(file=file, edits=edits, refused=refused)
