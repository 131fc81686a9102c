"""Tree similarity by hand; the distance behind it is tested in tests/comparing."""

import sys
from typing import Any

import pytest
from skill_evaluator.metrics.accuracy.tree_similarity import tree_similarity

from tests.metrics.orders import comparison

DEEPEST = 2 * sys.getrecursionlimit()


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
