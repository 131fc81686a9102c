"""The noise of scores and the confidence intervals, against known truths."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ncx2
from skill_evaluator.audit.auditing import audit, shares_by_benchmark
from skill_evaluator.audit.cube import cube_of_outcomes
from skill_evaluator.audit.statistics import (
    fluctuation_interval,
    question_noise,
    replicate_noise,
    widest_interval,
    without_noise,
)

from tests.audit.cubes import drawn, paper

MODELS = np.full(300, 3.0)


def variances(cube):
    return cube.overall.var(axis=1, ddof=1)


def test_both_kinds_of_noise_are_unbiased() -> None:
    cube = drawn(MODELS, questions=60, interaction=0.1, seed=3)
    own, beyond = replicate_noise(cube), question_noise(cube)
    assert np.sqrt((variances(cube) - beyond).mean()) == pytest.approx(3.0, rel=0.05)
    of_these_questions = 3.0**2 + 10.0**2 / 60
    assert (variances(cube) - own).mean() == pytest.approx(of_these_questions, rel=0.08)
    assert without_noise(variances(cube), own).mean() < np.sqrt(variances(cube)).mean()


def test_noise_within_a_scenario_takes_two_replicates_and_is_0_if_they_agree() -> None:
    cube = drawn(MODELS[:3], replicates=1)
    assert replicate_noise(cube) is None
    outcomes = cube.outcomes["quiz"]
    twice = replace(outcomes, scores=np.repeat(outcomes.scores, 2, axis=3))
    assert replicate_noise(replace(cube, outcomes={"quiz": twice})) == pytest.approx([0, 0, 0])


def test_missing_replicates_raise_the_noise() -> None:
    cube = drawn(MODELS[:4], questions=40, replicates=3, seed=2)
    before = replicate_noise(cube)
    cube.outcomes["quiz"].scores[1, :, :20, 2] = np.nan
    fresh = replace(cube, outcomes={"quiz": replace(cube.outcomes["quiz"])})
    assert replicate_noise(fresh)[1] > before[1]
    assert replicate_noise(fresh)[0] == before[0]


def test_interval_inverts_the_noncentral_chi_squared() -> None:
    low, high = fluctuation_interval(9.0, 2.0, 10)
    for bound, probability in ((low, 0.975), (high, 0.025)):
        assert ncx2.cdf(9 * 9.0 / 2.0, 9, 9 * bound**2 / 2.0) == pytest.approx(probability, abs=1e-6)
    assert fluctuation_interval(4.0, 0.0, 10) is None


@pytest.mark.parametrize(("variance", "noise"), [(0.01, 4.0), (1.0, 4.0), (4.0, 4.0), (100.0, 0.01), (0.0, 1.0)])
def test_interval_contains_the_measured_fluctuation(variance: float, noise: float) -> None:
    for bounded in (fluctuation_interval, widest_interval):
        low, high = bounded(variance, noise, 10)
        assert low <= np.sqrt(variance) <= high


@pytest.mark.parametrize(("spread", "noise"), [(0.0, 2.0), (1.0, 2.0), (3.0, 1.0)])
def test_interval_holds_the_truth_in_95_percent(spread: float, noise: float) -> None:
    random = np.random.default_rng(7)
    truth = spread * random.normal(size=(400, 10))
    measured = (truth + noise * random.normal(size=truth.shape)).var(axis=1, ddof=1)
    intervals = [fluctuation_interval(variance, noise**2, 10) for variance in measured.tolist()]
    pairs = zip(intervals, truth.std(axis=1, ddof=1).tolist(), strict=True)
    held = [low <= true <= high for (low, high), true in pairs]
    assert 0.93 <= np.mean(held) <= 0.99


def test_widest_interval_covers_every_smaller_noise() -> None:
    low, high = widest_interval(4.0, 2.0, 10)
    for noise in (0.2, 0.6, 1.0, 2.0):
        inner = fluctuation_interval(4.0, noise, 10)
        assert low <= inner[0]
        assert inner[1] <= high
    assert low == fluctuation_interval(4.0, 2.0, 10)[0]


def test_audit_shows_the_noise_within_scenarios_and_subtracts_it() -> None:
    cube = drawn(np.full(6, 2.0), questions=80, replicates=2, interaction=0.1, seed=1)
    result = audit(cube)
    own = np.sqrt(replicate_noise(cube))
    assert result.noise_floor == pytest.approx(np.median(own))
    by_name = {model.model: model for model in result.models}
    for name, noise in zip(cube.models, own, strict=True):
        model = by_name[name]
        assert model.noise == pytest.approx(noise)
        assert model.corrected == pytest.approx(np.sqrt(max(model.fluctuation**2 - noise**2, 0)))
    single = audit(drawn(np.full(6, 2.0), replicates=1))
    assert (single.noise_floor, single.models[0].noise, single.models[0].corrected) == (None, None, None)
    assert any("use -n 2" in warning for warning in single.warnings)


def test_noise_on_a_benchmark_is_that_of_the_benchmark_alone() -> None:
    many, few = (drawn(np.zeros(4), questions=questions, seed=seed) for questions, seed in ((400, 1), (25, 2)))
    outcomes = {"many": many.outcomes["quiz"], "few": few.outcomes["quiz"]}
    result, alone = audit(cube_of_outcomes(many.models, many.scenarios, outcomes, weights={})), audit(few)
    steady, noisy = result.used
    assert noisy.noise_floor == alone.noise_floor
    assert noisy.noise_floor > 2 * steady.noise_floor


def test_ability_interval_is_over_questions() -> None:
    for questions, width in ((25, 10.5), (400, 2.6)):
        low, high = audit(drawn(np.full(4, 1.0), questions=questions)).models[0].ability_ci95
        assert 0.5 * width < high - low < 1.5 * width
    counted = audit(replace(paper(), questions=dict.fromkeys(paper().benchmarks, 100))).models[0].ability_ci95
    assert counted[1] - counted[0] == pytest.approx(2 * 1.97 * 100 * np.sqrt(0.7 * 0.3 / 300), rel=0.15)
    assert audit(paper()).models[0].ability_ci95 is None


def test_shares_of_a_variance_sum_to_1() -> None:
    cube = paper()
    for model in range(len(cube.models)):
        assert sum(shares_by_benchmark(cube, model).values()) == pytest.approx(1)
