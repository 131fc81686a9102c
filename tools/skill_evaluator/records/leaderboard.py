"""`leaderboard.json`: one row a run, newest first. Rows are added, never edited.

Rows are added under a lock, each run id once, and the file is replaced as a whole: writers that race lose nothing, and
a reader never sees half a file. The text of the rows in the file is copied as it stands. `evaluate` and imports call
`add_records`, a resumed run whose row is missing `append_rows`, and CI takes the text of `with_rows` into a commit.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.files import FrozenModel, decoded, locked, parse_json, read_bytes, replace_blocks, validated
from skill_evaluator.identifiers import ComponentName
from skill_evaluator.library.components import Component
from skill_evaluator.library.sources import BOARD_SIZE
from skill_evaluator.records.archive import (
    Heads,
    RecordedRun,
    entry_of,
    first_runs,
    parse_board,
    parse_entries,
    precedence,
    why_refused,
)
from skill_evaluator.records.record import BOARD_VERSION, PARTIAL, Record, Row, read_record, refuse_newer, write_record

_ROW = re.compile(rb"\n    \{\n")
_TAIL = b"\n  ]\n}\n"


class Leaderboard(FrozenModel):
    """The file; `runs` newest first."""

    skill: ComponentName
    schema_version: Literal[2] = BOARD_VERSION
    runs: list[Row] = []


def load_leaderboard(path: Path, skill: str, formerly: Sequence[str] = ()) -> Leaderboard:
    """Read a leaderboard, an empty one if there is no file; raise LeaderboardError for a broken or newer one.

    `formerly` are earlier names of the component, which the file may have, too.
    """
    content = read_board(path)
    if content is None:
        return Leaderboard(skill=skill)
    board = parse_board(content, path, Leaderboard)
    _refuse_other(board.skill, path, skill, formerly)
    return board


def parse_leaderboard(value: Any, path: Path, skill: str, formerly: Sequence[str] = ()) -> Leaderboard:
    """Return the leaderboard in a JSON value; raise LeaderboardError for a broken, newer or foreign one."""
    refuse_newer(value, path, BOARD_VERSION)
    board = validated(Leaderboard, value, path, LeaderboardError)
    _refuse_other(board.skill, path, skill, formerly)
    return board


def check_leaderboard(component: Component) -> None:
    """Raise LeaderboardError if a component's leaderboard is broken, newer or of a different component."""
    path = component.leaderboard_path
    content = read_board(path)
    if content is not None:
        _refuse_other(parse_board(content, path, Heads).skill, path, component.name, component.formerly)


def _refuse_other(found: str, path: Path, skill: str, formerly: Sequence[str]) -> None:
    if found not in (skill, *formerly):
        raise LeaderboardError(
            f"{path} is the leaderboard of '{found}', not of '{skill}': name the component '{found}', remove "
            f"leaderboard.json and evals/records here, or, if it was renamed, add formerly: {found} to prompt.md"
        )


def newest_recorded(content: bytes, where: str) -> dict[str, RecordedRun]:
    """Return a run of the highest version measured by each model; raise LeaderboardError for what is no leaderboard.

    Runs that are incomplete, under a scenario, or of a version that is not semver do not count.
    """
    measured = [run for run in parse_entries(content, Path(where)) if run.complete and run.scenario is None]
    return {run.model_id: run for run in sorted(measured, key=lambda run: precedence(run.version))}


def order(row: Row | RecordedRun) -> tuple[str, str, bool, int, str]:
    """Return the key that sorts rows by time, then run; of attempts at a run, the further one is newer."""
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
    """Add rows to the file after what the caller does, unless one is refused; no other process writes meanwhile."""
    with locked(path.parent / "evals" / "results" / ".leaderboard.lock"):
        additions = with_rows(read_board(path), path, skill, rows)
        for refusal in additions.refused.values():
            raise refusal
        yield
        if additions.blocks:
            replace_blocks(path, additions.blocks)


def read_board(path: Path) -> bytes | None:
    """Return the text of a leaderboard, None where there is no file; raise LeaderboardError."""
    return read_bytes(path, LeaderboardError, BOARD_SIZE) if path.exists() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Additions:
    """The text of a leaderboard with rows added, in blocks, none if no row is new; by run id why rows are refused."""

    blocks: Sequence[bytes]
    refused: Mapping[str, LeaderboardError]


