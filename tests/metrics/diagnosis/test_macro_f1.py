"""Macro F1 of a category field by hand, from its confusion counts."""

import pytest
from skill_evaluator.metrics.diagnosis.per_field import macro_f1

Pairs = dict[tuple[str | None, str | None], int]


@pytest.mark.parametrize(
    ("confusion", "expected"),
    [
        ({("a", "a"): 3, ("b", "b"): 1}, 1.0),
        ({("a", "b"): 1, ("b", "a"): 1}, 0.0),
        # a: 2·3 ÷ (4 + 3), b: 2·1 ÷ (1 + 2): the rare label weighs as much as the common one
        ({("a", "a"): 3, ("a", "b"): 1, ("b", "b"): 1}, (6 / 7 + 2 / 3) / 2),
        # a label that only the outputs have is a label, with F1 0
        ({("a", "a"): 1, ("a", "c"): 1}, (2 / 3 + 0) / 2),
        # no label is none: missed, it is a false negative of a, invented, a false positive of b
        ({("a", "a"): 1, ("a", None): 1}, 2 / 3),
        ({("b", "b"): 1, (None, "b"): 1}, 2 / 3),
        ({(None, "b"): 2}, 0.0),
        ({}, None),
    ],
)
def test_mean_of_the_f1_of_each_label(confusion: Pairs, expected: float | None) -> None:
    assert macro_f1(confusion) == (expected if expected is None else pytest.approx(expected))


def test_how_often_everything_was_asked_does_not_matter() -> None:
    once: Pairs = {("a", "a"): 3, ("a", "b"): 1, ("b", None): 2}
    assert macro_f1({pair: 5 * count for pair, count in once.items()}) == macro_f1(once)
