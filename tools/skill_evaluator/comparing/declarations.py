"""The declarations of a field in evals/datasets.json and in the schema: comparator, alignment, weight, and paths.

A path is dotted, with `[]` for array items and `*` for any key that the schema does not name.
"""

import datetime
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args
from urllib.parse import unquote

from pydantic import BaseModel

from skill_evaluator import plugins
from skill_evaluator.errors import ComponentError
from skill_evaluator.files import validated
from skill_evaluator.text import listed, nearest

Compare = Literal["exact", "string", "number", "date", "category", "text", "ignore"]
Align = Literal["key", "best", "ordered", "set"]
COMPARATOR_GROUP = "skill_evaluator.comparators"  # entry-point group of plugins
_NOT_NEGATIVE = {"ge": 0}
_SHARE = {"ge": 0, "le": 1}
_COMPARATOR = {"examples": list(get_args(Compare)), "description": "a shipped comparator, or one of a package"}
_KEY = {"description": "fields that identify an item, for align: key"}
_NO_OPTIONS = {"compare", "weight", "align", "key"}
_OPTIONS_OF: Mapping[str, set[str]] = {
    "exact": set(),
    "string": {"casefold", "ignore_punctuation", "threshold"},
    "number": {"tolerance", "relative_tolerance", "from_string"},
    "date": {"formats", "tolerance_days"},
    "category": set(),
    "text": {"threshold"},
}
_COMPARATOR_TEXTS = {"exact": "exact value", "ignore": "ignored"}
_ALIGNMENT_TEXTS = {"best": "by best assignment", "ordered": "in order", "set": "as a set"}
_SAMPLE_DAYS = (
    datetime.datetime(2001, 2, 3, tzinfo=datetime.UTC),
    datetime.datetime(2014, 12, 25, tzinfo=datetime.UTC),
)


# pydantic validates `metadata` when settings are read.
@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRule:
    """The settings of one path in evals/datasets.json. An omitted `compare` or `align` is inferred."""

    __pydantic_config__: ClassVar[Mapping[str, str]] = {"extra": "forbid"}

    compare: str | None = field(default=None, metadata=_COMPARATOR)
    tolerance: float = field(default=0.0, metadata=_NOT_NEGATIVE)
    relative_tolerance: float = field(default=0.0, metadata=_NOT_NEGATIVE)
    from_string: bool = False
    casefold: bool = False
    ignore_punctuation: bool = False
    threshold: float | None = field(default=None, metadata=_SHARE)
    formats: tuple[str, ...] = ()
    tolerance_days: float = field(default=0.0, metadata=_NOT_NEGATIVE)
    weight: float = field(default=1.0, metadata={"ge": 0, "le": 1_000_000})
    align: Align | None = None
    key: tuple[str, ...] = field(default=(), metadata=_KEY)

    @property
    def counts(self) -> bool:
        """Whether values with this comparator count in field_level_f1. The result does not depend on `weight`.

        Ignored fields and free text without a threshold do not count.
        """
        return self.compare != "ignore" and not (self.compare == "text" and self.threshold is None)

    @property
    def exact_equality(self) -> bool:
        """Whether the rule has neither a tolerance nor a threshold, so that leaves are compared by canonical form."""
        return self.threshold is None and not (self.tolerance or self.relative_tolerance or self.tolerance_days)

    @property
    def options(self) -> dict[str, Any]:
        """The comparator's settings by name, without default values."""
        options = (member for member in fields(self) if member.name not in _NO_OPTIONS)
        return {each.name: value for each in options if (value := getattr(self, each.name)) != each.default}


def refuse_wrong_rules(rules: Mapping[str, FieldRule], key_path: str, where: str) -> None:
    """Raise ComponentError for an unknown comparator or unreadable date format below `key_path` in the file `where`."""
    shipped = get_args(Compare)
    for path, rule in rules.items():
        if rule.compare not in (None, *shipped) and rule.compare not in (added := plugins.names(COMPARATOR_GROUP)):
            is_alignment = rule.compare in get_args(Align)
            hint = f"(align: {rule.compare}?)" if is_alignment else nearest(str(rule.compare), (*shipped, *added))
            raise ComponentError(f"unknown comparator '{rule.compare}' {hint} at {key_path}.{path}.compare in {where}")
        for form in rule.formats:
            if not _keeps_days(form):
                raise ComponentError(
                    f"'{form}' is not a date format at {key_path}.{path}.formats in {where}; "
                    "write the codes of strptime, such as %Y-%m-%d"
                )


