"""Times whole processes from outside: wall and processor seconds, peak memory; peers in turn, ratios pair by pair.

`Measured` is a row of the table: every benchmark that `python -m benchmarks` runs has a function `rows(quick)` that
yields them, shortest first where it can, and prints nothing.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
# A small process stands between: the system counts for a new process the memory that the one that begins it once had.
_BETWEEN = """
import json, os, subprocess, sys, time
begun = time.perf_counter()
process = subprocess.Popen(sys.argv[2:])
_, status, used = os.wait4(process.pid, 0)
wall_s = time.perf_counter() - begun
process.returncode = os.waitstatus_to_exitcode(status)
figures = {"wall_s": wall_s, "cpu_s": used.ru_utime + used.ru_stime, "peak_mib": used.ru_maxrss / 1024}
with open(sys.argv[1], "w") as file:
    json.dump(figures, file)
sys.exit(process.returncode)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A row of the table: what was measured how often, and its bound.

    `name` says what is divided by what. `values` are the ratios (or, with a `unit`, seconds or MiB), one for every turn
    in which both were measured; none if a peer is missing, and then `note` says what to install. At most one of `most`
    and `least` is set; with neither the row is only quoted. `note` is for absolute figures.
    """

    name: str
    values: tuple[float, ...]
    most: float | None = None
    least: float | None = None
    unit: str = ""
    note: str = ""

    @property
    def middle(self) -> float:
        """The median, which is what is held to the bound."""
        return median(self.values)


@dataclass(frozen=True, slots=True)
class Figures:
    """One finished process."""

    wall_s: float
    cpu_s: float
    peak_mib: float


def as_installed(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment in which these sources are found, and byte code is kept, as pip leaves it."""
    kept = {name: value for name, value in environment.items() if name != "PYTHONDONTWRITEBYTECODE"}
    others = kept.get("PYTHONPATH", "").split(os.pathsep)
    return {**kept, "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT / "tools"), *others)))}


def measure(
    command: Sequence[str], folder: Path, environment: Mapping[str, str] = os.environ, *, may_fail: bool = False
) -> Figures:
    """Run a command to its end; raises if it fails, unless it may."""
    with tempfile.NamedTemporaryFile() as figures, tempfile.TemporaryFile() as errors:
        between = [sys.executable, "-I", "-S", "-c", _BETWEEN, figures.name]
        done = subprocess.run(
            [*between, *command],
            cwd=folder,
            env=as_installed(environment),
            stdout=subprocess.DEVNULL,
            stderr=errors,
            check=False,
        )
        if done.returncode and not may_fail:
            errors.seek(0)
            raise SystemExit(f"{command} exited with {done.returncode}: {errors.read().decode()}")
        return Figures(**json.load(figures))


def in_turn(
    ours: Sequence[str], peer: Sequence[str], folder: Path, environment: Mapping[str, str] = os.environ, runs: int = 5
) -> list[tuple[Figures, Figures]]:
    """Ours and the peer's, one after the other, so that a machine whose speed drifts is unfair to neither."""
    measure(ours, folder, environment)  # warms caches, not counted
    measure(peer, folder, environment)
    return [(measure(ours, folder, environment), measure(peer, folder, environment)) for _ in range(runs)]


def spread(values: Sequence[float], form: str = ".2f") -> str:
    """`median (min to max)`."""
    return f"{median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def rows_of(benchmark: str, quick: bool) -> list[Measured]:
    """All rows of one benchmark; here, since a new process has no `__main__` of this package."""
    return list(importlib.import_module(f"benchmarks.{benchmark}").rows(quick))
