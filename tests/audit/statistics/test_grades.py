"""Quantile grades and median quadrants: properties, borders and the finer scale."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.audit.statistics.grades import QUARTERS, cuts_of, grades_of, is_settled, quadrants_of, scale_of
from skill_evaluator.errors import AuditError

SPREADS = st.lists(st.integers(1, 400), min_size=4, max_size=40).map(lambda ones: np.array(ones) / 100)


@given(SPREADS, st.floats(0.1, 20), st.floats(0, 5))
def test_grades_do_not_change_with_the_unit_or_a_shift(spreads, factor: float, shift: float) -> None:
    assert grades_of(spreads * factor + shift) == grades_of(spreads)


@given(SPREADS)
def test_lower_fluctuation_has_no_worse_grade(spreads) -> None:
    places = [QUARTERS.index(str(grade)) for grade in grades_of(np.sort(spreads))]
    assert places == sorted(places)


@given(SPREADS)
def test_cuts_are_quartiles_and_a_bound_is_within_its_grade(spreads) -> None:
    cuts = cuts_of(spreads)
    assert cuts == pytest.approx(np.quantile(spreads, [0.25, 0.5, 0.75], method="linear"))
    first = sum(grade == "AAA" for grade in grades_of(spreads))
    assert first >= (spreads <= cuts[0]).sum()


def test_equal_fluctuations_share_a_grade_despite_rounding() -> None:
    assert set(grades_of(np.array([1.5] * 5))) == {"AAA"}
    assert grades_of(np.array([0.1 + 0.2, 0.3, 0.3, 0.3, 9.0])) == ["AAA"] * 4 + ["BBB"]


def test_eight_grades_require_twenty_models() -> None:
    assert len(scale_of(8, 20)) == 8
    with pytest.raises(AuditError, match="at least 20 models; there are 19"):
        scale_of(8, 19)
    with pytest.raises(AuditError, match="expected 4 or 8"):
        scale_of(5, 30)
    found = grades_of(np.arange(24.0), scale_of(8, 24))
    assert [found.count(grade) for grade in ("AAA", "AA+", "AA", "AA-", "A+", "A", "A-", "BBB")] == [3] * 8


@given(SPREADS, st.randoms())
def test_quadrants_do_not_depend_on_the_order(spreads, random) -> None:
    abilities = np.array([random.uniform(0, 100) for _ in spreads])
    order = list(range(len(spreads)))
    random.shuffle(order)
    plain = quadrants_of(abilities, spreads)
    assert quadrants_of(abilities[order], spreads[order]) == [plain[place] for place in order]


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
