"""Intervals hold what they promise, grades are as probable as said, and nothing is certain because nothing moved."""

import numpy as np
import pytest
from skill_evaluator.audit.findings.auditing import audit
from skill_evaluator.audit.statistics.grades import cuts_of, grade_odds, places_of
from skill_evaluator.audit.statistics.posterior import DRAWS, Posterior, draw_posterior
from skill_evaluator.audit.statistics.uncertainty import Intervals, intervals_of, noise_of

from tests.audit.cubes import audited_paper, cube_of, drawn, paper

BREAKS = (0.0, 0, 0, 0, 0, 0, 0, 0, 0, -20)


def intervals(cube, resampled) -> Intervals:
    noise = noise_of(cube, resampled)
    posterior = draw_posterior(cube.overall, noise.cells, noise.degrees * (len(cube.scenarios) - 1))
    return intervals_of(cube.overall, noise, posterior, resampled)


def scores_and_truth(seed: int, models: int, noise: float, breaks: bool):
    """True scores of ten scenarios, of which one in ten may break a model, and what is measured of them."""
    random = np.random.default_rng(seed)
    truth = random.normal(size=(models, 10)) * np.exp(0.7 + 0.4 * random.normal(size=(models, 1)))
    if breaks:
        truth -= (random.random(truth.shape) < 0.1) * random.uniform(10, 30, truth.shape)
    return 60 + truth + noise * random.normal(size=truth.shape), truth.std(axis=1, ddof=1)


@pytest.mark.simulation
@pytest.mark.parametrize(("noise", "breaks"), [(1.5, False), (1.5, True), (4.0, False)])
def test_of_these_scenarios_the_interval_holds_and_odds_come_true(noise, breaks) -> None:
    held, expected, came = [], [], []
    for seed in range(8):
        scores, truth = scores_and_truth(seed, 10, noise, breaks)
        posterior = draw_posterior(scores, np.full(scores.shape, noise**2), 2700, seed)
        low, high = np.quantile(posterior.here, [0.025, 0.975], axis=0)
        held += list((low <= truth) & (truth <= high))
        odds = grade_odds(posterior.here, 4)
        expected.append(odds.probabilities.ravel())
        came.append(np.eye(4)[places_of(truth, cuts_of(truth))].ravel())
    assert 0.9 <= np.mean(held) <= 0.99
    said, hits = np.concatenate(expected), np.concatenate(came)
    for low, high in ((0.0, 0.4), (0.4, 1.01)):
        mine = (said >= low) & (said < high)
        assert hits[mine].mean() == pytest.approx(said[mine].mean(), abs=0.1)


def test_a_scenario_that_breaks_a_model_is_no_uncertainty_about_these_ones_but_about_others() -> None:
    scores = np.array([50 + np.array(BREAKS), *(60 + np.random.default_rng(0).normal(size=(5, 10)))])
    posterior = draw_posterior(scores, np.full(scores.shape, 0.5), 2700)
    here, beyond = (np.quantile(draws[:, 0], [0.025, 0.975]) for draws in (posterior.here, posterior.beyond))
    assert here[0] < np.std(BREAKS, ddof=1) < here[1]
    assert np.ptp(here) < 2
    assert np.ptp(beyond) > 3 * np.ptp(here)
    assert beyond[0] < 2  # perhaps it was the one scenario in a thousand


@pytest.mark.simulation
def test_heavy_tails_and_scenarios_that_break_are_told_where_there_are_enough() -> None:
    random = np.random.default_rng(0)
    normal = random.normal(size=(10, 24))
    heavy = random.standard_t(4, size=normal.shape)
    broken = normal - (random.random(normal.shape) < 0.1) * random.uniform(10, 30, normal.shape)
    shapes = [draw_posterior(50 + scores, None, 0) for scores in (normal, heavy, broken)]
    plain, tailed, breaking = (shape for shape in shapes if shape is not None)
    assert plain.tails > 5 >= tailed.tails
    assert (plain.breaking, round(breaking.breaking, 1)) == (0, 0.1)


@pytest.mark.simulation
@pytest.mark.parametrize("resampled", ["scenarios", "cases", "both"])
def test_intervals_hold_the_truth_nearly_as_often_as_they_say(resampled) -> None:
    spread = np.full(40, 3.0)
    cube = drawn(spread, questions=80, seed=8)
    truth = spread
    if resampled == "cases":  # these very scenarios, whose effects the seed tells
        effects = 3.0 * np.random.default_rng(8).normal(size=(40, 10))
        truth = effects.std(axis=1, ddof=1)
    ends = intervals(cube, resampled).fluctuation
    held = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    assert held.mean() >= 0.88


def test_ability_over_questions_is_wider_than_over_scenarios_alone() -> None:
    cube = drawn(np.full(20, 0.5), questions=30)
    widths = {}
    for resampled in ("scenarios", "cases", "both"):
        ends = intervals_of(cube.overall, noise_of(cube, resampled), None, resampled).ability
        widths[resampled] = (ends[:, 1] - ends[:, 0]).mean()
    assert widths["scenarios"] < widths["cases"] <= widths["both"] * 1.05


