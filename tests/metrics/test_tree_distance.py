"""The tree edit distance against the implementation `apted`."""

import random
import tracemalloc
from collections.abc import Hashable

import apted
from skill_evaluator.metrics.tree_similarity import tree, tree_distance

# A node and what is below it.
Nested = tuple[Hashable, list["Nested"]]


def postorder(node: Nested) -> list[tuple[Hashable, int]]:
    """Return the label and the number of children of each node, children first."""
    return [*(item for child in node[1] for item in postorder(child)), (node[0], len(node[1]))]


def ours(one: Nested, other: Nested) -> int | None:
    numbers: dict[Hashable, int] = {}
    return tree_distance(tree(postorder(one), numbers), tree(postorder(other), numbers))


class _UnitCosts(apted.Config):
    def rename(self, node1: Nested, node2: Nested) -> int:
        return int(node1[0] != node2[0])

    def children(self, node: Nested) -> list[Nested]:
        return node[1]


def by_apted(one: Nested, other: Nested) -> int:
    return apted.APTED(one, other, _UnitCosts()).compute_edit_distance()


def random_tree(dice: random.Random, size: int, labels: int, deep: float) -> Nested:
    nodes: list[Nested] = [(dice.randrange(labels), [])]
    for _ in range(size - 1):
        below = nodes[-1] if dice.random() < deep else dice.choice(nodes)
        nodes.append((dice.randrange(labels), []))
        below[1].insert(dice.randrange(len(below[1]) + 1), nodes[-1])
    return nodes[0]


def test_tree_distance_equals_apted() -> None:
    dice = random.Random(1)
    for size in [10] * 300 + [40] * 6:
        labels, deep = dice.choice([1, 2, 3, 6]), dice.choice([0.0, 0.3, 0.6, 0.9])
        one = random_tree(dice, dice.randint(size // 2, size), labels, deep)
        other = random_tree(dice, size, labels, deep)
        assert ours(one, other) == ours(other, one) == by_apted(one, other), (one, other)


def test_large_similar_trees_need_little_memory() -> None:
    rows: list[Nested] = [("row", [(("id", index), []), ("total", [])]) for index in range(800)]
    tracemalloc.start()
    try:
        distance = ours(("rows", rows), ("rows", [("line", rows[0][1]), *rows[1:400], *rows[401:]]))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (distance, peak < 30_000_000) == (4, True)
