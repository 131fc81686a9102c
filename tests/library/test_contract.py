"""Contracts: schemas that would never come to an end, or whose errors would fill the memory, are refused."""

from typing import Any

import pytest
from skill_evaluator.errors import ComponentError
from skill_evaluator.library.contract import Contract


def doubling(keyword: str, times: int, rounds: int) -> dict[str, Any]:
    """A schema of a few lines in which one value is checked against times ** rounds schemas."""
    defs: dict[str, Any] = {f"d{n}": {keyword: [{"$ref": f"#/$defs/d{n + 1}"}] * times} for n in range(rounds)}
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{rounds}": {"type": "string"}}}


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        (doubling("allOf", 10, 12), "more than 10,000 schemas apply to one value, by branches"),
        ({"$ref": "#"}, "a schema refers to itself for the same value"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}}, "refers to itself for the same value"),
        (
            {
                "$ref": "#/$defs/d0",
                "$defs": {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(3000)} | {"d3000": {}},
            },
            "more than 100 references and subschemas inside each other",
        ),
    ],
)
def test_endless_schema_is_refused(schema: Any, says: str) -> None:
    with pytest.raises(ComponentError) as caught:
        Contract(schema, "the schema")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"next": {"$ref": "#"}}},  # it goes into the value
        {"items": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}},
        {"properties": {"const": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"const": {"$ref": "#"}}}},  # that is data
        {"anyOf": [{"properties": {f"p{n}": {"type": "string"}}} for n in range(1000)]},
        doubling("allOf", 2, 10),
    ],
)
def test_recursive_and_large_schemas_are_accepted(schema: Any) -> None:
    assert Contract(schema, "the schema").conforms("a")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"total": {}}, "(closest: /total: 'amount' is a required property)"),
        ({"total": {"amount": "9"}}, "(closest: /total/amount: '9' is not of type 'number')"),
        ({"total": {"amount": 9, "currency": "e"}}, "(closest: /total/currency: 'e' does not match '^[A-Z]{3}$')"),
    ],
)
def test_closest_branch_of_a_schema_is_named(value: Any, says: str) -> None:
    properties = {"amount": {"type": "number"}, "currency": {"pattern": "^[A-Z]{3}$"}}
    amount = {"type": "object", "properties": properties, "required": ["amount"]}
    contract = Contract({"properties": {"total": {"anyOf": [{"type": "number"}, amount]}}}, "the schema")
    (error,) = contract.errors(value)
    assert error.startswith("/total: ")
    assert error.endswith(says)


def test_deep_value_has_the_message_of_its_schema() -> None:
    value: Any = "leaf"
    for _ in range(200):
        value = {"next": value}
    contract = Contract({"anyOf": [{"type": "null"}, {"properties": {"next": {"$ref": "#"}}, "type": "object"}]}, "it")
    (error,) = contract.errors(value)
    assert "not valid under any of the schemas" in error


def test_slow_pattern_stops_no_message() -> None:
    endless = {"type": "string", "pattern": "^(a|a?)+$"}
    contract = Contract({"anyOf": [endless, {"type": "number"}]}, "the schema")
    (error,) = contract.errors("a" * 40 + "!")
    assert error.startswith("/: ")


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        ({}, {dict, list}),
        ({"type": ["object", "null"]}, {dict}),
        ({"properties": {"a": {}}}, {dict}),
        ({"type": "string"}, set()),
        ({"$ref": "#/$defs/r", "$defs": {"r": {"type": "array"}}}, {list}),
        ({"anyOf": [{"type": "object"}, {"type": "null"}]}, {dict}),
        ({"allOf": [{"type": ["object", "array"]}, {"required": ["a"], "type": "object"}]}, {dict}),
    ],
)
def test_candidates_have_the_types_of_the_root(schema: Any, types: set[type]) -> None:
    assert set(Contract(schema, "the schema").expected.types) == types
