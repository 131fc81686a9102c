"""Similarity of arrays by their items."""

from collections import Counter
from collections.abc import Hashable

from skill_evaluator.metrics.base import Comparison


def jaccard(comparison: Comparison) -> float | None:
    """Return the mean over array fields with items of |truth ∩ output| ÷ |truth ∪ output|, items as multisets.

    Items of arrays with `align: key` are compared by their key fields (by the whole item if all key fields are null),
    other items by canonical value. Arrays inside array items are pooled by path. An array that is empty or absent on
    both sides does not count; if no array counts, the score is 1. Range 0 to 1, 1 is best; undefined without truth, or
    if neither schema nor values have an array.
    Jaccard 1901; multiset form, Ruzicka 1958.

    >>> jaccard(Comparison({"a": [1, 2, 3]}, {"a": [3, 2, 4]}))
    0.5
    >>> jaccard(Comparison({"a": [1], "b": []}, {"a": [], "b": []}))
    0.0
    """
    truth, output = comparison.memoized_truth.item_counts, comparison.memoized_output.item_counts
    paths = comparison.plan.arrays.keys() | truth.keys() | output.keys()
    if not paths:
        return None
    no_items: Counter[Hashable] = Counter()
    overlaps = []
    for path in paths:
        truth_counts, output_counts = truth.get(path, no_items), output.get(path, no_items)
        common = sum([min(count, output_counts[item]) for item, count in truth_counts.items() if item in output_counts])
        union = truth_counts.total() + output_counts.total() - common
        overlaps += [common / union] if union else []
    return sum(overlaps) / len(overlaps) if overlaps else 1.0