def test_who_never_moved_has_no_interval_of_width_zero_and_that_nobody_moved_is_said() -> None:
    result = audit(cube_of([[50.0] * 8, [60.0, 61, 62, 60, 61, 62, 60, 61]]))
    still = next(model for model in result.models if model.model == "model-0")
    assert (still.fluctuation, still.fluctuation_ci95, still.ability_ci95) == (0.0, None, None)
    assert still.beyond.fluctuation_ci95 is None
    result = audit(cube_of([[50.0] * 8, [60.0] * 8, [70.0] * 8, [80.0] * 8]))
    assert "no model moved at all: every score is the same in every scenario" in result.warnings
    assert all(model.grade_probability is None for model in result.models)
    assert result.premise is None


def test_an_interval_is_wider_than_stillness_and_no_wider_than_scores_can_be() -> None:
    cube = drawn(np.full(6, 0.0), questions=40, seed=2)
    for resampled in ("scenarios", "cases", "both"):
        ends = intervals(cube, resampled).fluctuation
        assert ends[:, 0].max() < 1.5  # the noise is about 5.6 points
        assert ends[:, 1].min() > 0.3
    models = audit(cube_of([[0.0, 100.0], [40.0, 60.0]])).models
    assert [model.fluctuation_ci95[1] for model in models] == pytest.approx([50, 50 * 2**0.5])
    assert all(model.fluctuation_ci95[0] < model.fluctuation <= model.fluctuation_ci95[1] for model in models)


def test_what_noise_explains_wholly_is_not_graded_and_missing_replicates_are_said() -> None:
    result = audit(drawn(np.full(6, 0.0), questions=60, seed=5))
    still = [model for model in result.models if model.corrected == 0]
    assert still
    assert all(model.corrected_grade is None for model in still)
    assert {model.corrected_ci95[0] for model in still} == {0}  # an estimate lies in its interval
    assert any("nothing is left of" in warning and still[0].model in warning for warning in result.warnings)
    cube = drawn(np.full(4, 2.0), questions=20)
    cube.outcomes["quiz"].scores[1, :, :5, 1] = np.nan
    result = audit(cube)
    sentence = "answers are missing, of 400 a model, and means are of the replicates there are: model-1 50"
    assert sentence in result.warnings


def test_by_default_intervals_and_odds_are_of_these_scenarios_and_others_are_said_to_rest_on_a_model() -> None:
    cube = drawn(np.array([1.0, 2.0, 4.0, 8.0]), questions=100)
    result = audit(cube)
    assert result.resampled == "cases"
    assert result.premise.startswith("what is said of other scenarios rests on a model of their effects")
    for model in result.models:
        assert model.fluctuation_ci95 == model.corrected_ci95
        assert model.beyond.fluctuation_ci95 is not None
        assert model.grade_probability != model.beyond.grade_probability
    other = audit(cube, resampled="both").models
    assert [model.grade_probability == model.beyond.grade_probability for model in other if model.beyond] == [True] * 4


def test_what_shifts_all_models_alike_does_not_blur_their_order() -> None:
    random = np.random.default_rng(6)
    spread = np.geomspace(1, 3, 6)[:, None]
    own = random.normal(size=(6, 12))
    alike = 0.1 * own + random.normal(size=(1, 12))
    settled = []
    for effects in (own, alike):
        posterior = draw_posterior(50 + spread * effects, None, 0)
        ratio = np.log(posterior.beyond[:, 0] / posterior.beyond[:, 3])
        settled.append(ratio.std())
    assert settled[1] < 0.7 * settled[0]


def test_odds_are_a_distribution_repeatable_and_for_a_table_of_scores_of_other_scenarios() -> None:
    draws = [draw_posterior(paper().overall, None, 0) for _ in range(2)]
    first, second = (grade_odds(posterior.beyond, 4) for posterior in draws if isinstance(posterior, Posterior))
    assert first.probabilities.sum(axis=1) == pytest.approx(1)
    assert first.most_stable.sum() == pytest.approx(1)
    assert (first.probabilities == second.probabilities).all()
    assert len(draws[0].here) == DRAWS
    result = audited_paper()
    assert result.resampled == "scenarios"
    assert all(model.beyond and model.grade_probability == model.beyond.grade_probability for model in result.models)


def test_less_noise_settles_grades_and_noise_that_explains_all_leaves_them_open() -> None:
    scores = 50 + np.array([[0.6], [1.2], [2.4], [4.8]]) * np.random.default_rng(1).normal(size=(4, 10))
    noisy, clear = (draw_posterior(scores, np.full((4, 10), noise), 900) for noise in (9.0, 0.05))
    odds = [grade_odds(posterior.here, 4) for posterior in (noisy, clear)]
    assert np.diag(odds[0].probabilities).max() < np.diag(odds[1].probabilities).min()
    scores = 50 + np.random.default_rng(1).normal(size=(4, 10))
    posterior = draw_posterior(scores, np.ones((4, 10)), 900)
    odds = grade_odds(posterior.here, 4)
    assert odds.probabilities.max() < 0.6
