"""Time and memory of `audit report` on CreditAudit's table, whole processes."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import ROOT, Measured, measure


def rows(quick: bool) -> Iterator[Measured]:
    report = [sys.executable, "-m", "skill_evaluator", "audit", "report", "--format", "json", "--cube"]
    table = str(ROOT / "tests" / "data" / "creditaudit_table2.csv")
    runs = 2 if quick else 5
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cases = [
            ("CreditAudit's table", [*report, table]),
            ("CreditAudit's table, with page and charts", [*report, table, "--out", str(folder / "a")]),
        ]
        for title, command in cases:
            figures = [measure(command, folder) for _ in range(runs)]
            memory = f"{max(each.peak_mib for each in figures):.0f} MiB"
            values = tuple(each.wall_s for each in figures)
            yield Measured(name=f"`audit report` of {title}", values=values, most=3, unit="s", note=memory)
