"""How far verdicts can be trusted, by simulation: `python benchmarks/verdicts.py [--quick]`; tables in Markdown.

False alarms, drops wrongly called unchanged, power beside the drop printed as detectable, and how often 95 % intervals
hold the truth. Two processes, seeded. Permutations are drawn 2,000 times (10,000 for large families) instead of 20,000,
which costs some power and no validity.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from multiprocessing import Pool
from pathlib import Path

import numpy as np
from scipy.stats import binom

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
import premises
from populations import SHAPES, Floats, Setting, beyond, cases_of, on_fixtures
from skill_evaluator.stats import unit_interval
from skill_evaluator.verdicts import randomisation
from skill_evaluator.verdicts.effects import ALPHA, Effect, adjusted, case_effects, replicate_effect
from skill_evaluator.verdicts.rules import measure_verdict

TOLERANCE = 0.05
SIZES = ((5, 3), (12, 10), (50, 5), (200, 3))
N_CASES = (5, 10, 20, 50, 200)
ACCURACIES = (0.02, 0.1, 0.5, 0.9, 0.98)
QUESTIONS = ("fixtures", "beyond")
Row = list[str]


def effect_of(setting: Setting, question: str, rng: np.random.Generator) -> tuple[Effect | None, float]:
    """One simulated comparison: its effect and the true difference."""
    if question == "fixtures":
        before, after, truth = on_fixtures(setting, rng)
        return replicate_effect(before.tolist(), after.tolist(), seed=int(rng.integers(2**31))), truth
    differences, truth = beyond(setting, rng)
    return case_effects([differences.tolist()], seed=int(rng.integers(2**31)))[0], truth


def false_alarms(question: str, setting: Setting, family: int, runs: int, rng: np.random.Generator) -> Row:
    """Nothing changed in any measure: how often is something beyond chance, or said to have regressed?"""
    beyond_chance = regressed = 0
    draw_for(family)
    for _ in range(runs):
        effects = [effect for _ in range(family) if (effect := effect_of(setting, question, rng)[0])]
        q_values = adjusted([effect.p for effect in effects])
        said = [
            measure_verdict(one, q, TOLERANCE, ALPHA, covered=True) for one, q in zip(effects, q_values, strict=True)
        ]
        beyond_chance += min(q_values, default=1.0) <= ALPHA
        regressed += "regressed" in said
    cells = [question, setting.shape, setting.size, str(setting.accuracy), str(family)]
    return [*cells, share(beyond_chance, runs), share(regressed, runs), above(beyond_chance, runs, ALPHA)]


def unchanged(question: str, setting: Setting, runs: int, rng: np.random.Generator) -> Row:
    """The truth fell by exactly what is tolerated: how often is it called unchanged, or improved?"""
    wrongly = 0
    for _ in range(runs):
        effect, _ = effect_of(setting, question, rng)
        said = measure_verdict(effect, None if effect is None else effect.p, TOLERANCE, ALPHA, covered=True)
        wrongly += said in ("unchanged", "improved")
    cells = [question, setting.shape, setting.size, str(setting.accuracy)]
    return [*cells, share(wrongly, runs), above(wrongly, runs, ALPHA)]


def power(question: str, setting: Setting, family: int, runs: int, rng: np.random.Generator) -> Row:
    """The drop that is found in 80 of 100 runs, beside the one that is printed; the rest of the family is null."""
    level = ALPHA / family
    draw_for(family)
    printed_null = [effect_of(setting, question, rng)[0] for _ in range(60)]
    known = [one.detectable(level) for one in printed_null if one is not None]
    guess = float(np.median([drop for drop in known if drop is not None] or [np.nan]))
    cells = [question, setting.shape, setting.size, str(setting.accuracy), str(family)]
    if np.isnan(guess):
        return [*cells, "none", "none", "–", ""]
    drops = [guess * factor for factor in (0.5, 0.8, 1.0, 1.25, 1.6, 2.4) if guess * factor < setting.accuracy * 0.95]
    found, printed = [], []
    for drop in drops:
        seen, said = 0, []
        for _ in range(runs):
            effect, _ = effect_of(replace(setting, drop=drop), question, rng)
            if effect is None:
                continue
            q = adjusted([effect.p, *rng.random(family - 1)])[0]
            seen += q <= ALPHA and effect.difference < 0
            said.append(effect.detectable(level) or 1.0)
        found.append(seen / runs)
        printed.append(float(np.median(said)))
    curve = " ".join(f"{drop:.3f}: {rate:.2f}" for drop, rate in zip(drops, found, strict=True))
    if max(found) < 0.8 or min(found) > 0.8:
        return [*cells, f"{guess:.3f}", "off the curve", "–", curve]
    simulated = float(np.interp(0.8, np.maximum.accumulate(found), drops))
    there = float(np.interp(simulated, drops, printed))
    return [*cells, f"{there:.3f}", f"{simulated:.3f}", f"{there / simulated:.2f}", curve]


def coverage_of_effects(question: str, shape: str, cases: int, runs: int, rng: np.random.Generator) -> Row:
    """How often the interval of a difference holds the truth, from the lowest to the highest accuracy."""
    randomisation.DRAWS = 1  # only intervals are looked at
    cells = []
    for accuracy in ACCURACIES:
        setting = Setting(
            shape=shape, cases=cases, replicates=5, accuracy=accuracy, drop=TOLERANCE if accuracy > 0.2 else 0.0
        )
        held = 0
        for _ in range(runs):
            effect, truth = effect_of(setting, question, rng)
            held += effect is not None and effect.ci95[0] - 1e-12 <= truth <= effect.ci95[1] + 1e-12
        cells.append(held / runs)
    return [question, shape, str(cases), *map(percent, cells)]


def coverage_of_means(shape: str, cases: int, runs: int, rng: np.random.Generator) -> Row:
    """How often a record's ci95 holds the true mean over cases; of 0 and 1 exactly, from every outcome there is."""
    if shape == "0/1, one replicate":
        bounds = np.array([unit_interval([1.0] * ones + [0.0] * (cases - ones)) for ones in range(cases + 1)])
        held = [
            binom.pmf(np.arange(cases + 1), cases, a)[(bounds[:, 0] <= a) & (a <= bounds[:, 1])].sum()
            for a in ACCURACIES
        ]
        return ["mean", shape, str(cases), *map(percent, held)]
    cells = []
    for accuracy in ACCURACIES:
        truth = accuracy * (0.99 if shape == "rare failures" else 1.0)
        held = 0
        for _ in range(runs):
            values: Floats = SHAPES[shape](cases_of(accuracy, cases, rng), 5, rng).mean(axis=1)
            low, high = unit_interval(values.tolist()) or (0.0, 1.0)
            held += low - 1e-12 <= truth <= high + 1e-12
        cells.append(held / runs)
    return ["mean", shape, str(cases), *map(percent, cells)]


