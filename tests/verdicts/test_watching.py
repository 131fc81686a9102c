"""Loss that no single step shows: creep away from an anchor, and a version that is tried until it passes."""

import random
from dataclasses import replace

import pytest
from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.comparison import compare_records
from skill_evaluator.verdicts.decide.results import ModelVerdict
from skill_evaluator.verdicts.decide.rules import spending

from tests.support.records import Score, a_record
from tests.support.rules import some_rules

NAMES = [f"case-{at:02}" for at in range(30)]


def a_version(mean: float, run_id: str, seed: int, version: str = "1.0.0") -> Record:
    """A run of 30 cases × 5, each around its own level."""
    dice = random.Random(seed)
    cases: dict[str, list[Score]] = {
        name: [min(1.0, max(0.0, mean + 0.01 * (at % 7) + dice.gauss(0, 0.05))) for _ in range(5)]
        for at, name in enumerate(NAMES)
    }
    return a_record(cases, run_id=run_id, skill_version=version)


def judged(pair: Pair, **policy: object) -> ModelVerdict:
    return compare_records("s", [pair], some_rules(policy)).models[0]


def test_all_looks_together_err_no_more_than_is_accepted_and_the_first_twenty_keep_their_power() -> None:
    assert sum(map(spending, range(1, 100_000))) == pytest.approx(1.0, abs=1e-5)
    assert spending(1) > 0.7
    assert spending(20) > 30 * spending(21)


def test_creep_that_no_step_shows_is_a_regression_since_the_anchor() -> None:
    anchor = a_version(0.8, "anchor", 1)
    before, after = a_version(0.74, "before", 2, "1.4.0"), a_version(0.72, "after", 3, "1.5.0")
    step = judged(Pair(baseline=before, candidate=after))
    watched = judged(Pair(baseline=before, candidate=after, anchor=anchor, look=5))
    assert (step.verdict, watched.verdict) == ("unchanged", "regressed")
    assert watched.watch is not None
    assert (watched.watch.anchor_run_id, watched.watch.look) == ("anchor", 5)
    assert watched.watch.level == pytest.approx(0.04 * spending(5))
    assert "by all changes since 1.0.0" in watched.reasons[0]


def test_where_nothing_was_lost_the_watch_says_so_and_changes_nothing() -> None:
    anchor = a_version(0.8, "anchor", 1)
    pair = Pair(baseline=a_version(0.8, "b", 2), candidate=a_version(0.8, "c", 3), anchor=anchor, look=9)
    verdict = judged(pair)
    assert verdict.watch is not None
    assert (verdict.verdict, verdict.watch.verdict) == ("unchanged", "unchanged")


def test_the_baseline_that_is_the_anchor_is_tested_once_at_the_level_of_the_look() -> None:
    """A drop that is beyond chance at the first look is not at the fortieth."""
    anchor = a_version(0.8, "anchor", 1)
    pair = Pair(baseline=anchor, candidate=a_version(0.79, "c", 3, "1.1.0"), anchor=anchor)
    first, late = judged(pair, tolerance=0.01), judged(replace(pair, look=400), tolerance=0.01)
    assert (first.watch, late.watch) == (None, None)
    assert (first.verdict, late.verdict) == ("regressed", "inconclusive")


def test_trying_again_does_not_help_until_the_drop_is_excluded() -> None:
    anchor = a_version(0.8, "anchor", 1)
    bad, doubtful = a_version(0.72, "x", 5, "1.1.0"), a_version(0.87, "y", 6, "1.1.0")
    alone = judged(Pair(baseline=anchor, candidate=doubtful))
    again = Pair(baseline=anchor, candidate=doubtful, candidate_again=(bad,), anchor=anchor, look=2)
    tried = judged(again)
    assert alone.verdict == "improved"
    assert (tried.metrics[0].verdict, tried.verdict) == ("inconclusive", "regressed")
    assert any("run x of this version regressed" in reason for reason in tried.reasons)
    runs = [a_version(0.88, f"good-{at}", 10 + at, "1.1.0") for at in range(12)]
    cured = judged(replace(again, candidate=runs[0], candidate_again=(bad, *runs[1:]), look=13))
    assert cured.verdict in ("unchanged", "improved")


@pytest.mark.parametrize("look", [4, 12, 20])
def test_a_fifth_lost_in_every_answer_is_a_regression_at_any_of_the_first_looks(look: int) -> None:
    anchor = a_record({f"c{at}": [1.0] * 10 for at in range(8)}, run_id="anchor", skill_version="1.0.0")
    fell = a_record({f"c{at}": [0.8] * 10 for at in range(8)}, run_id="x", skill_version="1.9.0")
    assert judged(Pair(baseline=anchor, candidate=fell, anchor=anchor, look=look)).verdict == "regressed"
