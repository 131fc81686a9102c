"""What validation holds against an output: paths of the plan, rules, and whether only extra keys are wrong."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule
from skill_evaluator.library.contract import Contract
from skill_evaluator.metrics.diagnosis.contract_errors import contract_errors, only_extra_keys

from tests.metrics.orders import ORDER_SCHEMA
from tests.support.json_values import json_values, thorough

LINE = {
    "type": "object",
    "properties": {"sku": {"type": "string"}, "qty": {"type": "integer", "minimum": 0}},
    "required": ["sku"],
    "additionalProperties": False,
}
SCHEMA: Mapping[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "kind": {"enum": ["sale", "refund"]},
        "day": {"type": "string", "format": "date"},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
        "gift": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/line"}]},
    },
    "required": ["kind"],
    "additionalProperties": False,
    "$defs": {"line": LINE},
}
CONTRACT = Contract(SCHEMA, "schema.json")
KIND = {"kind": "sale"}


@pytest.mark.parametrize(
    ("output", "errors", "only_extra"),
    [
        (KIND, [], True),
        ({"kind": "loan"}, ["kind enum"], False),
        ({}, ["kind required"], False),
        ({**KIND, "day": "soon"}, ["day format"], False),
        ({**KIND, "lines": {}}, ["lines type"], False),
        # one error for each item, all at the path of items
        ({**KIND, "lines": [{"sku": 1}, {"sku": 2}]}, ["lines[].sku type"] * 2, False),
        ({**KIND, "lines": [{}, {"sku": "x", "qty": -1}]}, ["lines[].qty minimum", "lines[].sku required"], False),
        # of extra keys each stands at its own path
        ({**KIND, "sort": 1, "tax": 2}, ["sort additionalProperties", "tax additionalProperties"], True),
        ({**KIND, "lines": [{"sku": "x", "note": 1}]}, ["lines[].note additionalProperties"], True),
        ({**KIND, "sort": 1, "day": 5}, ["day type", "sort additionalProperties"], False),
        # a renamed key is missing, too
        ({"sort": "sale"}, ["kind required", "sort additionalProperties"], False),
        # of several branches: one that would hold but for its extra keys
        ({**KIND, "gift": {"sku": "x", "note": 1}}, ["gift anyOf"], True),
        ({**KIND, "gift": {"note": 1}}, ["gift anyOf"], False),
        ({**KIND, "gift": 5}, ["gift anyOf"], False),
        ([], [" type"], False),
    ],
)
def test_what_is_wrong_and_where(output: Any, errors: list[str], only_extra: bool) -> None:
    violations = CONTRACT.violations(output)
    assert sorted(f"{error.path} {error.rule}" for error in contract_errors(violations, FieldPlan())) == errors
    assert only_extra_keys(violations) is only_extra


def test_a_message_is_in_words_and_of_a_length_to_read() -> None:
    (error,) = contract_errors(CONTRACT.violations({"kind": "loan"}), FieldPlan())
    assert error.message == '"loan" is not one of "sale" or "refund"'
    (error,) = contract_errors(CONTRACT.violations({"kind": "loan " * 1000}), FieldPlan())
    assert len(error.message) == 200
    assert error.message.endswith("…")


def test_unevaluated_keys_are_extra_keys() -> None:
    contract = Contract({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}, "schema.json")
    violations = contract.violations({"a": 1, "b": 2})
    assert [error.path for error in contract_errors(violations, FieldPlan())] == ["b"]
    assert only_extra_keys(violations)


@thorough
@given(output=json_values)
def test_there_are_errors_exactly_where_the_output_does_not_validate(output: Any) -> None:
    contract = Contract(ORDER_SCHEMA, "schema.json")
    violations = contract.violations(output)
    assert bool(contract_errors(violations, FieldPlan())) is not contract.conforms(output)


def test_keys_that_one_declared_field_stands_for_share_its_path() -> None:
    contract = Contract({"additionalProperties": {"type": "number"}}, "schema.json")
    plan = FieldPlan(leaves={"*": FieldRule(compare="number")})
    errors = contract_errors(contract.violations({"apples": "1", "pears": "2"}), plan)
    assert [(error.path, error.rule) for error in errors] == [("*", "type"), ("*", "type")]
