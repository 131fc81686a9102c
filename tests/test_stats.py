"""Confidence intervals compared with scipy, and their edge cases."""

import math
from statistics import fmean, stdev

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from skill_evaluator.stats import (
    benjamini_hochberg,
    mean_or_none,
    quantile,
    rate_interval,
    stdev_or_none,
    unit_interval,
)

from tests.support.json_values import thorough

shares = st.floats(0, 1)


@pytest.mark.parametrize("n", [2, 37])
def test_rate_interval_has_mid_p_tails(n: int) -> None:
    from scipy.stats import binom, binomtest

    for successes in {0, 1, n // 3, n // 2, n - 1, n}:
        low, high = rate_interval(successes, n)
        if successes:
            assert binom.sf(successes, n, low) + binom.pmf(successes, n, low) / 2 == pytest.approx(0.025, abs=1e-9)
        if successes < n:
            assert binom.cdf(successes - 1, n, high) + binom.pmf(successes, n, high) / 2 == pytest.approx(0.025)
        exact = binomtest(successes, n).proportion_ci(method="exact")
        assert exact.low <= low <= successes / n <= high <= exact.high


@pytest.mark.parametrize("n", [5, 20, 50])
def test_rate_interval_has_its_coverage(n: int) -> None:
    """Of every outcome there is, weighted by its probability: no simulation."""
    from scipy.stats import binom

    bounds = np.array([rate_interval(successes, n) for successes in range(n + 1)])
    covers = [
        binom.pmf(np.arange(n + 1), n, rate)[(bounds[:, 0] <= rate) & (rate <= bounds[:, 1])].sum()
        for rate in np.linspace(0.02, 0.98, 49)
    ]
    assert min(covers) > 0.92
    assert 0.945 < fmean(covers) < 0.98


@thorough
@given(values=st.lists(st.floats(0.2, 0.8), min_size=2, max_size=8))
def test_unit_interval_is_students_on_the_log_odds(values: list[float]) -> None:
    from scipy.special import expit, logit
    from scipy.stats import t as student

    assume(max(values) - min(values) > 1e-6)
    n, mean = len(values), fmean(values)
    error = math.sqrt(stdev(values) ** 2 / n + ((max(values) - min(values)) / 2 / n) ** 2)
    expected = expit(student.interval(0.95, n - 1, logit(mean), error / (mean * (1 - mean))))
    assert unit_interval(values) == pytest.approx(tuple(expected), abs=1e-9)


@pytest.mark.parametrize("values", [[0.0, 1.0], [1.0, 1.0, 0.0], [0.0] * 9 + [1.0]])
def test_unit_interval_of_zeros_and_ones_is_the_rate_interval(values: list[float]) -> None:
    assert unit_interval(values) == rate_interval(int(sum(values)), len(values))


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ([1.0, 1.0], 0.05**0.5, 1.0),  # 0.95 of the chances lie above 0.05^(1/n)
        ([1.0] * 10, 0.7411, 1.0),
        ([0.0] * 10, 0.0, 0.2589),
        ([0.5] * 10, 0.3706, 0.6294),
        ([0.1 + 0.2, 0.3], 0.3 * 0.05**0.5, 0.3 * 0.05**0.5 + 1 - 0.05**0.5),  # equal but for the last binary digit
    ],
)
def test_unit_interval_of_equal_values_has_a_width(values: list[float], low: float, high: float) -> None:
    assert unit_interval(values) == pytest.approx((low, high), abs=1e-4)


@thorough
@given(values=st.lists(shares | st.sampled_from([0.0, 1.0]), min_size=2, max_size=8))
def test_unit_interval_contains_the_mean(values: list[float]) -> None:
    interval = unit_interval(values)
    assert interval is not None
    low, high = interval
    assert 0.0 <= low <= high <= 1.0
    assert low - 1e-9 <= fmean(values) <= high + 1e-9


def test_too_few_values_have_no_interval_and_no_deviation() -> None:
    assert [(unit_interval(values), stdev_or_none(values)) for values in ([], [0.5])] == [(None, None)] * 2
    assert (mean_or_none([]), mean_or_none([0.0])) == (None, 0.0)
    assert stdev_or_none([0.0, 1.0]) == pytest.approx(math.sqrt(0.5))


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([], 0.5, None),
        ([3.0], 0.95, 3.0),
        ([1.0, 2.0], 0.5, 1.5),
        ([4.0, 1.0, 3.0, 2.0], 0.5, 2.5),
        ([0.0, 10.0], 0.95, 9.5),
        ([1.0, 2.0, 3.0], 1.0, 3.0),
        ([1.0, 2.0, 3.0], 0.0, 1.0),
    ],
)
def test_quantile_interpolates_linearly(values: list[float], share: float, expected: float | None) -> None:
    assert quantile(values, share) == expected


@thorough
@given(p_values=st.lists(st.floats(0, 1), max_size=30))
def test_benjamini_hochberg_agrees_with_scipy(p_values: list[float]) -> None:
    from scipy.stats import false_discovery_control

    expected = false_discovery_control(p_values).tolist() if p_values else []
    assert benjamini_hochberg(p_values) == pytest.approx(expected, abs=1e-12)
