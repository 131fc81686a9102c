"""Position bias, shifts, repeatability and rates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.judges.statistics.biases import own_noise, position_bias, repeatability, shift
from skill_evaluator.judges.statistics.bounded import Figure, corrected_rate, difference, mean_within, rate

from benchmarks.simulated_judges import Judge, judged

VERDICTS = st.lists(st.tuples(*[st.sampled_from([1, 2, "tie", None])] * 2), min_size=2, max_size=60)
RATES = st.integers(1, 60).flatmap(lambda n: st.builds(rate, st.integers(0, n), st.just(n)))


@given(VERDICTS)
def test_renaming_the_outputs_changes_no_position_bias(pairs: list[tuple[object, object]]) -> None:
    in_order, swapped = zip(*pairs, strict=True)
    renamed = {1: 2, 2: 1, "tie": "tie", None: None}
    bias = position_bias(in_order, swapped)
    assert bias == position_bias([renamed[one] for one in swapped], [renamed[one] for one in in_order])
    assert bias.lean.ci95[0] < bias.lean.ci95[1]


def test_flips_of_a_judge_without_position_bias_are_noise() -> None:
    pairs = judged(Judge(position=1.0, length=0.0, own=0.0, noise=0.0), 100, np.random.default_rng(1))
    bias = position_bias(pairs.in_order.tolist(), pairs.swapped.tolist())
    assert (bias.flips.value, bias.picks_first.value, bias.lean.value) == (1, 1, 1)
    noisy = judged(Judge(position=0.0, length=0.0, own=0.0, noise=0.4), 400, np.random.default_rng(3))
    bias = position_bias(noisy.in_order.tolist(), noisy.swapped.tolist())
    noise = position_bias(noisy.in_order.tolist(), noisy.again.tolist()).flips
    assert bias.flips.value > 0.25
    assert not difference(bias.flips, noise).excludes(0.0)


def test_shift_is_a_share_of_the_scale() -> None:
    assert not shift([1] * 20, [1] * 20).excludes(0.0)
    assert shift([0, 0, 1, 1], [1, 0, 1, 1]).value == 0.25
    assert shift([2, 4], [3, 5], (1, 5)).value == 0.25


def test_repeatability_counts_pairs_of_parsed_outputs() -> None:
    assert repeatability([[1, 1, 1, 2], [2, 2]]).value == pytest.approx((3 / 6 + 1) / 2)
    same = repeatability([(1, 1), (1, 2), (None, None), (None, 1), (2, None, 2)])
    assert (same.value, same.n) == (pytest.approx(2 / 3), 3)
    assert own_noise([[[1], [2]]]) is None
    flips = position_bias([1, 1, None, None, 2], [1, 2, None, 1, None]).flips
    assert (flips.value, flips.n) == (0.5, 2)


@given(RATES, RATES, RATES)
def test_corrected_rate_has_an_interval_that_holds_it(found: Figure, quiet: Figure, given: Figure) -> None:
    corrected = corrected_rate(given, found, quiet)
    low, high = corrected.ci95 or (1, 0)
    assert 0 <= low < high <= 1
    assert corrected.value is None or low <= corrected.value <= high
    assert (corrected.value is None) == (found.value + quiet.value <= 1 + 1e-6)
    assert corrected == corrected_rate(given, found, quiet), "the same counts give the same interval"


def test_corrected_rate_of_a_judge_that_never_errs_is_the_reported_one() -> None:
    corrected = corrected_rate(rate(30, 100), rate(1000, 1000), rate(1000, 1000))
    assert corrected.value == pytest.approx(0.3)
    assert corrected.ci95 == (pytest.approx(0.22, abs=0.02), pytest.approx(0.39, abs=0.02))


def test_corrected_rate_of_a_guessing_judge_is_unknown() -> None:
    corrected = corrected_rate(rate(50, 100), rate(25, 50), rate(50, 100))
    low, high = corrected.ci95 or (1, 0)
    assert corrected.value is None
    assert high - low > 0.9


def test_figures_of_nothing_have_no_interval() -> None:
    assert rate(0, 0).ci95 is mean_within([]).ci95 is corrected_rate(rate(1, 2), rate(0, 0), rate(1, 2)) is None
    assert difference(rate(0, 0), rate(1, 2)).value is None
