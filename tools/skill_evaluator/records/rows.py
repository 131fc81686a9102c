"""The text of a leaderboard: laid out for people and git, read row by row, and added to without parsing the rows.

The rows are laid out so that each ends where its indentation says so, and of a row no more is parsed than its head:
the keys before its cases. So a leaderboard of any length takes the memory of one row. A text that is laid out otherwise
raises `OtherLayout`, for the reader to parse it as a whole.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pydantic import BaseModel, ValidationError

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.files import decoded
from skill_evaluator.identifiers import Label, ModelId, RunId

BOARD_VERSION = 2
_BLOCK = 2**20
_LONGEST = 64_000_000  # bytes of a row, or of a text that is parsed as a whole
TAIL = b"\n  ]\n}\n"
_ROWS, _OPEN, _BETWEEN = b'\n  "runs": [\n', b"    {\n", b"\n    },\n    {\n"
_END = b"\n    }" + TAIL
_CASES = b',\n      "per_case": ['
_NOT_IN_CASES = re.compile(rb"\n(?! {8}| {6}\])")  # the line of a further key, or of no JSON


class OtherLayout(Exception):  # noqa: N818 (no error: the text may be right)
    """The text of a leaderboard is laid out otherwise, is broken, or is no leaderboard."""


class RowHead(BaseModel):
    """What is read of a row to choose runs and to add others; all else is passed over while parsing."""

    run_id: RunId
    skill_version: str
    model_id: ModelId
    scenario: Label | None = None
    complete: bool
    timestamp: Label
    digests: dict[str, str] = {}
    scorer_version: int = 1
    beside: RunId | None = None
    saved_calls: int = 0
    scored: int = 0


@dataclass(frozen=True, slots=True)
class Edit:
    """New text for a part of a file, from the byte `start` to before `end`."""

    start: int
    end: int
    text: bytes


@dataclass(frozen=True, slots=True)
class RowText:
    """A row as it stands in the file, without the lines of its braces; the first of those begins at `start`."""

    start: int
    text: bytes

    def head(self) -> RowHead:
        """Parse the keys before the cases."""
        head, _, cases = self.text.partition(_CASES)
        if _NOT_IN_CASES.search(cases):
            raise OtherLayout
        try:
            return RowHead.model_validate_json(b"{%b}" % head)
        except ValidationError as problem:
            raise OtherLayout from problem


def laid_out(header: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the text of a leaderboard."""
    yield header_text(header)
    mark = ""
    for row in rows:
        yield f"{mark}{row_text(row)}"
        mark = ",\n"
    yield TAIL.decode() if mark else TAIL.decode().lstrip("\n")


def header_text(header: Mapping[str, Any]) -> str:
    """Return the lines before the first row."""
    keys = {**header, "schema_version": BOARD_VERSION}
    return "".join(["{\n", *(f"  {_json(key)}: {_json(value)},\n" for key, value in keys.items()), '  "runs": [\n'])


def row_text(row: Mapping[str, Any]) -> str:
    """Return a row as lines: one a key, and one a metric or case."""
    keys = sorted(row, key="per_case".__eq__)  # the cases last
    lines = (f"      {_json(key)}: {_spread(row[key])}" for key in keys)
    return "    {\n" + ",\n".join(lines) + "\n    }"


def _spread(value: Any) -> str:
    """Write a value in a line, and one that holds lists or mappings in a line a member."""
    members = list(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
    if not any(isinstance(member, dict | list) for member in members):
        return _json(value)
    keys = [f"{_json(key)}: " for key in value] if isinstance(value, dict) else [""] * len(members)
    lines = ",\n".join(f"        {key}{_json(member)}" for key, member in zip(keys, members, strict=True))
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n{lines}\n      {closing}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def read_header(file: IO[bytes]) -> tuple[dict[str, Any], int]:
    """Return the keys before the rows, and the byte that the first row begins at."""
    file.seek(0)
    before, rows, after = file.read(_BLOCK).partition(_ROWS)
    if not (after.startswith(_OPEN) or b"\n" + after == TAIL):
        raise OtherLayout
    try:
        header = json.loads(before.removesuffix(b",") + b"}")
    except ValueError as problem:
        raise OtherLayout from problem
    return header, len(before + rows)


def read_rows(file: IO[bytes]) -> Iterator[RowText]:
    """Yield the rows."""
    _, start = read_header(file)
    file.seek(start)
    if not file.read(len(_OPEN)).startswith(_OPEN):
        return  # there are none
    rest = b""
    while block := file.read(_BLOCK):
        *texts, rest = (rest + block).split(_BETWEEN)
        for text in texts:
            yield RowText(start, text)
            start += len(text) + len(_BETWEEN)
        if len(rest) > _LONGEST:
            raise OtherLayout
    if not rest.endswith(_END):
        raise OtherLayout
    yield RowText(start, rest.removesuffix(_END))


def edited(file: IO[bytes], edits: Iterable[Edit]) -> Iterator[bytes]:
    """Yield the content of a file with edits, which come in the order of their places and do not overlap."""
    at = 0
    for edit in edits:
        yield from _blocks(file, at, edit.start)
        yield edit.text
        at = edit.end
    yield from _blocks(file, at, None)


def _blocks(file: IO[bytes], start: int, end: int | None) -> Iterator[bytes]:
    file.seek(start)
    while block := file.read(_BLOCK if end is None else min(_BLOCK, end - file.tell())):
        yield block


def whole_text(file: IO[bytes], path: Path) -> str:
    """Return all the text of a file; raise LeaderboardError for one that is too large, or is no text."""
    size = file.seek(0, os.SEEK_END)
    if size > _LONGEST:
        raise LeaderboardError(f"{path} has {size:,} bytes, laid out by another program; at most {_LONGEST:,} are read")
    file.seek(0)
    return decoded(file.read(), path, LeaderboardError)
