"""What comparing means, in its shortest form: two values and a plan in, what became of every leaf out.

Plain recursion that tries every assignment of array items: for reading, and for the tests that hold the fast engine
(`comparison`) to it. Nothing is scored by it.
"""

from collections.abc import Hashable, Iterable
from itertools import permutations, zip_longest
from typing import Any, NamedTuple

from skill_evaluator.comparing.comparison import LeafOutcome, key_value, pairs_by_best
from skill_evaluator.comparing.declarations import FieldRule
from skill_evaluator.comparing.field_plan import Field, FieldPlan, canonical, equal
from skill_evaluator.text import with_nfc_keys

ItemPairs = Iterable[tuple[Any, Any]]  # an item of the truth, one of the output; null: there is no counterpart


class LeafResult(NamedTuple):
    """What became of one leaf, and what it weighs."""

    path: str
    outcome: LeafOutcome
    weight: float


def compare_naively(truth: Any, output: Any, plan: FieldPlan) -> list[LeafResult]:
    """Compare two JSON values leaf by leaf.

    >>> [result.outcome for result in compare_naively({"a": [1, 2], "b": 3}, {"a": [2], "b": 4}, FieldPlan())]
    ['missing', 'right', 'wrong']
    """
    return _compare(truth, output, plan.field(""))


def naive_f1(results: Iterable[LeafResult]) -> float:
    """Return `field_level_f1`: a wrong leaf costs precision and recall, a missing or extra one costs one of them."""
    total = matched = 0.0
    for result in results:
        total += result.weight if result.outcome in ("missing", "extra") else 2 * result.weight
        matched += 2 * result.weight if result.outcome == "right" else 0.0
    return matched / total if total else 1.0


def _compare(truth: Any, output: Any, field: Field) -> list[LeafResult]:
    if field.ignored or (truth is None and output is None):
        return []
    if field.rule is not None or not (isinstance(truth, dict | list) or isinstance(output, dict | list)):
        rule = field.leaf_rule(output if truth is None else truth)
        outcome: LeafOutcome = "right" if equal(truth, output, rule) else "wrong"
        if truth is None or output is None:
            outcome = "extra" if truth is None else "missing"
        return [LeafResult(field.path, outcome, rule.weight if rule.counts else 0.0)]
    if isinstance(truth, dict | None) and isinstance(output, dict | None):
        left, right = with_nfc_keys(truth or {}), with_nfc_keys(output or {})
        members = [(left.get(key), right.get(key), field.child(key)) for key in {**left, **right}]
    elif isinstance(truth, list | None) and isinstance(output, list | None):
        members = [(item, other, field.item) for item, other in _align(truth or [], output or [], field)]
    else:  # of different kinds: all of the truth is missing, all of the output is extra
        members = [(truth, None, field), (None, output, field)]
    return [result for member in members for result in _compare(*member)]


def _align(truth: list[Any], output: list[Any], field: Field) -> ItemPairs:
    """Decide which items meet: by position, by what they share, or by their key or whole value."""
    rule = field.array_rule(*truth, *output)
    if rule.align == "ordered":
        return zip_longest(truth, output)
    if pairs_by_best(rule, field):
        return _assign(truth, output, field)
    groups: dict[Hashable, tuple[list[Any], list[Any]]] = {}
    for side, items in enumerate((truth, output)):
        for item in items:
            groups.setdefault(_identify(item, rule, field), ([], []))[side].append(item)
    if rule.align == "set":
        return [pair for items, others in groups.values() for pair in zip_longest(items, others)]
    return [pair for items, others in groups.values() for pair in _assign(items, others, field)]


def _identify(item: Any, rule: FieldRule, field: Field) -> Hashable:
    """Return what an item is known by: its key fields, or the whole of it."""
    if rule.align != "key":
        return _canonical(item, field.item)
    return tuple(_canonical(key_value(item, key), field.item.descendant(key.split("."))) for key in rule.key)


def _canonical(value: Any, field: Field) -> Hashable:
    return None if value is None else canonical(value, field.leaf_rule(value))


def _assign(truth: list[Any], output: list[Any], field: Field) -> ItemPairs:
    """Try every one-to-one assignment and return the first that matches the most leaf weight."""
    size = max(len(truth), len(output))
    items, others = ([*side, *[None] * (size - len(side))] for side in (truth, output))
    shared = [
        [sum(leaf.weight for leaf in _compare(item, other, field.item) if leaf.outcome == "right") for other in others]
        for item in items
    ]
    orders = permutations(range(size))
    best = max(orders, key=lambda order: sum(shared[row][column] for row, column in enumerate(order)))
    return [(items[row], others[column]) for row, column in enumerate(best)]
