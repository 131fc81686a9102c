"""A cascade whose threshold is chosen by labels keeps what it promises."""

import random
from operator import eq
from statistics import fmean

import pytest
from skill_evaluator.judges.modes.pairwise import PAIR
from skill_evaluator.judges.panel.cascade import Key, Standing, audited, labelled_stage
from skill_evaluator.library.config import JudgeCascade

POLICY = JudgeCascade(alpha=0.2, delta=0.2)
MATCHES = 120
SEEDS = 300


def right(confidence: float, worst: float) -> float:
    """How often a judge with this confidence agrees with people, who always prefer output 1."""
    return worst + (1 - worst) * confidence


def judged(worst: float, draw: random.Random) -> dict[Key, Standing]:
    standings: dict[Key, Standing] = {}
    for n in range(MATCHES):
        confidence = draw.random()
        winner = 1 if draw.random() < right(confidence, worst) else 2
        standings[f"m{n}", *PAIR] = Standing(verdict=winner, confidence=confidence, open=(), own=())
    return standings


@pytest.mark.simulation
@pytest.mark.parametrize("worst", [0.3, 0.0, 0.6])
def test_the_cheap_judge_keeps_the_promise_as_often_as_is_said(worst: float) -> None:
    broken = settled = 0
    for seed in range(SEEDS):
        standings = judged(worst, random.Random(seed))
        stage = labelled_stage("cheap", standings, dict.fromkeys(standings, 1), eq, POLICY)
        if stage.threshold is not None:
            settled += 1
            broken += fmean(right(confidence, worst) for confidence in (stage.threshold, 1.0)) < 1 - POLICY.alpha
    assert settled > SEEDS / 2
    assert broken <= POLICY.delta * SEEDS + 2 * (SEEDS * POLICY.delta * (1 - POLICY.delta)) ** 0.5


def test_the_audit_draws_about_its_share_and_each_by_itself() -> None:
    settled = [(f"m{n}", *PAIR) for n in range(1000)]
    drawn = audited(settled, 0.1, 0)
    assert 70 <= len(drawn) <= 130
    assert audited(settled[:500], 0.1, 0) == {key for key in drawn if key in settled[:500]}
