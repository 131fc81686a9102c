"""Counts, confusion and fill rates of fields, and their stability over the answers to a case."""

from typing import Any

import pytest
from hypothesis import example, given
from skill_evaluator.comparing.comparison import compare
from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule, equal
from skill_evaluator.metrics.accuracy import FieldCounts, macro_f1, per_field, total_fields
from skill_evaluator.metrics.agreement import field_profile, field_values

from tests.metrics.orders import answers, order_plan
from tests.support.json_values import json_values, quick

PLAN = order_plan("key")


def scores(truth: Any, output: Any) -> dict[str, FieldCounts]:
    return per_field(compare(truth, output, PLAN))


def test_leaves_are_counted_by_path_and_outcome() -> None:
    truth = {"id": "A", "total": 9, "tags": ["a", "b"], "lines": [{"sku": "x", "qty": 1}, {"sku": "y", "qty": 2}]}
    output = {"id": "B", "paid": True, "tags": ["b", "c"], "lines": [{"sku": "x", "qty": 1}, {"sku": "z", "qty": 2}]}
    counts = scores(truth, output)
    assert {path: (each.right, each.wrong, each.missing, each.extra) for path, each in counts.items()} == {
        "id": (0, 1, 0, 0),
        "total": (0, 0, 1, 0),
        "tags[]": (1, 0, 1, 1),
        "lines[].sku": (1, 0, 1, 1),
        "lines[].qty": (1, 0, 1, 1),
        "paid": (0, 0, 0, 1),
    }
    assert counts["tags[]"].n == 3


def test_field_without_value_in_truth_and_output_is_not_counted() -> None:
    assert scores({"id": None}, {}) == {}


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
def test_free_text_adds_its_similarity(truth: Any, output: Any, tokens: float, sequence: float) -> None:
    counts = scores({"note": truth}, {"note": output})["note"]
    assert (counts.texts, counts.token_f1, counts.rouge_l) == (1, pytest.approx(tokens), pytest.approx(sequence))


@pytest.mark.parametrize(
    ("truth", "output", "pair"),
    [
        ("sale", "sale", ("sale", "sale")),
        ("sale", "refund", ("sale", "refund")),
        ("sale", None, ("sale", "null")),
        (None, "refund", ("null", "refund")),
        ("sale", 5, ("sale", "5")),
        ("sale", "5", ("sale", '"5"')),
        ("sale", "null", ("sale", '"null"')),
        ("sale", '"5"', ("sale", '"\\"5\\""')),
        ("sale", "5 days", ("sale", "5 days")),
        ("sale", [5.0, None], ("sale", "[5,null]")),
    ],
)
def test_category_adds_true_and_output_label(truth: Any, output: Any, pair: tuple[str, str]) -> None:
    assert scores({"kind": truth}, {"kind": output})["kind"].confusion == {pair: 1}


@quick
@given(truth=json_values, output=json_values)
@example(truth="on sale", output=" on\u00a0 sale\n")
@example(truth="café", output="cafe\u0301")
@example(truth="", output=" ")
def test_labels_are_equal_only_for_right_leaves(truth: Any, output: Any) -> None:
    plan = FieldPlan(leaves={"": FieldRule(compare="category")})
    for counts in per_field(compare(truth, output, plan)).values():
        for true_label, output_label in counts.confusion:
            assert (true_label == output_label) == equal(truth, output, FieldRule(compare="category"))


def test_ignored_category_is_not_counted() -> None:
    plan = order_plan("key", kind=FieldRule(compare="ignore"))
    assert per_field(compare({"kind": "sale"}, {"kind": "refund"}, plan)) == {}


