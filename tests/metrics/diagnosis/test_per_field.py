"""What became of each field, counted by hand: its leaves, its categories (macro F1), and where it is filled."""

from typing import Any

import pytest
from hypothesis import example, given
from skill_evaluator.comparing.comparators import equal
from skill_evaluator.comparing.comparison import compare
from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule
from skill_evaluator.metrics.diagnosis.per_field import (
    FieldCounts,
    FieldScores,
    filled_fields,
    macro_f1,
    per_field,
    sum_counts,
    total_fields,
)

from tests.metrics.orders import order_plan
from tests.support.json_values import json_values, quick

PLAN = order_plan("key")


def scores(truth: Any, output: Any) -> FieldScores:
    return per_field(compare(truth, output, PLAN))


def test_every_leaf_is_right_wrong_missing_or_extra() -> None:
    truth = {"id": "A", "total": 9, "tags": ["a", "b"], "lines": [{"sku": "x", "qty": 1}, {"sku": "y", "qty": 2}]}
    output = {"id": "B", "paid": True, "tags": ["b", "c"], "lines": [{"sku": "x", "qty": 1}, {"sku": "z", "qty": 2}]}
    assert scores(truth, output).counts == {
        "id": FieldCounts(wrong=1),
        "total": FieldCounts(missing=1),
        "tags[]": FieldCounts(right=1, missing=1, extra=1),
        "lines[].sku": FieldCounts(right=1, missing=1, extra=1),
        "lines[].qty": FieldCounts(right=1, missing=1, extra=1),
        "paid": FieldCounts(extra=1),
    }
    assert scores(truth, output).counts["tags[]"].n == 3


def test_a_field_that_neither_side_has_is_not_counted() -> None:
    assert scores({"id": None}, {}) == FieldScores()


@pytest.mark.parametrize(
    ("truth", "output", "tokens", "sequence"),
    [
        ("as agreed", "as agreed", 1, 1),
        ("as agreed", "agreed as", 1, 1 / 2),
        ("as agreed", "as we agreed", 4 / 5, 4 / 5),
        ("as agreed", None, 0, 0),
        (None, "as agreed", 0, 0),
    ],
)
def test_free_text_adds_its_overlap(truth: Any, output: Any, tokens: float, sequence: float) -> None:
    (overlap,) = scores({"note": truth}, {"note": output}).texts
    assert overlap == ("note", pytest.approx(tokens), pytest.approx(sequence))


@pytest.mark.parametrize(
    ("truth", "output", "pair"),
    [
        ("sale", "sale", ("kind", "sale", "sale")),
        ("sale", "refund", ("kind", "sale", "refund")),
        ("sale", None, ("kind", "sale", "null")),
        (None, "refund", ("kind", "null", "refund")),
        ("sale", 5, ("kind", "sale", "5")),
        ("sale", "5", ("kind", "sale", '"5"')),
        ("sale", "null", ("kind", "sale", '"null"')),
        ("sale", '"5"', ("kind", "sale", '"\\"5\\""')),
        ("sale", "5 days", ("kind", "sale", "5 days")),
        ("sale", [5.0, None], ("kind", "sale", "[5,null]")),
    ],
)
def test_a_category_adds_what_it_was_taken_for(truth: Any, output: Any, pair: tuple[str, str, str]) -> None:
    (confusion,) = scores({"kind": truth}, {"kind": output}).confusions
    assert confusion == pair


@quick
@given(truth=json_values, output=json_values)
@example(truth="on sale", output=" on\u00a0 sale\n")
@example(truth="café", output="cafe\u0301")
@example(truth="", output=" ")
def test_what_is_right_and_only_that_is_on_the_diagonal(truth: Any, output: Any) -> None:
    plan = FieldPlan(leaves={"": FieldRule(compare="category")})
    for one in per_field(compare(truth, output, plan)).confusions:
        assert (one.truth == one.output) == equal(truth, output, FieldRule(compare="category"))


def test_an_ignored_category_adds_nothing() -> None:
    plan = order_plan("key", kind=FieldRule(compare="ignore"))
    assert per_field(compare({"kind": "sale"}, {"kind": "refund"}, plan)) == FieldScores()


