"""`leaderboard.json`: one row a run, newest first. Rows are added, never edited.

Rows are added under a lock, each run id once, and the file is replaced as a whole: writers that race lose nothing, and
a reader never sees half a file.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import semver
from pydantic_core import from_json

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.files import (
    FrozenModel,
    json_text,
    locked,
    parse_json,
    read_json,
    read_text,
    replace_text,
    validated,
)
from skill_evaluator.records.record import PARTIAL, SCHEMA_VERSION, Row, refuse_newer


class Leaderboard(FrozenModel):
    """The file; `runs` newest first."""

    skill: str
    schema_version: int = SCHEMA_VERSION
    runs: list[Row] = []


def load_leaderboard(path: Path, skill: str) -> Leaderboard:
    """Read a leaderboard, an empty one if there is no file; raise LeaderboardError for a broken or newer one."""
    if not path.exists():
        return Leaderboard(skill=skill)
    return parse_leaderboard(read_json(path, LeaderboardError), path, skill)


def parse_leaderboard(value: Any, path: Path, skill: str) -> Leaderboard:
    """Return the leaderboard in a JSON value; raise LeaderboardError for a broken, newer or another component's one."""
    refuse_newer(value, path)
    if isinstance(value, dict):
        value = {**value, "schema_version": SCHEMA_VERSION}  # a file from before there were versions has this shape
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
    try:
        rows = from_json(content)["runs"]
        measured = [
            row
            for row in rows
            if row["complete"] and row.get("scenario") is None and semver.Version.is_valid(row["skill_version"])
        ]
        measured.sort(key=lambda row: semver.Version.parse(row["skill_version"]))
        return {
            row["model_id"]: Recorded(version=row["skill_version"], schema=row["digests"].get("schema"))
            for row in measured
        }
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise LeaderboardError(f"{where} is not a leaderboard: {problem!r}") from None


def with_rows(board: Leaderboard, rows: Iterable[Row]) -> Leaderboard:
    """Return the leaderboard with further rows, newest first; a run id that is there already keeps its row."""
    by_id = {row.run_id: row for row in (*rows, *board.runs)}
    return board.model_copy(update={"runs": sorted(by_id.values(), key=order, reverse=True)})


def order(row: Row) -> tuple[str, str, bool, int, str]:
    """Return the key that sorts rows by time, then run; of attempts at a run, the one that came further is newer."""
    return row.timestamp, row.run_id.partition(PARTIAL)[0], row.complete, row.scored, row.run_id


def append_rows(path: Path, skill: str, rows: Iterable[Row]) -> None:
    """Add rows to the file; raise LeaderboardError or StorageError, and leave the file as it was."""
    with locked(path.parent / "evals" / "results" / ".leaderboard.lock"):
        before = read_text(path, LeaderboardError) if path.exists() else None
        after = text_with_rows(before, path, skill, rows)
        if after != before:
            replace_text(path, after)


def text_with_rows(text: str | None, path: Path, skill: str, rows: Iterable[Row]) -> str:
    """Return the text of a leaderboard (None: no file yet) with rows added; raise LeaderboardError.

    Rows in it stay as they are, with keys that this version does not know; without a new row the text is the same.
    """
    value = None if text is None else parse_json(text, path, LeaderboardError)
    board = Leaderboard(skill=skill) if value is None else parse_leaderboard(value, path, skill)
    merged = with_rows(board, rows)
    for row in merged.runs:
        if row.skill != skill:
            raise LeaderboardError(f"run '{row.run_id}' is of '{row.skill}', {path} is the leaderboard of '{skill}'")
    if text is not None and merged.runs == board.runs:
        return text
    document = merged.model_dump(mode="json")
    kept = {} if value is None else {run["run_id"]: run for run in value.get("runs", ())}
    document["runs"] = [kept.get(run["run_id"], run) for run in document["runs"]]
    return json_text(document)
