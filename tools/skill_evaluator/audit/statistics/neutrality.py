"""Test whether the scenarios are neutral: whether one of them is harder or easier for all models.

A fluctuation is a property of a model only if no scenario changes every model's score alike. Each model's score in a
scenario is taken relative to the model's own median over the scenarios; the shift of a scenario is the median of these
deviations over the models. It is divided by the standard error from the other scenarios: √(mean over the models of
their variance ÷ number of models). Because of the medians, one broken model or one hard scenario does not affect the
shifts of the others.

`benchmarks/audit_neutrality.py` measures the limit: with it at most 9 % of neutral audits have a significant shift.
"""

import numpy as np

from skill_evaluator.audit.cube import Cube, Floats
from skill_evaluator.audit.results import Neutrality, ScenarioEffect

MIN_SCENARIOS = 4
LIMIT = 3.4  # standard errors


def shifts_of(overall: Floats) -> tuple[Floats, Floats]:
    """Return each scenario's shift in points and its ratio to its standard error, from scores [models, scenarios]."""
    models, scenarios = overall.shape
    shifts = np.median(overall - np.median(overall, axis=1, keepdims=True), axis=0)
    shifts = shifts - np.median(shifts)
    others = [np.delete(overall, t, axis=1).var(axis=1, ddof=1).mean() for t in range(scenarios)]
    errors = np.sqrt(np.array(others) / models)
    unmoved = np.where(np.abs(shifts) > 0, np.inf, 0.0)
    return shifts, np.divide(np.abs(shifts), errors, out=unmoved, where=errors > 0)


def neutrality_of(cube: Cube) -> Neutrality:
    """Test every scenario of a cube for a shift of all models; the largest shifts come first."""
    models, scenarios = cube.overall.shape
    means = cube.overall.mean(axis=0)
    limit, effects = None, []
    if models < 2:
        verdict = "not known (with a single model, a hard scenario looks the same as a weakness of the model)"
    elif scenarios < MIN_SCENARIOS:
        verdict = f"not known ({scenarios} scenarios are too few to compare)"
    else:
        limit = LIMIT
        effect_values = zip(cube.scenarios, *(each.tolist() for each in shifts_of(cube.overall)), strict=True)
        effects = [
            ScenarioEffect(scenario=name, shift=shift, ratio=ratio, significant=ratio > limit)
            for name, shift, ratio in effect_values
        ]
        effects.sort(key=lambda effect: -abs(effect.shift))
        verdict = _verdict(effects)
    return Neutrality(means=means.tolist(), range=float(np.ptp(means)), limit=limit, shifts=effects, verdict=verdict)


def _verdict(effects: list[ScenarioEffect]) -> str:
    moved = []
    for effect in effects:
        if effect.significant:
            direction = "harder" if effect.shift < 0 else "easier"
            moved.append(f"{effect.scenario} is {direction} for all models by {abs(effect.shift):.1f} points")
    if not moved:
        return "neutral (no scenario is harder or easier for all models)"
    return f"not neutral (scenario {', '.join(moved)})"
