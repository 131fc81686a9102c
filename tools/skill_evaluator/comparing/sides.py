"""One value that is compared: what the items of its arrays are known by, what they say, and its values by path.

A `Side` works each of these out once, so that a truth serves any number of outputs.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from skill_evaluator.comparing.comparators import canonical
from skill_evaluator.comparing.declarations import FieldRule
from skill_evaluator.comparing.field_plan import Field, FieldPlan
from skill_evaluator.text import canonical_json, frozen, with_nfc_keys

_CONTAINERS = (dict, list)
Place = tuple[Hashable, ...]
Leaf = tuple[Place, Hashable, float]
T = TypeVar("T")


class ItemLeaves(NamedTuple):
    """The leaves of an array item as (place in the item, canonical value, weight).

    `plain`: the weight that it shares with a second item is that of the leaves both have. Otherwise it has an array
    whose items are to be paired, which is one member here, or a leaf equal by closeness, which is like no other.
    """

    leaves: frozenset[Leaf]
    plain: bool


class Side:
    """A value and its part of the work of comparing it."""

    def __init__(self, value: Any, plan: FieldPlan) -> None:
        self.value = plan.with_numbers(value)
        self.plan = plan
        self._kept: dict[tuple[Callable[..., Any], int, str], Any] = {}

    def once(self, work: Callable[..., T], part: Any, field: Field, *more: Any) -> T:
        """Return the cached result of `work` for a part of this value, an item or an array."""
        key = (work, id(part), field.path)
        kept: T | None = self._kept.get(key)
        if kept is None:
            kept = self._kept[key] = work(part, field, *more)
        return kept

    @cached_property
    def canonical_text(self) -> str:
        """One text for all values equal to this one."""
        return canonical_json(self.value)

    @cached_property
    def item_counts(self) -> Mapping[str, Counter[Hashable]]:
        """By array path, how often each item stands in it; arrays inside array items are pooled.

        An item that has none of its key fields is known by the whole of it.
        """
        counts: dict[str, Counter[Hashable]] = {}
        for field, items in arrays_in(self.value, self.plan):
            rule = field.array_rule(*items)
            known_by = self.once(identities, items, field, rule)
            if rule.align == "key":
                nothing = (None,) * len(rule.key)
                known_by = [  # a set is like no tuple of keys
                    frozenset(_canonicals([item], field.item)) if who == nothing else who
                    for who, item in zip(known_by, items, strict=True)
                ]
            counts.setdefault(field.path, Counter()).update(known_by)
        return counts


def pairs_by_best(rule: FieldRule, field: Field) -> bool:
    """Return whether which items meet depends on all of them: `best`, and scalars that are equal by closeness."""
    return rule.align == "best" or (
        rule.align == "set" and field.item.rule is not None and not field.item.rule.exact_equality
    )


def identities(items: list[Any], field: Field, rule: FieldRule) -> list[Hashable]:
    """Return the identity of each array item: the canonical values of its key fields, or of the whole item."""
    if rule.align != "key":
        return _canonicals(items, field.item)
    columns = [_canonicals([key_value(item, key) for item in items], field.item.at(key.split("."))) for key in rule.key]
    return list(zip(*columns, strict=True))


def key_value(item: Any, key: str) -> Any:
    """Return the value of a key field of an array item, which may be a dotted path, or None if it is absent."""
    value = item.get(key) if isinstance(item, dict) else None
    if value is None and "." in key:
        value = item
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
    return value


def arrays_in(value: Any, plan: FieldPlan) -> Iterator[tuple[Field, list[Any]]]:
    """Yield every array in a value: `FieldPlan.walk` without the leaves, which would slow `jaccard`."""
    stack = [(value, plan.field(""))]
    while stack:
        value, field = stack.pop()
        if field.rule is not None:
            continue
        if isinstance(value, dict):
            if any(isinstance(child, _CONTAINERS) for child in value.values()):
                stack += [(child, field.child(name)) for name, child in with_nfc_keys(value).items()]
        elif isinstance(value, list):
            yield field, value
            stack += [(child, field.item) for child in value]


def values_by_path(value: Any, plan: FieldPlan) -> tuple[dict[str, Hashable], dict[str, int]]:
    """Map leaf paths to canonical values, and array paths to their numbers of items.

    If a path has several values, it is the multiset of them.
    """
    forms: defaultdict[str, list[Hashable]] = defaultdict(list)
    lengths: dict[str, int] = {}
    _gather_values(value, plan.field(""), (), forms, lengths)
    values = {path: found[0] if len(found) == 1 else frozenset(Counter(found).items()) for path, found in forms.items()}
    return values, lengths


def _gather_values(
    value: Any, field: Field, star: Place, forms: Mapping[str, list[Hashable]], lengths: dict[str, int]
) -> None:
    """Note all below a value; `star` are the keys that stand for each `*` of the path: they tell values apart."""
    if field.rule is None and isinstance(value, dict):
        for key, child in with_nfc_keys(value).items():
            if child is not None:
                below = field.children.get(key) or field.child(key)
                _gather_values(child, below, (*star, key) if below.is_star else star, forms, lengths)
    elif field.rule is None and isinstance(value, list):
        lengths[field.path] = lengths.get(field.path, 0) + len(value)
        for item in value:
            _gather_values(item, field.item, star, forms, lengths)
    elif value is not None and not field.ignored:
        form = canonical(value, field.leaf_rule(value))
        forms[field.path].append((star, form) if star else form)


def _canonicals(values: Iterable[Any], field: Field) -> list[Hashable]:
    return [None if value is None else canonical(value, field.rule or field.leaf_rule(value)) for value in values]


def item_leaves(items: list[Any], field: Field) -> list[ItemLeaves]:
    """Return the leaves of each item of an array."""
    return [_leaves(item, field.item) for item in items]


def _leaves(item: Any, field: Field) -> ItemLeaves:
    leaves: list[Leaf] = []
    plain = _gather_leaves(item, field, (), leaves)
    return ItemLeaves(frozenset(leaves), plain)


def _gather_leaves(value: Any, field: Field, place: Place, into: list[Leaf]) -> bool:
    """Add the leaves below a value; return whether they are all plain. One frame per level of nesting."""
    plain = True
    if value is None or field.ignored:
        pass
    elif field.rule is None and isinstance(value, dict):
        for key, child in with_nfc_keys(value).items():
            below = field.children.get(key) or field.child(key)
            plain &= _gather_leaves(child, below, (*place, key), into)
    elif field.rule is None and isinstance(value, list):
        rule = field.array_rule(*value)
        if rule.align == "ordered":
            for index, item in enumerate(value):
                plain &= _gather_leaves(item, field.item, (*place, index), into)
        elif items := Counter(leaves for item in value if (leaves := _leaves(item, field.item).leaves)):
            plain = False
            into.append((place, frozenset(items.items()), 0.0))
    elif field.by_closeness:
        plain = False
        into.append((place, object(), 0.0))
    else:
        rule = field.leaf_rule(value)
        into.append((place, canonical(value, rule), rule.weight if rule.counts else 0.0))
    return plain


def text_of(value: Any, field: Field) -> str:
    """Write the canonical text of a value: keys sorted, and the items of arrays without order.

    It puts items in an order that hangs on nothing else. One frame per level of nesting.
    """
    if field.rule is None and isinstance(value, dict):
        members = with_nfc_keys(value)
        parts = []
        for key in sorted(members):
            if members[key] is not None:
                parts.append(f"{key!r}: {text_of(members[key], field.child(key))}")
        return f"{{{', '.join(parts)}}}"
    if field.rule is None and isinstance(value, list):
        parts = []
        for item in value:
            parts.append(text_of(item, field.item))
        ordered = parts if field.array_rule(*value).align == "ordered" else sorted(parts)
        return f"[{', '.join(ordered)}]"
    return repr(frozen(value))
