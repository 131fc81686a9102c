"""Verdicts where their premises fail: the rates of whole comparisons in the worlds of `worlds`, as rows of tables.

`benchmarks/verdicts.py` runs these with its other tables. Every row is a rate in per cent ± its standard error.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from skill_evaluator.library.config import Gate
from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.comparability import Pair
from skill_evaluator.verdicts.comparison import compare_records
from skill_evaluator.verdicts.results import ComparisonResult
from worlds import Floats, World, another_run, broken, probabilities, rate, record_of, rules_of, spread, two_runs

Row = list[str]
Job = Callable[[np.random.Generator], Row]
Change = Callable[[Floats], Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A comparison that is made many times: the world, the models (the first of them is made worse), and the gate.

    `again` is the number of further runs of the baseline's version.
    """

    name: str
    world: World
    models: int = 1
    gate: Gate = "robust"
    again: int = 0
    change: Change | None = None

    def pairs(self, rng: np.random.Generator) -> list[Pair]:
        """Return the records of all models."""
        return [self._pair(f"m{at}", self.change if at == 0 else None, rng) for at in range(self.models)]

    def _pair(self, model: str, change: Change | None, rng: np.random.Generator) -> Pair:
        world, p = self.world, probabilities(self.world, rng)
        before, after = two_runs(world, p, p if change is None else change(p), rng)
        baseline = record_of(world, before, "1.0.0", 5, model)
        return Pair(
            baseline=baseline,
            candidate=record_of(world, after, "1.1.0", 6, model, beside=baseline.run_id if world.interleaved else None),
            baseline_again=tuple(
                record_of(world, another_run(world, p, rng), "1.0.0", run, model) for run in range(self.again)
            ),
        )

    def compared(self, rng: np.random.Generator) -> ComparisonResult:
        """Return the verdict on one draw of the world."""
        return compare_records("s", self.pairs(rng), rules_of(self.gate))


def nothing_worse(trial: Trial, runs: int, rng: np.random.Generator) -> Row:
    """Return how often a component regressed, and how often one improved, where nothing was made worse."""
    results = [trial.compared(rng) for _ in range(runs)]
    regressed = [result.verdict == "regressed" for result in results]
    improved = [any(model.verdict == "improved" for model in result.models) for result in results]
    named = [any(model.cases.broke or model.cases.fixed for model in result.models) for result in results]
    cells = [trial.name, trial.world.size, str(trial.models), trial.gate, str(trial.again)]
    return [*cells, rate(regressed, runs), rate(improved, runs), rate(named, runs), str(runs)]


def made_worse(trial: Trial, runs: int, rng: np.random.Generator) -> Row:
    """Return how often the model that was made worse regressed."""
    seen = [trial.compared(rng).models[0].verdict == "regressed" for _ in range(runs)]
    cells = [trial.name, trial.world.size, str(trial.models), trial.gate, str(trial.again)]
    return [*cells, rate(seen, runs), str(runs)]


def broken_cases(trial: Trial, count: int, runs: int, rng: np.random.Generator) -> Row:
    """Return how many of the broken cases are named, and which share of the named is not broken (its mean)."""
    named, false = 0, []
    for _ in range(runs):
        cases = trial.compared(rng).models[0].cases
        ids = [case.case_id for case in (*cases.broke, *cases.fixed)]
        truly = [case_id for case_id in ids if int(case_id[1:]) < count]
        named += len(truly)
        false.append((len(ids) - len(truly)) / max(1, len(ids)))
    share = f"{100 * named / max(1, runs * count):.1f}" if count else "–"
    error = 100 * float(np.std(false)) / np.sqrt(runs)
    return [
        trial.name,
        trial.world.size,
        str(count),
        share,
        f"{100 * float(np.mean(false)):.1f} ± {error:.1f}",
        str(runs),
    ]


