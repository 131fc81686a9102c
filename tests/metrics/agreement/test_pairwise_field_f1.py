"""Agreement leaf by leaf: by hand, and against a double loop over `compare`."""

import random
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.comparing.comparison import compare, counted_weight
from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule
from skill_evaluator.metrics.agreement import pairwise_field_f1

from tests.metrics.orders import ALIGNMENTS, answers, order_plan, orders
from tests.support.json_values import quick

X, Y, Z = ({"a": 1, "b": 1}, {"a": 1, "b": 2}, {"a": 2, "b": 2})


@pytest.mark.parametrize(
    ("outputs", "unparseable", "expected"),
    [
        ([X, Y, Z], 0, (1 / 2 + 0 + 1 / 2) / 3),
        ([{}, {"a": None}], 0, 1),
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


@quick
@given(outputs=st.lists(orders, min_size=2, max_size=4), times=st.lists(st.integers(1, 3), min_size=4, max_size=4))
def test_it_is_the_double_loop_over_compare(outputs: list[Any], times: list[int]) -> None:
    close = FieldRule(compare="number", tolerance=0.005, weight=0.3)
    outputs = [output for output, count in zip(outputs, times, strict=False) for _ in range(count)]
    for plan in (FieldPlan(), *(order_plan(align, lines__price=close) for align in ALIGNMENTS)):
        if len(outputs) > 1:
            found = pairwise_field_f1(answers(*outputs, plan=plan))
            assert found == pytest.approx(double_loop(outputs, plan), abs=1e-9)


def test_many_small_weights_do_not_add_up_to_more_than_all() -> None:
    fields = [f"f{index}" for index in range(10)]
    plan = FieldPlan(
        leaves={**dict.fromkeys(fields, FieldRule(compare="number", weight=0.1)), "x": FieldRule(compare="ignore")}
    )
    alike = dict.fromkeys(fields, 1)
    assert pairwise_field_f1(answers({**alike, "x": 1}, {**alike, "x": 2}, plan=plan)) == 1.0


def test_of_many_different_answers_some_pairs_stand_for_all() -> None:
    dice = random.Random(0)
    outputs = [{"n": at, **{name: dice.choice([0, 0, 1]) for name in "pqrs"}} for at in range(120)]
    found = pairwise_field_f1(answers(*outputs, *outputs[:40]))
    assert found == pytest.approx(double_loop([*outputs, *outputs[:40]], FieldPlan()), abs=0.01)
    assert found == pairwise_field_f1(answers(*outputs[:40], *reversed(outputs)))
