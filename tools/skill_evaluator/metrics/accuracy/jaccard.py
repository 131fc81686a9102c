"""Do the arrays hold the same items?"""

from collections import Counter
from collections.abc import Hashable

from skill_evaluator.metrics.base import Comparison


def jaccard(comparison: Comparison) -> float | None:
    """Return the mean over array fields with items of |truth ∩ output| ÷ |truth ∪ output|, items as multisets.

    Items are compared by their declared key fields where the array has `align: key` (one whose key fields are all null
    by the whole of it), else by canonical value. Arrays inside array items are pooled by path. An array empty or absent
    on both sides does not count; if all are, the score is 1. Range 0 to 1, 1 is best; undefined without truth, or where
    neither schema nor values have an array.
    Jaccard 1901; multiset form, Ruzicka 1958.

    >>> jaccard(Comparison({"a": [1, 2, 3]}, {"a": [3, 2, 4]}))
    0.5
    >>> jaccard(Comparison({"a": [1], "b": []}, {"a": [], "b": []}))
    0.0
    """
    truth, output = comparison.truth_side.item_counts, comparison.output_side.item_counts
    paths = comparison.plan.arrays.keys() | truth.keys() | output.keys()
    if not paths:
        return None
    nothing: Counter[Hashable] = Counter()
    overlaps = []
    for path in paths:
        left, right = truth.get(path, nothing), output.get(path, nothing)
        common = sum([min(count, right[item]) for item, count in left.items() if item in right])
        union = left.total() + right.total() - common
        overlaps += [common / union] if union else []
    return sum(overlaps) / len(overlaps) if overlaps else 1.0
