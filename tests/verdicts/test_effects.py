"""The tests behind verdicts: against scipy, and what must always hold of them."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.verdicts.decide.measuring import ArmStatistics, Effect, paired_effect, replicate_effect
from skill_evaluator.verdicts.decide.rules import measure_verdict

from tests.support.json_values import thorough

LEVEL = 0.035
Arm = list[list[float]]
TENTHS = st.integers(0, 10).map(lambda tenths: tenths / 10)


@pytest.fixture(scope="module")
def stats() -> Any:
    """Scipy's tests, imported for those that compare with them: no other process shall wait for them."""
    from scipy import stats

    return stats


def paired(before: Arm, after: Arm, day_variance: float = 0.0) -> Effect:
    found = paired_effect(ArmStatistics.of(before), ArmStatistics.of(after), day_variance)
    assert found is not None
    return found


def of_differences(differences: list[float], day_variance: float = 0.0) -> Effect:
    """The effect of cases that moved by so much each, from 0."""
    return paired([[0.0]] * len(differences), [[one] for one in differences], day_variance)


def within(before: Arm, after: Arm) -> Effect:
    found = replicate_effect(ArmStatistics.of(before), ArmStatistics.of(after))
    assert found is not None
    return found


def arms(scores: st.SearchStrategy[float], *, least: int = 2) -> st.SearchStrategy[tuple[Arm, Arm]]:
    """Two arms of the same cases, each with as many replicates."""

    def two(shape: tuple[int, int]) -> st.SearchStrategy[tuple[Arm, Arm]]:
        arm = st.lists(st.lists(scores, min_size=shape[1], max_size=shape[1]), min_size=shape[0], max_size=shape[0])
        return st.tuples(arm, arm)

    return st.tuples(st.integers(2, 6), st.integers(least, 4)).flatmap(two)


def test_effect_without_outliers_is_a_t_test(stats: Any) -> None:
    differences = np.random.default_rng(5).normal(-0.03, 0.1, 60)
    found = of_differences(differences.tolist())
    error = math.sqrt(differences.var(ddof=1) / 60 + (differences.mean() / 120) ** 2)
    assert found.ci95 == pytest.approx(stats.t.interval(0.95, 59, differences.mean(), error), abs=0.001)
    assert found.p == pytest.approx(stats.t.sf(abs(differences.mean()) / error, 59), rel=0.02)
    assert found.p == pytest.approx(stats.ttest_1samp(differences, 0, alternative="less").pvalue, rel=0.05)


def test_p_of_one_case_agrees_with_a_permutation_test(stats: Any) -> None:
    rng = np.random.default_rng(7)
    before, after = rng.random(12), rng.random(15) * 0.8
    dealt = stats.permutation_test(
        (after, before), lambda x, y: x.mean() - y.mean(), alternative="less", n_resamples=20_000, rng=1
    )
    assert within([before.tolist()], [after.tolist()]).p == pytest.approx(dealt.pvalue, abs=0.01)


@pytest.mark.parametrize(("cases", "significant"), [(2, False), (3, True), (4, True), (12, True)])
def test_equal_drops_are_significant_from_three_cases_on(cases: int, *, significant: bool) -> None:
    """A variance estimated as 0 from few cases is not 0."""
    found = of_differences([-0.4] * cases)
    assert found.error == pytest.approx(0.2 / cases)
    assert (found.p <= LEVEL) is significant


@thorough
@given(
    tenths=st.lists(st.integers(-10, 10), min_size=7, max_size=12),
    down=st.lists(st.integers(0, 10), min_size=12, max_size=12),
)
def test_lower_scores_hardly_raise_p(tenths: list[int], down: list[int]) -> None:
    """Clipping is not exact, and below 0.01 sparing: by a quarter at most."""
    found = of_differences([one / 10 for one in tenths])
    lower = of_differences([max(-10, one - by) / 10 for one, by in zip(tenths, down, strict=False)])
    if found.difference < 0:
        assert lower.p <= 1.25 * max(found.p, 0.01)
    if lower.difference > 0:
        assert max(lower.p, 0.01) >= 0.75 * found.p


def test_one_outlier_does_not_hide_a_drop() -> None:
    alike = [-0.06 + 0.005 * (at % 3) for at in range(8)]
    assert of_differences(alike).p < 0.001
    assert of_differences([*alike[:7], -1.0]).p < 0.001  # Student's t alone: 0.09


@pytest.mark.parametrize(("broken", "p"), [(2, 0.0), (3, 0.01), (4, 0.01)])
def test_p_below_1_percent_requires_few_clipped_cases(broken: int, p: float) -> None:
    """Of ten cases a quarter may be clipped; with more, the drops may be those of a few cases alone."""
    found = of_differences([-0.06 + 0.005 * (at % 3) for at in range(10 - broken)] + [-1.0] * broken)
    assert found.p == pytest.approx(p, abs=1e-4)


def test_variance_of_a_day_widens_the_interval(stats: Any) -> None:
    differences = np.random.default_rng(8).normal(-0.1, 0.1, 20)
    alone, apart = of_differences(differences.tolist()), of_differences(differences.tolist(), 0.02**2)
    assert apart.error == pytest.approx(math.hypot(alone.error, 0.02))
    assert apart.degrees == pytest.approx(19 * (apart.error / alone.error) ** 4)
    assert apart.p > alone.p
    assert stats.t.sf(-apart.difference / apart.error, apart.degrees) == pytest.approx(apart.p, rel=0.2)


