"""What would show a drop: the paired t over cases turned around, so that its power is the one that is promised."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit
from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.sizing import PlannedDesign, Sizing, can_show, detectable_drop, profile_doubt, sizing_of

from tests.support.records import Score, a_record


def recorded(cases: int, replicates: int, within: float = 0.1, **changed: Any) -> Record:
    rng = np.random.default_rng(0)
    scores = [list(rng.normal(mean, within, replicates).clip(0, 1)) for mean in rng.normal(0.5, 0.1, cases)]
    return a_record({f"c{at}": case for at, case in enumerate(scores)}, **changed)


def sized(record: Record, detect: float = 0.05, design: PlannedDesign = "beside") -> Sizing:
    return sizing_of(record, detect, design, 0.05)


def drop(cases: int = 20, replicates: int = 10, baseline: int = 5, within: float = 0.1, day: float = 0.0) -> float:
    return detectable_drop(cases, within * (1 / replicates + 1 / baseline), 2 * day) or 1.0


def test_detectable_drop_is_found_with_80_percent_power() -> None:
    """A paired t over cases of made-up outputs, one-sided at 0.7 α."""
    times, cases, noise = 4000, 20, math.sqrt(0.1 * (1 / 10 + 1 / 5))
    differences = np.random.default_rng(1).normal(-drop(), noise, (times, cases))
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


@given(cases=st.integers(2, 200), replicates=st.integers(1, 50), day=st.floats(0, 0.01))
def test_more_cases_or_replicates_detect_smaller_drops(cases: int, replicates: int, day: float) -> None:
    shown = drop(cases, replicates, day=day)
    assert drop(cases + 1, replicates, day=day) <= shown
    assert drop(cases, replicates + 1, day=day) <= shown


def test_chosen_number_of_cases_is_the_smallest() -> None:
    found = sized(recorded(30, 5, cost_usd=1.5))
    within = (found.between_replicates or 0) ** 2
    assert [choice.replicates for choice in found.choices] == [1, 2, 3, 5, 10, 20]
    for choice, baseline in zip(found.choices, (1, 1, 2, 3, 5, 10), strict=True):
        assert choice.cases is not None
        assert drop(choice.cases, choice.replicates, baseline, within) <= 0.05
        assert drop(choice.cases - 1, choice.replicates, baseline, within) > 0.05
        assert choice.shows == pytest.approx(drop(30, choice.replicates, baseline, within), abs=1e-5)
        assert choice.calls == choice.cases * (choice.replicates + baseline)
        assert choice.cost_usd == pytest.approx(choice.calls * 0.01)


def test_recorded_baseline_adds_the_variance_of_a_day() -> None:
    beside, apart = sized(recorded(12, 5)), sized(recorded(12, 5), design="recorded")
    assert beside.between_runs == 0
    assert apart.between_runs == pytest.approx(0.1 * 0.24, abs=0.003)  # a tenth of the mean p (1 − p)
    assert (apart.shows or 0) > 2.5 * math.sqrt(2) * (apart.between_runs or 1)
    assert [choice.calls for choice in apart.choices] == [
        choice.cases and choice.cases * choice.replicates for choice in apart.choices
    ]


def test_drop_smaller_than_a_day_needs_an_interleaved_baseline() -> None:
    wide: dict[str, list[Score]] = {f"c{at}": [0.0, 1.0, 0.0, 1.0] for at in range(10)}
    apart, beside = sized(a_record(wide), design="recorded"), sized(a_record(wide))
    assert {choice.cases for choice in apart.choices} == {None}
    assert apart.replicates_needed is None
    assert None not in {choice.cases for choice in beside.choices}


def test_more_equal_outputs_detect_smaller_drops() -> None:
    def shows(cases: int, replicates: int) -> float:
        perfect: dict[str, list[Score]] = {f"c{at}": [1.0] * replicates for at in range(cases)}
        return sized(a_record(perfect)).shows or 0.0

    assert shows(3, 2) > shows(3, 10) > shows(10, 10) > shows(40, 10) > 0


@pytest.mark.parametrize(
    ("cases", "says"), [({"a": [1.0, 0.5]}, "fewer than two cases"), ({"a": [1.0], "b": [0.5]}, "one replicate a case")]
)
def test_one_case_or_one_replicate_gives_no_size(cases: dict[str, list[Score]], says: str) -> None:
    found = sized(a_record(cases))
    assert says in found.remarks[0]
    assert (found.shows, found.choices) == (None, [])


def test_unknown_cost_gives_no_estimate() -> None:
    scores: dict[str, list[Score]] = {"a": [0.4, 0.5], "b": [0.8, 0.9]}
    found = sized(a_record(scores, cost_usd=None))
    assert found.cost_per_call_usd is None
    assert {choice.cost_usd for choice in found.choices} == {None}


def test_cost_per_call_excludes_failed_calls() -> None:
    scores: dict[str, list[Score]] = {"a": [0.4, "unparseable", "provider_error"], "b": [0.8, 0.9, 0.7]}
    assert sized(a_record(scores, cost_usd=1.0)).cost_per_call_usd == pytest.approx(0.2)


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
