"""Time of `compare`: whole processes on two large record files; and of reading a long leaderboard, and many cases."""

import json
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from skill_evaluator.records.archive import format_leaderboard
from skill_evaluator.records.record import Record, write_record

from benchmarks.measure import ROOT, Measured, measure, spread
from tests.support.records import a_record

CASES, REPLICATES, FIELDS, METRICS, ROWS = 200, 10, 40, 6, 10_000
LOAD = """
import sys
from pathlib import Path
from skill_evaluator.records.archive import read_entries
assert len(read_entries(Path(sys.argv[1]))) == int(sys.argv[2])
"""
COUNT = 1_000
READ = """
import sys
from pathlib import Path
from skill_evaluator.library.cases import load_cases
from skill_evaluator.library.components import load_component
component = load_component(Path(sys.argv[1]), "receipt-extraction", fixtures_dir=Path())
assert len(load_cases(component)) == int(sys.argv[2])
"""


def rows(quick: bool) -> Iterator[Measured]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = [folder / "baseline.json", folder / "candidate.json"]
        for seed, file in enumerate(files):
            write_record(file, large_record(seed))
        board = folder / "leaderboard.json"
        board.write_bytes(format_leaderboard({"skill": "receipt-extraction"}, long_leaderboard()))
        write_table(folder / "receipt-extraction" / "cases.jsonl")
        read = [sys.executable, "-c", READ, str(ROOT / "components"), str(COUNT)]
        compare = [sys.executable, "-m", "skill_evaluator", "compare", "--format", "json"]
        compare += ["--baseline", str(files[0]), "--candidate", str(files[1])]
        for title, command, bound in (
            (f"`compare` of {CASES} cases × {REPLICATES}, {FIELDS} fields, {METRICS} metrics", compare, 2),
            (f"reading a leaderboard of {ROWS:,} rows", [sys.executable, "-c", LOAD, str(board), str(ROWS)], 1),
            (f"reading {COUNT:,} cases of one file", read, 1),
        ):
            measure(command, folder)  # warms caches, not counted
            figures = [measure(command, folder) for _ in range(3 if quick else 9)]
            processor = f"processor {spread([one.cpu_s for one in figures])} s"
            yield Measured(
                name=title, values=tuple(one.wall_s for one in figures), most=bound, unit="s", note=processor
            )


def write_table(path: Path) -> None:
    """The shipped receipts again and again, a line each."""
    path.parent.mkdir()
    lines = []
    for folder in sorted((ROOT / "fixtures" / "receipt-extraction" / "cases").iterdir()):
        truth = json.loads((folder / "ground_truth.json").read_text())
        lines.append({"document": (folder / "document.md").read_text(), "ground_truth": truth})
    with path.open("w") as file:
        for number in range(COUNT):
            file.write(json.dumps({"id": f"case-{number:04}", **lines[number % len(lines)]}) + "\n")


def large_record(seed: int) -> Record:
    """Scores of every shape: rates, shares of leaves, and agreement; fields right now and then."""
    dice = random.Random(seed)
    names = [f"case-{at:03}" for at in range(CASES)]
    ease = {name: random.Random(name).betavariate(4, 1) for name in names}

    def rates(name: str) -> list[float]:
        return [float(dice.random() < ease[name]) for _ in range(REPLICATES)]

    def shares(name: str) -> list[float]:
        return [round(sum(dice.random() < ease[name] for _ in range(20)) / 20, 6) for _ in range(REPLICATES)]

    metrics = {
        f"metric-{at}": {name: (rates if at < 2 else shares)(name) for name in names} for at in range(METRICS - 1)
    }
    fields = {f"field-{at}": {name: (int(sum(rates(name))), REPLICATES) for name in names} for at in range(FIELDS)}
    return a_record(
        {name: shares(name) for name in names},
        other=metrics,
        fields=fields,
        agreement={name: sum(shares(name)) / REPLICATES for name in names},
    )


def long_leaderboard() -> list[dict[str, object]]:
    """The shipped leaderboard's row ten thousand times: a hundred versions of a component of 14 cases, five models."""
    board = json.loads((ROOT / "components" / "receipt-extraction" / "leaderboard.json").read_text())
    row = board["runs"][0]
    rows = [
        {**row, "run_id": f"20260101T{at:06}Z-000000-m", "skill_version": f"1.{at // 100}.0", "model_id": f"m-{at % 5}"}
        for at in range(ROWS)
    ]
    return rows[::-1]
