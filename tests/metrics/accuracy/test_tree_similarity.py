"""Tree similarity by hand, and the distance behind it against the implementation `apted`."""

import random
import sys
from collections.abc import Hashable
from typing import Any

import apted
import pytest
from skill_evaluator.comparing import tree_distance as algorithm
from skill_evaluator.comparing.tree_distance import tree, tree_distance
from skill_evaluator.metrics.accuracy.tree_similarity import tree_similarity

from tests.support.json_values import comparison

DEEPEST = 2 * sys.getrecursionlimit()

# A node and what is below it.
Nested = tuple[Hashable, list["Nested"]]


def similarity(truth: Any, output: Any) -> float | None:
    return tree_similarity(comparison(truth, output))


@pytest.mark.parametrize(
    ("truth", "output", "distance", "nodes"),
    [
        ({"a": [1, 2, 3]}, {"b": [1, 2, 3]}, 1, 5 + 5),  # another key is one relabelling, whatever is below it
        ([1, 2], [2, 1], 2, 3 + 3),  # items are ordered
        ({"a": 1}, {"a": "1"}, 1, 2 + 2),
        ({"e\u0301": "e\u0301"}, {"é": "é"}, 0, 2 + 2),
        ({"a": 1, "b": None}, {"a": 1}, 0, 2 + 2),  # a null member is absent
        ([1, None], [1], 1, 3 + 2),  # a null item is not
        ({}, [], 1, 1 + 1),
        ({"a": "object"}, {"a": {}}, 1, 2 + 2),
        ("x", {"a": "x"}, 2, 1 + 2),  # `x` at the root is not `x` at `a`
        (float("nan"), float("nan"), 0, 1 + 1),
    ],
)
def test_similarity_by_hand(truth: Any, output: Any, distance: int, nodes: int) -> None:
    assert similarity(truth, output) == similarity(output, truth) == pytest.approx(1 - distance / nodes)


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


def test_tree_distance_is_the_one_that_apted_finds() -> None:
    dice = random.Random(1)
    for size in [10] * 300 + [40] * 6:
        labels, deep = dice.choice([1, 2, 3, 6]), dice.choice([0.0, 0.3, 0.6, 0.9])
        one = random_tree(dice, dice.randint(size // 2, size), labels, deep)
        other = random_tree(dice, size, labels, deep)
        assert ours(one, other) == ours(other, one) == by_apted(one, other), (one, other)


def chain(depth: int, end: Any, *, in_arrays: bool = False) -> Any:
    value = end
    for _ in range(depth):
        value = [value] if in_arrays else {"a": value}
    return value


@pytest.mark.parametrize(
    ("truth", "output", "distance", "nodes"),
    [
        (chain(500, 1), chain(490, 1), 10, 501 + 491),
        (chain(500, 1), chain(500, 1, in_arrays=True), 501, 501 + 501),
        (chain(500, 1), 1, 501, 501 + 1),  # the 1 at `a` is not the 1 at the root
        (chain(DEEPEST, 1), chain(DEEPEST, 2), 1, 2 * DEEPEST + 2),
    ],
)
def test_values_may_be_nested_deeper_than_calls(truth: Any, output: Any, distance: int, nodes: int) -> None:
    assert similarity(truth, output) == pytest.approx(1 - distance / nodes)


def test_trees_too_large_and_too_different_have_no_similarity() -> None:
    assert similarity(list(range(10_000)), list(range(10_000, 0, -1))) is None


@pytest.mark.parametrize(("most", "given_up"), [(0, True), (50, True), (500, True), (5000, False)])
def test_where_the_search_is_given_up_does_not_depend_on_which_is_the_truth(
    most: int, given_up: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(algorithm, "_MOST_CELLS", most)
    dice = random.Random(1)
    found = []
    for _ in range(50):
        one, other = (random_tree(dice, 14, 3, 0.5) for _ in range(2))
        found.append(ours(one, other))
        assert found[-1] == ours(other, one)
        assert found[-1] in (None, by_apted(one, other))
    assert (None in found) is given_up
