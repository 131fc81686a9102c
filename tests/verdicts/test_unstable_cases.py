"""Cases that a policy declares unstable: shown, without a part in any verdict until their last day has passed."""

import datetime
from typing import Any

import pytest
from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.comparison import compare_records
from skill_evaluator.verdicts.decide.results import ModelVerdict
from skill_evaluator.verdicts.shipping import flaky_values

from tests.support.records import Score, a_record
from tests.verdicts.rules import some_rules

TODAY = datetime.datetime.now(datetime.UTC).date()
DAY = datetime.timedelta(days=1)
TOMORROW = TODAY + DAY  # still in force if the day changes during the tests
NAMES = [f"c{at}" for at in range(8)]
RIGHT: dict[str, list[Score]] = {name: [1.0] * 5 for name in NAMES}
TOTAL = {"total": dict.fromkeys(NAMES, (5, 5))}


def policy(*names: str, until: datetime.date = TOMORROW, **component: Any) -> dict[str, Any]:
    unstable = {name: {"reason": "the scan is torn", "until": until.isoformat()} for name in names}
    return {"components": {"s": {"unstable_cases": unstable, **component}}}


def compared(after: dict[str, list[Score]], rules: dict[str, Any], **pair: Any) -> ModelVerdict:
    old = a_record(RIGHT, run_id="old", fields=TOTAL)
    new = a_record(after, run_id="new", skill_version="1.1.0", beside="old", fields=TOTAL)
    return compare_records([Pair(baseline=old, candidate=new, **pair)], some_rules(rules)).models[0]


def test_unstable_case_is_shown_and_decides_nothing() -> None:
    broken = RIGHT | {"c3": [0.0] * 5}
    assert compared(broken, {}).verdict == "regressed"
    model = compared(broken, policy("c3"))
    reason = f"1.000 → 0.000, unstable until {TOMORROW}: the scan is torn"
    assert (model.verdict, model.n_cases, model.metrics[0].test.n, model.lost_cases) == ("unchanged", 7, 35, [])
    assert model.cases.left_out == {"c3": reason}
    assert model.reasons[-1] == f"1 case left out: c3 ({reason})"


def test_case_decides_again_after_its_last_day() -> None:
    broken = RIGHT | {"c3": [0.0] * 5}
    model = compared(broken, policy("c3", until=TODAY - DAY))
    assert (model.verdict, model.n_cases, model.cases.left_out) == ("regressed", 8, {})


def test_failed_calls_of_an_unstable_case_lower_no_completion() -> None:
    failed = RIGHT | {name: ["timeout"] * 5 for name in ("c0", "c1")}
    assert compared(failed, {}).verdict == "inconclusive"
    model = compared(failed, policy("c0", "c1"))
    assert (model.verdict, model.coverage) == ("unchanged", 1.0)


def test_unstable_case_is_left_out_of_the_change_since_the_accepted_version() -> None:
    anchor = a_record(RIGHT, run_id="accepted", skill_version="0.9.0", fields=TOTAL)
    worse = {name: [0.0] * 5 if name in ("c0", "c1", "c2") else [1.0] * 5 for name in NAMES}
    whole, without = (compared(worse, rules, anchor=anchor).since_accepted for rules in ({}, policy("c0", "c1", "c2")))
    assert whole is not None
    assert without is not None
    assert (whole.difference, without.difference) == (-0.375, 0.0)


def flaky(right: int, **changed: Any) -> Record:
    record = a_record({"a": [1.0] * 5, "b": [1.0] * 5}, fields={"total": {"a": (5, 5), "b": (right, 5)}}, **changed)
    profiles = {"a": {"total": "stable_right"}, "b": {"total": "flaky" if 0 < right < 5 else "stable_right"}}
    cases = [case.model_copy(update={"profile": profiles[case.case_id]}) for case in record.per_case]
    return record.model_copy(update={"per_case": cases})


@pytest.mark.parametrize(
    ("right", "found"),
    [
        ([3, 2, 4], [("b", "total", ["3/5", "2/5", "4/5"])]),
        ([5, 3, 2, 4], [("b", "total", ["3/5", "2/5", "4/5"])]),
        ([3, 5, 4], []),
        ([3, 2], []),
    ],
)
def test_fields_flaky_in_the_last_three_runs_are_listed(right: list[int], found: list[Any]) -> None:
    values = flaky_values([flaky(one) for one in right])
    assert [(value.case_id, value.path, value.right) for value in values] == found
