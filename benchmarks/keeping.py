"""What grows with a leaderboard: adding a row to one of so many rows, and the history of 200 rows.

Whole processes. A row has 12 cases; the 200 runs of the history have 12 cases × 10 replicates, 3 metrics and 8 fields.
"""

import json
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from skill_evaluator.records.archive import format_leaderboard

from benchmarks.measure import ROOT, Figures, Measured, measure
from tests.support.library import SKILL, Library
from tests.support.records import a_run, keep_in

COUNTS = (200, 1_000, 3_000, 10_000)
CASES, REPLICATES, VERSIONS = 12, 10, 200
APPEND = """
import json, sys
from pathlib import Path
from skill_evaluator.records.archive import append_rows
from skill_evaluator.records.record import Row
append_rows(Path(sys.argv[1]), "receipt-extraction", [Row.model_validate(json.loads(sys.argv[2]))])
"""


def rows(quick: bool) -> Iterator[Measured]:
    """Yield time and memory of adding a row; then the history's."""
    turns = 2 if quick else 5
    with tempfile.TemporaryDirectory() as name:
        boards = {count: board_of(Path(name) / str(count), count) for count in COUNTS}
        for board in boards.values():
            append(board, 0)  # warms caches, not counted
        taken = {count: [] for count in boards}
        for turn in range(1, turns + 1):
            for count, board in boards.items():
                taken[count].append(append(board, turn))
    for count in COUNTS:
        walls = tuple(figures.wall_s for figures in taken[count])
        bound = 1.0 if count == COUNTS[-1] else None
        yield Measured(name=f"adding a row to {count:,} rows", values=walls, most=bound, unit="s")
        peaks = tuple(figures.peak_mib for figures in taken[count])
        yield Measured(
            name=f"the same, memory at its peak ({count:,} rows)",
            values=peaks,
            most=286 if bound else None,
            unit="MiB",
        )
    yield from history_rows(turns)


def board_of(folder: Path, count: int) -> Path:
    """Return a leaderboard of so many rows: the shipped row again and again, ten of each version."""
    row = shipped_row()
    row["per_case"] = row["per_case"][:CASES]
    rows = ({**row, **identity(at), "skill_version": f"1.{at // 10}.0"} for at in reversed(range(count)))
    folder.mkdir()
    board = folder / "leaderboard.json"
    board.write_bytes(format_leaderboard({"skill": "receipt-extraction"}, rows))
    return board


def shipped_row() -> dict[str, Any]:
    """Return the newest row of the component that the README runs."""
    row: dict[str, Any] = json.loads((ROOT / "components" / "receipt-extraction" / "leaderboard.json").read_text())[
        "runs"
    ][0]
    return row


def identity(at: int) -> dict[str, str]:
    """Return the keys that tell the runs of a minute apart."""
    return {"run_id": f"20260101T{at:06}Z-000000-m", "timestamp": "2026-01-01T00:00:00Z"}


def append(board: Path, turn: int) -> Figures:
    """Add one row in a process of its own."""
    new = {**shipped_row(), **identity(900_000 + turn), "skill_version": "1.0.0"}
    return measure([sys.executable, "-c", APPEND, str(board), json.dumps(new)], board.parent)


def history_rows(turns: int) -> Iterator[Measured]:
    """Yield the time of a history."""
    with tempfile.TemporaryDirectory() as name:
        library = Library(Path(name))
        keep_in(library.component, *runs_of_history())
        command = [sys.executable, "-m", "skill_evaluator", "history", SKILL]
        taken = tuple(measure(command, library.root).wall_s for _ in range(turns))
    yield Measured(name=f"history of {VERSIONS} rows", values=taken, most=3, unit="s")


def runs_of_history() -> Iterator[object]:
    """Yield a run of every version, each as good as the others."""
    dice = random.Random(0)
    ease = {f"case-{at:02}": dice.uniform(0.5, 1.0) for at in range(CASES)}

    def scores() -> dict[str, list[float]]:
        return {
            case: [round(min(1.0, max(0.0, dice.gauss(level, 0.05))), 3) for _ in range(REPLICATES)]
            for case, level in ease.items()
        }

    for at in range(VERSIONS):
        rights = {f"field-{field}": {case: (dice.randrange(6, 11), REPLICATES) for case in ease} for field in range(8)}
        yield a_run(
            f"1.{at}.0",
            1,
            scores(),
            other={f"metric-{metric}": scores() for metric in range(2)},
            fields=rights,
            agreement={case: dice.random() for case in ease},
            run_id=f"20260101T{at:06}Z-000000-m",
            timestamp=f"2026-{1 + at // 28:02}-{1 + at % 28:02}T08:00:00Z",
        )
