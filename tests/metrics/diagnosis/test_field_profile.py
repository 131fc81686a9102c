"""Which values a field got and how often, and where it stands by what truth and answers say."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.comparing.comparison import compare
from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule
from skill_evaluator.metrics.fields import field_profile, field_values, per_field, total_fields

from tests.metrics.orders import answers, order_plan, orders, reordered
from tests.support.json_values import thorough

LOOSE = FieldPlan(
    leaves={
        "near": FieldRule(compare="number", tolerance=1),
        "note": FieldRule(compare="text"),
        "gist": FieldRule(compare="text", threshold=0.5),
        "left": FieldRule(compare="ignore"),
    }
)


def profile(truth: Any, *outputs: Any, unparseable: int = 0, plan: FieldPlan | None = None) -> dict[str, str]:
    plan = plan or FieldPlan()
    given = answers(*outputs, plan=plan, unparseable=unparseable)
    fields = total_fields((per_field(compare(truth, output, plan)), 1) for output in outputs)
    return dict(field_profile(given, field_values(given), fields))


def unlabelled(*outputs: Any, unparseable: int = 0) -> dict[str, str]:
    given = answers(*outputs, unparseable=unparseable)
    return dict(field_profile(given, field_values(given), None))


@pytest.mark.parametrize(
    ("truth", "outputs", "unparseable", "expected"),
    [
        (1, [1, 1], 0, "stable_right"),
        (1, [1, 1.0], 0, "stable_right"),
        (1, [2, 2], 0, "stable_wrong"),
        (1, [None, None], 0, "stable_wrong"),  # always missing
        (None, [2, 2], 0, "stable_wrong"),  # always invented
        (1, [1, 2], 0, "flaky"),
        (1, [2, 3], 0, "flaky"),  # wrong, and each time otherwise
        (1, [1, None], 0, "flaky"),
        (1, [1, 1], 1, "flaky"),  # an answer that could not be parsed agrees with nothing
        (1, [2, 2], 1, "flaky"),
        (1, [1], 1, "flaky"),
        (1, [1], 0, "unscored"),  # one answer is neither stable nor flaky
        ([1, 2], [[2, 1], [1, 2]], 0, "stable_right"),
        ([1, 2], [[1], [1]], 0, "stable_wrong"),  # right in part is not right
        ([1, 2], [[1, 2], [1]], 0, "flaky"),
    ],
)
def test_where_a_field_stands(truth: Any, outputs: list[Any], unparseable: int, expected: str) -> None:
    found = profile({"a": truth}, *({"a": value} for value in outputs), unparseable=unparseable)
    assert found == {"a[]" if isinstance(truth, list) else "a": expected}


def test_where_nothing_was_parsed_nothing_was_seen() -> None:
    plan = FieldPlan(leaves={"a": FieldRule(compare="number")})
    assert profile({"a": 1}, unparseable=2, plan=plan) == {"a": "unscored"}


def test_a_field_of_the_schema_that_is_rightly_empty_is_right() -> None:
    plan = FieldPlan(leaves={"a": FieldRule(compare="number")})
    assert profile({}, {}, {"a": None}, plan=plan) == {"a": "stable_right"}


def test_answers_that_a_tolerance_calls_right_are_stable() -> None:
    assert profile({"near": 9}, {"near": 8.5}, {"near": 9.5}, plan=LOOSE)["near"] == "stable_right"
    assert profile({"near": 9}, {"near": 11}, {"near": 12}, plan=LOOSE)["near"] == "flaky"
    assert (
        profile({"gist": "one two"}, {"gist": "two one"}, {"gist": "one three"}, plan=LOOSE)["gist"] == "stable_right"
    )


def test_free_text_without_a_threshold_is_unscored_and_what_is_ignored_is_not_there() -> None:
    found = profile({"note": "as agreed", "left": 1}, {"note": "as agreed"}, {"note": "agreed"}, plan=LOOSE)
    assert found["note"] == "unscored"
    assert "left" not in found


def test_items_that_swap_their_values_between_answers_are_flaky() -> None:
    plan = order_plan("key")
    truth = {"lines": [{"sku": "x", "qty": 1}, {"sku": "y", "qty": 2}]}
    swapped = {"lines": [{"sku": "x", "qty": 2}, {"sku": "y", "qty": 1}]}
    assert profile(truth, truth, swapped, plan=plan)["lines[].qty"] == "flaky"
    assert profile(truth, swapped, swapped, plan=plan)["lines[].qty"] == "stable_wrong"


@pytest.mark.parametrize(
    ("outputs", "unparseable", "expected"),
    [
        ([{"a": 1}, {"a": 1}], 0, {"a": "stable"}),
        ([{"a": 1}, {"a": 2}], 0, {"a": "flaky"}),
        ([{"a": 1}, {}], 0, {"a": "flaky"}),
        ([{"a": 1}, {"a": 1}], 1, {"a": "flaky"}),
        ([{"a": 1}], 0, {"a": "unscored"}),
        ([], 2, {}),
    ],
)
def test_without_truth_a_field_is_stable_or_flaky(
    outputs: list[Any], unparseable: int, expected: dict[str, str]
) -> None:
    assert unlabelled(*outputs, unparseable=unparseable) == expected


@thorough
@given(truth=orders, n=st.integers(2, 4), seed=st.integers(0, 99))
def test_the_truth_as_every_answer_is_stable_right_throughout(truth: Any, n: int, seed: int) -> None:
    plan = order_plan("best")
    outputs = [reordered(truth, plan, seed + index, below_items=True) for index in range(n)]
    assert set(profile(truth, *outputs, plan=plan).values()) <= {"stable_right", "unscored"}


def test_every_parsed_answer_gives_every_field_one_value() -> None:
    found = field_values(answers({"a": 1}, {"a": 1.0}, {"a": None}, {"b": [1, 2]}, {"b": [2, 1]}, unparseable=3))
    assert {path: sorted(counts.values()) for path, counts in found.items()} == {"a": [2, 3], "b[]": [2, 3]}
    assert found["a"][None] == 3
