"""How far verdicts can be trusted, by simulation: `python benchmarks/verdicts.py [--quick] [--only WORD]`.

Records of known truth (`worlds`) go through the whole comparison. Each row has the rate of every verdict in per cent,
with what is promised of it. A promise is missed if the rate is beyond it by more than two standard errors. Each row is
seeded by its name, so that two versions of the engine can be compared draw by draw (`--out`). `--quick` makes a tenth
of the trials, prints only the rows that miss a promise, and then exits with 1.
"""

import argparse
import json
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.comparison import compare_records
from worlds import Answers, Floats, Limit, World, another_run, probabilities, record_of, rules_of, shifted, two_runs

TRIALS = 500
FALSE = {"regressed": Limit(most=6.5), "improved": Limit(most=6.5)}
VERDICTS = ("regressed", "improved", "unchanged", "inconclusive")
Change = Callable[[Floats], Floats]
Edit = Callable[[Answers, Answers, np.random.Generator], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One world, its models, of which the first is changed, and what is promised of a verdict.

    `change` lowers the probabilities of the candidate, and `edit` changes the outputs of both versions. `accepted`: the
    baseline is the accepted version; `creep` is the drop of the baseline since the accepted version.
    """

    table: str
    name: str
    world: World
    change: Change | None = None
    edit: Edit | None = None
    models: int = 1
    accepted: bool = False
    creep: float | None = None
    promised: Mapping[str, Limit] = field(default_factory=dict)
    trials: int = TRIALS

    @property
    def key(self) -> str:
        """The name that seeds the row."""
        return f"{self.table}: {self.name}, {self.world.size}"

    def verdict(self, rng: np.random.Generator) -> str:
        """Return the verdict on one draw of the world."""
        pairs = [self._pair(f"m{at}", rng, is_changed=at == 0) for at in range(self.models)]
        return compare_records(pairs, rules_of(self.world.primary)).verdict

    def _pair(self, model: str, rng: np.random.Generator, *, is_changed: bool) -> Pair:
        world = self.world
        p = probabilities(world, rng)
        accepted = None
        if self.creep is not None:
            accepted = record_of(world, another_run(world, p, rng), "0.9.0", 4, model)
            p = shifted(p, self.creep) if self.creep else p
        before, after = two_runs(world, p, self.change(p) if self.change and is_changed else p, rng)
        if self.edit is not None and is_changed:
            self.edit(before, after, rng)
        baseline = record_of(world, before, "1.0.0", 5, model)
        candidate = record_of(world, after, "1.1.0", 6, model, beside=baseline.run_id if world.beside else None)
        return Pair(baseline=baseline, candidate=candidate, anchor=baseline if self.accepted else accepted)


def beside(cases: int, candidate: int, baseline: int) -> World:
    """Return the flaky world with the baseline interleaved."""
    return World(cases=cases, replicates=candidate, baseline=baseline, beside=True, kind="flaky")


def drop_of(size: float) -> Change | None:
    """Return the change that lowers the mean, or None for 0."""
    return partial(shifted, drop=size) if size else None


def design_rows() -> Iterator[Row]:
    """The usual designs: nothing changed, and drops of the mean."""
    for cases in (3, 5, 12, 20, 40):
        for candidate, baseline in ((10, 5), (5, 5)):
            yield from _drops("Interleaved", beside(cases, candidate, baseline))
        for replicates in (10, 5):
            yield from _drops("Recorded", World(cases=cases, replicates=replicates, kind="flaky"))


def _drops(table: str, world: World) -> Iterator[Row]:
    least = {(3, 0.2): 33.0, (3, 0.4): 71.0} if world.size == "3 × (10 + 5)" else {}
    for drop in (0.0, 0.05, 0.1, 0.2, 0.4)[: None if world.cases == 3 else 4]:
        promised = FALSE if not drop else {}
        if (world.cases, drop) in least:
            promised = {"regressed": Limit(least=least[world.cases, drop])}
        yield Row(
            table=table,
            name=f"−{drop:g}" if drop else "nothing changed",
            world=world,
            change=drop_of(drop),
            promised=promised,
        )


def null_rows() -> Iterator[Row]:
    """Nothing changed, and outputs have more in common than the engine can see."""

    def row(name: str, world: World, *, is_promised: bool = True, models: int = 1) -> Row:
        return Row(
            table="Nothing changed",
            name=name,
            world=world,
            models=models,
            promised=FALSE if is_promised else {},
            trials=TRIALS // 2 if models > 1 else TRIALS,
        )

    for cases, candidate, baseline in ((3, 10, 5), (5, 5, 5), (12, 10, 5), (20, 10, 5)):
        world = beside(cases, candidate, baseline)
        for share in (0.6, 0.9):
            yield row(f"share {share:.0%}", replace(world, share=share))
        yield row("heavy tails", replace(world, kind="heavy"))
        yield row("one output a case", replace(world, replicates=1, baseline=1))
    for share in (0.2, 0.5, 1.0):
        yield row(f"{share:.0%} of fields reworded", replace(beside(12, 10, 5), share=0.95, reworded=share))
    for day in (0.1, 0.2, 0.3):
        world = World(cases=20, replicates=10, kind="flaky", day=day)
        yield row(f"day of sd {day:g}", world, is_promised=day == 0.1)
    yield row("8 models", beside(12, 10, 5), models=8)
    for cases in (1, 3, 5):
        yield row("sampled", replace(beside(cases, 10, 5), sampled=True))
    for cases, replicates in ((3, 1), (6, 2), (12, 3)):
        yield row("few replicates, 10 in the baseline", World(cases=cases, replicates=replicates, baseline=10))
    yield row("binary", replace(beside(20, 5, 5), fields=1))
    yield row("binary", replace(beside(200, 1, 1), fields=1))


def seen_rows() -> Iterator[Row]:
    """What is seen in other worlds."""

    def row(name: str, world: World, drop: float, models: int = 1) -> Row:
        return Row(
            table="Drops", name=f"{name}: −{drop:g}", world=world, change=drop_of(drop), models=models, trials=250
        )

    for share in (0.6, 0.9):
        yield row(f"share {share:.0%}", replace(beside(20, 10, 5), share=share), 0.1)
    for drop in (0.05, 0.1, 0.2):
        yield row("binary", replace(beside(20, 5, 5), fields=1), drop)
        yield row("binary", replace(beside(20, 10, 5), fields=1), drop)
    for drop in (0.1, 0.2):
        yield row("8 models", beside(12, 10, 5), drop, models=8)
    for cases in (3, 5):
        yield row("sampled", replace(beside(cases, 10, 5), sampled=True), 0.1)
    yield row("8 models, sampled", replace(beside(12, 10, 5), sampled=True), 0.1, models=8)
    for drop in (0.0, 0.03, 0.05, 0.1):
        yield replace(row("1,000 cases, binary", replace(beside(1000, 1, 1), fields=1), drop), trials=250)


def accepted_rows() -> Iterator[Row]:
    """The baseline is the accepted version, or has crept away from it."""
    for cases in (12, 20):
        for drop in (0.0, 0.05, 0.1):
            name = f"baseline is accepted: −{drop:g}" if drop else "baseline is accepted: nothing changed"
            promised = FALSE if not drop else {}
            world = beside(cases, 5, 5)
            yield Row(table="Accepted", name=name, world=world, change=drop_of(drop), accepted=True, promised=promised)
    for creep, least in ((0.0, None), (0.1, 60.0)):
        promised = FALSE if not creep else {"regressed": Limit(least=least)}
        for world in (beside(12, 5, 5), beside(20, 10, 5), World(cases=20, replicates=10, kind="flaky")):
            name = f"accepted version is {creep:g} better" if creep else "accepted version, nothing changed"
            yield Row(table="Accepted", name=name, world=world, creep=creep, promised=promised)


def lost_rows() -> Iterator[Row]:
    """A field, a case, or everything is lost."""

    def row(name: str, world: World, edit: Edit, models: int = 1, **promised: Limit) -> Row:
        return Row(table="Lost", name=name, world=world, edit=edit, models=models, promised=promised, trials=250)

    always = Limit(least=99.0)
    for world in (beside(2, 10, 5), beside(3, 10, 5), beside(3, 5, 5), World(cases=3, replicates=10, kind="flaky")):
        yield row("one field right in 29 of 30, then never", world, lose_field, regressed=always)
        if world.cases > 2:
            yield row("the same, 2 models", world, lose_field, 2, regressed=always)
    for share in (0.27, 0.13):
        for cases in (3, 4, 5):
            edit = partial(thin_field, share=share)
            yield row(f"one field always right, then in {share:.0%}", beside(cases, 10, 5), edit)
    for world in (beside(12, 10, 5), beside(20, 5, 5)):
        yield row("one field .95, then .45", world, halve_field, regressed=Limit(least=97.0))
    for cases in (5, 8, 12):
        yield row("one case breaks", beside(cases, 10, 5), break_case)
        broken = row("one case breaks, the rest −0.1", beside(cases, 10, 5), break_case)
        yield replace(broken, change=drop_of(0.1))
    for world in (beside(20, 10, 5), beside(12, 5, 5)):
        yield row("30 % of outputs lose a field", world, lose_one_value)
    for cases in (2, 3, 4, 12):
        yield row("nothing is right", beside(cases, 10, 5), lose_everything, regressed=Limit(least=95.0))


def lose_field(before: Answers, after: Answers, rng: np.random.Generator) -> None:
    """Make a field right in all outputs but perhaps one, then in none."""
    before[:, :, 0], after[:, :, 0] = True, False
    case, replicate = rng.integers(before.shape[0]), rng.integers(before.shape[1])
    before[case, replicate, 0] = bool(rng.integers(2))


def thin_field(before: Answers, after: Answers, rng: np.random.Generator, *, share: float) -> None:
    """Make a field right in all outputs, then in a share of them."""
    before[:, :, 0], after[:, :, 0] = True, rng.random(after.shape[:2]) < share


def halve_field(before: Answers, after: Answers, rng: np.random.Generator) -> None:
    """Make a field right in 95 % of the outputs, then in 45 %."""
    for answers, share in ((before, 0.95), (after, 0.45)):
        answers[:, :, 0] = rng.random(answers.shape[:2]) < share


def break_case(before: Answers, after: Answers, rng: np.random.Generator) -> None:
    """Make everything wrong in one case."""
    after[rng.integers(len(after))] = False


def lose_one_value(before: Answers, after: Answers, rng: np.random.Generator) -> None:
    """Make one value wrong in 30 % of the candidate's outputs."""
    hit = rng.random(after.shape[:2]) < 0.3
    value = rng.integers(after.shape[2], size=after.shape[:2])
    cases, replicates = np.nonzero(hit)
    after[cases, replicates, value[hit]] = False


def lose_everything(before: Answers, after: Answers, rng: np.random.Generator) -> None:
    """Make everything wrong."""
    after[:] = False


def settled_rows() -> Iterator[Row]:
    """Models that always answer alike."""
    for kind, verdict in (("right", "unchanged"), ("fixed", "unchanged"), ("wrong", "inconclusive")):
        for world in (*(beside(cases, 5, 5) for cases in (3, 6, 12)), World(cases=12, replicates=5)):
            world = replace(world, kind=kind)
            promised = {verdict: Limit(least=99.0)}
            yield Row(table="Always alike", name=str(kind), world=world, promised=promised, trials=20)


TABLES = (design_rows, null_rows, seen_rows, accepted_rows, lost_rows, settled_rows)


def drawn_verdicts(row: Row, trials: int) -> list[str]:
    """Return the verdict of each trial."""
    seed = zlib.crc32(row.key.encode())
    return [row.verdict(np.random.default_rng([seed, trial])) for trial in range(trials)]


def line_of(row: Row, verdicts: list[str]) -> tuple[str, int]:
    """Return the table row and the number of promises that it misses."""
    counts, size, missed = Counter(verdicts), len(verdicts), 0
    cells = []
    for verdict in VERDICTS:
        limit = row.promised.get(verdict)
        is_missed = limit is not None and limit.is_missed(counts[verdict], size)
        missed += is_missed
        note = f" ({limit.words}{', **missed**' * is_missed})" if limit is not None else ""
        cells.append(f"{100 * counts[verdict] / size:.1f}{note}")
    return f"| {row.name} | {row.world.size} | {' | '.join(cells)} | {size} |", missed


def main() -> int:
    """Print every table, or with --quick the rows that miss a promise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the trials; print what misses a promise")
    parser.add_argument("--only", default="", help="the rows whose table or name holds this word")
    parser.add_argument("--trials", type=int, help="trials of each row")
    parser.add_argument("--out", type=Path, help="append the verdict of each trial to a file, one row a line")
    options = parser.parse_args()
    rows = [row for rows in TABLES for row in rows() if options.only.lower() in row.key.lower()]
    begun, missed, table = time.perf_counter(), 0, ""
    for row in rows:
        trials = min(options.trials or row.trials, row.trials)
        verdicts = drawn_verdicts(row, max(20, trials // 10) if options.quick else trials)
        if options.out:
            with options.out.open("a") as lines:
                lines.write(json.dumps([row.key, verdicts]) + "\n")
        line, beyond = line_of(row, verdicts)
        missed += beyond
        if options.quick and not beyond:
            continue
        if row.table != table:
            table = row.table
            columns = ("world", "cases × replicates", *VERDICTS, "trials")
            print(f"\n### {table}, %\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
        print(line, flush=True)
    print(f"\n{len(rows)} rows, {missed} missed, {time.perf_counter() - begun:.0f} s", file=sys.stderr)
    return 1 if options.quick and missed else 0


if __name__ == "__main__":
    sys.exit(main())
