"""A finished audit to draw, of drawn answers: each model is weaker than the one before, and moves more."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from skill_evaluator.audit.auditing import audit
from skill_evaluator.audit.cube import ModelCost, Outcomes, cube_of_outcomes
from skill_evaluator.audit.results import AuditResult

QUESTIONS = 100


def an_audit(
    models: Sequence[str] = ("ash", "birch", "cedar", "elm"),
    scenarios: Sequence[str] = ("bare", "polite", "strict", "terse"),
    benchmarks: Sequence[str] = ("logic", "law"),
    **changed: Any,
) -> AuditResult:
    """Everything known; `changed` replaces parts of the result."""
    return _audited(tuple(models), tuple(scenarios), tuple(benchmarks)).model_copy(update=changed)


@cache
def _audited(models: tuple[str, ...], scenarios: tuple[str, ...], benchmarks: tuple[str, ...]) -> AuditResult:
    random = np.random.default_rng(0)
    place = np.arange(len(models))[:, None, None, None] / len(models)
    moved = 0.2 * place * np.cos(2 * np.arange(len(scenarios)))[:, None, None]
    outcomes = {}
    for name in benchmarks:
        right = random.random((len(models), len(scenarios), QUESTIONS, 2)) < 0.8 - 0.4 * place + moved
        questions = tuple(f"q{q}" for q in range(QUESTIONS))
        outcomes[name] = Outcomes(questions=questions, scores=right.astype(np.float32))
    spending = {name: ModelCost(usd_per_call=0.0004, latency_s=1.25) for name in models}
    return audit(replace(cube_of_outcomes(models, scenarios, outcomes, weights={}), spending=spending))
