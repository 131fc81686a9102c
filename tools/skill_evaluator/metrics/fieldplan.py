"""From `schema.json` and the declared fields to one plan: how each leaf is compared, how each array is aligned.

A path is dotted, with `[]` for array items: `budget[].amount`. What is not declared is read off the schema; a leaf
that neither knows (a key the model invented) is compared by the type of its value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat

from skill_evaluator.config import Share
from skill_evaluator.errors import ComponentError
from skill_evaluator.text import nearest

Compare = Literal["exact", "string", "number", "date", "category", "text", "ignore"]
Align = Literal["key", "best", "ordered", "set"]
_MAX_REF_VISITS = 2  # how often a recursive schema is unrolled
_SCALARS = ("string", "number", "integer", "boolean", "null")


class FieldRule(BaseModel):
    """What evals/datasets.json may say of one path; everything left out is read off the schema."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    compare: Compare | None = None
    tolerance: NonNegativeFloat = 0.0
    relative_tolerance: NonNegativeFloat = 0.0
    from_string: bool = False
    casefold: bool = False
    ignore_punctuation: bool = False
    threshold: Share | None = None
    formats: tuple[str, ...] = ()
    tolerance_days: NonNegativeFloat = 0.0
    weight: NonNegativeFloat = 1.0
    align: Align | None = None
    key: tuple[str, ...] = Field(default=(), description="fields that identify an item, for align: key")

    @property
    def counts(self) -> bool:
        """Whether the field's leaves enter field_level_f1 (free text does only with a threshold)."""
        return self.compare != "ignore" and not (self.compare == "text" and self.threshold is None)

    @property
    def exact_equality(self) -> bool:
        """Whether «equal» is an equivalence relation, so that equal canonical forms decide it."""
        return self.threshold is None and not (self.tolerance or self.relative_tolerance or self.tolerance_days)


_BY_TYPE: Mapping[type, FieldRule] = {
    bool: FieldRule(compare="exact"),
    int: FieldRule(compare="number"),
    float: FieldRule(compare="number"),
    str: FieldRule(compare="string"),
}
_ANY = FieldRule(compare="exact")
_BEST = FieldRule(align="best")
_SET = FieldRule(align="set")


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldPlan:
    """The rules by path. `leaves` and `arrays` are what the schema knows, in the schema's order."""

    leaves: Mapping[str, FieldRule] = field(default_factory=dict)
    arrays: Mapping[str, FieldRule] = field(default_factory=dict)

    def leaf(self, path: str, *values: Any) -> FieldRule:
        """The rule of a leaf; of one unknown to the schema, by the type of the first value that is not null."""
        rule = self.leaves.get(path)
        if rule is not None:
            return rule
        return next((_BY_TYPE.get(type(value), _ANY) for value in values if value is not None), _ANY)

    def array(self, path: str, items: list[Any]) -> FieldRule:
        """The alignment of an array; of one unknown to the schema, by its items: objects `best`, scalars `set`."""
        rule = self.arrays.get(path)
        if rule is not None:
            return rule
        return _BEST if any(isinstance(item, dict | list) for item in items) else _SET


def plan_fields(schema: Mapping[str, Any] | None, declared: Mapping[str, FieldRule], where: str) -> FieldPlan:
    """Compile the plan; raises ComponentError for a declared path that the schema does not have."""
    found: dict[str, str] = {}
    if schema is not None:
        _walk(schema, schema, "", found, {})
        _check_paths(declared, found, where)
    leaves: dict[str, FieldRule] = {}
    arrays: dict[str, FieldRule] = {}
    closed = tuple(path for path, rule in declared.items() if rule.compare is not None)
    for path, kind in {**found, **{path: found.get(path, "string") for path in declared}}.items():
        if any(path.startswith((f"{parent}.", f"{parent}[]")) for parent in closed):
            continue  # inside a subtree that is compared, or ignored, as a whole
        rule = declared.get(path, FieldRule())
        if kind.startswith("array") and rule.compare is None:
            arrays[path] = _array_rule(rule, kind, path, where)
        elif kind != "object" or rule.compare is not None:
            leaves[path] = rule if rule.compare else rule.model_copy(update={"compare": kind})
    return FieldPlan(leaves=leaves, arrays=arrays)


