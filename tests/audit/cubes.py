"""Cubes for the tests of an audit: the paper's table, and ones drawn from a known random-effects model."""

from functools import cache
from pathlib import Path

import numpy as np
from skill_evaluator.audit.auditing import audit
from skill_evaluator.audit.cube import Cube, Floats, Outcomes, cube_of_outcomes, cube_of_scores, read_cube
from skill_evaluator.audit.results import AuditResult

PAPER = Path(__file__).parents[1] / "data" / "creditaudit_table2.csv"


def paper() -> Cube:
    return read_cube(PAPER, weights={})


@cache
def audited_paper() -> AuditResult:
    return audit(paper())


def cube_of(scores: list[list[float]]) -> Cube:
    """One benchmark; [models][scenarios]."""
    array = np.array(scores, dtype=np.float64)[:, :, None]
    models = [f"model-{m}" for m in range(array.shape[0])]
    scenarios = [f"scenario-{t}" for t in range(array.shape[1])]
    return cube_of_scores(models, scenarios, ["quiz"], array, weights={})


def drawn(
    spread: Floats,
    *,
    scenarios: int = 10,
    questions: int = 100,
    replicates: int = 2,
    interaction: float = 0.0,
    seed: int = 0,
) -> Cube:
    """Answers of models whose scenario effects have these standard deviations, in points."""
    random = np.random.default_rng(seed)
    effects = np.asarray(spread)[:, None] / 100 * random.normal(size=(len(spread), scenarios))
    question = random.uniform(0.35, 0.65, questions)
    rates = question + effects[:, :, None] + interaction * random.normal(size=(*effects.shape, questions))
    answers = random.random((*rates.shape, replicates)) < rates[..., None]
    outcomes = Outcomes(questions=tuple(f"q{q}" for q in range(questions)), scores=answers.astype(np.float32))
    return cube_of_outcomes(
        [f"model-{m}" for m in range(len(spread))],
        [f"scenario-{t}" for t in range(scenarios)],
        {"quiz": outcomes},
        weights={},
    )
