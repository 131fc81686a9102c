"""An output schema: a JSON Schema, checked and compiled once to validate any number of values."""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

import jsonschema_rs

from skill_evaluator.comparing.declarations import (
    DATA,
    NAMED_SCHEMAS,
    children,
    references_of,
    same_value,
    schemas_in,
    target_of,
)
from skill_evaluator.comparing.field_plan import FieldPlan
from skill_evaluator.errors import ComponentError
from skill_evaluator.files import read_json
from skill_evaluator.library.config import SafetyLimits
from skill_evaluator.library.reading import ConfinedFolder
from skill_evaluator.parsing import ANY_VALUE, Expected
from skill_evaluator.text import canonical_json, digest, key_path, matches, nearest

_READING_KEYS = ("patternProperties", "additionalProperties", "unevaluatedProperties")
_DRAFT = re.compile(r"https?://json-schema\.org/(draft-0[467]|draft/2019-09|draft/2020-12)/schema#?")
_T = TypeVar("_T")
_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_BRANCHES = ("allOf", "anyOf", "oneOf")
_FOR_THE_SAME_VALUE = (*_BRANCHES, "dependentSchemas", "dependencies", "not", "if", "then", "else")
_RULES = (
    *("type", "enum", "not", "if", "pattern", "format", "minLength", "maxLength", "multipleOf"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "properties", "patternProperties", "required"),
    *("propertyNames", "additionalProperties", "unevaluatedProperties", "minProperties", "maxProperties", "items"),
    *("prefixItems", "additionalItems", "unevaluatedItems", "contains", "minItems", "maxItems", "uniqueItems"),
    *("dependencies", "dependentRequired", "dependentSchemas"),
)
_BRANCH_KEYWORDS = ("anyOf", "oneOf")
_COMBINING_KEYWORDS = (*_BRANCHES, "if", "then", "else")
_EXTRA_KEYS = ("additionalProperties", "unevaluatedProperties")
_MAX_MESSAGE = 200  # characters; a message quotes the invalid value
_MAX_EFFORT = 10_000
_MAX_REFERENCES = 100