def _array_rule(rule: FieldRule, kind: str, path: str, where: str) -> FieldRule:
    align = rule.align or ("key" if rule.key else "best" if kind == "array of objects" else "set")
    if align == "key" and not rule.key:
        raise ComponentError(f"align: key without key: [...] at fields.{path} in {where}")
    return rule.model_copy(update={"align": align})


def _check_paths(declared: Mapping[str, FieldRule], found: Mapping[str, str], where: str) -> None:
    for path, rule in declared.items():
        if path not in found:
            raise ComponentError(f"field '{path}' in {where} is not in the schema {nearest(path, found)}")
        for key in rule.key:
            if f"{path}[].{key}" not in found:
                items = [known.rpartition(".")[2] for known in found if known.startswith(f"{path}[].")]
                raise ComponentError(
                    f"key '{key}' at fields.{path}.key in {where} is not in the items {nearest(key, items)}"
                )


def _walk(node: Any, root: Mapping[str, Any], path: str, found: dict[str, str], visits: Mapping[str, int]) -> None:
    """Note the kind of every path below a schema node: a comparator's name, `object` or `array of …`."""
    node, visits = _resolve(node, root, visits)
    if node is None:
        return
    for branch in (*node.get("anyOf", ()), *node.get("oneOf", ()), *node.get("allOf", ())):
        _walk(branch, root, path, found, visits)
    types = node.get("type", ())
    types = {types} if isinstance(types, str) else set(types)
    if "properties" in node or "object" in types:
        if path:
            found.setdefault(path, "object")
        for name, child in node.get("properties", {}).items():
            _walk(child, root, f"{path}.{name}" if path else name, found, visits)
    if "items" in node or "array" in types:
        items, _ = _resolve(node.get("items", {}), root, visits)
        found[path] = f"array of {'objects' if _has_parts(items, root) else 'scalars'}"
        _walk(node.get("items", {}), root, f"{path}[]", found, visits)
    kind = _scalar_kind(node, types)
    if kind and found.get(path) in (None, "exact"):
        found[path] = kind


def _scalar_kind(node: Mapping[str, Any], types: set[str]) -> Compare | None:
    if "enum" in node or "const" in node:
        values = node.get("enum", [node.get("const")])
        return "category" if any(isinstance(value, str) for value in values) else "exact"
    if "string" in types:
        return "date" if node.get("format") == "date" else "string"
    if types & {"number", "integer"}:
        return "number"
    return "exact" if types & set(_SCALARS) - {"null"} else None


def _has_parts(items: Mapping[str, Any] | None, root: Mapping[str, Any]) -> bool:
    if not items:
        return False
    branches = [items, *items.get("anyOf", ()), *items.get("oneOf", ()), *items.get("allOf", ())]
    resolved = (_resolve(branch, root, {})[0] or {} for branch in branches)
    return any("properties" in branch or branch.get("type") in ("object", "array") for branch in resolved)


def _resolve(
    node: Any, root: Mapping[str, Any], visits: Mapping[str, int]
) -> tuple[Mapping[str, Any] | None, Mapping[str, int]]:
    """Follow local references; None once a recursive one was unrolled often enough, or the node is a boolean."""
    while isinstance(node, Mapping) and "$ref" in node:
        reference = node["$ref"]
        visits = {**visits, reference: visits.get(reference, 0) + 1}
        if visits[reference] > _MAX_REF_VISITS:
            return None, visits
        target: Any = root
        for part in reference.removeprefix("#").strip("/").split("/"):
            if part:
                target = target.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(target, Mapping) else None
        node = target
    return (node if isinstance(node, Mapping) else None), visits
