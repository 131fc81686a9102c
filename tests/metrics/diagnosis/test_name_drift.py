"""Which top-level keys are missing and which are nobody's, for the shapes a schema may have."""

from typing import Any

import pytest
from skill_evaluator.metrics.diagnosis.contract_errors import name_drift, top_names

SHOP = {"properties": {"shop": {}, "total": {}, "note": {}}, "required": ["shop", "total"]}


@pytest.mark.parametrize(
    ("output", "missing", "extra"),
    [
        ({"shop": 1, "total": 2}, "", ""),
        ({"shop": 1, "total": None, "note": 3}, "", ""),  # null is there
        ({"vendor": 1, "total": 2}, "shop", "vendor"),
        ({"Shop": 1, "sum": 2}, "shop total", "Shop sum"),
        ({}, "shop total", ""),
        ([{"vendor": 1}], "", ""),
        (None, "", ""),
    ],
)
def test_keys_that_are_missing_and_keys_that_are_nobodys(output: Any, missing: str, extra: str) -> None:
    drift = name_drift(output, top_names(SHOP))
    assert (drift.missing, drift.extra) == (set(missing.split()), set(extra.split()))


@pytest.mark.parametrize(
    ("schema", "required", "known"),
    [
        (SHOP, {"shop", "total"}, {"shop", "total", "note"}),
        ({"$ref": "#/$defs/shop", "$defs": {"shop": SHOP}}, {"shop", "total"}, {"shop", "total", "note"}),
        ({"$ref": "#"}, set(), None),
        (
            {"allOf": [SHOP, {"properties": {"tax": {}}, "required": ["tax"]}]},
            {"shop", "total", "tax"},
            {"shop", "total", "note", "tax"},
        ),
        # of several branches one holds: all their keys are known, none is required
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
        # names allowed by pattern, or by what their values are, drift from nothing
        ({**SHOP, "patternProperties": {"^x-": {}}}, {"shop", "total"}, None),
        ({**SHOP, "additionalProperties": {"type": "number"}}, {"shop", "total"}, None),
        ({**SHOP, "additionalProperties": False}, {"shop", "total"}, {"shop", "total", "note"}),
        ({"type": "array", "items": SHOP}, set(), None),
        ({}, set(), None),
        (None, set(), None),
    ],
)
def test_the_names_a_schema_speaks_of(schema: Any, required: set[str], known: set[str] | None) -> None:
    names = top_names(schema)
    assert (names.required, names.named) == (required, known)
