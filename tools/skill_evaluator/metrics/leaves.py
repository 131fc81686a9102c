"""One value as its leaves, each a token: equal leaves in the same place are the same token, whatever value they are of.

So two values are compared by what their sets of tokens share. Where alignment depends on the partner (an array that
aligns by the best assignment, items of the same key) the items stay apart, as groups for `assignment` to pair.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from math import fsum
from typing import Any, Literal

from skill_evaluator.metrics.fieldplan import Field, FieldPlan
from skill_evaluator.metrics.forms import Form, Slot, Token, Vocabulary
from skill_evaluator.metrics.rules import FieldRule
from skill_evaluator.text import by_name, respelt

# In a place that is told without the partner; there as the only one of its key; with others, to be paired.
How = Literal["placed", "single", "grouped"]
_CONTAINERS = (dict, list)
_SET = FieldRule(align="set")
_LARGE = 50_000  # forms


Mark = tuple[int, int, int, int]


class Leaves:
    """The leaves of a value or of an array item; gathered by `Lexicon`, then not changed any more.

    `near` are those whose equality is a matter of closeness, once more. `groups` are the items whose partner is still
    to be found, by where they stand; equal ones are one object. An item that is the only one of its key is in its
    place already; `singles` says which of the leaves are its own. `transitive`: nothing in it is equal by closeness,
    so that equal items may be paired before all others.
    """

    __slots__ = ("groups", "near", "singles", "tokens", "transitive", "weight")

    def __init__(self) -> None:
        self.tokens: list[Token] = []
        self.near: dict[Slot, Form] = {}
        self.groups: dict[Slot, list[Leaves]] = {}
        self.singles: dict[Slot, tuple[Mark, Mark]] = {}
        self.weight = 0.0
        self.transitive = True

    def mark(self) -> Mark:
        """How much is gathered."""
        return len(self.tokens), len(self.near), len(self.groups), len(self.singles)

    def close(self) -> None:
        """Sum what was gathered; exactly, so that the order of the leaves is nothing to the sum."""
        inner = [item for items in self.groups.values() for item in items]
        self.weight = fsum([token.weight for token in self.tokens] + [item.weight for item in inner])
        self.transitive = not self.near and all(item.transitive for item in inner)

    def at(self, place: Slot) -> "list[Leaves]":
        """The items at a place: a group, or the only one of its key, taken out again to be paired with a group."""
        if place in self.groups or place not in self.singles:
            return self.groups.get(place, [])
        begin, end = self.singles[place]
        (tokens, near, groups, singles), item = begin, Leaves()
        item.tokens = self.tokens[tokens : end[0]]
        item.near = dict(islice(self.near.items(), near, end[1]))
        item.groups = dict(islice(self.groups.items(), groups, end[2]))
        for inner, marks in islice(self.singles.items(), singles, end[3]):
            first, last = ((t - tokens, n - near, g - groups, s - singles) for t, n, g, s in marks)
            item.singles[inner] = first, last
        item.close()
        return [item]


class _Values:
    """What is noted of a whole value beside its leaves: by path its forms, and how many items its arrays have."""

    __slots__ = ("forms", "lengths")

    def __init__(self) -> None:
        self.forms: defaultdict[str, list[Form]] = defaultdict(list)
        self.lengths: dict[str, int] = {}


class PartnerDependentError(Exception):
    """The value holds an array whose alignment depends on what it is compared with."""


# The forms of an array path: the only one, or how often each stands there (all once: just which).
Forms = Form | frozenset[Form] | frozenset[tuple[Form, int]]


@dataclass(frozen=True, slots=True)
class Outline:
    """A whole value: its leaves, by path its forms, by array path how many items stand there."""

    leaves: Leaves
    forms: Mapping[str, Forms]
    lengths: Mapping[str, int]

    @property
    def values(self) -> dict[str, Hashable]:
        """By path the multiset of its canonical values: the same for equal values, whatever they were read with."""
        return {path: frozenset(_canonical_counts(forms)) for path, forms in self.forms.items()}


def _multiset(forms: list[Form]) -> Forms:
    if len(forms) == 1:
        return forms[0]
    distinct = frozenset(forms)
    return distinct if len(distinct) == len(forms) else frozenset(Counter(forms).items())


def _canonical_counts(forms: Forms) -> Iterator[tuple[Hashable, int]]:
    for one in (forms,) if isinstance(forms, Form) else forms:
        form, count = (one, 1) if isinstance(one, Form) else one
        yield form.canonical, count


class Lexicon:
    """All forms, places and tokens of the values that are compared with each other."""

    def __init__(self, plan: FieldPlan) -> None:
        self.plan = plan
        self._tokens = 0
        self._vocabularies: dict[tuple[str, tuple[str, ...]], Vocabulary] = {}
        self._roots: dict[str, Slot] = {}
        self._items: dict[Hashable, Leaves] = {}

    @property
    def large(self) -> bool:
        """Whether it has grown beyond what should be kept for the next output: answers of a model in a loop."""
        return len(self._vocabularies) > _LARGE or sum(map(len, self._vocabularies.values())) > _LARGE

    def vocabulary(self, field: Field, star: tuple[str, ...] = ()) -> Vocabulary:
        """The forms at a field."""
        key = (field.path, star)
        found = self._vocabularies.get(key)
        if found is None:
            found = self._vocabularies[key] = Vocabulary(field, star)
        return found

    def leaves(self, value: Any) -> Leaves:
        """The leaves of a whole value."""
        return self._read(value, self._root(self.plan.field("")), None)

    def outline(self, value: Any) -> Outline:
        """The leaves of a whole value, its values by path and the lengths of its arrays."""
        values = _Values()
        leaves = self._read(value, self._root(self.plan.field("")), values)
        return Outline(leaves, {path: _multiset(forms) for path, forms in values.forms.items()}, values.lengths)

    def items(self, items: Iterable[Any], field: Field) -> list[Leaves]:
        """The leaves of each item of an array, comparable with those of any other array of that field."""
        slot = self._root(field.item)
        return [self._interned(self._read(item, slot, None)) for item in items]

    def identities(self, items: list[Any], rule: FieldRule, field: Field) -> list[Hashable]:
        """What each array item is known by: the forms of its key fields, or of the whole of it."""
        if rule.align != "key":
            vocabulary = self.vocabulary(field.item)
            return [None if item is None else vocabulary.form(item) for item in items]
        keys = [(key, self.vocabulary(_descend(field.item, key))) for key in rule.key]
        return [tuple(_key_form(item, key, vocabulary) for key, vocabulary in keys) for item in items]

    def _root(self, field: Field) -> Slot:
        found = self._roots.get(field.path)
        if found is None:
            found = self._roots[field.path] = Slot(field, self.vocabulary(field), ())
        return found

    def _child(self, slot: Slot, key: str) -> Slot:
        field = slot.field.child(key)
        star = (*slot.star, key) if field.is_star else slot.star
        found = slot.children[key] = Slot(field, self.vocabulary(field, star), star)
        return found

    def _place(self, slot: Slot, who: Hashable) -> Slot:
        found = slot.places.get(who)
        if found is None:
            field = slot.field.item
            found = slot.places[who] = Slot(field, self.vocabulary(field, slot.star), slot.star)
        return found

    def _read(self, value: Any, slot: Slot, values: _Values | None) -> Leaves:
        found = Leaves()
        self._gather(value, slot, found, values)
        found.close()
        return found

    def _gather(self, value: Any, slot: Slot, into: Leaves, values: _Values | None) -> None:
        """One frame per level of nesting: values may be hundreds of levels deep."""
        whole = slot.field.rule is not None
        if isinstance(value, dict) and not whole:
            children = slot.children
            for key, child in by_name(value, respelt(value)).items():
                if child is not None:
                    self._gather(child, children.get(key) or self._child(slot, key), into, values)
        elif isinstance(value, list) and not whole:
            if values is not None:
                path = slot.field.path
                values.lengths[path] = values.lengths.get(path, 0) + len(value)
            for item, place, how in self._placed(value, slot):
                if how == "grouped":
                    inner = Leaves()
                    self._gather(item, place, inner, values)
                    inner.close()
                    into.groups.setdefault(place, []).append(self._interned(inner))
                elif item is not None:
                    before = into.mark()
                    self._gather(item, place, into, values)
                    if how == "single":
                        into.singles[place] = before, into.mark()
        elif value is not None and not slot.field.ignored:
            form = slot.vocabulary.form(value)
            token = slot.tokens.get(form)
            if token is None:
                token = slot.tokens[form] = Token(self._tokens, form.weight)
                self._tokens += 1
            into.tokens.append(token)
            if form.by_closeness:
                into.near[slot] = form
            if values is not None:
                values.forms[slot.field.path].append(form)

    def _placed(self, items: list[Any], slot: Slot) -> list[tuple[Any, Slot, How]]:
        """Each item with its place, and how it stands there."""
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
        """The items of a multiset: the second of two equal ones has a place of its own."""
        seen: dict[Hashable, int] = {}
        placed: list[tuple[Any, Slot, How]] = []
        for item, who in zip(items, self.identities(items, rule, slot.field), strict=True):
            times = seen[who] = seen.get(who, 0) + 1
            placed.append((item, self._place(slot, (who, times)), "placed"))
        return placed

    def _interned(self, item: Leaves) -> Leaves:
        groups = frozenset((slot, frozenset(Counter(inner).items())) for slot, inner in item.groups.items())
        tokens = frozenset(item.tokens)
        return self._items.setdefault((tokens, groups) if groups else tokens, item)


def pairs_by_best(rule: FieldRule, field: Field) -> bool:
    """Whether which items meet depends on all of them: `best`, and scalars that are equal by closeness."""
    return rule.align == "best" or (
        rule.align == "set" and field.item.rule is not None and not field.item.rule.exact_equality
    )


def leaves_of(value: Any, plan: FieldPlan) -> Leaves:
    """The leaves of a value that stands alone; raises PartnerDependentError where alignment needs the partner."""
    found = Lexicon(plan).leaves(value)
    if found.groups:
        raise PartnerDependentError(", ".join(place.field.path for place in found.groups))
    return found


def values_by_path(value: Any, plan: FieldPlan) -> dict[str, Hashable]:
    """The canonical value of every leaf path, arrays as multisets: what the stability of a field counts."""
    return Lexicon(plan).outline(value).values


def _descend(field: Field, key: str) -> Field:
    for part in key.split("."):
        field = field.child(part)
    return field


def _key_form(item: Any, key: str, vocabulary: Vocabulary) -> Form | None:
    value = item.get(key) if isinstance(item, dict) else None
    if value is None and "." in key:
        value = item
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
    return None if value is None else vocabulary.form(value)
