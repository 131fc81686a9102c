"""What a component's declarations come to: every field, how it is compared and why.

A loaded component in, plain values out. The guesses at what may be a mistake are in `hints`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from skill_evaluator.components import Component
from skill_evaluator.metrics.fieldplan import FieldRule
from skill_evaluator.metrics.schema_paths import schema_paths

_Node = Mapping[str, Any]
Declaration = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLine:
    """One path of the field plan. `why` says where its comparison, or its alignment, comes from."""

    path: str
    kind: Literal["field", "array"]
    rule: FieldRule
    why: str

    @property
    def counted(self) -> bool:
        """Whether the field moves field_level_f1."""
        return self.kind == "field" and self.rule.counts and self.rule.weight > 0


def plan_lines(component: Component, declared: Mapping[str, Declaration]) -> list[PlanLine]:
    """Every array and field of the plan in the schema's order, an array before its items.

    `declared` is what evals/datasets.json says of a path, as it stands there.
    """
    plan, schema = component.plan, component.schema or {}
    if component.output == "text":
        return [PlanLine(path="", kind="field", rule=plan.leaf("", ""), why="output: text")]
    kinds = schema_paths(schema)
    arrays = {path: _array_line(path, rule, declared.get(path), kinds) for path, rule in plan.arrays.items()}
    lines = []
    for path, rule in plan.leaves.items():
        lines += [arrays.pop(array) for array in list(arrays) if path.startswith(f"{array}[]")]
        given = declared.get(path)
        inferred = schema_keyword(schema, path, rule.compare or "exact")
        why = _reason(given, given is not None and given.get("compare") is not None, inferred)
        lines.append(PlanLine(path=path, kind="field", rule=rule, why=why))
    return [*lines, *arrays.values()]


def _array_line(path: str, rule: FieldRule, given: Declaration | None, kinds: Mapping[str, str]) -> PlanLine:
    why = _reason(given, given is not None and bool(given.get("align") or given.get("key")), kinds.get(path, ""))
    return PlanLine(path=path, kind="array", rule=rule, why=why)


def _reason(given: Declaration | None, decides: bool, inferred: str) -> str:
    """What decided: the declaration, or the schema; then also what was declared beside it, such as a weight."""
    if given is None or decides:
        return "declared" if decides else inferred
    return f"{inferred} (declared: {', '.join(sorted(given))})"


def schema_keyword(schema: _Node, path: str, compare: str) -> str:
    """The keyword of the schema from which the comparison of a path is inferred.

    >>> schema_keyword({"properties": {"due": {"type": ["string", "null"], "format": "date"}}}, "due", "date")
    'format: date'
    """
    found = dict.fromkeys(_keyword(node, compare) for node in _nodes_at(schema, schema, path))
    return " or ".join(filter(None, found)) or "the schema"


def _keyword(node: _Node, compare: str) -> str:
    if "enum" in node or "const" in node:
        return "enum" if "enum" in node else "const"
    if compare == "date" and "format" in node:
        return f"format: {node['format']}"
    types = node.get("type", ())
    names = [name for name in ([types] if isinstance(types, str) else types) if name != "null"]
    return f"type: {' or '.join(names)}" if names else ""


def _nodes_at(node: Any, root: _Node, path: str) -> Iterator[_Node]:
    """The schema nodes, of every branch, that describe what stands at a path below a node."""
    for part in _parts(node, root, set()):
        if not path:
            yield part
        for step, child in _children(part):
            rest = path.removeprefix(step)
            if rest != path and (not rest or rest.startswith((".", "[]")) or step == "[]"):
                yield from _nodes_at(child, root, rest.removeprefix("."))


def _children(node: _Node) -> Iterator[tuple[str, Any]]:
    yield from node.get("properties", {}).items()
    open_keys = (node.get("additionalProperties"), *node.get("patternProperties", {}).values())
    yield from (("*", child) for child in open_keys)
    items = node.get("items")
    places = [*node.get("prefixItems", ()), *(items if isinstance(items, list) else [items])]
    yield from (("[]", child) for child in places)


def _parts(node: Any, root: _Node, seen: set[str]) -> Iterator[_Node]:
    """A node itself, its references followed (each once), and whatever it is combined of."""
    if not isinstance(node, Mapping):
        return
    reference = node.get("$ref")
    if isinstance(reference, str) and reference not in seen:
        seen.add(reference)
        yield from _parts(_target(reference, root), root, seen)
    yield node
    for keyword in ("anyOf", "oneOf", "allOf"):
        for part in node.get(keyword, ()):
            yield from _parts(part, root, seen)
    yield from (part for keyword in ("then", "else") for part in _parts(node.get(keyword), root, seen))


def _target(reference: str, root: _Node) -> Any:
    target: Any = root
    for part in filter(None, reference.removeprefix("#").split("/")):
        target = target.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(target, Mapping) else None
    return target
