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
_MOST_NODES = 20_000  # after so many, no reference is followed: definitions that all refer to each other
_COMBINED = ("anyOf", "oneOf", "allOf", "then", "else", "dependentSchemas")
NAMED_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
DATA = ("const", "enum", "default", "examples")
_OPEN_KEYS = ("additionalProperties", "unevaluatedProperties")
_OF_OBJECTS = ("properties", "patternProperties", *_OPEN_KEYS)
_OF_ARRAYS = ("items", "prefixItems")
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
    walk = _Walk(schema)
    while walk.ahead:
        walk.note(*walk.ahead.popleft())
    return {path: walk.found[path] for path in walk.in_order()}


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


class _Walk:
    """One walk over a schema, level by level: where it must end early, what is missing lies deepest."""

    def __init__(self, root: _Node) -> None:
        self.root = root
        self.found: dict[str, Place] = {}
        self.nodes = 0
        self.ahead: deque[tuple[Any, str, _Visits]] = deque([(root, "", {})])

    def in_order(self) -> list[str]:
        """Return the paths in the schema's order, each before those below it."""
        ordered, stack = [], [""]
        while stack:
            path = stack.pop()
            if path in self.found:
                ordered.append(path)
                stack += reversed(self.found[path].children)
        return ordered

    def _go_on(self, node: Any, parent: str, path: str, visits: _Visits) -> None:
        if path != parent:  # as that of a key without a name would be at the top
            self.found[parent].children[path] = None
        self.ahead.append((node, path, visits))

    def note(self, node: Any, path: str, visits: _Visits) -> None:
        """Note what stands at a path, by one schema node; those below it come later."""
        if node is True:
            self.found.setdefault(path, Place())
        for part, seen in self._parts(node, visits):
            place = self.found.setdefault(path, Place())
            place.nodes.append(part)
            if _is_of(part, "object", _OF_OBJECTS):
                self._note_object(part, path, seen)
            if _is_of(part, "array", _OF_ARRAYS):
                self._note_array(part, path, seen)
            kind = _scalar_kind(part)
            if kind and place.kind in _UNDECIDED and (kind not in _UNDECIDED or place.kind == "any"):
                place.kind = kind

    def _note_object(self, node: _Node, path: str, visits: _Visits) -> None:
        place = self.found[path]
        if path and place.kind not in _ARRAYS:
            place.kind = "object"
        for name, child in node.get("properties", {}).items():
            self._go_on(child, path, below(path, name), visits)
        for child in (*map(node.get, _OPEN_KEYS), *node.get("patternProperties", {}).values()):
            if isinstance(child, Mapping):
                self._go_on(child, path, below(path, "*"), visits)

    def _note_array(self, node: _Node, path: str, visits: _Visits) -> None:
        items, rest = node.get("items"), node.get("additionalItems")
        places = node.get("prefixItems", items if isinstance(items, Sequence) else ())
        alike = rest if isinstance(items, Sequence) else items
        place = self.found[path]
        # what the items are in some branch; also of a recursive reference that is not unrolled any further
        parts = [] if places else [part for part, _ in self._parts(alike, {})]
        if places:
            kind = "array of places"
        elif any(_is_of(part, "object", _OF_OBJECTS) or _is_of(part, "array", _OF_ARRAYS) for part in parts):
            kind = "array of objects"
        else:
            kind = "array of scalars" if any(map(_scalar_kind, parts)) else "array of anything"
        if place.kind not in _ARRAYS or _ARRAYS.index(kind) > _ARRAYS.index(place.kind):
            place.kind = kind
        for child in (*places, alike):
            if isinstance(child, Mapping):
                self._go_on(child, path, f"{path}[]", visits)

    def _parts(self, node: Any, visits: _Visits) -> Iterator[tuple[_Node, _Visits]]:
        """Yield a node with all it is combined of, and its references followed; nothing for `true` and `false`."""
        if not isinstance(node, Mapping):
            return
        self.nodes += 1
        yield node, visits
        for reference in references_of(node):
            if self.nodes < _MOST_NODES:
                seen = visits.get(reference, 0)
                if seen < _MAX_REF_VISITS:
                    yield from self._parts(target_of(reference, self.root), {**visits, reference: seen + 1})
        for branch in children(node, _COMBINED):
            yield from self._parts(branch, visits)


def _types(node: _Node) -> set[str]:
    types = node.get("type", ())
    return {types} if isinstance(types, str) else set(types)


def _is_of(node: _Node, kind: str, keywords: Sequence[str]) -> bool:
    """Return whether a node speaks of objects, or of arrays: by its type, or by a keyword that is only theirs."""
    return kind in _types(node) or any(keyword in node for keyword in keywords)


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
    """Return what a local reference names: a JSON pointer, or an anchor in the definitions."""
    pointer = unquote(reference.removeprefix("#"))
    if pointer and not pointer.startswith("/"):
        named = (root, *root.get("$defs", {}).values(), *root.get("definitions", {}).values())
        anchors = ("$anchor", "$dynamicAnchor", "$id", "id")
        wanted = (pointer, reference)
        return next((node for node in named if any(node.get(name) in wanted for name in anchors)), None)
    target: Any = root
    for part in pointer.split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(target, Mapping):
            target = target.get(part)
        else:
            target = target[int(part)] if isinstance(target, list) and part.isdecimal() else None
    return target
