"""The vendors' rules for output schemas, the strict form, and its nulls."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.errors import ComponentError
from skill_evaluator.library.config import STRICT, Model
from skill_evaluator.providers.base import Completion, ProviderError, Request
from skill_evaluator.providers.structured import output_of, schema_problems, sent_schema

from tests.support.components import component
from tests.support.vendor_dialects import PLAIN

TEXT, NUMBER, NULL = {"type": "string"}, {"type": "number"}, {"type": "null"}
LINE = {"type": "object", "properties": {"sku": TEXT, "count": {**NUMBER, "default": 1}}, "required": ["sku"]}
ORDER = {  # as Pydantic writes it
    "$defs": {"Line": LINE},
    "type": "object",
    "properties": {
        "shop": TEXT,
        "day": {"anyOf": [{**TEXT, "format": "date"}, NULL], "default": None},
        "first": {"$ref": "#/$defs/Line", "description": "the first line"},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
    },
    "required": ["shop", "first", "lines"],
}
GPT, CLAUDE = Model(id="gpt-5", provider="openai"), Model(id="claude", provider="anthropic")
STRICT_GPT = GPT.model_copy(update={"id": "strict-gpt", "structured_output": STRICT})
STRICT_CLAUDE = CLAUDE.model_copy(update={"id": "strict-claude", "structured_output": STRICT})
GPTS, CLAUDES, BOTH = [STRICT_GPT], [STRICT_CLAUDE], [STRICT_GPT, STRICT_CLAUDE]


def problems(schema: Any, tmp_path: Path, *models: Model, front: str = "") -> list[str]:
    prompt = f"---\nname: receipts\nversion: 1.0.0\n{front}---\nRead the order.\n"
    made = component(tmp_path, prompt=prompt, schema=schema)
    lines = schema_problems(made, models or (GPT, CLAUDE, *BOTH))
    return [line.replace(f"{made.files.folder}/", "") for line in lines]


def request(schema: Any) -> Request:
    return replace(PLAIN, schema=schema)


def closed(properties: dict[str, Any], **keys: Any) -> dict[str, Any]:
    whole = {"properties": properties, "required": list(properties), "additionalProperties": False}
    return {"type": "object", **whole, **keys}


def test_problems_name_models_places_rule_and_remedy(tmp_path: Path) -> None:
    assert problems(ORDER, tmp_path) == [
        "refused by gpt-5, claude: schema.json at #, #/$defs/Line: additionalProperties is not false; write it as "
        "false, or set structured_output: json_schema_strict in models.yaml",
        "refused by gpt-5: schema.json at #/properties/day, #/$defs/Line/properties/count: an optional key; require it "
        "and allow null, or set structured_output: json_schema_strict in models.yaml",
        "refused by gpt-5: schema.json at #/properties/first: $ref at the root or beside other keywords; "
        'write "anyOf": [{"$ref": …}] or the definition itself, or set structured_output: json_schema_strict in '
        "models.yaml",
    ]


@pytest.mark.parametrize(
    ("schema", "place", "refused", "models"),
    [
        (closed({"a": {"type": "object", "additionalProperties": TEXT}}), "#/properties/a", "a dictionary with", BOTH),
        (closed({"a": {"type": "array"}}), "#/properties/a", "a value without a type", BOTH),
        (closed({"a/b": {"description": "any"}}), "#/properties/a~1b", "a value without a type", BOTH),
        ({"type": "array", "items": TEXT}, "#", "a root that is not an object", GPTS),
        (closed({"a": {"type": "array", "prefixItems": [TEXT]}}), "#/properties/a/prefixItems", "prefixItems", GPTS),
        (closed({"a": {"allOf": [TEXT]}}), "#/properties/a/allOf", "an unsupported keyword", GPTS),
        (closed({"a": {"$ref": "#/$defs/A"}}, **{"$defs": {"A": closed({"a": {"$ref": "#/$defs/A"}})}}),
         "#/properties/a, #/$defs/A/properties/a", "a recursive definition", CLAUDES),
        ({**closed({f"k{at}": TEXT for at in range(25)}), "required": []}, "#", "more than 24 optional keys", CLAUDES),
        (closed({f"k{at}": {"type": ["string", "null"]} for at in range(17)}), "#", "more than 16 values", CLAUDES),
    ],
)  # fmt: skip
def test_schema_without_a_strict_form_is_refused(
    schema: Any, place: str, refused: str, models: list[Model], tmp_path: Path
) -> None:
    (line,) = problems(schema, tmp_path, STRICT_GPT, STRICT_CLAUDE)
    assert line.startswith(f"refused by {', '.join(model.id for model in models)}: schema.json at {place}: {refused}")
    assert line.endswith("or set structured_output: none in models.yaml")
    for model in models:
        with pytest.raises(ProviderError, match=refused) as caught:
            sent_schema(request(schema), model)
        assert (caught.value.fatal, caught.value.kind) == (True, "not_run")


def test_schema_rules_do_not_apply_to_other_servers(tmp_path: Path) -> None:
    server = GPT.model_copy(update={"base_url": "http://gpu-1:8000/v1"})
    without = GPT.model_copy(update={"structured_output": "json_object"})
    assert problems(ORDER, tmp_path, server, without, Model(id="gemini", provider="google")) == []
    assert problems(ORDER, tmp_path, GPT, CLAUDE, front="output: tool_call\n") == []
    free = {"type": "object", "additionalProperties": TEXT}
    strict_server = server.model_copy(update={"structured_output": STRICT})
    assert len(problems(closed({"a": free}), tmp_path, strict_server, front="output: tool_call\n")) == 1
    gemini = Model(id="gemini", provider="google", structured_output=STRICT)
    assert sent_schema(request(closed({"a": free})), gemini)["properties"]["a"] == free


def test_tool_call_requires_an_object(tmp_path: Path) -> None:
    for schema in (None, {"type": "array", "items": TEXT}, {"$ref": "#/$defs/A", "$defs": {"A": LINE}}):
        with pytest.raises(ComponentError, match=r'`output: tool_call` in prompt\.md requires "type": "object"'):
            problems(schema, tmp_path, front="output: tool_call\n")


def test_strict_form_closes_objects_and_makes_optional_keys_nullable() -> None:
    line = closed({"sku": TEXT, "count": {"anyOf": [NUMBER, NULL]}})
    properties = {
        "shop": TEXT,
        "day": {"anyOf": [{**TEXT, "format": "date"}, NULL]},
        "first": {"description": "the first line", "anyOf": [{"$ref": "#/$defs/Line"}]},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
    }
    assert sent_schema(request(ORDER), STRICT_GPT) == closed(properties, **{"$defs": {"Line": line}})
    assert sent_schema(request(ORDER), GPT) == ORDER


def test_strict_form_of_a_root_reference_and_old_keywords_is_plain() -> None:
    part = {"oneOf": [TEXT, {"$ref": "#/definitions/A"}]}
    schema = {"$ref": "#/definitions/A", "definitions": {"A": {"type": "object", "properties": {"b": part}}}}
    form = sent_schema(request(schema), STRICT_GPT)
    assert form == {"$defs": {"A": form["$defs"]["A"]}, **form["$defs"]["A"]}
    assert form["$defs"]["A"] == closed({"b": {"anyOf": [{"anyOf": [TEXT, {"$ref": "#/$defs/A"}]}, NULL]}})


def test_strict_form_for_anthropic_keeps_optional_keys() -> None:
    count = {"type": ["integer", "null"], "minimum": 0}
    form = sent_schema(request({"type": "object", "properties": {"count": count}}), STRICT_CLAUDE)
    assert form["additionalProperties"] is False
    assert form.get("required") is None
    assert [part["type"] for part in form["properties"]["count"]["anyOf"]] == ["integer", "null"]
    assert "minimum: 0" in json.dumps(form)
    with pytest.raises(ProviderError, match="SDK cannot transform the output schema"):
        sent_schema(request(closed({"any": True})), STRICT_CLAUDE)


def test_null_that_only_the_strict_form_required_is_removed() -> None:
    line = {"sku": "a", "count": None}
    text = json.dumps({"shop": "Zoë", "day": None, "first": line, "lines": [line, {"sku": None, "count": 2}]})
    kept = output_of(Completion(text=text), request(ORDER), STRICT_GPT).text
    assert json.loads(kept) == {
        "shop": "Zoë",
        "day": None,  # the schema allows it
        "first": {"sku": "a"},
        "lines": [{"sku": "a"}, {"sku": None, "count": 2}],  # a required key stays wrong
    }
    assert output_of(Completion(text=text), request(ORDER), GPT).text == text
    thought = output_of(Completion(text=f"<think>null?</think>{text}"), request(ORDER), STRICT_GPT).text
    assert thought == f"<think>null?</think>{kept}"
    node = {"properties": {"name": TEXT, "note": TEXT, "next": {"anyOf": [{"$ref": "#"}, NULL]}}, "required": ["name"]}
    deep = {
        "name": "a",
        "next": {"name": "b", "next": {"name": "c", "next": {"name": "d", "note": None, "next": None}}},
    }
    recursive = output_of(Completion(text=json.dumps(deep)), request({"type": "object", **node}), STRICT_GPT).text
    assert recursive == json.dumps(deep).replace('"note": null, ', "")
    prose = f"Here it is: {text}"
    assert output_of(Completion(text=prose), request(ORDER), STRICT_GPT).text == prose
