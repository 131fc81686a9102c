"""Agreement leaf by leaf: by hand, and against a double loop over `compare`."""

import random
from itertools import combinations
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from skill_evaluator.comparing.comparison import compare, counted_weight
from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule
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


def test_of_many_different_answers_some_pairs_stand_for_all() -> None:
    dice = random.Random(0)
    outputs = [{"n": at, **{name: dice.choice([0, 0, 1]) for name in "pqrs"}} for at in range(120)]
    found = pairwise_field_f1(answers(*outputs, *outputs[:40]))
    assert found == pytest.approx(double_loop([*outputs, *outputs[:40]], FieldPlan()), abs=0.01)
    assert found == pairwise_field_f1(answers(*outputs[:40], *reversed(outputs)))