def test_totals_count_each_output_as_often_as_it_was_given() -> None:
    right = scores({"kind": "sale", "note": "as agreed"}, {"kind": "sale", "note": "as agreed"})
    wrong = scores({"kind": "sale", "note": "as agreed"}, {"kind": "refund", "note": "agreed as"})
    totals = total_fields([(right, 3), (wrong, 2)])
    assert totals["kind"].counts == FieldCounts(right=3, wrong=2)
    assert totals["kind"].confusion == {("sale", "sale"): 3, ("sale", "refund"): 2}
    assert totals["kind"].texts == 0
    assert totals["note"].texts == 5
    assert totals["note"].token_f1 == pytest.approx(3 * 1 + 2 * 1)
    assert totals["note"].rouge_l == pytest.approx(3 * 1 + 2 * 1 / 2)


def test_no_outputs_have_no_totals() -> None:
    assert total_fields([]) == {}


def test_counts_are_added_once_or_several_times() -> None:
    assert sum_counts(FieldCounts(right=1), FieldCounts(right=2, extra=1)) == FieldCounts(right=3, extra=1)
    assert sum_counts(FieldCounts(right=1), FieldCounts(right=2), 3) == FieldCounts(right=7)


Pairs = dict[tuple[str | None, str | None], int]


@pytest.mark.parametrize(
    ("confusion", "expected"),
    [
        ({("a", "a"): 3, ("b", "b"): 1}, 1.0),
        ({("a", "b"): 1, ("b", "a"): 1}, 0.0),
        # a: 2·3 ÷ (4 + 3), b: 2·1 ÷ (1 + 2): the rare label weighs as much as the common one
        ({("a", "a"): 3, ("a", "b"): 1, ("b", "b"): 1}, (6 / 7 + 2 / 3) / 2),
        # a label that only the outputs have is a label, with F1 0
        ({("a", "a"): 1, ("a", "c"): 1}, (2 / 3 + 0) / 2),
        # no label is none: missed, it is a false negative of a, invented, a false positive of b
        ({("a", "a"): 1, ("a", None): 1}, 2 / 3),
        ({("b", "b"): 1, (None, "b"): 1}, 2 / 3),
        ({(None, "b"): 2}, 0.0),
        ({}, None),
    ],
)
def test_mean_of_the_f1_of_each_label(confusion: Pairs, expected: float | None) -> None:
    assert macro_f1(confusion) == (expected if expected is None else pytest.approx(expected))


def test_how_often_everything_was_asked_does_not_matter() -> None:
    once: Pairs = {("a", "a"): 3, ("a", "b"): 1, ("b", None): 2}
    assert macro_f1({pair: 5 * count for pair, count in once.items()}) == macro_f1(once)


def filled(*pairs: tuple[Any, Any, int]) -> dict[str, tuple[int, int]]:
    """(truth, output, how often) → (outputs with a value, truths with one) by path."""
    plan = FieldPlan()
    found = filled_fields((per_field(compare(truth, output, plan)), times) for truth, output, times in pairs)
    return {path: tuple(one) for path, one in found.items()}  # type: ignore[misc]


@pytest.mark.parametrize(
    ("truth", "output", "expected"),
    [
        ({"a": 1}, {"a": 1}, {"a": (1, 1)}),
        ({"a": 1}, {"a": 2}, {"a": (1, 1)}),  # filled, if wrongly
        ({"a": 1}, {"a": None}, {"a": (0, 1)}),
        ({"a": None}, {"a": 1}, {"a": (1, 0)}),
        ({"a": None}, {}, {}),
        # of items: one that has a value fills the field
        ({"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}, {"c": 2}]}, {"a[].b": (1, 1), "a[].c": (1, 0)}),
        ({"a": [1, 2]}, {"a": []}, {"a[]": (0, 1)}),
    ],
)
def test_a_field_is_filled_where_a_leaf_of_it_is_not_null(
    truth: Any, output: Any, expected: dict[str, tuple[int, int]]
) -> None:
    assert filled((truth, output, 1)) == expected


def test_an_output_counts_as_often_as_it_was_given() -> None:
    assert filled(({"a": 1}, {"a": 1}, 2), ({"a": 1}, {"b": 1}, 3)) == {"a": (2, 5), "b": (3, 0)}