def creep(trial: Trial, step: float, versions: int, runs: int, rng: np.random.Generator) -> Row:
    """Return how often a version regressed against one anchor, where each version loses a step more than the last."""
    stopped = []
    for _ in range(runs):
        world, p = trial.world, probabilities(trial.world, rng)
        anchor = record_of(world, another_run(world, p, rng), "1.0.0")
        stopped.append(any(_falls(trial, p, step * look, anchor, look, rng) for look in range(1, versions + 1)))
    return [trial.name, trial.world.size, trial.gate, f"{step:g}", str(versions), rate(stopped, runs), str(runs)]


def _falls(trial: Trial, p: Floats, drop: float, anchor: Record, look: int, rng: np.random.Generator) -> bool:
    run = another_run(trial.world, spread(p, drop), rng)
    candidate = record_of(trial.world, run, f"1.{look}.0", look)
    pair = Pair(baseline=anchor, candidate=candidate, anchor=anchor, look=look)
    return compare_records("s", [pair], rules_of(trial.gate)).verdict == "regressed"


def tries(trial: Trial, drop: float, attempts: int, runs: int, rng: np.random.Generator) -> Row:
    """Return how often a version that fell passes on the first of several tries, and on any of them."""
    first, ever = [], []
    for _ in range(runs):
        world, p = trial.world, probabilities(trial.world, rng)
        anchor = record_of(world, another_run(world, p, rng), "1.0.0")
        lower, candidates, passed = spread(p, drop), list[Record](), []
        for look in range(1, attempts + 1):
            candidates.append(record_of(world, another_run(world, lower, rng), "1.1.0", look))
            pair = Pair(
                baseline=anchor,
                candidate=candidates[-1],
                candidate_again=tuple(candidates[:-1]),
                anchor=anchor,
                look=look,
            )
            passed.append(compare_records("s", [pair], rules_of(trial.gate)).verdict != "regressed")
        first.append(passed[0])
        ever.append(any(passed))
    ratio = f"{sum(ever) / max(1, sum(first)):.2f}"
    return [
        trial.name,
        trial.world.size,
        trial.gate,
        f"{drop:g}",
        rate(first, runs),
        rate(ever, runs),
        ratio,
        str(runs),
    ]


NULL_WORLDS = (
    ("independent", World(), 1),
    ("share 60 %", World(share=0.6), 1),
    ("share 90 %", World(share=0.9), 1),
    ("share 60 %, 8 models", World(cases=12, share=0.6), 8),
    ("reworded, a fifth of the fields", World(cases=14, replicates=10, share=0.97, reworded=0.2), 1),
    ("reworded, half of the fields", World(cases=14, replicates=10, share=0.97, reworded=0.5), 1),
    ("reworded, all fields", World(cases=14, replicates=10, share=0.97, reworded=1.0), 1),
    ("a day of sd 0.2", World(day=0.2), 1),
)


def null_jobs(quick: bool) -> Iterator[Job]:
    """Every null world, with no A/A run and with two; then worlds beyond what is promised, and the other gates."""
    for again in (0,) if quick else (0, 2):
        for name, world, models in NULL_WORLDS:
            trial = Trial(name=name, world=world, models=models, again=again)
            yield partial(nothing_worse, trial, 20 if quick else 100 if models > 1 else 300)
    if quick:
        return
    for name, world in (("a day of sd 0.3", World(day=0.3)), ("a day of sd 0.2, 40 fields", World(day=0.2, fields=40))):
        yield partial(nothing_worse, Trial(name=name, world=world), 200)
    interleaved = Trial(name="a day of sd 0.3, interleaved", world=World(day=0.3, interleaved=True))
    yield partial(nothing_worse, interleaved, 200)
    gates: tuple[Gate, ...] = ("fixtures", "generalises")
    for gate in gates:
        for name, world, models in NULL_WORLDS[1:3]:
            yield partial(nothing_worse, Trial(name=name, world=world, models=models, gate=gate), 200)


