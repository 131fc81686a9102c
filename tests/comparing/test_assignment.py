"""The assignment of array items with maximum weight, against brute force."""

from itertools import permutations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from skill_evaluator.comparing.comparison import compare, heaviest

from tests.metrics.orders import order_plan
from tests.support.json_values import thorough

weight = st.integers(0, 4).map(float) | st.sampled_from([0.1, 0.3, 2.5])
matrices = st.tuples(st.integers(1, 6), st.integers(1, 6)).flatmap(
    lambda size: st.lists(st.lists(weight, min_size=size[1], max_size=size[1]), min_size=size[0], max_size=size[0])
)


def heaviest_by_force(weights: list[list[float]]) -> float:
    if len(weights) > len(weights[0]):
        weights = [list(column) for column in zip(*weights, strict=True)]
    columns = permutations(range(len(weights[0])), len(weights))
    return max(sum(weights[row][column] for row, column in enumerate(chosen)) for chosen in columns)


@thorough
@given(weights=matrices)
@example(weights=[[1.0] * 6] * 6)
@example(weights=[[float(row == column or column == 0) for column in range(6)] for row in range(6)])
def test_no_other_assignment_is_heavier(weights: list[list[float]]) -> None:
    chosen = heaviest(weights)
    assert len(chosen) == len(set(chosen.values())) == min(len(weights), len(weights[0]))
    found = sum(weights[row][column] for row, column in chosen.items())
    assert found == pytest.approx(heaviest_by_force(weights), abs=1e-5)


@pytest.mark.parametrize("size", [1, 3, 6, 40])
@pytest.mark.parametrize("weight", [0.0, 2.0])
def test_equally_heavy_assignments_go_to_the_one_nearest_to_the_diagonal(size: int, weight: float) -> None:
    assert heaviest([[weight] * size for _ in range(size)]) == {at: at for at in range(size)}


def test_equal_items_are_paired_first_among_assignments_of_equal_weight() -> None:
    truth, output = [{"sku": "x", "qty": 1}, {"sku": "y", "qty": 1}], [{"sku": "y", "qty": 1}, {"sku": "y", "qty": 2}]
    rows = compare({"lines": truth}, {"lines": output}, order_plan("best"))
    assert [(row.truth_at, row.output_at) for row in rows if row.path == "lines[].sku"] == [
        (("lines", 0, "sku"), ("lines", 1, "sku")),
        (("lines", 1, "sku"), ("lines", 0, "sku")),
    ]
