"""Laws of alignment and of the scores, on orders that keep the schema, on ones that break it, and on any JSON.

What one truth and one answer say must not hang on how either is written; a mistake must cost, its repair must pay.
"""

import copy
import unicodedata
from collections import Counter
from collections.abc import Mapping
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from skill_evaluator.comparing.comparison import ComparedLeaf, compare
from skill_evaluator.comparing.field_plan import FieldPlan
from skill_evaluator.metrics import METRICS
from skill_evaluator.text import canonical_json

from tests.metrics.orders import ALIGNMENTS, comparison, order_plan, orders
from tests.support.json_values import json_values, quick, thorough

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


def score(name: str, align: str, truth: Any, output: Any) -> float | None:
    return METRICS[name].score(comparison(truth, output, PLANS[align]))


def f1(align: str, truth: Any, output: Any) -> float:
    found = score("field_level_f1", align, truth, output)
    assert found is not None
    return found


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
def test_every_leaf_is_in_exactly_one_row_with_its_path(pair: tuple[Any, Any]) -> None:
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
        assert all((row.truth is None) == (row.outcome == "extra") for row in rows), align
        assert all(row.truth_at is not None for row in rows if row.outcome != "extra"), align
        assert all((row.output is None, row.output_at is None) == (row.outcome == "missing",) * 2 for row in rows), (
            align
        )


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
def test_correcting_a_mistake_never_lowers_f1(pair: tuple[Any, Any]) -> None:
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
def test_invented_value_never_raises_a_score(pair: tuple[Any, Any]) -> None:
    """«In no truth»: a leaf wrong where it stands may be right in another item, and then rightly raises the score."""
    truth, output = pair
    for align, plan in PLANS.items():
        before = {name: score(name, align, truth, output) for name in OF_ACCURACY}
        for worse in spoilt(output, plan):
            for name, known in before.items():
                after = score(name, align, truth, worse)
                assert known is None or after is None or after <= known + 1e-9, (align, name, worse)