ContractError = tuple[str, str, str]
"""The path of a schema error, which ends with a missing or extra key, its schema keyword and its message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputContract:
    """The validity of an output, with and without extra keys, its errors, and its missing and extra top-level keys."""

    holds: bool = True
    holds_but_for_extra_keys: bool = True
    errors: tuple[ContractError, ...] = ()
    missing_keys: frozenset[str] = frozenset()
    extra_keys: frozenset[str] = frozenset()


def contract_errors(errors: Iterable[Any], plan: FieldPlan) -> tuple[ContractError, ...]:
    """Convert errors of a `jsonschema_rs` validator. Each extra key becomes one error. Long messages are shortened."""
    broken = []
    for error in errors:
        rule, message, error_paths = error.kind.name, error.message, [error.instance_path]
        if rule == "required":
            error_paths = [[*error.instance_path, error.kind.property]]
        elif rule in _EXTRA_KEYS:
            error_paths = [[*error.instance_path, key] for key in error.kind.unexpected]
        if len(message) > _MAX_MESSAGE:
            message = f"{message[: _MAX_MESSAGE - 1]}…"
        broken += [(plan.field("").descendant(steps).path, rule, message) for steps in error_paths]
    return tuple(broken)


def only_extra_keys(errors: Sequence[Any]) -> bool:
    """Return whether each error is an extra key. For `anyOf` and `oneOf`, one branch with only such errors suffices."""
    for error in errors:
        if error.kind.name in _BRANCH_KEYWORDS:
            if not any(branch and only_extra_keys(branch) for branch in getattr(error.kind, "context", ())):
                return False
        elif error.kind.name not in _EXTRA_KEYS:
            return False
    return True


def missing_and_extra_keys(
    output: Any, required: frozenset[str], named: frozenset[str] | None
) -> tuple[frozenset[str], frozenset[str]]:
    """Return (missing keys, extra keys), both empty if the output is no object. If `named` is None, no key is extra."""
    if not isinstance(output, dict):
        return frozenset(), frozenset()
    return required - output.keys(), frozenset() if named is None else frozenset(output) - named


def top_names(schema: Mapping[str, Any] | None) -> tuple[frozenset[str], frozenset[str] | None]:
    """Return (required keys, keys in `properties`) of the objects that a schema describes at its top level.

    Keys that only a part in `anyOf`, `oneOf` or `if` requires are not required. The second value is None if
    `properties` has no keys, or if `patternProperties` or `additionalProperties` has a schema for other keys.
    """
    nodes = [node for node in same_value(schema, schema or {}, _COMBINING_KEYWORDS) if isinstance(node, Mapping)]
    certain = [node for node in same_value(schema, schema or {}, ("allOf",)) if isinstance(node, Mapping)]
    property_names = frozenset(name for node in nodes for name in node.get("properties", ()))
    required = frozenset(name for node in certain for name in node.get("required", ()))
    is_open = any(
        "patternProperties" in node or isinstance(node.get("additionalProperties"), Mapping) for node in nodes
    )
    return required, property_names if property_names and not is_open else None


class Contract:
    """A compiled JSON Schema. The empty schema `{}` accepts every value.

    >>> Contract({"properties": {"total": {"type": "number"}}}, "the schema").errors({"total": "9"})
    ['/total: "9" is not of type "number"']
    """

    def __init__(self, schema: Any, label: str) -> None:
        """Compile the schema. Raise ComponentError, naming `label`, if it is invalid or refers to a file or URL."""
        self.where = label
        if not isinstance(schema, Mapping):
            raise ComponentError(f"{label} is not a JSON Schema: an object is expected")
        schema = dict(schema)
        self.schema: Mapping[str, Any] | None = schema or None  # None: every value is valid
        draft = schema.get("$schema")
        if draft is not None and not (isinstance(draft, str) and _DRAFT.fullmatch(draft)):
            raise ComponentError(f"{label} names an unknown draft in $schema: {draft}")
        for reference in (reference for node in schemas_in(schema) for reference in references_of(node)):
            if not reference.startswith("#"):
                raise ComponentError(f"{label} refers to '{reference}'; only local references (#/...) are followed")
        try:
            jsonschema_rs.meta.validate(schema)
            self._validator: Any = jsonschema_rs.validator_for(schema, validate_formats=True)
            efforts: dict[int, int] = {}
            # the largest number of schemas tried on one value
            self.effort = max(_effort(node, schema, efforts) for node in schemas_in(schema))
            rules = {key: value for key, value in schema.items() if key != "$schema"}
            self._top_names = top_names(schema)
            self.expected = Expected(tuple(_root_types(schema, schema)), rules) if rules else ANY_VALUE
        except jsonschema_rs.ValidationError as problem:
            path = problem.instance_path
            types = problem.instance if isinstance(problem.instance, list) else [problem.instance]
            unknown = [str(name) for name in types if name not in _TYPES]
            message = f"{label} is not a valid JSON Schema at {_pointer(path)}: {problem.message}"
            if path[-1:] == ["type"] and unknown:
                advice = nearest(unknown[0], _TYPES)
                message = f"unknown type '{unknown[0]}' at {key_path(tuple(path))} in {label} {advice}"
            raise ComponentError(message) from None
        except (ValueError, jsonschema_rs.ReferencingError) as problem:
            raise ComponentError(f"{label} is not a valid JSON Schema: {problem}") from None

    def conforms(self, value: Any) -> bool:
        """Return whether a value validates against the schema."""
        return bool(_validate(self._validator.is_valid, value))

    def violations(self, value: Any, max_errors: int | None = None) -> list[jsonschema_rs.ValidationError]:
        """Return the first `max_errors` validation errors, or all. Raise RecursionError if the nesting is too deep."""
        return list(islice(_validate(self._validator.iter_errors, value), max_errors))

    def check(self, output: Any, plan: FieldPlan, max_errors: int) -> OutputContract:
        """Return the validity of an output with its first `max_errors` errors, whose paths are those of `plan`."""
        missing, extra = missing_and_extra_keys(output, *self._top_names)
        holds = self.conforms(output)
        violations = [] if holds else self.violations(output, max_errors)
        return OutputContract(
            holds=holds,
            holds_but_for_extra_keys=only_extra_keys(violations),
            errors=contract_errors(violations, plan)[:max_errors],  # one error may name any number of extra keys
            missing_keys=missing,
            extra_keys=extra,
        )

    def errors(self, value: Any) -> list[str]:
        """Return one text per violation: its JSON Pointer, message and, for anyOf and oneOf, the likeliest cause."""
        violations = self.violations(value)
        branched = any(error.schema_path[-1:] in (["anyOf"], ["oneOf"]) for error in violations)
        closest = self._closest(value) if branched else {}
        texts = [(_pointer(error.instance_path), error.message) for error in violations]
        return [f"{pointer}: {message}{closest.get(pointer, '')}" for pointer, message in texts]

    def _closest(self, value: Any) -> dict[str, str]:
        """Return the likeliest cause of each violation of anyOf or oneOf, by JSON Pointer of the wrong value."""
        from jsonschema import exceptions, validators

        def pattern(_: Any, expression: str, text: Any, __: Any) -> Iterator[exceptions.ValidationError]:
            with suppress(ValueError):  # RE2 rejects the pattern
                if isinstance(text, str) and not matches(text, expression):
                    yield exceptions.ValidationError(f"{text!r} does not match {expression!r}")

        # Python's re may take hours on some patterns: RE2 matches values, and patterns for keys are ignored
        rules = {"pattern": pattern, **dict.fromkeys(_READING_KEYS, lambda *_: None)}
        validator = validators.extend(validators.validator_for(self.schema), rules)(self.schema)
        causes = {}
        with suppress(RecursionError):  # jsonschema supports less nesting than jsonschema-rs
            for error in validator.iter_errors(value):
                cause = exceptions.best_match([error])
                if error.context and cause is not error:
                    pointer = _pointer(list(cause.absolute_path))
                    causes[_pointer(list(error.absolute_path))] = f" (closest: {pointer}: {cause.message})"
        return causes


def _validate(validate: Callable[[Any], _T], value: Any) -> _T:
    try:
        return validate(value)
    # JSON may contain a lone surrogate, which UTF-8 cannot encode: replace it by a question mark
    except UnicodeEncodeError:
        return _validate(validate, json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")))
    except ValueError as problem:  # raised for errors nested deeper than about 250 levels
        raise RecursionError(str(problem)) from None


def _root_types(node: Any, root: Mapping[str, Any]) -> set[type]:
    types: dict[str, type] = {"object": dict, "array": list}
    if not isinstance(node, Mapping):
        return set() if node is False else {dict, list}
    declared = node.get("type", "object" if "properties" in node else [*types])  # objects are often written so
    allowed = {types[name] for name in ([declared] if isinstance(declared, str) else declared) if name in types}
    parts = [[part] for part in (*(target_of(name, root) for name in references_of(node)), *node.get("allOf", ()))]
    for branches in (*parts, *(node[key] for key in ("anyOf", "oneOf") if key in node)):
        allowed &= set().union(*(_root_types(branch, root) for branch in branches))
    return allowed


def constrains(node: Any, root: Mapping[str, Any]) -> bool:
    """Return whether the schema `node` in `root` can reject a value. Unreferenced `$defs` cannot.

    >>> constrains({"$defs": {"total": {"type": "number"}}}, {})
    False
    """
    return any(map(_has_rule, same_value(node, root, _BRANCHES)))


def _has_rule(node: Mapping[str, Any] | bool) -> bool:
    if isinstance(node, bool):
        return not node
    rules = [node[key] for key in _RULES if key in node]
    return "const" in node or any(rule is not True and rule not in ({}, []) for rule in rules)


def _effort(node: Any, root: Mapping[str, Any], efforts: dict[int, int], depth: int = 0) -> int:
    """Count the schemas that one value is checked against. Raise ValueError for a cycle or too many schemas."""
    if not isinstance(node, dict):  # true, false or missing
        return 0
    if depth > _MAX_REFERENCES:
        raise ValueError(f"more than {_MAX_REFERENCES} references and subschemas inside each other")
    effort = efforts.get(id(node))
    if effort is None:
        efforts[id(node)] = 0  # while it is counted
        targets = [target_of(reference, root) for reference in references_of(node)]
        tried = (*targets, *children(node, _FOR_THE_SAME_VALUE))
        effort = efforts[id(node)] = 1 + sum(_effort(child, root, efforts, depth + 1) for child in tried)
    if effort == 0:
        raise ValueError("a schema refers to itself for the same value; remove one of its references")
    if effort > _MAX_EFFORT:
        raise ValueError(f"more than {_MAX_EFFORT:,} schemas apply to one value, by branches or references; simplify")
    return effort


def _pointer(parts: list[str | int]) -> str:
    return "/" + "/".join(map(str, parts))


_MAX_FILES = 50
_MAX_PARTS = 100_000  # maximum number of objects and arrays in the merged schema
# keys that do not carry over to another file
_FILE_KEYS = ("$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$defs", "definitions")


def read_schema(
    folder: Path, declared: str | None, limits: SafetyLimits
) -> tuple[Mapping[str, Any] | None, str, dict[str, str]]:
    """Return the output schema of the component in `folder`, its location as text, and digests by name.

    `declared` is a file and a part of it (`schema.json#/$defs/output`). By default the schema is schema.json, or None
    if there is no such file. The digest `schema` is that of schema.json. There is also a digest `contract` if the
    schema is declared or merged from several files. Raise ComponentError for an invalid file.
    """
    schema_path = folder / "schema.json"
    name, _, fragment = (declared or schema_path.name).partition("#")
    files = _Files(folder, name, limits)
    content = files.read(schema_path) if schema_path.exists() else None
    digests = {"schema": digest(canonical_json(content))}
    if declared is None:
        references = [ref for node in schemas_in(content) for ref in references_of(node)]
        if content is None or all(reference.startswith("#") for reference in references):
            return content, str(schema_path), digests
    schema = files.merge(Path(os.path.normpath(folder / name)), f"#{fragment}")
    return schema, f"{folder / (declared or schema_path.name)}", {**digests, "contract": digest(canonical_json(schema))}


class _Files:
    def __init__(self, folder: Path, name: str, limits: SafetyLimits) -> None:
        library = Path(os.path.normpath(Path.cwd() / folder)).parent.parent
        self._root = next((path for path in (library, *library.parents) if (path / ".git").exists()), library)
        self._inside = ConfinedFolder(self._root, ComponentError, follow_links=limits.follow_links)
        self._limit = limits.size_of("schema_bytes")
        self._where = str(folder / name)
        self._read: dict[Path, dict[str, Any]] = {}
        self._names: dict[tuple[Path, str], str] = {}
        self._queue: list[tuple[Path, str]] = []
        self._parts = 0

    def read(self, path: Path) -> dict[str, Any]:
        absolute = Path(os.path.normpath(Path.cwd() / path))
        if absolute not in self._read:
            if not absolute.is_relative_to(self._root):
                raise ComponentError(f"{self._where} refers to {path}, which is outside {self._root}")
            if len(self._read) == _MAX_FILES:
                raise ComponentError(f"{self._where} refers to more than {_MAX_FILES} files; merge them")
            self._inside.inside(absolute)
            self._read[absolute] = read_json(path, ComponentError, self._limit)
            if not isinstance(self._read[absolute], dict):
                raise ComponentError(f"{path} is not a JSON Schema: an object is expected")
        return self._read[absolute]

    def merge(self, path: Path, fragment: str) -> dict[str, Any]:
        """Return the subschema at `fragment` of a file. Its `$defs` has a copy of every subschema that it refers to."""
        schema = self._rewritten(self._target(path, fragment), path)
        if not isinstance(schema, dict):
            raise ComponentError(f"{self._where}{fragment} is not a JSON Schema: an object is expected")
        definitions: dict[str, Any] = {}
        while self._queue:
            path, fragment = self._queue.pop()
            definitions[self._names[path, fragment]] = self._rewritten(self._target(path, fragment), path)
        drafts = {str(file["$schema"]).rstrip("#") for file in self._read.values() if "$schema" in file}
        if len(drafts) > 1:
            problem = f"refers to a file of a different draft: {' and '.join(drafts)}"
            raise ComponentError(f"{self._where} {problem}; write the same $schema into each file")
        draft = {"$schema": drafts.pop()} if drafts else {}
        return draft | schema | ({"$defs": definitions} if definitions else {})

    def _target(self, path: Path, fragment: str) -> Any:
        target = target_of(fragment, self.read(path))
        if target is None:
            raise ComponentError(f"{self._where}: '{fragment}' does not exist in {path}")
        return target

    def _rewritten(self, node: Any, path: Path) -> Any:
        self._parts += 1
        if self._parts > _MAX_PARTS:
            raise ComponentError(f"{self._where} has more than {_MAX_PARTS:,} parts, references included")
        if isinstance(node, list):
            return [self._rewritten(child, path) for child in node]
        if not isinstance(node, dict):
            return node
        copy: dict[str, Any] = {}
        for key, child in node.items():
            if key in _FILE_KEYS:
                continue
            if key in NAMED_SCHEMAS and isinstance(child, dict):
                copy[key] = {name: self._rewritten(inner, path) for name, inner in child.items()}
            elif key == "$ref" and isinstance(child, str):
                copy[key] = f"#/$defs/{self._definition_name(child, path)}"
            elif key == "$dynamicRef":
                raise ComponentError(f"{self._where}: $dynamicRef is not supported here; write $ref")
            else:
                copy[key] = child if key in DATA else self._rewritten(child, path)
        return copy

    def _definition_name(self, reference: str, path: Path) -> str:
        file, _, fragment = reference.partition("#")
        if ":" in file or file.startswith("/"):
            allowed = "references inside of it (#/...) and to files of this repository (../other/schema.json)"
            raise ComponentError(f"{self._where} refers to '{reference}'; only {allowed} are followed")
        target = Path(os.path.normpath(path.parent / unquote(file))) if file else path
        key = (target, f"#{fragment}")
        if key not in self._names:
            name = re.sub(r"\W", "_", fragment.rpartition("/")[2] or target.parent.name, flags=re.ASCII)
            names = set(self._names.values())
            self._names[key] = name if name not in names else f"{name}_{len(names) + 1}"
            self._queue.append(key)
        return self._names[key]
