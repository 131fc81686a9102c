"""Position, length, self-preference, probes, the use of the scale, repeatability and confidence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.judges.calibration.against_people import reliability_of
from skill_evaluator.judges.statistics.bounded import difference
from skill_evaluator.judges.statistics.habits import middle_excess, position_bias, repeatability, shift, spread_ratio

from benchmarks.simulated_judges import Judge, confident, judged, narrowed

VERDICTS = st.lists(st.tuples(*[st.sampled_from([1, 2, "tie", None])] * 2), min_size=2, max_size=60)


@given(VERDICTS)
def test_naming_the_outputs_the_other_way_round_changes_no_position_bias(pairs: list[tuple[object, object]]) -> None:
    in_order, swapped = zip(*pairs, strict=True)
    renamed = {1: 2, 2: 1, "tie": "tie", None: None}
    here = position_bias(in_order, swapped)
    there = position_bias([renamed[one] for one in swapped], [renamed[one] for one in in_order])
    assert here == there
    assert here.lean.ci95[0] < here.lean.ci95[1]


def test_a_judge_that_goes_by_position_alone_always_flips_and_other_flips_are_noise() -> None:
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


def test_what_people_prefer_too_is_no_bias_and_a_probe_shifts_by_a_share_of_the_scale() -> None:
    assert shift([1, 1, 1, 0], [1, 1, 1, 0]).value == 0
    low, high = shift([1] * 20, [1] * 20).ci95 or (0, 0)
    assert low < 0 < high
    assert shift([0, 0, 1, 1], [1, 0, 1, 1]).value == 0.25
    assert shift([2, 4], [3, 5], (1, 5)).value == 0.25


def test_a_narrow_judge_is_told_from_one_like_people_and_one_score_has_no_spread() -> None:
    judge, people = narrowed(300, np.random.default_rng(4))
    assert middle_excess(judge.tolist(), people.tolist(), (1, 5)).ci95[0] > 0
    assert spread_ratio(judge.tolist(), people.tolist()).ci95[1] < 1
    assert (middle_excess(people, people, (1, 5)).value, spread_ratio(people, people).value) == (0, 1)
    assert middle_excess([3, 3, 3, 3], [1, 2, 4, 5], (1, 5)).value == 0.5
    assert spread_ratio([3, 3, 3, 3], [1, 2, 4, 5]).value is None
    assert spread_ratio([3, 3, 3, 4], [1, 2, 4, 5]).ci95 is None  # one text makes all of it


def test_repeatability_counts_pairs_of_answers() -> None:
    assert repeatability([[1, 1, 1, 2], [2, 2]]).value == pytest.approx((3 / 6 + 1) / 2)
    low, high = repeatability([[1, 1]] * 30).ci95 or (0, 0)
    assert low == pytest.approx(0.05 ** (1 / 30))
    assert high == 1


def test_what_was_not_parsed_is_neither_a_flip_nor_noise() -> None:
    pairs = [(1, 1), (1, 2), (None, None), (None, 1), (2, None)]
    flips = position_bias(*zip(*pairs, strict=True)).flips
    assert (flips.value, flips.n) == (0.5, 2)
    same = repeatability([*pairs, (2, None, 2)])
    assert (same.value, same.n) == (pytest.approx(2 / 3), 3)


CONFIDENCES = st.lists(st.tuples(st.integers(0, 100), st.booleans()), min_size=1, max_size=80)


@given(CONFIDENCES)
def test_the_reliability_table_is_that_of_scikit_learn(verdicts: list[tuple[int, bool]]) -> None:
    from sklearn.calibration import calibration_curve

    """A confidence on the border of two bins may stand in either; all others stand where scikit-learn has them."""
    inner = [(per_cent / 100, right) for per_cent, right in verdicts if per_cent % 10]
    held = reliability_of([sure for sure, _ in inner], [right for _, right in inner])
    if not inner:
        assert held.error.value is None
        return
    share, mean = calibration_curve([right for _, right in inner], [sure for sure, _ in inner], n_bins=10)
    assert [part.right.value for part in held.table] == pytest.approx(share, abs=1e-6)
    assert [part.confidence for part in held.table] == pytest.approx(mean)
    assert sum(part.right.n for part in held.table) == len(inner)


@given(CONFIDENCES)
def test_calibration_error_and_ranking(verdicts: list[tuple[int, bool]]) -> None:
    from sklearn.metrics import roc_auc_score

    sure, right = [per_cent / 100 for per_cent, _ in verdicts], [was for _, was in verdicts]
    held = reliability_of(sure, right)
    expected = sum(part.right.n / len(verdicts) * abs((part.right.value or 0) - part.confidence) for part in held.table)
    assert held.error.value == pytest.approx(expected, abs=1e-6)
    if len(set(right)) == 1:
        assert held.follows is None
        return
    assert held.ranking.value == pytest.approx(roc_auc_score(right, sure), abs=1e-6)


def test_confidence_that_follows_nothing_is_none() -> None:
    rng = np.random.default_rng(6)
    sure, right = confident(300, 0.1, rng)
    assert reliability_of(sure.tolist(), right.tolist()).follows is True
    assert reliability_of(rng.permutation(sure).tolist(), right.tolist()).follows is False
