"""The fast engine compares as the naive definition in `naive.py` says."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.comparing.comparison import compare
from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule
from skill_evaluator.metrics.accuracy import field_level_f1

from tests.comparing.naive import compare_naively, naive_f1
from tests.metrics.orders import ALIGNMENTS, comparison, order_plan, orders
from tests.support.json_values import json_values, thorough

NO_SCHEMA = "no schema"
WEIGHED = {"lines__qty": FieldRule(weight=3), "lines__price": FieldRule(compare="number", tolerance=0.005, weight=0.5)}
PLANS: Mapping[str, FieldPlan] = {
    NO_SCHEMA: FieldPlan(),
    **{align: order_plan(align) for align in ALIGNMENTS},
    **{f"{align}, weighed": order_plan(align, **WEIGHED) for align in ALIGNMENTS},
}
ONE_WAY_TO_PAIR = ("ordered", "set", "ordered, weighed")
"""Elsewhere assignments that match the same weight may differ in what is wrong and what is left over."""

pairs = st.tuples(orders, orders) | st.tuples(orders | json_values, orders | json_values)


@thorough
@given(pair=pairs)
def test_engine_has_the_f1_and_the_leaves_of_the_naive_definition(pair: tuple[Any, Any]) -> None:
    for name, plan in PLANS.items():
        rows, results = compare(*pair, plan), compare_naively(*pair, plan)
        assert field_level_f1(comparison(*pair, plan)) == pytest.approx(naive_f1(results)), name
        for absent in ("missing", "extra"):
            by_path = Counter(row.path for row in rows if row.outcome != absent)
            assert by_path == Counter(result.path for result in results if result.outcome != absent), name


@thorough
@given(pair=st.tuples(orders, orders))  # in values of another shape, arrays align by what they share
def test_engine_has_the_outcomes_of_the_naive_definition_for_unique_pairs(pair: tuple[Any, Any]) -> None:
    for name in ONE_WAY_TO_PAIR:
        rows, results = compare(*pair, PLANS[name]), compare_naively(*pair, PLANS[name])
        by_path = Counter((row.path, row.outcome) for row in rows)
        assert by_path == Counter((result.path, result.outcome) for result in results), name
