"""Share of equal pairs, counted by hand."""

from typing import Any

import pytest
from skill_evaluator.metrics.agreement.pairwise_exact_match import pairwise_exact_match

from tests.support.json_values import answers


@pytest.mark.parametrize(
    ("outputs", "unparseable", "expected"),
    [
        ([1, 1], 0, 1),
        ([1, 2], 0, 0),
        ([1, 1, 2], 0, 1 / 3),
        ([1, 1, 2, 2], 0, 2 / 6),
        ([1, 1, 1, 2], 0, 3 / 6),
        ([{"a": 1, "b": None}, {"a": 1.0}], 0, 1),
        ([1, 1], 1, 1 / 3),  # of three pairs two have the unparseable answer
        ([], 3, 0),
        ([1], 1, 0),
        ([1], 0, None),
        ([], 1, None),
        ([], 0, None),
    ],
)
def test_share_of_equal_pairs(outputs: list[Any], unparseable: int, expected: float | None) -> None:
    found = pairwise_exact_match(answers(*outputs, unparseable=unparseable))
    assert found == expected or found == pytest.approx(expected)
