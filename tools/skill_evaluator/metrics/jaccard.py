"""Do the arrays hold the same items?"""

from collections import Counter
from collections.abc import Hashable, Iterator
from typing import Any

from skill_evaluator.metrics.base import Comparison
from skill_evaluator.metrics.comparison import identity
from skill_evaluator.metrics.fieldplan import FieldPlan
from skill_evaluator.text import canonical_json


def jaccard(comparison: Comparison) -> float | None:
    """Mean over array fields of |truth ∩ output| ÷ |truth ∪ output|, items as multisets.

    Items are compared by their declared key fields where the array has `align: key`, else by canonical value. Arrays
    inside array items are pooled by path. Range 0 to 1, 1 is best; an array empty on both sides → 1; undefined
    without truth, or where neither schema nor values have an array. Jaccard 1901; multiset form, Ruzicka 1958.

    >>> from skill_evaluator.metrics.fieldplan import FieldPlan
    >>> jaccard(Comparison({"a": [1, 2, 3]}, {"a": [3, 2, 4]}, FieldPlan(), bool))
    0.5
    """
    plan = comparison.plan
    truth, output = _items(comparison.truth, plan), _items(comparison.output, plan)
    paths = plan.arrays.keys() | truth.keys() | output.keys()
    if not paths:
        return None
    return sum(_overlap(truth.get(path, Counter()), output.get(path, Counter())) for path in paths) / len(paths)


def _overlap(left: Counter[Hashable], right: Counter[Hashable]) -> float:
    union = sum((left | right).values())
    return sum((left & right).values()) / union if union else 1.0


def _items(value: Any, plan: FieldPlan) -> dict[str, Counter[Hashable]]:
    found: dict[str, Counter[Hashable]] = {}
    for path, items in _arrays(value, "", plan):
        rule = plan.array(path, items)
        counted = found.setdefault(path, Counter())
        for item in items:
            scalar_or_keyed = rule.align == "key" or not isinstance(item, dict | list)
            counted[identity(item, rule, path, plan) if scalar_or_keyed else canonical_json(item)] += 1
    return found


def _arrays(value: Any, path: str, plan: FieldPlan) -> Iterator[tuple[str, list[Any]]]:
    if path in plan.leaves:
        return
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _arrays(child, f"{path}.{key}" if path else key, plan)
    elif isinstance(value, list):
        yield path, value
        for child in value:
            yield from _arrays(child, f"{path}[]", plan)
