"""How many different answers, counted by hand."""

from typing import Any

import pytest
from skill_evaluator.metrics.agreement.distinct_outputs import distinct_outputs

from tests.support.json_values import answers


@pytest.mark.parametrize(
    ("outputs", "unparseable", "expected"),
    [
        ([1, 1, 1], 0, 1),
        ([1, 1, 2], 0, 2),
        ([1, "1", True], 0, 3),
        ([{"a": 1}, {"a": 1.0, "b": None}], 0, 1),
        ([1, 1], 2, 3),  # each unparseable answer is one of its own
        ([], 2, 2),
        ([], 0, None),
    ],
)
def test_distinct_parsed_outputs(outputs: list[Any], unparseable: int, expected: float | None) -> None:
    assert distinct_outputs(answers(*outputs, unparseable=unparseable)) == expected
