"""Which cases moved: named where it is sure, and rarely where nothing moved."""

import numpy as np
import pytest
from skill_evaluator.verdicts.decide.cases import FALSE_NAMES, moved_beyond_chance
from skill_evaluator.verdicts.decide.measuring import Measured

from tests.support.rules import a_measured


def measure(before: np.ndarray, after: np.ndarray, *, draws: bool) -> Measured:
    return a_measured(before.tolist(), after.tolist(), draws=draws)


@pytest.mark.parametrize("draws", [True, False], ids=["replicates are draws", "a case is one draw"])
def test_broken_cases_are_named_and_few_others(*, draws: bool) -> None:
    """Two hundred comparisons of forty cases × 5, three of them broken."""
    rng = np.random.default_rng(1)
    hits = named = false = 0
    for _ in range(200):
        level = rng.uniform(0.5, 0.9, (40, 1))
        before, after = (level + rng.normal(0, 0.1, (40, 5)) for _ in range(2))
        after[:3] = 0.0
        moved = moved_beyond_chance(measure(before, after, draws=draws))
        hits += sum(moved[:3])
        named += sum(moved)
        false += sum(moved[3:])
    assert hits >= 0.95 * 600
    assert false / named <= FALSE_NAMES


@pytest.mark.parametrize("draws", [True, False], ids=["replicates are draws", "a case is one draw"])
def test_where_nothing_moved_hardly_any_case_is_named(*, draws: bool) -> None:
    rng = np.random.default_rng(2)
    some = 0
    for _ in range(200):
        before, after = (rng.normal(0.7, 0.1, (40, 5)) for _ in range(2))
        some += any(moved_beyond_chance(measure(before, after, draws=draws)))
    assert some / 200 <= FALSE_NAMES + 0.04  # two standard errors


def test_right_and_wrong_of_single_draws_name_no_case() -> None:
    """Three cases flipped from right to wrong: three coin tosses do that, too."""
    before, after = np.ones((40, 1)), np.ones((40, 1))
    after[:3] = 0.0
    assert not any(moved_beyond_chance(measure(before, after, draws=False)))
    before, after = np.ones((40, 5)), np.ones((40, 5))
    after[:3] = 0.0
    assert sum(moved_beyond_chance(measure(before, after, draws=True))) == 3


def test_a_document_in_which_all_was_right_and_nothing_is_needs_no_other_to_be_named() -> None:
    """Six documents, five of which did not move at all; a coin that fell otherwise is not such a document."""
    before = np.full((6, 5), 0.95)
    after = before.copy()
    after[2] = 0.05
    assert moved_beyond_chance(measure(before, after, draws=False)) == [False, False, True, False, False, False]
    assert not any(moved_beyond_chance(measure(np.ones((6, 5)), np.eye(6)[:, :5] * 0.0, draws=False)))
