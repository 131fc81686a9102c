"""Position bias, shifts and repeatability."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.judges.statistics.biases import position_bias, repeatability, shift
from skill_evaluator.judges.statistics.bounded import difference

from benchmarks.simulated_judges import Judge, judged

VERDICTS = st.lists(st.tuples(*[st.sampled_from([1, 2, "tie", None])] * 2), min_size=2, max_size=60)


@given(VERDICTS)
def test_renaming_the_outputs_changes_no_position_bias(pairs: list[tuple[object, object]]) -> None:
    in_order, swapped = zip(*pairs, strict=True)
    renamed = {1: 2, 2: 1, "tie": "tie", None: None}
    here = position_bias(in_order, swapped)
    there = position_bias([renamed[one] for one in swapped], [renamed[one] for one in in_order])
    assert here == there
    assert here.lean.ci95[0] < here.lean.ci95[1]


def test_flips_of_a_judge_without_position_bias_are_noise() -> None:
    pairs = judged(Judge(position=1.0, length=0.0, own=0.0, noise=0.0), 100, np.random.default_rng(1))
    bias = position_bias(pairs.in_order.tolist(), pairs.swapped.tolist())
    assert (bias.flips.value, bias.picks_first.value, bias.lean.value) == (1, 1, 1)
    assert 0.9 < bias.lean.ci95[0] < 1
    noisy = judged(Judge(position=0.0, length=0.0, own=0.0, noise=0.4), 400, np.random.default_rng(3))
    bias = position_bias(noisy.in_order.tolist(), noisy.swapped.tolist())
    noise = position_bias(noisy.in_order.tolist(), noisy.again.tolist()).flips
    assert bias.flips.value > 0.25
    low, high = difference(bias.flips, noise).ci95 or (1, 1)
    assert low < 0 < high


def test_swapping_removes_a_pure_position_bias() -> None:
    """What both orders agree on is right as often as where the judge looks, and the rest is a tie."""
    judge = Judge(position=0.4, length=0.0, own=0.0, noise=0.0, accuracy=0.9)
    pairs = judged(judge, 20_000, np.random.default_rng(2))
    agreed = pairs.in_order == pairs.swapped
    assert (pairs.in_order == pairs.label).mean() == pytest.approx(0.6 * 0.9 + 0.4 * 0.5, abs=0.01)
    assert (pairs.in_order == pairs.label)[agreed].mean() == pytest.approx(0.9, abs=0.01)
    assert agreed.mean() == pytest.approx(0.6, abs=0.01)
    wins = np.where(agreed, pairs.in_order == 1, 0.5)  # a disagreement is a tie at 0.5
    assert wins.mean() == pytest.approx(0.5, abs=0.01)
    assert (pairs.in_order == 1).mean() == pytest.approx(0.7, abs=0.01)


def test_shift_is_a_share_of_the_scale() -> None:
    assert shift([1, 1, 1, 0], [1, 1, 1, 0]).value == 0
    low, high = shift([1] * 20, [1] * 20).ci95 or (0, 0)
    assert low < 0 < high
    assert shift([0, 0, 1, 1], [1, 0, 1, 1]).value == 0.25
    assert shift([2, 4], [3, 5], (1, 5)).value == 0.25


def test_repeatability_counts_pairs_of_outputs() -> None:
    assert repeatability([[1, 1, 1, 2], [2, 2]]).value == pytest.approx((3 / 6 + 1) / 2)
    low, high = repeatability([[1, 1]] * 30).ci95 or (0, 0)
    assert low == pytest.approx(0.05 ** (1 / 30))
    assert high == 1


def test_unparsed_verdict_is_neither_a_flip_nor_noise() -> None:
    pairs = [(1, 1), (1, 2), (None, None), (None, 1), (2, None)]
    flips = position_bias(*zip(*pairs, strict=True)).flips
    assert (flips.value, flips.n) == (0.5, 2)
    same = repeatability([*pairs, (2, None, 2)])
    assert (same.value, same.n) == (pytest.approx(2 / 3), 3)
