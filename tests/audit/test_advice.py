"""The three regimes, centering, left-out scenarios and the warnings of an audit."""

from dataclasses import replace

import numpy as np
import pytest
from skill_evaluator.audit.auditing import audit, regimes_of
from skill_evaluator.audit.cube import ModelCost
from skill_evaluator.audit.results import ModelAudit, Quadrant

from tests.audit.cubes import cube_of, drawn


def a_model(name: str, ability: float, grade: str, quadrant: Quadrant, usd: float | None = None) -> ModelAudit:
    return ModelAudit(
        model=name,
        ability=ability,
        fluctuation=1.0,
        grade=grade,
        quadrant=quadrant,
        benchmarks={},
        shares={},
        scenarios={},
        usd_per_1000_right=usd,
    )


COHORT = [
    a_model("weak", 40, "AAA", "predictable baseline", 0.3),
    a_model("weaker", 30, "AA", "predictable baseline", 0.1),
    a_model("steady", 70, "AA", "safe default"),
    a_model("wild", 80, "BBB", "strong but scenario-fragile"),
    a_model("poor", 20, "A", "avoid"),
]


def test_agentic_ranks_aaa_and_aa_by_ability_and_lists_the_others() -> None:
    regime = regimes_of(COHORT)["agentic"]
    assert [entry.model for entry in regime.ranked] == ["steady", "weak", "weaker"]
    assert [(entry.model, entry.reason) for entry in regime.left_out] == [("wild", "80.0 (BBB)"), ("poor", "20.0 (A)")]


def test_single_shot_ranks_by_ability_and_warns_of_q4() -> None:
    ranked = regimes_of(COHORT)["single-shot"].ranked
    assert [entry.model for entry in ranked] == ["wild", "steady", "weak", "weaker", "poor"]
    assert ranked[0].reason == "80.0 (Q4: stability warning)"


def test_cost_sensitive_is_q2_by_cost_or_without_prices_by_ability() -> None:
    regime = regimes_of(COHORT)["cost-sensitive"]
    assert [entry.model for entry in regime.ranked] == ["weaker", "weak"]
    assert regime.ranked[0].reason == "30.0 ($0.10 for 1,000 right outputs)"
    unpriced = [model.model_copy(update={"usd_per_1000_right": None}) for model in COHORT]
    regime = regimes_of(unpriced)["cost-sensitive"]
    assert [entry.model for entry in regime.ranked] == ["weak", "weaker"]
    assert regime.note.endswith("by μ")


def test_cost_is_per_right_output() -> None:
    cube = cube_of([[50, 50, 50, 50], [80, 80, 82, 81]])
    spending = {"model-0": ModelCost(usd_per_call=0.002, latency_s=1.0)}
    costs = {model.model: model.usd_per_1000_right for model in audit(replace(cube, spending=spending)).models}
    assert costs == {"model-0": pytest.approx(4.0), "model-1": None}


def test_centering_removes_what_a_scenario_does_to_all_models() -> None:
    scores = np.array([[60.0, 61, 59, 50], [70, 69, 71, 60], [80, 84, 76, 70], [50, 50, 50, 40]])
    plain, centered = audit(cube_of(scores.tolist())), audit(cube_of(scores.tolist()), centered=True)
    assert centered.models[0].fluctuation < 1 < plain.models[0].fluctuation
    assert [model.grade for model in centered.models] == [model.centered_grade for model in centered.models]
    abilities = [{model.model: model.ability for model in result.models} for result in (plain, centered)]
    assert abilities[0] == pytest.approx(abilities[1])
    assert centered.neutrality == plain.neutrality


def test_fluctuation_that_noise_explains_and_equal_scores_are_warned_about() -> None:
    result = audit(drawn(np.zeros(6), questions=60, seed=5))
    noisy = [model.model for model in result.models if model.corrected == 0]
    assert noisy
    assert any("explains the whole fluctuation of" in warning and noisy[0] in warning for warning in result.warnings)
    still = audit(cube_of([[50.0] * 8, [60.0] * 8, [70.0] * 8, [80.0] * 8]))
    assert any("every score is the same in every scenario" in warning for warning in still.warnings)


def test_missing_replicates_are_counted() -> None:
    cube = drawn(np.full(4, 2.0), questions=20)
    cube.outcomes["quiz"].scores[1, :, :5, 1] = np.nan
    warning = "outputs are missing, of 400 per model; means are over the others: model-1 50"
    assert warning in audit(cube).warnings
