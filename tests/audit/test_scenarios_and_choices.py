"""Neutrality, the p of two spreads, the three regimes and the warnings, on cubes whose answer is known."""

from dataclasses import replace

import numpy as np
import pytest
from skill_evaluator.audit.cube import Cube, ModelCost
from skill_evaluator.audit.findings.auditing import audit
from skill_evaluator.audit.statistics.figures import neutrality_of, spread_p

from tests.audit.cubes import audited_paper, cube_of, paper

RANDOM = np.random.default_rng(11)


def _noisy(shift: list[float], models: int = 8) -> Cube:
    levels = RANDOM.uniform(30, 80, models)[:, None]
    return cube_of((levels + np.array(shift) + RANDOM.normal(0, 0.3, (models, len(shift)))).tolist())


def test_a_scenario_that_shifts_everybody_is_named_alike_ones_are_neutral_one_model_cannot_tell() -> None:
    found = neutrality_of(_noisy([0, 0, -4, 0, 0, 0]))
    assert found.verdict.startswith("not neutral: everybody is shifted in scenario-2")
    assert found.shifts[0].scenario == "scenario-2"
    assert found.shifts[0].shift == pytest.approx(-10 / 3, abs=0.5)
    scores = 50 + np.array([[np.sin(m * 7 + t * 3) for t in range(8)] for m in range(8)])
    assert neutrality_of(cube_of(scores.tolist())).verdict.startswith("neutral")
    assert neutrality_of(cube_of([[50, 60, 70]])).verdict.startswith("not known")


def test_a_trend_is_kendalls_and_the_p_of_two_spreads_pitman_and_morgans() -> None:
    from scipy import stats

    found = neutrality_of(paper())
    expected = stats.kendalltau(range(10), found.means)
    assert (found.trend_tau, found.trend_p) == pytest.approx((expected.statistic, expected.pvalue))
    assert neutrality_of(_noisy([0, 1, 2, 3, 4, 5, 6])).trend_p < 0.01
    first, last = (paper().overall[paper().models.index(name)] for name in ("Seed-1.6-Flash", "Gemini-2.5-Flash-Lite"))
    assert spread_p(first, last) == pytest.approx(stats.pearsonr(first + last, last - first).pvalue)


def test_agentic_puts_stability_first_single_shot_ability_and_the_result_survives_its_file() -> None:
    regimes = audited_paper().regimes
    assert [one.model for one in regimes["agentic"].ranked[:4]] == [
        "Seed-1.6",
        "Gemini-2.5-Pro",
        "Seed-1.6-Flash",
        "GLM-4.5",  # steady Qwen3-32B is below it in every scenario: 61 at its best, 64.3 at GLM's worst
    ]
    assert regimes["single-shot"].ranked[0].model == "Seed-1.6"
    fragile = next(one for one in regimes["single-shot"].ranked if one.model == "Gemini-2.5-Flash-Lite")
    assert "scenario-fragile" in fragile.reason
    found = audited_paper()
    assert type(found).model_validate_json(found.model_dump_json()) == found


def test_cost_counts_right_answers_and_a_model_whose_price_is_not_known_has_no_place() -> None:
    cube = cube_of([[80, 81, 82], [80, 81, 82], [80, 81, 82]])
    spending = {
        "model-0": ModelCost(usd_per_call=0.0, latency_s=None),
        "model-1": ModelCost(usd_per_call=0.0, latency_s=2.0),
        "model-2": ModelCost(usd_per_call=None, latency_s=1.0),
    }
    regime = audit(replace(cube, spending=spending)).regimes["cost-sensitive"]
    assert [one.model for one in regime.ranked] == ["model-1", "model-0"]
    assert regime.note.endswith("not known of model-2")
    cube = cube_of([[80, 81, 82], [76, 77, 78], [20, 21, 22]])
    spending = {
        "model-0": ModelCost(usd_per_call=0.002, latency_s=1.0),
        "model-1": ModelCost(usd_per_call=0.001, latency_s=2.0),
        "model-2": ModelCost(usd_per_call=0.0, latency_s=0.1),
    }
    ranked = audit(replace(cube, spending=spending)).regimes["cost-sensitive"].ranked
    assert [one.model for one in ranked] == ["model-1", "model-0", "model-2"]
    assert ranked[0].reason.startswith("$1.30 for 1,000 right answers, 2.00 s each")
    assert ranked[2].reason.endswith(
        "too weak to be a bargain; no less able and no less steady: model-0, model-1; "
        "above it in every scenario: model-0, model-1"
    )


def test_a_changed_cohort_and_spreads_alike_are_said() -> None:
    cube = cube_of([[50, 60, 70], [40, 45, 50], [1, 2, 3]])
    now, before = audit(cube), audit(cube_of([[50, 60, 70], [40, 45, 50]]))
    said = "the cohort changed since the last audit (new: model-2)"
    assert any(said in one for one in audit(cube, previous=before).warnings)
    assert not any("cohort" in one for one in audit(cube, previous=now).warnings)
    scores = 50 + np.array([np.random.default_rng(m).permutation(np.arange(10.0)) for m in range(6)])
    assert any("the grades may rank noise" in one for one in audit(cube_of(scores.tolist())).warnings)
