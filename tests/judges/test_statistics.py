"""Figures, biases and agreement corrected for chance, by other libraries and with simulated judges."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.judges.statistics import (
    BAR,
    MAX_LABELS,
    Estimate,
    Weighting,
    cohen_kappa,
    confusion,
    corrected_rate,
    own_noise,
    position_bias,
    rate,
    repeatability,
    spearman,
    trust_of,
)

from benchmarks.simulated_judges import Judge, Reader, coverage, judged, worlds

SCORES = [1, 2, 3, 4, 5]
PAIRS = st.lists(st.tuples(st.sampled_from(SCORES), st.sampled_from(SCORES)), min_size=4, max_size=60)
COUNTS = st.lists(st.integers(0, 60), min_size=4, max_size=4).map(lambda cells: np.array(cells, float).reshape(2, 2))
VERDICTS = st.lists(st.tuples(*[st.sampled_from([1, 2, "tie", None])] * 2), min_size=2, max_size=60)
RATES = st.integers(1, 60).flatmap(lambda n: st.builds(rate, st.integers(0, n), st.just(n)))


@given(PAIRS, st.sampled_from([("nominal", None), ("linear", "linear")]))
def test_kappa_equals_scikit_learn(pairs: list[tuple[int, int]], weighting: tuple[Weighting, str | None]) -> None:
    from sklearn.metrics import cohen_kappa_score

    left, right = zip(*pairs, strict=True)
    kappa = cohen_kappa(confusion(left, right, SCORES), weighting[0])
    if len(set(left) | set(right)) == 1:
        assert kappa.value is None
        return
    assert kappa.value == pytest.approx(cohen_kappa_score(left, right, weights=weighting[1], labels=SCORES))
    assert -1 <= kappa.ci95[0] <= kappa.value + 1e-12
    assert kappa.value - 1e-12 <= kappa.ci95[1] <= 1
    assert kappa.ci95[1] - kappa.ci95[0] > 0.05


def test_full_agreement_has_an_interval() -> None:
    """With n agreeing items, disagreement may still have the probability that n trials do not show: 1 − 0.05^(1/n)."""
    for n in (2, 10, 50, 500):
        kappa = cohen_kappa(np.diag([n / 2, n / 2]))
        assert (kappa.value, kappa.ci95) == (1, (pytest.approx(max(-1, 1 - 2 * (1 - 0.05 ** (1 / n)))), 1)), n
        rho = spearman(range(n + 2), range(n + 2))
        assert rho.ci95[0] < 1 == pytest.approx(rho.ci95[1]), n
    low, high = cohen_kappa(np.array([[0.0, 20.0], [20.0, 0.0]])).ci95 or (0, 0)
    assert -1 == low < high < -0.8
    assert cohen_kappa(np.zeros((2, 2))).value is cohen_kappa(np.array([[9.0, 0.0], [0.0, 0.0]])).ci95 is None
    assert spearman([1, 2, 3], [1, 2, 3]).value is spearman([1, 1, 1, 1], [1, 2, 3, 4]).value is None


@pytest.mark.parametrize(
    ("agreed", "disagreed", "trusted"),
    [
        (96, 4, True),
        (80, 20, None),  # κ 0.6, as the bar
        (60, 40, False),
        (22, 78, False),  # worse than a coin
        (6, 0, None),  # too few, though all agree
    ],
)
def test_trust_is_decided_by_the_whole_interval(agreed: int, disagreed: int, trusted: bool | None) -> None:
    table = np.array([[agreed / 2, disagreed / 2], [disagreed / 2, agreed / 2]])
    assert trust_of(table).trusted is trusted
    assert trust_of(np.array([[30.0, 0.0], [0.0, 0.0]])).trusted is None
    assert trust_of(table, bar=0.99).trusted is (None if agreed == 6 else False)


@given(COUNTS)
def test_named_number_of_labels_decides_and_fewer_do_not(counts: np.ndarray) -> None:
    trust, n = trust_of(counts), counts.sum()
    if trust.more_labels is None:
        return
    assert trust.trusted is None
    more = trust_of(counts * ((n + trust.more_labels) / n))
    assert more.trusted == ((cohen_kappa(counts).value or 0) >= BAR)
    if trust.more_labels > 1:
        assert trust_of(counts * ((n + trust.more_labels - 1) / n)).trusted is None
    assert n + trust.more_labels <= MAX_LABELS


@given(VERDICTS)
def test_renaming_the_outputs_changes_no_position_bias(pairs: list[tuple[object, object]]) -> None:
    in_order, swapped = zip(*pairs, strict=True)
    renamed = {1: 2, 2: 1, "tie": "tie", None: None}
    bias = position_bias(in_order, swapped)
    assert bias == position_bias([renamed[one] for one in swapped], [renamed[one] for one in in_order])
    assert bias.lean.ci95[0] < bias.lean.ci95[1]


def test_repeatability_counts_pairs_of_parsed_outputs() -> None:
    assert repeatability([[1, 1, 1, 2], [2, 2]]).value == pytest.approx((3 / 6 + 1) / 2)
    same = repeatability([(1, 1), (1, 2), (None, None), (None, 1), (2, None, 2)])
    assert (same.value, same.n) == (pytest.approx(2 / 3), 3)
    assert own_noise([[[1], [2]]]) is None
    flips = position_bias([1, 1, None, None, 2], [1, 2, None, 1, None]).flips
    assert (flips.value, flips.n) == (0.5, 2)


@given(RATES, RATES, RATES)
def test_corrected_rate_has_an_interval_that_holds_it(found: Estimate, quiet: Estimate, given: Estimate) -> None:
    corrected = corrected_rate(given, found, quiet)
    low, high = corrected.ci95 or (1, 0)
    assert 0 <= low < high <= 1
    assert corrected.value is None or low <= corrected.value <= high
    assert (corrected.value is None) == (found.value + quiet.value <= 1 + 1e-6)
    assert corrected == corrected_rate(given, found, quiet), "the same counts give the same interval"


def test_corrected_rate_equals_reported_if_the_judge_never_errs() -> None:
    corrected = corrected_rate(rate(30, 100), rate(1000, 1000), rate(1000, 1000))
    assert corrected.value == pytest.approx(0.3)
    assert corrected.ci95 == (pytest.approx(0.22, abs=0.02), pytest.approx(0.39, abs=0.02))


SEEDS = 2_000
PROMISED = 0.92
ROUGH = 0.9  # of the bootstrap, and of the closed formula of ρ for scores of few levels
WORLDS = worlds()


def test_intervals_hold_the_true_value_in_a_few_samples() -> None:
    for name in WORLDS:
        assert coverage(*WORLDS[name], seeds=25) >= 0.8, name


@pytest.mark.simulation
@pytest.mark.parametrize("name", WORLDS)
def test_interval_covers_the_true_value(name: str) -> None:
    assert coverage(*WORLDS[name], SEEDS) >= (ROUGH if name == "Spearman's ρ" else PROMISED)


@pytest.mark.simulation
@pytest.mark.parametrize("accuracy", [0.75, 0.79])
def test_a_judge_below_the_bar_is_seldom_trusted(accuracy: float) -> None:
    """κ of 0.5 and 0.58 beside a bar of 0.6, with 100 labels."""
    judge = Judge(position=0.0, length=0.0, own=0.0, noise=0.0, accuracy=accuracy)
    trusted = 0
    for seed in range(SEEDS):
        pairs = judged(judge, 100, np.random.default_rng(seed))
        cells = 2 * (pairs.in_order - 1) + pairs.label - 1
        trusted += trust_of(np.bincount(cells, minlength=4).reshape(2, 2).astype(float)).trusted is True
    assert trusted <= 0.035 * SEEDS


@pytest.mark.simulation
@pytest.mark.parametrize("error", [0.05, 0.1, 0.2])
def test_corrected_share_covers_the_true_share_with_100_labels(error: float) -> None:
    """It holds it in 92 to 98 of 100; the standard error of 1,000 samples is half a point."""
    for holds in (0.5, 0.8):
        held = coverage(partial(Reader(error=error).corrected, holds), holds, seeds=1_000)
        assert 0.9 <= held <= 0.985, holds
