"""`leaderboard.json`: one row a run, newest first. Rows are added, never edited.

Adding is a set union by run id under a lock, with the file replaced as a whole: writers lose nothing, readers see it
valid.
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
    """Read a leaderboard, an empty one if there is none; raises LeaderboardError when broken or newer."""
    if not path.exists():
        return Leaderboard(skill=skill)
    return board_of(read_json(path, LeaderboardError), path, skill)


def board_of(value: Any, path: Path, skill: str) -> Leaderboard:
    """The leaderboard a JSON value is; raises LeaderboardError when broken, newer, or of another component."""
    refuse_newer(value, path)
    board = validated(Leaderboard, _upgraded(value), path, LeaderboardError)
    if board.skill != skill:
        raise LeaderboardError(f"{path} is the leaderboard of '{board.skill}', not of '{skill}'")
    return board


def _upgraded(value: Any) -> Any:
    """A file written before `schema_version` was kept has the shape of version 1."""
    return {**value, "schema_version": SCHEMA_VERSION} if isinstance(value, dict) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The highest version that a complete run of a model has on a leaderboard, and the schema it was run with."""

    version: str
    schema: str | None


def newest_recorded(content: bytes, where: str) -> dict[str, Recorded]:
    """By model, what a leaderboard says was measured. Reads no more of it than that; raises LeaderboardError.

    Incomplete runs, runs under a scenario, and versions that are none, say nothing.
    """
    try:
        rows = from_json(content)["runs"]
        complete = [row for row in rows if _measures(row)]
        complete.sort(key=lambda row: semver.Version.parse(row["skill_version"]))
        return {
            row["model_id"]: Recorded(version=row["skill_version"], schema=row["digests"].get("schema"))
            for row in complete
        }
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise LeaderboardError(f"{where} is not a leaderboard: {problem!r}") from None


def _measures(row: dict[str, Any]) -> bool:
    """Whether a row is of a complete run of the component by itself, at a version that is one."""
    alone = row.get("scenario") is None
    return bool(row["complete"]) and alone and semver.Version.is_valid(row["skill_version"])


def with_rows(board: Leaderboard, rows: Iterable[Row]) -> Leaderboard:
    """The leaderboard with further rows, newest first; a run id that is there already keeps its row."""
    by_id = {row.run_id: row for row in (*rows, *board.runs)}
    return board.model_copy(update={"runs": sorted(by_id.values(), key=order, reverse=True)})


def order(row: Row) -> tuple[str, str, bool, int, str]:
    """By what rows are sorted: the time, then the run; of attempts at one run, the one that came further is newer."""
    return row.timestamp, row.run_id.partition(PARTIAL)[0], row.complete, row.scored, row.run_id


def append_rows(path: Path, skill: str, rows: Iterable[Row]) -> None:
    """Add rows to the file; raises LeaderboardError or StorageError, the file then being as it was."""
    with locked(path.parent / "evals" / "results" / ".leaderboard.lock"):
        before = read_text(path, LeaderboardError) if path.exists() else None
        after = text_with_rows(before, path, skill, rows)
        if after != before:
            replace_text(path, after)


def text_with_rows(text: str | None, path: Path, skill: str, rows: Iterable[Row]) -> str:
    """What `path` is to hold once rows are added to the text it holds now (None: no file); raises LeaderboardError.

    Rows that are in it stay as they are, keys that this version does not know included; nothing new, the same text.
    """
    value = None if text is None else parse_json(text, path, LeaderboardError)
    board = Leaderboard(skill=skill) if value is None else board_of(value, path, skill)
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
