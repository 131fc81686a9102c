"""What values are read into: forms (one per canonical value at a field), slots (places) and tokens (a form in a place).

Equal values are the same object here, so that comparing them costs nothing however often it is done. `Leaves` are the
tokens of one value.
"""

from collections.abc import Hashable
from itertools import islice
from math import fsum
from operator import sub
from typing import Any

from skill_evaluator.comparing.comparators import canonical, equal
from skill_evaluator.comparing.declarations import FieldRule
from skill_evaluator.comparing.field_plan import Field


class Form:
    """One canonical value at a field: all that is equal to it is this object."""

    __slots__ = ("_close", "canonical", "number", "rule", "value", "weight")

    def __init__(self, number: int, value: Any, form: Hashable, rule: FieldRule) -> None:
        self.number = number
        self.value = value
        self.canonical = form
        self.rule = rule
        self.weight = rule.weight if rule.counts else 0.0
        self._close: dict[Form, bool] | None = None  # made when first asked: most forms never are

    def close_to(self, other: "Form") -> bool:
        """Return whether two different forms are equal by closeness."""
        if self._close is None:
            self._close = {}
        close = self._close.get(other)
        if close is None:
            close = self._close[other] = equal(self.value, other.value, self.rule)
        return close


class Vocabulary:
    """The forms met at one field. `star` are the keys that stand for each `*` of its path: values of another key."""

    __slots__ = ("_all", "_field", "_forms", "_others", "_star", "_texts")

    def __init__(self, every: list[Form], field: Field, star: tuple[str, ...] = ()) -> None:
        """Start empty; `every` are the forms of all fields, by their numbers."""
        self._all = every
        self._field = field
        self._star = star
        self._texts: dict[str, Form] = {}
        self._others: dict[tuple[type, Any], Form] = {}
        self._forms: dict[Hashable, Form] = {}

    def __len__(self) -> int:
        return len(self._texts) + len(self._others)

    def form(self, value: Any) -> Form:
        """Return the form of a value; worked out once for each spelling of it."""
        if value.__class__ is str:
            cached = self._texts.get(value)
            if cached is None:
                cached = self._texts[value] = self._learn(value)
            return cached
        if isinstance(value, dict | list):
            return self._learn(value)
        key = (value.__class__, value)
        cached = self._others.get(key)
        if cached is None:
            cached = self._others[key] = self._learn(value)
        return cached

    def _learn(self, value: Any) -> Form:
        rule = self._field.leaf_rule(value)
        form = canonical(value, rule)
        if self._star:
            form = (self._star, form)
        cached = self._forms.get(form)
        if cached is None:
            cached = self._forms[form] = Form(len(self._all), value, form, rule)
            self._all.append(cached)
        return cached


class Token:
    """One form, known by its number, in one place."""

    __slots__ = ("form", "number", "weight")

    def __init__(self, number: int, form: Form) -> None:
        self.number = number
        self.form = form.number
        self.weight = form.weight


class Slot:
    """A place where values may have a leaf: a field, below array items that were told apart by who they are.

    `below` are the places of an object's keys (texts) and of an array's items (never known by a text alone).
    `tokens` are those met here: by form, and by value where a text or number of the same type is all there is to know.
    """

    __slots__ = ("below", "field", "path", "star", "tokens", "vocabulary")

    def __init__(self, field: Field, vocabulary: Vocabulary, star: tuple[str, ...]) -> None:
        self.field = field
        self.path = field.path
        self.vocabulary = vocabulary
        self.star = star
        self.below: dict[Hashable, Slot] = {}
        self.tokens: dict[Hashable, Token] = {}


Mark = tuple[int, int, int, int]


class Leaves:
    """The leaves of a value or of an array item; gathered by `Lexicon`, then not changed any more.

    `near` are those whose equality is a matter of closeness, once more. `groups` are the items whose partner is still
    to be found, by where they stand; equal ones are one object. An item that is the only one of its key is in its
    place already; `singles` says which of the leaves are its own. `transitive`: nothing in it is equal by closeness,
    so that equal items may be paired before all others.
    """

    __slots__ = ("_spans", "groups", "near", "singles", "tokens", "transitive", "weight")

    def __init__(self) -> None:
        self.tokens: list[Token] = []
        self.near: dict[Slot, Form] = {}
        self.groups: dict[Slot, list[Leaves]] = {}
        self.singles: dict[Slot, int] = {}
        self._spans: list[int] = []  # two marks for each of the singles; flat, as tuples cost as much as the leaves
        self.weight = 0.0
        self.transitive = True

    def mark(self) -> Mark:
        """Return how much is gathered so far."""
        return len(self.tokens), len(self.near), len(self.groups), len(self.singles)

    def note_single(self, place: Slot, begin: Mark) -> None:
        """Note that what was gathered from a mark on is the only item of its key."""
        self._spans += begin
        self._spans += (len(self.tokens), len(self.near), len(self.groups), len(self.singles))
        self.singles[place] = len(self.singles)

    def close(self) -> None:
        """Sum what was gathered; exactly, so that the order of the leaves is nothing to the sum."""
        inner = [item for items in self.groups.values() for item in items]
        self.weight = fsum([token.weight for token in self.tokens] + [item.weight for item in inner])
        self.transitive = not self.near and all(item.transitive for item in inner)

    def at(self, place: Slot) -> "list[Leaves]":
        """Return the items at a place: a group, or the only one of its key, taken out to be paired with a group."""
        if place in self.groups or place not in self.singles:
            return self.groups.get(place, [])
        item, (begin, end) = Leaves(), self._span(self.singles[place])
        item.tokens = self.tokens[begin[0] : end[0]]
        item.near = dict(islice(self.near.items(), begin[1], end[1]))
        item.groups = dict(islice(self.groups.items(), begin[2], end[2]))
        for inner, at in islice(self.singles.items(), begin[3], end[3]):
            item.singles[inner] = at - begin[3]
            for marks in self._span(at):
                item._spans += map(sub, marks, begin)
        item.close()
        return [item]

    def _span(self, single: int) -> tuple[list[int], list[int]]:
        at = 8 * single
        return self._spans[at : at + 4], self._spans[at + 4 : at + 8]
