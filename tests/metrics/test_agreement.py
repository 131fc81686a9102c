"""Reproducibility metrics on small values, computed by hand, by plain definitions and by other libraries."""

import math
import random
from collections import Counter
from itertools import combinations
from typing import Any

import krippendorff
import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.comparing.comparison import compare, counted_weight
from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule
from skill_evaluator.metrics.agreement import (
    CaseOutputs,
    array_length_stability,
    array_lengths,
    distinct_outputs,
    field_stability,
    field_stability_by_path,
    krippendorff_alpha,
    pairwise_exact_match,
    pairwise_field_f1,
    tara_at_n,
    tarr_at_n,
)

from tests.metrics.orders import ALIGNMENTS, answers, order_plan, orders
from tests.support.json_values import quick


@pytest.mark.parametrize(
    ("outputs", "unparseable", "expected"),
    [
        ([1, 1], 0, 1),
        ([1, 2], 0, 0),
        ([1, 1, 2], 0, 1 / 3),
        ([1, 1, 2, 2], 0, 2 / 6),
        ([1, 1, 1, 2], 0, 3 / 6),
        ([{"a": 1, "b": None}, {"a": 1.0}], 0, 1),
        ([1, 1], 1, 1 / 3),  # of three pairs two have the unparseable answer
        ([], 3, 0),
        ([1], 1, 0),
        ([1], 0, None),
        ([], 1, None),
        ([], 0, None),
    ],
)
def test_pairwise_exact_match_is_the_share_of_equal_pairs(
    outputs: list[Any], unparseable: int, expected: float | None
) -> None:
    found = pairwise_exact_match(answers(*outputs, unparseable=unparseable))
    assert found == expected or found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("outputs", "unparseable", "expected"),
    [
        ([1, 1, 1], 0, 1),
        ([1, 1, 2], 0, 2),
        ([1, "1", True], 0, 3),
        ([{"a": 1}, {"a": 1.0, "b": None}], 0, 1),
        ([1, 1], 2, 3),  # each unparseable answer is one of its own
        ([], 2, 2),
        ([], 0, None),
    ],
)
def test_distinct_outputs_count_unparseable_answers_each(
    outputs: list[Any], unparseable: int, expected: float | None
) -> None:
    assert distinct_outputs(answers(*outputs, unparseable=unparseable)) == expected


@pytest.mark.parametrize(
    ("texts", "raw", "parsed"),
    [
        ([("1", "1"), ("1", "1")], 1, 1),
        ([("1", "1"), ("1 ", "1")], 0, 1),  # the same value, written otherwise
        ([("1", "1"), ("2", "2")], 0, 0),
        ([("no", None), ("no", None)], 1, 0),  # the same text, and no value to agree on
        ([("1", "1"), ("1", "1"), ("no", None)], 0, 0),
        ([("1", "1")], None, None),
        ([], None, None),
    ],
)
def test_tarr_and_tara_require_all_answers_to_agree(
    texts: list[tuple[str, str | None]], raw: float | None, parsed: float | None
) -> None:
    of_case = CaseOutputs(FieldPlan())
    for text, canonical in texts:
        of_case.add(text, canonical)
    assert (tarr_at_n(of_case), tara_at_n(of_case)) == (raw, parsed)


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
def test_pairwise_field_f1_is_the_mean_over_pairs(outputs: list[Any], unparseable: int, expected: float | None) -> None:
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
def test_pairwise_field_f1_equals_a_double_loop_over_compare(outputs: list[Any], times: list[int]) -> None:
    close = FieldRule(compare="number", tolerance=0.005, weight=0.3)
    outputs = [output for output, count in zip(outputs, times, strict=False) for _ in range(count)]
    for plan in (FieldPlan(), *(order_plan(align, lines__price=close) for align in ALIGNMENTS)):
        if len(outputs) > 1:
            found = pairwise_field_f1(answers(*outputs, plan=plan))
            assert found == pytest.approx(double_loop(outputs, plan), abs=1e-9)


def test_pairwise_field_f1_of_many_small_weights_is_at_most_1() -> None:
    fields = [f"f{index}" for index in range(10)]
    plan = FieldPlan(
        leaves={**dict.fromkeys(fields, FieldRule(compare="number", weight=0.1)), "x": FieldRule(compare="ignore")}
    )
    alike = dict.fromkeys(fields, 1)
    assert pairwise_field_f1(answers({**alike, "x": 1}, {**alike, "x": 2}, plan=plan)) == 1.0


