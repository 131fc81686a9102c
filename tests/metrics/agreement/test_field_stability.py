"""Stability of each field by hand: how often its commonest value was given ÷ number of answers."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.comparing.array_items import values_by_path
from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule
from skill_evaluator.metrics.agreement import field_stability, field_stability_by_path

from tests.metrics.orders import ALIGNMENTS, answers, order_plan, orders
from tests.support.json_values import quick

LOOSE = FieldPlan(
    leaves={
        "a": FieldRule(compare="string", casefold=True),
        "b": FieldRule(compare="ignore"),
        "c": FieldRule(compare="number", tolerance=5),
    }
)


@pytest.mark.parametrize(
    ("outputs", "unparseable", "expected"),
    [
        ([{"a": 1}, {"a": 1}, {"a": 2}], 0, {"a": 2 / 3}),
        ([{"a": 1, "b": 1}, {"a": 1, "b": 2}], 0, {"a": 1, "b": 1 / 2}),
        ([{"a": 1}, {}, {"a": None}], 0, {"a": 2 / 3}),  # absent is a value, and null is absent
        ([{"a": 1}, {"a": True}, {"a": "1"}], 0, {"a": 1 / 3}),
        ([{"a": 1}, {"a": 1.0}], 0, {"a": 1}),
        ([{"a": 1}, {"a": 1}], 2, {"a": 2 / 4}),  # the unparseable answers share no value
        ([{"a": 1}], 1, {"a": 1 / 2}),
        # an array is stable when its items are, in whatever order
        ([{"a": [1, 2]}, {"a": [2, 1]}], 0, {"a[]": 1}),
        ([{"a": [1, 1]}, {"a": [1]}], 0, {"a[]": 1 / 2}),
        ([{"a": [{"b": 1}]}, {"a": [{"b": 1}, {"c": 2}]}], 0, {"a[].b": 1, "a[].c": 1 / 2}),
        ([{"a": 1}], 0, {}),
        ([], 2, {}),
    ],
)
def test_share_of_the_commonest_value(outputs: list[Any], unparseable: int, expected: dict[str, float]) -> None:
    given = answers(*outputs, unparseable=unparseable)
    assert field_stability_by_path(given) == pytest.approx(expected)
    mean = sum(expected.values()) / len(expected) if expected else None
    assert field_stability(given) == (None if mean is None else pytest.approx(mean))


def test_values_are_compared_by_canonical_form_and_not_by_closeness() -> None:
    outputs = [{"a": "X", "b": 1, "c": 1}, {"a": "x", "b": 2, "c": 2}]
    assert field_stability_by_path(answers(*outputs, plan=LOOSE)) == {"a": 1.0, "c": 0.5}


def test_a_field_of_the_schema_that_no_answer_has_is_stable() -> None:
    assert field_stability_by_path(answers({"a": "x"}, {"a": "y"}, plan=LOOSE)) == {"a": 0.5, "c": 1.0}


def test_nothing_parsed_shares_no_value_of_the_schemas_fields() -> None:
    assert field_stability_by_path(answers(plan=LOOSE, unparseable=2)) == {"a": 0.0, "c": 0.0}


def test_values_of_any_key_are_told_apart_by_key() -> None:
    plan = FieldPlan(leaves={"by.*": FieldRule(compare="number")})
    swapped = answers({"by": {"a": 1, "b": 2}}, {"by": {"a": 2, "b": 1}}, plan=plan)
    assert field_stability_by_path(swapped) == {"by.*": 0.5}
    moved = answers({"by": {"a": 1, "b": 2}}, {"by": {"b": 2.0, "a": 1}}, plan=plan)
    assert field_stability_by_path(moved) == {"by.*": 1.0}


@quick
@given(outputs=st.lists(orders, min_size=2, max_size=6))
def test_it_is_the_commonest_of_the_values_read_one_by_one(outputs: list[Any]) -> None:
    for align in ALIGNMENTS:
        plan = order_plan(align, lines__price=FieldRule(compare="number", tolerance=0.005))
        values = [values_by_path(output, plan)[0] for output in outputs]
        expected = {
            path: max(Counter(value.get(path) for value in values).values()) / len(outputs)
            for path in {*plan.leaves, *(path for value in values for path in value)}
        }
        assert field_stability_by_path(answers(*outputs, plan=plan)) == expected, align
