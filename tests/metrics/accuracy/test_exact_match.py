"""Equality of JSON values, and nothing else."""

from typing import Any

import pytest
from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule
from skill_evaluator.metrics.accuracy.exact_match import exact_match

from tests.support.json_values import comparison


@pytest.mark.parametrize(
    ("truth", "output", "expected"),
    [
        ({"a": 1, "b": [1, 2]}, {"b": [1, 2], "a": 1}, 1.0),
        ({"a": None}, {}, 1.0),
        ({"a": {"b": None}}, {"a": {}}, 1.0),
        ({"a": {}}, {}, 0.0),
        ({"a": []}, {}, 0.0),
        ([1, None], [1], 0.0),
        ([1, 2], [2, 1], 0.0),
        ({"é": 1}, {"e\u0301": 1}, 1.0),
        (None, None, 1.0),
        (None, {}, 0.0),
    ],
)
def test_equal_json_values(truth: Any, output: Any, expected: float) -> None:
    assert exact_match(comparison(truth, output)) == expected


def test_no_field_rule_softens_it() -> None:
    plan = FieldPlan(leaves={"a": FieldRule(compare="string", casefold=True), "b": FieldRule(compare="ignore")})
    assert exact_match(comparison({"a": "x"}, {"a": "X"}, plan)) == 0.0
    assert exact_match(comparison({"b": 1}, {"b": 2}, plan)) == 0.0
