"""κ, weighted κ and ρ agree with scikit-learn and scipy, and their intervals keep a width."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from skill_evaluator.judges.statistics.agreement import Weighting, cohen_kappa, confusion, spearman

SCORES = [1, 2, 3, 4, 5]
PAIRS = st.lists(st.tuples(st.sampled_from(SCORES), st.sampled_from(SCORES)), min_size=4, max_size=60)


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


@given(PAIRS)
def test_confusion_matrix_equals_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    from sklearn.metrics import confusion_matrix

    left, right = zip(*pairs, strict=True)
    assert confusion(left, right, SCORES).tolist() == confusion_matrix(left, right, labels=SCORES).tolist()


def test_unparsed_verdict_is_a_category_of_its_own() -> None:
    from sklearn.metrics import cohen_kappa_score

    people = [1, 2] * 20
    judge = [None, *people[1:]]
    kappa = cohen_kappa(confusion(judge, people, [1, 2, None]))
    assert kappa.value == pytest.approx(cohen_kappa_score(list(map(str, judge)), list(map(str, people))))
    assert kappa.value < 1
    with pytest.raises(ValueError, match="None and 1 must be among the categories"):
        confusion([None], [1], [1, 2])


def test_full_agreement_has_an_interval() -> None:
    """With n agreeing items, disagreement may still have the probability that n trials do not show: 1 − 0.05^(1/n)."""
    for n in (2, 10, 50, 500):
        kappa = cohen_kappa(np.diag([n / 2, n / 2]))
        assert kappa.value == 1, n
        assert kappa.ci95 == (pytest.approx(max(-1, 1 - 2 * (1 - 0.05 ** (1 / n)))), 1), n
        rho = spearman(range(n + 2), range(n + 2))
        assert rho.ci95[0] < 1 == pytest.approx(rho.ci95[1]), n
    low, high = cohen_kappa(np.array([[0.0, 20.0], [20.0, 0.0]])).ci95 or (0, 0)
    assert low == -1
    assert -1 < high < -0.8
    assert cohen_kappa(np.zeros((2, 2))).value is None
    assert cohen_kappa(np.array([[9.0, 0.0], [0.0, 0.0]])).ci95 is None
    assert spearman([1, 2, 3], [1, 2, 3]).value is None
    assert spearman([1, 1, 1, 1], [1, 2, 3, 4]).value is None


@given(PAIRS)
@example([(1, 2), (2, 1), (2, 3), (3, 2)])  # without any of them ρ is the same
def test_rho_equals_scipy(pairs: list[tuple[int, int]]) -> None:
    from scipy.stats import spearmanr

    left, right = zip(*pairs, strict=True)
    rho = spearman(left, right)
    if len(set(left)) == 1 or len(set(right)) == 1:
        assert rho.value is None
        return
    assert rho.value == pytest.approx(spearmanr(left, right).statistic)
    assert rho.ci95[0] <= rho.value <= rho.ci95[1]
    assert rho.ci95[0] < rho.ci95[1]
