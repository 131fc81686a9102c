"""The arrays of a compared value: identities and leaves of items, canonical texts, and values by path."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from skill_evaluator.comparing.comparators import canonical
from skill_evaluator.comparing.declarations import FieldRule
from skill_evaluator.comparing.field_plan import Field, FieldPlan
from skill_evaluator.text import canonical_json, frozen, with_nfc_keys

Steps = tuple[Hashable, ...]
Leaf = tuple[Steps, Hashable, float]
T = TypeVar("T")


class ItemLeaves(NamedTuple):
    """The leaves of one array item, each as (keys and indexes below the item, canonical value, weight).

    If two items are `plain`, their matched weight is the total weight of their common leaves. An item is not plain if
    it has a leaf with a tolerance, which equals no other leaf, or an unordered array, which is one leaf.
    """

    leaves: frozenset[Leaf]
    plain: bool


class MemoizedValue:
    """One side of a comparison (truth or output). It caches results that are needed several times."""

    def __init__(self, value: Any, plan: FieldPlan) -> None:
        self.value = plan.with_numbers(value)
        self.plan = plan
        self._kept: dict[tuple[Callable[..., Any], int, str], Any] = {}

    def once(self, work: Callable[..., T], part: Any, field: Field, *arguments: Any) -> T:
        """Return `work(part, field, *arguments)`, cached. `part` is an item or an array inside this value."""
        key = (work, id(part), field.path)
        cached: T | None = self._kept.get(key)
        if cached is None:
            cached = self._kept[key] = work(part, field, *arguments)
        return cached

    @cached_property
    def canonical_text(self) -> str:
        """The canonical JSON, the same for all equal values."""
        return canonical_json(self.value)

    @cached_property
    def item_counts(self) -> Mapping[str, Counter[Hashable]]:
        """The number of equal items by array path and item identity; arrays inside array items are pooled.

        An item without any of its key fields is identified by its whole value.
        """
        counts: dict[str, Counter[Hashable]] = {}
        for field, items in arrays_in(self.value, self.plan):
            rule = field.array_rule(*items)
            item_identities = self.once(identities, items, field, rule)
            if rule.align == "key":
                no_key = (None,) * len(rule.key)
                item_identities = [  # a frozenset never equals a tuple of keys
                    frozenset(_canonicals([item], field.item)) if identity == no_key else identity
                    for identity, item in zip(item_identities, items, strict=True)
                ]
            counts.setdefault(field.path, Counter()).update(item_identities)
        return counts


def pairs_by_best(rule: FieldRule, field: Field) -> bool:
    """Return whether an array is paired by assignment: `align: best`, or `align: set` for leaves with a tolerance."""
    return rule.align == "best" or (
        rule.align == "set" and field.item.rule is not None and not field.item.rule.exact_equality
    )


def identities(items: list[Any], field: Field, rule: FieldRule) -> list[Hashable]:
    """Return the identity of each array item, in order: the canonical values of its key fields or of the item."""
    if rule.align != "key":
        return _canonicals(items, field.item)
    keys = [
        _canonicals([key_value(item, key) for item in items], field.item.descendant(key.split("."))) for key in rule.key
    ]
    return list(zip(*keys, strict=True))


def key_value(item: Any, key: str) -> Any:
    """Return the value of an item's key field, which may be a dotted path. Return None if it is absent."""
    if isinstance(item, dict) and item.get(key) is not None:
        return item[key]
    for part in key.split("."):
        item = item.get(part) if isinstance(item, dict) else None
    return item


def arrays_in(value: Any, plan: FieldPlan) -> Iterator[tuple[Field, list[Any]]]:
    """Yield the field and the items of every array inside a value, except arrays that are compared as a whole."""
    return ((field, part) for field, part in plan.walk(value) if field.rule is None and isinstance(part, list))


def values_by_path(value: Any, plan: FieldPlan) -> tuple[dict[str, Hashable], dict[str, int]]:
    """Return the canonical value of each leaf path (several values as a multiset), and the length by array path."""
    forms: defaultdict[str, list[Hashable]] = defaultdict(list)
    lengths: dict[str, int] = {}
    _gather_values(value, plan.field(""), (), forms, lengths)
    values = {path: group[0] if len(group) == 1 else frozenset(Counter(group).items()) for path, group in forms.items()}
    return values, lengths


def _gather_values(
    value: Any, field: Field, star: Steps, forms: Mapping[str, list[Hashable]], lengths: dict[str, int]
) -> None:
    """Add values to `forms` and array lengths to `lengths`, by path. `star` has the keys for each `*` of the path."""
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
    """Return the leaves of each item of the array at a field."""
    leaves_by_item: list[list[Leaf]] = [[] for _ in items]
    plain = [_gather_leaves(item, field.item, (), leaves) for item, leaves in zip(items, leaves_by_item, strict=True)]
    return [ItemLeaves(frozenset(leaves), each) for leaves, each in zip(leaves_by_item, plain, strict=True)]


def _gather_leaves(value: Any, field: Field, steps: Steps, collected: list[Leaf]) -> bool:
    """Collect the leaves below a value and return whether all are plain. Use one stack frame per level of nesting."""
    plain = True
    if value is None or field.ignored:
        pass
    elif field.rule is None and isinstance(value, dict):
        for key, child in with_nfc_keys(value).items():
            below = field.children.get(key) or field.child(key)
            plain &= _gather_leaves(child, below, (*steps, key), collected)
    elif field.rule is None and isinstance(value, list):
        rule = field.array_rule(*value)
        if rule.align == "ordered":
            for index, item in enumerate(value):
                plain &= _gather_leaves(item, field.item, (*steps, index), collected)
        elif items := Counter(item.leaves for item in item_leaves(value, field) if item.leaves):
            plain = False
            collected.append((steps, frozenset(items.items()), 0.0))
    elif field.by_closeness:
        plain = False
        collected.append((steps, object(), 0.0))
    else:
        rule = field.leaf_rule(value)
        collected.append((steps, canonical(value, rule), rule.weight if rule.counts else 0.0))
    return plain


def text_of(value: Any, field: Field) -> str:
    """Return a text that is equal for equal values, in any order of keys and of the items of unordered arrays.

    Array items are sorted by it. The function uses one stack frame per level of nesting.
    """
    parts = []
    if field.rule is None and isinstance(value, dict):
        for key, child in sorted(with_nfc_keys(value).items(), key=itemgetter(0)):
            if child is not None:
                parts.append(f"{key!r}: {text_of(child, field.child(key))}")
        return f"{{{', '.join(parts)}}}"
    if field.rule is None and isinstance(value, list):
        for item in value:
            parts.append(text_of(item, field.item))
        return f"[{', '.join(parts if field.array_rule(*value).align == 'ordered' else sorted(parts))}]"
    return repr(frozen(value))
