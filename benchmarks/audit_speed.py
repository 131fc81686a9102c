"""Time and memory of `audit report`, whole processes: CreditAudit's table, and a cube of 7.5 million answers.

The cube is drawn to a temporary file of 300 MB first; a quick run leaves it out.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from skill_evaluator.audit.cube import Outcomes, cube_of_outcomes, write_cube

from benchmarks.measure import ROOT, Measured, measure

MODELS, SCENARIOS, BENCHMARKS, QUESTIONS, REPLICATES = 50, 20, 5, 500, 3


def rows(quick: bool) -> Iterator[Measured]:
    report = [sys.executable, "-m", "skill_evaluator", "audit", "report", "--format", "json", "--cube"]
    table = str(ROOT / "tests" / "data" / "creditaudit_table2.csv")
    runs = 2 if quick else 5
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        answers = MODELS * SCENARIOS * BENCHMARKS * QUESTIONS * REPLICATES
        large = str(folder / "outcomes.csv")
        cases = [
            ("CreditAudit's table", [*report, table], runs, 3),
            ("CreditAudit's table, with page and charts", [*report, table, "--out", str(folder / "a")], runs, 3),
        ]
        if not quick:
            drawn(folder)
            cases += [
                (f"{answers:,} answers", [*report, large], 1, 60),
                (f"{answers:,} answers, page, charts, cube", [*report, large, "--out", name], 1, 60),
            ]
        for title, command, times, bound in cases:
            figures = [measure(command, folder) for _ in range(times)]
            memory = f"{max(one.peak_mib for one in figures):.0f} MiB"
            values = tuple(one.wall_s for one in figures)
            yield Measured(name=f"`audit report` of {title}", values=values, most=bound, unit="s", note=memory)


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
