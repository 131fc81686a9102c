"""Laws of alignment and of the scores, on orders that keep the schema, on ones that break it, and on any JSON.

What one truth and one answer say must not hang on how either is written; a mistake must cost, its repair must pay.
"""

import copy
import json
import unicodedata
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from skill_evaluator.comparing.comparison import ComparedLeaf, compare
from skill_evaluator.comparing.field_plan import FieldPlan
from skill_evaluator.metrics import METRICS, REPRODUCIBILITY
from skill_evaluator.text import canonical_json

from tests.support.json_values import (
    ALIGNMENTS,
    answers,
    comparison,
    json_values,
    order_plan,
    orders,
    quick,
    reordered,
    thorough,
    with_keys_reordered,
)

NO_SCHEMA = "no schema"
PLANS: Mapping[str, FieldPlan] = {NO_SCHEMA: FieldPlan(), **{align: order_plan(align) for align in ALIGNMENTS}}
OF_ACCURACY = ("exact_match", "field_level_f1", "jaccard")
NOVEL = "\u2603 in no truth"

lines = st.lists(
    st.sampled_from([{"sku": "x", "qty": 1}, {"sku": "x", "qty": 2}, {"sku": "y", "marks": ["p"]}, {}, None])
    | json_values,
    max_size=3,
)
# An order in which anything may stand in the place of anything.
broken_orders = st.builds(
    lambda order, wrong: {**order, **wrong},
    orders,
    st.fixed_dictionaries(
        {}, optional={"id": json_values, "lines": lines, "tags": json_values, "note": json_values, "more": json_values}
    ),
)
values = json_values | orders | broken_orders
pairs = st.tuples(values, values) | st.tuples(orders, orders)
seeds = st.integers(0, 2**32)


def score(name: str, align: str, truth: Any, output: Any) -> float | None:
    return METRICS[name].score(comparison(truth, output, PLANS[align]))


def f1(align: str, truth: Any, output: Any) -> float:
    found = score("field_level_f1", align, truth, output)
    assert found is not None
    return found


def rows_of(align: str, truth: Any, output: Any) -> Counter[tuple[str, ...]]:
    """The rows without their places, as a multiset."""
    return Counter(
        (row.path, row.outcome, canonical_json(row.truth), canonical_json(row.output))
        for row in compare(truth, output, PLANS[align])
    )


def leaves(value: Any, plan: FieldPlan, path: str = "", at: tuple[str | int, ...] = ()) -> Counter[Any]:
    """Return every leaf that is not null by path, which has keys in NFC, and by place, which has them as written."""
    if value is None:
        return Counter()
    if path not in plan.leaves and isinstance(value, dict):
        names = {key: unicodedata.normalize("NFC", key) for key in value}
        if len(set(names.values())) < len(value):  # two keys that are one name keep their spelling
            names = {key: key for key in value}
        parts = (
            leaves(child, plan, f"{path}.{names[key]}" if path else names[key], (*at, key))
            for key, child in value.items()
        )
        return sum(parts, Counter())
    if path not in plan.leaves and isinstance(value, list):
        parts = (leaves(child, plan, f"{path}[]", (*at, index)) for index, child in enumerate(value))
        return sum(parts, Counter())
    return Counter([(path, at, canonical_json(value))])


@thorough
@given(pair=pairs)
@example(pair=({"cafe\u0301": 1}, {"caf\u00e9": 1}))
@example(pair=({"cafe\u0301": {"e\u0301": [2]}}, {"cafe\u0301": 1, "caf\u00e9": 2}))
def test_every_leaf_of_both_sides_stands_in_exactly_one_row_with_its_place(pair: tuple[Any, Any]) -> None:
    truth, output = pair
    for align, plan in PLANS.items():
        rows = compare(truth, output, plan)
        of_truth = Counter(
            (row.path, row.truth_at, canonical_json(row.truth)) for row in rows if row.outcome != "extra"
        )
        of_output = Counter(
            (row.path, row.output_at, canonical_json(row.output)) for row in rows if row.outcome != "missing"
        )
        assert of_truth == leaves(truth, plan), align
        assert of_output == leaves(output, plan), align
        assert all((row.truth is None, row.truth_at is None) == (row.outcome == "extra",) * 2 for row in rows), align
        assert all((row.output is None, row.output_at is None) == (row.outcome == "missing",) * 2 for row in rows), (
            align
        )


@thorough
@given(value=values)
def test_a_value_beside_itself_has_right_rows_only_and_every_score_is_1(value: Any) -> None:
    for align, plan in PLANS.items():
        rows = compare(value, copy.deepcopy(value), plan)
        assert all(row.outcome == "right" and row.truth_at == row.output_at for row in rows), align
        found = {score(name, align, value, copy.deepcopy(value)) for name in METRICS if METRICS[name].needs_truth}
        assert found <= {1, None}, align


@thorough
@given(pair=pairs)
@example(pair=({"\u00e9": 1}, {"e\u0301": 1}))
def test_scores_keep_their_range_mirror_and_fit_each_other(pair: tuple[Any, Any]) -> None:
    truth, output = pair
    before = repr(pair)
    for align, plan in PLANS.items():
        there, back = ({name: score(name, align, *way) for name in METRICS} for way in (pair, pair[::-1]))
        assert all(value is None or 0 <= value <= 1 for value in there.values()), (align, there)
        mirrored = pytest.approx({name: back[name] for name in OF_ACCURACY})
        assert {name: there[name] for name in OF_ACCURACY} == mirrored, align
        for one, other in ((truth, output), (truth, json.loads(canonical_json(truth)))):
            if score("exact_match", align, one, other) == 1:
                assert f1(align, one, other) == 1, align
                assert score("jaccard", align, one, other) in (1, None), align
        agreement = REPRODUCIBILITY["pairwise_field_f1"].score(answers(*pair, plan=plan))
        assert agreement == pytest.approx(there["field_level_f1"]), align
        compare(*pair, plan)
    assert repr(pair) == before, "comparing changes neither truth nor answer"


