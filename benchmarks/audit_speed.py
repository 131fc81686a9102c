"""Time and memory of `audit report`, whole processes: CreditAudit's table, and a cube of 7.5 million answers.

`audit_speed.py [RUNS]`; the cube is drawn to a temporary file of 300 MB first.
"""

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
sys.path.insert(0, str(Path(__file__).parent))
import numpy as np
from measure import measure, spread
from skill_evaluator.audit.cube.cube import Outcomes, cube_of_outcomes
from skill_evaluator.audit.cube.tables import write_cube

ROOT = Path(__file__).parents[1]
MODELS, SCENARIOS, BENCHMARKS, QUESTIONS, REPLICATES = 50, 20, 5, 500, 3


def main(runs: int) -> None:
    """Print the figures."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools")}
    report = [sys.executable, "-m", "skill_evaluator", "audit", "report", "--format", "json", "--cube"]
    table = str(ROOT / "tests" / "data" / "creditaudit_table2.csv")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        answers = MODELS * SCENARIOS * BENCHMARKS * QUESTIONS * REPLICATES
        drawn(folder)
        cases = (
            ("CreditAudit's table", [*report, table], runs, 3),
            ("CreditAudit's table, with page and charts", [*report, table, "--out", str(folder / "a")], runs, 3),
            (f"{answers:,} answers", [*report, str(folder / "outcomes.csv")], 1, 60),
            (f"{answers:,} answers, page, charts, cube", [*report, str(folder / "outcomes.csv"), "--out", name], 1, 60),
        )
        for title, command, times, bound in cases:
            figures = [measure(command, folder, environment) for _ in range(times)]
            wall, cpu = spread([one.wall_s for one in figures]), spread([one.cpu_s for one in figures])
            memory = max(one.peak_mib for one in figures)
            print(f"{title}: {wall} s, at most {bound}; processor {cpu} s; memory {memory:.0f} MiB")


def drawn(folder: Path) -> None:
    """Answers of models of all abilities, some of which the scenario moves."""
    random = np.random.default_rng(0)
    outcomes = {}
    for b in range(BENCHMARKS):
        level = random.uniform(0.3, 0.8, (MODELS, 1, 1)) + random.uniform(-0.15, 0.15, (1, 1, QUESTIONS))
        rates = level + random.uniform(0, 0.05, (MODELS, 1, 1)) * random.normal(size=(MODELS, SCENARIOS, 1))
        answers = random.random((*rates.shape, REPLICATES)) < rates[..., None]
        outcomes[f"benchmark-{b}"] = Outcomes(
            questions=tuple(f"question-{q}" for q in range(QUESTIONS)), scores=answers.astype(np.float32)
        )
    names = [f"model-{m}" for m in range(MODELS)], [f"scenario-{t}" for t in range(SCENARIOS)]
    write_cube(cube_of_outcomes(*names, outcomes, weights={}), folder)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