def refuse_idle_settings(rule: FieldRule, kind: Literal["leaf", "array", "object"], path: str, where: str) -> None:
    """Raise ComponentError for a setting that has no effect on this kind of value."""
    settings = [*rule.options, *(["weight"] if rule.weight != 1 else [])]
    aligned = [name for name in ("align", "key") if getattr(rule, name)]
    if kind == "leaf":
        allowed = _OPTIONS_OF.get(rule.compare or "exact", set(settings)) | {"weight"}
        accepted = f"{rule.compare} takes {', '.join(sorted(allowed))}"
    elif kind == "array":
        allowed = {"align"} | ({"key"} if rule.align == "key" else set())
        accepted = f"an array takes align, and a key with align: key; its items are fields.{path}[]"
    else:
        allowed = set()
        accepted = f"an object is compared by its fields, such as fields.{path}.…, unless it declares compare"
    idle = [name for name in (*settings, *aligned) if name not in allowed]
    if idle:
        raise ComponentError(f"{idle[0]} has no effect at fields.{path} in {where}: {accepted}")


def _keeps_days(form: str) -> bool:  # false for an invalid format, and for one without codes, such as YYYY-MM-DD
    with suppress(ValueError):
        first, second = (datetime.datetime.strptime(day.strftime(form), form) for day in _SAMPLE_DAYS)
        return first != second
    return False


def field_rules(settings: Any, where: str) -> dict[str, FieldRule]:
    """Convert settings by field path to rules. Raise ComponentError with the key path of an invalid setting."""

    class _FieldSettings(BaseModel):
        fields: dict[str, FieldRule]

    rules = validated(_FieldSettings, {"fields": settings}, Path(where), ComponentError).fields
    refuse_wrong_rules(rules, "fields", where)
    return rules


def compared_as(rule: FieldRule) -> str:
    """Format the comparator of a leaf with its options, such as `number, ± 0.005, also written as text`."""
    kind = rule.compare or "exact"
    if kind == "text":
        return "text, reported only" if rule.threshold is None else f"text, from token F1 {rule.threshold:g}"
    options = rule.options.items()
    descriptions = [_OPTIONS[name](value) if name in _OPTIONS else f"{name} {value}" for name, value in options]
    return ", ".join([_COMPARATOR_TEXTS.get(kind, kind), *descriptions])


def aligned_by(rule: FieldRule) -> str:
    """Format the alignment of an array's items, such as `by key category + period`."""
    if rule.align == "key":
        return f"by key {' + '.join(rule.key)}"
    return _ALIGNMENT_TEXTS[rule.align] if rule.align else "by its items"


_OPTIONS: Mapping[str, Callable[[Any], str]] = {
    "tolerance": lambda value: f"± {value:g}",
    "relative_tolerance": lambda value: f"± {value * 100:g} %",
    "from_string": lambda value: "also written as text",
    "casefold": lambda value: "case folded",
    "ignore_punctuation": lambda value: "punctuation ignored",
    "threshold": lambda value: f"from {value:g} edit similarity",
    "formats": lambda value: f"written {listed(value, 3)}{' ways' * (len(value) > 3)}",
    "tolerance_days": lambda value: f"± {value:g} days",
}


