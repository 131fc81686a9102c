"""pass^k against what it estimates: all draws of k answers out of n."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.metrics.accuracy.pass_hat_k import KS, pass_hat_k

from tests.support.json_values import thorough


@thorough
@given(outcomes=st.lists(st.booleans(), max_size=7), k=st.integers(1, 7))
def test_it_is_the_share_of_all_draws_of_k_that_succeed(outcomes: list[bool], k: int) -> None:
    draws = [all(draw) for draw in combinations(outcomes, k)]
    expected = sum(draws) / len(draws) if draws else None
    assert pass_hat_k(sum(outcomes), len(outcomes), k) == (expected if expected is None else pytest.approx(expected))


def test_recorded_ks() -> None:
    assert KS == (1, 2, 3, 5, 10)