def with_rows(content: bytes | None, path: Path, skill: str, rows: Iterable[Row]) -> Additions:
    """Add rows to the text of a leaderboard (None: no file yet), each run once; `path` is for errors.

    A complete run is refused if its version was recorded with a different prompt; of new rows that contradict each
    other, the oldest is added. The file gets the component's name; `check_leaderboard` refuses a file of a different
    component. Raise LeaderboardError for a text that cannot be added to.
    """
    new = {row.run_id: row for row in rows}
    for row in new.values():
        if row.skill != skill:
            raise LeaderboardError(f"run '{row.run_id}' is of '{row.skill}', {path} is the leaderboard of '{skill}'")
    heads = Heads(skill=skill) if content is None else parse_board(content, path, Heads)
    for head in heads.runs:
        new.pop(head.run_id, None)
    first = list(first_runs(heads.runs).values())
    refused: dict[str, LeaderboardError] = {}
    for entry in sorted(map(entry_of, new.values()), key=lambda entry: entry.order):
        why = why_refused(first, entry.version, entry.prompt) if entry.complete else None
        if why is None:
            first.append(entry)
        else:
            refused[entry.run_id] = LeaderboardError(f"run '{entry.run_id}' is not added to {path}: {why}")
    added = sorted((row for row in new.values() if row.run_id not in refused), key=order, reverse=True)
    blocks = _with_rows(content or b"", path, heads, added, skill) if added else []
    return Additions(blocks=blocks, refused=refused)


def _with_rows(text: bytes, path: Path, heads: Heads, added: Sequence[Row], skill: str) -> list[bytes]:
    """Return a text with rows added, newest first, each before the first row that is older."""
    if not heads.runs:
        return [laid_out({"skill": skill}, (row.as_json() for row in added))]
    places = [match.start() + 1 for match in _ROW.finditer(text)]
    as_written = len(places) == len(heads.runs) and text.endswith(_TAIL)
    if not as_written or heads.skill != skill:  # another program laid it out, or the component was renamed
        value = parse_json(decoded(text, path, LeaderboardError), path, LeaderboardError)
        text = laid_out({**value, "skill": skill}, value["runs"])
        places = [match.start() + 1 for match in _ROW.finditer(text)]
    keys, blocks, done = [*map(order, heads.runs)], [], 0
    for row in added:
        older = next((at for at, key in enumerate(keys) if key < order(row)), len(keys))
        place = [*places, len(text) - len(_TAIL)][older]
        lines = _row_text(row.as_json()).encode("utf-8", "backslashreplace")
        blocks += [text[done:place], b"%b,\n" % lines if older < len(keys) else b",\n%b" % lines]
        done = place
    return [*blocks, text[done:]]


def resolve_conflicts(path: Path, skill: str) -> bool:
    """Replace a leaderboard that has conflict markers: the rows of both sides, and those of records without a row.

    Return whether the file had conflict markers. Raise LeaderboardError for a record that cannot be read.
    """
    text = read_board(path) or b""
    if b"\n<<<<<<< " not in b"\n" + text:
        return False
    rows: dict[str, dict[str, Any]] = {}
    for side in _sides(text):
        with suppress(ValueError, KeyError, TypeError):  # a side that is no leaderboard: the records have its rows
            rows |= {row["run_id"]: row for row in json.loads(side)["runs"]}
    for record in map(read_record, sorted(path.parent.glob("evals/records/*.json"))):
        if record.has_row and record.run_id not in rows:
            rows[record.run_id] = record.row().as_json()
    ordered = sorted(rows.values(), key=lambda row: order(validated(Row, row, path, LeaderboardError)))
    replace_blocks(path, [laid_out({"skill": skill}, reversed(ordered))])
    return True


def _sides(text: bytes) -> tuple[bytes, bytes]:
    """Return the two versions of a text with git's conflict markers."""
    ours: list[bytes] = []
    theirs: list[bytes] = []
    sides = [ours, theirs]
    for line in text.splitlines(keepends=True):
        if line.startswith(b"<<<<<<< "):
            sides = [ours]
        elif line.startswith(b"||||||| "):  # the common ancestor follows
            sides = []
        elif line.startswith(b"=======") and len(sides) < 2:
            sides = [theirs]
        elif line.startswith(b">>>>>>> "):
            sides = [ours, theirs]
        else:
            for side in sides:
                side.append(line)
    return b"".join(ours), b"".join(theirs)


def laid_out(header: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Return the text of a leaderboard: a line a key of a row, and a line a metric or case."""
    keys = {**header, "schema_version": BOARD_VERSION}
    lines = [f"  {_json(key)}: {_json(value)},\n" for key, value in keys.items() if key != "runs"]
    text = "".join(["{\n", *lines, '  "runs": [\n', ",\n".join(map(_row_text, rows)), "\n  ]\n}\n"])
    return text.encode("utf-8", "backslashreplace")


def _row_text(row: Mapping[str, Any]) -> str:
    keys = sorted(row, key="per_case".__eq__)  # the cases last
    return "    {\n" + ",\n".join(f"      {_json(key)}: {_spread(row[key])}" for key in keys) + "\n    }"


def _spread(value: Any) -> str:
    """Write a value in a line; if it holds lists or mappings, a line a member."""
    members = list(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
    if not any(isinstance(member, dict | list) for member in members):
        return _json(value)
    keys = [f"{_json(key)}: " for key in value] if isinstance(value, dict) else [""] * len(members)
    lines = ",\n".join(f"        {key}{_json(member)}" for key, member in zip(keys, members, strict=True))
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n{lines}\n      {closing}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
