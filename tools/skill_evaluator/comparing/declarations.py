"""What evals/datasets.json and the schema say of one field: its comparator, its path, its alignment and its weight.

A plain value, so that scoring imports no pydantic: `metadata` is what pydantic checks where settings are read. A path
is dotted, with `[]` for array items and `*` for any key that the schema does not name.
"""

import datetime
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args
from urllib.parse import unquote

from skill_evaluator import plugins
from skill_evaluator.errors import ComponentError
from skill_evaluator.files import validated
from skill_evaluator.text import listed, nearest

Compare = Literal["exact", "string", "number", "date", "category", "text", "ignore"]
Align = Literal["key", "best", "ordered", "set"]
COMPARATOR_GROUP = "skill_evaluator.comparators"  # the entry points of packages that add some
_NOT_NEGATIVE = {"ge": 0}
_SHARE = {"ge": 0, "le": 1}
_COMPARATOR = {"examples": list(get_args(Compare)), "description": "a comparator shipped, or added by a package"}
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
_SIMPLE = {"exact": "exact value", "ignore": "not looked at"}
_ALIGNED = {"best": "by best assignment", "ordered": "in order", "set": "as a set"}
_DAYS = (datetime.datetime(2001, 2, 3, tzinfo=datetime.UTC), datetime.datetime(2014, 12, 25, tzinfo=datetime.UTC))


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRule:
    """The settings of one path in evals/datasets.json; omitted settings are inferred from the schema."""

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
        """Whether the field's leaves count in field_level_f1 (free text only with a threshold)."""
        return self.compare != "ignore" and not (self.compare == "text" and self.threshold is None)

    @property
    def exact_equality(self) -> bool:
        """Whether equality is an equivalence relation, so that equal canonical forms decide it."""
        return self.threshold is None and not (self.tolerance or self.relative_tolerance or self.tolerance_days)

    @property
    def options(self) -> dict[str, Any]:
        """The comparator's settings that are not at their defaults, by name."""
        settings = {member.name: (getattr(self, member.name), member.default) for member in fields(self)}
        return {
            name: value for name, (value, default) in settings.items() if name not in _NO_OPTIONS and value != default
        }


def refuse_wrong_rules(rules: Mapping[str, FieldRule], place: str, where: str) -> None:
    """Raise ComponentError for a rule that cannot be followed; `place` is the key of the rules in `where`."""
    shipped = get_args(Compare)
    for path, rule in rules.items():
        added = () if rule.compare in (None, *shipped) else plugins.names(COMPARATOR_GROUP)
        if rule.compare is not None and rule.compare not in (*shipped, *added):
            meant = f"(align: {rule.compare}?)" if rule.compare in get_args(Align) else ""
            meant = meant or nearest(rule.compare, (*shipped, *added))
            raise ComponentError(f"unknown comparator '{rule.compare}' {meant} at {place}.{path}.compare in {where}")
        for form in rule.formats:
            _refuse_unreadable_format(form, f"at {place}.{path}.formats in {where}")


def refuse_idle_settings(rule: FieldRule, kind: Literal["leaf", "array", "object"], path: str, where: str) -> None:
    """Raise ComponentError for a setting that would change nothing where it stands; nobody should rely on it.

    A leaf that is ignored, or compared by a package's comparator, may have any option.
    """
    given = [*rule.options, *(["weight"] if rule.weight != 1 else [])]
    aligned = [name for name in ("align", "key") if getattr(rule, name)]
    if kind == "leaf":
        allowed = _OPTIONS_OF.get(rule.compare or "exact", set(given)) | {"weight"}
        takes = f"{rule.compare} takes {', '.join(sorted(allowed))}"
    elif kind == "array":
        allowed = {"align"} | ({"key"} if rule.align == "key" else set())
        takes = f"an array takes align, and a key with align: key; its items are fields.{path}[]"
    else:
        allowed = set()
        takes = f"an object is compared by its fields, such as fields.{path}.…, unless it says compare"
    idle = [name for name in (*given, *aligned) if name not in allowed]
    if idle:
        raise ComponentError(f"{idle[0]} does nothing at fields.{path} in {where}: {takes}")


def _refuse_unreadable_format(form: str, at: str) -> None:
    """Refuse a format that strptime does not know, or by which all days are the same: YYYY-MM-DD."""
    with suppress(ValueError):
        first, second = (datetime.datetime.strptime(day.strftime(form), form) for day in _DAYS)
        if first != second:
            return
    raise ComponentError(f"no date is written '{form}' {at}; formats are those of strptime, such as %Y-%m-%d")


