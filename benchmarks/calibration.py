"""Whether `compare --calibrate` reports what truly happens: `python benchmarks/calibration.py [--quick]`; Markdown.

Nothing is worse in any world (`worlds`). The truth is what the gate says of pairs of runs; beside it stands what
`--calibrate` says on average of single runs, and of runs with A/A runs. Rates in per cent ± their standard error. Two
processes, seeded; permutations are drawn 1,000 times.
"""

import argparse
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import Pool
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from premises import Trial
from skill_evaluator.records.record import Record
from skill_evaluator.verdicts import randomisation
from skill_evaluator.verdicts.comparability import Pair
from skill_evaluator.verdicts.comparison import compare_records
from skill_evaluator.verdicts.dealing import HalvesDealer, RunsDealer
from worlds import World, another_run, probabilities, record_of, rules_of

WORLDS = {
    "independent": World(),
    "independent, sampled": World(sampled=True),
    "share 60 %": World(share=0.6),
    "share 90 %": World(share=0.9),
    "share 95 %, half reworded": World(share=0.95, reworded=0.5),
    "day 0.2": World(day=0.2),
    "share 60 %, falsely sampled": World(share=0.6, sampled=True),
}
GATES = ("robust", "fixtures")
DEALINGS = 10  # of one simulated record
COLUMNS = ("world", "A/A runs", "gate", "what", "truth", "--calibrate", "if one draw", "says more by")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A world with so many A/A runs of the baseline, through a gate, so many times."""

    world: str
    again: int
    gate: str
    times: int


def runs_of(world: World, count: int, rng: np.random.Generator) -> list[Record]:
    """Return runs of one version."""
    p = probabilities(world, rng)
    return [record_of(world, another_run(world, p, rng), "1.0.0", run) for run in range(count)]


def dealt(job: Job, rng: np.random.Generator, copies: bool = False) -> Iterator[Pair]:
    """Yield what is dealt of simulated versions: halves of a run, or whole runs where there are A/A runs."""
    for at in range(job.times // DEALINGS):
        runs, dice = runs_of(WORLDS[job.world], 1 + job.again, rng), random.Random(at)
        dealer = RunsDealer(runs, "field_level_f1", dice) if job.again else HalvesDealer(runs[0], dice, copies=copies)
        for _ in range(DEALINGS):
            yield dealer.deal(0.0)


def verdicts(pairs: Iterable[Pair], gate: str) -> list[str]:
    """Return the verdict on each pair."""
    rules = rules_of(gate)
    return [compare_records("s", [pair], rules).models[0].verdict for pair in pairs]


def rows_of(numbered: tuple[int, Job]) -> list[list[str]]:
    """Return the rows of regressed and improved."""
    number, job = numbered
    randomisation.DRAWS = 1_000
    rng = np.random.default_rng([20_261, number])
    world = WORLDS[job.world]
    trial = Trial(name=job.world, world=world, again=job.again)
    truth = verdicts((trial.pairs(rng)[0] for _ in range(job.times)), job.gate)
    said = verdicts(dealt(job, rng), job.gate)
    copies = [] if job.again or world.sampled else verdicts(dealt(job, rng, copies=True), job.gate)
    rows = []
    for verdict in ("regressed", "improved"):
        gap, error = difference(truth, said, verdict)
        within = f"{gap:+.1f} ± {error:.1f}"
        cells = [rate_of(truth, verdict), rate_of(said, verdict), rate_of(copies, verdict) if copies else "–"]
        rows.append([job.world, str(job.again), job.gate, verdict, *cells, within])
    return rows


def rate_of(found: Sequence[str], verdict: str) -> str:
    """Write a rate in per cent with its standard error."""
    share = found.count(verdict) / len(found)
    return f"{100 * share:.1f} ± {100 * np.sqrt(share * (1 - share) / len(found)):.1f}"


def difference(truth: Sequence[str], said: Sequence[str], verdict: str) -> tuple[float, float]:
    """Return by how many points `--calibrate` says more than the truth; dealings of a record do not count as new."""
    rates = [found.count(verdict) / len(found) for found in (truth, said)]
    by_record = np.reshape([one == verdict for one in said], (-1, DEALINGS)).mean(axis=1)
    error = np.hypot(np.sqrt(rates[0] * (1 - rates[0]) / len(truth)), by_record.std(ddof=1) / np.sqrt(len(by_record)))
    return 100 * (rates[1] - rates[0]), 100 * float(error)


def main(quick: bool, only: str, times: int, runs: Sequence[int]) -> None:
    """Print the table."""
    jobs = [
        Job(world=name, again=again, gate=gate, times=40 if quick else times)
        for again in (0, 1, 2)
        for name, world in WORLDS.items()
        for gate in GATES
        if gate == "robust" or again or world.sampled  # else a case is one draw, and both gates are one
    ]
    chosen = [(number, job) for number, job in enumerate(jobs) if only in job.world and job.again in runs]
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    with Pool(2) as pool:
        for rows in pool.imap(rows_of, chosen):
            for row in rows:
                print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="40 of each, about two minutes")
    parser.add_argument("--only", default="", help="the worlds whose name holds this")
    parser.add_argument("--times", type=int, default=1_000, help="comparisons behind each rate")
    parser.add_argument("--runs", type=int, nargs="*", default=(0, 1, 2), help="numbers of A/A runs")
    options = parser.parse_args()
    main(options.quick, options.only, options.times, options.runs)
