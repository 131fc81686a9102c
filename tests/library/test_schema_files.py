"""Contracts of several files: what is put together validates as the parts do, and nothing outside is read."""

import json
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.errors import ComponentError
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import SafetyLimits

from tests.support.components import component, write_component

DRAFT = "https://json-schema.org/draft/2020-12/schema"
SHARED = {
    "$schema": DRAFT,
    "$id": "https://example.org/shared/schema.json",
    "type": "object",
    "properties": {"money": {"$ref": "#/$defs/money"}, "parts": {"type": "array", "items": {"$ref": "#"}}},
    "$defs": {"money": {"$anchor": "money", "type": "number", "minimum": 0}, "money/old": {"type": "string"}},
}


def receipts(root: Path, schema: Any, /, **datasets: Any) -> Component:
    """A component beside `shared`, in a library that is a repository."""
    (root / ".git").mkdir(exist_ok=True)
    write_component(root, name="shared", schema=SHARED)
    return component(root, schema=schema, datasets=datasets or None)


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"allOf": [{"$ref": "../shared/schema.json"}]}, {"money": 1}, {"parts": [{"money": -1}]}),
        ({"properties": {"a": {"$ref": "../shared/schema.json#/$defs/money"}}}, {"a": 2}, {"a": "2"}),
        ({"properties": {"a": {"$ref": "../shared/schema.json#money"}}}, {"a": 2}, {"a": -2}),
        (  # definitions of one name in two files are two
            {
                "properties": {"a": {"$ref": "#/$defs/money"}, "b": {"$ref": "../shared/schema.json#/$defs/money"}},
                "$defs": {"money": {"type": "string"}},
            },
            {"a": "1", "b": 1},
            {"a": 1},
        ),
        (  # a property may be called as keywords are
            {"properties": {"$id": {"$ref": "../shared/schema.json#money"}, "$defs": {"type": "null"}}},
            {"$id": 1, "$defs": None},
            {"$defs": 1},
        ),
        ({"const": {"$ref": "nowhere.json"}}, {"$ref": "nowhere.json"}, {}),
    ],
)
def test_schema_validates_with_its_referenced_files(tmp_path: Path, schema: Any, good: Any, bad: Any) -> None:
    loaded = receipts(tmp_path, schema)
    assert loaded.contract.errors(good) == []
    assert not loaded.contract.conforms(bad)


def test_part_of_a_schema_may_be_the_output_schema(tmp_path: Path) -> None:
    definitions = {
        "input": {"type": "string"},
        "output": {"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}},
    }
    schema = {"$schema": DRAFT, "$id": "urn:x", "$defs": {**definitions, "n": {"type": "number"}}}
    loaded = receipts(tmp_path, schema, schema="schema.json#/$defs/output")
    assert loaded.contract.schema == {
        "$schema": DRAFT,
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/n"}},
        "$defs": {"n": {"type": "number"}},
    }
    assert (list(loaded.scoring.plan.leaves), loaded.contract.conforms({"a": "1"})) == (["a"], False)


def test_referenced_files_have_their_own_digest(tmp_path: Path) -> None:
    schema = {"$ref": "../shared/schema.json"}
    before = receipts(tmp_path, schema)
    (tmp_path / "components" / "shared" / "schema.json").write_text(json.dumps({**SHARED, "required": ["money"]}))
    after = load_component(tmp_path / "components", before.name)
    assert {name for name in after.digests if after.digests[name] != before.digests[name]} == {"contract"}
    assert "contract" not in receipts(tmp_path, {"type": "object"}).digests


LONG = {"properties": {f"p{n}": {"$ref": f"{n}.json"} for n in range(60)}}


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("../shared/schema.json#/$defs/mony", "schema.json: '#/$defs/mony' does not exist in "),
        ("../shared/shema.json", "shared/shema.json does not exist"),
        ("https://example.com/a.json", "only references inside of it (#/...) and to files of this repository"),
        ("../../../../outside.json", "which is outside"),
        ("../shared/link.json", "leads out of"),
        ("../shared/list.json", "is not a JSON Schema: an object is expected"),
        ("../shared/old.json", "refers to a file of a different draft"),
        ("../shared/dynamic.json", "$dynamicRef is not supported here; write $ref"),
        ("../shared/many.json", "refers to more than 50 files"),
    ],
)
def test_invalid_reference_is_refused(tmp_path: Path, reference: str, says: str) -> None:
    (tmp_path / "outside.json").write_text("{}")
    library = tmp_path / "library"
    shared = write_component(library, name="shared", schema=SHARED)
    (shared / "link.json").symlink_to(tmp_path / "outside.json")
    for name, content in (
        ("list.json", []),
        ("old.json", {"$schema": "http://json-schema.org/draft-07/schema#"}),
        ("dynamic.json", {"$dynamicRef": "#a"}),
        ("many.json", LONG),
        *((f"{n}.json", {}) for n in range(60)),
    ):
        (shared / name).write_text(json.dumps(content))
    with pytest.raises(ComponentError) as caught:
        receipts(library, {"$schema": DRAFT, "properties": {"a": {"$ref": reference}}})
    assert says in str(caught.value), caught.value
    assert "components/receipts/schema.json" in str(caught.value) or "shared/" in str(caught.value)


def test_too_large_schema_files_are_refused(tmp_path: Path) -> None:
    deep: dict[str, Any] = {"$defs": {f"d{n}": {"items": {"$ref": f"#/$defs/d{n}/items"}} for n in range(3)}}
    deep["properties"] = {f"p{n}": {"$ref": "../shared/schema.json"} for n in range(3)}
    assert receipts(tmp_path, deep).contract.schema is not None
    with pytest.raises(ComponentError, match="schema_bytes"):
        component(tmp_path, schema=deep, limits=SafetyLimits(schema_bytes=100))


def test_schema_that_allows_any_json_is_refused(tmp_path: Path) -> None:
    nothing: list[Any] = [
        {},
        {"$schema": DRAFT, "title": "Anything", "version": "1.0.0"},
        {"$defs": {"output": {"type": "object"}}},
        {"properties": {}, "required": [], "additionalProperties": True, "items": {}},
        {"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"description": "anything"}}},
        {"anyOf": [{}, True]},
    ]
    for schema in nothing:
        with pytest.raises(
            ComponentError, match=r"receipts/schema\.json has no constraints, so any JSON is valid"
        ) as refused:
            component(tmp_path, schema=schema)
        assert ("#/$defs/" in str(refused.value)) is ("$defs" in schema)
    for schema in ({"minimum": 1}, {"const": True}, {"$ref": "#/$defs/a", "$defs": {"a": {"enum": [1]}}}):
        assert component(tmp_path, schema=schema).contract.schema == schema
