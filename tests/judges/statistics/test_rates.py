"""Rates with their intervals, and the true rate behind a reported one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.judges.statistics.bounded import Figure, corrected_rate, difference, mean_within, rate

RATES = st.integers(1, 60).flatmap(lambda n: st.builds(rate, st.integers(0, n), st.just(n)))


@given(RATES, RATES, RATES)
def test_corrected_rate_is_a_rate_with_an_interval_that_holds_it(found: Figure, quiet: Figure, given: Figure) -> None:
    corrected = corrected_rate(given, found, quiet)
    low, high = corrected.ci95 or (1, 0)
    assert 0 <= low < high <= 1
    assert corrected.value is None or low <= corrected.value <= high
    assert (corrected.value is None) == (found.value + quiet.value <= 1 + 1e-6)
    assert corrected == corrected_rate(given, found, quiet), "the same counts give the same interval"


def test_corrected_rate_of_a_judge_that_never_errs_is_the_reported_one() -> None:
    corrected = corrected_rate(rate(30, 100), rate(1000, 1000), rate(1000, 1000))
    assert corrected.value == pytest.approx(0.3)
    assert corrected.ci95 == (pytest.approx(0.22, abs=0.02), pytest.approx(0.39, abs=0.02))


def test_corrected_rate_of_a_guessing_judge_is_unknown() -> None:
    corrected = corrected_rate(rate(50, 100), rate(25, 50), rate(50, 100))
    assert corrected.value is None
    low, high = corrected.ci95 or (1, 0)
    assert high - low > 0.9


def test_figures_of_nothing_have_no_interval() -> None:
    assert rate(0, 0).ci95 is mean_within([]).ci95 is corrected_rate(rate(1, 2), rate(0, 0), rate(1, 2)) is None
    assert difference(rate(0, 0), rate(1, 2)).value is None
