"""The statistics of an audit: grades, neutrality, noise and intervals, against known truths."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ncx2
from skill_evaluator.audit.cube import Floats, cube_of_outcomes
from skill_evaluator.audit.results import audit, shares_by_benchmark
from skill_evaluator.audit.statistics import (
    NEUTRALITY_LIMIT,
    QUARTERS,
    Neutrality,
    fluctuation_interval,
    grades_of,
    is_settled,
    neutrality_of,
    question_noise,
    replicate_noise,
    scale_of,
    shifts_of,
    widest_interval,
    without_noise,
)
from skill_evaluator.errors import AuditError

from tests.audit.cubes import cube_of, drawn, paper

SPREADS = st.lists(st.integers(1, 400), min_size=4, max_size=40).map(lambda ones: np.array(ones) / 100)


@given(SPREADS)
def test_lower_fluctuation_has_no_worse_grade(spreads) -> None:
    places = [QUARTERS.index(str(grade)) for grade in grades_of(np.sort(spreads))]
    assert places == sorted(places)


def test_equal_fluctuations_share_a_grade_despite_rounding() -> None:
    assert set(grades_of(np.array([1.5] * 5))) == {"AAA"}
    assert grades_of(np.array([0.1 + 0.2, 0.3, 0.3, 0.3, 9.0])) == ["AAA"] * 4 + ["BBB"]


def test_eight_grades_require_twenty_models() -> None:
    assert len(scale_of(8, 20)) == 8
    with pytest.raises(AuditError, match="at least 20 models; found 19"):
        scale_of(8, 19)
    with pytest.raises(AuditError, match="expected 4 or 8"):
        scale_of(5, 30)
    found = grades_of(np.arange(24.0), scale_of(8, 24))
    assert [found.count(grade) for grade in ("AAA", "AA+", "AA", "AA-", "A+", "A", "A-", "BBB")] == [3] * 8


@pytest.mark.parametrize(
    ("fluctuation", "interval", "noise", "settled"),
    [
        (0.5, (0.2, 0.9), 0.3, True),  # AAA
        (0.5, (0.2, 1.1), 0.3, False),  # reaches into AA
        (0.5, (0.0, 0.9), 1.2, False),  # noise alone would exceed AAA
        (5.0, (4.1, 9.0), 1.2, True),  # BBB
        (5.0, (3.9, 9.0), 1.2, False),
    ],
)
def test_grade_is_settled_if_its_interval_crosses_no_threshold(fluctuation, interval, noise, settled) -> None:
    assert is_settled(fluctuation, interval, noise, np.array([1.0, 2.0, 4.0])) is settled


def found_in(scores: Floats) -> Neutrality:
    return neutrality_of(cube_of(scores.tolist()))


def scores_of(random: np.random.Generator, models: int, shift: float) -> Floats:
    """Eight scenarios with a spread of 1 to 3 points and a noise of 1.8; scenario 5 is harder by `shift`."""
    spread = np.hypot(random.uniform(1, 3, (models, 1)), 1.8)
    scores = random.uniform(40, 80, (models, 1)) + spread * random.normal(size=(models, 8))
    scores[:, 5] -= shift
    return scores


@pytest.mark.parametrize("models", [3, 5, 13])
def test_hard_scenario_is_found_and_no_other_is_flagged(models: int) -> None:
    random = np.random.default_rng(models)
    found = [found_in(scores_of(random, models, 10)) for _ in range(100)]
    flagged = [{effect.scenario for effect in each.shifts if effect.significant} for each in found]
    assert sum("scenario-5" in names for names in flagged) >= 95
    assert sum(bool(names - {"scenario-5"}) for names in flagged) <= 7
    neutral = [found_in(scores_of(random, models, 0)).verdict for _ in range(100)]
    assert sum(verdict.startswith("not neutral") for verdict in neutral) <= 12


def test_verdict_names_the_hard_scenario_and_its_shift() -> None:
    scores = 50 + np.array([[np.sin(m * 7 + t * 3) for t in range(8)] for m in range(4)])
    assert found_in(scores).verdict == "neutral (no scenario is harder or easier for all models)"
    scores[:, 2] -= 9
    found = found_in(scores)
    assert found.verdict.startswith("not neutral (scenario scenario-2 is harder for all models by ")
    assert (found.shifts[0].scenario, found.limit) == ("scenario-2", NEUTRALITY_LIMIT)
    assert found.range == pytest.approx(max(found.means) - min(found.means))


def test_one_model_that_breaks_shifts_no_scenario() -> None:
    scores = scores_of(np.random.default_rng(1), 4, 0)
    scores[0, 3] -= 40
    assert found_in(scores).verdict.startswith("neutral")


def test_ratio_is_the_shift_in_standard_errors_of_the_other_scenarios() -> None:
    overall = np.array([[60.0, 61, 62, 50], [70, 72, 71, 60]])
    shifts, ratios = shifts_of(overall)
    assert shifts.tolist() == [-0.75, 0.75, 0.75, -10.75]
    assert ratios[3] == pytest.approx(10.75 / np.sqrt(1 / 2))


def test_neutrality_is_unknown_for_a_single_model_or_few_scenarios() -> None:
    for scores in ([[50.0, 60, 70, 80]], [[50.0, 60, 70], [50, 60, 70]]):
        found = found_in(np.array(scores))
        assert (found.limit, found.shifts) == (None, [])
        assert found.verdict.startswith("not known")


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
    assert result.figures.noise_floor == pytest.approx(np.median(own))
    by_name = {model.model: model for model in result.models}
    for name, noise in zip(cube.models, own, strict=True):
        model = by_name[name]
        assert model.noise == pytest.approx(noise)
        assert model.corrected == pytest.approx(np.sqrt(max(model.fluctuation**2 - noise**2, 0)))
    single = audit(drawn(np.full(6, 2.0), replicates=1))
    assert (single.figures.noise_floor, single.models[0].noise, single.models[0].corrected) == (None, None, None)
    assert any("use -n 2" in warning for warning in single.warnings)


def test_noise_on_a_benchmark_is_that_of_the_benchmark_alone() -> None:
    many, few = (drawn(np.zeros(4), questions=questions, seed=seed) for questions, seed in ((400, 1), (25, 2)))
    outcomes = {"many": many.outcomes["quiz"], "few": few.outcomes["quiz"]}
    result, alone = audit(cube_of_outcomes(many.models, many.scenarios, outcomes, weights={})), audit(few)
    steady, noisy = result.used
    assert noisy.noise_floor == alone.figures.noise_floor
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