def test_pairwise_field_f1_of_many_answers_is_sampled() -> None:
    dice = random.Random(0)
    outputs = [{"n": at, **{name: dice.choice([0, 0, 1]) for name in "pqrs"}} for at in range(120)]
    found = pairwise_field_f1(answers(*outputs, *outputs[:40]))
    assert found == pytest.approx(double_loop([*outputs, *outputs[:40]], FieldPlan()), abs=0.01)
    assert found == pairwise_field_f1(answers(*outputs[:40], *reversed(outputs)))


LOOSE = FieldPlan(
    leaves={
        "a": FieldRule(compare="string", casefold=True),
        "b": FieldRule(compare="ignore"),
        "c": FieldRule(compare="number", tolerance=5),
    }
)


@pytest.mark.parametrize(
    ("outputs", "unparseable", "expected"),
    [
        ([{"a": 1}, {"a": 1}, {"a": 2}], 0, {"a": 2 / 3}),
        ([{"a": 1, "b": 1}, {"a": 1, "b": 2}], 0, {"a": 1, "b": 1 / 2}),
        ([{"a": 1}, {}, {"a": None}], 0, {"a": 2 / 3}),  # absent is a value, and null is absent
        ([{"a": 1}, {"a": True}, {"a": "1"}], 0, {"a": 1 / 3}),
        ([{"a": 1}, {"a": 1.0}], 0, {"a": 1}),
        ([{"a": 1}, {"a": 1}], 2, {"a": 2 / 4}),  # the unparseable answers share no value
        ([{"a": 1}], 1, {"a": 1 / 2}),
        # an array is stable when its items are, in whatever order
        ([{"a": [1, 2]}, {"a": [2, 1]}], 0, {"a[]": 1}),
        ([{"a": [1, 1]}, {"a": [1]}], 0, {"a[]": 1 / 2}),
        ([{"a": [{"b": 1}]}, {"a": [{"b": 1}, {"c": 2}]}], 0, {"a[].b": 1, "a[].c": 1 / 2}),
        ([{"a": 1}], 0, {}),
        ([], 2, {}),
    ],
)
def test_field_stability_is_the_share_of_the_commonest_value(
    outputs: list[Any], unparseable: int, expected: dict[str, float]
) -> None:
    given = answers(*outputs, unparseable=unparseable)
    assert field_stability_by_path(given) == pytest.approx(expected)
    mean = sum(expected.values()) / len(expected) if expected else None
    assert field_stability(given) == (None if mean is None else pytest.approx(mean))


def test_field_stability_ignores_tolerances() -> None:
    outputs = [{"a": "X", "b": 1, "c": 1}, {"a": "x", "b": 2, "c": 2}]
    assert field_stability_by_path(answers(*outputs, plan=LOOSE)) == {"a": 1.0, "c": 0.5}


def test_field_stability_of_an_absent_field_is_1() -> None:
    assert field_stability_by_path(answers({"a": "x"}, {"a": "y"}, plan=LOOSE)) == {"a": 0.5, "c": 1.0}


def test_field_stability_is_0_if_no_answer_was_parsed() -> None:
    assert field_stability_by_path(answers(plan=LOOSE, unparseable=2)) == {"a": 0.0, "c": 0.0}


def test_field_stability_of_a_star_path_compares_values_by_key() -> None:
    plan = FieldPlan(leaves={"by.*": FieldRule(compare="number")})
    swapped = answers({"by": {"a": 1, "b": 2}}, {"by": {"a": 2, "b": 1}}, plan=plan)
    assert field_stability_by_path(swapped) == {"by.*": 0.5}
    moved = answers({"by": {"a": 1, "b": 2}}, {"by": {"b": 2.0, "a": 1}}, plan=plan)
    assert field_stability_by_path(moved) == {"by.*": 1.0}


PLANNED = FieldPlan(leaves={"whole": FieldRule(compare="exact")}, arrays={"a": FieldRule(align="set")})
Lengths = tuple[float, int | None, int | None]


