"""Times whole processes from outside: wall and processor seconds, peak memory; peers in turn, ratios pair by pair."""

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median


@dataclass(frozen=True, slots=True)
class Figures:
    """One finished process."""

    wall_s: float
    cpu_s: float
    peak_mib: float


def as_installed(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment in which byte code is kept, as pip leaves it: else every process compiles our sources anew."""
    return {name: value for name, value in environment.items() if name != "PYTHONDONTWRITEBYTECODE"}


def measure(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Figures:
    """Run a command to its end; raises if it fails."""
    begun = time.perf_counter()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, cwd=folder, env=as_installed(environment), stdout=subprocess.DEVNULL, stderr=errors
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            raise SystemExit(f"{command} exited with {process.returncode}: {errors.read().decode()}")
    return Figures(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def in_turn(
    ours: Sequence[str], peer: Sequence[str], folder: Path, environment: Mapping[str, str], runs: int
) -> list[tuple[Figures, Figures]]:
    """Ours and the peer's, one after the other, so that a machine whose speed drifts is unfair to neither."""
    measure(ours, folder, environment)  # warms caches, not counted
    measure(peer, folder, environment)
    return [(measure(ours, folder, environment), measure(peer, folder, environment)) for _ in range(runs)]


def spread(values: Sequence[float], form: str = ".2f") -> str:
    """`median (min to max)`."""
    return f"{median(values):{form}} ({min(values):{form}} to {max(values):{form}})"
