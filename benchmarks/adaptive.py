"""What `evaluate --adaptive` saves, risks and does to scores, by simulation: `python benchmarks/adaptive.py [--quick]`.

One measure of one model, on the fixtures question: each run is judged once as asked in full and once by the rule, on
the same answers. Two processes, seeded. Permutations are drawn 1,000 times, which costs some power and no validity.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import Pool
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from populations import Floats, Setting, scored
from skill_evaluator.library.config import VerdictName
from skill_evaluator.verdicts import randomisation
from skill_evaluator.verdicts.adaptive import Gauge, looks_of, settled, strict_look
from skill_evaluator.verdicts.effects import ALPHA, Effect, replicate_effect
from skill_evaluator.verdicts.held_out import HELD_OUT, Corrected, corrected_means
from skill_evaluator.verdicts.rules import measure_verdict
from skill_evaluator.verdicts.strict_looks import NOTHING_SETTLED, VERDICTS, strict_verdicts
from skill_evaluator.verdicts.watched import Arms, Unseen, Watched
from verdicts import Job, Row, above, run, share

TOLERANCE = 0.05
SIZES = ((12, 10), (20, 5), (12, 20), (50, 10))
SHAPES = ("0/1", "leaves", "continuous", "rare failures")
DROPS = (0.0, TOLERANCE, 0.1, 0.3)
COLUMNS = {
    "verdicts": (
        *("scores", "cases × replicates", "true drop", "family", "wrong", "in full", "≤ 5"),
        *("decided", "in full", "saved"),
    ),
    "means": (
        *("scores", "cases × replicates", "true drop", "stopped", "mean of the stopped: bias", "corrected"),
        *("its error", "of all runs: bias", "corrected", "its error", "interval holds", "spread", "corrected"),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One run by the rule: its verdict, the replicates asked, and its mean as it is and corrected, less the truth.

    `full` is the mean of all replicates less the truth: what chance did to this run whether it was stopped or not.
    """

    verdict: VerdictName
    replicates: int
    mean: float
    corrected: float
    full: float
    held: bool


def judged(before: Floats, after: Floats, family: int) -> tuple[Effect | None, VerdictName]:
    """The ordinary verdict; a family (here: of models) enters by Bonferroni, the worst that its others could do."""
    effect = replicate_effect(before.tolist(), after.tolist())
    q = None if effect is None else min(1.0, effect.p * family)
    return effect, measure_verdict(effect, q, TOLERANCE, ALPHA, covered=True)


def watched_of(before: Floats, after: Floats) -> Watched:
    """Both arms as looks see them: replicates are independent draws, and no noise stands between two runs."""
    return Watched(
        gate="fixtures",
        before=before[None],
        after=after[None],
        tolerances=np.array([TOLERANCE]),
        noises=(Unseen(),),
    )


def by_the_rule(before: Floats, after: Floats, truth: float, family: int) -> Asked:
    """Ask until a look settles the verdict, and once more, else to the end."""
    looks = [strict_look(look, ALPHA, family) for look in looks_of(after.shape[1])]
    watched = watched_of(before, after)
    taken, reached, asked = looks, NOTHING_SETTLED, after.shape[1]
    for at, look in enumerate(looks):
        effect, ordinary = judged(before, after[:, : look.after], family)
        verdict = settled([Gauge(effect=effect, tolerance=TOLERANCE)], ordinary, look.share, ALPHA, family)
        ((seen,),) = strict_verdicts(watched, after[None, None], [look])
        if verdict is not None and VERDICTS[seen] == verdict:
            taken, reached, asked = looks[: at + 1], verdict, look.after + HELD_OUT
            break
    own = after[:, :asked]
    corrected: Corrected
    (corrected,) = corrected_means(watched_of(before, own), taken, reached, [Arms(before=before, after=own)])
    low, high = corrected.ci95
    return Asked(
        verdict=judged(before, own, family)[1],
        replicates=asked,
        mean=float(own.mean()) - truth,
        corrected=corrected.mean - truth,
        full=float(after.mean()) - truth,
        held=low - 1e-12 <= truth <= high + 1e-12,
    )


def rows(setting: Setting, family: int, runs: int, rng: np.random.Generator) -> list[Row]:
    """Both ways of asking, many times: the row of the verdicts, and that of the means."""
    randomisation.DRAWS = 1_000
    full: Counter[str] = Counter()
    adaptive: list[Asked] = []
    for _ in range(runs):
        before, after, _, truth = scored(setting, rng)
        full[judged(before, after, family)[1]] += 1
        adaptive.append(by_the_rule(before, after, truth, family))
    return [_verdicts(setting, family, adaptive, full), _means(setting, adaptive)]


def _verdicts(setting: Setting, family: int, adaptive: Sequence[Asked], full: Counter[str]) -> Row:
    said, runs = Counter(one.verdict for one in adaptive), len(adaptive)
    wrong = ("unchanged", "improved") if setting.drop == TOLERANCE else ("regressed", "improved")
    right = ("regressed",) if setting.drop else ("unchanged",)
    judged_wrong = setting.drop <= TOLERANCE
    mistakes = [sum(counts[one] for one in wrong) for counts in (said, full)] if judged_wrong else []
    decided = [sum(counts[one] for one in right) for counts in (said, full)]
    asked = sum(one.replicates for one in adaptive)
    return [
        *(setting.shape, setting.size, str(setting.drop), str(family)),
        *([share(count, runs) for count in mistakes] or ["–", "–"]),
        above(mistakes[0], runs, ALPHA) if mistakes else "",
        *(share(count, runs) for count in decided),
        share(runs * setting.replicates - asked, runs * setting.replicates),
    ]


def _means(setting: Setting, adaptive: Sequence[Asked]) -> Row:
    stopped = [one for one in adaptive if one.replicates < setting.replicates]
    cells = [setting.shape, setting.size, str(setting.drop), share(len(stopped), len(adaptive))]
    for part in (stopped, adaptive):
        if len(part) < 20:
            cells += ["–", "–", "–"]
            continue
        # over all runs the full mean is right on average, so that its chance can be taken off
        chance = np.array([0.0 if part is stopped else one.full for one in part])
        corrected = np.array([one.corrected for one in part]) - chance
        plain = np.array([one.mean for one in part]) - chance
        error = corrected.std(ddof=1) / np.sqrt(len(part))
        cells += [f"{plain.mean():+.4f}", f"{corrected.mean():+.4f}", f"{error:.4f}"]
    held = share(sum(one.held for one in stopped), len(stopped)) if stopped else "–"
    spreads = [np.std([one.mean for one in adaptive]), np.std([one.corrected for one in adaptive])]
    return [*cells, held, *(f"{spread:.4f}" for spread in spreads)]


def jobs(quick: bool) -> Iterator[Job]:
    """Nothing changed, the truth fell by what is tolerated, by twice that, and by much."""
    runs = 100 if quick else 1000
    for drop in DROPS:
        for shape in SHAPES:
            for cases, replicates in SIZES:
                setting = Setting(shape=shape, cases=cases, replicates=replicates, accuracy=0.9, drop=drop)
                yield partial(rows, setting, 1, runs)
        of_many = Setting(shape="0/1", cases=12, replicates=10, accuracy=0.9, drop=drop)
        yield partial(rows, of_many, 40, runs)


def main(quick: bool) -> None:
    """Print both tables."""
    with Pool(2) as pool:
        tables = list(zip(*pool.imap(run, enumerate(jobs(quick), start=9000)), strict=True))
    for columns, table in zip(COLUMNS.values(), tables, strict=True):
        print(f"\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
        for cells in table:
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs")
    main(parser.parse_args().quick)
