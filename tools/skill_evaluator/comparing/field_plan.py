"""From `schema.json` and the declared fields to one plan: how each leaf is compared, how each array is aligned.

A path is dotted, with `[]` for array items: `budget[].amount`. What is not declared is read off the schema; a leaf
that neither knows (a key the model invented) is compared by the type of its value.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from skill_evaluator.comparing.comparators import comparator, read_number
from skill_evaluator.comparing.declarations import (
    Align,
    FieldRule,
    Place,
    below,
    reached,
    refuse_idle_settings,
    schema_places,
)
from skill_evaluator.errors import ComponentError
from skill_evaluator.text import keys_by_nfc_name, nearest_path, with_nfc_keys

__all__ = ["Field", "FieldPlan", "FieldRule", "plan_fields"]

_BY_TYPE: Mapping[type, FieldRule] = {
    bool: FieldRule(compare="exact"),
    int: FieldRule(compare="number"),
    float: FieldRule(compare="number"),
    str: FieldRule(compare="string"),
}
_ANY = FieldRule(compare="exact")
_BEST = FieldRule(align="best")
_SET = FieldRule(align="set")
_ALIGNED: Mapping[str, Align] = {
    "array of objects": "best",
    "array of places": "ordered",
    "array of scalars": "set",
}
_MOST_FIELDS = 10_000  # kept per plan; keys that models invent are without end


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldPlan:
    """The rules by path. `leaves` and `arrays` are what the schema knows, in the schema's order.

    `declared` are the paths that evals/datasets.json speaks of; the rest is read off the schema. `named` are all paths
    the schema has, also those without a rule: a key among them is never taken for the `*` beside it; `stars` are the
    paths to each `*` that the plan has rules for. `numeric_texts` are the paths where "4.75" is the number 4.75.
    """

    leaves: Mapping[str, FieldRule] = field(default_factory=dict)
    arrays: Mapping[str, FieldRule] = field(default_factory=dict)
    declared: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()
    numeric_texts: frozenset[str] = frozenset()
    stars: frozenset[str] = field(init=False, repr=False, compare=False)
    _fields: "dict[str, Field]" = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        stars = frozenset(star for path in (*self.leaves, *self.arrays) for star in _stars(path))
        object.__setattr__(self, "stars", stars)

    def leaf(self, path: str, *values: Any) -> FieldRule:
        """Return the rule of a leaf; for unknown leaves, by the type of the first value that is not null."""
        return self.leaves.get(path) or _by_type(values)

    @property
    def counts(self) -> bool:
        """Whether some field counts in field_level_f1, or the plan has no leaves."""
        return not self.leaves or any(rule.counts and rule.weight > 0 for rule in self.leaves.values())

    def field(self, path: str) -> "Field":
        """Return the plan at one path, from which those below it are reached."""
        cached = self._fields.get(path)
        if cached is None:
            cached = Field(path, self)
            if not self.full:
                self._fields[path] = cached
        return cached

    def with_numbers(self, value: Any) -> Any:
        """Return a value with its numeric texts replaced by numbers; all scores and digests are of this form.

        >>> plan_fields({"properties": {"a": {"type": ["number", "string"]}}}, {}, "").with_numbers({"a": "4.750"})
        {'a': 4.75}
        """
        if not self.numeric_texts:
            return value
        top = [value]
        ahead: list[tuple[Any, Any, str]] = [(top, 0, "")]
        while ahead:
            parent, key, path = ahead.pop()
            part = parent[key]
            if isinstance(part, dict):
                part = parent[key] = dict(part)
                names = {key: name for name, key in keys_by_nfc_name(part).items()}
                for name in part:
                    child = below(path, names.get(name, name))
                    ahead.append((part, name, child if child in self.named else below(path, "*")))
            elif isinstance(part, list):
                part = parent[key] = list(part)
                ahead += [(part, index, f"{path}[]") for index in range(len(part))]
            elif isinstance(part, str) and path in self.numeric_texts:
                parent[key] = read_number(part)
        return top[0]

    @property
    def full(self) -> bool:
        """Whether no further field is kept."""
        return len(self._fields) >= _MOST_FIELDS

    def walk(self, value: Any) -> "Iterator[tuple[Field, Any]]":
        """Yield every part of a value with its field, outermost first: objects, arrays and leaves; nulls included.

        A leaf compared as a whole is not entered. No recursion, because values may be hundreds of levels deep.

        >>> [(field.path, part) for field, part in FieldPlan().walk({"a": [1, 2]})]
        [('', {'a': [1, 2]}), ('a', [1, 2]), ('a[]', 1), ('a[]', 2)]
        """
        ahead = [(self.field(""), value)]
        while ahead:
            field, part = ahead.pop()
            yield field, part
            if field.rule is not None:
                continue
            if isinstance(part, dict):
                ahead += [(field.child(name), child) for name, child in reversed(with_nfc_keys(part).items())]
            elif isinstance(part, list):
                ahead += [(field.item, child) for child in reversed(part)]


class Field:
    """The plan at one path; the fields below it are cached."""

    __slots__ = ("_alignment", "_item", "_plan", "by_closeness", "children", "ignored", "is_star", "path", "rule")

    def __init__(self, path: str, plan: FieldPlan) -> None:
        self.path = path
        self.rule = plan.leaves.get(path)
        self.ignored = self.rule is not None and self.rule.compare == "ignore"
        self.by_closeness = self.rule is not None and self.rule.counts and not self.rule.exact_equality
        self.is_star = path in plan.stars
        self.children: dict[str, Field] = {}
        self._plan = plan
        self._alignment = plan.arrays.get(path)
        self._item: Field | None = None

    def child(self, key: str) -> "Field":
        """Return the field of an object's key."""
        cached = self.children.get(key)
        if cached is None:
            path, star, plan = below(self.path, key), below(self.path, "*"), self._plan
            known = path in plan.named or path in plan.leaves
            cached = plan.field(path if known or star not in plan.stars else star)
            if not plan.full:
                self.children[key] = cached
        return cached

    @property
    def item(self) -> "Field":
        """The field of an array's items."""
        if self._item is None:
            self._item = self._plan.field(f"{self.path}[]")
        return self._item

    def at(self, steps: Iterable[str | int]) -> "Field":
        """Return the field at the end of keys and array indexes from here."""
        field = self
        for step in steps:
            field = field.item if isinstance(step, int) else field.child(step)
        return field

    def leaf_rule(self, *values: Any) -> FieldRule:
        """Return the rule of a leaf here; see `FieldPlan.leaf`."""
        return self.rule or _by_type(values)

    def array_rule(self, *items: Any) -> FieldRule:
        """Return the alignment rule of an array here; by its items if the schema has none: `best` or `set`."""
        if self._alignment is not None and self._alignment.align is not None:
            return self._alignment
        return _BEST if any(isinstance(item, dict | list) for item in items) else _SET