@thorough
@given(pair=pairs)
def test_f1_is_what_the_rows_say(pair: tuple[Any, Any]) -> None:
    for align, plan in PLANS.items():
        rows = [row for row in compare(*pair, plan) if row.rule.counts]
        right = sum(row.rule.weight for row in rows if row.outcome == "right")
        one_sided = sum(row.rule.weight for row in rows if row.outcome in ("missing", "extra"))
        both = 2 * sum(row.rule.weight for row in rows if row.outcome in ("right", "wrong"))
        assert f1(align, *pair) == pytest.approx(2 * right / (one_sided + both) if rows else 1), align


@thorough
@given(pair=st.tuples(orders, orders))
def test_what_is_missing_on_one_side_is_extra_from_the_other(pair: tuple[Any, Any]) -> None:
    """Not under `best` and repeated keys, where assignments of the same weight may differ in what they leave over."""
    mirrored = {"missing": "extra", "extra": "missing"}
    for align in ("ordered", "set"):
        there, back = (
            Counter((row.path, row.outcome) for row in compare(*way, PLANS[align])) for way in (pair, pair[::-1])
        )
        assert there == Counter({(path, mirrored.get(verdict, verdict)): n for (path, verdict), n in back.items()})


@thorough
@given(pair=pairs, in_order=st.tuples(orders, orders), seed=seeds)
def test_the_order_of_keys_and_of_unordered_items_changes_no_row(
    pair: tuple[Any, Any], in_order: tuple[Any, Any], seed: int
) -> None:
    for align, plan in PLANS.items():
        moved = [with_keys_reordered(value, seed + at) for at, value in enumerate(pair)]
        assert rows_of(align, *moved) == rows_of(align, *pair), align
        moved = [reordered(value, plan, seed + at, below_items=True) for at, value in enumerate(in_order)]
        assert rows_of(align, *moved) == rows_of(align, *in_order), align


@thorough
@given(pair=pairs, seed=seeds)
def test_agreement_is_that_of_the_values_not_of_how_they_are_written(pair: tuple[Any, Any], seed: int) -> None:
    def agreement(plan: FieldPlan, *outputs: Any) -> dict[str, float | None]:
        of_case = answers(*outputs, plan=plan)
        return {name: metric.score(of_case) for name, metric in REPRODUCIBILITY.items() if not metric.reads_raw_text}

    one, other = pair
    before = repr(pair)
    for align, plan in PLANS.items():
        moved = agreement(plan, with_keys_reordered(other, seed), one)
        assert agreement(plan, one, other) == pytest.approx(moved), align
    assert repr(pair) == before


def put(value: Any, at: tuple[str | int, ...], new: Any) -> Any:
    """A copy with another value at one place."""
    if not at:
        return new
    changed = copy.copy(value)
    changed[at[0]] = put(value[at[0]], at[1:], new) if at[1:] else new
    return changed


def repairs(row: ComparedLeaf, output: Any) -> Any:
    """The output with one mistake put right; what is missing inside an array has no place to be put."""
    if row.output_at is not None:
        return put(output, row.output_at, row.truth)
    parent = output
    for key in (row.truth_at or ())[:-1]:
        parent = parent.get(key) if isinstance(parent, dict) else None
    there = row.truth_at and isinstance(row.truth_at[-1], str) and isinstance(parent, dict)
    return put(output, row.truth_at or (), row.truth) if there else output


@thorough
@given(pair=pairs)
def test_putting_any_mistake_right_never_lowers_f1(pair: tuple[Any, Any]) -> None:
    """Whatever the assignment, it is still there after the repair, and has one leaf more that is right."""
    truth, output = pair
    for align, plan in PLANS.items():
        before = f1(align, truth, output)
        for row in compare(truth, output, plan):
            if row.outcome != "right":
                assert f1(align, truth, repairs(row, output)) >= before - 1e-9, align


def spoilt(value: Any, plan: FieldPlan) -> list[Any]:
    """The value with, in each in turn: a leaf made wrong, a key invented in an object, an item added to an array."""
    found = [put(value, at, NOVEL) for _, at, _ in leaves(value, plan)]
    stack: list[tuple[Any, ...]] = [()]
    while stack:
        at = stack.pop()
        part = value
        for step in at:
            part = part[step]
        if isinstance(part, dict):
            found.append(put(value, (*at, "invented"), NOVEL))
            stack += [(*at, key) for key in part]
        elif isinstance(part, list):
            found.append(put(value, at, [*part, NOVEL]))
            stack += [(*at, index) for index in range(len(part))]
    return found


@quick
@given(pair=pairs)
def test_what_stands_in_no_truth_never_raises_a_score(pair: tuple[Any, Any]) -> None:
    """«In no truth»: a leaf wrong where it stands may be right in another item, and then rightly raises the score."""
    truth, output = pair
    for align, plan in PLANS.items():
        before = {name: score(name, align, truth, output) for name in OF_ACCURACY}
        for worse in spoilt(output, plan):
            for name, known in before.items():
                after = score(name, align, truth, worse)
                assert known is None or after is None or after <= known + 1e-9, (align, name, worse)
