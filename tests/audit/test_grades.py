"""Quantile grades and median quadrants: properties, borders and the finer scale."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.audit.statistics import QUARTERS, grades_of, is_settled, scale_of
from skill_evaluator.errors import AuditError

SPREADS = st.lists(st.integers(1, 400), min_size=4, max_size=40).map(lambda ones: np.array(ones) / 100)


@given(SPREADS, st.floats(0.1, 20), st.floats(0, 5))
def test_grades_do_not_change_with_the_unit_or_a_shift(spreads, factor: float, shift: float) -> None:
    assert grades_of(spreads * factor + shift) == grades_of(spreads)


@given(SPREADS)
def test_lower_fluctuation_has_no_worse_grade(spreads) -> None:
    places = [QUARTERS.index(str(grade)) for grade in grades_of(np.sort(spreads))]
    assert places == sorted(places)


def test_equal_fluctuations_share_a_grade_despite_rounding() -> None:
    assert set(grades_of(np.array([1.5] * 5))) == {"AAA"}
    assert grades_of(np.array([0.1 + 0.2, 0.3, 0.3, 0.3, 9.0])) == ["AAA"] * 4 + ["BBB"]


def test_eight_grades_require_twenty_models() -> None:
    assert len(scale_of(8, 20)) == 8
    with pytest.raises(AuditError, match="at least 20 models; found 19"):
        scale_of(8, 19)
    with pytest.raises(AuditError, match="expected 4 or 8"):
        scale_of(5, 30)
    found = grades_of(np.arange(24.0), scale_of(8, 24))
    assert [found.count(grade) for grade in ("AAA", "AA+", "AA", "AA-", "A+", "A", "A-", "BBB")] == [3] * 8


@pytest.mark.parametrize(
    ("fluctuation", "interval", "noise", "settled"),
    [
        (0.5, (0.2, 0.9), 0.3, True),  # AAA
        (0.5, (0.2, 1.1), 0.3, False),  # reaches into AA
        (0.5, (0.0, 0.9), 1.2, False),  # noise alone would exceed AAA
        (5.0, (4.1, 9.0), 1.2, True),  # BBB
        (5.0, (3.9, 9.0), 1.2, False),
    ],
)
def test_grade_is_settled_if_its_interval_crosses_no_threshold(fluctuation, interval, noise, settled) -> None:
    assert is_settled(fluctuation, interval, noise, np.array([1.0, 2.0, 4.0])) is settled
