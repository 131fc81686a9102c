"""Trust by the interval of κ, and the number of labels that would decide."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.judges.statistics.agreement import MAX_LABELS, cohen_kappa, trust_of
from skill_evaluator.judges.statistics.bounded import BAR

COUNTS = st.lists(st.integers(0, 60), min_size=4, max_size=4).map(lambda ones: np.array(ones, float).reshape(2, 2))


def table(agreed: int, disagreed: int) -> np.ndarray:
    return np.array([[agreed / 2, disagreed / 2], [disagreed / 2, agreed / 2]])


def test_trust_is_decided_by_the_whole_interval() -> None:
    for agreed, disagreed, trusted in (
        (96, 4, True),
        (80, 20, None),  # κ 0.6, as the bar
        (75, 25, None),
        (60, 40, False),
        (22, 78, False),  # worse than a coin
        (6, 0, None),  # too few, though all agree
        (2000, 0, True),
    ):
        assert trust_of(table(agreed, disagreed)).trusted is trusted, agreed
    trust = trust_of(np.array([[30.0, 0.0], [0.0, 0.0]]))
    assert (trust.trusted, trust.more_labels) == (None, None)
    assert trust_of(table(80, 20)).more_labels is None
    assert trust_of(table(90, 10)).trusted is True
    assert trust_of(table(90, 10), bar=0.9).trusted is False


@given(COUNTS)
def test_named_number_of_labels_decides_and_fewer_do_not(counts: np.ndarray) -> None:
    trust = trust_of(counts)
    if trust.more_labels is None:
        return
    assert trust.trusted is None
    n = counts.sum()
    more = trust_of(counts * ((n + trust.more_labels) / n))
    assert more.trusted is not None
    assert more.trusted == ((cohen_kappa(counts).value or 0) >= BAR)
    if trust.more_labels > 1:
        assert trust_of(counts * ((n + trust.more_labels - 1) / n)).trusted is None
    assert n + trust.more_labels <= MAX_LABELS
