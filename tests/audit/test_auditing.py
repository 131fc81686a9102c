"""The result of an audit: the CreditAudit paper's table, the three regimes, centering and warnings."""

from dataclasses import replace

import numpy as np
import pytest
from skill_evaluator.audit.results import AuditResult, CallFigures, ModelAudit, audit, regimes_of
from skill_evaluator.audit.statistics import Quadrant

from tests.audit.cubes import audited_paper, cube_of, drawn, paper, tally

# model: ability, fluctuation, grade, quadrant; per benchmark ability and fluctuation (gpqa, truthfulqa, mmlu_pro)
TABLE_1 = {
    "Seed-1.6-Flash": ("70.77", "0.63", "AAA", "safe default", "64.9 1.91 70.4 2.72 77.0 1.49"),
    "Gemini-2.5-Pro": ("80.13", "0.72", "AAA", "safe default", "66.7 2.67 93.4 1.51 80.3 1.25"),
    "Seed-1.6": ("81.87", "1.24", "AAA", "safe default", "76.2 2.53 88.3 1.42 81.1 1.29"),
    "Qwen3-32B": ("59.13", "1.30", "AAA", "predictable baseline", "37.2 2.15 78.0 3.40 62.2 2.90"),
    "Qwen3-235B-A22B": ("62.30", "1.43", "AA", "safe default", "50.3 1.95 79.9 1.85 56.7 2.71"),
    "GLM-4.5": ("66.80", "1.51", "AA", "safe default", "47.2 3.77 84.1 3.45 69.1 3.84"),
    "Kimi-K2": ("63.97", "1.57", "AA", "safe default", "48.9 2.33 83.5 1.90 59.5 3.06"),
    "DeepSeek-Chat-V3": ("58.53", "1.79", "A", "avoid", "46.8 4.39 72.3 3.53 56.5 1.51"),
    "DeepSeek-V3.2": ("57.13", "1.81", "A", "avoid", "42.3 3.59 72.4 1.58 56.7 3.47"),
    "Llama-3.3-70B-Instruct": ("52.20", "2.04", "A", "avoid", "40.7 3.27 72.4 2.72 43.5 3.17"),
    "Llama-3-8B-Instruct": ("30.17", "2.09", "BBB", "avoid", "27.4 4.03 38.3 3.33 24.8 4.92"),
    "GLM-4.5-Air": ("54.80", "2.25", "BBB", "avoid", "40.7 3.74 77.9 2.69 45.8 1.75"),
    "Gemini-2.5-Flash-Lite": ("67.27", "2.63", "BBB", "strong but scenario-fragile", "55.1 5.78 78.1 2.81 68.6 11.07"),
}


@pytest.fixture
def result() -> AuditResult:
    return audited_paper()


def _as_printed(one: ModelAudit) -> tuple[str, str, str | None, str | None, str]:
    pairs = " ".join(f"{each.ability:.1f} {each.fluctuation:.2f}" for each in one.benchmarks.values())
    return f"{one.ability:.2f}", f"{one.fluctuation:.2f}", one.grading.grade, one.grading.quadrant, pairs


def test_table_1_of_the_paper_is_reproduced(result: AuditResult) -> None:
    assert {one.model: _as_printed(one) for one in result.models} == TABLE_1
    thresholds, medians = result.figures.thresholds, result.figures.medians
    cuts = (thresholds.q25, thresholds.q50, thresholds.q75)
    assert [f"{cut:.2f}" for cut in cuts] == ["1.30", "1.57", "2.04"]
    assert (f"{medians.ability:.1f}", f"{medians.fluctuation:.2f}") == ("62.3", "1.57")


def test_centering_changes_six_grades(result: AuditResult) -> None:
    assert result.regraded == 6
    changed = {
        one.model: f"{old}→{new}"
        for one in result.models
        if (old := one.grading.grade) != (new := one.grading.centered_grade)
    }
    assert changed == {
        "Kimi-K2": "AA→A",
        "Qwen3-235B-A22B": "AA→AAA",
        "DeepSeek-Chat-V3": "A→AA",
        "DeepSeek-V3.2": "A→AA",
        "GLM-4.5": "AA→A",
        "Seed-1.6": "AAA→AA",
    }


