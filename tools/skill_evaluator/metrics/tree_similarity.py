"""Similarity of the trees of truth and output, including order and nesting, by their exact edit distance."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from skill_evaluator.metrics.accuracy import Comparison
from skill_evaluator.text import frozen

_MAX_CELLS = 20_000_000  # table cells that are filled in about 10 s


def tree_similarity(comparison: Comparison) -> float | None:
    """Return 1 − (tree edit distance) ÷ (nodes of truth + nodes of output); field rules do not apply.

    Each object, array and scalar is a node. The label of a node is its key with its value, or with its kind for an
    object or array. Inserting, deleting or relabelling a node costs 1. The order of keys does not matter, and the order
    of array items does. An object member that is null counts as absent.

    Range 0 to 1, 1 is best. Two trees of equal size with nothing in common score about 0.5, since every node is
    relabelled. Undefined without truth, and for very different trees of more than about 1,500 nodes, since the distance
    would take longer than about 10 s. Zhang and Shasha 1989, https://doi.org/10.1137/0218082.

    >>> tree_similarity(Comparison({"a": 1, "b": 2}, {"b": 3, "a": 1.0}))  # 1 − 1 ÷ (3 + 3)
    0.8333333333333334
    """
    numbers: dict[Hashable, int] = {}
    truth, output = (tree(_postorder(value), numbers) for value in (comparison.truth, comparison.output))
    nodes = len(truth.labels) + len(output.labels)
    distance = tree_distance(truth, output)
    return None if distance is None else 1 - distance / nodes if nodes else 1.0


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree as the label, subtree size and shape of each node, in postorder. Equal subtrees have equal shapes."""

    labels: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    shapes: list[int] = field(default_factory=list)

    def tops(self) -> dict[int, int]:
        """Return the root of the largest subtree that begins at each leaf, by leaf.

        A subtree begins at its leftmost leaf. Omit leaves at which no larger subtree begins, unless a leaf is the tree.
        """
        highest = {node + 1 - size: node for node, size in enumerate(self.sizes)}
        return {leaf: top for leaf, top in sorted(highest.items()) if self.sizes[top] > 1 or not leaf}


def _postorder(value: Any) -> Iterable[tuple[Hashable, int]]:
    postorder: list[tuple[Hashable, int]] = []
    waiting: list[tuple[Hashable, Any]] = [] if value is None else [(None, value)]
    while waiting:  # iterative, because values may be nested deeper than the recursion limit
        key, value = waiting.pop()
        members: list[tuple[Hashable, Any]] = []
        if isinstance(value, dict):
            members_by_key = {frozen(name): child for name, child in value.items() if child is not None}
            members = sorted(members_by_key.items(), key=itemgetter(0))
            label: Hashable = ("object",)
        elif isinstance(value, list):
            members = [(None, child) for child in value]
            label = ("array",)
        else:
            label = frozen(value) if value == value else ("not a number",)
        postorder.append(((key, label), len(members)))
        waiting += members
    return reversed(postorder)  # the traversal is roots first and right to left


def tree(nodes: Iterable[tuple[Hashable, int]], numbers: dict[Hashable, int]) -> Tree:
    """Build a tree from the (label, number of children) of each node in postorder.

    `numbers` gives each label and each shape an integer. Pass the same dict for trees that will be compared.
    """
    built = Tree()
    waiting: list[int] = []  # roots of the subtrees that have no parent yet
    for node, (name, arity) in enumerate(nodes):
        children = waiting[len(waiting) - arity :]
        waiting[len(waiting) - arity :] = [node]
        label = numbers.setdefault(("label", name), len(numbers))
        shape = (label, *[built.shapes[child] for child in children])
        built.labels.append(label)
        built.sizes.append(1 + sum([built.sizes[child] for child in children]))
        built.shapes.append(numbers.setdefault(shape, len(numbers)))
    return built


def tree_distance(a: Tree, b: Tree) -> int | None:
    """Return the ordered tree edit distance. Return None if it would take longer than about 10 s.

    The search is limited to distances of at most k. The limit k grows until the distance is found: Touzet 2007,
    https://doi.org/10.1016/j.jda.2006.07.002.
    """
    sizes = len(a.labels), len(b.labels)
    if not all(sizes):
        return sum(sizes)
    if a.shapes[-1] == b.shapes[-1]:
        return 0
    tops_a, tops_b = a.tops(), b.tops()
    cells = sum(a.sizes[top] for top in tops_a.values()) * sum(b.sizes[top] for top in tops_b.values())
    leaves_b = list(tops_b)
    k = max(sizes) - (Counter(a.labels) & Counter(b.labels)).total()
    while cells * min(1, (2 * k + 1) / max(sizes)) <= _MAX_CELLS:
        distances: dict[tuple[int, int], int] = {}
        for leaf, top in reversed(tops_a.items()):  # subtrees come before the trees that contain them
            near = leaves_b[bisect_left(leaves_b, leaf - k) : bisect_right(leaves_b, leaf + k)]
            for leaf_b in reversed(near):
                _add_distances(a, b, (top, tops_b[leaf_b]), k, distances)
        distance = distances[sizes[0] - 1, sizes[1] - 1]
        if distance <= k:
            return distance
        k = min(2 * k + 1, distance)
    return None


def _add_distances(a: Tree, b: Tree, tops: tuple[int, int], k: int, distances: dict[tuple[int, int], int]) -> None:
    """Add distances between subtrees of `a` and subtrees of `b` to `distances`, by pair of roots.

    `tops` has a root in `a` and a root in `b`. Only the subtrees that begin at the leftmost leaves of these roots are
    compared. Distances above `k` may be missing or too high.
    """
    begin_a, begin_b = tops[0] + 1 - a.sizes[tops[0]], tops[1] + 1 - b.sizes[tops[1]]
    excess = len(a.labels) - begin_a - (len(b.labels) - begin_b)  # nodes from both beginnings on
    budget = k - abs(begin_a - begin_b)  # bounds |p - q| + |excess - (p - q)|, the nodes without a partner
    if budget < abs(excess):
        return
    lowest, highest = -((budget - excess) // 2), (budget + excess) // 2  # bounds of p - q
    labels, sizes, shapes, size_b = b.labels, b.sizes, b.shapes, b.sizes[tops[1]]
    outside = len(a.labels) + len(b.labels)  # above the cost of any mapping
    rows = [{q: q for q in range(min(size_b, -lowest) + 1)}]
    for p in range(1, min(a.sizes[tops[0]], size_b + highest) + 1):
        node = begin_a + p - 1
        size, label, shape = a.sizes[node], a.labels[node], a.shapes[node]
        above, before, row = rows[-1], rows[p - size], {0: p}
        for q in range(max(1, p - highest), min(size_b, p - lowest) + 1):
            node_b = begin_b + q - 1
            size_of_b = sizes[node_b]
            mapped = before.get(q - size_of_b, outside)
            if size == 1 or size_of_b == 1:  # the rest of the larger subtree has no partner
                mapped += size + size_of_b - 1 - (label == labels[node_b])
            elif size == p and size_of_b == q:
                mapped = above.get(q - 1, outside) + (label != labels[node_b])
            elif shape != shapes[node_b]:
                mapped += distances.get((node, node_b), outside)
            row[q] = min(mapped, above.get(q, outside) + 1, row.get(q - 1, outside) + 1)
            if size == p and size_of_b == q:
                distances[node, node_b] = row[q]
        rows.append(row)
