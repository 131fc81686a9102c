"""The share of a case's checks that an output passes, by weight."""

from collections.abc import Sequence

import pytest
from skill_evaluator.metrics.accuracy.checks import checks
from skill_evaluator.metrics.base import Comparison


@pytest.mark.parametrize(
    ("scored", "expected"),
    [
        ([(1.0, 1.0), (3.0, 0.0)], 0.25),
        ([(1.0, 0.5)], 0.5),
        ([(1.0, 1.0), (9.0, None)], None),  # one was not measured
        ([], None),
    ],
)
def test_share_of_passed_checks(scored: Sequence[tuple[float, float | None]], expected: float | None) -> None:
    assert checks(Comparison(None, "ok", checks=scored)) == expected
