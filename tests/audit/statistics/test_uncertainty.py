"""Intervals hold what they promise, grades are as probable as said, and nothing is certain because nothing moved."""

import numpy as np
import pytest
from scipy import stats
from skill_evaluator.audit.findings.auditing import audit
from skill_evaluator.audit.statistics.grades import cuts_of, degrees_apart, grade_odds, places_of
from skill_evaluator.audit.statistics.uncertainty import Noise, bounds, intervals_of, matched_degrees, noise_of

from tests.audit.cubes import cube_of, drawn, paper

UNKNOWN = Noise(floor=None, questions=None, degrees=0)


def test_over_scenarios_it_is_the_chi_square_interval_of_a_standard_deviation() -> None:
    scores = np.random.default_rng(0).normal(60, 2, (1, 10))
    scores = np.array([np.linspace(58, 62, 10)])  # flat tails, so that no degree of freedom is lost
    variance = scores.var(ddof=1)
    expected = np.sqrt(9 * variance / stats.chi2.ppf([0.975, 0.025], 9))
    assert bounds(intervals_of(scores, UNKNOWN, "scenarios").fluctuation, 0) == pytest.approx(tuple(expected))


def test_heavy_tails_cost_degrees_of_freedom() -> None:
    normal = np.random.default_rng(0).normal(size=(50, 20))
    heavy = np.random.default_rng(0).standard_t(3, size=(50, 20))
    assert matched_degrees(heavy) < 0.8 * matched_degrees(normal)
    assert matched_degrees(normal) <= 19


@pytest.mark.parametrize("resampled", ["scenarios", "cases", "both"])
def test_intervals_hold_the_truth_nearly_as_often_as_they_say(resampled) -> None:
    spread = np.full(400, 3.0)
    cube = drawn(spread, questions=80, seed=8)
    found = intervals_of(cube.overall, noise_of(cube, resampled), resampled)
    assert found.corrected is not None
    truth = spread
    if resampled == "cases":  # these very scenarios, whose effects the seed tells
        effects = 3.0 * np.random.default_rng(8).normal(size=(400, 10))
        truth = effects.std(axis=1, ddof=1)
    held = (found.corrected[:, 0] <= truth) & (truth <= found.corrected[:, 1])
    assert 0.92 <= held.mean() <= 0.98


def test_ability_over_questions_is_wider_than_over_scenarios_alone() -> None:
    cube = drawn(np.full(20, 0.5), questions=30)
    widths = {}
    for resampled in ("scenarios", "cases", "both"):
        found = intervals_of(cube.overall, noise_of(cube, resampled), resampled).ability
        widths[resampled] = (found[:, 1] - found[:, 0]).mean()
    assert widths["scenarios"] < widths["cases"] <= widths["both"] * 1.05


def test_a_model_that_never_moved_has_no_interval_of_width_zero() -> None:
    result = audit(cube_of([[50.0] * 8, [60.0, 61, 62, 60, 61, 62, 60, 61]]))
    still = next(one for one in result.models if one.model == "model-0")
    assert (still.fluctuation, still.fluctuation_ci95, still.ability_ci95) == (0.0, None, None)


def test_less_than_noise_is_no_proof_of_stillness() -> None:
    cube = drawn(np.full(200, 0.0), questions=40, seed=2)
    for resampled in ("scenarios", "cases", "both"):
        found = intervals_of(cube.overall, noise_of(cube, resampled), resampled)
        assert found.corrected is not None
        assert (found.corrected[:, 0] == 0).mean() > 0.9
        assert found.corrected[:, 1].min() > 1


def test_no_interval_is_wider_than_scores_can_be() -> None:
    found = audit(cube_of([[0.0, 100.0], [40.0, 60.0]]))
    assert [one.fluctuation_ci95[1] for one in found.models] == pytest.approx([50, 50 * 2**0.5])
    assert all(one.fluctuation_ci95[0] < one.fluctuation <= one.fluctuation_ci95[1] for one in found.models)


def test_what_noise_explains_wholly_is_said_and_not_graded() -> None:
    result = audit(drawn(np.full(6, 0.0), questions=60, seed=5))
    still = [one for one in result.models if one.corrected == 0]
    assert still
    assert all(one.corrected_grade is None for one in still)
    assert any("nothing is left of" in one and still[0].model in one for one in result.warnings)


def test_missing_replicates_are_said() -> None:
    cube = drawn(np.full(4, 2.0), questions=20)
    cube.outcomes["quiz"].scores[1, :, :5, 1] = np.nan
    result = audit(cube)
    said = "answers are missing, of 400 a model, and means are of the replicates there are: model-1 50"
    assert said in result.warnings


def test_over_cases_alone_no_odds_are_given_that_would_be_over_scenarios() -> None:
    result = audit(drawn(np.full(4, 2.0), questions=20), resampled="cases")
    assert all(one.grade_probability is None for one in result.models)


def test_nobody_moved_is_said() -> None:
    result = audit(cube_of([[50.0] * 8, [60.0] * 8, [70.0] * 8, [80.0] * 8]))
    assert "no model moved at all: every score is the same in every scenario" in result.warnings
    assert all(one.grade_probability is None for one in result.models)


def test_grades_come_true_as_often_as_said() -> None:
    random = np.random.default_rng(2)
    said, came = [], []
    for seed in range(60):
        truth = np.exp(0.5 + 0.5 * random.normal(size=8))
        variance = truth**2 * random.chisquare(9, 8) / 9
        odds = grade_odds(variance, None, 9.0, 4, seed)
        assert odds is not None
        said.append(odds.probabilities)
        came.append(np.eye(4)[places_of(truth, cuts_of(truth))])
    expected, hits = np.concatenate(said).ravel(), np.concatenate(came).ravel()
    for low in (0.0, 0.25, 0.5, 0.75):
        mine = (expected >= low) & (expected < low + 0.25)
        assert hits[mine].mean() == pytest.approx(expected[mine].mean(), abs=0.08)


def test_what_shifts_all_models_alike_does_not_blur_their_order() -> None:
    random = np.random.default_rng(6)
    own = random.normal(size=(6, 12))
    alike = own * 0.1 + random.normal(size=(1, 12))
    assert degrees_apart(own, 11.0) < 16
    assert degrees_apart(alike, 11.0) > 100
    assert degrees_apart(np.zeros((3, 12)), 11.0) == degrees_apart(own[:1], 11.0) == 11.0


def test_odds_are_a_distribution_and_repeatable() -> None:
    variance = paper().overall.var(axis=1, ddof=1)
    first, second = (grade_odds(variance, None, 9.0, 4) for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.probabilities.sum(axis=1) == pytest.approx(1)
    assert first.most_stable.sum() == pytest.approx(1)
    assert (first.probabilities == second.probabilities).all()


def test_more_scenarios_settle_grades() -> None:
    truth = np.array([0.6, 1.2, 2.4, 4.8])
    few, many = (grade_odds(truth**2, None, degrees, 4) for degrees in (4.0, 200.0))
    assert few is not None
    assert many is not None
    assert np.diag(few.probabilities).max() < np.diag(many.probabilities).min()


def test_noise_that_explains_all_leaves_grades_open() -> None:
    variance = np.array([1.0, 1.1, 0.9, 1.05])
    odds = grade_odds(variance, np.ones(4), 9.0, 4)
    assert odds is not None
    assert odds.probabilities.max() < 0.5
