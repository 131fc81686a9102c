"""Jaccard by hand: |truth ∩ answer| ÷ |truth ∪ answer| of each array, and their mean."""

from typing import Any

import pytest
from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule
from skill_evaluator.metrics.accuracy.jaccard import jaccard

from tests.metrics.orders import comparison, order_plan

LINES = FieldPlan(arrays={"lines": FieldRule(align="key", key=("sku",))})


@pytest.mark.parametrize(
    ("truth", "output", "expected"),
    [
        ({"a": [1, 2]}, {"a": [2, 1.0]}, 1),
        ({"a": []}, {}, 1),
        ({}, {"a": ["x"]}, 0),
        ({"a": ["x"]}, {"a": "x"}, 0),
        ({"a": 1}, {"a": 2}, None),  # no array anywhere
        (None, None, None),
        # the mean over arrays, however long
        ({"a": [1, 2], "b": [1, 2, 3, 4]}, {"a": [1, 2], "b": [1]}, (1 + 1 / 4) / 2),
        # items that are objects: the whole object, keys in any order, null absent
        ({"a": [{"k": 1, "v": 2}]}, {"a": [{"v": 2.0, "k": 1, "w": None}]}, 1),
        ({"a": [{"k": 1, "v": 2}, {"k": 2}]}, {"a": [{"k": 1, "v": 3}, {"k": 2}]}, 1 / 3),
        # arrays inside items are pooled by path: `a` has 1 of 3 items, `a[].b` 3 of 5
        ({"a": [{"b": [1, 2]}, {"b": [3, 4]}]}, {"a": [{"b": [1, 2]}, {"b": [3, 5]}]}, (1 / 3 + 3 / 5) / 2),
    ],
)
def test_jaccard_without_a_schema(truth: Any, output: Any, expected: float | None) -> None:
    found = jaccard(comparison(truth, output))
    assert found == expected or found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("truth", "output", "expected"),
    [
        ([{"sku": "x", "qty": 1}], [{"sku": "x", "qty": 9}], 1),  # the key is all that counts
        ([{"sku": "x"}, {"sku": "y"}], [{"sku": "y"}, {"sku": "z"}], 1 / 3),
        ([{"sku": "x"}, {"sku": "x"}], [{"sku": "x"}], 1 / 2),
        ([{"sku": "x"}], [{}], 0),
        # an item without a key is known by the whole of it
        ([{"qty": 1}, {"qty": 2}], [{"qty": 1}, {"sku": None, "qty": 3}], 1 / 3),
        ([{"qty": 1}, "x"], [{"qty": 1.0}, "x"], 1),
        ([], [], 1),
    ],
)
def test_items_with_a_key_are_known_by_it(truth: Any, output: Any, expected: float) -> None:
    assert jaccard(comparison({"lines": truth}, {"lines": output}, LINES)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("truth", "output", "expected"),
    [
        ({"tags": ["a"]}, {"tags": ["b"]}, 0),
        ({"tags": ["a"], "steps": [], "lines": []}, {"tags": []}, 0),
        ({"tags": ["a", "b"], "steps": [1]}, {"tags": ["a"], "steps": [1], "lines": []}, (1 / 2 + 1) / 2),
        ({"tags": []}, {"lines": [{"marks": []}]}, 0),
        ({"tags": []}, {"steps": []}, 1),
        ({}, {}, 1),
    ],
)
def test_jaccard_leaves_out_arrays_that_are_empty_on_both_sides(truth: Any, output: Any, expected: float) -> None:
    plan = order_plan("best")  # tags, steps, lines and lines[].marks
    assert jaccard(comparison(truth, output, plan)) == pytest.approx(expected)


def test_items_are_compared_by_their_fields_rule() -> None:
    plan = FieldPlan(
        leaves={"a[]": FieldRule(compare="string", casefold=True)}, arrays={"a": FieldRule(align="ordered")}
    )
    assert jaccard(comparison({"a": ["X", "y"]}, {"a": ["Y", "x"]}, plan)) == 1.0


def test_an_ignored_subtree_has_no_arrays() -> None:
    plan = FieldPlan(leaves={"meta": FieldRule(compare="ignore")})
    assert jaccard(comparison({"meta": [1]}, {"meta": [2]}, plan)) is None


def test_arrays_below_any_key_are_pooled_where_the_plan_has_them_as_one() -> None:
    plan = FieldPlan(arrays={"by.*": FieldRule(align="set")})
    truth, output = {"by": {"a": [1, 2], "b": [3]}}, {"by": {"a": [1], "c": [3]}}
    assert jaccard(comparison(truth, output, plan)) == pytest.approx(2 / 3)
    assert jaccard(comparison(truth, output)) == pytest.approx((1 / 2 + 0 + 0) / 3)
