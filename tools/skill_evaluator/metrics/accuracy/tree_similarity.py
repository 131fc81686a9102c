"""Similarity of the trees of truth and output, including order and nesting."""

from skill_evaluator.comparing.tree_distance import tree_distance, trees
from skill_evaluator.metrics.base import Comparison


def tree_similarity(comparison: Comparison) -> float | None:
    """Return 1 − (tree edit distance) ÷ (nodes of truth + nodes of output); field rules do not apply.

    Each object, array and scalar is a node, labelled with its key (none for array items and the root) and its kind or
    value; inserting, deleting or relabelling a node costs 1. Members are sorted by key, so that key order does not
    matter; the order of array items does. Null members are absent, null items are nodes, a null root has no node.

    Range 0 to 1, 1 is best; both null → 1. Two trees of equal size with nothing in common score about 0.5, since every
    node is relabelled. Undefined without truth, and if the exact distance would take longer than about 10 s: for
    different trees of more than 10,000 nodes each, and for smaller trees, from about 1,000 nodes, only if they are
    nested at random and very different. Zhang and Shasha 1989, https://doi.org/10.1137/0218082.

    >>> tree_similarity(Comparison({"a": 1, "b": 2}, {"b": 3, "a": 1.0}))  # 1 − 1 ÷ (3 + 3)
    0.8333333333333334
    """
    truth, output = trees(comparison.truth, comparison.output)
    nodes = len(truth.sizes) + len(output.sizes)
    distance = tree_distance(truth, output)
    return None if distance is None else 1 - distance / nodes if nodes else 1.0