_MAX_REF_VISITS = 2  # times that a recursive reference is expanded
_MAX_NODES = 20_000  # bounds the walk over mutually recursive definitions
_COMBINING_KEYWORDS = ("anyOf", "oneOf", "allOf", "then", "else", "dependentSchemas")
NAMED_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
DATA = ("const", "enum", "default", "examples")
_OPEN_KEYS = ("additionalProperties", "unevaluatedProperties")
_KEYWORDS = {"object": ("properties", "patternProperties", *_OPEN_KEYS), "array": ("items", "prefixItems")}
# Later kinds take precedence.
_ARRAYS = ("array of anything", "array of scalars", "array of objects", "array by position")
_SCALARS = ("string", "number", "integer", "boolean")
_UNDECIDED = ("exact", "number")  # any other kind from another branch of the schema takes precedence
_Node = Mapping[str, Any]
_Visits = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SchemaPath:
    """The values at one path of a schema: their kind, and the subschemas (`nodes`) that describe them.

    `kind` is the name of a comparator or one of these: `object`, `array of scalars`, `array of objects`,
    `array by position` (a schema per position), `array of anything` (no schema for items), `any` (no declared type).
    An object at the root also has the kind `any`.
    """

    kind: str
    nodes: Sequence[_Node]

    @property
    def allows_numeric_text(self) -> bool:
        """Whether the schema allows both numbers and any text, like that of a pydantic `Decimal`."""
        return self.kind == "string" and any(types_of(node) & {"number", "integer"} for node in self.nodes)


def schema_places(schema: _Node) -> dict[str, SchemaPath]:
    """Return the kind and subschemas of each path of a schema, in the schema's order, the root first."""
    nodes: dict[str, list[_Node]] = {}
    for path, node in schema_walk(schema):
        if node is not False:
            nodes.setdefault(path, []).extend([node] if isinstance(node, Mapping) else [])
    return {path: SchemaPath(_kind(nodes[path], path, schema), nodes[path]) for path in _in_depth_order(nodes)}


def _in_depth_order(nodes: Mapping[str, Sequence[_Node]], ends: Collection[str] = ()) -> list[str]:
    """Return the paths of a schema in depth-first order, without the paths below a path in `ends`."""
    ordered: dict[str, None] = {}
    ahead = [""]
    while ahead:
        path = ahead.pop()
        if path in nodes and path not in ordered:
            ordered[path] = None
            below_path = dict.fromkeys(child for node in nodes[path] for child, _ in _values_below(node, path))
            ahead += () if path in ends else reversed(below_path)
    return list(ordered)


def _kind(nodes: Sequence[_Node], path: str, root: _Node) -> str:
    """Return the kind of the values that subschemas describe. An array takes precedence, then an object."""
    arrays = [_array_kind(node, root) for node in nodes if describes(node, "array")]
    if arrays:
        return max(arrays, key=_ARRAYS.index)
    if path and any(describes(node, "object") for node in nodes):
        return "object"
    scalars = list(filter(None, map(_scalar_kind, nodes)))
    return next((kind for kind in scalars if kind not in _UNDECIDED), (*scalars, "any")[0])


def paths_outside(path_schemas: Mapping[str, SchemaPath], ends: Collection[str]) -> set[str]:
    """Return the paths of a schema that are not below a path of `ends`. The paths of `ends` are included."""
    return set(_in_depth_order({path: schema.nodes for path, schema in path_schemas.items()}, ends))


def below(path: str, key: str) -> str:
    """Return the path of a key in the object at a path: `a[].b` for the key `b` at `a[]`."""
    return f"{path}.{key}" if path else key


def schema_walk(schema: _Node) -> Iterator[tuple[str, Any]]:
    """Yield the path and the subschema (a mapping, True or False) of every value, level by level.

    References are followed, a recursive one a limited number of times.
    """
    nodes = 0
    ahead: deque[tuple[str, Any, _Visits]] = deque([("", schema, {})])
    while ahead:
        path, node, visits = ahead.popleft()
        for part, visited in _same_value(node, schema, visits, _COMBINING_KEYWORDS):
            nodes += 1
            yield path, part
            if nodes < _MAX_NODES or not visited:
                ahead += [(below_path, child, visited) for below_path, child in _values_below(part, path)]


def same_value(schema: Any, root: _Node, keywords: Sequence[str] = _COMBINING_KEYWORDS) -> Iterator[Any]:
    """Yield a schema and all that may apply to the same value: by reference, or by `keywords` such as `anyOf`."""
    return (part for part, _ in _same_value(schema, root, {}, keywords))


