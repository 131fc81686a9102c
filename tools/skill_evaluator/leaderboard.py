"""`leaderboard.json`: one row a run, newest first. Rows are added, never edited.

Adding is a set union by run id under a lock, with the file replaced as a whole: writers lose nothing, readers see it
valid.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.files import json_text, locked, read_json, replace_text, validated
from skill_evaluator.records import SCHEMA_VERSION, Row, refuse_newer


class Leaderboard(BaseModel):
    """The file; `runs` newest first."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    skill: str
    schema_version: int = SCHEMA_VERSION
    runs: list[Row] = []


def load_leaderboard(path: Path, skill: str) -> Leaderboard:
    """Read a leaderboard, an empty one if there is none; raises LeaderboardError when broken or newer."""
    if not path.exists():
        return Leaderboard(skill=skill)
    value = read_json(path, LeaderboardError)
    refuse_newer(value, path)
    board = validated(Leaderboard, _upgraded(value), path, LeaderboardError)
    if board.skill != skill:
        raise LeaderboardError(f"{path} is the leaderboard of '{board.skill}', not of '{skill}'")
    return board


def _upgraded(value: Any) -> Any:
    """A file written before `schema_version` was kept has the shape of version 1."""
    return {**value, "schema_version": SCHEMA_VERSION} if isinstance(value, dict) else value


def with_rows(board: Leaderboard, rows: Iterable[Row]) -> Leaderboard:
    """The leaderboard with further rows, newest first; a run id that is there already keeps its row."""
    by_id = {row.run_id: row for row in (*rows, *board.runs)}
    ordered = sorted(by_id.values(), key=lambda row: (row.timestamp, row.run_id), reverse=True)
    return board.model_copy(update={"runs": ordered})


def append_rows(path: Path, skill: str, rows: Iterable[Row]) -> Leaderboard:
    """Add rows to the file; raises LeaderboardError or StorageError, the file then being as it was."""
    with locked(path.parent / "evals" / "results" / ".leaderboard.lock"):
        board = load_leaderboard(path, skill)
        merged = with_rows(board, rows)
        for row in merged.runs:
            if row.skill != skill:
                raise LeaderboardError(
                    f"run '{row.run_id}' is of '{row.skill}', {path} is the leaderboard of '{skill}'"
                )
        if merged.runs != board.runs or not path.exists():
            replace_text(path, json_text(_document(merged, path)))
        return merged


def _document(board: Leaderboard, path: Path) -> Any:
    """The file's new content; rows that are in it stay as they are, keys that this version does not know included."""
    document = board.model_dump(mode="json")
    if path.exists():
        kept = {run["run_id"]: run for run in read_json(path, LeaderboardError).get("runs", ())}
        document["runs"] = [kept.get(run["run_id"], run) for run in document["runs"]]
    return document
