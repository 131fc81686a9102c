"""One value that is compared: what the items of its arrays are known by, worked out once however often it is asked.

Both sides of a comparison share a lexicon; the truth's may serve any number of outputs.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from operator import itemgetter
from typing import Any

from skill_evaluator.comparing.comparators import typed
from skill_evaluator.comparing.declarations import FieldRule
from skill_evaluator.comparing.field_plan import Field, FieldPlan
from skill_evaluator.comparing.forms import Leaves
from skill_evaluator.comparing.leaves import Lexicon
from skill_evaluator.comparing.tree_distance import Tree, tree
from skill_evaluator.text import frozen, with_nfc_keys

_CONTAINERS = (dict, list)
_OBJECT, _ARRAY, _NOT_A_NUMBER = ("object",), ("array",), ("not a number",)


class PreparedValue:
    """A value and its part of the work of comparing it."""

    def __init__(self, value: Any, lexicon: Lexicon) -> None:
        self.value = value
        self.lexicon = lexicon
        self._identities: dict[tuple[int, str], list[Hashable]] = {}
        self._leaves: dict[tuple[int, str], list[Leaves]] = {}
        self._texts: dict[tuple[int, str], str] = {}

    def identities(self, items: list[Any], rule: FieldRule, field: Field) -> list[Hashable]:
        """Return what each item of an array of this value is known by: its key fields, or the whole of it."""
        key = (id(items), field.path)
        cached = self._identities.get(key)
        if cached is None:
            cached = self._identities[key] = self.lexicon.identities(items, rule, field)
        return cached

    def leaves(self, items: list[Any], field: Field) -> list[Leaves]:
        """Return the leaves of each item of an array of this value."""
        key = (id(items), field.path)
        cached = self._leaves.get(key)
        if cached is None:
            cached = self._leaves[key] = self.lexicon.items(items, field)
        return cached

    def text(self, item: Any, field: Field) -> str:
        """Return one text of what an array item says, to put items in an order that hangs on nothing else."""
        key = (id(item), field.path)
        cached = self._texts.get(key)
        if cached is None:
            cached = self._texts[key] = _content(item, field)
        return cached

    @cached_property
    def item_counts(self) -> Mapping[str, Counter[Hashable]]:
        """By array path, how often each item stands in it; arrays inside array items are pooled.

        An item that has none of its key fields is known by the whole of it.
        """
        counts: dict[str, Counter[Hashable]] = {}
        for field, items in arrays_in(self.value, self.lexicon.plan):
            rule = field.array_rule(*items)
            known_by = self.identities(items, rule, field)
            if rule.align == "key":
                whole = self.lexicon.vocabulary(field.item)
                known_by = [
                    who if isinstance(who, tuple) and any(who) else whole.form(item)
                    for who, item in zip(known_by, items, strict=True)
                ]
            counts.setdefault(field.path, Counter()).update(known_by)
        return counts

    @cached_property
    def tree(self) -> tuple[Tree, Mapping[Hashable, int]]:
        """The value as a tree, and the numbers of its labels and shapes."""
        numbers: dict[Hashable, int] = {}
        return tree(_postorder(self.value), numbers), numbers


def trees(truth: PreparedValue, output: PreparedValue) -> tuple[Tree, Tree]:
    """Return both values as trees whose labels and shapes have the same numbers; the truth's is made once."""
    of_truth, numbers = truth.tree
    return of_truth, tree(_postorder(output.value), dict(numbers))


def _postorder(value: Any) -> Iterable[tuple[Hashable, int]]:
    """Return the nodes of a JSON value: label and number of children."""
    postorder: list[tuple[Hashable, int]] = []
    waiting: list[tuple[Hashable, Any]] = [] if value is None else [(None, value)]
    while waiting:  # by hand, because a value may be nested deeper than calls may be
        key, value = waiting.pop()
        members: list[tuple[Hashable, Any]] = []
        if isinstance(value, dict):
            present = {typed(name): child for name, child in value.items() if child is not None}
            members = sorted(present.items(), key=itemgetter(0))
            label: Hashable = _OBJECT
        elif isinstance(value, list):
            members = [(None, child) for child in value]
            label = _ARRAY
        else:
            label = typed(value) if value == value else _NOT_A_NUMBER
        postorder.append(((key, label), len(members)))
        waiting += members
    return reversed(postorder)  # roots first and right to left, read backwards


def _content(value: Any, field: Field) -> str:
    """Write a value as text: keys sorted, and the items of arrays without order. One frame per level of nesting."""
    parts = []
    if field.rule is None and isinstance(value, dict):
        members = with_nfc_keys(value)
        for key in sorted(members):
            if members[key] is not None:
                parts.append(f"{key!r}: {_content(members[key], field.child(key))}")
        return f"{{{', '.join(parts)}}}"
    if field.rule is None and isinstance(value, list):
        for item in value:
            parts.append(_content(item, field.item))
        ordered = parts if field.array_rule(*value).align == "ordered" else sorted(parts)
        return f"[{', '.join(ordered)}]"
    return repr(frozen(value))


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
