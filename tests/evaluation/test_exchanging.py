"""Versions exchanged within cases: p as by hand, one family, whatever the figures have in common."""

import numpy as np
import pytest
from skill_evaluator.evaluation.mutation import adjusted_p_values


def scores(*lost: int, cases: int = 14, figures: int = 4) -> np.ndarray:
    """Five versions in which all is right, but that the last of them loses the first figure in some cases."""
    table = np.ones((figures, cases, 5))
    table[0, list(lost), -1] = 0.0
    return table


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_p_of_a_mutant_is_the_share_of_exchanges(count: int) -> None:
    p_values = adjusted_p_values(scores(*range(count)))
    assert p_values == [pytest.approx(0.2**count), 1.0, 1.0, 1.0]


def test_noise_of_the_controls_raises_p() -> None:
    calm, noisy = scores(1, 2, 3), scores(1, 2, 3)
    noisy[0, [4, 5, 6], [0, 1, 2]] = 0.0
    assert adjusted_p_values(calm)[0] < 0.01 < adjusted_p_values(noisy)[0]


def test_exchangeable_versions_seldom_differ() -> None:
    dice = np.random.default_rng(5)
    least = [min(adjusted_p_values(dice.normal(size=(6, 8, 4)))) for _ in range(200)]
    assert sum(p <= 0.05 for p in least) <= 22  # 10 are expected; more than 22 has a probability below 0.1 %
