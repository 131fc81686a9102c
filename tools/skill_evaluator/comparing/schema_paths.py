"""From a JSON Schema to the paths it speaks of and what stands at each: a comparator's name, `object`, `array of …`.

A path is dotted, with `[]` for array items and `*` for any key that the schema does not name.
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from skill_evaluator.comparing.declarations import Compare

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
        return self.kind == "string" and any(_types(node) & {"number", "integer"} for node in self.nodes)


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
    if path and place.kind not in _ARRAYS and _describes(node, "object"):
        place.kind = "object"
    if _describes(node, "array"):
        kind = _array_kind(node, root)
        if place.kind not in _ARRAYS or _ARRAYS.index(kind) > _ARRAYS.index(place.kind):
            place.kind = kind
    scalar = _scalar_kind(node)
    if scalar and place.kind in _UNDECIDED and (scalar not in _UNDECIDED or place.kind == "any"):
        place.kind = scalar


def reached(places: Mapping[str, Place], ends: Collection[str]) -> set[str]:
    """Return the paths that are inside none of those where the way down ends.

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
    if _describes(node, "object"):
        yield from ((below(path, name), child) for name, child in node.get("properties", {}).items())
        others = (*map(node.get, _OPEN_KEYS), *node.get("patternProperties", {}).values())
        yield from ((below(path, "*"), child) for child in others if isinstance(child, Mapping))
    if _describes(node, "array"):
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
    if any(_describes(part, "object") or _describes(part, "array") for part in parts):
        return "array of objects"
    return "array of scalars" if any(map(_scalar_kind, parts)) else "array of anything"


def _types(node: _Node) -> set[str]:
    types = node.get("type", ())
    return {types} if isinstance(types, str) else set(types)


def _describes(node: _Node, kind: str) -> bool:
    """Return whether a schema describes objects, or arrays: by its type, or by a keyword that only they have."""
    return kind in _types(node) or any(keyword in node for keyword in _KEYWORDS[kind])


def _scalar_kind(node: _Node) -> Compare | None:
    types = _types(node)
    if "enum" in node or "const" in node:
        values = node.get("enum", [node.get("const")])
        return "category" if any(isinstance(value, str) for value in values) else "exact"
    if "string" in types:
        return "date" if node.get("format") == "date" else "string"
    if types & {"number", "integer"}:
        return "number"
    return "exact" if types & set(_SCALARS) else None


def children(node: _Node, keywords: Iterable[str]) -> Iterator[Any]:
    """Yield what stands under some keywords of a schema: one schema, several in a list, or several by name."""
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
    """Return what a local reference names: a JSON pointer, or an anchor. Return None if there is no such part."""
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
