"""Judges with biases that are known: each estimator's interval holds the truth as often as it promises."""

from functools import partial

import numpy as np
import pytest
from skill_evaluator.judges.statistics import trust_of

from benchmarks.simulated_judges import Judge, Reader, coverage, judged, worlds

SEEDS = 2_000
PROMISED = 0.92
ROUGH = 0.9  # of the bootstrap, and of the closed formula of ρ for scores of few levels
WORLDS = worlds()
RATES = (0.0, 0.05, 0.2, 0.5, 1.0)


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
def test_100_labels_correct_the_share_of_200_answers_for_the_errors_of_a_judge(error: float) -> None:
    """It holds it in 92 to 98 of 100; the standard error of 1,000 samples is half a point."""
    for holds in (0.5, 0.8):
        held = coverage(partial(Reader(error=error).corrected, holds), holds, seeds=1_000)
        assert 0.9 <= held <= 0.985, holds
