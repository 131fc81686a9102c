"""How far verdicts can be trusted, by simulation: `python benchmarks/verdicts.py [--quick] [--only WORD]`.

Records of known truth (`worlds`) go through the whole comparison. Each row is a rate in per cent with its standard
error, beside what is promised of it: false verdicts in at most so many, a true drop seen in at least so many. A promise
is missed where the rate is beyond it by more than two standard errors. Two processes, seeded; `--quick` makes a tenth
of the trials, prints only what is missed, and then exits with 1.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.comparison import compare_records
from skill_evaluator.verdicts.decide.results import ComparisonResult
from worlds import Floats, World, another_run, probabilities, record_of, rules_of, shifted, two_runs

TRIALS = 400
Draw = Callable[[np.random.Generator], bool | tuple[bool, ...] | None]
"""One trial: whether it happened (of several things at once: each), or None where the world drawn says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A rate, or several at once (`rates`), and what is promised of each: at `most`, at `least`, or nothing."""

    table: str
    name: str
    size: str
    draw: Draw
    most: float | None = None
    least: float | None = None
    trials: int = TRIALS
    rates: tuple[str, ...] = ("rate",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A comparison to make: the world, its models (the first of them is changed), and how they are judged."""

    world: World
    models: int = 1
    change: Callable[[Floats], Floats] | None = None
    gate: str = "these"
    look: int = 0
    start: Callable[[Floats], Floats] = field(default=lambda p: p)

    def pairs(self, rng: np.random.Generator) -> list[Pair]:
        """Return the records of all models."""
        return [self._pair(f"m{at}", self.change if at == 0 else None, rng) for at in range(self.models)]

    def _pair(self, model: str, change: Callable[[Floats], Floats] | None, rng: np.random.Generator) -> Pair:
        world = self.world
        p = self.start(probabilities(world, rng))
        before, after = two_runs(world, p, p if change is None else change(p), rng)
        baseline = record_of(world, before, "1.0.0", 5, model)
        candidate = record_of(world, after, "1.1.0", 6, model, beside=baseline.run_id if world.beside else None)
        anchor = baseline if self.look else None
        return Pair(baseline=baseline, candidate=candidate, anchor=anchor, look=max(1, self.look))

    def compared(self, rng: np.random.Generator) -> ComparisonResult:
        """Return the verdict on one draw of the world."""
        return compare_records("s", self.pairs(rng), rules_of(self.gate, self.world.primary))


def ends(trial: Trial, *verdicts: str) -> Draw:
    """Return whether the first model ends with one of the verdicts."""
    return lambda rng: trial.compared(rng).models[0].verdict in verdicts


def alarms(trial: Trial) -> Draw:
    """Return whether the component regressed, and whether a model improved."""

    def draw(rng: np.random.Generator) -> tuple[bool, bool]:
        result = trial.compared(rng)
        return result.verdict == "regressed", any(model.verdict == "improved" for model in result.models)

    return draw


