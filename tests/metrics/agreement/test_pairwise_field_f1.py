"""Agreement leaf by leaf: by hand, against a double loop over `compare`, and its two ways against each other."""

import random
from itertools import combinations
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from skill_evaluator.comparing.comparison import compare, counted_weight
from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule
from skill_evaluator.comparing.leaves import Lexicon
from skill_evaluator.metrics.agreement.pairwise_field_f1 import pairwise_field_f1

from tests.support.json_values import ALIGNMENTS, answers, json_values, order_plan, orders, quick, thorough

X, Y, Z = ({"a": 1, "b": 1}, {"a": 1, "b": 2}, {"a": 2, "b": 2})


@pytest.mark.parametrize(
    ("outputs", "unparseable", "expected"),
    [
        ([X, X], 0, 1),
        ([X, Y], 0, 1 / 2),
        ([X, Z], 0, 0),
        ([X, Y, Z], 0, (1 / 2 + 0 + 1 / 2) / 3),
        ([X, X, Y], 0, (1 + 1 / 2 + 1 / 2) / 3),
        ([X, {"a": 1}], 0, 2 / 3),
        ([{"a": [1, 2]}, {"a": [2, 3]}], 0, 1 / 2),
        ([{}, {"a": None}], 0, 1),
        ([{}, X], 0, 0),
        ([{"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 2}, {"b": 1}]}], 0, 1),
        ([X, X], 1, 1 / 3),
        ([X], 1, 0),
        ([], 2, 0),
        ([X], 0, None),
        ([], 0, None),
    ],
)
def test_mean_f1_of_the_pairs(outputs: list[Any], unparseable: int, expected: float | None) -> None:
    found = pairwise_field_f1(answers(*outputs, unparseable=unparseable))
    assert found == expected or found == pytest.approx(expected)


def double_loop(outputs: list[Any], plan: FieldPlan) -> float:
    scores = []
    for one, other in combinations(outputs, 2):
        matched, left, right = counted_weight(compare(one, other, plan))
        scores.append(2 * matched / (left + right) if left + right else 1.0)
    return sum(scores) / len(scores)


# Rules that make leaves equal by closeness, weigh them, leave them out, or set them apart.
DECLARED = {
    "plain": {},
    "close": {"lines__price": FieldRule(compare="number", tolerance=0.005), "id": FieldRule(casefold=True)},
    "weighted": {"lines__qty": FieldRule(weight=0.3), "id": FieldRule(weight=2), "tags__": FieldRule(weight=0.1)},
    "text": {"note": FieldRule(compare="text", threshold=0.7), "lines__marks": FieldRule(compare="ignore")},
    "close tags": {"tags__": FieldRule(compare="string", threshold=0.5)},
    "ordered marks": {"lines__marks": FieldRule(align="ordered")},
}


PLANS = {(align, name): order_plan(align, **rules) for align in ALIGNMENTS for name, rules in DECLARED.items()}


@thorough
@given(outputs=st.lists(orders, min_size=2, max_size=4))
def test_it_is_the_double_loop_over_compare(outputs: list[Any]) -> None:
    for rules, plan in PLANS.items():
        found = pairwise_field_f1(answers(*outputs, plan=plan))
        assert found == pytest.approx(double_loop(outputs, plan), abs=1e-9), rules


@thorough
@given(outputs=st.lists(json_values, min_size=2, max_size=3))
def test_without_a_schema_too(outputs: list[Any]) -> None:
    assert pairwise_field_f1(answers(*outputs)) == pytest.approx(double_loop(outputs, FieldPlan()), abs=1e-9)


# An array that aligns by the best assignment and holds no leaf: only the way taken is another.
ANOTHER_WAY = {"more": [{}]}


@quick
@given(one=orders, other=orders)
def test_sets_of_leaves_and_whole_comparisons_agree(one: Any, other: Any) -> None:
    for rules, plan in PLANS.items():
        if "best" not in rules:
            assert Lexicon(plan).leaves(ANOTHER_WAY).groups
            by_leaves = pairwise_field_f1(answers(one, other, plan=plan))
            by_whole = pairwise_field_f1(answers({**one, **ANOTHER_WAY}, {**other, **ANOTHER_WAY}, plan=plan))
            assert by_leaves == pytest.approx(by_whole, abs=1e-9), rules


@pytest.mark.parametrize(
    ("value", "align", "possible"),
    [
        ({"lines": [{"sku": "x"}, {"sku": "y"}]}, "key", True),
        ({"lines": [{"sku": "x"}, {"sku": "x"}]}, "key", False),
        ({"lines": [{"sku": "x"}, {"sku": "x"}]}, "set", True),
        ({"lines": [{"sku": "x"}, {"sku": "x"}]}, "ordered", True),
        ({"lines": [{"sku": "x"}]}, "best", False),
        ({"lines": []}, "best", True),
    ],
)
def test_leaves_stand_alone_where_alignment_needs_no_partner(value: Any, align: str, possible: bool) -> None:
    assert possible is not bool(Lexicon(order_plan(align)).leaves(value).groups)


def test_many_small_weights_do_not_add_up_to_more_than_all() -> None:
    fields = [f"f{index}" for index in range(10)]
    plan = FieldPlan(
        leaves={**dict.fromkeys(fields, FieldRule(compare="number", weight=0.1)), "x": FieldRule(compare="ignore")}
    )
    alike = dict.fromkeys(fields, 1)
    assert pairwise_field_f1(answers({**alike, "x": 1}, {**alike, "x": 2}, plan=plan)) == 1.0


# Arrays in array items, keyed and assigned, with one, more and no item of a key: what waits for its partner differs.
NESTED = FieldPlan(
    leaves={"a[].b[].v": FieldRule(compare="number", tolerance=1, weight=0.5)},
    arrays={
        "a": FieldRule(align="key", key=("k",)),
        "a[].b": FieldRule(align="key", key=("k",)),
        "a[].c": FieldRule(align="best"),
        "a[].c[].d": FieldRule(align="key", key=("k",)),
    },
)
small = st.integers(0, 2)
keyed = st.lists(st.fixed_dictionaries({"k": st.sampled_from([0, 1, None]), "v": small}), max_size=3)
assigned = st.lists(st.fixed_dictionaries({"v": small, "d": keyed}), max_size=2)
nested = st.fixed_dictionaries(
    {"a": st.lists(st.fixed_dictionaries({"k": st.sampled_from([0, 1, None]), "b": keyed, "c": assigned}), max_size=3)}
)


# All leaves of an item are those of an item below it, which stands alone here and twice there.
ALONE = {"k": None, "b": [{"k": None, "v": 0}], "c": []}
TWICE = {"k": None, "b": [{"k": None, "v": 0}, {"k": None, "v": 0}], "c": []}


@thorough
@given(outputs=st.lists(nested, min_size=2, max_size=4))
@example(outputs=[{"a": [{"k": None, "b": [], "c": []}, TWICE]}, {"a": [ALONE]}])
def test_arrays_in_array_items_are_those_of_the_double_loop_too(outputs: list[Any]) -> None:
    assert pairwise_field_f1(answers(*outputs, plan=NESTED)) == pytest.approx(double_loop(outputs, NESTED), abs=1e-9)


@quick
@given(outputs=st.lists(orders, min_size=2, max_size=3), times=st.lists(st.integers(1, 5), min_size=3, max_size=3))
def test_answers_given_more_than_once_count_as_often(outputs: list[Any], times: list[int]) -> None:
    plan = order_plan("key", lines__price=FieldRule(compare="number", tolerance=0.005, weight=0.3))
    given_answers = [output for output, count in zip(outputs, times, strict=False) for _ in range(count)]
    found = pairwise_field_f1(answers(*given_answers, plan=plan))
    assert found == pytest.approx(double_loop(given_answers, plan), abs=1e-9)


def items_of_few_keys(dice: random.Random) -> dict[str, Any]:
    """Up to five items of two keys, whose leaves most answers share and some have alone."""
    return {
        "a": [
            {"k": dice.choice([*[1] * 8, 0, None]), "b": [{"k": "x", "v": 0}, {"k": "y", "v": dice.choice([1, 1, 2])}]}
            | {name: dice.choice([0, 0, 1, dice.random(), None]) for name in "pq"}
            for _ in range(dice.randrange(1, 6))
        ]
    }


FEW_KEYS = {"a": FieldRule(align="key", key=("k",)), "a[].b": FieldRule(align="key", key=("k",))}


@pytest.mark.parametrize("leaves", [{}, {"a[].p": FieldRule(weight=0.3), "a[].q": FieldRule(compare="ignore")}])
@pytest.mark.parametrize("seed", range(2))
def test_of_many_answers_items_of_one_key_are_paired_as_in_the_double_loop(leaves: Any, seed: int) -> None:
    dice = random.Random(seed)
    plan = FieldPlan(leaves=leaves, arrays=FEW_KEYS)
    outputs = [items_of_few_keys(dice) for _ in range(60)]  # 2,000 pairs: they are taken at once
    outputs += dice.choices(outputs, k=4)
    assert pairwise_field_f1(answers(*outputs, plan=plan)) == pytest.approx(double_loop(outputs, plan), abs=1e-12)
