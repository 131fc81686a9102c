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

    __slots__ = ("_close", "by_closeness", "canonical", "rule", "value", "weight")

    def __init__(self, value: Any, form: Hashable, rule: FieldRule) -> None:
        self.value = value
        self.canonical = form
        self.rule = rule
        self.weight = rule.weight if rule.counts else 0.0
        self.by_closeness = rule.counts and not rule.exact_equality
        self._close: dict[Form, bool] = {}

    def close_to(self, other: "Form") -> bool:
        """Whether two different forms are equal by closeness."""
        known = self._close.get(other)
        if known is None:
            known = self._close[other] = equal(self.value, other.value, self.rule)
        return known


class Vocabulary:
    """The forms met at one field. `star` are the keys that stand for each `*` of its path: values of another key."""

    __slots__ = ("_field", "_forms", "_others", "_star", "_texts")

    def __init__(self, field: Field, star: tuple[str, ...] = ()) -> None:
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
            found = self._forms[form] = Form(value, form, rule)
        return found


class Token:
    """One form in one place."""

    __slots__ = ("number", "weight")

    def __init__(self, number: int, weight: float) -> None:
        self.number = number
        self.weight = weight


class Slot:
    """A place where values may have a leaf: a field, below array items that were told apart by who they are."""

    __slots__ = ("children", "field", "places", "star", "tokens", "vocabulary")

    def __init__(self, field: Field, vocabulary: Vocabulary, star: tuple[str, ...]) -> None:
        self.field = field
        self.vocabulary = vocabulary
        self.star = star
        self.children: dict[str, Slot] = {}
        self.places: dict[Hashable, Slot] = {}
        self.tokens: dict[Form, Token] = {}
