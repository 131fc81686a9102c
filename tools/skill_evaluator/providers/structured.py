"""Structured output: the vendors' rules for output schemas, the schema that is sent, and the output in a response.

Vendors reject a schema outside of their subset of JSON Schema, so it is converted to a *strict form* where possible.
The rules are those that their pages, errors and SDKs agree on (November 2026).
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from skill_evaluator.comparing.declarations import (
    DATA,
    NAMED_SCHEMAS,
    describes,
    references_of,
    same_value,
    schemas_in,
    target_of,
    types_of,
)
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import STRICT, Model
from skill_evaluator.parsing import parse_output, split_reasoning
from skill_evaluator.providers.base import Completion, ProviderError, Request
from skill_evaluator.stats import by_key
from skill_evaluator.text import listed

Schema = Mapping[str, Any]
_TYPED = ("type", "properties", "$ref", "anyOf", "oneOf", "allOf", "enum", "const")
_OPENAI_REFUSES = ("allOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas")
_ANTHROPIC_REFUSES = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"),
    *("maxItems", "uniqueItems", "prefixItems", "oneOf"),
)
_MAX_OPTIONAL, _MAX_UNIONS = 24, 16  # Anthropic's limits per schema


class _Refusal(NamedTuple):
    """A violation of a vendor's rule for output schemas: its place in the schema (JSON pointer) and the rule.

    `by_strict` is true if the conversion to the vendor's strict form removes the violation.
    """

    pointer: str
    rule: str
    by_strict: bool = False


def schema_problems(component: Component, models: Sequence[Model]) -> list[str]:
    """Return a message for each vendor's rule that a component's schema breaks, with the models and a remedy."""
    root = _without_dialect(component.contract.schema or {})
    refused_by = defaultdict[str, list[str]](list)
    for model in models if root and component.program is None else ():
        is_strict = model.structured_output == STRICT
        is_vendors = model.is_direct or model.place == "azure" or (model.provider == "anthropic" and bool(model.place))
        # compatible servers and functions that are not strict have no rules by default
        if is_strict or (is_vendors and model.structured_output == "json_schema" and not component.prompt.by_tool_call):
            for rule, refusals in _refusals(root, model.provider, is_strict=is_strict).items():
                pointers = listed([refusal.pointer for refusal in refusals], 3)
                advice = f"or set structured_output: {STRICT if refusals[0].by_strict else 'none'} in models.yaml"
                refused_by[f"{component.contract.where} at {pointers}: {rule}, {advice}"].append(model.id)
    return [f"refused by {listed(ids, 3)}: {problem}" for problem, ids in refused_by.items()]


def _refusals(root: Schema, provider: str, *, is_strict: bool) -> dict[str, list[_Refusal]]:
    of_vendor = {"openai": _by_openai, "anthropic": _by_anthropic}.get(provider)
    if of_vendor is None:
        return {}
    refusals = (
        refusal
        for pointer, node in _subschemas(root)
        for refusal in (*_by_both(pointer, node), *of_vendor(pointer, node, root))
    )
    return by_key((refusal.rule, refusal) for refusal in refusals if not (is_strict and refusal.by_strict))


def _by_both(pointer: str, node: Schema) -> Iterator[_Refusal]:
    is_array = node.get("type") == "array"
    if _has_free_keys(node):
        remedy = "name its keys in properties, write an array of objects with a key and a value"
        yield _Refusal(pointer, f"a dictionary with free keys; {remedy}")
    elif describes(node, "object") and node.get("additionalProperties") is not False:
        yield _Refusal(pointer, "additionalProperties is not false; write it as false", by_strict=True)
    if not any(key in node for key in _TYPED) or (is_array and not {"items", "prefixItems"} & node.keys()):
        yield _Refusal(pointer, "a value without a type; write a type, for an array also its items")


def _by_openai(pointer: str, node: Schema, root: Schema) -> Iterator[_Refusal]:
    if node is root:
        target = target_of(root["$ref"], root) if "$ref" in root else root
        if not isinstance(target, Mapping) or target.get("type") != "object" or "anyOf" in target:
            yield _Refusal(pointer, 'a root that is not an object; write "type": "object", the value as a property')
    for name in _optional_keys(node):
        child = f"{pointer}/properties/{name}"
        yield _Refusal(child, "an optional key; require it and allow null", by_strict=True)
    if "$ref" in node and (node is root or len(node) > 1):
        rule = '$ref at the root or beside other keywords; write "anyOf": [{"$ref": …}] or the definition itself'
        yield _Refusal(pointer, rule, by_strict=True)
    if "oneOf" in node:
        yield _Refusal(f"{pointer}/oneOf", "oneOf; write anyOf", by_strict=True)
    if "prefixItems" in node:
        yield _Refusal(f"{pointer}/prefixItems", "prefixItems; write an object with named keys")
    for key in (key for key in _OPENAI_REFUSES if key in node):
        yield _Refusal(f"{pointer}/{key}", "an unsupported keyword; remove it")


def _by_anthropic(pointer: str, node: Schema, root: Schema) -> Iterator[_Refusal]:
    keywords = [key for key in _ANTHROPIC_REFUSES if key in node] + ["minItems"] * (node.get("minItems", 0) > 1)
    for key in keywords:
        rule = "an unsupported keyword; remove it and describe it in the description"
        yield _Refusal(f"{pointer}/{key}", rule, by_strict=True)
    if _is_recursive(node, root):
        yield _Refusal(pointer, "a recursive definition; write the needed levels one by one")
    parts = list(schemas_in(root)) if node is root else []
    if sum(len(_optional_keys(part)) for part in parts) > _MAX_OPTIONAL:
        yield _Refusal(pointer, f"more than {_MAX_OPTIONAL} optional keys; require some of them")
    if sum("anyOf" in part or len(types_of(part)) > 1 for part in parts) > _MAX_UNIONS:
        yield _Refusal(pointer, f"more than {_MAX_UNIONS} values with several types; make some optional, not nullable")


def _has_free_keys(node: Schema) -> bool:
    extra = node.get("additionalProperties")
    is_free = bool(extra) or "patternProperties" in node or "properties" not in node
    return describes(node, "object") and extra is not False and is_free


def _optional_keys(node: Schema) -> list[str]:
    return [name for name in node.get("properties", ()) if name not in node.get("required", ())]


def _is_recursive(node: Schema, root: Schema) -> bool:
    reached, ahead = set[str](), references_of(node)
    while ahead:
        parts = schemas_in(target_of(ahead.pop(), root))
        new = {name for part in parts for name in references_of(part)} - reached
        reached |= new
        ahead += new
    return bool(reached.intersection(references_of(node)))


def _subschemas(node: Any, pointer: str = "#") -> Iterator[tuple[str, Schema]]:
    if isinstance(node, list):
        for index, child in enumerate(node):
            yield from _subschemas(child, f"{pointer}/{index}")
    elif isinstance(node, Mapping):
        yield pointer, node
        for key in ("items", "prefixItems", "anyOf", "oneOf", "allOf"):
            yield from _subschemas(node.get(key), f"{pointer}/{key}")
        for key in ("properties", "$defs", "definitions"):
            for name, child in node.get(key, {}).items():
                yield from _subschemas(child, f"{pointer}/{key}/{name.replace('~', '~0').replace('/', '~1')}")


def _without_dialect(schema: Schema) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != "$schema"}


def sent_schema(request: Request, model: Model) -> dict[str, Any]:
    """Return the output schema, in strict form if the model requires it. Raise ProviderError if that is impossible."""
    schema = _without_dialect(request.schema or {})
    if model.structured_output != STRICT:
        return schema
    return deepcopy(_strict_form(json.dumps(schema), model.provider))


def response_format(request: Request, model: Model) -> dict[str, Any]:
    """Return an object with OpenAI's `response_format`, or {} without a schema or if structured_output is `none`."""
    if request.schema is None or model.structured_output == "none":
        return {}
    if not model.sends_schema:
        return {"response_format": {"type": "json_object"}}
    schema = {"name": request.schema_name, "schema": sent_schema(request, model), "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


@lru_cache(maxsize=32)
def _strict_form(text: str, provider: str) -> dict[str, Any]:
    """Convert a schema to the form that a provider accepts in strict mode. Raise ProviderError if it has none."""
    schema: dict[str, Any] = json.loads(text)
    for rule, refusals in _refusals(schema, provider, is_strict=True).items():
        message = f"{provider} refuses the output schema at {refusals[0].pointer}: {rule}"
        raise ProviderError("schema_refused", message, kind="not_run", fatal=True)
    if "$ref" in schema:
        schema |= target_of(schema.pop("$ref"), schema)
    if provider == "anthropic":
        from anthropic import transform_schema

        try:
            return transform_schema(_closed(schema, None))
        except (TypeError, ValueError, AssertionError) as problem:  # such as `true` for a subschema
            message = f"Anthropic's SDK cannot transform the output schema: {problem}"
            raise ProviderError("schema_refused", message, kind="not_run", fatal=True) from None
    form: dict[str, Any] = _closed(schema, schema)
    return form


def _closed(node: Any, root: Schema | None) -> Any:
    """Return a subschema that allows only named keys, has `anyOf` in place of `oneOf`, and has no defaults.

    With a `root` (OpenAI) all keys are required, and nullable if they were optional. Without a `root` (Anthropic) a
    list of types becomes an `anyOf`.
    """
    if isinstance(node, list):
        return [_closed(child, root) for child in node]
    if not isinstance(node, Mapping):
        return node
    form: dict[str, Any] = {}
    for name, child in node.items():
        key = str({"oneOf": "anyOf", "definitions": "$defs"}.get(name, name))
        if key in NAMED_SCHEMAS and isinstance(child, Mapping):
            form[key] = {inside: _closed(inner, root) for inside, inner in child.items()}
        elif key not in ("default", "discriminator"):
            form[key] = child if key in DATA else _closed(child, root)
    if "$ref" in form:
        form["$ref"] = form["$ref"].replace("#/definitions/", "#/$defs/", 1)
    if describes(node, "object") and not _has_free_keys(node):
        form = {"type": "object", **form, "additionalProperties": False}
    if root is None:
        types = [] if {"enum", "const"} & form.keys() else form.get("type")
        return {"anyOf": [{**form, "type": name} for name in types]} if isinstance(types, list) and types else form
    if "$ref" in form and len(form) > 1:
        form["anyOf"] = [{"$ref": form.pop("$ref")}]
    for name in _optional_keys(node):
        if not _allows_null(node["properties"][name], root):
            form["properties"][name] = {"anyOf": [form["properties"][name], {"type": "null"}]}
    return {**form, "required": list(form["properties"])} if "properties" in form else form


def _allows_null(node: Any, root: Schema) -> bool:
    if not isinstance(node, Mapping):
        return node is not False
    if "null" not in (types_of(node) or ["null"]) or None not in node.get("enum", [node.get("const")]):
        return False
    every = [[part] for part in (*(target_of(name, root) for name in references_of(node)), *node.get("allOf", ()))]
    branches = [*every, *(node[key] for key in ("anyOf", "oneOf") if key in node)]
    return all(any(_allows_null(part, root) for part in parts) for parts in branches)


def output_of(completion: Completion, request: Request, model: Model) -> Completion:
    """Return the completion with the output as its text. A cut or refused completion is unchanged.

    The output of a tool call is its arguments. If they are missing, the stop reason becomes `no_tool_call`. In strict
    mode a model writes null for a missing optional key; such nulls are removed.
    """
    if completion.stop_reason in ("length", "too_large", "refusal"):
        return completion
    if request.by_tool_call and completion.tool_call.strip():
        beside = completion.reasoning or completion.text
        completion = replace(completion, text=completion.tool_call, tool_call="", reasoning=beside)
    elif request.by_tool_call:
        return replace(completion, stop_reason="no_tool_call")
    if request.schema is None or model.structured_output != STRICT:
        return completion
    parsed, reasoning = parse_output(completion.text, "json"), split_reasoning(completion.text)[0]
    value = _without_nulls(parsed.value, [request.schema], request.schema)
    is_same = parsed.form != "whole" or value == parsed.value
    return completion if is_same else replace(completion, text=reasoning + json.dumps(value, ensure_ascii=False))


def _without_nulls(value: Any, nodes: Sequence[Any], root: Schema) -> Any:
    """Remove from a value the nulls at optional keys whose schemas forbid null. `nodes` are the value's schemas."""
    parts = [part for node in nodes for part in same_value(node, root) if isinstance(part, Mapping)]
    if isinstance(value, list):
        items = [part["items"] for part in parts if "items" in part]
        return [_without_nulls(item, items, root) for item in value]
    if not isinstance(value, dict):
        return value
    fields = {}
    for name, child in value.items():
        owners = [part for part in parts if name in part.get("properties", ())]
        members = [part["properties"][name] for part in owners]
        is_optional = any(name in _optional_keys(part) for part in owners)
        if child is not None or not is_optional or any(_allows_null(member, root) for member in members):
            fields[name] = _without_nulls(child, members, root)
    return fields
