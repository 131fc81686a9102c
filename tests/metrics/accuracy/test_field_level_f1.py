"""F1 over leaves by hand: 2 · matched ÷ (leaves of truth + leaves of answer)."""

from typing import Any

import pytest
from skill_evaluator.comparing.field_plan import FieldRule
from skill_evaluator.metrics.accuracy.field_level_f1 import field_level_f1

from tests.metrics.orders import comparison, order_plan

PERFECT = {"id": "A", "paid": True, "tags": ["a", "b"], "lines": [{"sku": "x", "qty": 1}, {"sku": "y", "qty": 2}]}


@pytest.mark.parametrize(
    ("truth", "output", "expected"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, 2 * 1 / 4),  # wrong: costs precision and recall
        ({"a": 1, "b": 2}, {"a": 1}, 2 * 1 / 3),  # missing: costs recall
        ({"a": 1}, {"a": 1, "b": 2}, 2 * 1 / 3),  # extra: costs precision
        ({"a": 1, "b": None}, {"a": 1}, 1),
        ({"a": 1}, None, 0),
        ({}, {}, 1),
        (None, None, 1),
        ({"a": None}, [], 1),  # neither has a leaf
    ],
)
def test_f1_without_a_schema(truth: Any, output: Any, expected: float) -> None:
    assert field_level_f1(comparison(truth, output)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("align", "output", "expected"),
    [
        ("ordered", {**PERFECT, "lines": PERFECT["lines"][::-1]}, 2 * 4 / 16),
        # one of the 8 leaves wrong; under `set` its whole item is lost
        ("key", {**PERFECT, "lines": [{"sku": "x", "qty": 9}, {"sku": "y", "qty": 2}]}, 2 * 7 / 16),
        ("best", {**PERFECT, "lines": [{"sku": "x", "qty": 9}, {"sku": "y", "qty": 2}]}, 2 * 7 / 16),
        ("set", {**PERFECT, "lines": [{"sku": "x", "qty": 9}, {"sku": "y", "qty": 2}]}, 2 * 6 / 16),
        # the key wrong: by key nothing of that item is found
        ("key", {**PERFECT, "lines": [{"sku": "z", "qty": 1}, {"sku": "y", "qty": 2}]}, 2 * 6 / 16),
        ("best", {**PERFECT, "lines": [{"sku": "z", "qty": 1}, {"sku": "y", "qty": 2}]}, 2 * 7 / 16),
    ],
)
def test_f1_of_an_order_of_eight_leaves(align: str, output: Any, expected: float) -> None:
    assert field_level_f1(comparison(PERFECT, output, order_plan(align))) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("note", "output", "expected"),
    [
        # free text without a threshold stays out, right or wrong
        (FieldRule(compare="text"), {"id": "A", "note": "something else"}, 1),
        (FieldRule(compare="text"), {"id": "A"}, 1),
        (FieldRule(compare="text"), {"id": "B", "note": "the cat sat"}, 0),
        # with one it counts from there
        (FieldRule(compare="text", threshold=0.6), {"id": "A", "note": "the cat ran"}, 1),
        (FieldRule(compare="text", threshold=0.7), {"id": "A", "note": "the cat ran"}, 2 * 1 / 4),
        (FieldRule(compare="text", threshold=0.7), {"id": "A"}, 2 * 1 / 3),
        (FieldRule(compare="ignore"), {"id": "A", "note": "something else"}, 1),
        # a weight counts a leaf so many times, 0 not at all
        (FieldRule(compare="string", weight=3), {"id": "A", "note": "x"}, 2 * 1 / 8),
        (FieldRule(compare="string", weight=3), {"id": "B", "note": "the cat sat"}, 2 * 3 / 8),
        (FieldRule(compare="string", weight=3), {"id": "A"}, 2 * 1 / 5),
        (FieldRule(compare="string", weight=0), {"id": "A", "note": "x"}, 1),
    ],
)
def test_what_enters_f1_and_with_what_weight(note: FieldRule, output: Any, expected: float) -> None:
    plan = order_plan("best", note=note)
    assert field_level_f1(comparison({"id": "A", "note": "the cat sat"}, output, plan)) == pytest.approx(expected)
