"""Kinds of the paths of a JSON Schema, by keyword."""

from typing import Any

import pytest
from skill_evaluator.comparing import declarations as walking
from skill_evaluator.comparing.declarations import schema_places

STR = {"type": "string"}
NUM = {"type": "number"}
PAIR = {"type": "object", "properties": {"key": STR, "value": NUM}}


def kinds(schema: Any) -> dict[str, str]:
    """The kind by path, without the top where the schema does not say what it is."""
    places = schema_places(schema).items()
    return {path: place.kind for path, place in places if path or place.kind != "any"}


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        # any key: `*`
        ({"type": "object", "additionalProperties": NUM}, {"*": "number"}),
        ({"type": "object", "additionalProperties": False}, {}),
        (obj(scores={"type": "object", "additionalProperties": NUM}), {"scores": "object", "scores.*": "number"}),
        (obj(scores={"additionalProperties": NUM}), {"scores": "object", "scores.*": "number"}),
        (
            obj(scores={"additionalProperties": PAIR}),
            {"scores": "object", "scores.*": "object", "scores.*.key": "string", "scores.*.value": "number"},
        ),
        ({**obj(a=STR), "patternProperties": {"^x": {"format": "date", **STR}}}, {"a": "string", "*": "date"}),
        ({**obj(a=STR), "unevaluatedProperties": NUM}, {"a": "string", "*": "number"}),
        (
            obj(a={"type": "array", "items": {"additionalProperties": STR}}),
            {"a": "array of objects", "a[]": "object", "a[].*": "string"},
        ),
        # items told apart by their place
        (
            obj(at={"type": "array", "prefixItems": [NUM, NUM], "items": False}),
            {"at": "array by position", "at[]": "number"},
        ),
        (obj(at={"items": [STR, NUM]}), {"at": "array by position", "at[]": "string"}),
        (obj(at={"items": [NUM], "additionalItems": STR}), {"at": "array by position", "at[]": "string"}),
        (
            obj(at={"prefixItems": [PAIR], "items": STR}),
            {"at": "array by position", "at[]": "object", "at[].key": "string", "at[].value": "number"},
        ),
        # items of which nothing is said
        (obj(at={"type": "array"}), {"at": "array of anything"}),
        (obj(at={"items": {"minLength": 1}}), {"at": "array of anything", "at[]": "any"}),
        (obj(at={"allOf": [{"type": "array"}, {"items": STR}]}), {"at": "array of scalars", "at[]": "string"}),
        (obj(at={"allOf": [{"items": STR}, {"type": "array"}]}), {"at": "array of scalars", "at[]": "string"}),
        # schemas put together
        ({"if": obj(a=STR), "then": obj(b=STR), "else": obj(c=NUM)}, {"b": "string", "c": "number"}),
        ({"dependentSchemas": {"a": obj(b=NUM)}}, {"b": "number"}),
        ({"$ref": "#/$defs/x", "$defs": {"x": obj(a=STR)}, **obj(b=NUM)}, {"a": "string", "b": "number"}),
        ({"oneOf": [obj(kind={"const": "x"}, a=STR), obj(kind={"const": "y"}, b=NUM)]}, "kinds"),
        (obj(a={"anyOf": [NUM, STR]}), {"a": "string"}),
        (obj(a={"anyOf": [STR, NUM]}), {"a": "string"}),
        (obj(a={"anyOf": [{"type": "boolean"}, {"enum": ["x"]}]}), {"a": "category"}),
        (obj(a={"anyOf": [{"type": "null"}, {"type": "array", "items": PAIR}]}), "pairs"),
        # a text or an object, a text or an array: in whatever order
        (obj(a={"oneOf": [STR, obj(b=NUM)]}), {"a": "object", "a.b": "number"}),
        (obj(a={"oneOf": [obj(b=NUM), STR]}), {"a": "object", "a.b": "number"}),
        (obj(a={"oneOf": [STR, {"type": "array", "items": PAIR}]}), "pairs"),
        (obj(a={"oneOf": [{"type": "array", "items": PAIR}, STR]}), "pairs"),
        (obj(a={"allOf": [{"type": "array"}, {"items": {"allOf": [PAIR]}}]}), "pairs"),
        # references
        ({**obj(a={"$ref": "#name"}), "$defs": {"any": True, "x": {"$anchor": "name", **STR}}}, {"a": "string"}),
        ({**obj(a={"$ref": "#name"}), "definitions": {"x": {"$id": "#name", **STR}}}, {"a": "string"}),
        ({**obj(a={"$dynamicRef": "#name"}), "$defs": {"x": {"$dynamicAnchor": "name", **STR}}}, {"a": "string"}),
        ({**obj(a={"$ref": "#/$defs/a%25b"}), "$defs": {"a%b": STR}}, {"a": "string"}),
        ({**obj(a={"$ref": "#/allOf/0/properties/b"}), "allOf": [obj(b=NUM)]}, {"a": "number", "b": "number"}),
        ({**obj(a={"$ref": "#/$defs/"}), "$defs": {"": STR}}, {"a": "string"}),
        (obj(a={"$ref": "#/$defs/gone"}), {"a": "any"}),
        # a path may be all that is known
        (obj(a={}, b=True, c={"description": "?"}), {"a": "any", "b": "any", "c": "any"}),
        (obj(a=False), {}),
        ({"type": "object", "properties": {"": STR}}, {"": "string"}),
        (True, {}),
    ],
)
def test_schema_paths_have_their_kinds(schema: Any, expected: Any) -> None:
    named = {
        "kinds": {"kind": "category", "a": "string", "b": "number"},
        "pairs": {"a": "array of objects", "a[]": "object", "a[].key": "string", "a[].value": "number"},
    }
    assert kinds(schema) == (named[expected] if isinstance(expected, str) else expected)


def test_walk_of_mutually_recursive_definitions_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walking, "_MAX_NODES", 500)
    names = [f"d{index}" for index in range(12)]
    links = {first: obj(**{second: {"$ref": f"#/$defs/{second}"} for second in names}, x=STR) for first in names}
    found = kinds({"$ref": "#/$defs/d0", "$defs": links})
    assert found["x"] == found["d1.x"] == "string"
    assert len(found) < 10_000


def test_deeply_nested_schema_is_walked() -> None:
    schema: Any = STR
    for _ in range(150):
        schema = obj(a=schema)
    assert kinds(schema)[".".join("a" * 150)] == "string"