def test_rise_error_includes_replicates_if_the_candidate_has_fewer(stats: Any) -> None:
    found = paired([[0.4, 0.6] * 2] * 4, [[0.6] * 2] * 4)
    least = 4 * (0.04 / 3) * (1 / 4 + 1 / 2) / 4**2
    error = math.sqrt(least + (0.1 / (2 * 4)) ** 2)
    assert found.p == pytest.approx(stats.t.sf(0.1 / error, 3))
    assert paired([[0.4, 0.6] * 2] * 4, [[0.6] * 4] * 4).p < found.p


def test_few_replicates_of_an_unchanged_version_are_rarely_improved() -> None:
    rng, improved = np.random.default_rng(7), 0
    for _ in range(400):
        before, after = (rng.binomial(1, 0.95, (12, count)).tolist() for count in (10, 2))
        effect = paired(before, after)
        improved += measure_verdict(effect, effect.p, 0.05, LEVEL, 0.05) == "improved"
    assert improved <= 20


@pytest.mark.parametrize(("before", "after"), [(2, 3), (10, 5), (1, 2)])
def test_equal_outputs_of_both_versions_have_no_error(before: int, after: int) -> None:
    found = paired([[0.7] * before] * 3, [[0.7] * after] * 3, day_variance=0.01)
    assert (found.difference, found.error, found.ci95) == (0.0, 0.0, (0.0, 0.0))


@pytest.mark.parametrize(("n", "share"), [(15, 0.1810), (59, 0.0495), (100, 0.0295)])
def test_single_equal_outputs_leave_unseen_failures(n: int, share: float) -> None:
    found = paired([[1.0]] * n, [[1.0]] * n)
    assert found.unseen == pytest.approx(share, abs=1e-4)
    assert measure_verdict(found, 0.5, 0.05, LEVEL, 0.05) == ("unchanged" if n >= 59 else "inconclusive")
    assert paired([[1.0] * 2] * n, [[1.0] * 2] * n).unseen == 0.0


@thorough
@given(differences=st.lists(st.integers(-10, 10).map(lambda tenths: tenths / 10), min_size=6, max_size=15))
def test_interval_excludes_0_exactly_if_p_is_below_0_025(differences: list[float]) -> None:
    found = of_differences(differences)
    low, high = found.ci95
    if abs(found.p - 0.025) > 1e-6:
        assert (found.p < 0.025) is (low > 0.0 or high < 0.0)


def test_effects_are_none_for_one_case_or_one_replicate() -> None:
    assert paired_effect(ArmStatistics.of([[1.0, 1.0]]), ArmStatistics.of([[0.0, 0.0]])) is None
    assert replicate_effect(ArmStatistics.of([[1.0], [0.5]]), ArmStatistics.of([[0.0], [0.5]])) is None
    assert within([[0.9, 0.8, 0.9, 0.7]], [[0.1, 0.2, 0.1, 0.3]]).p < 0.04


def test_replicate_effect_requires_replicates_of_one_version() -> None:
    many, single = [[0.9, 0.7], [0.5, 0.9]], [[0.8], [0.7]]
    found = within(single, many)
    assert found.error == pytest.approx(math.sqrt((0.01 + 0.04) * 1.5 / 4), rel=0.01)
    assert within(many, single).error == pytest.approx(found.error)


def test_case_with_one_replicate_has_the_variance_of_the_others() -> None:
    arm = ArmStatistics.of([[0.9, 0.7], [0.8]])
    assert arm.variances.tolist() == pytest.approx([0.02, 0.02])


@thorough
@given(pair=arms(TENTHS) | arms(st.sampled_from([0.0, 1.0])))
def test_swapping_the_versions_mirrors_the_effect(pair: tuple[Arm, Arm]) -> None:
    forth, back = within(*pair), within(pair[1], pair[0])
    assert (-back.difference, -back.ci95[1], -back.ci95[0], back.p) == pytest.approx(
        (forth.difference, *forth.ci95, forth.p), abs=1e-9
    )


@thorough
@given(pair=arms(TENTHS), random=st.randoms(use_true_random=False))
def test_effect_ignores_the_order_of_cases_and_replicates(pair: tuple[Arm, Arm], random: Any) -> None:
    order = random.sample(range(len(pair[0])), len(pair[0]))
    shuffled = [[random.sample(arm[at], len(arm[at])) for at in order] for arm in pair]
    for effect in (paired, within):
        found, other = effect(*pair), effect(*shuffled)
        assert (found.difference, *found.ci95, found.p) == pytest.approx(
            (other.difference, *other.ci95, other.p), abs=1e-9
        )


@thorough
@given(pair=arms(TENTHS, least=1) | arms(st.floats(0, 1)))
def test_interval_contains_the_difference(pair: tuple[Arm, Arm]) -> None:
    found = paired(*pair)
    low, high = found.ci95
    assert -1.0 <= low <= found.difference + 1e-9
    assert found.difference - 1e-9 <= high <= 1.0
    assert 0.0 <= found.p <= 0.5 + 1e-9
    drop = found.detectable(LEVEL)
    assert drop is None or 0.0 < drop <= 1.0


def test_printed_detectable_drop_has_80_percent_power(stats: Any) -> None:
    """Twenty cases whose differences vary by 0.1: the drop printed, against the test itself."""
    rng, level = np.random.default_rng(10), LEVEL
    printed = np.median([of_differences(rng.normal(0, 0.1, 20).tolist()).detectable(level) for _ in range(200)])
    found = [of_differences(rng.normal(-printed, 0.1, 20).tolist()).p <= level for _ in range(1000)]
    assert np.mean(found) == pytest.approx(0.8, abs=0.04)
    strict = of_differences(rng.normal(0, 0.1, 20).tolist())
    assert strict.detectable(0.001) > strict.detectable(level)  # type: ignore[operator]
