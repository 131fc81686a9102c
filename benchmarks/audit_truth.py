"""Whether an audit is right if the truth is known: `audit_truth.py [--quick] [COHORTS]`.

Cohorts of models are drawn from a known world and audited. A model is right on a question with the logit: ability +
benchmark + effect of the scenario + question + scenario × question. The truth is the probability of being right,
averaged over all questions, in each of the ten scenarios. Rates are ± their standard error over cohorts.
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
import numpy as np
from scipy.special import expit
from skill_evaluator.audit.cube import Cube, Floats, Outcomes, cube_of_outcomes
from skill_evaluator.audit.results import AuditResult, audit
from skill_evaluator.audit.statistics import grades_of

SCENARIOS = 10
QUESTION, INTERACTION = 1.0, 0.4  # standard deviations of the logit
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(30)
COHORTS, QUICK = 60, 5

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
    World("no scenario has an effect", fluctuation=0.0),
    World("all models fluctuate alike", apart=0.0),
    World("all alike, noise above σ", apart=0.0, fluctuation=0.04),
    World("normal, 50 % shared", shared=0.5),
    World("normal, 90 % shared", shared=0.9),
    World("normal, 1 benchmark × 20 questions × 1", benchmarks=1, questions=20, replicates=1),
)


@dataclass(frozen=True)
class Cohort:
    """An audit's cube, and the true scores in per cent, [models, scenarios]."""

    cube: Cube
    truth: Floats


def draw_cohort(world: World, random: np.random.Generator) -> Cohort:
    """Draw models, scenarios, questions and answers."""
    models, drawn = world.models, SCENARIOS
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
        logits = base[:, :, None] + QUESTION * question
        logits = logits + INTERACTION * random.normal(size=logits.shape)
        right = random.random((*logits.shape, world.replicates)) < expit(logits)[..., None]
        names = tuple(map(str, range(world.questions)))
        outcomes[f"b{b}"] = Outcomes(questions=names, scores=right.astype(np.float32))
    names, scenarios = [f"m{m}" for m in range(models)], [f"s{t}" for t in range(SCENARIOS)]
    cube = cube_of_outcomes(names, scenarios, outcomes, weights={})
    return Cohort(cube=cube, truth=truth)


@dataclass
class Tally:
    """Whether intervals held the truth, a list per cohort, and whether settled grades are those of the truth."""

    held: dict[str, list[list[bool]]] = field(default_factory=dict)
    settled: list[bool] = field(default_factory=list)
    grades: int = 0
    truth: list[float] = field(default_factory=list)
    noise: list[float] = field(default_factory=list)
    outside: int = 0

    def add(self, cohort: Cohort, result: AuditResult) -> None:
        """Compare one audit with the truth."""
        by_name = {model.model: model for model in result.models}
        models = [by_name[name] for name in cohort.cube.models]
        sigma = cohort.truth.std(axis=1, ddof=1)
        self._hold("σ", [model.fluctuation_ci95 for model in models], sigma)
        self._hold("μ", [model.ability_ci95 for model in models], cohort.truth.mean(axis=1))
        self.settled += [
            model.grading.grade == grade
            for model, grade in zip(models, grades_of(sigma), strict=True)
            if model.grading.settled
        ]
        self.grades += len(models)
        self.outside += sum(
            not ends[0] <= model.fluctuation <= ends[1] for model in models if (ends := model.fluctuation_ci95)
        )
        self.truth += sigma.tolist()
        self.noise.append(result.figures.noise_floor or 0.0)

    def _hold(self, name: str, intervals: list, truth: Floats) -> None:
        held = [bool(ends[0] - 1e-9 <= true <= ends[1]) for ends, true in zip(intervals, truth, strict=True) if ends]
        self.held.setdefault(name, []).append(held)

    def rate(self, name: str) -> str:
        """Return how often intervals held the truth, ± its standard error over cohorts."""
        shares = np.array([np.mean(held) for held in self.held[name]])
        return f"{100 * shares.mean():.1f} ± {100 * shares.std(ddof=1) / np.sqrt(len(shares)):.1f}"


def main(cohorts: int) -> None:
    """Print the figures."""
    print("| world | σ, noise | σ: % held | figure outside | μ: % held | grades settled | of these right |")
    print("|---|---|---:|---:|---:|---:|---:|", flush=True)
    for seed, world in enumerate(WORLDS):
        random, tally = np.random.default_rng(seed), Tally()
        for _ in range(cohorts):
            cohort = draw_cohort(world, random)
            tally.add(cohort, audit(cohort.cube))
        right = f"{100 * np.mean(tally.settled):.0f} %" if tally.settled else "–"
        shown = [
            world.title,
            f"{np.median(tally.truth):.1f}, {np.median(tally.noise):.1f}",
            tally.rate("σ"),
            f"{tally.outside}",
            tally.rate("μ"),
            f"{len(tally.settled)} of {tally.grades}",
            right,
        ]
        print(f"| {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    numbers = [argument for argument in sys.argv[1:] if argument != "--quick"]
    main(int(numbers[0]) if numbers else QUICK if "--quick" in sys.argv else COHORTS)
