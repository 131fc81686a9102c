"""Where two records differ: cases by the size of the change, the fields of each, standings, and the two runs."""

from typing import Any

from skill_evaluator.verdicts.comparability import Pair
from skill_evaluator.verdicts.measuring import measure_all
from skill_evaluator.verdicts.reasons import named_cases, profile_of
from skill_evaluator.verdicts.results import Cases, RunSummary

from tests.support.records import Score, a_record
from tests.support.rules import some_rules


def named(
    before: dict[str, list[Score]], after: dict[str, list[Score]], tolerance: float = 0.05, **fields: Any
) -> Cases:
    old, new = a_record(before, fields=fields.get("old", {})), a_record(after, fields=fields.get("new", {}))
    (compared,) = measure_all([Pair(baseline=old, candidate=new)], "field_level_f1")
    assert compared.common is not None
    return named_cases(compared.common, compared.primary("field_level_f1"), some_rules({"tolerance": tolerance}))


def test_cases_that_moved_beyond_the_tolerance_the_largest_first() -> None:
    scores = {"a": 0.4, "b": 0.1, "c": 0.9, "d": 0.46, "e": 0.5, "f": 0.6}
    before: dict[str, list[Score]] = {name: [0.5, 0.5] for name in scores}
    after: dict[str, list[Score]] = {name: [score, score] for name, score in scores.items()}
    cases = named(before, after)
    assert [one.case_id for one in cases.broke] == ["b", "a"]
    assert [one.case_id for one in cases.fixed] == ["c", "f"]
    assert [one.case_id for one in named(before, after, tolerance=0.3).broke] == ["b"]


def test_cases_that_move_as_all_do_are_counted_and_not_named() -> None:
    """Every case moves, up or down, by about what its replicates scatter."""
    before: dict[str, list[Score]] = {f"c{at}": [0.4, 0.6, 0.5, 0.3, 0.7] for at in range(20)}
    after: dict[str, list[Score]] = {
        name: [0.5, 0.7, 0.6, 0.4, 0.8] if at % 2 else [0.3, 0.5, 0.4, 0.2, 0.6] for at, name in enumerate(before)
    }
    cases = named(before, after)
    assert (cases.broke, cases.fixed, cases.within_noise, cases.every_answer_worse) == ([], [], 20, [])


def test_a_case_that_is_worse_in_every_answer_is_told_apart_where_answers_may_share_their_chance() -> None:
    """One replicate a case: among cases that all moved as far, the one that fell is not beyond chance."""
    before: dict[str, list[Score]] = {f"c{at}": [0.5] for at in range(8)}
    after: dict[str, list[Score]] = {name: [0.3 if at < 4 else 0.7] for at, name in enumerate(before)}
    cases = named(before, after)
    assert (cases.broke, cases.within_noise) == ([], 8)
    assert cases.every_answer_worse == ["c0", "c1", "c2", "c3"]


def test_an_answer_that_was_not_scored_breaks_a_case() -> None:
    (broke,) = named({"a": [1.0, 1.0]}, {"a": ["unparseable", "unparseable"]}).broke
    assert (broke.before, broke.after) == (1.0, 0.0)


def test_the_fields_of_a_case_the_largest_change_first_and_only_those_that_moved() -> None:
    old = {"a": {"x": (5, 5)}, "b": {"x": (5, 5)}, "same": {"x": (2, 4)}, "gone": {"x": (5, 5)}}
    new = {"a": {"x": (3, 5)}, "b": {"x": (0, 5)}, "same": {"x": (3, 6)}, "come": {"x": (1, 5)}}
    (broke,) = named({"x": [1.0] * 2}, {"x": [0.0] * 2}, old=old, new=new).broke
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