def field_rules(settings: Any, where: str) -> dict[str, FieldRule]:
    """Read rules by path from dicts of settings; raise ComponentError with the key path of the fault."""
    from pydantic import BaseModel  # only whoever gives settings waits for it

    class _FieldSettings(BaseModel):
        fields: dict[str, FieldRule]

    rules = validated(_FieldSettings, {"fields": settings}, Path(where), ComponentError).fields
    refuse_wrong_rules(rules, "fields", where)
    return rules


def compared_as(rule: FieldRule) -> str:
    """Describe a leaf's comparison with its options.

    >>> compared_as(FieldRule(compare="number", tolerance=0.005, from_string=True))
    'number, ± 0.005, also written as text'
    >>> compared_as(FieldRule(compare="text", threshold=0.8))
    'text, from token F1 0.8'
    """
    kind = rule.compare or "exact"
    if kind == "text":
        return "text, reported only" if rule.threshold is None else f"text, from token F1 {rule.threshold:g}"
    options = rule.options.items()
    words = [_OPTIONS[name](value) if name in _OPTIONS else f"{name} {value}" for name, value in options]
    return ", ".join([_SIMPLE.get(kind, kind), *words])


def aligned_by(rule: FieldRule) -> str:
    """Describe how the items of an array find each other.

    >>> aligned_by(FieldRule(align="key", key=("category", "period")))
    'by key category + period'
    """
    if rule.align == "key":
        return f"by key {' + '.join(rule.key)}"
    return _ALIGNED[rule.align] if rule.align else "by what its items are"


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


_MAX_REF_VISITS = 2  # how often a recursive reference is unrolled
_MAX_NODES = 20_000  # bounds the walk over definitions that all refer to each other
_COMBINED = ("anyOf", "oneOf", "allOf", "then", "else", "dependentSchemas")
NAMED_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
DATA = ("const", "enum", "default", "examples")
_OPEN_KEYS = ("additionalProperties", "unevaluatedProperties")
_KEYWORDS = {"object": ("properties", "patternProperties", *_OPEN_KEYS), "array": ("items", "prefixItems")}
_ARRAYS = ("array of anything", "array of scalars", "array of objects", "array of places")  # what is said later wins
_SCALARS = ("string", "number", "integer", "boolean")
_UNDECIDED = (None, "any", "exact", "number")  # kinds that give way to what another branch of the schema says
_Node = Mapping[str, Any]
_Visits = Mapping[str, int]


@dataclass(slots=True)
class Place:
    """What a schema says of one path.

    `kind` is a comparator's name, `object`, `array of scalars`, `array of objects`, `array of places` (items told
    apart by position), `array of anything` if the items are undeclared, or `any` if the schema does not tell.
    Of a text or an object it is `object`. `nodes` are all that speak of it, `children` the paths right below.
    """

    kind: str = "any"
    nodes: list[_Node] = field(default_factory=list)
    children: dict[str, None] = field(default_factory=dict)

    @property
    def allows_numeric_text(self) -> bool:
        """Whether the schema allows both numbers and any text, as that of a Pydantic `Decimal` does."""
        return self.kind == "string" and any(types_of(node) & {"number", "integer"} for node in self.nodes)


def schema_places(schema: _Node) -> dict[str, Place]:
    """Return the place by path, in the schema's order; of the top only if the schema says something of it."""
    places: dict[str, Place] = {}
    for path, node in schema_walk(schema):
        if node is not False:
            place = places.setdefault(path, Place())
        if isinstance(node, Mapping):
            place.nodes.append(node)
            # a key without a name has its parent's path at the top
            place.children |= {child: None for child, _ in _values_below(node, path) if child != path}
            _note_kind(place, node, path, schema)
    ordered, ahead = [], [""]
    while ahead:
        path = ahead.pop()
        if path in places:
            ordered.append(path)
            ahead += reversed(places[path].children)
    return {path: places[path] for path in ordered}


def _note_kind(place: Place, node: _Node, path: str, root: _Node) -> None:
    if path and place.kind not in _ARRAYS and describes(node, "object"):
        place.kind = "object"
    if describes(node, "array"):
        kind = _array_kind(node, root)
        if place.kind not in _ARRAYS or _ARRAYS.index(kind) > _ARRAYS.index(place.kind):
            place.kind = kind
    scalar = _scalar_kind(node)
    if scalar and place.kind in _UNDECIDED and (scalar not in _UNDECIDED or place.kind == "any"):
        place.kind = scalar


