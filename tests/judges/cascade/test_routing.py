"""A cascade whose thresholds are chosen by labels keeps what it promises, over both judges together."""

import random
from operator import eq
from statistics import fmean

import pytest
from skill_evaluator.judges.cascade.routing import Key, Labels, Standing, audited, halves, route
from skill_evaluator.judges.modes.pairwise import PAIR
from skill_evaluator.library.config import JudgeCascade

POLICY = JudgeCascade(alpha=0.2, delta=0.2)
MATCHES = 240
SEEDS = 300


def right(confidence: float, worst: float) -> float:
    """How often a judge with this confidence agrees with people, who always prefer output 1."""
    return worst + (1 - worst) * confidence


def truth(threshold: float, worst: float) -> float:
    """The agreement of all verdicts from a threshold on, confidences being even from 0 to 1."""
    return fmean(right(confidence, worst) for confidence in (threshold, 1.0))


def judged(names: list[str], worst: float, draw: random.Random) -> dict[Key, Standing]:
    standings: dict[Key, Standing] = {}
    for name in names:
        confidence = draw.random()
        winner = 1 if draw.random() < right(confidence, worst) else 2
        standings[name, *PAIR] = Standing(verdict=winner, confidence=confidence, open=(), own=())
    return standings


@pytest.mark.simulation
@pytest.mark.parametrize(("cheap_worst", "strong_worst"), [(0.3, 0.6), (0.0, 0.3), (0.5, 0.5)])
def test_both_judges_keep_the_promise_at_once_as_often_as_is_said(cheap_worst: float, strong_worst: float) -> None:
    broken = settled = 0
    for seed in range(SEEDS):
        draw = random.Random(seed)
        names = [f"m{n}" for n in range(MATCHES)]
        labels: Labels = {(name, *PAIR): 1 for name in names}
        first, second = halves(labels, seed)
        cheap = route(judged(names, cheap_worst, draw), first, eq, POLICY)
        left = [key[0] for key in cheap.standings.keys() - set(cheap.settled)]
        strong = route(judged(sorted(left), strong_worst, draw), second, eq, POLICY)
        kept = [
            truth(routing.threshold, worst) >= 1 - POLICY.alpha
            for routing, worst in ((cheap, cheap_worst), (strong, strong_worst))
            if routing.threshold is not None
        ]
        broken += not all(kept)
        settled += bool(kept)
    assert settled > SEEDS / 2
    assert broken <= POLICY.delta * SEEDS + 2 * (SEEDS * POLICY.delta * (1 - POLICY.delta)) ** 0.5


def test_labels_are_split_in_two_by_the_seed_and_so_is_the_audit_about_its_share() -> None:
    labels: Labels = {(f"m{n}", *PAIR): 1 for n in range(11)}
    first, second = halves(labels, 3)
    assert not first.keys() & second.keys()
    assert {**first, **second} == labels
    assert (len(first), len(second)) == (6, 5)
    assert halves(labels, 3) == (first, second) != halves(labels, 4)
    settled = [(f"m{n}", *PAIR) for n in range(1000)]
    drawn = audited(settled, 0.1, 0)
    assert 70 <= len(drawn) <= 130
    assert audited(settled[:500], 0.1, 0) == {key for key in drawn if key in settled[:500]}
