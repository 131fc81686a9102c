"""Whether an audit is right where the truth is known: `audit_truth.py [--quick] [COHORTS]`.

Cohorts of models are drawn from a known world, audited, and held against what they were drawn from. A model is right
on a question with the logit: ability + benchmark + what the scenario does to it + question + scenario × question. The
truth is the probability of being right, averaged over all questions, in each of the ten scenarios (`here`) and in
1,500 others that the same world draws (`beyond`). Rates are ± their standard error over cohorts.
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
import numpy as np
from scipy.special import expit
from skill_evaluator.audit.cube import Cube, Floats, Outcomes, cube_of_outcomes
from skill_evaluator.audit.findings.auditing import audit
from skill_evaluator.audit.results import AuditResult, ModelAudit
from skill_evaluator.audit.statistics.grades import QUARTERS, cuts_of, places_of

SCENARIOS, OTHERS = 10, 1500
QUESTION, INTERACTION = 1.0, 0.4  # standard deviations of the logit
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(30)
COHORTS, QUICK = 60, 5
FEWEST_GRADES = 100  # in a bin of odds that is held against the 0.07

EFFECTS = {
    "normal": lambda random, shape: random.normal(size=shape),
    "uniform": lambda random, shape: (random.random(shape) - 0.5) * np.sqrt(12),
    "Laplace": lambda random, shape: random.laplace(size=shape) / np.sqrt(2),
}


@dataclass(frozen=True)
class World:
    """`fluctuation`: median over models, of the logit; 0.15 is about 2.6 points. `apart`: spread of its logarithm."""

    title: str
    effects: str = "normal"
    breaks: bool = False  # one scenario in ten costs a model 10 to 30 points
    models: int = 10
    benchmarks: int = 3
    questions: int = 100
    replicates: int = 3
    fluctuation: float = 0.15
    apart: float = 0.4
    shared: float = 0.0  # correlation of the models' scenario effects


WORLDS = (
    World("normal"),
    World("uniform", effects="uniform"),
    World("Laplace", effects="Laplace"),
    World("one template in ten breaks", breaks=True),
    World("one template in ten breaks, 5 models", breaks=True, models=5),
    World("one template in ten breaks, 14 models", breaks=True, models=14),
    World("one template in ten breaks, 1 replicate", breaks=True, replicates=1),
    World("normal, 5 models", models=5),
    World("normal, 14 models", models=14),
    World("normal, noise above σ", fluctuation=0.04),
    World("all models fluctuate alike", apart=0.0),
    World("all alike, noise above σ", apart=0.0, fluctuation=0.04),
    World("normal, 50 % shared", shared=0.5),
    World("normal, 90 % shared", shared=0.9),
    World("normal, 1 benchmark × 20 questions × 1", benchmarks=1, questions=20, replicates=1),
)


@dataclass(frozen=True)
class Cohort:
    """An audit's cube, and true scores: [models, ten scenarios] and [models, others], in per cent."""

    cube: Cube
    here: Floats
    beyond: Floats


def draw_cohort(world: World, random: np.random.Generator) -> Cohort:
    """Draw models, scenarios, questions and answers."""
    models, drawn = world.models, SCENARIOS + OTHERS
    spread = world.fluctuation * np.exp(world.apart * random.normal(size=(models, 1)))
    draw = EFFECTS[world.effects]
    effects = np.sqrt(world.shared) * draw(random, (1, drawn)) + np.sqrt(1 - world.shared) * draw(
        random, (models, drawn)
    )
    level = random.uniform(-0.5, 1.5, (models, 1)) + spread * effects
    if world.breaks:
        slope = 0.85 * expit(level) * (1 - expit(level))  # of the mean score; questions that differ flatten it
        level = level - (random.random(level.shape) < 0.1) * random.uniform(0.1, 0.3, level.shape) / slope
    truth, outcomes = np.zeros((models, drawn)), {}
    for b in range(world.benchmarks):
        base = level + 0.5 * random.normal()
        over = expit(base[..., None] + np.hypot(QUESTION, INTERACTION) * NODES) @ (NODE_WEIGHTS / NODE_WEIGHTS.sum())
        truth += 100 * over / world.benchmarks
        question = np.sqrt(0.75) * random.normal(size=(1, 1, world.questions))  # as hard for all, and for a model
        question = question + 0.5 * random.normal(size=(models, 1, world.questions))
        logits = base[:, :SCENARIOS, None] + QUESTION * question
        logits = logits + INTERACTION * random.normal(size=logits.shape)
        right = random.random((*logits.shape, world.replicates)) < expit(logits)[..., None]
        names = tuple(map(str, range(world.questions)))
        outcomes[f"b{b}"] = Outcomes(questions=names, scores=right.astype(np.float32))
    names, scenarios = [f"m{m}" for m in range(models)], [f"s{t}" for t in range(SCENARIOS)]
    cube = cube_of_outcomes(names, scenarios, outcomes, weights={})
    return Cohort(cube=cube, here=truth[:, :SCENARIOS], beyond=truth[:, SCENARIOS:])


