"""The tests behind verdicts: against scipy, against brute force over every dealing, and what must always hold."""

import math
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from skill_evaluator.verdicts.effects import Effect, adjusted, case_effects, replicate_effect

from tests.support.json_values import thorough

Arm = list[list[float]]
TENTHS = st.integers(0, 10).map(lambda tenths: tenths / 10)
RATES = st.sampled_from([0.0, 1.0])


@pytest.fixture(scope="module")
def stats() -> Any:
    """Scipy's tests, imported for those that compare with them: no other process shall wait for them."""
    from scipy import stats

    return stats


def case_effect(differences: list[float]) -> Effect:
    (found,) = case_effects([differences])
    assert found is not None
    return found


def within(before: Arm, after: Arm, seed: int = 0) -> Effect:
    found = replicate_effect(before, after, seed)
    assert found is not None
    return found


def every_dealing_p(before: Arm, after: Arm) -> float:
    """Of all ways of dealing each case's replicates to the arms, the share that is as far from none as what was."""
    ways = []
    for old, new in zip(before, after, strict=True):
        pooled = old + new
        chosen = [set(places) for places in combinations(range(len(pooled)), len(new))]
        ways.append(
            [
                sum(pooled[at] for at in places) / len(new)
                - sum(score for at, score in enumerate(pooled) if at not in places) / len(old)
                for places in chosen
            ]
        )
    observed = sum(sum(new) / len(new) - sum(old) / len(old) for old, new in zip(before, after, strict=True))
    totals = [abs(sum(dealt)) >= abs(observed) - 1e-9 for dealt in product(*ways)]
    return sum(totals) / len(totals)


def arms(scores: st.SearchStrategy[float], **sizes: int) -> st.SearchStrategy[tuple[Arm, Arm]]:
    """Two arms of the same cases, each with as many replicates."""
    cases = st.integers(1, sizes.get("cases", 4))
    replicates = st.integers(sizes.get("least", 2), sizes.get("most", 4))

    def both(shape: tuple[int, int]) -> st.SearchStrategy[tuple[Arm, Arm]]:
        arm = st.lists(st.lists(scores, min_size=shape[1], max_size=shape[1]), min_size=shape[0], max_size=shape[0])
        return st.tuples(arm, arm)

    return st.tuples(cases, replicates).flatmap(both)


def approximately(found: Effect) -> Any:
    return pytest.approx((found.difference, *found.ci95, found.p), abs=1e-9)


def mirror(effect: Effect) -> Effect:
    """The effect with its sign turned."""
    low, high = effect.ci95
    return replace(effect, difference=-effect.difference, ci95=(-high, -low))


