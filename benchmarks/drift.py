"""How often `plan --drift` alarms where no model moved, and how often it sees one that did.

`python benchmarks/drift.py` prints Markdown; seeded; two processes, some minutes (`--quick`: a third of the
trials). A recorded version is asked again in the worlds of `worlds`: every run has a day of its own. The new run stands
as the candidate, earlier runs of its series as the baseline, as `collect` has it. An alarm is anything in `moved`.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from multiprocessing import Pool
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from skill_evaluator.evaluation.drift import drifted
from skill_evaluator.verdicts.decide.comparability import Pair
from worlds import Floats, World, another_run, one_field, probabilities, rate, record_of, rules_of, spread

Change = Callable[[Floats], Floats]
WORLDS = {
    f"{kind}, {name}": replace(world, kind=kind)
    for kind in ("plain", "flaky")
    for name, world in {
        "independent": World(),
        "share 60 %": World(share=0.6),
        "share 90 %": World(share=0.9),
        "a day of sd 0.1": World(day=0.1),
        "a day of sd 0.2": World(day=0.2),
        "share 60 %, a day of sd 0.2": World(share=0.6, day=0.2),
        "share 60 %, a day of sd 0.3": World(share=0.6, day=0.3),
    }.items()
}
MOVES: dict[str, Change | None] = {
    "nothing moved": None,
    "all fields, 0.05": partial(spread, drop=0.05),
    "all fields, 0.1": partial(spread, drop=0.1),
    "one field, 0.5": partial(one_field, drop=0.05),
}
EARLIER = (1, 4)
TRIALS, TRIALS_MOVED = 400, 100
COLUMNS = ("world", "earlier runs", *MOVES)


def alarmed(world: World, earlier: int, change: Change | None, rng: np.random.Generator) -> bool:
    """Return whether a new run of a model is said to have moved, after so many runs of its series."""
    p = probabilities(world, rng)
    series = [record_of(world, another_run(world, p, rng), "1.0.0", run) for run in range(earlier)]
    moved = p if change is None else change(p)
    new = record_of(world, another_run(world, moved, rng), "1.0.0", earlier)
    pair = Pair(baseline=series[-1], candidate=new, baseline_again=tuple(series[:-1]))
    return bool(drifted([pair], rules_of()).models[0].moved)


def row_of(numbered: tuple[int, tuple[str, int, int]]) -> list[str]:
    """Return how often there is an alarm in a world, for each way in which a model moves."""
    number, (name, earlier, parts) = numbered
    rng = np.random.default_rng([20_262, number])
    shares = []
    for change in MOVES.values():
        times = (TRIALS if change is None else TRIALS_MOVED) // parts
        shares.append(rate([alarmed(WORLDS[name], earlier, change, rng) for _ in range(times)], times))
    return [name, str(earlier), *shares]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a third of the trials")
    parts = 3 if parser.parse_args(arguments).quick else 1
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    with Pool(2) as pool:
        for row in pool.imap(row_of, enumerate((name, earlier, parts) for name in WORLDS for earlier in EARLIER)):
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