def reached(places: Mapping[str, Place], ends: Collection[str]) -> set[str]:
    """Return the paths that are not inside one of `ends`.

    >>> places = schema_places({"properties": {"a": {"properties": {"b": {}}}, "a.c": {}}})
    >>> sorted(reached(places, {"a"}))
    ['', 'a', 'a.c']
    """
    reachable: set[str] = set()
    ahead = [""]
    while ahead:
        path = ahead.pop()
        if path in places and path not in reachable:
            reachable.add(path)
            ahead += () if path in ends else places[path].children
    return reachable


def below(path: str, key: str) -> str:
    """Return the path of an object's key.

    >>> below("", "a"), below("a[]", "b")
    ('a', 'a[].b')
    """
    return f"{path}.{key}" if path else key


def schema_walk(schema: _Node) -> Iterator[tuple[str, Any]]:
    """Yield each subschema with the path of the values that it describes, level by level.

    A subschema is a mapping, True or False. Local references are followed, a recursive one twice.
    """
    nodes = 0
    ahead: deque[tuple[str, Any, _Visits]] = deque([("", schema, {})])
    while ahead:
        path, node, visits = ahead.popleft()
        for part, visited in _same_value(node, schema, visits, _COMBINED):
            nodes += 1
            yield path, part
            if nodes < _MAX_NODES or not visited:
                ahead += [(below_path, child, visited) for below_path, child in _values_below(part, path)]


def same_value(schema: Any, root: _Node, keywords: Sequence[str] = _COMBINED) -> Iterator[Any]:
    """Yield a schema and the ones that it applies to the same value, by a reference or by one of the keywords."""
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
    """Yield the schemas of an object's members and of an array's items, with their paths."""
    if not isinstance(node, Mapping):
        return
    if describes(node, "object"):
        yield from ((below(path, name), child) for name, child in node.get("properties", {}).items())
        others = (*map(node.get, _OPEN_KEYS), *node.get("patternProperties", {}).values())
        yield from ((below(path, "*"), child) for child in others if isinstance(child, Mapping))
    if describes(node, "array"):
        by_position, other = _items(node)
        yield from ((f"{path}[]", child) for child in (*by_position, other) if isinstance(child, Mapping))


def _items(node: _Node) -> tuple[Sequence[Any], Any]:
    """Return the schemas of an array's first items, by position, and that of all other items."""
    items = node.get("items")
    if isinstance(items, Sequence):
        return node.get("prefixItems", items), node.get("additionalItems")
    return node.get("prefixItems", ()), items


def _array_kind(node: _Node, root: _Node) -> str:
    by_position, other = _items(node)
    if by_position:
        return "array of places"
    parts = [part for part in same_value(other, root) if isinstance(part, Mapping)]
    if any(describes(part, "object") or describes(part, "array") for part in parts):
        return "array of objects"
    return "array of scalars" if any(map(_scalar_kind, parts)) else "array of anything"


def types_of(node: _Node) -> set[str]:
    """Return the types that a schema names."""
    types = node.get("type", ())
    return {types} if isinstance(types, str) else set(types)


def describes(node: _Node, kind: str) -> bool:
    """Return whether a schema describes objects, or arrays: by its type, or by a keyword that only they have."""
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
    """Yield the schemas under some keywords of a schema: one, a list, or several by name."""
    for keyword in keywords:
        child = node.get(keyword)
        if isinstance(child, list):
            yield from child
        elif keyword in NAMED_SCHEMAS and isinstance(child, Mapping):
            yield from child.values()  # its keys are names, be they «default» or «$ref»
        elif child is not None:
            yield child


def schemas_in(schema: Any) -> Iterator[_Node]:
    """Yield a schema and all those inside it; `const`, `enum` and examples hold data, and no schema."""
    ahead = [schema]
    while ahead:
        node = ahead.pop()
        if isinstance(node, list):
            ahead += node
        elif isinstance(node, dict):
            yield node
            ahead += children(node, (keyword for keyword in node if keyword not in DATA))


def references_of(node: _Node) -> list[str]:
    """Return the references of one schema, without those of the schemas inside it."""
    return [node[key] for key in ("$ref", "$dynamicRef") if isinstance(node.get(key), str)]


def target_of(reference: str, root: _Node) -> Any:
    """Return the target of a local reference, a JSON pointer or an anchor, or None if it does not exist."""
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
