"""What leaves are made of: forms (one per canonical value at a field), slots (places) and tokens (a form in a place).

Equal values are the same object here, so that comparing them costs nothing however often it is done.
"""

from collections.abc import Hashable
from typing import Any

from skill_evaluator.metrics.comparators import canonical, equal
from skill_evaluator.metrics.fieldplan import Field
from skill_evaluator.metrics.rules import FieldRule


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
        """Whether two different forms are equal by closeness."""
        if self._close is None:
            self._close = {}
        known = self._close.get(other)
        if known is None:
            known = self._close[other] = equal(self.value, other.value, self.rule)
        return known


class Vocabulary:
    """The forms met at one field. `star` are the keys that stand for each `*` of its path: values of another key."""

    __slots__ = ("_all", "_field", "_forms", "_others", "_star", "_texts")

    def __init__(self, every: list[Form], field: Field, star: tuple[str, ...] = ()) -> None:
        """`every` are the forms of all fields, by their numbers."""
        self._all = every
        self._field = field
        self._star = star
        self._texts: dict[str, Form] = {}
        self._others: dict[tuple[type, Any], Form] = {}
        self._forms: dict[Hashable, Form] = {}

    def __len__(self) -> int:
        return len(self._texts) + len(self._others)

    def form(self, value: Any) -> Form:
        """The form of a value; worked out once for each spelling of it."""
        if value.__class__ is str:
            found = self._texts.get(value)
            if found is None:
                found = self._texts[value] = self._learn(value)
            return found
        if isinstance(value, dict | list):
            return self._learn(value)
        key = (value.__class__, value)
        found = self._others.get(key)
        if found is None:
            found = self._others[key] = self._learn(value)
        return found

    def _learn(self, value: Any) -> Form:
        rule = self._field.leaf_rule(value)
        form = canonical(value, rule)
        if self._star:
            form = (self._star, form)
        found = self._forms.get(form)
        if found is None:
            found = self._forms[form] = Form(len(self._all), value, form, rule)
            self._all.append(found)
        return found


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
