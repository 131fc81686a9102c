"""Compile `schema.json` and the declared fields to a plan: how each leaf is compared and each array aligned.

A leaf without a rule (a key that the model invented) is compared by the type of its value.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from skill_evaluator.comparing import declarations
from skill_evaluator.comparing.comparators import comparator, read_number
from skill_evaluator.comparing.declarations import Align, FieldRule, SchemaPath, below
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
_DEFAULT_ALIGNMENT: Mapping[str, Align] = {
    "array of objects": "best",
    "array by position": "ordered",
    "array of scalars": "set",
}
_MAX_CACHED_FIELDS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldPlan:
    """The rules of a component by path: `leaves` are compared, `arrays` are aligned. Both are in the schema's order.

    `declared`: the paths in evals/datasets.json; the other rules follow the schema. `named`: all paths of the schema.
    They take precedence over a `*` at the same level, even without a rule. `stars`: the paths to each `*` with rules.
    `numeric_texts`: the paths whose texts in number format, such as "4.75", are numbers.
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

    def leaf(self, path: str, value: Any = None) -> FieldRule:
        """Return the rule of a leaf. An unknown leaf has the rule for the type of its value."""
        return self.leaves.get(path) or _BY_TYPE.get(type(value), _ANY)

    @property
    def counts(self) -> bool:
        """Whether any field with a weight above 0 counts in field_level_f1. It is true for a plan without leaves."""
        return not self.leaves or any(rule.counts and rule.weight > 0 for rule in self.leaves.values())

    def field(self, path: str) -> "Field":
        """Return the field at a path."""
        cached = self._fields.get(path)
        if cached is None:
            cached = Field(path, self)
            if not self.full:
                self._fields[path] = cached
        return cached

    def with_numbers(self, value: Any, path: str = "") -> Any:
        """Convert the numeric texts in the value at `path` to numbers. All scores and digests use this form."""
        if not self.numeric_texts:
            return value
        if isinstance(value, dict):
            names = {key: name for name, key in keys_by_nfc_name(value).items()}
            members = dict(value)
            for key, child in value.items():  # no comprehension: one stack frame per level of nesting
                child_path = below(path, names.get(key) or key)
                members[key] = self.with_numbers(child, child_path if child_path in self.named else below(path, "*"))
            return members
        if isinstance(value, list):
            return [self.with_numbers(item, f"{path}[]") for item in value]
        return read_number(value) if isinstance(value, str) and path in self.numeric_texts else value

    @property
    def full(self) -> bool:
        """Whether the cache of fields is full. It is limited, because models can invent any number of keys."""
        return len(self._fields) >= _MAX_CACHED_FIELDS

    def walk(self, value: Any) -> "Iterator[tuple[Field, Any]]":
        """Yield the field and value of each object, array and leaf, outermost first; a value with a rule is a leaf."""
        ahead = [(self.field(""), value)]
        while ahead:  # iterative, because values may be hundreds of levels deep
            field, part = ahead.pop()
            yield field, part
            if field.rule is not None:
                continue
            if isinstance(part, dict):
                ahead += [(field.child(name), child) for name, child in reversed(with_nfc_keys(part).items())]
            elif isinstance(part, list):
                ahead += [(field.item, child) for child in reversed(part)]


class Field:
    """One path of a plan: its leaf rule, or None, and the fields below it."""

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
            is_named = path in plan.named or path in plan.leaves
            cached = plan.field(path if is_named or star not in plan.stars else star)
            if not plan.full:
                self.children[key] = cached
        return cached

    @property
    def item(self) -> "Field":
        """The field of an array's items."""
        if self._item is None:
            self._item = self._plan.field(f"{self.path}[]")
        return self._item

    def descendant(self, steps: Iterable[str | int]) -> "Field":
        """Return the field below this one at a path of keys and array indexes."""
        field = self
        for step in steps:
            field = field.item if isinstance(step, int) else field.child(step)
        return field

    def leaf_rule(self, value: Any) -> FieldRule:
        """Return the rule of this field, or the rule for the type of `value` if the field has none."""
        return self.rule or _BY_TYPE.get(type(value), _ANY)

    def array_rule(self, *items: Any) -> FieldRule:
        """Return the alignment of this array. By default it is `best` if an item is an object or array, else `set`."""
        if self._alignment is not None and self._alignment.align is not None:
            return self._alignment
        return _BEST if any(isinstance(item, dict | list) for item in items) else _SET


