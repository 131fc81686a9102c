"""Bradley-Terry strengths with and without ties, and the pull of length."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.judges.statistics.habits import pull_of_length
from skill_evaluator.judges.statistics.strengths import WinMatrix, strengths_of

RESULTS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from([0.0, 1.0])).filter(lambda one: one[0] != one[1]),
    min_size=20,
    max_size=80,
)
ROUND = [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0), (3, 0, 1.0)]  # everybody wins and loses once


@given(RESULTS)
def test_strengths_without_ties_are_those_of_choix(results: list[tuple[int, int, float]]) -> None:
    import choix

    results = [*results, *ROUND]
    strengths = strengths_of(WinMatrix.of(results, 4))
    games = [(left, right) if share else (right, left) for left, right, share in results]
    expected = choix.opt_pairwise(4, games, alpha=0.0, tol=1e-10)
    assert [item.value for item in strengths.items] == pytest.approx(expected - expected.mean(), abs=1e-4)
    assert strengths.tie is None
    assert not strengths.softened


def test_strengths_with_ties_make_the_results_most_likely() -> None:
    """The likelihood of Davidson 1970, written out and maximised by scipy."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(5)
    drawn = [(left, 2 + right, float(rng.choice([0, 0.5, 1]))) for left, right in rng.integers(0, 2, (60, 2)).tolist()]
    results = [*ROUND, *drawn]

    def unlikelihood(parameters: np.ndarray) -> float:
        strength, tie, total = np.exp(parameters[:4]), np.exp(parameters[4]), 0.0
        for left, right, share in results:
            drawn = tie * np.sqrt(strength[left] * strength[right])
            kinds = {1.0: strength[left], 0.0: strength[right], 0.5: drawn}
            total -= np.log(kinds[share] / sum(kinds.values()))
        return total

    fitted = minimize(unlikelihood, np.zeros(5), tol=1e-10).x
    strengths = strengths_of(WinMatrix.of(results, 4))
    assert [item.value for item in strengths.items] == pytest.approx(fitted[:4] - fitted[:4].mean(), abs=1e-4)
    assert strengths.tie == pytest.approx(fitted[4], abs=1e-4)


def test_who_wins_everything_has_a_finite_strength_and_only_ties_are_equal_ones() -> None:
    strengths = strengths_of(WinMatrix.of([(0, 1, 1.0)] * 5 + [(0, 2, 1.0)] * 5 + [(1, 2, 1.0), (2, 1, 1.0)], 3))
    assert strengths.softened
    best, *others = [item.value for item in strengths.items]
    assert all(best > other for other in others if other is not None)
    strengths = strengths_of(WinMatrix.of([(0, 1, 0.5)] * 8, 2))
    assert [item.value for item in strengths.items] == pytest.approx([0, 0])
    low, high = strengths.items[0].ci95 or (0, 0)
    assert high - low > 1


def test_the_win_matrix_counts_ties_on_both_sides_and_compares_only_what_met() -> None:
    matrix = WinMatrix.of([(0, 1, 1.0), (1, 0, 1.0), (1, 0, 0.5)], 2)
    assert matrix.wins.tolist() == [[0, 1], [1, 0]]
    assert matrix.ties.tolist() == [[0, 1], [1, 0]]
    with pytest.raises(ValueError, match="never met"):
        strengths_of(WinMatrix.of([(0, 1, 1.0), (2, 3, 1.0)], 4))


WINS = st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.integers(-500, 500)), min_size=3, max_size=60)


@given(WINS)
def test_swapping_the_outputs_changes_no_pull_of_length(pairs: list[tuple[float, int]]) -> None:
    wins, longer_by = zip(*pairs, strict=True)
    here = pull_of_length(wins, longer_by)
    there = pull_of_length([1 - win for win in wins], [-difference for difference in longer_by])
    assert there.value == pytest.approx(here.value, abs=1e-6)


def test_an_output_that_wins_by_length_is_pulled_and_equal_lengths_say_nothing() -> None:
    longer_by = [*range(-60, 200, 5)]
    pull = pull_of_length([float(difference > 0) for difference in longer_by], longer_by)
    assert pull.ci95 is not None
    assert pull.ci95[0] > 0
    assert pull_of_length([1.0] * 30 + [0.0] * 10, [0] * 40).value is None
    assert pull_of_length([1.0, 0.0], [1, 2]).value is None
