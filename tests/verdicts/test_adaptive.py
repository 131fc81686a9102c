"""When a verdict is settled early: what is plain is, what could still turn is not, and the error is shared out."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.adaptive import Gauge, Look, looks_of, settled, settled_between
from skill_evaluator.verdicts.comparability import Pair
from skill_evaluator.verdicts.effects import Effect, replicate_effect

from tests.support.records import Score, a_record
from tests.support.rules import some_rules

LOOK = Look(after=5, share=0.2)
PLAIN = Effect(difference=0.0, ci95=(-0.02, 0.02), p=0.8, n=120, error=0.01, degrees=60, unseen=0.02)


@pytest.mark.parametrize(
    ("replicates", "expected"),
    [(1, ()), (3, ()), (4, (2,)), (5, (2, 3)), (10, tuple(range(2, 9))), (25, (3, 6, 9, 12, 15, 18, 21))],
)
def test_looks_are_at_most_ten_and_none_before_two_replicates(replicates: int, expected: tuple[int, ...]) -> None:
    assert tuple(look.after for look in looks_of(replicates)) == expected


def test_the_looks_of_a_run_never_spend_more_than_there_is() -> None:
    for replicates in range(2, 60):
        shares = [look.share for look in looks_of(replicates)]
        assert sum(shares) < 1, replicates
        assert all(share > 0 for share in shares), replicates


def _says(effect: Effect | None, ordinary: str, share: float = 0.2, models: int = 1) -> str | None:
    return settled([Gauge(effect=effect, tolerance=0.05)], ordinary, share, 0.05, models)  # type: ignore[arg-type]


def test_nothing_measured_settles_nothing() -> None:
    assert _says(None, "inconclusive") is None
    assert settled([], "inconclusive", 0.2, 0.05, 1) is None


def test_a_drop_that_is_excluded_widely_is_settled_as_unchanged() -> None:
    assert _says(PLAIN, "unchanged") == "unchanged"


def test_where_no_drop_is_tolerated_no_look_settles_that_none_will_be_seen() -> None:
    gauges = [Gauge(effect=PLAIN, tolerance=0.0)]
    assert settled(gauges, "unchanged", 0.2, 0.05, 1) is None
    better = replace(PLAIN, difference=0.3, ci95=(0.2, 0.4), p=0.0005)
    assert settled([Gauge(effect=better, tolerance=0.0)], "improved", 0.2, 0.05, 1) == "improved"
    assert settled([*gauges, Gauge(effect=better, tolerance=0.05)], "improved", 0.2, 0.05, 1) is None


def test_an_interval_that_excludes_it_narrowly_settles_nothing() -> None:
    assert _says(replace(PLAIN, ci95=(-0.045, 0.005)), "unchanged") is None


def test_a_failure_that_may_have_gone_unseen_settles_nothing() -> None:
    assert _says(replace(PLAIN, unseen=0.06), "inconclusive") is None


def test_a_change_must_be_beyond_the_look_s_part_of_the_error() -> None:
    worse = replace(PLAIN, difference=-0.3, ci95=(-0.4, -0.2), p=0.0009)
    assert _says(worse, "regressed") == "regressed"  # 0.05 × 0.1 × 0.2 is 0.001
    assert _says(replace(worse, p=0.0011), "regressed") is None
    assert _says(worse, "regressed", models=2) is None


def test_where_no_smaller_p_can_be_drawn_the_distance_counts() -> None:
    worse = replace(PLAIN, difference=-0.3, ci95=(-0.4, -0.2), p=1 / 20_001)
    assert _says(worse, "regressed", models=1000) == "regressed"
    assert _says(replace(worse, error=0.1), "regressed", models=1000) is None


def test_improvement_counts_only_where_a_drop_is_excluded() -> None:
    better = replace(PLAIN, difference=0.3, ci95=(0.2, 0.4), p=0.0005)
    assert _says(better, "improved") == "improved"
    assert _says(replace(better, ci95=(-0.06, 0.6)), "improved") is None


@pytest.mark.parametrize("ordinary", ["regressed", "improved", "inconclusive", "incomparable"])
def test_what_an_ordinary_comparison_would_not_say_is_not_settled(ordinary: str) -> None:
    assert _says(PLAIN, ordinary) is None


def test_one_critical_measure_in_doubt_keeps_the_others_from_settling() -> None:
    doubtful = replace(PLAIN, ci95=(-0.2, 0.2))
    gauges = [Gauge(effect=one, tolerance=0.05) for one in (PLAIN, doubtful)]
    assert settled(gauges, "unchanged", 0.2, 0.05, 1) is None


def _record(score: Score, replicates: int, other: float = 1.0) -> Record:
    cases = [f"case-{at}" for at in range(12)]
    return a_record(
        {case: [score] * replicates for case in cases},
        other={"jaccard": {case: [other] * replicates for case in cases}},
    )


@pytest.mark.parametrize(
    ("score", "replicates", "expected"),
    [(0.0, 2, "regressed"), (1.0, 2, None), (1.0, 5, "unchanged"), ("provider_error", 5, None)],
)
def test_records_so_far(score: Score, replicates: int, expected: str | None) -> None:
    pair = Pair(baseline=_record(1.0, 10), candidate=_record(score, replicates))
    assert settled_between(pair, some_rules({"gate": "fixtures"}), LOOK, models=3) == expected


@pytest.mark.parametrize(("score", "expected"), [(0.0, "regressed"), (1.0, None), (0.5, "regressed")])
def test_with_both_questions_as_the_gate_cases_settle_it_too(score: float, expected: str | None) -> None:
    """That nothing changed is not settled: 12 cases that stay right leave 22 % of others unseen."""
    pair = Pair(baseline=_record(1.0, 10), candidate=_record(score, 5))
    assert settled_between(pair, some_rules({"gate": "robust"}), LOOK, models=1) == expected
    assert settled_between(pair, some_rules({"gate": "robust"}), LOOK, models=3) is None  # 12 cases show no smaller p


def test_a_supporting_metric_that_regressed_keeps_it_from_being_unchanged() -> None:
    pair = Pair(baseline=_record(1.0, 10), candidate=_record(1.0, 5, other=0.0))
    assert settled_between(pair, some_rules({"gate": "fixtures"}), LOOK, models=1) is None
    advisory = some_rules({"gate": "fixtures", "metrics": {"jaccard": {"tier": "advisory"}}})
    assert settled_between(pair, advisory, LOOK, models=1) == "unchanged"


def test_without_a_baseline_or_of_another_schema_nothing_is_settled() -> None:
    candidate = _record(1.0, 5)
    assert (
        settled_between(Pair(baseline=None, candidate=candidate), some_rules({"gate": "fixtures"}), LOOK, models=1)
        is None
    )
    other = candidate.model_copy(update={"digests": {"schema": "another"}})
    assert (
        settled_between(Pair(baseline=other, candidate=candidate), some_rules({"gate": "fixtures"}), LOOK, models=1)
        is None
    )


@pytest.mark.simulation
def test_by_simulation_nothing_false_is_settled_often() -> None:
    """400 runs of 12 cases × 10 replicates, right or wrong: where nothing changed, and at the tolerated drop."""
    rng = np.random.default_rng(7)
    said: dict[float, Counter[str]] = {0.0: Counter(), 0.05: Counter()}
    for drop, counted in said.items():
        for _ in range(400):
            before = (rng.random((12, 10)) < 0.9).astype(float)
            after = (rng.random((12, 10)) < 0.9 - drop).astype(float)
            for look in looks_of(10):
                effect = replicate_effect(before.tolist(), after[:, : look.after].tolist())
                found = [_says(effect, one, look.share) for one in ("regressed", "improved", "unchanged")]
                settled_as = next((one for one in found if one), None)
                if settled_as:
                    counted[settled_as] += 1
                    break
    assert said[0.0]["regressed"] + said[0.0]["improved"] <= 5  # 2 expected at most
    assert said[0.05]["unchanged"] + said[0.05]["improved"] <= 20  # 10 expected at most