@dataclass
class Tally:
    """By name: whether intervals held the truth, a list a cohort; odds said and whether they came true."""

    held: dict[str, list[list[bool]]] = field(default_factory=dict)
    odds: dict[str, list[tuple[float, bool]]] = field(default_factory=dict)
    corrected: list[float] = field(default_factory=list)
    noise: list[float] = field(default_factory=list)
    truth: list[float] = field(default_factory=list)

    def note(self, cohort: Cohort, result: AuditResult) -> None:
        """Hold one audit against the truth."""
        by_name = {model.model: model for model in result.models}
        models = [by_name[name] for name in cohort.cube.models]
        here, beyond = (scores.std(axis=1, ddof=1) for scores in (cohort.here, cohort.beyond))
        self._hold("σ here", [model.fluctuation_ci95 for model in models], here)
        self._hold("σ beyond", [model.beyond and model.beyond.fluctuation_ci95 for model in models], beyond)
        self._hold("μ here", [model.ability_ci95 for model in models], cohort.here.mean(axis=1))
        self._grade("here", models, [model.grade_probability for model in models], here)
        self._grade("beyond", models, [model.beyond and model.beyond.grade_probability for model in models], beyond)
        self.corrected += [(model.corrected or 0.0) / true for model, true in zip(models, here, strict=True)]
        self.noise += [model.noise or 0.0 for model in models]
        self.truth += here.tolist()

    def _hold(self, name: str, intervals: list, truth: Floats) -> None:
        held = [bool(ends[0] <= true <= ends[1]) for ends, true in zip(intervals, truth, strict=True) if ends]
        self.held.setdefault(name, []).append(held)

    def _grade(self, name: str, models: list[ModelAudit], odds: list, truth: Floats) -> None:
        places = places_of(truth, cuts_of(truth))
        for model, given, place in zip(models, odds, places.tolist(), strict=True):
            for grade, said in given.items():
                self.odds.setdefault(name, []).append((said, grade == QUARTERS[place]))
                if grade == model.grade:
                    self.odds.setdefault(f"printed, {name}", []).append((said, grade == QUARTERS[place]))

    def rate(self, name: str) -> str:
        """Return how often intervals held, ± its standard error over cohorts."""
        shares = np.array([np.mean(held) for held in self.held[name]])
        return f"{100 * shares.mean():.1f} ± {100 * shares.std(ddof=1) / np.sqrt(len(shares)):.1f}"

    def bins(self, name: str) -> list[tuple[float, float, float, int]]:
        """Return said, came true, its standard error and how many, in tenths of the odds."""
        said, came = map(np.array, zip(*self.odds[name], strict=True))
        rows = []
        for low in np.arange(0, 10) / 10:
            mine = (said >= low) & (said < low + 0.1 + (low > 0.85))
            if mine.any():
                error = np.sqrt(max(came[mine].mean() * (1 - came[mine].mean()), 0.01) / mine.sum())
                rows.append((float(said[mine].mean()), float(came[mine].mean()), float(error), int(mine.sum())))
        return rows

    def worst(self, name: str) -> str:
        """Return the bin that is farthest from what was said, of those with enough grades."""
        rows = [row for row in self.bins(name) if row[3] >= FEWEST_GRADES]
        if not rows:
            return "–"
        said, came, error, _ = max(rows, key=lambda row: abs(row[0] - row[1]))
        return f"{said:.2f} → {came:.2f} ± {error:.2f}"

    def settled(self, name: str) -> str:
        """Return what was said and what came true of printed grades that the report calls settled."""
        rows = [row for row in self.odds[f"printed, {name}"] if row[0] >= 0.7]
        if not rows:
            return "–"
        said, came = np.mean(rows, axis=0)
        return f"{said:.2f} → {came:.2f} ± {np.sqrt(max(came * (1 - came), 0.01) / len(rows)):.2f} ({len(rows)})"


def main(cohorts: int) -> None:
    """Print the figures."""
    print(
        "| world | σ, noise | σ here, % held | μ here | corrected ÷ σ | odds, worst bin | settled grades | ",
        end="",
    )
    print("σ beyond | odds beyond, worst bin |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    everything = Tally()
    for seed, world in enumerate(WORLDS):
        random, tally = np.random.default_rng(seed), Tally()
        for _ in range(cohorts):
            cohort = draw_cohort(world, random)
            tally.note(cohort, audit(cohort.cube))
        sizes = f"{np.median(tally.truth):.1f}, {np.median(tally.noise):.1f}"
        corrected = f"{np.mean(tally.corrected):.2f}"
        shown = [world.title, sizes, tally.rate("σ here"), tally.rate("μ here"), corrected]
        shown += [tally.worst("here"), tally.settled("here")]
        shown += [tally.rate("σ beyond"), tally.worst("beyond")]
        print(f"| {' | '.join(shown)} |", flush=True)
        for name, rows in tally.odds.items():
            everything.odds.setdefault(name, []).extend(rows)
    print("\n| said | came true, these scenarios | grades | others: said | came true | grades |")
    print("|---:|---:|---:|---:|---:|---:|")
    for here, beyond in zip(everything.bins("here"), everything.bins("beyond"), strict=False):
        cells = [f"{row[0]:.2f} | {row[1]:.2f} ± {row[2]:.2f} | {row[3]:,}" for row in (here, beyond)]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    given = [argument for argument in sys.argv[1:] if argument != "--quick"]
    main(int(given[0]) if given else QUICK if "--quick" in sys.argv else COHORTS)
