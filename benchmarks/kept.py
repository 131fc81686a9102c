"""The table of all benchmarks, and `history.jsonl`, from which it is made: a line for every run of a benchmark."""

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.measure import ROOT, Measured, spread

HISTORY = Path(__file__).with_name("history.jsonl")
PAGE = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- the table: written by python -m benchmarks -->\n", "<!-- end of the table -->\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a benchmark: which one, when, on what machine, of which commit (`+`: with changes), its rows."""

    benchmark: str
    time: str
    machine: str
    commit: str
    rows: tuple[Measured, ...]

    @property
    def line(self) -> str:
        """The run as a line of the history: of each row its ratio and spread, and not every value."""
        rows = [{**asdict(row), "values": _three(row)} for row in self.rows]
        return json.dumps({**asdict(self), "rows": rows}, ensure_ascii=False) + "\n"


def run_of(benchmark: str, rows: Sequence[Measured]) -> Run:
    """What was just measured here."""
    commit = _git("rev-parse", "--short=10", "HEAD") + ("+" if _git("status", "--porcelain", "--", "tools") else "")
    time = datetime.now(UTC).isoformat(timespec="seconds")
    return Run(benchmark=benchmark, time=time, machine=_machine(), commit=commit, rows=tuple(rows))


def read_history(path: Path = HISTORY) -> list[Run]:
    """All runs, the oldest first."""
    return [_read(json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def table(runs: Sequence[Run]) -> str:
    """These runs as one Markdown table."""
    lines = ["| | bound | median | least to most | |", "|---|---|---|---|---|"]
    for run in runs:
        for row in run.rows:
            bound = f"≤ {row.most:g}" if row.most is not None else f"≥ {row.least:g}" if row.least is not None else ""
            middle, least_to_most = _shown(row)
            remarks = "; ".join(part for part in (_verdict(row), row.note) if part)
            unit = f" {row.unit}" if row.unit and bound else ""
            lines.append(f"| {row.name} | {bound}{unit} | {middle} | {least_to_most} | {remarks} |")
    return "\n".join(lines) + "\n"


def newest(history: Sequence[Run], order: Sequence[str]) -> list[Run]:
    """The last run of each of these benchmarks, in this order."""
    last = {run.benchmark: run for run in history}
    return [last[name] for name in order if name in last]


def page_with(text: str, page: str) -> str:
    """A page with another table between its marks."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}{text}{END}{rest.partition(END)[2]}"


def _verdict(row: Measured) -> str:
    if not row.values:
        return "skipped"
    if row.most is None and row.least is None:
        return ""
    met = row.middle <= row.most if row.most is not None else row.middle >= (row.least or 0)
    return "met" if met else "**missed**"


def _shown(row: Measured) -> tuple[str, str]:
    if not row.values:
        return "", ""
    unit = f" {row.unit}" if row.unit else ""
    form = ".0f" if row.middle >= 100 else ".1f" if row.middle >= 10 else ".2f"
    middle, _, rest = spread(row.values, form).partition(" (")
    return middle + unit, rest.rstrip(")")


def _three(row: Measured) -> list[float]:
    return [float(f"{value:.4g}") for value in (min(row.values), row.middle, max(row.values))] if row.values else []


def _read(line: dict[str, Any]) -> Run:
    rows = tuple(Measured(**{**row, "values": tuple(row["values"])}) for row in line["rows"])
    return Run(**{**line, "rows": rows})


def _machine() -> str:
    names = [line.partition(":")[2].strip() for line in _cpu_lines() if line.startswith("model name")]
    name = names[0] if names else platform.machine()
    return f"{os.cpu_count()} × {name}, Python {platform.python_version()}"


def _cpu_lines() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()