def lengths(*outputs: Any, plan: FieldPlan | None = None, unparseable: int = 0) -> dict[str, Lengths]:
    found = array_lengths(answers(*outputs, plan=plan, unparseable=unparseable))
    return {path: (one.stability, one.shortest, one.longest) for path, one in found.items()}


@pytest.mark.parametrize(
    ("outputs", "unparseable", "expected"),
    [
        ([{"a": [1, 2]}, {"a": [3, 4]}], 0, {"a": (1, 2, 2)}),
        ([{"a": [1, 2]}, {"a": [1, 2]}, {"a": [1]}], 0, {"a": (2 / 3, 1, 2)}),
        ([{"a": [1]}, {"a": []}, {"a": None}, {}], 0, {"a": (3 / 4, 0, 1)}),  # absent, null and empty: no items
        ([{"a": [1]}, {"a": "x"}], 0, {"a": (1 / 2, 0, 1)}),
        ([{"a": [1]}, {"a": [1]}], 1, {"a": (2 / 3, 1, 1)}),  # an unparseable answer shares no length
        ([[1, 2], [1]], 0, {"": (1 / 2, 1, 2)}),
        # arrays inside items are pooled: 1 + 2 and 2 + 1 items below
        (
            [{"a": [{"b": [1]}, {"b": [1, 2]}]}, {"a": [{"b": [1, 2]}, {"b": [3]}]}],
            0,
            {"a": (1, 2, 2), "a[].b": (1, 3, 3)},
        ),
        ([{"a": [{"b": [1]}]}, {"a": []}], 0, {"a": (1 / 2, 0, 1), "a[].b": (1 / 2, 0, 1)}),
        ([{"x": 1}, {"x": 2}], 0, {}),
        ([{"a": [1]}], 0, {}),  # one answer varies from nothing
    ],
)
def test_array_length_stability_is_the_share_of_the_commonest_length(
    outputs: list[Any], unparseable: int, expected: dict[str, Lengths]
) -> None:
    assert lengths(*outputs, unparseable=unparseable) == expected


def test_array_lengths_include_absent_arrays_of_the_schema() -> None:
    assert lengths({}, {}, plan=PLANNED) == {"a": (1, 0, 0)}
    assert lengths(plan=PLANNED, unparseable=2) == {"a": (0, None, None)}


def test_array_lengths_exclude_arrays_compared_as_a_whole() -> None:
    assert lengths({"whole": [1]}, {"whole": [1, 2]}, plan=PLANNED) == {"a": (1, 0, 0)}


def test_array_length_stability_is_the_mean_over_arrays() -> None:
    given = answers({"a": [1], "b": [1]}, {"a": [1], "b": []})
    assert array_length_stability(given) == pytest.approx((1 + 1 / 2) / 2)
    assert array_length_stability(answers({"x": 1}, {"x": 2})) is None


Table = list[list[int | None]]  # a row per unit, a column per replicate; None is a missing value


def alpha(table: Table) -> float | None:
    return krippendorff_alpha(Counter(value for value in row if value is not None) for row in table)


def test_krippendorff_alpha_of_the_published_example() -> None:
    observers: Table = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    ]
    units = [list(unit) for unit in zip(*observers, strict=True)]
    assert alpha(units) == pytest.approx(0.743, abs=5e-4)  # Krippendorff 2011, section C, nominal


def test_krippendorff_alpha_equals_another_implementation() -> None:
    assert alpha([]) is alpha([[1], [2]]) is None
    dice = random.Random(1)
    compared = 0
    for _ in range(150):
        units, replicates, labels = dice.randint(1, 8), dice.randint(2, 6), dice.randint(2, 4)
        missing = dice.choice([0.0, 0.2, 0.5])
        table: Table = [
            [None if dice.random() < missing else dice.randrange(labels) for _ in range(replicates)]
            for _ in range(units)
        ]
        pairable = [row for row in table if sum(value is not None for value in row) > 1]
        if len({value for row in pairable for value in row if value is not None}) < 2:
            assert alpha(table) is None
            continue
        by_replicate = [[math.nan if value is None else value for value in row] for row in zip(*table, strict=True)]
        expected = krippendorff.alpha(by_replicate, level_of_measurement="nominal", value_domain=list(range(labels)))
        assert alpha(table) == pytest.approx(expected, abs=1e-9)
        compared += 1
    assert compared > 100
