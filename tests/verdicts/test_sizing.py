"""What would show a drop: the paired t over cases turned around, so that its power is the one that is promised."""

import math

import numpy as np
import pytest
from scipy.special import stdtrit
from skill_evaluator.verdicts.sizing import can_show, detectable_drop, profile_doubt

from tests.support.records import a_record


def test_detectable_drop_is_found_with_80_percent_power() -> None:
    """A paired t over cases of made-up outputs, one-sided at 0.7 α."""
    times, cases = 4000, 20
    differences = np.random.default_rng(1).normal(-(detectable_drop(cases) or 0.0), 0.1, (times, cases))
    t = differences.mean(axis=1) / (differences.std(axis=1, ddof=1) / math.sqrt(cases))
    assert float((t < -stdtrit(cases - 1, 0.965)).mean()) == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(
    ("cases", "words"),
    [
        (1, "1 case cannot detect a drop unless its outputs are drawn independently (`profile: sampled`)"),
        (2, "2 cases can detect the loss of a field; about 30 cases could detect a drop of 0.05"),
        (3, "3 cases can detect a drop of 0.42 or the loss of a field; about 30 cases could detect a drop of 0.05"),
        (12, "12 cases can detect a drop of 0.084; about 30 cases could detect a drop of 0.05"),
        (100, "100 cases can detect a drop of 0.027"),
    ],
)
def test_hint_names_the_drop_that_cases_can_detect(cases: int, words: str) -> None:
    assert can_show(cases) == words


@pytest.mark.parametrize(
    ("profile", "shares", "doubt"),
    [
        ("deterministic", [0.4, 0.6, 1.0], "declare `profile: sampled` of m"),
        ("deterministic", [1.0, 1.0, 0.9], ""),
        ("sampled", [0.4, 0.6, 1.0], ""),
        ("sampled", [1.0, 1.0, 1.0], "are identical"),
        ("sampled", [1.0, 1.0], ""),
    ],
)
def test_profile_is_doubted_if_replicates_contradict_it(profile: str, shares: list[float], doubt: str) -> None:
    names = [f"c{at}" for at in range(len(shares))]
    record = a_record({name: [1.0, 0.5] for name in names}, agreement=dict(zip(names, shares, strict=True)))
    assert record.settings is not None
    record = record.model_copy(update={"settings": record.settings.model_copy(update={"profile": profile})})
    assert doubt in profile_doubt(record)
    assert bool(doubt) == bool(profile_doubt(record))
