"""When a verdict is settled early: what is plain is, what could still turn is not, and the error is shared out.

And what a run that was looked at is corrected to: the mean of the answers that no look saw.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from skill_evaluator.evaluation.adaptive import Gauge, Look, corrected_means, looks_of, settled, settled_between
from skill_evaluator.library.config import VerdictName
from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.effects import Effect

from tests.support.records import Score, a_record
from tests.support.rules import some_rules

LOOK = Look(after=5, share=0.2)
PLAIN = Effect(difference=0.0, error=0.01, degrees=60, p=0.4, lowest=-0.02, n=120)


@pytest.mark.parametrize(
    ("replicates", "expected"),
    [(1, ()), (4, ()), (5, (2,)), (6, (2, 3)), (10, tuple(range(2, 8))), (25, (3, 6, 9, 12, 15, 18, 21))],
)
def test_looks_are_at_most_ten_and_none_before_two_replicates(replicates: int, expected: tuple[int, ...]) -> None:
    assert tuple(look.after for look in looks_of(replicates)) == expected


def test_the_looks_of_a_run_never_spend_more_than_there_is() -> None:
    for replicates in range(2, 60):
        shares = [look.share for look in looks_of(replicates)]
        assert sum(shares) < 1, replicates
        assert all(share > 0 for share in shares), replicates


def _plain(**changed: float) -> Effect:
    return replace(PLAIN, **changed)


WORSE, BETTER = _plain(difference=-0.3, error=0.08), _plain(difference=0.3, error=0.08)


@pytest.mark.parametrize(
    ("says", "effects", "ordinary", "changed", "expected"),
    [
        ("nothing was measured", [None], "inconclusive", {}, None),
        ("nothing is critical", [], "inconclusive", {}, None),
        ("a drop is excluded widely", [PLAIN], "unchanged", {}, "unchanged"),
        ("no drop is tolerated, and none was seen", [PLAIN], "unchanged", {"tolerance": 0.0}, None),
        ("no drop is tolerated, and it rose", [BETTER], "improved", {"tolerance": 0.0}, "improved"),
        # t is 2.66 where one look has a fifth of 5 %
        ("a drop is just excluded", [_plain(error=0.018)], "unchanged", {}, "unchanged"),
        ("a drop is not quite excluded", [_plain(error=0.02)], "unchanged", {}, None),
        ("a drop is just excluded, of a smaller share", [_plain(error=0.018)], "unchanged", {"share": 0.05}, None),
        # t is 3.53, so p is 0.0008; 0.05 × 0.1 × 0.2 is 0.001
        ("worse beyond the look's part", [replace(WORSE, error=0.085)], "regressed", {}, "regressed"),
        ("worse, not quite so", [replace(WORSE, error=0.088)], "regressed", {}, None),
        ("worse, of one of two models", [replace(WORSE, error=0.085)], "regressed", {"models": 2}, None),
        ("worse, of few degrees of freedom", [replace(WORSE, degrees=5)], "regressed", {}, None),
        ("better, and a drop is excluded", [BETTER], "improved", {}, "improved"),
        ("better, and a drop is not excluded", [replace(BETTER, error=0.14)], "improved", {}, None),
        ("one critical measure is in doubt", [PLAIN, _plain(error=0.1)], "unchanged", {}, None),
        ("the ordinary verdict is another", [PLAIN], "improved", {}, None),
        ("the ordinary verdict is open", [PLAIN], "inconclusive", {}, None),
        ("the ordinary verdict is none", [PLAIN], "incomparable", {}, None),
    ],
)
def test_what_a_look_settles(
    says: str, effects: list[Effect | None], ordinary: VerdictName, changed: dict[str, float], expected: str | None
) -> None:
    with_policy = {"share": 0.2, "models": 1, "tolerance": 0.05, **changed}
    gauges = [Gauge(effect=effect, tolerance=with_policy["tolerance"]) for effect in effects]
    assert settled(gauges, ordinary, with_policy["share"], 0.05, int(with_policy["models"])) == expected, says


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
    assert settled_between(pair, some_rules({"gate": "these"}), LOOK, models=3) == expected


@pytest.mark.parametrize(("score", "expected"), [(0.0, "regressed"), (1.0, None), (0.5, "regressed")])
def test_with_both_questions_as_the_gate_cases_settle_it_too(score: float, expected: str | None) -> None:
    """That nothing changed is not settled: 12 cases that stay right leave 22 % of others unseen."""
    pair = Pair(baseline=_record(1.0, 10), candidate=_record(score, 5))
    assert settled_between(pair, some_rules({"gate": "both"}), LOOK, models=1) == expected


def test_a_supporting_metric_that_regressed_keeps_it_from_being_unchanged() -> None:
    pair = Pair(baseline=_record(1.0, 10), candidate=_record(1.0, 5, other=0.0))
    assert settled_between(pair, some_rules({"gate": "these"}), LOOK, models=1) is None
    advisory = some_rules({"gate": "these", "metrics": {"jaccard": {"tier": "advisory"}}})
    assert settled_between(pair, advisory, LOOK, models=1) == "unchanged"


def test_without_a_baseline_or_of_another_schema_nothing_is_settled() -> None:
    candidate = _record(1.0, 5)
    assert (
        settled_between(Pair(baseline=None, candidate=candidate), some_rules({"gate": "these"}), LOOK, models=1) is None
    )
    other = candidate.model_copy(update={"digests": {"schema": "another"}})
    assert (
        settled_between(Pair(baseline=other, candidate=candidate), some_rules({"gate": "these"}), LOOK, models=1)
        is None
    )


@pytest.mark.simulation
def test_by_simulation_nothing_false_is_settled_often() -> None:
    """200 runs of 12 cases × 10 replicates, right or wrong: where nothing changed, and at the tolerated drop."""
    rng = np.random.default_rng(7)
    rules = some_rules({"gate": "these"})
    said: dict[float, Counter[str | None]] = {0.0: Counter(), 0.05: Counter()}
    for drop, counted in said.items():
        for _ in range(200):
            baseline = _drawn(rng.random((12, 10)) < 0.9)
            after = rng.random((12, 10)) < 0.9 - drop
            pairs = ((look, Pair(baseline=baseline, candidate=_drawn(after[:, : look.after]))) for look in looks_of(10))
            counted[next(filter(None, (settled_between(pair, rules, look, 1) for look, pair in pairs)), None)] += 1
    assert said[0.0]["regressed"] + said[0.0]["improved"] <= 4  # 1 expected at most
    assert said[0.05]["unchanged"] + said[0.05]["improved"] <= 11  # 5 expected at most


def _drawn(right: NDArray[np.bool_]) -> Record:
    """Return a record of a run in which its own baseline is asked, so that no day stands between them."""
    cases = {f"case-{at}": row for at, row in enumerate(right.astype(float).tolist())}
    return a_record(cases, beside="20260101T000000Z-000000-m")


def _corrected(*cases: Sequence[Score], seen: int) -> tuple[float, float, float]:
    means = corrected_means(a_record({f"case-{at}": list(scores) for at, scores in enumerate(cases)}), seen)
    return means["field_level_f1"].strict_mean, *means["field_level_f1"].ci95


def test_a_corrected_mean_is_that_of_what_no_look_saw() -> None:
    mean, _, _ = _corrected([1.0, 1.0, 0.5, "unparseable"], [0.0, 0.0, "provider_error", 1.0], seen=2)
    assert mean == (0.25 + 1.0) / 2


def test_a_metric_that_no_unseen_answer_was_measured_by_has_none() -> None:
    record = a_record({"a": [1.0, "provider_error"]}, other={"jaccard": {"a": [1.0, "provider_error"]}})
    assert corrected_means(record, 1) == {}
    assert corrected_means(record, 0).keys() == {"field_level_f1", "jaccard"}


@pytest.mark.parametrize("stopped", [True, False])
def test_over_all_runs_that_are_stopped_it_is_the_truth(stopped: bool) -> None:
    """Every run of one case, right with probability 0.7, that is stopped where its first two answers are right."""
    plain = corrected = weight = 0.0
    for scores in product([0.0, 1.0], repeat=4):
        if (sum(scores[:2]) == 2) is stopped:
            chance = float(np.prod([0.7 if score else 0.3 for score in scores]))
            weight += chance
            corrected += chance * _corrected(scores, seen=2)[0]
            plain += chance * float(np.mean(scores))
    assert corrected / weight == pytest.approx(0.7)
    assert abs(plain / weight - 0.7) > 0.1


def test_where_nothing_varied_the_interval_allows_for_what_no_answer_showed() -> None:
    mean, low, high = _corrected(*[[1.0] * 4] * 12, seen=2)
    assert (mean, low, high) == (1.0, round(0.05 ** (1 / 24), 6), 1.0)


def test_the_noise_within_cases_makes_the_interval() -> None:
    mean, low, high = _corrected(*[[1.0, 1.0, 0.0, 1.0]] * 12, seen=2)
    half = 2.178813 * (0.5 / 24) ** 0.5  # t of 12 degrees of freedom
    assert (mean, low, high) == (0.5, pytest.approx(0.5 - half, abs=1e-5), pytest.approx(0.5 + half, abs=1e-5))


def test_a_single_unseen_answer_of_each_case_tells_no_noise() -> None:
    assert _corrected([1.0, 0.5], [1.0, 0.7], seen=1) == (0.6, 0.0, 1.0)
