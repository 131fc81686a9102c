"""The assignment against brute force: of weights, and of items whose leaves are compared by every kind of rule."""

import copy
from itertools import permutations
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from skill_evaluator.comparing.array_items import MemoizedValue
from skill_evaluator.comparing.comparison import Pair, _Comparison, heaviest
from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule

from tests.metrics.orders import order_plan
from tests.support.json_values import quick, thorough

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
def test_no_assignment_is_heavier(weights: list[list[float]]) -> None:
    chosen = heaviest(weights)
    assert len(chosen) == len(set(chosen.values())) == min(len(weights), len(weights[0]))
    found = sum(weights[row][column] for row, column in chosen.items())
    assert found == pytest.approx(heaviest_by_force(weights), abs=1e-5)


@pytest.mark.parametrize("size", [1, 3, 6, 40])
@pytest.mark.parametrize("weight", [0.0, 2.0])
def test_of_equally_heavy_ones_the_nearest_to_the_diagonal(size: int, weight: float) -> None:
    assert heaviest([[weight] * size for _ in range(size)]) == {at: at for at in range(size)}


CLOSE = FieldRule(compare="number", tolerance=0.005)
PLANS = {
    "exact": order_plan("best"),
    "close": order_plan("best", lines__price=CLOSE, lines__qty=FieldRule(compare="number", tolerance=1, weight=0.3)),
    "weighted": order_plan("best", lines__sku=FieldRule(weight=3), lines__qty=FieldRule(weight=0.5)),
    "text apart": order_plan("best", lines__sku=FieldRule(compare="text")),
    "keyed inside": order_plan("best", lines__marks=FieldRule(align="ordered")),
}
lines = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "sku": st.sampled_from(["x", "y", "x  ", None]),
            "qty": st.integers(0, 3),
            "price": st.sampled_from([1, 1.0, 1.004, 1.008, 1.012, 2.5]),
            "marks": st.lists(st.sampled_from("pq"), max_size=2),
            "parts": st.lists(st.fixed_dictionaries({"n": st.integers(0, 2), "m": st.integers(0, 1)}), max_size=3),
        },
    ),
    max_size=4,
)


def align_lines(truth: list[Any], output: list[Any], plan: FieldPlan) -> list[Pair]:
    sides = MemoizedValue({"lines": truth}, plan), MemoizedValue({"lines": output}, plan)
    return [*_Comparison(*sides)._align(truth, output, plan.field("lines"))]


@quick
@given(items=lines)
def test_items_beside_themselves_stay_where_they_are(items: list[Any]) -> None:
    for plan in PLANS.values():
        assert align_lines(items, copy.deepcopy(items), plan) == [(at, at) for at in range(len(items))]


def test_items_that_both_sides_have_meet_whatever_else_would_be_as_heavy() -> None:
    truth, output = [{"sku": "x", "qty": 1}, {"sku": "y", "qty": 1}], [{"sku": "y", "qty": 1}, {"sku": "y", "qty": 2}]
    assert align_lines(truth, output, PLANS["exact"]) == [(0, 1), (1, 0)]
