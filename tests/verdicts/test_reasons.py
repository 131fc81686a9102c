"""Where two records differ: cases by the size of the change, the fields of each, standings, and the two runs."""

from typing import Any

from skill_evaluator.verdicts.comparability import measures
from skill_evaluator.verdicts.reasons import changed_cases, profile_of
from skill_evaluator.verdicts.results import CaseChange, RunSummary

from tests.support.records import Score, a_record


def changed(
    before: dict[str, list[Score]], after: dict[str, list[Score]], tolerance: float = 0.05, **fields: Any
) -> tuple[list[CaseChange], list[CaseChange]]:
    old, new = a_record(before, fields=fields.get("old", {})), a_record(after, fields=fields.get("new", {}))
    cases = list(zip(old.per_case, new.per_case, strict=True))
    primary = next(measures(cases, ["field_level_f1"]))
    return changed_cases(cases, primary, tolerance)


def test_cases_that_moved_beyond_the_tolerance_the_largest_first() -> None:
    names = "abcdef"
    before: dict[str, list[Score]] = {name: [0.5, 0.5] for name in names}
    after: dict[str, list[Score]] = dict(zip(names, ([0.4], [0.1], [0.9], [0.46], [0.5], [0.6]), strict=True))
    broke, fixed = changed(before, after)
    assert [one.case_id for one in broke] == ["b", "a"]
    assert [one.case_id for one in fixed] == ["c", "f"]
    assert [one.case_id for one in changed(before, after, tolerance=0.3)[0]] == ["b"]


def test_an_answer_that_was_not_scored_breaks_a_case() -> None:
    (broke,), _ = changed({"a": [1.0, 1.0]}, {"a": ["unparseable", 1.0]})
    assert (broke.before, broke.after) == (1.0, 0.5)


def test_the_fields_of_a_case_the_largest_change_first_and_only_those_that_moved() -> None:
    old = {"a": {"x": (5, 5)}, "b": {"x": (5, 5)}, "same": {"x": (2, 4)}, "gone": {"x": (5, 5)}}
    new = {"a": {"x": (3, 5)}, "b": {"x": (0, 5)}, "same": {"x": (3, 6)}, "come": {"x": (1, 5)}}
    (broke,), _ = changed({"x": [1.0]}, {"x": [0.0]}, old=old, new=new)
    assert list(broke.fields.items()) == [
        ("b", "5/5 → 0/5"),
        ("gone", "5/5 → –"),
        ("a", "5/5 → 3/5"),
        ("come", "– → 1/5"),
    ]


def test_how_a_field_stands_in_the_cases_that_have_it() -> None:
    record = a_record({"a": [1.0], "b": [1.0], "c": [1.0]}, fields={"total": {"a": (1, 1), "b": (0, 1)}})
    cases = [record.per_case[0].model_copy(update={"profile": {"total": "stable_right"}}), *record.per_case[1:]]
    record = record.model_copy(update={"per_case": cases})
    assert profile_of(record, "total") == {"stable_right": 1, "unscored": 1}
    assert profile_of(record, "other") == {}


def test_a_run_beside_another_shows_what_it_took() -> None:
    side = RunSummary.of(a_record({"a": [1.0, "refused"]}, failures={"refused": 1}, cost_usd=None))
    assert (side.failures, side.cost_usd, side.output_tokens, side.latency_p95_s) == ({"refused": 1}, None, 10, 0.9)
