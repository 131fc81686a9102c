"""Schema errors by path and keyword, outputs with only extra keys, and missing and extra top-level keys."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule
from skill_evaluator.library.contract import (
    Contract,
    contract_errors,
    missing_and_extra_keys,
    only_extra_keys,
    top_names,
)

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
def test_schema_errors_have_path_and_keyword(output: Any, errors: list[str], only_extra: bool) -> None:
    violations = CONTRACT.violations(output)
    assert sorted(f"{path} {rule}" for path, rule, _ in contract_errors(violations, FieldPlan())) == errors
    assert only_extra_keys(violations) is only_extra


def test_schema_error_message_is_shortened() -> None:
    ((_, _, message),) = contract_errors(CONTRACT.violations({"kind": "loan"}), FieldPlan())
    assert message == '"loan" is not one of "sale" or "refund"'
    ((_, _, message),) = contract_errors(CONTRACT.violations({"kind": "loan " * 1000}), FieldPlan())
    assert len(message) == 200
    assert message.endswith("…")


def test_unevaluated_keys_are_extra_keys() -> None:
    contract = Contract({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}, "schema.json")
    violations = contract.violations({"a": 1, "b": 2})
    assert [path for path, *_ in contract_errors(violations, FieldPlan())] == ["b"]
    assert only_extra_keys(violations)


@thorough
@given(output=json_values)
def test_schema_errors_exist_only_for_invalid_outputs(output: Any) -> None:
    contract = Contract(ORDER_SCHEMA, "schema.json")
    violations = contract.violations(output)
    assert bool(contract_errors(violations, FieldPlan())) is not contract.conforms(output)


def test_schema_errors_of_a_star_path_share_its_path() -> None:
    contract = Contract({"additionalProperties": {"type": "number"}}, "schema.json")
    plan = FieldPlan(leaves={"*": FieldRule(compare="number")})
    errors = contract_errors(contract.violations({"apples": "1", "pears": "2"}), plan)
    assert [(path, rule) for path, rule, _ in errors] == [("*", "type"), ("*", "type")]


SHOP = {"properties": {"shop": {}, "total": {}, "note": {}}, "required": ["shop", "total"]}


@pytest.mark.parametrize(
    ("output", "missing", "extra"),
    [
        ({"shop": 1, "total": 2}, "", ""),
        ({"shop": 1, "total": None, "note": 3}, "", ""),  # null is present
        ({"vendor": 1, "total": 2}, "shop", "vendor"),
        ({"Shop": 1, "sum": 2}, "shop total", "Shop sum"),
        ({}, "shop total", ""),
        ([{"vendor": 1}], "", ""),
        (None, "", ""),
    ],
)
def test_missing_and_extra_keys_are_named(output: Any, missing: str, extra: str) -> None:
    assert missing_and_extra_keys(output, *top_names(SHOP)) == (set(missing.split()), set(extra.split()))


@pytest.mark.parametrize(
    ("schema", "required", "named"),
    [
        (SHOP, {"shop", "total"}, {"shop", "total", "note"}),
        ({"$ref": "#/$defs/shop", "$defs": {"shop": SHOP}}, {"shop", "total"}, {"shop", "total", "note"}),
        ({"$ref": "#"}, set(), None),
        (
            {"allOf": [SHOP, {"properties": {"tax": {}}, "required": ["tax"]}]},
            {"shop", "total", "tax"},
            {"shop", "total", "note", "tax"},
        ),
        # one of several branches holds: all keys are named, none is required
        (
            {"anyOf": [SHOP, {"properties": {"error": {}}, "required": ["error"]}]},
            set(),
            {"shop", "total", "note", "error"},
        ),
        ({"oneOf": [{"type": "null"}, SHOP]}, set(), {"shop", "total", "note"}),
        (
            {"if": {"properties": {"a": {}}}, "then": {"properties": {"b": {}}}, "else": {"properties": {"c": {}}}},
            set(),
            {"a", "b", "c"},
        ),
        # any key is allowed by a pattern or by a schema of its value
        ({**SHOP, "patternProperties": {"^x-": {}}}, {"shop", "total"}, None),
        ({**SHOP, "additionalProperties": {"type": "number"}}, {"shop", "total"}, None),
        ({**SHOP, "additionalProperties": False}, {"shop", "total"}, {"shop", "total", "note"}),
        ({"type": "array", "items": SHOP}, set(), None),
        ({}, set(), None),
        (None, set(), None),
    ],
)
def test_top_names_are_required_and_named_keys(schema: Any, required: set[str], named: set[str] | None) -> None:
    assert top_names(schema) == (required, named)
