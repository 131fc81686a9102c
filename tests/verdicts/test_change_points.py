"""Change points: found where they were planted, in whatever number, and only as often as α allows where none is."""

import numpy as np
import pytest
from skill_evaluator.verdicts.change_points import as_sequences_of_means, find_splits


def planted(
    levels: list[float], cases: int, replicates: int, seed: int, noise: float = 0.05
) -> list[list[list[float]]]:
    rng = np.random.default_rng(seed)
    ease = rng.uniform(-0.2, 0.2, cases)
    return [[list(rng.normal(level + own, noise, replicates)) for level in levels] for own in ease]


def certain(sequences: list[list[list[float]]], alpha: float = 0.05) -> list[int]:
    return sorted(split.at for split in find_splits(sequences, alpha) if split.p <= alpha)


@pytest.mark.parametrize(
    ("levels", "places"),
    [
        ([0.8, 0.8, 0.8, 0.5, 0.5], [3]),
        ([0.8, 0.5], [1]),
        ([0.8, 0.8, 0.5, 0.5, 0.8, 0.8], [2, 4]),
        ([0.9, 0.7, 0.5, 0.3], [1, 2, 3]),
    ],
)
def test_a_planted_change_is_found_where_it_is(levels: list[float], places: list[int]) -> None:
    assert certain(planted(levels, cases=10, replicates=5, seed=1)) == places


def test_the_first_split_has_the_means_of_either_side() -> None:
    first = find_splits(planted([0.8, 0.8, 0.5], cases=20, replicates=5, seed=3), 0.05)[0]
    assert (first.first, first.at, first.end) == (0, 2, 3)
    assert first.before - first.after == pytest.approx(0.3, abs=0.02)


def test_cases_as_the_sample_take_one_value_of_each() -> None:
    sequences = planted([0.8, 0.8, 0.6], cases=12, replicates=4, seed=5)
    means = as_sequences_of_means(sequences)
    assert {len(arm) for case in means for arm in case} == {1}
    assert certain(means) == [2]
    assert certain(means[:3]) == []  # three cases in three versions: 1 ÷ 12 at best


def test_nothing_that_varies_has_no_change() -> None:
    (only,) = find_splits([[[1.0], [1.0], [1.0]]] * 5, 0.05)
    assert only.p == 1.0


@pytest.mark.parametrize("sequences", [[], [[[0.5, 0.6]]]])
def test_fewer_than_two_versions_are_not_split(sequences: list[list[list[float]]]) -> None:
    assert find_splits(sequences, 0.05) == []


def test_where_nothing_changed_it_is_said_no_more_often_than_alpha() -> None:
    """200 runs at α 0.2: 40 alarms expected, 57 is three standard errors above."""
    alarms = sum(bool(certain(planted([0.5] * 4, 4, 3, seed), alpha=0.2)) for seed in range(200))
    assert 15 <= alarms <= 57


def test_versions_may_have_different_numbers_of_replicates() -> None:
    sequences = planted([0.8, 0.8, 0.5], cases=8, replicates=6, seed=2)
    assert certain([[case[0][:2], case[1], case[2][:3]] for case in sequences]) == [2]
