"""Time of `compare`: whole processes on two large record files; and a long leaderboard: `comparing.py [RUNS]`."""

import json
import os
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
sys.path.insert(0, str(Path(__file__).parent))
from measure import measure, spread
from skill_evaluator.files import json_text
from skill_evaluator.records.record import Record, write_record

from tests.support.records import a_record

ROOT = Path(__file__).parents[1]
CASES, REPLICATES, FIELDS, METRICS, ROWS = 200, 10, 40, 6, 10_000
LOAD = """
import sys
from pathlib import Path
from skill_evaluator.records.archive import read_entries
assert len(read_entries(Path(sys.argv[1]))) == int(sys.argv[2])
"""


def main(runs: int) -> None:
    """Print the figures."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools")}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = [folder / "baseline.json", folder / "candidate.json"]
        for seed, file in enumerate(files):
            write_record(file, large_record(seed))
        board = folder / "leaderboard.json"
        board.write_text(json_text(long_leaderboard()))
        compare = [sys.executable, "-m", "skill_evaluator", "compare", "--format", "json"]
        compare += ["--baseline", str(files[0]), "--candidate", str(files[1])]
        for title, command, bound in (
            (f"compare {CASES} cases × {REPLICATES} + {REPLICATES} × {FIELDS} fields, {METRICS} metrics", compare, 2),
            (f"load {ROWS:,} rows", [sys.executable, "-c", LOAD, str(board), str(ROWS)], 1),
        ):
            measure(command, folder, environment)  # warms caches, not counted
            figures = [measure(command, folder, environment) for _ in range(runs)]
            wall, cpu = spread([one.wall_s for one in figures]), spread([one.cpu_s for one in figures])
            print(f"{title}: {wall} s, at most {bound}; processor {cpu} s")
        print(f"files: {files[0].stat().st_size / 2**20:.1f} and {board.stat().st_size / 2**20:.1f} MiB")


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


def long_leaderboard() -> dict[str, object]:
    """The shipped leaderboard's row ten thousand times: a hundred versions of a component of 14 cases, five models."""
    board = json.loads((ROOT / "components" / "receipt-extraction" / "leaderboard.json").read_text())
    row = board["runs"][0]
    rows = [
        {**row, "run_id": f"20260101T{at:06}Z-000000-m", "skill_version": f"1.{at // 100}.0", "model_id": f"m-{at % 5}"}
        for at in range(ROWS)
    ]
    return {**board, "runs": rows[::-1]}


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