def _by_type(values: Iterable[Any]) -> FieldRule:
    return next((_BY_TYPE.get(type(value), _ANY) for value in values if value is not None), _ANY)


def plan_fields(schema: Mapping[str, Any] | None, declared: Mapping[str, FieldRule], where: str) -> FieldPlan:
    """Compile the plan; raise ComponentError for a declared path that the schema does not have."""
    places = {} if schema is None else schema_places(schema)
    numeric = {path for path, place in places.items() if place.allows_numeric_text}
    kinds = {path: place.kind for path, place in places.items() if path or place.kind != "any"}
    kinds |= dict.fromkeys(numeric, "number")
    if schema is not None:
        _check_paths(declared, kinds, where)
    leaves: dict[str, FieldRule] = {}
    arrays: dict[str, FieldRule] = {}
    inside = _inside([path for path, rule in declared.items() if rule.compare is not None], places, declared)
    open_keys = {star for path in declared for star in _stars(path)}
    for path, kind in {**kinds, **{path: kinds.get(path, "any") for path in declared}}.items():
        if path in inside:
            continue
        if not open_keys.issuperset(_stars(path)) or (kind == "any" and path not in declared):
            continue
        rule = declared.get(path, FieldRule())
        if rule.compare is None and (kind.startswith("array") or (kind == "any" and rule.align)):
            arrays[path] = _array_rule(rule, kind, path, where)
        elif kind != "object" or rule.compare is not None:
            leaves[path] = _leaf_rule(rule, kind, path, where)
        elif path in declared:
            refuse_idle_settings(rule, "object", path, where)
    return FieldPlan(
        leaves=leaves,
        arrays=arrays,
        declared=frozenset(declared),
        named=frozenset(kinds),
        numeric_texts=frozenset(
            path for path in numeric - inside if path not in declared or declared[path].compare in (None, "number")
        ),
    )


def _stars(path: str) -> list[str]:
    """Return the paths to each `*` in a path: `a.*`, and `a.*.b[].*` of `a.*.b[].*.c`."""
    parts = path.split(".")
    return [".".join(parts[: at + 1]) for at, part in enumerate(parts) if part.removesuffix("[]") == "*"]


def _inside(closed: Sequence[str], places: Mapping[str, Place], declared: Iterable[str]) -> set[str]:
    """Return the paths inside a subtree that is compared or ignored as a whole: by the schema, else as written."""
    if places:
        return places.keys() - reached(places, closed)
    below_it = {parent: (f"{parent}.", f"{parent}[]") if parent else "" for parent in closed}
    return {path for path in declared for parent in closed if path != parent and path.startswith(below_it[parent])}


def _leaf_rule(rule: FieldRule, kind: str, path: str, where: str) -> FieldRule:
    chosen = rule if rule.compare else replace(rule, compare="string" if kind == "any" else kind)
    comparator(chosen.compare or "exact")  # an unknown one, or a package that does not load, is reported here
    refuse_idle_settings(chosen, "leaf", path, where)
    return chosen


def _array_rule(rule: FieldRule, kind: str, path: str, where: str) -> FieldRule:
    align = rule.align or ("key" if rule.key else _ALIGNED.get(kind))
    if align == "key" and not rule.key:
        raise ComponentError(f"align: key without key: [...] at fields.{path} in {where}")
    chosen = replace(rule, align=align)
    refuse_idle_settings(chosen, "array", path, where)
    return chosen


def _check_paths(declared: Mapping[str, FieldRule], kinds: Mapping[str, str], where: str) -> None:
    for path, rule in declared.items():
        if path not in kinds:
            raise ComponentError(f"field '{path}' in {where} is not in the schema {nearest_path(path, kinds)}")
        items = [known.removeprefix(f"{path}[].") for known in kinds if known.startswith(f"{path}[].")]
        for key in rule.key:
            if key not in items:
                raise ComponentError(
                    f"key '{key}' at fields.{path}.key in {where} is not in the items {nearest_path(key, items)}"
                )
