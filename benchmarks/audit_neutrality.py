"""How often the neutrality test of an audit is right: `audit_neutrality.py [--quick]`.

Audits of 3 benchmarks × 100 questions with 2 replicates are drawn. A model's fluctuation is 1 to 3 points; the first
scenario is harder for all models by 0, 5, 10 or 20 points. Bounds: the hard scenario is found in 95 % of audits at 10
points; another one is flagged in at most 7 %; without a hard one at most 9 % of audits have a flag.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
import numpy as np
from skill_evaluator.audit.cube import Cube, Floats
from skill_evaluator.audit.statistics import neutrality_of

MODELS, SCENARIOS, SHIFTS = (2, 3, 4, 5, 8, 13), (6, 8, 10), (0, 5, 10, 20)
BENCHMARKS, QUESTIONS, REPLICATES = 3, 100, 2
AUDITS, QUICK = 1000, 100
MIN_FOUND, MAX_UNAFFECTED, MAX_FALSE = 0.95, 0.07, 0.09


def draw_scores(random: np.random.Generator, models: int, scenarios: int, shift: float) -> Floats:
    """Draw S(m, t) in per cent, [models, scenarios]; the first scenario is harder by `shift` points."""
    level = random.uniform(0.35, 0.85, (models, 1, 1))
    effects = random.uniform(1, 3, (models, 1)) / 100 * random.normal(size=(models, scenarios))
    effects[:, 0] -= shift / 100
    scores = np.zeros((models, scenarios))
    for _ in range(BENCHMARKS):
        question = random.normal(0, 0.2, (models, 1, QUESTIONS))
        rates = np.clip(level + effects[:, :, None] + question, 0.01, 0.99)
        scores += random.binomial(REPLICATES, rates).mean(axis=2) / REPLICATES
    return 100 * scores / BENCHMARKS


def flags(scores: Floats) -> np.ndarray:
    """Return whether each scenario is flagged, in order."""
    models, scenarios = scores.shape
    names = tuple(f"s{t}" for t in range(scenarios))
    cube = Cube(
        models=tuple(f"m{m}" for m in range(models)),
        scenarios=names,
        benchmarks=("all",),
        scores=scores[:, :, None],
        weights=np.ones(1),
    )
    flagged = {effect.scenario for effect in neutrality_of(cube).shifts if effect.significant}
    return np.array([name in flagged for name in names])


def main(audits: int) -> None:
    """Print the rates, and exit with 1 if a bound is missed with 3 or more models."""
    print("| models | scenarios | false alarms | found at 5 | 10 | 20 | unaffected flagged at 5 | 10 | 20 |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    missed = False
    random = np.random.default_rng(0)
    for models in MODELS:
        for scenarios in SCENARIOS:
            drawn = {
                shift: np.array([flags(draw_scores(random, models, scenarios, shift)) for _ in range(audits)])
                for shift in SHIFTS
            }
            false = drawn[0].any(axis=1).mean()
            found = [drawn[shift][:, 0].mean() for shift in SHIFTS[1:]]
            unaffected = [drawn[shift][:, 1:].any(axis=1).mean() for shift in SHIFTS[1:]]
            cells = [f"{100 * rate:.1f} %" for rate in (false, *found, *unaffected)]
            print(f"| {models} | {scenarios} | {' | '.join(cells)} |", flush=True)
            if models > 2:
                missed |= found[1] < MIN_FOUND or max(unaffected) > MAX_UNAFFECTED or false > MAX_FALSE
    sys.exit(int(missed))


if __name__ == "__main__":
    main(QUICK if "--quick" in sys.argv else AUDITS)
