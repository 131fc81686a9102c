"""The split of the fluctuation: unbiased where the truth is known, and zero where nothing varies."""

from dataclasses import replace

import numpy as np
import pytest
from skill_evaluator.audit.cube import cube_of_outcomes
from skill_evaluator.audit.findings.auditing import audit
from skill_evaluator.audit.statistics import figures
from skill_evaluator.audit.statistics.uncertainty import corrected_fluctuation, most_noise, noise_of

from tests.audit.cubes import cube_of, drawn, paper

MODELS = np.full(300, 3.0)


def test_the_corrected_fluctuation_is_the_scenarios_alone_within_five_per_cent() -> None:
    cube = drawn(MODELS, questions=60, interaction=0.1, seed=3)
    variance = cube.overall.var(axis=1, ddof=1)
    floor = noise_of(cube, "both").floor
    assert np.sqrt(variance.mean()) > 3.0 * 1.4
    assert np.sqrt((variance - floor).mean()) == pytest.approx(3.0, rel=0.05)
    cube = drawn(MODELS, questions=200, replicates=3, seed=4)
    floor = noise_of(cube, "scenarios").floor
    variance = cube.overall.var(axis=1, ddof=1)
    assert corrected_fluctuation(variance, floor, 9, "scenarios").mean() == pytest.approx(3.0, rel=0.05)
    of_these = 3.0 * np.random.default_rng(4).normal(size=(300, 10)).std(axis=1, ddof=1)  # effects that the seed tells
    assert corrected_fluctuation(variance, floor, 9, "cases").mean() == pytest.approx(of_these.mean(), rel=0.03)


def test_noise_on_one_benchmark_is_that_of_the_benchmark_alone() -> None:
    """Nobody moves at all; on the benchmark of few questions the noise is larger."""
    many, few = (drawn(np.zeros(4), questions=questions, seed=seed) for questions, seed in ((400, 1), (25, 2)))
    outcomes = {"many": many.outcomes["quiz"], "few": few.outcomes["quiz"]}
    result, alone = audit(cube_of_outcomes(many.models, many.scenarios, outcomes, weights={})), audit(few)
    steady, noisy = result.used
    assert noisy.noise_floor == alone.noise_floor
    assert noisy.noise_floor > 2 * steady.noise_floor
    by_name = {model.model: model for model in alone.models}
    for model in result.models:
        one, on_few = by_name[model.model], model.benchmarks["few"]
        assert on_few.fluctuation == pytest.approx(one.fluctuation)
        assert on_few.corrected == pytest.approx(one.corrected)
        assert on_few.grade == one.grade


def test_noise_is_the_scenarios_own_and_the_interaction_of_these_questions_is_none() -> None:
    cube = drawn(MODELS, questions=60, interaction=0.1, seed=5)
    here, beyond = (noise_of(cube, resampled).floor for resampled in ("scenarios", "both"))
    assert here.mean() < beyond.mean()
    truth = 3.0**2 + 10.0**2 / 60
    assert (cube.overall.var(axis=1, ddof=1) - here).mean() == pytest.approx(truth, rel=0.08)
    cube = drawn(np.zeros(200), scenarios=5, questions=100, replicates=1, seed=6)
    scores = cube.outcomes["quiz"].scores.copy()
    random = np.random.default_rng(7)
    scores[:, 2] = random.random(scores[:, 2].shape) < 0.02  # nearly always wrong, so hardly any noise
    cells = noise_of(replace(cube, outcomes={"quiz": replace(cube.outcomes["quiz"], scores=scores)}), "cases").cells
    own = 1e4 * scores.var(axis=2, ddof=1)[..., 0].mean(axis=0) / 100
    assert cells.mean(axis=0)[[0, 1, 3, 4]] == pytest.approx(own[[0, 1, 3, 4]], rel=0.1)
    assert cells.mean(axis=0)[2] < 0.3 * cells.mean()


def test_equal_replicates_are_no_noise_and_the_ceiling_is_the_binomial_variance() -> None:
    cube = drawn(MODELS[:3], replicates=1)
    assert noise_of(cube, "scenarios").floor is None
    outcomes = cube.outcomes["quiz"]
    twice = np.repeat(outcomes.scores, 2, axis=3)
    repeated = type(outcomes)(questions=outcomes.questions, scores=twice)
    assert noise_of(replace(cube, outcomes={"quiz": repeated}), "scenarios").floor == pytest.approx([0, 0, 0])
    cube = drawn(MODELS[:1], questions=100)
    known = most_noise(cube)
    assert known is not None
    rates = cube.overall / 100
    assert known == pytest.approx(1e4 * (rates * (1 - rates)).mean(axis=1) / 100)
    assert most_noise(paper()) is None


def test_shares_of_a_variance_sum_to_one_and_the_worst_is_the_first_of_the_lowest() -> None:
    cube = paper()
    for model in range(len(cube.models)):
        assert sum(figures.shares_by_benchmark(cube, model).values()) == pytest.approx(1)
    worst = figures.worst_of(cube_of([[50, 40, 40]]), 0)
    assert (worst.scenario, worst.score, round(worst.drop, 6)) == ("scenario-1", 40.0, 3.333333)
