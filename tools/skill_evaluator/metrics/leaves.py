"""One output as a set of comparable leaves, so that many outputs of a case can be compared pair by pair cheaply.

Possible where alignment does not depend on the partner (`ordered`, `set`, `key` with every key once); with `best` it
does, and such outputs are compared by `comparison.compare` instead. Both ways give the same score; a test holds them
together.
"""

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from skill_evaluator.metrics.comparators import canonical
from skill_evaluator.metrics.comparison import identity
from skill_evaluator.metrics.fieldplan import FieldPlan, FieldRule

Instance = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class Leaf:
    """One leaf: its plan path, where it stands once arrays are aligned, its rule and its value."""

    path: str
    instance: Instance
    rule: FieldRule
    value: Any


class PartnerDependentError(Exception):
    """The value holds an array whose alignment depends on what it is compared with."""


def leaves_of(value: Any, plan: FieldPlan) -> list[Leaf]:
    """All leaves that are not null or ignored; raises PartnerDependentError where alignment needs the partner."""
    return list(_leaves(value, "", (), plan))


def values_by_path(value: Any, plan: FieldPlan) -> dict[str, Hashable]:
    """The canonical value of every leaf path, arrays as multisets: what the stability of a field counts."""
    gathered: dict[str, Counter[Hashable]] = {}
    for path, rule, leaf in _scalars(value, "", plan):
        gathered.setdefault(path, Counter())[canonical(leaf, rule)] += 1
    return {path: frozenset(counts.items()) for path, counts in gathered.items()}


def _scalars(value: Any, path: str, plan: FieldPlan) -> Iterator[tuple[str, FieldRule, Any]]:
    if value is None:
        return
    if path not in plan.leaves:
        if isinstance(value, dict):
            for key, child in value.items():
                yield from _scalars(child, f"{path}.{key}" if path else key, plan)
            return
        if isinstance(value, list):
            for child in value:
                yield from _scalars(child, f"{path}[]", plan)
            return
    rule = plan.leaf(path, value)
    if rule.compare != "ignore":
        yield path, rule, value


def _leaves(value: Any, path: str, instance: Instance, plan: FieldPlan) -> Iterator[Leaf]:
    if value is None:
        return
    if path not in plan.leaves:
        if isinstance(value, dict):
            for key, child in value.items():
                yield from _leaves(child, f"{path}.{key}" if path else key, (*instance, key), plan)
            return
        if isinstance(value, list):
            for place, item in _placed(value, path, plan):
                yield from _leaves(item, f"{path}[]", (*instance, place), plan)
            return
    rule = plan.leaf(path, value)
    if rule.compare != "ignore":
        yield Leaf(path, instance, rule, value)


def _placed(items: list[Any], path: str, plan: FieldPlan) -> Iterator[tuple[Hashable, Any]]:
    rule = plan.array(path, items)
    if rule.align == "ordered":
        yield from enumerate(items)
        return
    if items and (rule.align == "best" or not plan.leaf(f"{path}[]", *items).exact_equality):
        raise PartnerDependentError(path)
    seen: Counter[Hashable] = Counter()
    for item in items:
        who = identity(item, rule, path, plan)
        if seen[who] and rule.align == "key":
            raise PartnerDependentError(path)
        yield (who, seen[who]), item
        seen[who] += 1