def power_jobs(quick: bool) -> Iterator[Job]:
    """A drop of 0.10 in every world and by every gate; 0.07 in one of 8 models; a lost field; interleaving."""
    runs = 20 if quick else 250
    gates: tuple[Gate, ...] = ("robust", "fixtures", "generalises")
    tenth = partial(spread, drop=0.1)
    for gate in gates[:1] if quick else gates:
        for name, world in (
            ("independent", World()),
            ("share 60 %", World(share=0.6)),
            ("share 90 %", World(share=0.9)),
            ("a day of sd 0.2", World(day=0.2)),
        ):
            yield partial(made_worse, Trial(name=f"0.10, {name}", world=world, gate=gate, change=tenth), runs)
    for name, world in (
        ("0.10, a day of sd 0.2, interleaved", World(day=0.2, interleaved=True)),
        ("0.10, no day, interleaved", World(interleaved=True)),
    ):
        yield partial(made_worse, Trial(name=name, world=world, change=tenth), runs)
    lost = Trial(name="one field lost, the mean kept", world=World(), change=_lose_a_field)
    yield partial(made_worse, lost, runs)
    yield partial(made_worse, replace(lost, name="the same, 5 cases", world=World(cases=5, fields=40)), runs)
    for gate in gates[:2]:
        for again in (0, 2):
            eight = Trial(
                name="0.07 in one of 8 models, each answer sampled",
                world=World(cases=12, sampled=True),
                models=8,
                gate=gate,
                again=again,
                change=partial(spread, drop=0.07),
            )
            yield partial(made_worse, eight, 5 if quick else 150 if again else 60)


def _lose_a_field(p: Floats) -> Floats:
    """Make the first field always right before, and never after, while the others rise."""
    p[:, 0] = 1.0
    lowered = np.minimum(1.0, p + 0.3)
    lowered[:, 0] = 0.0
    return np.asarray(lowered)


def case_jobs(quick: bool) -> Iterator[Job]:
    """Two and three broken cases of forty, and none."""
    runs = 20 if quick else 150
    for name, world in (
        ("each answer sampled", World(cases=40, sampled=True)),
        ("share 60 %", World(cases=40, share=0.6)),
        ("share 90 %", World(cases=40, share=0.9)),
    ):
        for count in (0, 2, 3):
            trial = Trial(name=name, world=world, change=partial(broken, count=count))
            yield partial(broken_cases, trial, count, runs)


def creep_jobs(quick: bool) -> Iterator[Job]:
    """Creep of 0.02 a version within 6, and none in 30."""
    runs = 10 if quick else 120
    for name, world in (("each answer sampled", World(sampled=True)), ("nothing known", World())):
        yield partial(creep, Trial(name=name, world=world), 0.02, 6, runs)
        yield partial(creep, Trial(name=name, world=world), 0.0, 30, 5 if quick else 80)


def try_jobs(quick: bool) -> Iterator[Job]:
    """Three tries of a version that fell by 0.07."""
    runs = 20 if quick else 200
    gates: tuple[Gate, ...] = ("robust", "fixtures")
    for gate in gates:
        trial = Trial(name="each answer sampled", world=World(sampled=True), gate=gate)
        yield partial(tries, trial, 0.07, 3, runs)


_COLUMNS = ("world", "cases × replicates", "models", "gate", "further runs")
PARTS: dict[str, tuple[Callable[[bool], Iterator[Job]], Sequence[str]]] = {
    "Premises: nothing worse, %": (null_jobs, (*_COLUMNS, "regressed", "improved", "a case named", "trials")),
    "Premises: made worse, % regressed": (power_jobs, (*_COLUMNS, "seen", "trials")),
    "Premises: broken cases, %": (
        case_jobs,
        ("world", "cases × replicates", "broken", "named", "of the named not broken", "trials"),
    ),
    "Premises: loss since the anchor, %": (
        creep_jobs,
        ("world", "cases × replicates", "gate", "a version", "versions", "stopped", "trials"),
    ),
    "Premises: three tries, % passed": (
        try_jobs,
        ("world", "cases × replicates", "gate", "drop", "first", "any", "ratio", "trials"),
    ),
}
