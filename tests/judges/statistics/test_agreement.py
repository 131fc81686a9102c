"""κ, weighted κ and ρ agree with scikit-learn and scipy and keep a width; trust goes by the interval of κ."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from skill_evaluator.judges.statistics.agreement import (
    MAX_LABELS,
    Weighting,
    cohen_kappa,
    confusion,
    spearman,
    trust_of,
)
from skill_evaluator.judges.statistics.bounded import BAR

SCORES = [1, 2, 3, 4, 5]
PAIRS = st.lists(st.tuples(st.sampled_from(SCORES), st.sampled_from(SCORES)), min_size=4, max_size=60)
COUNTS = st.lists(st.integers(0, 60), min_size=4, max_size=4).map(lambda cells: np.array(cells, float).reshape(2, 2))


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


@given(PAIRS)
@example([(1, 2), (2, 1), (2, 3), (3, 2)])  # without any of them ρ is the same
def test_rho_equals_scipy(pairs: list[tuple[int, int]]) -> None:
    from scipy.stats import spearmanr

    left, right = zip(*pairs, strict=True)
    rho = spearman(left, right)
    if len(set(left)) > 1 and len(set(right)) > 1:
        assert rho.value == pytest.approx(spearmanr(left, right).statistic)
        assert rho.ci95[0] <= rho.value <= rho.ci95[1]
        assert rho.ci95[0] < rho.ci95[1]


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
