"""What `evaluate --adaptive` saves, risks and does to scores, by simulation: `python benchmarks/adaptive.py [--quick]`.

Each run is recorded and judged as a user's is, once as asked in full and once by the looks, on the same answers. One
measure of one model, asked beside its baseline, with independent replicates. Two processes, seeded.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from multiprocessing import Pool
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from skill_evaluator.evaluation.adaptive import HELD_OUT, corrected_means, looks_of, settled_between
from skill_evaluator.library.config import VerdictName
from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.comparison import compare_records

from tests.support.records import a_record
from tests.support.rules import some_rules

Row = list[str]
Floats = NDArray[np.float64]
Job = Callable[[np.random.Generator], Row]
TOLERANCE = 0.05
SIZES = ((12, 10), (20, 5), (12, 20), (50, 10))
SHAPES = ("0/1", "leaves", "rare failures")
DROPS = (0.0, TOLERANCE, 0.1, 0.3)
COLUMNS = (
    *("scores", "cases × replicates", "true drop", "wrong", "in full", "decided", "in full", "saved", "stopped"),
    *("the stopped: bias", "corrected", "its error", "all: corrected", "its error", "interval holds"),
)
SPREAD = 3.0  # Beta(3a, 3(1 − a)): cases from hopeless to trivial
FAILING = 0.01  # of the answers of a model that now and then gives nothing usable
RULES = some_rules({"tolerance": TOLERANCE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One model as it is simulated; `shape` says how the answers to a case scatter around its true score."""

    shape: str
    cases: int
    replicates: int
    accuracy: float
    drop: float = 0.0

    @property
    def size(self) -> str:
        """As tables name it."""
        return f"{self.cases} × {self.replicates}"


def answers(setting: Setting, p: Floats, failing: float, rng: np.random.Generator) -> Floats:
    """Return the scores of replicates around the true scores p, shape (cases, replicates)."""
    true = np.repeat(p[:, None], setting.replicates, axis=1)
    if setting.shape == "0/1":
        return (rng.random(true.shape) < true).astype(float)
    if setting.shape == "leaves":
        return rng.binomial(20, true) / 20
    near = np.clip(true, 1e-4, 1 - 1e-4)
    return rng.beta(200 * near, 200 * (1 - near)) * (rng.random(true.shape) >= failing)


def scored(setting: Setting, rng: np.random.Generator) -> tuple[Floats, Floats, float, float]:
    """Both arms on the same cases, and the true mean of each; all cases are lower in proportion, or fail more often."""
    mean = 0.0
    while mean <= setting.drop:
        p = rng.beta(SPREAD * setting.accuracy, SPREAD * (1 - setting.accuracy), setting.cases)
        mean = float(p.mean())
    if setting.shape == "rare failures":
        share = min(1.0, FAILING + setting.drop / mean)
        before, after = (answers(setting, p, failing, rng) for failing in (FAILING, share))
        return before, after, mean * (1 - FAILING), mean * (1 - share)
    q = p * (1 - setting.drop / mean)
    return answers(setting, p, 0.0, rng), answers(setting, q, 0.0, rng), mean, float(q.mean())


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One run: its verdict in full and by the looks, the replicates asked, and its means less the truth."""

    in_full: VerdictName
    verdict: VerdictName
    replicates: int
    mean: float
    corrected: float
    held: bool


def recorded(scores: Floats, name: str) -> Record:
    """Return a record of these scores, one row a case."""
    by_case = {f"case-{at}": row for at, row in enumerate(scores.tolist())}
    return a_record(by_case, run_id=f"20260101T000000Z-{name}-m", beside="20260101T000000Z-000000-m")


def verdict_on(pair: Pair) -> VerdictName:
    """Return the verdict that a comparison ends with."""
    return compare_records(RULES.skill, [pair], RULES).models[0].verdict


def asked(setting: Setting, rng: np.random.Generator) -> Asked:
    """Ask until a look settles the verdict and then what no look sees, else to the end."""
    before, after, _, truth = scored(setting, rng)
    baseline = recorded(before, "000000")
    enough, seen = setting.replicates, 0
    for look in looks_of(setting.replicates):
        seen = look.after
        so_far = Pair(baseline=baseline, candidate=recorded(after[:, :seen], "111111"))
        if settled_between(so_far, RULES, look, models=1):
            enough = seen + HELD_OUT
            break
    own = recorded(after[:, :enough], "111111")
    corrected = corrected_means(own, seen)["field_level_f1"]
    low, high = corrected.ci95
    return Asked(
        in_full=verdict_on(Pair(baseline=baseline, candidate=recorded(after, "111111"))),
        verdict=verdict_on(Pair(baseline=baseline, candidate=own)),
        replicates=enough,
        mean=float(after[:, :enough].mean()) - truth,
        corrected=corrected.strict_mean - truth,
        held=low - 1e-6 <= truth <= high + 1e-6,
    )


def row(setting: Setting, runs: int, rng: np.random.Generator) -> Row:
    """Both ways of asking, many times."""
    every = [asked(setting, rng) for _ in range(runs)]
    stopped = [one for one in every if one.replicates < setting.replicates]
    wrong = ("unchanged", "improved") if setting.drop == TOLERANCE else ("regressed", "improved")
    right = "regressed" if setting.drop else "unchanged"
    mistakes = [sum(said in wrong for said in verdicts) for verdicts in _both(every)]
    return [
        *(setting.shape, setting.size, str(setting.drop)),
        *([share(count, runs) for count in mistakes] if setting.drop <= TOLERANCE else ["–", "–"]),
        *(share(verdicts.count(right), runs) for verdicts in _both(every)),
        share(runs * setting.replicates - sum(one.replicates for one in every), runs * setting.replicates),
        share(len(stopped), runs),
        f"{np.mean([one.mean for one in stopped]):+.4f}" if stopped else "–",
        *_mean_and_error(stopped),
        *_mean_and_error(every),
        share(sum(one.held for one in every), runs),
    ]


def _both(every: Sequence[Asked]) -> list[list[VerdictName]]:
    return [[one.verdict for one in every], [one.in_full for one in every]]


def _mean_and_error(runs: Sequence[Asked]) -> list[str]:
    if len(runs) < 20:
        return ["–", "–"]
    corrected = np.array([one.corrected for one in runs])
    return [f"{corrected.mean():+.4f}", f"{corrected.std(ddof=1) / np.sqrt(len(runs)):.4f}"]


def share(count: int, runs: int) -> str:
    """Return a share in percent."""
    return f"{100 * count / runs:.1f}" if runs else "–"


def jobs(quick: bool) -> Iterator[Job]:
    """Nothing changed, the truth fell by what is tolerated, by twice that, and by much."""
    for drop, shape, (cases, replicates) in product(DROPS, SHAPES, SIZES):
        setting = Setting(shape=shape, cases=cases, replicates=replicates, accuracy=0.9, drop=drop)
        yield partial(row, setting, 40 if quick else 400)


def run(numbered: tuple[int, Job]) -> Row:
    """Do one job with a generator of its own."""
    number, job = numbered
    return job(np.random.default_rng([20_260, number]))


def main(quick: bool) -> None:
    """Print the table."""
    print(f"\n| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    with Pool(2) as pool:
        for cells in pool.imap(run, enumerate(jobs(quick), start=9000)):
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs")
    main(parser.parse_args().quick)
