"""Equality of JSON values, and nothing else."""

from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule
from skill_evaluator.metrics.accuracy.exact_match import exact_match

from tests.metrics.orders import comparison


def test_it_is_1_of_equal_json_values_and_else_0() -> None:
    assert exact_match(comparison({"a": 1, "b": None}, {"a": 1.0})) == 1.0
    assert exact_match(comparison([1, 2], [2, 1])) == 0.0


def test_no_field_rule_softens_it() -> None:
    plan = FieldPlan(leaves={"a": FieldRule(compare="string", casefold=True), "b": FieldRule(compare="ignore")})
    assert exact_match(comparison({"a": "x"}, {"a": "X"}, plan)) == 0.0
    assert exact_match(comparison({"b": 1}, {"b": 2}, plan)) == 0.0
