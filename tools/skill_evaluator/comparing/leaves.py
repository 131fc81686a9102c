"""One value as its leaves, each a token: equal leaves in the same place are the same token, whatever value they are of.

So two values are compared by what their sets of tokens share. Where alignment depends on the partner (an array that
aligns by the best assignment, items of the same key) the items stay apart, as groups for `assignment` to pair.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from skill_evaluator.comparing.declarations import FieldRule
from skill_evaluator.comparing.field_plan import Field, FieldPlan
from skill_evaluator.comparing.forms import Form, Leaves, Slot, Token, Vocabulary
from skill_evaluator.text import with_nfc_keys

# In a place that is told without the partner; there as the only one of its key; with others, to be paired.
How = Literal["placed", "single", "grouped"]
_CONTAINERS = (dict, list)
_NUMBERS = frozenset({int, float, bool})
_SET = FieldRule(align="set")
_LARGE = 50_000  # forms


class _Values:
    """What is noted of a whole value beside its leaves: by path its forms, and how many items its arrays have."""

    __slots__ = ("forms", "lengths")

    def __init__(self) -> None:
        self.forms: defaultdict[str, list[int]] = defaultdict(list)
        self.lengths: dict[str, int] = {}


# The forms at a path: numbers in ascending order, so that equal multisets are equal.
Forms = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Outline:
    """A whole value: its leaves, by path its forms, by array path how many items stand there."""

    leaves: Leaves
    forms: Mapping[str, Forms]
    lengths: Mapping[str, int]


class Lexicon:
    """All forms, places and tokens of the values that are compared with each other."""

    def __init__(self, plan: FieldPlan) -> None:
        self.plan = plan
        self._tokens = 0
        self._forms: list[Form] = []
        self._vocabularies: dict[tuple[str, tuple[str, ...]], Vocabulary] = {}
        self._roots: dict[str, Slot] = {}
        self._items: dict[Hashable, Leaves] = {}

    @property
    def large(self) -> bool:
        """Whether it has grown beyond what should be kept for the next output: answers of a model in a loop."""
        return len(self._vocabularies) > _LARGE or sum(map(len, self._vocabularies.values())) > _LARGE

    def vocabulary(self, field: Field, star: tuple[str, ...] = ()) -> Vocabulary:
        """Return the forms at a field."""
        key = (field.path, star)
        cached = self._vocabularies.get(key)
        if cached is None:
            cached = self._vocabularies[key] = Vocabulary(self._forms, field, star)
        return cached

    def leaves(self, value: Any) -> Leaves:
        """Return the leaves of a whole value."""
        return self._read(value, self._root(self.plan.field("")), None)

    def outline(self, value: Any) -> Outline:
        """Return the leaves of a whole value, its values by path and the lengths of its arrays."""
        values = _Values()
        leaves = self._read(value, self._root(self.plan.field("")), values)
        return Outline(leaves, {path: tuple(sorted(forms)) for path, forms in values.forms.items()}, values.lengths)

    def canonical(self, forms: Forms) -> Hashable:
        """Return the multiset of canonical values: the same for equal values, whatever they were read with."""
        return frozenset((self._forms[form].canonical, count) for form, count in Counter(forms).items())

    def items(self, items: Iterable[Any], field: Field) -> list[Leaves]:
        """Return the leaves of each item of an array, comparable with those of any other array of that field."""
        slot = self._root(field.item)
        return [self._interned(self._read(item, slot, None), slot) for item in items]

    def identities(self, items: list[Any], rule: FieldRule, field: Field) -> list[Hashable]:
        """Return what each array item is known by: the forms of its key fields, or of the whole of it."""
        if rule.align != "key":
            vocabulary = self.vocabulary(field.item)
            return [None if item is None else vocabulary.form(item) for item in items]
        forms = []
        for key in rule.key:
            vocabulary = self.vocabulary(field.item.at(key.split(".")))
            keys = [key_value(item, key) for item in items]
            forms.append([None if value is None else vocabulary.form(value) for value in keys])
        return list(zip(*forms, strict=True))

    def _root(self, field: Field) -> Slot:
        cached = self._roots.get(field.path)
        if cached is None:
            cached = self._roots[field.path] = Slot(field, self.vocabulary(field), ())
        return cached

    def _child(self, slot: Slot, key: str) -> Slot:
        field = slot.field.child(key)
        star = (*slot.star, key) if field.is_star else slot.star
        cached = slot.below[key] = Slot(field, self.vocabulary(field, star), star)
        return cached

    def _place(self, slot: Slot, who: Hashable) -> Slot:
        cached = slot.below.get(who)
        if cached is None:
            field = slot.field.item
            cached = slot.below[who] = Slot(field, self.vocabulary(field, slot.star), slot.star)
        return cached

    def _read(self, value: Any, slot: Slot, values: _Values | None) -> Leaves:
        leaves = Leaves()
        self._gather(value, slot, leaves, values)
        leaves.close()
        return leaves

    def _gather(self, value: Any, slot: Slot, into: Leaves, values: _Values | None) -> None:
        """Gather the leaves below a value; one frame per level of nesting, as values may be hundreds of levels deep."""
        whole = slot.field.rule is not None
        if isinstance(value, dict) and not whole:
            children, tokens = slot.below, into.tokens
            for key, child in with_nfc_keys(value).items():
                if child is None:
                    continue
                below = children.get(key) or self._child(slot, key)
                kind = child.__class__
                if kind is str:
                    token = below.tokens.get(child)
                else:
                    token = below.tokens.get((kind, child)) if kind in _NUMBERS else None
                if token is None:
                    self._gather(child, below, into, values)
                else:
                    tokens.append(token)
                    if values is not None:
                        values.forms[below.path].append(token.form)
        elif isinstance(value, list) and not whole:
            if values is not None:
                values.lengths[slot.path] = values.lengths.get(slot.path, 0) + len(value)
            for item, place, how in self._placed(value, slot):
                if how == "grouped":
                    inner = Leaves()
                    self._gather(item, place, inner, values)
                    inner.close()
                    into.groups.setdefault(place, []).append(self._interned(inner, place))
                elif item is not None:
                    before = into.mark()
                    self._gather(item, place, into, values)
                    if how == "single":
                        into.note_single(place, before)
        elif value is not None and not slot.field.ignored:
            token = self._token(value, slot)
            into.tokens.append(token)
            if slot.field.by_closeness:
                into.near[slot] = self._forms[token.form]
            if values is not None:
                values.forms[slot.path].append(token.form)

    def _token(self, value: Any, slot: Slot) -> Token:
        form = slot.vocabulary.form(value)
        cached = slot.tokens.get(form)
        if cached is None:
            cached = slot.tokens[form] = Token(self._tokens, form)
            self._tokens += 1
        if not slot.field.by_closeness and not isinstance(value, _CONTAINERS):
            slot.tokens[value if isinstance(value, str) else (value.__class__, value)] = cached
        return cached

    def _placed(self, items: list[Any], slot: Slot) -> list[tuple[Any, Slot, How]]:
        """Return each item with its place, and how it stands there."""
        field = slot.field
        rule = field.array_rule(*items)
        if rule.align == "ordered":
            return [(item, self._place(slot, index), "placed") for index, item in enumerate(items)]
        if pairs_by_best(rule, field):
            pool = self._place(slot, None)
            if field.has_array_rule or field.item.rule is not None:
                return [(item, pool, "grouped") for item in items]
            apart = [item for item in items if isinstance(item, _CONTAINERS)]
            scalars = [item for item in items if not isinstance(item, _CONTAINERS)]
            return [*((item, pool, "grouped") for item in apart), *self._counted(scalars, _SET, slot)]
        if rule.align == "key":
            whos = self.identities(items, rule, field)
            times = Counter(whos)
            return [
                (item, self._place(slot, who), "single" if times[who] == 1 else "grouped")
                for item, who in zip(items, whos, strict=True)
            ]
        return self._counted(items, rule, slot)

    def _counted(self, items: list[Any], rule: FieldRule, slot: Slot) -> list[tuple[Any, Slot, How]]:
        """Place the items of a multiset: the second of two equal ones has a place of its own."""
        seen: dict[Hashable, int] = {}
        placed: list[tuple[Any, Slot, How]] = []
        for item, who in zip(items, self.identities(items, rule, slot.field), strict=True):
            times = seen[who] = seen.get(who, 0) + 1
            placed.append((item, self._place(slot, (who, times)), "placed"))
        return placed

    def _interned(self, item: Leaves, place: Slot) -> Leaves:
        """Return the one object of all equal items at a place; elsewhere an item below may have the same leaves."""
        groups = frozenset((slot, frozenset(Counter(inner).items())) for slot, inner in item.groups.items())
        tokens = frozenset(item.tokens)
        return self._items.setdefault((place, tokens, groups), item)


def pairs_by_best(rule: FieldRule, field: Field) -> bool:
    """Return whether which items meet depends on all of them: `best`, and scalars that are equal by closeness."""
    return rule.align == "best" or (
        rule.align == "set" and field.item.rule is not None and not field.item.rule.exact_equality
    )


def values_by_path(value: Any, plan: FieldPlan) -> dict[str, Hashable]:
    """Return the canonical value of every leaf path, arrays as multisets: what the stability of a field counts."""
    lexicon = Lexicon(plan)
    return {path: lexicon.canonical(forms) for path, forms in lexicon.outline(value).forms.items()}


def key_value(item: Any, key: str) -> Any:
    """Return the value of a key field of an array item, which may be dotted; None where there is none."""
    value = item.get(key) if isinstance(item, dict) else None
    if value is None and "." in key:
        value = item
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
    return value
