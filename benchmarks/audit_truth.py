"""Whether an audit is right where the truth is known: `audit_truth.py [COHORTS]`.

Cohorts are drawn from a random-effects model (scenario, question, their interaction, Bernoulli answers), audited, and
held against what they were drawn from: bias of the fluctuation, coverage of the intervals, calibration of the odds.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
import numpy as np
from skill_evaluator.audit.cube.cube import Cube, Floats, Outcomes, cube_of_outcomes
from skill_evaluator.audit.statistics.grades import cuts_of, degrees_apart, grade_odds, places_of
from skill_evaluator.audit.statistics.uncertainty import corrected_fluctuation, intervals_of, matched_degrees, noise_of

EFFECTS = {
    "normal": lambda random, shape: random.normal(size=shape),
    "uniform": lambda random, shape: (random.random(shape) - 0.5) * np.sqrt(12),
    "Laplace": lambda random, shape: random.laplace(size=shape) / np.sqrt(2),
}


@dataclass(frozen=True)
class Setting:
    models: int
    scenarios: int
    benchmarks: int
    questions: int
    replicates: int
    fluctuation: float  # median over models, points
    apart: float  # standard deviation of its logarithm
    interaction: float  # of scenario and question, as a probability
    effects: str = "normal"
    shared: float = 0.0  # correlation of the models' scenario effects


SETTINGS = (
    Setting(8, 10, 3, 100, 3, 3.0, 0.4, 0.05),
    Setting(8, 10, 2, 50, 2, 4.0, 0.4, 0.05),
    Setting(13, 10, 3, 100, 1, 3.0, 0.5, 0.05),
    Setting(8, 6, 2, 50, 3, 4.0, 0.4, 0.05),
    Setting(8, 20, 3, 100, 3, 2.0, 0.4, 0.05),
    Setting(50, 20, 5, 100, 1, 2.0, 0.4, 0.05),
    Setting(4, 10, 2, 100, 5, 3.0, 0.4, 0.05),
    Setting(8, 10, 3, 100, 3, 3.0, 0.4, 0.05, "uniform"),
    Setting(8, 10, 3, 100, 3, 3.0, 0.4, 0.05, "Laplace"),
    Setting(8, 10, 3, 100, 3, 3.0, 0.4, 0.05, shared=0.5),
    Setting(8, 10, 3, 100, 3, 3.0, 0.4, 0.05, shared=0.9),
)


@dataclass(frozen=True)
class World:
    """A cohort and its truth: fluctuation over all scenarios, over these (`here`), on these questions (`narrow`)."""

    cube: Cube
    ability: Floats
    fluctuation: Floats
    here: Floats
    narrow: Floats


def drawn(one: Setting, random: np.random.Generator) -> World:
    fluctuation = one.fluctuation * np.exp(one.apart * random.normal(size=one.models))
    draw = EFFECTS[one.effects]
    alike = np.sqrt(one.shared) * draw(random, (1, one.scenarios))
    own = np.sqrt(1 - one.shared) * draw(random, (one.models, one.scenarios))
    effects = fluctuation[:, None] / 100 * (alike + own)
    level = random.uniform(0.45, 0.55, one.models)
    outcomes = {}
    for b in range(one.benchmarks):
        rates = level[:, None] + random.uniform(-0.2, 0.2, (one.models, one.questions))
        rates = rates[:, None, :] + effects[:, :, None]
        rates = rates + one.interaction * random.normal(size=rates.shape)
        answers = random.random((*rates.shape, one.replicates)) < np.clip(rates, 0, 1)[..., None]
        outcomes[f"b{b}"] = Outcomes(questions=tuple(map(str, range(one.questions))), scores=answers.astype(np.float32))
    extra = (100 * one.interaction) ** 2 / (one.questions * one.benchmarks)
    return World(
        cube=cube_of_outcomes(
            [f"m{m}" for m in range(one.models)], [f"s{t}" for t in range(one.scenarios)], outcomes, weights={}
        ),
        ability=100 * level,
        fluctuation=fluctuation,
        here=100 * effects.std(axis=1, ddof=1),
        narrow=np.sqrt(fluctuation**2 + extra),
    )


@dataclass
class Tally:
    raw: list[float]
    corrected: list[float]
    squares: list[float]
    covered: dict[str, list[bool]]
    odds: list[Floats]
    came: list[Floats]


def simulate(one: Setting, cohorts: int, seed: int) -> Tally:
    random = np.random.default_rng(seed)
    names = ("ability", "both", "cases", "scenarios", "percentile")
    tally = Tally([], [], [], {name: [] for name in names}, [], [])
    for cohort in range(cohorts):
        world = drawn(one, random)
        overall = world.cube.overall
        variance = overall.var(axis=1, ddof=1)
        noise = noise_of(world.cube, "both")
        both = intervals_of(overall, noise, "both")
        tally.raw += list(np.sqrt(variance) / world.fluctuation)
        tally.corrected += list(corrected_fluctuation(variance, noise.floor, one.scenarios - 1) / world.fluctuation)
        tally.squares += list((variance - noise.floor) / world.fluctuation**2)
        _note(tally, "ability", both.ability, world.ability)
        _note(tally, "both", both.corrected, world.fluctuation)
        _note(tally, "cases", intervals_of(overall, noise, "cases").corrected, world.here)
        if one.replicates > 1:
            alone = noise_of(world.cube, "scenarios")
            _note(tally, "scenarios", intervals_of(overall, alone, "scenarios").corrected, world.narrow)
        resampled = overall[:, random.integers(0, one.scenarios, (400, one.scenarios))].var(axis=2, ddof=1)
        percentiles = np.sqrt(np.maximum(np.quantile(resampled, [0.025, 0.975], axis=1).T - noise.floor[:, None], 0))
        _note(tally, "percentile", percentiles, world.fluctuation)
        degrees = degrees_apart(overall, matched_degrees(overall))
        odds = grade_odds(variance, noise.floor, degrees, 4, seed=cohort)
        tally.odds.append(odds.probabilities)
        tally.came.append(np.eye(4)[places_of(world.fluctuation, cuts_of(world.fluctuation))])
    return tally


def _note(tally: Tally, name: str, bounds: Floats, truth: Floats) -> None:
    tally.covered[name] += list((bounds[:, 0] <= truth) & (truth <= bounds[:, 1]))


def _share(values: list[bool]) -> str:
    return f"{100 * np.mean(values):.1f}" if values else "–"


def main(cohorts: int) -> None:
    """Print the figures."""
    size = "models × scenarios × benchmarks × questions × replicates"
    print(f"| {size} | σ, effects | raw ÷ true | corrected ÷ true | squares | ", end="")
    print("μ both | σ both | σ cases | σ scenarios | percentile bootstrap |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    known: dict[str, tuple[list[Floats], list[Floats]]] = {}
    for seed, one in enumerate(SETTINGS):
        found = simulate(one, cohorts, seed)
        size = f"{one.models} × {one.scenarios} × {one.benchmarks} × {one.questions} × {one.replicates}"
        shared = f", {one.shared:.0%} shared" if one.shared else ""
        bias = f"{np.mean(found.raw):.2f} | {np.mean(found.corrected):.3f} | {np.sqrt(np.mean(found.squares)):.3f}"
        covered = " | ".join(_share(found.covered[name]) for name in found.covered)
        print(f"| {size} | {one.fluctuation:g}, {one.effects}{shared} | {bias} | {covered} |", flush=True)
        odds, came = known.setdefault(shared.strip(", ") or "each model its own", ([], []))
        odds += found.odds
        came += found.came
    for effects, (odds, came) in known.items():
        _print_calibration(effects, np.concatenate(odds).ravel(), np.concatenate(came).ravel())


def _print_calibration(effects: str, expected: Floats, hits: Floats) -> None:
    """How often grades came true, by the odds that were given."""
    print(f"\nScenario effects: {effects}\n\n| said | came true | grades |\n|---:|---:|---:|")
    for low in np.arange(0, 1, 0.1):
        mine = (expected >= low) & (expected < low + 0.1 + (low > 0.85))
        if mine.any():
            print(f"| {expected[mine].mean():.2f} | {hits[mine].mean():.2f} | {mine.sum():,} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 250)
