"""Change points: found where they were planted, in whatever number, and only as often as α allows where none is."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.verdicts import change_points
from skill_evaluator.verdicts.change_points import Chance, cusum, find_splits, means_by_case

REPLICATES = Chance(gate="fixtures", independent=True)
VERSIONS = Chance(gate="fixtures")
CASES = Chance(gate="generalises")
BOTH = Chance(gate="robust", independent=True)


def planted(
    levels: list[float], cases: int, replicates: int, seed: int, noise: float = 0.05
) -> list[list[list[float]]]:
    rng = np.random.default_rng(seed)
    ease = rng.uniform(-0.2, 0.2, cases)
    return [[list(rng.normal(level + own, noise, replicates)) for level in levels] for own in ease]


def certain(sequences: list[list[list[float]]], chance: Chance = REPLICATES, alpha: float = 0.05) -> list[int]:
    return sorted(split.at for split in find_splits(sequences, alpha, chance) if split.p <= alpha)


@pytest.mark.parametrize("chance", [REPLICATES, VERSIONS, CASES, BOTH])
@pytest.mark.parametrize(
    ("levels", "places"),
    [
        ([0.8, 0.8, 0.8, 0.5, 0.5], [3]),
        ([0.8, 0.5], [1]),
        ([0.8, 0.8, 0.5, 0.5, 0.8, 0.8], [2, 4]),
        ([0.9, 0.7, 0.5, 0.3], [1, 2, 3]),
    ],
)
def test_a_planted_change_is_found_where_it_is(levels: list[float], places: list[int], chance: Chance) -> None:
    assert certain(planted(levels, cases=10, replicates=5, seed=1), chance) == places


def test_the_first_split_has_the_means_of_either_side() -> None:
    first = find_splits(planted([0.8, 0.8, 0.5], cases=20, replicates=5, seed=3), 0.05, REPLICATES)[0]
    assert (first.first, first.at, first.end, first.depth) == (0, 2, 3, 0)
    assert first.before - first.after == pytest.approx(0.3, abs=0.02)


def test_answers_that_count_as_one_draw_need_more_cases() -> None:
    sequences = planted([0.8, 0.8, 0.6], cases=12, replicates=4, seed=5)
    assert certain(sequences, VERSIONS) == [2]
    assert certain(sequences[:3], REPLICATES) == [2]
    assert certain(sequences[:3], VERSIONS) == []  # three signs: 1 ÷ 4 at best


def test_beyond_these_cases_two_of_them_say_nothing() -> None:
    sequences = planted([0.8, 0.8, 0.8, 0.3, 0.3], cases=2, replicates=20, seed=5)
    assert certain(sequences, REPLICATES) == [3]
    assert certain(sequences, CASES) == certain(sequences, BOTH) == []


def test_for_both_questions_the_larger_p_counts() -> None:
    sequences = planted([0.8, 0.8, 0.78, 0.77], cases=8, replicates=3, seed=6)
    on_these, beyond, both = (find_splits(sequences, 0.0, chance)[0].p for chance in (REPLICATES, CASES, BOTH))
    assert both == pytest.approx(max(on_these, beyond), abs=0.03)


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few draws that many sequences can be tried."""
    monkeypatch.setattr(change_points, "_DRAWS", 199)


@pytest.mark.usefixtures("few_draws")
def test_what_a_run_does_to_all_cases_is_no_change() -> None:
    """Every run has a day of its own, which dealing within cases does not show; the noise of runs does."""
    alarms = {False: 0, True: 0}
    for seed in range(60):
        rng = np.random.default_rng(seed)
        sequences = planted(list(0.5 + rng.normal(0, 0.05, 8)), cases=10, replicates=3, seed=seed)
        for allowed in alarms:
            chance = Chance(gate="robust", runs=(0.05,) * 8 if allowed else ())
            alarms[allowed] += bool(certain(sequences, chance))
    assert alarms[False] > 30
    assert alarms[True] <= 9  # 3 expected at 5 %


def test_fewer_degrees_of_freedom_make_runs_noisier() -> None:
    sequences = planted([0.5] * 4 + [0.4] * 4, cases=10, replicates=3, seed=1)
    few, many = (
        find_splits(sequences, 0.0, Chance(gate="robust", runs=(0.03,) * 8, degrees=degrees))[0].p
        for degrees in (2.0, float("inf"))
    )
    assert few > 2 * many


@pytest.mark.usefixtures("few_draws")
def test_versions_that_take_after_the_one_before_are_no_change_beyond_these_cases() -> None:
    """Each case wanders by itself: dealing takes that for a change of these cases, and signs do not."""
    alarms = {"fixtures": 0, "generalises": 0}
    for seed in range(60):
        steps = np.random.default_rng(seed).normal(0, 0.1, (20, 12)).cumsum(axis=1)
        sequences = [[[score] for score in case] for case in steps.tolist()]
        alarms["fixtures"] += bool(certain(sequences, REPLICATES))
        alarms["generalises"] += bool(certain(sequences, CASES))
    assert alarms["fixtures"] > 12
    assert alarms["generalises"] <= 9  # 3 expected at 5 %


@given(st.lists(st.floats(0, 1).map(lambda score: round(score, 3)), min_size=3, max_size=12).map(np.array))
def test_the_best_split_is_where_ruptures_has_it(means: Any) -> None:
    """Binary segmentation of squared errors has its first split where CUSUM is largest; equal ones may be swapped."""
    import ruptures

    statistic = cusum(means)
    theirs, _ = ruptures.Binseg(model="l2", jump=1, min_size=1).fit(means.reshape(-1, 1)).predict(n_bkps=1)
    (split, *_) = find_splits([[[score] for score in means]], 0.0, VERSIONS)
    assert statistic[split.at - 1] == pytest.approx(statistic[theirs - 1], abs=1e-6)
    assert statistic[split.at - 1] == statistic.max()


def test_the_statistic_is_that_of_a_textbook() -> None:
    assert cusum(np.array([0.0, 0.0, 1.0])) == pytest.approx([0.5 * (2 / 3) ** 0.5, (2 / 3) ** 0.5])
    assert means_by_case([[[0.0, 1.0], [1.0]]]).tolist() == [[0.5, 1.0]]


def test_nothing_that_varies_has_no_change() -> None:
    (only,) = find_splits([[[1.0], [1.0], [1.0]]] * 5, 0.05, BOTH)
    assert only.p == 1.0


@pytest.mark.parametrize("sequences", [[], [[[0.5, 0.6]]]])
def test_fewer_than_two_versions_are_not_split(sequences: list[list[list[float]]]) -> None:
    assert find_splits(sequences, 0.05, BOTH) == []


@pytest.mark.usefixtures("few_draws")
def test_where_nothing_changed_it_is_said_no_more_often_than_alpha() -> None:
    """200 runs at α 0.2: 40 alarms expected, 57 is three standard errors above."""
    alarms = sum(bool(certain(planted([0.5] * 4, 4, 3, seed), alpha=0.2)) for seed in range(200))
    assert 15 <= alarms <= 57


def test_versions_may_have_different_numbers_of_replicates() -> None:
    sequences = planted([0.8, 0.8, 0.5], cases=8, replicates=6, seed=2)
    assert certain([[case[0][:2], case[1], case[2][:3]] for case in sequences]) == [2]
