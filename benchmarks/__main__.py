"""`python -m benchmarks [--only NAME ...] [--quick]`: every benchmark that has a bound, in one table.

Each runs in a process of its own. A whole run is kept in `history.jsonl`, and README.md here gets the table; a
quick one, with fewer rounds, is only printed.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from benchmarks.kept import HISTORY, PAGE, newest, page_with, read_history, run_of, table
from benchmarks.measure import Measured, rows_of

BENCHMARKS = (
    "startup",
    "engine",
    "scoring",
    "memory",
    "sending",
    "tree_similarity",
    "planning",
    "large",
    "comparing",
    "keeping",
    "audit_speed",
    "site",
    "local_model",
    "newcomer",
)


def in_a_process(benchmark: str, quick: bool) -> list[Measured]:
    """All rows of a benchmark, from a new process, so that none has what another imported; one row if it fails."""
    print(f"{benchmark} ...", file=sys.stderr)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            return pool.submit(rows_of, benchmark, quick).result()
        except (Exception, SystemExit) as problem:
            return [Measured(name=benchmark, values=(), note=f"failed: {problem}")]


def state() -> str:
    """Return how fast the machine is now, and how busy."""
    begun = time.perf_counter()
    for _ in range(30_000_000):
        pass
    taken_s, load = time.perf_counter() - begun, os.getloadavg()[0]
    return f"an empty loop of 30 million turns took {taken_s:.2f} s, the load was {load:.1f}"


def main(only: Sequence[str], quick: bool) -> None:
    """Run, print, keep."""
    begun, before = time.monotonic(), state()
    runs = [run_of(name, in_a_process(name, quick)) for name in only]
    minutes = (time.monotonic() - begun) / 60
    machine = f"Machine: {runs[0].machine}. Before: {before}. After {minutes:.0f} minutes: {state()}.\n\n"
    print(machine + table(runs))
    if not quick:
        with HISTORY.open("a") as lines:
            lines.writelines(run.line for run in runs)
        kept = newest(read_history(), BENCHMARKS)  # their figures are rounded, and the page shows those
        PAGE.write_text(page_with(machine + table(kept), PAGE.read_text()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=BENCHMARKS, metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="fewer rounds; nothing is kept")
    options = parser.parse_args()
    main(options.only, options.quick)
