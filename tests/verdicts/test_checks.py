"""Checks: what an uncalibrated judge may decide, the checks that two versions share, and cases that turn."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from skill_evaluator.records.record import CaseAccuracy, CheckRecord, FieldCount, Record
from skill_evaluator.verdicts.decide.comparability import Pair, check_changes, with_same_checks
from skill_evaluator.verdicts.decide.comparison import compare_records
from skill_evaluator.verdicts.decide.results import ModelVerdict

from tests.support.records import a_record
from tests.verdicts.rules import some_rules

Checks = Mapping[str, tuple[Sequence[float], Mapping[str, Any]]]  # by id, the scores of each case and other keys
CASES = [f"c{at:02d}" for at in range(12)]
MEAN = CaseAccuracy(mean=1.0, strict_mean=1.0, n=4)
UNCALIBRATED = "judged by j, not calibrated: only a drop of more than 0.25 counts"


def judged_by(digest: str = "same", labels: int = 0) -> dict[str, Any]:
    return {"model_id": "j", "digests": {"prompt": digest}, "calls": 1, "cost_usd": 0.0, "labels": labels}


def checked(run_id: str, checks: Checks, **changed: Any) -> Record:
    """Return a record of twelve equal cases whose primary metric is the share of passed checks."""
    record = a_record({name: [1.0] * 4 for name in CASES}, run_id=run_id, **{"judged": judged_by(), **changed})
    kept = {
        name: CheckRecord.model_validate({"digest": name, "scores": list(scores), "judged": True, **more})
        for name, (scores, more) in checks.items()
    }
    share = [sum(scores) / len(checks) for scores in zip(*(check.scores for check in kept.values()), strict=True)]
    cases = [
        case.model_copy(
            update={"checks": kept, "replicates": {"checks": share}, "accuracy": {"checks": MEAN, "other": MEAN}}
        )
        for case in record.per_case
    ]
    return record.model_copy(
        update={
            "per_case": cases,
            "primary_metric": "checks",
            "accuracy": {"checks": record.accuracy["field_level_f1"]},
        }
    )


def compared(before: Record, after: Record, **judge: Any) -> ModelVerdict:
    rules = some_rules({"judge": judge}, primary_metric="checks")
    return compare_records([Pair(baseline=before, candidate=after, side_by_side=True)], rules).models[0]


ALWAYS, MOSTLY, SELDOM = [1.0] * 4, [1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("before", "after", "verdict", "calibrated"),
    [
        (ALWAYS, SELDOM, "regressed", "regressed"),
        (ALWAYS, MOSTLY, "inconclusive", "regressed"),
        (SELDOM, ALWAYS, "inconclusive", "improved"),
        (ALWAYS, ALWAYS, "unchanged", "unchanged"),
    ],
)
def test_uncalibrated_judge_decides_only_harm(
    before: list[float], after: list[float], verdict: str, calibrated: str
) -> None:
    old, new = checked("old", {"polite": (before, {})}), checked("new", {"polite": (after, {})})
    found = compared(old, new)
    assert (found.verdict, found.unproved_judge, found.reasons[0]) == (verdict, "j", UNCALIBRATED)
    is_open = verdict == "inconclusive"
    assert ("judge calibrate --labels labels.jsonl --judge j" in (found.remedy or "")) is is_open
    assert not any("is not ruled out" in reason for reason in found.reasons), "labels decide, and not more cases"
    for proved in (compared(old, new, trusted=["j"]), compared(old, new.model_copy(update={"judged": None}))):
        assert (proved.verdict, proved.unproved_judge) == (calibrated, None)


def test_trusted_judge_needs_more_cases_and_no_labels() -> None:
    old, new = (
        record.model_copy(update={"per_case": record.per_case[:2]})
        for record in (checked("old", {"polite": (ALWAYS, {})}), checked("new", {"polite": (MOSTLY, {})}))
    )
    proved, unproved = compared(old, new, trusted=["j"]), compared(old, new)
    assert (proved.verdict, unproved.verdict) == ("inconclusive", "inconclusive")
    is_open = [any("is not ruled out" in reason for reason in found.reasons) for found in (proved, unproved)]
    assert is_open == [True, False]


def test_judge_with_enough_labels_counts_as_calibrated() -> None:
    old, new = (checked(name, {"polite": (scores, {})}) for name, scores in (("old", SELDOM), ("new", ALWAYS)))
    labelled = a_record({}, judged=judged_by(labels=1_000)).judged
    assert compared(old, new.model_copy(update={"judged": labelled})).verdict == "improved"


def test_no_change_counts_between_two_judges() -> None:
    old = checked("old", {"polite": (ALWAYS, {})}, judged=judged_by("another"))
    found = compared(old, checked("new", {"polite": (SELDOM, {})}))
    reason = "judged by j, not calibrated: the baseline's judge differs, so no change counts"
    assert (found.verdict, found.reasons[0]) == ("inconclusive", reason)


def test_uncalibrated_judge_has_no_weight_beside_other_checks() -> None:
    plain = {"judged": False}
    old = checked("old", {"polite": (ALWAYS, {}), "short": (ALWAYS, plain)})
    found = compared(old, checked("new", {"polite": (SELDOM, {}), "short": (ALWAYS, plain)}))
    assert found.metrics[0].candidate == 1.0
    worse = compared(old, checked("new", {"polite": (ALWAYS, {}), "short": (SELDOM, plain)}))
    assert (worse.verdict, worse.unproved_judge) == ("regressed", None)


def test_only_shared_checks_are_compared() -> None:
    old = checked("old", {"kept": (ALWAYS, {}), "gone": (ALWAYS, {}), "edited": (ALWAYS, {"digest": "before"})})
    new = checked("new", {"kept": (MOSTLY, {"weight": 2.0}), "added": (SELDOM, {}), "edited": (SELDOM, {})})
    cut = with_same_checks(Pair(baseline=old, candidate=new))
    for run, scores in ((cut.baseline, ALWAYS), (cut.candidate, MOSTLY)):
        assert run is not None
        assert set(run.per_case[0].checks) == {"kept"}
        assert (run.per_case[0].checks["kept"].weight, run.per_case[0].replicates["checks"]) == (2.0, scores)
    (words,) = check_changes(old, new)
    changes = "checks.added (new) in 12 cases, checks.edited (changed) in 12 cases, checks.gone (gone) in 12 cases"
    assert changes in words


def test_versions_without_a_shared_check_have_no_checks_metric() -> None:
    old, new = checked("old", {"gone": (ALWAYS, {})}), checked("new", {"added": (ALWAYS, {})})
    cut = with_same_checks(Pair(baseline=old, candidate=new)).candidate.per_case[0]
    assert (cut.checks, cut.replicates, cut.accuracy) == ({}, {}, {"other": MEAN})
    both = checked("new", {"gone": (ALWAYS, {}), "added": (ALWAYS, {})})
    alike = with_same_checks(Pair(baseline=old, candidate=both)).candidate.per_case[0]
    assert alike.accuracy == {"checks": MEAN, "other": MEAN}


@pytest.mark.parametrize(
    ("before", "after", "turned", "unreliable"),
    [
        (ALWAYS, [0.0] * 4, ("passes always", "fails always"), False),
        ([0.0] * 4, ALWAYS, ("fails always", "passes always"), False),
        (ALWAYS, ALWAYS, None, False),
        (MOSTLY, ALWAYS, ("flaky (3 of 4)", "passes always"), True),
        (MOSTLY, SELDOM, None, True),
    ],
)
def test_cases_that_turn_and_flaky_baselines_are_named(
    before: list[float], after: list[float], turned: tuple[str, str] | None, *, unreliable: bool
) -> None:
    plain = {"judged": False}
    old, new = checked("old", {"short": (before, plain)}), checked("new", {"short": (after, plain)})
    cases = compared(old, new).cases
    assert {(turn.before, turn.after) for turn in cases.turned} == ({turned} if turned else set())
    assert len(cases.turned) == (len(CASES) if turned else 0)
    assert bool(cases.unreliable) is unreliable


@pytest.mark.parametrize(("lost", "judge"), [("short", None), ("polite", "j")])
def test_verdict_names_the_judge_only_if_it_depends_on_it(lost: str, judge: str | None) -> None:
    checks = {"polite": (ALWAYS, {}), "short": (ALWAYS, {"judged": False})}
    paths = {f"checks.{name}": FieldCount(right=4, n=4) for name in checks}
    old, new = (
        record.model_copy(update={"per_case": [case.model_copy(update={"fields": paths}) for case in record.per_case]})
        for record in (checked("old", checks), checked("new", {**checks, lost: ([0.0] * 4, checks[lost][1])}))
    )
    found = compared(old, new)
    assert found.lost_fields == [f"checks.{lost}"]
    assert (found.verdict, found.unproved_judge) == ("regressed", judge)
