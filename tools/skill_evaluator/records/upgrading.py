"""Rows of `schema_version` 1 → rows of today, which say less: each only where its record says the rest.

A row of version 1 held all of its record but the scores of replicates. It is read as a row of today wherever it is, and
rewritten by `records upgrade` alone.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.files import read_json, replace_blocks
from skill_evaluator.records.leaderboard import locked_board, open_board, rows_as_written
from skill_evaluator.records.record import Record, Row, parse_record
from skill_evaluator.records.rows import laid_out
from skill_evaluator.text import canonical_json, digest, listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade:
    """What becomes of a leaderboard: how many rows are rewritten, and by run id why others stay as they are."""

    rewritten: int
    kept: Mapping[str, str]
    bytes_before: int
    bytes_after: int


def upgrade_leaderboard(path: Path, skill: str, *, write: bool) -> Upgrade:
    """Rewrite the rows of `schema_version` 1 whose record holds what they lose; write only if there are any.

    Raise LeaderboardError or StorageError, and leave the file as it was.
    """
    with locked_board(path) if write else open_board(path) as file:
        if file is None:
            raise LeaderboardError(f"{path} does not exist")
        why = {row["run_id"]: _why_kept(row, path) for row in rows_as_written(file, path, skill) if is_full(row)}
        rows = (row if why.get(row["run_id"]) else upgraded(row) for row in rows_as_written(file, path, skill))
        blocks = [block.encode("utf-8", "backslashreplace") for block in laid_out({"skill": skill}, rows)]
        kept = {run_id: reason for run_id, reason in why.items() if reason}
        if write and len(kept) < len(why):
            replace_blocks(path, blocks)
        return Upgrade(
            rewritten=len(why) - len(kept),
            kept=kept,
            bytes_before=file.seek(0, os.SEEK_END),
            bytes_after=sum(map(len, blocks)),
        )


def _why_kept(row: Mapping[str, Any], board: Path) -> str:
    """Return why a row stays as it is, so that nothing of it is lost; nothing where its record says it all."""
    path = board.parent / "evals" / "records" / f"{row['run_id']}.json"
    if not path.exists():
        return "it has no record"
    try:
        as_written = read_json(path, LeaderboardError)
        record = parse_record(as_written, path)
        keys = not_in_record(row, record, as_written)
        Row.model_validate(row)
    except (LeaderboardError, ValidationError) as problem:
        return str(problem)
    if keys:
        return f"its record does not say the same of {listed(keys)}"
    digests = (None, digest(canonical_json(as_written)), record.row().digest)
    return "" if row.get("digest") in digests else "its record was edited"


def is_full(row: Any) -> bool:
    """Return whether a row, as its file has it, is of `schema_version` 1."""
    return isinstance(row, dict) and "settings" in row


def upgraded(row: Any) -> Any:
    """Return a row as today's evaluator would have added it; one of today, or no row at all, as it is."""
    try:
        return Row.model_validate(row).as_json() if is_full(row) else row
    except ValidationError:
        return row


def not_in_record(row: Mapping[str, Any], record: Record, as_written: Mapping[str, Any]) -> list[str]:
    """Return the keys that a row of `schema_version` 1 says otherwise than its record, or that the record lacks."""
    values = (as_written, record.model_dump(mode="json"))  # the file may have keys of a later version
    return [
        key
        for key, value in row.items()
        if key != "digest" and not any(key in whole and _is_within(value, whole[key]) for whole in values)
    ]


def _is_within(part: Any, whole: Any) -> bool:
    """Return whether a value is there in another that may have further keys."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and _is_within(value, whole[key]) for key, value in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) == len(whole) and all(map(_is_within, part, whole))
    return bool(part == whole)