def draw_for(family: int) -> None:
    """Enough permutations for a p-value that is still small times the size of the family."""
    randomisation.DRAWS = 2_000 if family < 40 else 10_000


def share(count: int, runs: int) -> str:
    """Per cent with one decimal."""
    return f"{100 * count / runs:.1f}"


def percent(value: float) -> str:
    """Per cent; marked where it is outside of 93 to 97."""
    mark = " ↓" if value < 0.93 else " ↑" if value > 0.97 else ""
    return f"{100 * value:.1f}{mark}"


def above(count: int, runs: int, nominal: float) -> str:
    """Whether a count is more than chance makes of the nominal rate (99.9 %)."""
    return "MISSED" if binom.sf(count - 1, runs, nominal) < 0.001 else "kept"


Job = Callable[[np.random.Generator], Row]


def alarm_jobs(quick: bool) -> Iterator[Job]:
    """Every question, shape and size with one measure; then families."""
    runs = 200 if quick else 2000
    for question in QUESTIONS:
        for shape in SHAPES:
            for cases, replicates in SIZES[1:2] if quick else SIZES:
                for accuracy in (0.9,) if shape != "0/1" else (0.5, 0.9, 0.98):
                    setting = Setting(shape=shape, cases=cases, replicates=replicates, accuracy=accuracy)
                    yield partial(false_alarms, question, setting, 1, runs)
        for shape in ("0/1", "leaves"):
            for family in (20,) if quick else (20, 6, 120):
                setting = Setting(shape=shape, cases=12, replicates=10, accuracy=0.9)
                yield partial(false_alarms, question, setting, family, 20 if quick else 1000 if family < 50 else 200)


