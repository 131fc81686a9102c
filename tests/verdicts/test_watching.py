"""Loss that no single step shows: creep from the accepted version, and a version that is tried until it passes."""

import random
from dataclasses import replace

from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.comparison import compare_records
from skill_evaluator.verdicts.decide.results import ModelVerdict

from tests.support.records import Score, a_record
from tests.verdicts.rules import some_rules

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
    return compare_records([pair], some_rules(policy)).models[0]


def test_small_drops_that_add_up_are_a_regression() -> None:
    accepted = a_version(0.8, "accepted", 1)
    before, after = a_version(0.74, "before", 2, "1.4.0"), a_version(0.72, "after", 3, "1.5.0")
    step = judged(Pair(baseline=before, candidate=after))
    since = judged(Pair(baseline=before, candidate=after, anchor=accepted))
    assert (step.verdict, since.verdict) == ("unchanged", "regressed")
    assert since.since_accepted is not None
    assert (since.since_accepted.run_id, since.since_accepted.verdict) == ("accepted", "regressed")
    assert "by all changes since 1.0.0" in since.reasons[0]


def test_no_loss_since_the_accepted_version_changes_no_verdict() -> None:
    accepted = a_version(0.8, "accepted", 1)
    verdict = judged(Pair(baseline=a_version(0.8, "b", 2), candidate=a_version(0.8, "c", 3), anchor=accepted))
    assert verdict.since_accepted is not None
    assert (verdict.verdict, verdict.since_accepted.verdict) == ("unchanged", "unchanged")


def test_accepted_baseline_is_tested_once_as_any_baseline() -> None:
    accepted = a_version(0.8, "accepted", 1)
    pair = Pair(baseline=accepted, candidate=a_version(0.79, "c", 3, "1.1.0"), anchor=accepted)
    verdict = judged(pair, tolerance=0.01)
    assert (verdict.verdict, verdict.since_accepted) == ("regressed", None)


def test_regression_holds_until_further_runs_exclude_the_drop() -> None:
    anchor = a_version(0.8, "anchor", 1)
    bad = a_version(0.72, "x", 5, "1.1.0")
    uneven: dict[str, list[Score]] = {name: [1.0 if at % 2 else 0.7] * 5 for at, name in enumerate(NAMES)}
    assert bad.settings is not None
    settings = bad.settings.model_copy(update={"profile": "deterministic"})
    doubtful = a_record(uneven, run_id="y", skill_version="1.1.0", settings=settings)
    again = Pair(baseline=anchor, candidate=doubtful, candidate_again=(bad,), anchor=anchor)
    tried = judged(again)
    assert (tried.metrics[0].verdict, tried.verdict) == ("inconclusive", "regressed")
    assert any("run x of this version regressed" in reason for reason in tried.reasons)
    runs = [a_version(0.88, f"good-{at}", 10 + at, "1.1.0") for at in range(12)]
    cured = judged(replace(again, candidate=runs[0], candidate_again=(bad, *runs[1:])))
    assert cured.verdict in ("unchanged", "improved")