def plan_fields(schema: Mapping[str, Any] | None, declared: Mapping[str, FieldRule], where: str) -> FieldPlan:
    """Compile a schema and the rules declared in the file `where`. Raise ComponentError for an invalid declaration."""
    schema_paths = {} if schema is None else declarations.schema_places(schema)
    numeric = {path for path, path_schema in schema_paths.items() if path_schema.allows_numeric_text}
    kinds = {path: path_schema.kind for path, path_schema in schema_paths.items() if path or path_schema.kind != "any"}
    kinds |= dict.fromkeys(numeric, "number")
    if schema is not None:
        _check_paths(declared, kinds, where)
    leaves: dict[str, FieldRule] = {}
    arrays: dict[str, FieldRule] = {}
    compared = [path for path, rule in declared.items() if rule.compare is not None]
    closed = _paths_inside(compared, schema_paths, declared)
    open_keys = {star for path in declared for star in _stars(path)}
    for path, kind in {**kinds, **{path: kinds.get(path, "any") for path in declared}}.items():
        is_open = open_keys.issuperset(_stars(path))
        if path in closed or not is_open or (kind == "any" and path not in declared):
            continue
        rule = declared.get(path, FieldRule())
        if rule.compare is None and (kind.startswith("array") or (kind == "any" and rule.align)):
            arrays[path] = _array_rule(rule, kind, path, where)
        elif kind != "object" or rule.compare is not None:
            leaves[path] = _leaf_rule(rule, kind, path, where)
        elif path in declared:
            declarations.refuse_idle_settings(rule, "object", path, where)
    return FieldPlan(
        leaves=leaves,
        arrays=arrays,
        declared=frozenset(declared),
        named=frozenset(kinds),
        numeric_texts=frozenset(
            path for path in numeric - closed if path not in declared or declared[path].compare in (None, "number")
        ),
    )


def _stars(path: str) -> list[str]:
    """Return the path to each `*` in a path: for `a.*.b[].*.c` they are `a.*` and `a.*.b[].*`."""
    parts = path.split(".")
    return [".".join(parts[: index + 1]) for index, part in enumerate(parts) if part.removesuffix("[]") == "*"]


def _paths_inside(closed: Sequence[str], path_schemas: Mapping[str, SchemaPath], declared: Iterable[str]) -> set[str]:
    """Return the paths below the `closed` paths. A closed path is compared or ignored as a whole."""
    if path_schemas:
        return path_schemas.keys() - declarations.paths_outside(path_schemas, closed)
    return {
        path
        for path in declared
        for parent in closed
        if path != parent and path.startswith((f"{parent}.", f"{parent}[]") if parent else "")
    }


def _leaf_rule(rule: FieldRule, kind: str, path: str, where: str) -> FieldRule:
    chosen = rule if rule.compare else replace(rule, compare="string" if kind == "any" else kind)
    comparator(chosen.compare or "exact")  # raises for unknown comparators and plugins that do not load
    declarations.refuse_idle_settings(chosen, "leaf", path, where)
    return chosen


def _array_rule(rule: FieldRule, kind: str, path: str, where: str) -> FieldRule:
    align = rule.align or ("key" if rule.key else _DEFAULT_ALIGNMENT.get(kind))
    if align == "key" and not rule.key:
        raise ComponentError(f"align: key requires key: [...] at fields.{path} in {where}")
    chosen = replace(rule, align=align)
    declarations.refuse_idle_settings(chosen, "array", path, where)
    return chosen


def _check_paths(declared: Mapping[str, FieldRule], kinds: Mapping[str, str], where: str) -> None:
    for path, rule in declared.items():
        if path not in kinds:
            raise ComponentError(f"field '{path}' in {where} is not in the schema {nearest_path(path, kinds)}")
        items = [name.removeprefix(f"{path}[].") for name in kinds if name.startswith(f"{path}[].")]
        for key in rule.key:
            if key not in items:
                message = f"fields.{path}.key in {where} names '{key}', which the items of '{path}' lack"
                raise ComponentError(f"{message} {nearest_path(key, items)}")