def unchanged_jobs(quick: bool) -> Iterator[Job]:
    """Every question, shape and size at the tolerated drop."""
    for question in QUESTIONS:
        for shape in (*SHAPES, "breaking cases") if question == "beyond" else SHAPES:
            for cases, replicates in SIZES[1:2] if quick else SIZES:
                for accuracy in (0.5, 0.9, 0.98) if shape in ("0/1", "rare failures") else (0.9,):
                    setting = Setting(
                        shape=shape, cases=cases, replicates=replicates, accuracy=accuracy, drop=TOLERANCE
                    )
                    yield partial(unchanged, question, setting, 300 if quick else 2000)


def power_jobs(quick: bool) -> Iterator[Job]:
    """Where a drop can be seen at all."""
    for question in QUESTIONS:
        for shape in ("0/1", "leaves", "continuous"):
            for cases, replicates in SIZES[1:2] if quick else SIZES:
                for family in (1,) if quick else (1, 20):
                    setting = Setting(shape=shape, cases=cases, replicates=replicates, accuracy=0.8)
                    yield partial(power, question, setting, family, 100 if quick else 400)


def coverage_jobs(quick: bool) -> Iterator[Job]:
    """Intervals of a record's means and of both differences."""
    runs = 200 if quick else 1500
    sizes = (10,) if quick else N_CASES
    for cases in sizes:
        for shape in ("0/1, one replicate", "0/1", "leaves", "continuous", "rare failures"):
            yield partial(coverage_of_means, shape, cases, runs)
    for question in QUESTIONS:
        for cases in sizes:
            for shape in ("0/1", "leaves", "continuous", "rare failures"):
                yield partial(coverage_of_effects, question, shape, cases, runs)


PARTS: dict[str, tuple[Callable[[bool], Iterator[Job]], Sequence[str]]] = {
    "False alarms, %: nothing changed": (
        alarm_jobs,
        ("question", "scores", "cases × replicates", "accuracy", "family", "beyond chance", "regressed", "≤ 5"),
    ),
    "Unchanged, %: the truth fell by the tolerated 0.05": (
        unchanged_jobs,
        ("question", "scores", "cases × replicates", "accuracy", "wrongly unchanged", "≤ 5"),
    ),
    "The drop seen with 80 % power": (
        power_jobs,
        ("question", "scores", "cases × replicates", "accuracy", "family", "printed", "simulated", "ratio", "power"),
    ),
    "Coverage of 95 % intervals, %": (coverage_jobs, ("interval of", "scores", "cases", *map(str, ACCURACIES))),
    **premises.PARTS,
}


def run(numbered: tuple[int, Job]) -> Row:
    """One job with a generator of its own."""
    number, job = numbered
    draw_for(1)
    return job(np.random.default_rng([20_260, number]))


def main(quick: bool, only: str) -> None:
    """Print every table."""
    begun = time.perf_counter()
    for part, (title, (jobs, columns)) in enumerate(PARTS.items()):
        if only.lower() not in title.lower():
            continue
        with Pool(2) as pool:
            rows: Iterable[Row] = pool.imap(run, enumerate(jobs(quick), start=1000 * part))
            print(f"\n## {title}\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)
            for row in rows:
                print(f"| {' | '.join(row)} |", flush=True)
        print(f"\n{time.perf_counter() - begun:.0f} s so far", file=sys.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few runs of few settings, under half a minute")
    parser.add_argument("--only", default="", help="the tables whose title holds this word")
    options = parser.parse_args()
    main(options.quick, options.only)
