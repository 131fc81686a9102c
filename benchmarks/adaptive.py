"""What `evaluate --adaptive` saves and risks, by simulation: `python benchmarks/adaptive.py [--quick]`.

One measure of one model, on the fixtures question: each run is judged once as asked in full and once by the rule, on
the same answers. Two processes, seeded. Permutations are drawn 1,000 times, which costs some power and no validity.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from multiprocessing import Pool
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from populations import Floats, Setting, on_fixtures
from skill_evaluator.library.config import VerdictName
from skill_evaluator.verdicts import randomisation
from skill_evaluator.verdicts.adaptive import Gauge, looks_of, settled
from skill_evaluator.verdicts.effects import ALPHA, Effect, replicate_effect
from skill_evaluator.verdicts.rules import measure_verdict
from verdicts import Job, Row, above, run, share

TOLERANCE = 0.05
SIZES = ((12, 10), (12, 20), (50, 10), (50, 20))
SHAPES = ("0/1", "leaves", "continuous", "rare failures")
MUCH = 0.3
COLUMNS = (
    "scores",
    "cases × replicates",
    "true drop",
    "family",
    "wrong",
    "in full",
    "≤ 5",
    "decided",
    "in full",
    "saved",
)


def judged(before: Floats, after: Floats, family: int) -> tuple[Effect | None, VerdictName]:
    """The ordinary verdict; a family (here: of models) enters by Bonferroni, the worst that its others could do."""
    effect = replicate_effect(before.tolist(), after.tolist())
    q = None if effect is None else min(1.0, effect.p * family)
    return effect, measure_verdict(effect, q, TOLERANCE, ALPHA, covered=True)


def by_the_rule(before: Floats, after: Floats, family: int) -> tuple[Effect | None, VerdictName, int]:
    """What is found at the look that settles the verdict, else at the end; and after how many replicates."""
    for look in looks_of(after.shape[1]):
        effect, ordinary = judged(before, after[:, : look.after], family)
        if settled([Gauge(effect=effect, tolerance=TOLERANCE)], ordinary, look.share, ALPHA, family) is not None:
            return effect, ordinary, look.after
    return *judged(before, after, family), after.shape[1]


def row(setting: Setting, family: int, runs: int, rng: np.random.Generator) -> Row:
    """Both ways of asking, many times."""
    randomisation.DRAWS = 1_000
    full: Counter[str] = Counter()
    adaptive: Counter[str] = Counter()
    asked = held = 0
    for _ in range(runs):
        before, after, truth = on_fixtures(setting, rng)
        full[judged(before, after, family)[1]] += 1
        effect, said, replicates = by_the_rule(before, after, family)
        adaptive[said] += 1
        asked += replicates
        held += effect is not None and effect.ci95[0] - 1e-12 <= truth <= effect.ci95[1] + 1e-12
    wrong = ("unchanged", "improved") if setting.drop == TOLERANCE else ("regressed", "improved")
    right = ("regressed",) if setting.drop else ("unchanged",)
    mistakes = [sum(said[one] for one in wrong) for said in (adaptive, full)] if setting.drop <= TOLERANCE else []
    decided = [sum(said[one] for one in right) for said in (adaptive, full)]
    return [
        setting.shape,
        setting.size,
        str(setting.drop),
        str(family),
        *([share(count, runs) for count in mistakes] or ["–", "–"]),
        above(mistakes[0], runs, ALPHA) if mistakes else "",
        *(share(count, runs) for count in decided),
        share(held, runs),
        share(runs * setting.replicates - asked, runs * setting.replicates),
    ]


def jobs(quick: bool) -> Iterator[Job]:
    """Nothing changed, the truth fell by what is tolerated, and by much."""
    runs = 100 if quick else 1000
    for drop in (0.0, TOLERANCE, MUCH):
        for shape in SHAPES:
            for cases, replicates in SIZES:
                setting = Setting(shape=shape, cases=cases, replicates=replicates, accuracy=0.9, drop=drop)
                yield partial(row, setting, 1, runs)
        of_many = Setting(shape="0/1", cases=12, replicates=10, accuracy=0.9, drop=drop)
        yield partial(row, of_many, 40, runs)


def main(quick: bool) -> None:
    """Print the table."""
    with Pool(2) as pool:
        print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
        for cells in pool.imap(run, enumerate(jobs(quick), start=9000)):
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs")
    main(parser.parse_args().quick)
