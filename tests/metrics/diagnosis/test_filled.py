"""Which fields are filled, counted in outputs, beside the truth of the same outputs."""

from typing import Any

import pytest
from skill_evaluator.comparing.comparison import compare
from skill_evaluator.comparing.field_plan import FieldPlan
from skill_evaluator.metrics.diagnosis.per_field import filled_fields, per_field


def filled(*pairs: tuple[Any, Any, int]) -> dict[str, tuple[int, int]]:
    """(truth, output, how often) → (outputs with a value, truths with one) by path."""
    plan = FieldPlan()
    found = filled_fields((per_field(compare(truth, output, plan)), times) for truth, output, times in pairs)
    return {path: tuple(one) for path, one in found.items()}  # type: ignore[misc]


@pytest.mark.parametrize(
    ("truth", "output", "expected"),
    [
        ({"a": 1}, {"a": 1}, {"a": (1, 1)}),
        ({"a": 1}, {"a": 2}, {"a": (1, 1)}),  # filled, if wrongly
        ({"a": 1}, {"a": None}, {"a": (0, 1)}),
        ({"a": None}, {"a": 1}, {"a": (1, 0)}),
        ({"a": None}, {}, {}),
        # of items: one that has a value fills the field
        ({"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}, {"c": 2}]}, {"a[].b": (1, 1), "a[].c": (1, 0)}),
        ({"a": [1, 2]}, {"a": []}, {"a[]": (0, 1)}),
    ],
)
def test_a_field_is_filled_where_a_leaf_of_it_is_not_null(
    truth: Any, output: Any, expected: dict[str, tuple[int, int]]
) -> None:
    assert filled((truth, output, 1)) == expected


def test_an_output_counts_as_often_as_it_was_given() -> None:
    assert filled(({"a": 1}, {"a": 1}, 2), ({"a": 1}, {"b": 1}, 3)) == {"a": (2, 5), "b": (3, 0)}