def _same_value(schema: Any, root: _Node, visits: _Visits, keywords: Sequence[str]) -> Iterator[tuple[Any, _Visits]]:
    ahead = [(schema, visits)]
    while ahead:
        node, visited = ahead.pop()
        if isinstance(node, Mapping | bool):
            yield node, visited
        if isinstance(node, Mapping):
            references = [name for name in references_of(node) if visited.get(name, 0) < _MAX_REF_VISITS]
            targets = [(target_of(name, root), {**visited, name: visited.get(name, 0) + 1}) for name in references]
            ahead += reversed([*targets, *((child, visited) for child in children(node, keywords))])


def _values_below(node: Any, path: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(node, Mapping):
        return
    if describes(node, "object"):
        yield from ((below(path, name), child) for name, child in node.get("properties", {}).items())
        open_schemas = (*map(node.get, _OPEN_KEYS), *node.get("patternProperties", {}).values())
        yield from ((below(path, "*"), child) for child in open_schemas if isinstance(child, Mapping))
    if describes(node, "array"):
        by_position, item_schema = _items(node)
        yield from ((f"{path}[]", child) for child in (*by_position, item_schema) if isinstance(child, Mapping))


def _items(node: _Node) -> tuple[Sequence[Any], Any]:
    """Return the schemas of an array's first items by position, and the schema of all other items."""
    items = node.get("items")
    if isinstance(items, Sequence):
        return node.get("prefixItems", items), node.get("additionalItems")
    return node.get("prefixItems", ()), items


def _array_kind(node: _Node, root: _Node) -> str:
    by_position, item_schema = _items(node)
    if by_position:
        return "array by position"
    parts = [part for part in same_value(item_schema, root) if isinstance(part, Mapping)]
    if any(describes(part, "object") or describes(part, "array") for part in parts):
        return "array of objects"
    return "array of scalars" if any(map(_scalar_kind, parts)) else "array of anything"


def types_of(node: _Node) -> set[str]:
    """Return the names in a schema's `type`."""
    types = node.get("type", ())
    return {types} if isinstance(types, str) else set(types)


def describes(node: _Node, kind: str) -> bool:
    """Return whether a schema describes an object or an array (`kind`), by its type or by another keyword."""
    return kind in types_of(node) or any(keyword in node for keyword in _KEYWORDS[kind])


def _scalar_kind(node: _Node) -> Compare | None:
    types = types_of(node)
    if "enum" in node or "const" in node:
        values = node.get("enum", [node.get("const")])
        return "category" if any(isinstance(value, str) for value in values) else "exact"
    if "string" in types:
        return "date" if node.get("format") == "date" else "string"
    if types & {"number", "integer"}:
        return "number"
    return "exact" if types & set(_SCALARS) else None


def children(node: _Node, keywords: Iterable[str]) -> Iterator[Any]:
    """Yield the subschemas under these keywords: a single schema, a list, or schemas by name."""
    for keyword in keywords:
        child = node.get(keyword)
        if isinstance(child, list):
            yield from child
        elif keyword in NAMED_SCHEMAS and isinstance(child, Mapping):
            yield from child.values()  # the keys are names, even «default» or «$ref»
        elif child is not None:
            yield child


def schemas_in(schema: Any) -> Iterator[_Node]:
    """Yield a schema and its subschemas; omit true, false and the data of `const`, `enum`, `default` and `examples`."""
    ahead = [schema]
    while ahead:
        node = ahead.pop()
        if isinstance(node, list):
            ahead += node
        elif isinstance(node, dict):
            yield node
            ahead += children(node, (keyword for keyword in node if keyword not in DATA))


def references_of(node: _Node) -> list[str]:
    """Return the `$ref` and `$dynamicRef` of a schema, without those of nested schemas."""
    return [node[key] for key in ("$ref", "$dynamicRef") if isinstance(node.get(key), str)]


def target_of(reference: str, root: _Node) -> Any:
    """Return the target of a local reference: a JSON pointer or an anchor. Return None if it does not exist."""
    pointer = unquote(reference.removeprefix("#"))
    if pointer and not pointer.startswith("/"):
        anchors = ("$anchor", "$dynamicAnchor", "$id", "id")
        names = (pointer, reference)
        return next((node for node in schemas_in(root) if any(node.get(key) in names for key in anchors)), None)
    target: Any = root
    for part in pointer.split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(target, Mapping):
            target = target.get(part)
        else:
            target = target[int(part)] if isinstance(target, list) and part.isdecimal() else None
    return target