def test_totals_count_each_output_as_often_as_it_occurred() -> None:
    right = scores({"kind": "sale", "note": "as agreed"}, {"kind": "sale", "note": "as agreed"})
    wrong = scores({"kind": "sale", "note": "as agreed"}, {"kind": "refund", "note": "agreed as"})
    totals = total_fields([(right, 3), (wrong, 2)])
    assert (totals["kind"].right, totals["kind"].wrong, totals["kind"].flawed) == (3, 2, 2)
    assert totals["kind"].confusion == {("sale", "sale"): 3, ("sale", "refund"): 2}
    assert totals["kind"].texts == 0
    assert totals["note"].texts == 5
    assert totals["note"].token_f1 == pytest.approx(3 * 1 + 2 * 1)
    assert totals["note"].rouge_l == pytest.approx(3 * 1 + 2 * 1 / 2)


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
def test_macro_f1_is_the_mean_of_the_f1_of_each_label(confusion: Pairs, expected: float | None) -> None:
    assert macro_f1(confusion) == (expected if expected is None else pytest.approx(expected))


def test_macro_f1_is_independent_of_scale() -> None:
    once: Pairs = {("a", "a"): 3, ("a", "b"): 1, ("b", None): 2}
    assert macro_f1({pair: 5 * count for pair, count in once.items()}) == macro_f1(once)


def filled(*pairs: tuple[Any, Any, int]) -> dict[str, tuple[int, int]]:
    """Return the numbers of outputs and of truths with a value by path, for (truth, output, occurrences)."""
    totals = total_fields((per_field(compare(truth, output, FieldPlan())), times) for truth, output, times in pairs)
    return {path: (counts.filled, counts.filled_in_truth) for path, counts in totals.items()}


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
def test_field_is_filled_if_a_leaf_is_not_null(truth: Any, output: Any, expected: dict[str, tuple[int, int]]) -> None:
    assert filled((truth, output, 1)) == expected


def test_filled_outputs_count_as_often_as_they_occurred() -> None:
    assert filled(({"a": 1}, {"a": 1}, 2), ({"a": 1}, {"b": 1}, 3)) == {"a": (2, 5), "b": (3, 0)}


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
def test_field_profile_of_labelled_answers(truth: Any, outputs: list[Any], unparseable: int, expected: str) -> None:
    found = profile({"a": truth}, *({"a": value} for value in outputs), unparseable=unparseable)
    assert found == {"a[]" if isinstance(truth, list) else "a": expected}


def test_field_profile_is_unscored_if_nothing_was_parsed() -> None:
    plan = FieldPlan(leaves={"a": FieldRule(compare="number")})
    assert profile({"a": 1}, unparseable=2, plan=plan) == {"a": "unscored"}


def test_field_profile_of_a_rightly_absent_field_is_stable_right() -> None:
    plan = FieldPlan(leaves={"a": FieldRule(compare="number")})
    assert profile({}, {}, {"a": None}, plan=plan) == {"a": "stable_right"}


def test_field_profile_uses_tolerances() -> None:
    assert profile({"near": 9}, {"near": 8.5}, {"near": 9.5}, plan=LOOSE)["near"] == "stable_right"
    assert profile({"near": 9}, {"near": 11}, {"near": 12}, plan=LOOSE)["near"] == "flaky"
    assert (
        profile({"gist": "one two"}, {"gist": "two one"}, {"gist": "one three"}, plan=LOOSE)["gist"] == "stable_right"
    )


def test_field_profile_of_free_text_is_unscored_and_omits_ignored_fields() -> None:
    found = profile({"note": "as agreed", "left": 1}, {"note": "as agreed"}, {"note": "agreed"}, plan=LOOSE)
    assert found["note"] == "unscored"
    assert "left" not in found


def test_field_profile_of_items_that_swap_values_is_flaky() -> None:
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
def test_field_profile_without_truth_is_stable_or_flaky(
    outputs: list[Any], unparseable: int, expected: dict[str, str]
) -> None:
    assert unlabelled(*outputs, unparseable=unparseable) == expected


def test_field_values_have_one_value_per_parsed_answer() -> None:
    found = field_values(answers({"a": 1}, {"a": 1.0}, {"a": None}, {"b": [1, 2]}, {"b": [2, 1]}, unparseable=3))
    assert {path: sorted(counts.values()) for path, counts in found.items()} == {"a": [2, 3], "b[]": [2, 3]}
    assert found["a"][None] == 3
