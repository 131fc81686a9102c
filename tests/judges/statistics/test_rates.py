"""Rates with their intervals, and the true rate behind a reported one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.judges.statistics.bounded import difference, mean_within, rate
from skill_evaluator.judges.statistics.rates import Trials, corrected_rate

TRIALS = st.integers(1, 60).flatmap(lambda n: st.builds(Trials, st.integers(0, n), st.just(n)))


@given(TRIALS, TRIALS, TRIALS)
def test_corrected_rate_is_a_rate_with_an_interval_that_holds_it(found: Trials, quiet: Trials, given: Trials) -> None:
    corrected = corrected_rate(given, found, quiet)
    low, high = corrected.ci95 or (1, 0)
    assert 0 <= low < high <= 1
    assert corrected.value is None or low <= corrected.value <= high
    assert (corrected.value is None) == (found.rate + quiet.rate <= 1)
    assert corrected == corrected_rate(given, found, quiet), "the same counts give the same interval"


def test_corrected_rate_of_a_judge_that_never_errs_is_the_reported_one() -> None:
    corrected = corrected_rate(Trials(30, 100), Trials(1000, 1000), Trials(1000, 1000))
    assert corrected.value == pytest.approx(0.3)
    assert corrected.ci95 == (pytest.approx(0.22, abs=0.02), pytest.approx(0.39, abs=0.02))


def test_corrected_rate_of_a_guessing_judge_is_unknown() -> None:
    corrected = corrected_rate(Trials(50, 100), Trials(25, 50), Trials(50, 100))
    assert corrected.value is None
    low, high = corrected.ci95 or (1, 0)
    assert high - low > 0.9


def test_figures_of_nothing_have_no_interval() -> None:
    assert rate(0, 0).ci95 is mean_within([]).ci95 is None
    assert difference(rate(0, 0), rate(1, 2)).value is None