def null_worlds(cases: int, replicates: int) -> Iterator[tuple[str, Trial]]:
    """Yield every world in which nothing was made worse, at a size."""
    beside = World(cases=cases, replicates=replicates, beside=True, baseline=-(-replicates // 2), kind="flaky")
    recorded = World(cases=cases, replicates=replicates, kind="flaky")
    yield "independent", Trial(world=beside)
    yield "independent, known to be sampled", Trial(world=replace(beside, sampled=True))
    yield "share 60 %", Trial(world=replace(beside, share=0.6))
    yield "share 90 %", Trial(world=replace(beside, share=0.9))
    yield "a day of sd 0.1, recorded", Trial(world=replace(recorded, day=0.1))
    yield "a day of sd 0.3, beside", Trial(world=replace(beside, day=0.3))
    yield "heavy tails", Trial(world=replace(beside, kind="heavy"))
    yield "a broken case", Trial(world=replace(beside, kind="broken"))
    yield "85 % right, 15 % wrong, always", Trial(world=replace(beside, kind="fixed"))
    yield "60 % of fields always right", Trial(world=replace(beside, kind="plain", share=0.6))


def false_rows() -> Iterator[Row]:
    """Nothing was made worse: how often is something said to be?"""

    def row(name: str, trial: Trial, most: float | None = 5) -> Row:
        return _row("Nothing changed", name, trial, alarms(trial), most=most, rates=("regressed", "improved"))

    for cases in (3, 5, 8, 12, 20, 40):
        for replicates in (1, 2, 5, 10):
            for name, trial in null_worlds(cases, replicates):
                yield row(name, trial)
    for cases, replicates in ((3, 1), (3, 10), (5, 5), (12, 2), (12, 10), (20, 5)):
        world = World(cases=cases, replicates=replicates, beside=True, baseline=-(-replicates // 2), kind="flaky")
        for share in (0.0, 0.6, 0.9):
            yield row(f"8 models, share {share:.0%}", Trial(world=replace(world, share=share), models=8))
    for cases, replicates in ((12, 5), (20, 10), (40, 10)):
        recorded = World(cases=cases, replicates=replicates, kind="flaky")
        for day in (0.2, 0.3):
            yield row(f"a day of sd {day}, recorded", Trial(world=replace(recorded, day=day)), None)
        reworded = replace(recorded, beside=True, share=0.95, reworded=0.5)
        yield row("half of the fields reworded", Trial(world=reworded), None)


def tried_rows() -> Iterator[Row]:
    """`try` asks few replicates, and the recorded baseline has ten."""
    for fields in (1, 10):
        for cases in (3, 6, 12, 30):
            for replicates in (1, 2, 3):
                world = World(cases=cases, replicates=replicates, baseline=10, fields=fields, kind="flaky")
                trial = Trial(world=world)
                name = f"nothing changed, fields: {fields}: improved"
                yield _row("A try", name, trial, ends(trial, "improved"), most=5)
            trial = Trial(world=world, change=partial(shifted, drop=0.2))
            yield _row("A try", f"−0.2, fields: {fields}: regressed", trial, ends(trial, "regressed"))


def tolerated_rows() -> Iterator[Row]:
    """The truth fell by the tolerance: how often is that called unchanged or improved?"""
    for cases in (3, 5, 8, 12, 20, 40):
        for replicates in (1, 2, 5, 10):
            world = World(cases=cases, replicates=replicates, beside=True, baseline=-(-replicates // 2), kind="flaky")
            for share in (0.0, 0.6, 0.9):
                trial = Trial(world=replace(world, share=share), change=partial(shifted, drop=0.05))
                draw = ends(trial, "unchanged", "improved")
                yield _row("A true drop of the tolerance, called unchanged", f"share {share:.0%}", trial, draw, most=5)


def decided_rows() -> Iterator[Row]:
    """The flaky world: how often is a verdict reached?"""
    beside = World(cases=20, replicates=5, beside=True, kind="flaky")
    whole = replace(beside, replicates=10, baseline=5)
    recorded = World(cases=20, replicates=10, kind="flaky")
    wanted: list[tuple[str, World, float, float, float]] = [
        ("beside, independent", beside, 60, 60, 97),
        ("beside, N and half of N", whole, 68, 68, 98),
        ("recorded", recorded, 55, 45, 96),
        ("recorded, a day of sd 0.1", replace(recorded, day=0.1), 0, 0, 0),
        ("beside, the first look at an anchor", beside, 0, 0, 0),
    ]
    for name, world, unchanged, smaller, larger in wanted:
        look = 1 if "look" in name else 0
        for change, verdict, least in (
            (0.0, "unchanged", unchanged),
            (0.05, "regressed", smaller),
            (0.1, "regressed", larger),
        ):
            trial = Trial(world=world, change=partial(shifted, drop=change) if change else None, look=look)
            words = f"{name}: −{change:g}" if change else f"{name}: nothing changed"
            yield _row(
                "Decided, the flaky world", f"{words}, {verdict}", trial, ends(trial, verdict), least=least or None
            )
    for share, least in ((0.6, 58.0), (0.9, 45.0)):
        trial = Trial(world=replace(beside, share=share), change=partial(shifted, drop=0.1))
        yield _row(
            "Decided, the flaky world", f"beside, share {share:.0%}: −0.1", trial, ends(trial, "regressed"), least=least
        )
    eight = Trial(
        world=World(cases=12, replicates=5, beside=True, kind="flaky", sampled=True),
        models=8,
        change=partial(shifted, drop=0.1),
    )
    yield _row("Decided, the flaky world", "one of 8 models, sampled: −0.1", eight, ends(eight, "regressed"), least=50)
    for cases, replicates in ((8, 5), (12, 5), (20, 2), (20, 10), (40, 5), (40, 10)):
        for change in (0.0, 0.05, 0.1):
            world = replace(beside, cases=cases, replicates=replicates, baseline=-(-replicates // 2))
            trial = Trial(world=world, change=partial(shifted, drop=change) if change else None)
            verdict = "regressed" if change else "unchanged"
            yield _row("Decided, the flaky world", f"beside: −{change:g}, {verdict}", trial, ends(trial, verdict))


def few_rows() -> Iterator[Row]:
    """One of ten fields, right in 29 or 30 of 30 answers, is right in none."""
    for models in (1, 2):
        for cases in (2, 3, 4, 5):
            if cases == 2 and models > 1:
                continue
            world = World(cases=cases, replicates=10, kind="flaky", beside=True, baseline=5)
            draw = partial(_lost_field, world, models)
            trial = Trial(world=world, models=models)
            yield _row("Few documents: a field is lost, regressed", f"models: {models}", trial, draw, least=95)
            recorded = replace(world, beside=False, baseline=None)
            draw = partial(_lost_field, recorded, models)
            yield _row(
                "Few documents: a field is lost, regressed",
                f"recorded, models: {models}",
                replace(trial, world=recorded),
                draw,
                least=95,
            )


def _lost_field(world: World, models: int, rng: np.random.Generator) -> bool:
    pairs = []
    for model in range(models):
        p = probabilities(world, rng)
        p[:, 0] = 0.985
        after = p.copy()
        after[:, 0] = 0.0 if model == 0 else p[:, 0]
        old, new = two_runs(world, p, after, rng)
        flat = old[:, :, 0].reshape(-1)
        if model == 0:  # 29 or 30 of 30
            flat[:] = True
            flat[int(rng.integers(len(flat)))] = bool(rng.integers(2))
            old[:, :, 0] = flat.reshape(old.shape[:2])
        before = record_of(world, old, "1.0.0", 5, f"m{model}")
        beside = before.run_id if world.beside else None
        pairs.append(Pair(baseline=before, candidate=record_of(world, new, "1.1.0", 6, f"m{model}", beside=beside)))
    return compare_records("s", pairs, rules_of(primary=world.primary)).verdict == "regressed"


def single_rows() -> Iterator[Row]:
    """Tables of another tool: one answer a case, right or wrong."""
    for cases, drop, verdict, least in (
        (200, 0.15, "regressed", 85),
        (1000, 0.15, "regressed", 99),
        (1000, 0.0, "unchanged", 60),
        (200, 0.0, "unchanged", None),
    ):
        world = World(cases=cases, replicates=1, fields=1, kind="flaky", beside=True)
        trial = Trial(world=world, change=partial(shifted, drop=drop) if drop else None)
        words = f"−{drop:g}" if drop else "nothing changed"
        yield _row(
            "Without replicates",
            f"{words}, {verdict}",
            trial,
            ends(trial, verdict),
            least=least,
            trials=200 if cases > 500 else TRIALS,
        )


def anchor_rows() -> Iterator[Row]:
    """Many versions are held against one anchor."""
    for beside, least in ((True, 95), (False, 80)):
        world = World(cases=20, replicates=5, kind="flaky", beside=beside)
        for look in (1, 2, 5, 10, 20):
            trial = Trial(world=world, change=partial(shifted, drop=0.15), look=look)
            name = f"{'beside' if beside else 'recorded'}, look {look}"
            yield _row("Anchor: −0.15, regressed", name, trial, ends(trial, "regressed"), least=least)
    world = World(cases=20, replicates=5, kind="flaky")
    trial = Trial(world=world)
    yield _row(
        "Anchor: creep of −0.02 a version, stopped",
        "within 8 versions",
        trial,
        partial(_creeps, world, 0.02, 8),
        least=80,
        trials=200,
    )
    yield _row(
        "Anchor: nothing changed, ever regressed", "15 versions", trial, partial(_creeps, world, 0.0, 15), most=5
    )
    yield _row(
        "Anchor: nothing changed, ever regressed",
        "100 versions",
        trial,
        partial(_creeps, world, 0.0, 100),
        most=5,
        trials=200,
    )
    apart = replace(world, beside=True)
    yield _row(
        "Anchor: nothing changed, ever regressed",
        "15 versions, asked anew",
        trial,
        partial(_creeps, apart, 0.0, 15),
        most=5,
    )
    yield _row(
        "Anchor: three tries at −0.07, passed beyond 1.2 × of one", "three tries", trial, partial(_tries, world, 3)
    )
    yield _row("Anchor: three tries at −0.07, passed beyond 1.2 × of one", "one try", trial, partial(_tries, world, 1))


def _creeps(world: World, step: float, versions: int, rng: np.random.Generator) -> bool:
    p = probabilities(world, rng)
    anchor = record_of(world, another_run(world, p, rng), "1.0.0")
    for look in range(1, versions + 1):
        after = shifted(p, step * look) if step else p
        if world.beside:
            before, answers = two_runs(world, p, after, rng)
            anchor = record_of(world, before, "1.0.0", look)
        else:
            answers = another_run(world, after, rng)
        beside = anchor.run_id if world.beside else None
        candidate = record_of(world, answers, f"1.{look}.0", look, beside=beside)
        pair = Pair(baseline=anchor, candidate=candidate, anchor=anchor, look=look)
        if compare_records("s", [pair], rules_of()).verdict == "regressed":
            return True
    return False


def _tries(world: World, attempts: int, rng: np.random.Generator) -> bool:
    """Return whether a version that fell by 0.07 passes in any of its tries."""
    p = probabilities(world, rng)
    lower, anchor = shifted(p, 0.07), record_of(world, another_run(world, p, rng), "1.0.0")
    candidates: list[Record] = []
    for look in range(1, attempts + 1):
        candidates.append(record_of(world, another_run(world, lower, rng), "1.1.0", look))
        again = tuple(candidates[:-1])
        pair = Pair(baseline=anchor, candidate=candidates[-1], candidate_again=again, anchor=anchor, look=look)
        if compare_records("s", [pair], rules_of()).verdict != "regressed":
            return True
    return False


def flawless_rows() -> Iterator[Row]:
    """All is right, or all but one field value; and one document in ten breaks while 2 % of answers flicker."""
    for cases in (6, 10, 20):
        for wrong in ("none", "before", "after"):
            world = World(cases=cases, replicates=10, kind="right", beside=True, baseline=5)
            trial = Trial(world=world)
            draw = partial(_flawless, world, wrong)
            yield _row("Flawless: unchanged", f"one value wrong: {wrong}", trial, draw, least=99, trials=40)
    for cases in (6, 10, 12, 20, 29):
        world = World(cases=cases, replicates=10, kind="right", beside=True, baseline=5)
        for table, what, most, least in (
            ("One document in ten breaks: unchanged or improved", "passed", 5, None),
            ("One document in ten breaks: named", "named", None, 95),
        ):
            yield _row(
                table,
                "where a broken one is among them",
                Trial(world=world),
                partial(_breaks, world, what),
                most=most,
                least=least,
            )


def _flawless(world: World, wrong: str, rng: np.random.Generator) -> bool:
    p = probabilities(world, rng)
    answers = dict(zip(("before", "after"), two_runs(world, p, p, rng), strict=True))
    if wrong in answers:
        answers[wrong][0, 0, 0] = False
    before = record_of(world, answers["before"], "1.0.0", 5)
    after = record_of(world, answers["after"], "1.1.0", 6, beside=before.run_id)
    return compare_records("s", [Pair(baseline=before, candidate=after)], rules_of()).verdict == "unchanged"


def _breaks(world: World, what: str, rng: np.random.Generator) -> bool | None:
    broken = rng.random(world.cases) < 0.1
    if not broken.any():
        return None
    p = probabilities(world, rng)
    old, new = two_runs(world, p, p, rng)
    for answers in (old, new):
        flickers = rng.random(answers.shape[:2]) < 0.02
        answers[flickers, rng.integers(world.fields)] = False
    new[broken] = False
    before = record_of(world, old, "1.0.0", 5)
    after = record_of(world, new, "1.1.0", 6, beside=before.run_id)
    (model,) = compare_records("s", [Pair(baseline=before, candidate=after)], rules_of()).models
    if what == "passed":
        return model.verdict in ("unchanged", "improved")
    return {f"c{at:03}" for at in np.flatnonzero(broken)} <= {case.case_id for case in model.cases.broke}


def checked_rows() -> Iterator[Row]:
    """Checks are fields of 0 and 1: alone, and beside values of the truth."""
    for held, checks in (("checks alone", 10), ("6 values, 4 checks", 4)):
        for cases, replicates in ((3, 10), (12, 5), (20, 5)):
            for name, trial in null_worlds(cases, replicates):
                trial = replace(trial, world=replace(trial.world, checks=checks))
                rates = ("regressed", "improved")
                yield _row("Checks: nothing changed", f"{held}: {name}", trial, alarms(trial), most=5, rates=rates)
        for cases in (2, 3, 5, 20):
            world = World(cases=cases, replicates=10, kind="flaky", beside=True, baseline=5, checks=checks)
            draw = partial(_lost_field, world, 1)
            yield _row("Checks: one is lost, regressed", held, Trial(world=world), draw, least=95)
        world = World(cases=20, replicates=5, beside=True, kind="flaky", checks=checks)
        trial = Trial(world=world, change=partial(shifted, drop=0.1))
        yield _row("Checks: −0.1, regressed", held, trial, ends(trial, "regressed"), least=90)


def _row(table: str, name: str, trial: Trial, draw: Draw, **promised: Any) -> Row:
    return Row(table=table, name=name, size=trial.world.size, draw=draw, **promised)


TABLES = (
    false_rows,
    tolerated_rows,
    decided_rows,
    few_rows,
    single_rows,
    anchor_rows,
    flawless_rows,
    checked_rows,
    tried_rows,
)


def measure(numbered: tuple[int, int]) -> tuple[list[int], int]:
    """Return how often each thing of a row happened, and the trials that say something of it."""
    number, parts = numbered
    row, rng = ROWS[number], np.random.default_rng([20_261, number])
    drawn = [happened for _ in range(max(20, row.trials // parts)) if (happened := row.draw(rng)) is not None]
    return np.atleast_2d(np.array(drawn).T).sum(axis=1).tolist(), len(drawn)


def cells(row: Row, counts: Sequence[int], of: int) -> tuple[list[str], int]:
    """Return a line of a table, and how many promises are missed."""
    written, missed = [], 0
    for count in counts:
        share = count / max(1, of)
        error = float(np.sqrt(share * (1 - share) / max(1, of)))
        beyond = (row.most is not None and 100 * (share - 2 * error) > row.most) or (
            row.least is not None and 100 * (share + 2 * error) < row.least
        )
        missed += beyond
        written.append(f"{100 * share:.1f} ± {100 * error:.1f}" + " **missed**" * beyond)
    promised = f"≤ {row.most:g}" if row.most is not None else f"≥ {row.least:g}" if row.least is not None else "–"
    return [row.name, row.size, *written, promised, str(of)], missed


ROWS = [row for rows in TABLES for row in rows()]


def main() -> int:
    """Print every table, or with --quick what is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the trials; prints what is missed")
    parser.add_argument("--only", default="", help="the rows whose table or name holds this word")
    options = parser.parse_args()
    begun, missed, table = time.perf_counter(), 0, ""
    numbers = [at for at, row in enumerate(ROWS) if options.only.lower() in f"{row.table}: {row.name}".lower()]
    with Pool(2) as pool:
        counted = pool.imap(measure, ((at, 10 if options.quick else 1) for at in numbers), chunksize=1)
        for at, (counts, of) in zip(numbers, counted, strict=True):
            row = ROWS[at]
            line, beyond = cells(row, counts, of)
            missed += beyond
            if options.quick and not beyond:
                continue
            if row.table != table:
                table, columns = row.table, ("world", "cases × replicates", *row.rates, "promised", "trials")
                print(f"\n### {table}, %\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
            print(f"| {' | '.join(line)} |", flush=True)
    print(f"\n{len(numbers)} rows, {missed} missed, {time.perf_counter() - begun:.0f} s", file=sys.stderr)
    return 1 if options.quick and missed else 0


if __name__ == "__main__":
    sys.exit(main())
