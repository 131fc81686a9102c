"""Corrected and prediction-powered rates, and the test against a control."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.judges.statistics.bounded import difference, mean_within, rate
from skill_evaluator.judges.statistics.rates import Trials, against_control, corrected_rate, prediction_powered_rate

TRIALS = st.integers(1, 300).flatmap(lambda n: st.builds(Trials, count=st.integers(0, n), n=st.just(n)))


@given(TRIALS, TRIALS, TRIALS)
def test_a_corrected_rate_is_a_rate_inside_its_interval(reported: Trials, hits: Trials, quiet: Trials) -> None:
    corrected = corrected_rate(reported, hits, quiet)
    low, high = corrected.ci95 or (None, None)
    assert 0 <= low <= high <= 1
    if corrected.value is not None:
        assert low <= corrected.value <= high
        assert high - low > 0.005


def test_the_correction_gives_back_the_rate_behind_what_a_judge_reports() -> None:
    """A judge that finds 80 % and makes up 10 % reports 0.25 × 0.8 + 0.75 × 0.1 = 27.5 % of a batch with 25 %."""
    corrected = corrected_rate(Trials(count=275, n=1000), Trials(count=160, n=200), Trials(count=180, n=200))
    assert corrected.value == pytest.approx(0.25)
    corrected = corrected_rate(Trials(count=20, n=100), Trials(count=60, n=60), Trials(count=60, n=60))
    plain = rate(20, 100)
    assert corrected.value == pytest.approx(0.2)
    assert corrected.ci95[0] < plain.ci95[0]
    corrected = corrected_rate(Trials(count=50, n=100), Trials(count=25, n=50), Trials(count=25, n=50))
    assert corrected.value is None
    assert corrected.ci95 == (0, 1)


PICKS = st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=2, max_size=120)


@given(PICKS)
def test_a_difference_of_paired_picks_has_the_interval_of_its_mirror_image_and_a_width(picks: list[float]) -> None:
    here, there = mean_within(picks, -1, 1), mean_within([-pick for pick in picks], -1, 1)
    assert there.ci95 == (pytest.approx(-here.ci95[1], abs=1e-6), pytest.approx(-here.ci95[0], abs=1e-6))
    assert -1 <= here.ci95[0] <= np.mean(picks) <= here.ci95[1] <= 1
    assert here.ci95[1] - here.ci95[0] > 0.02


LABELLED = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=60)


@given(LABELLED, st.lists(st.booleans(), min_size=2, max_size=200))
def test_a_prediction_powered_rate_is_that_of_ppi_python(labelled: list[tuple[bool, bool]], rest: list[bool]) -> None:
    from ppi_py import ppi_mean_pointestimate

    labels, judged = np.array(labelled, float).T
    only = np.array(rest, float)
    powered = prediction_powered_rate(labels.tolist(), judged.tolist(), only.tolist())
    alike = len(set(judged.tolist()) | set(rest)) == 1  # ppi-python divides by zero
    mean = labels.mean() if alike else ppi_mean_pointestimate(labels, judged, only).item()
    assert powered.value == pytest.approx(min(1.0, max(0.0, mean)))


@given(LABELLED, st.lists(st.booleans(), max_size=200))
def test_a_prediction_powered_rate_is_a_rate_with_a_width(labelled: list[tuple[bool, bool]], rest: list[bool]) -> None:
    labels, judged = zip(*labelled, strict=True)
    rate = prediction_powered_rate(labels, judged, rest)
    assert rate.value is not None
    low, high = rate.ci95 or (1, 0)
    assert 0 <= low <= rate.value <= high <= 1
    assert high - low > 0.01


def test_a_good_judge_narrows_the_interval_a_poor_one_moves_nothing_and_labels_alone_count() -> None:
    rng = np.random.default_rng(9)
    truth = rng.random(540) < 0.3
    good, poor = (np.where(rng.random(540) < accuracy, truth, ~truth) for accuracy in (0.97, 0.5))
    labels_alone = prediction_powered_rate(truth[:40].tolist(), good[:40].tolist(), [])
    widths = []
    for judged in (good, poor):
        powered = prediction_powered_rate(truth[:40].tolist(), judged[:40].tolist(), judged[40:].tolist())
        low, high = powered.ci95 or (0, 1)
        assert low < truth.mean() < high
        widths.append(high - low)
    low, high = labels_alone.ci95 or (0, 1)
    assert widths[0] < 0.6 * (high - low)
    assert widths[1] == pytest.approx(high - low, abs=0.03)
    assert prediction_powered_rate([0, 1, 1, 1], [1, 0, 0, 0], []).value == 0.75
    assert prediction_powered_rate([1], [1], [1, 0]).value is None


@given(TRIALS, TRIALS)
def test_the_test_against_a_control_is_scipys(batch: Trials, control: Trials) -> None:
    from scipy.stats import chi2_contingency, fisher_exact

    tested = against_control(batch, control)
    table = [[batch.count, batch.n - batch.count], [control.count, control.n - control.count]]
    if tested.test == "exact":
        assert tested.p == pytest.approx(fisher_exact(table).pvalue)
    else:
        assert tested.p == pytest.approx(chi2_contingency(table, correction=False).pvalue)
        assert chi2_contingency(table).expected_freq.min() >= 5
    assert tested.difference.value == pytest.approx(batch.rate - control.rate)


def test_a_batch_like_its_control_is_no_finding_a_bad_one_is_and_no_units_have_no_interval() -> None:
    assert against_control(Trials(count=5, n=100), Trials(count=5, n=100)).p == 1
    assert against_control(Trials(count=6, n=20), Trials(count=0, n=20)).test == "exact"
    worse = against_control(Trials(count=30, n=100), Trials(count=5, n=100))
    assert worse.p < 0.001
    assert worse.difference.ci95[0] > 0.1
    assert rate(0, 0).ci95 is mean_within([]).ci95 is None
    assert difference(rate(0, 0), rate(1, 2)).value is None
