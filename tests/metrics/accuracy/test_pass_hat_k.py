"""pass^k by hand, and against what it estimates: all draws of k answers out of n."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.metrics.accuracy.pass_hat_k import pass_hat_k

from tests.support.json_values import thorough


@pytest.mark.parametrize(
    ("successes", "n", "k", "expected"),
    [
        (4, 4, 1, 1.0),
        (4, 4, 4, 1.0),
        (3, 4, 1, 3 / 4),
        (3, 4, 2, 3 / 6),  # C(3,2) ÷ C(4,2)
        (3, 4, 3, 1 / 4),
        (3, 4, 4, 0.0),
        (0, 4, 1, 0.0),
        (1, 1, 1, 1.0),
        (2, 2, 3, None),  # three of two answers cannot be drawn
        (0, 0, 1, None),
    ],
)
def test_chance_that_k_of_n_answers_are_all_right(successes: int, n: int, k: int, expected: float | None) -> None:
    assert pass_hat_k(successes, n, k) == expected


@thorough
@given(outcomes=st.lists(st.booleans(), min_size=1, max_size=7), k=st.integers(1, 7))
def test_it_is_the_share_of_all_draws_of_k_that_succeed(outcomes: list[bool], k: int) -> None:
    draws = [all(draw) for draw in combinations(outcomes, k)]
    expected = sum(draws) / len(draws) if draws else None
    assert pass_hat_k(sum(outcomes), len(outcomes), k) == (expected if expected is None else pytest.approx(expected))