def test_agentic_order_is_that_of_the_paper(result: AuditResult) -> None:
    regime = result.regimes["agentic"]
    ranked = ", ".join(entry.model for entry in regime.ranked)
    first = "Seed-1.6, Gemini-2.5-Pro, Seed-1.6-Flash, GLM-4.5"
    assert ranked == f"{first}, Kimi-K2, Qwen3-235B-A22B, Qwen3-32B"
    assert regime.left_out[0].reason == "67.3 (BBB)"
    assert [entry.model for entry in result.regimes["cost-sensitive"].ranked] == ["Qwen3-32B"]


def test_scores_alone_give_no_noise_and_no_interval(result: AuditResult) -> None:
    for model in result.models:
        assert (model.noise, model.corrected, model.fluctuation_ci95, model.grading.settled) == (None, None, None, None)
    assert result.warnings[0] == "100% of the variance of Gemini-2.5-Flash-Lite is from mmlu_pro"


def test_grades_on_one_benchmark_differ_from_those_over_all() -> None:
    counted = audit(replace(paper(), questions=dict.fromkeys(paper().benchmarks, 100)))
    grades = {one.model: [figures.grade for figures in one.benchmarks.values()] for one in counted.models}
    assert not any(len(set(own)) == 1 for own in grades.values())
    assert grades["DeepSeek-Chat-V3"] == ["BBB", "BBB", "AAA"]
    assert f"{counted.used[0].noise_ceiling:.2f}" == "4.90"


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
    unpriced = [model.model_copy(update={"calls": CallFigures()}) for model in COHORT]
    regime = regimes_of(unpriced)["cost-sensitive"]
    assert [entry.model for entry in regime.ranked] == ["weak", "weaker"]
    assert regime.note.endswith("by μ")


def test_cost_is_per_right_output() -> None:
    cube = cube_of([[50, 50, 50, 50], [0, 0, 0, 0]])
    tallies = {"model-0": tally(0.002), "model-1": tally(0.002)}
    costs = {model.model: model.calls.usd_per_1000_right for model in audit(cube, tallies=tallies).models}
    assert costs == {"model-0": pytest.approx(4.0), "model-1": None}


def test_centering_removes_what_a_scenario_does_to_all_models() -> None:
    scores = np.array([[60.0, 61, 59, 50], [70, 69, 71, 60], [80, 84, 76, 70], [50, 50, 50, 40]])
    plain, centered = audit(cube_of(scores.tolist())), audit(cube_of(scores.tolist()), centered=True)
    assert centered.models[0].fluctuation < 1 < plain.models[0].fluctuation
    gradings = [model.grading for model in centered.models]
    assert [each.grade for each in gradings] == [each.centered_grade for each in gradings]
    abilities = [{model.model: model.ability for model in result.models} for result in (plain, centered)]
    assert abilities[0] == pytest.approx(abilities[1])
    assert centered.neutrality == plain.neutrality


def test_noise_and_equal_scores_give_warnings() -> None:
    result = audit(drawn(np.zeros(6), questions=60, seed=5))
    noisy = [model.model for model in result.models if model.corrected == 0]
    assert noisy
    assert any("explains the whole fluctuation of" in warning and noisy[0] in warning for warning in result.warnings)
    still = audit(cube_of([[50.0] * 8, [60.0] * 8, [70.0] * 8, [80.0] * 8]))
    assert any("each model has the same score in every scenario" in warning for warning in still.warnings)


def test_missing_replicates_are_counted() -> None:
    cube = drawn(np.full(4, 2.0), questions=20)
    cube.outcomes["quiz"].scores[1, :, :5, 1] = np.nan
    warning = "outputs are missing, of 400 per model; means are over the others: model-1 50"
    assert warning in audit(cube).warnings