@thorough
@given(pair=arms(RATES, cases=3, most=3))
def test_p_on_these_cases_is_exact_for_rates(pair: tuple[Arm, Arm]) -> None:
    assert within(*pair).p == pytest.approx(every_dealing_p(*pair), abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_p_on_these_cases_is_near_that_of_every_dealing_for_other_scores(seed: int) -> None:
    rng = np.random.default_rng(seed)
    before, after = (rng.random((3, 4)).round(2).tolist() for _ in range(2))
    exact = every_dealing_p(before, after)
    assert within(before, after).p == pytest.approx(exact, abs=5 * math.sqrt(exact / 20_000) + 1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_p_of_one_case_is_scipys_permutation_test(stats: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    before, after = rng.random(5).round(3), (rng.random(5) * 0.8).round(3)
    peer = stats.permutation_test(
        (after, before), lambda x, y: x.mean() - y.mean(), permutation_type="independent", n_resamples=np.inf
    )
    assert within([before.tolist()], [after.tolist()]).p == pytest.approx(peer.pvalue, abs=0.015)


@pytest.mark.parametrize("seed", range(4))
def test_p_beyond_these_cases_is_scipys_sign_test_of_the_mean(stats: Any, seed: int) -> None:
    differences = np.random.default_rng(seed).normal(-0.1, 0.2, 9)
    peer = stats.permutation_test((differences,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert case_effect(differences.tolist()).p == pytest.approx(peer.pvalue, abs=1e-12)


def test_p_of_more_cases_is_drawn_and_near_students(stats: Any) -> None:
    differences = np.random.default_rng(5).normal(-0.03, 0.1, 60)
    assert case_effect(differences.tolist()).p == pytest.approx(stats.ttest_1samp(differences, 0).pvalue, abs=0.01)


@pytest.mark.parametrize(("up", "down", "same"), [(1, 5, 3), (0, 6, 0), (3, 3, 40), (2, 9, 1989), (0, 0, 7)])
def test_p_of_cases_that_were_right_or_wrong_is_mcnemars(stats: Any, up: int, down: int, same: int) -> None:
    found = case_effect([1.0] * up + [-1.0] * down + [0.0] * same)
    expected = stats.binomtest(up, up + down).pvalue if up + down else 1.0
    assert found.p == pytest.approx(expected, abs=1e-12)


@thorough
@given(p_values=st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_q_values_are_scipys(stats: Any, p_values: list[float]) -> None:
    assert adjusted(p_values) == pytest.approx(stats.false_discovery_control(p_values).tolist(), abs=1e-12)


def test_q_values_of_nothing_are_none() -> None:
    assert adjusted([]) == []


def test_the_interval_beyond_these_cases_is_students_with_one_case_more(stats: Any) -> None:
    differences = np.random.default_rng(6).normal(0.05, 0.1, 12)
    error = math.sqrt(differences.var(ddof=1) / 12 + (np.ptp(differences) / 24) ** 2)
    expected = stats.t.interval(0.95, 11, differences.mean(), error)
    assert case_effect(differences.tolist()).ci95 == pytest.approx(expected, abs=1e-12)


def test_the_interval_of_one_case_is_nearly_welchs(stats: Any) -> None:
    rng = np.random.default_rng(7)
    before, after = rng.random(40), rng.random(60) * 0.5
    peer = stats.ttest_ind(after, before, equal_var=False).confidence_interval()
    found = within([before.tolist()], [after.tolist()]).ci95
    assert found == pytest.approx((peer.low, peer.high), abs=0.005)
    assert found[0] < peer.low < peer.high < found[1]


@pytest.mark.parametrize(("n", "share"), [(30, 0.0950), (100, 0.0295), (2, 0.7764)])
def test_where_nothing_varied_the_interval_is_what_may_have_gone_unseen(n: int, share: float) -> None:
    arm = [[0.7] * 2] * (n // 2)
    found = within(arm, arm)
    assert (found.difference, found.p) == (0.0, 1.0)
    assert found.ci95 == pytest.approx((-share, share), abs=1e-4)
    assert case_effect([0.0] * n).ci95 == pytest.approx((-share, share), abs=1e-4)


def test_one_replicate_says_nothing_on_these_cases_and_one_case_nothing_beyond_them() -> None:
    assert replicate_effect([[1.0], [0.5]], [[0.0], [0.5]]) is None
    assert replicate_effect([], []) is None
    assert case_effects([[-1.0], []]) == [None, None]
    assert within([[0.9, 0.8, 0.9, 0.7]], [[0.1, 0.2, 0.1, 0.3]]).p < 0.05


def test_one_replicate_in_one_arm_only_is_enough() -> None:
    found = within([[0.9], [0.8]], [[0.9, 0.7], [0.8, 0.9]])
    assert found.n == 2
    assert found.ci95[0] < found.difference < found.ci95[1]


@thorough
@given(pair=arms(TENTHS) | arms(RATES))
def test_swapping_the_arms_mirrors_all_but_p(pair: tuple[Arm, Arm]) -> None:
    forth, back = within(*pair), within(pair[1], pair[0])
    turned = mirror(back)
    assert (forth.difference, *forth.ci95) == pytest.approx((turned.difference, *turned.ci95), abs=1e-9)
    assert forth.p == pytest.approx(back.p, abs=0.03)


@thorough
@given(differences=st.lists(TENTHS | TENTHS.map(lambda x: -x), min_size=2, max_size=20))
def test_turning_the_differences_mirrors_their_effect(differences: list[float]) -> None:
    forth, back = case_effect(differences), case_effect([-one for one in differences])
    assert (forth.difference, *forth.ci95, forth.p) == approximately(mirror(back))


@thorough
@given(pair=arms(TENTHS, cases=2), random=st.randoms(use_true_random=False))
def test_the_order_of_cases_and_replicates_changes_no_number(pair: tuple[Arm, Arm], random: Any) -> None:
    order = random.sample(range(len(pair[0])), len(pair[0]))
    shuffled = [[random.sample(arm[at], len(arm[at])) for at in order] for arm in pair]
    found, other = within(*pair), within(*shuffled)
    assert (found.difference, *found.ci95) == pytest.approx((other.difference, *other.ci95), abs=1e-9)
    assert found.p == pytest.approx(other.p, abs=0.03)  # the draws fall otherwise
    differences = [sum(new) - sum(old) for old, new in zip(*pair, strict=True)]
    assume(len(differences) > 1)
    moved = case_effect([differences[at] for at in order])
    known = case_effect(differences)
    assert (known.difference, *known.ci95, known.p) == approximately(moved)


@thorough
@given(pair=arms(TENTHS, cases=3) | arms(RATES, cases=6) | arms(st.floats(0, 1), cases=2))
def test_no_interval_is_of_no_width_or_leaves_what_can_be(pair: tuple[Arm, Arm]) -> None:
    differences = [sum(new) / len(new) - sum(old) / len(old) for old, new in zip(*pair, strict=True)]
    for found in (within(*pair), *case_effects([differences])):
        if found is None:
            continue
        low, high = found.ci95
        assert -1.0 <= low <= found.difference + 1e-9
        assert found.difference - 1e-9 <= high <= 1.0
        assert high > low
        assert 0.0 < found.p <= 1.0
        assert found.least_p <= found.p + 1e-9
        assert found.detectable_drop is None or 0.0 < found.detectable_drop <= 1.0


@pytest.mark.parametrize(
    ("cases", "alpha", "can"), [(5, 0.05, False), (6, 0.05, True), (6, 0.01, False), (40, 0.05 / 300, True)]
)
def test_too_few_cases_can_show_no_drop_however_large(cases: int, alpha: float, can: bool) -> None:
    assert (case_effect([-0.9 + 0.01 * at for at in range(cases)]).detectable(alpha) is not None) is can


@pytest.mark.parametrize(("n", "alpha"), [(30, 0.05), (100, 0.05), (100, 0.001)])
def test_where_nothing_varied_a_drop_is_seen_when_enough_answers_fail(stats: Any, n: int, alpha: float) -> None:
    """So many failures that an exact test of none against them is beyond chance, in 80 of 100 runs."""
    drop = within([[1.0] * n], [[1.0] * n]).detectable(alpha)
    assert drop is not None
    least = next(count for count in range(1, n) if stats.binomtest(0, count).pvalue <= alpha)
    assert stats.binom.sf(least - 1, n, drop) == pytest.approx(0.8)
    assert within([[1.0] * n], [[1.0] * (n - least) + [0.0] * least]).p <= alpha


def test_where_nothing_varied_too_few_answers_show_no_drop() -> None:
    assert within([[1.0] * 5], [[1.0] * 5]).detectable_drop is None


def test_a_stricter_level_sees_only_larger_drops() -> None:
    found = case_effect(np.random.default_rng(8).normal(0, 0.1, 30).tolist())
    strict, usual = found.detectable(0.001), found.detectable(0.05)
    assert strict is not None
    assert usual is not None
    assert strict > usual == found.detectable_drop


@pytest.mark.parametrize("replicates", [(2, 3), (10, 10), (1, 4)])
def test_identical_arms_are_no_effect(replicates: tuple[int, int]) -> None:
    found = within([[0.4] * replicates[0]] * 7, [[0.4] * replicates[1]] * 7)
    assert (found.difference, found.p) == (pytest.approx(0.0), 1.0)


def test_the_same_scores_give_the_same_numbers() -> None:
    rng = np.random.default_rng(9)
    before, after = rng.random((20, 5)).tolist(), rng.random((20, 5)).tolist()
    assert replicate_effect(before, after) == replicate_effect(before, after)
