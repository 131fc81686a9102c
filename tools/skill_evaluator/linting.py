"""What a component's declarations come to: every field, how it is compared and why.

A loaded component in, plain values out. The guesses at what may be a mistake are in `hints`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from skill_evaluator.components import Component
from skill_evaluator.metrics.fieldplan import FieldRule
from skill_evaluator.metrics.schema_paths import Place, schema_places

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
    if component.output != "json":
        return [PlanLine(path="", kind="field", rule=plan.leaf("", ""), why=f"output: {component.output}")]
    lines = []
    for path, place in schema_places(schema).items():
        given = declared.get(path)
        if path in plan.arrays:
            lines.append(_array_line(path, plan.arrays[path], given, place))
        elif path in plan.leaves:
            lines.append(_leaf_line(path, plan.leaves[path], given, place))
    return lines


def _leaf_line(path: str, rule: FieldRule, given: Declaration | None, place: Place) -> PlanLine:
    inferred = schema_keyword(place, rule.compare or "exact")
    why = _reason(given, given is not None and given.get("compare") is not None, inferred)
    return PlanLine(path=path, kind="field", rule=rule, why=why)


def _array_line(path: str, rule: FieldRule, given: Declaration | None, place: Place) -> PlanLine:
    why = _reason(given, given is not None and bool(given.get("align") or given.get("key")), place.kind)
    return PlanLine(path=path, kind="array", rule=rule, why=why)


def _reason(given: Declaration | None, decides: bool, inferred: str) -> str:
    """What decided: the declaration, or the schema; then also what was declared beside it, such as a weight."""
    if given is None or decides:
        return "declared" if decides else inferred
    return f"{inferred} (declared: {', '.join(sorted(given))})"


def schema_keyword(place: Place, compare: str) -> str:
    """The keyword of the schema from which the comparison at a place is inferred.

    >>> schema_keyword(Place(nodes=[{"type": ["string", "null"], "format": "date"}]), "date")
    'format: date'
    """
    found = dict.fromkeys(_keyword(node, compare) for node in place.nodes)
    return " or ".join(filter(None, found)) or "the schema"


def _keyword(node: _Node, compare: str) -> str:
    if "enum" in node or "const" in node:
        return "enum" if "enum" in node else "const"
    if compare == "date" and "format" in node:
        return f"format: {node['format']}"
    types = node.get("type", ())
    names = [name for name in ([types] if isinstance(types, str) else types) if name != "null"]
    return f"type: {' or '.join(names)}" if names else ""
