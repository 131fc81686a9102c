"""Orders that fit one small schema under any alignment rule, and comparisons and answers of such values."""

import json
import random
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st
from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule, plan_fields
from skill_evaluator.library.contract import Contract
from skill_evaluator.metrics.accuracy import Comparison
from skill_evaluator.metrics.agreement import CaseOutputs
from skill_evaluator.text import canonical_json

ORDER_SCHEMA: Mapping[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "total": {"type": ["number", "null"]},
        "paid": {"type": "boolean"},
        "day": {"type": "string", "format": "date"},
        "kind": {"enum": ["sale", "refund", None]},
        "note": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "steps": {"type": "array", "items": {"type": "integer"}},
        "lines": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "sku": {"type": ["string", "null"]},
                    "qty": {"type": "integer"},
                    "price": {"type": "number"},
                    "marks": {"type": "array", "items": {"type": "string"}},
                },
            },
        },
    },
}
ALIGNMENTS: Mapping[str, FieldRule] = {
    "key": FieldRule(align="key", key=("sku",)),
    "best": FieldRule(align="best"),
    "ordered": FieldRule(align="ordered"),
    "set": FieldRule(align="set"),
}

_line = st.fixed_dictionaries(
    {"sku": st.sampled_from(["x", "y", "z", None])},
    optional={
        "qty": st.integers(0, 2),
        "price": st.sampled_from([1, 1.0, 1.004, 2.5]),
        "marks": st.lists(st.sampled_from("pq"), max_size=2),
    },
)
orders = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from(["A 1", "a  1", "B"]),
        "total": st.sampled_from([None, 9, 9.0, 9.004, 10]),
        "paid": st.booleans(),
        "day": st.sampled_from(["2024-01-02", "2024-01-03"]),
        "kind": st.sampled_from(["sale", "refund", None]),
        "note": st.sampled_from(["as agreed", "as we agreed", ""]),
        "tags": st.lists(st.sampled_from("abc"), max_size=3),
        "steps": st.lists(st.integers(1, 3), max_size=3),
        "lines": st.lists(_line, max_size=3),
    },
)
_conforms = Contract(ORDER_SCHEMA, "order").conforms


def order_plan(align: str, **declared: FieldRule) -> FieldPlan:
    """The plan of an order whose lines align by one rule; further fields as declared (`lines__price` for a path)."""
    fields = {name.replace("__", "[].").removesuffix("."): rule for name, rule in declared.items()}
    return plan_fields(
        ORDER_SCHEMA,
        {
            "lines": ALIGNMENTS[align],
            "steps": FieldRule(align="ordered"),
            "total": FieldRule(compare="number", tolerance=0.005),
            "note": FieldRule(compare="text"),
            **fields,
        },
        "datasets.json",
    )


def comparison(truth: Any, output: Any, plan: FieldPlan | None = None) -> Comparison:
    """A comparison as the scorer makes it; without a plan there is no schema, so that every value is valid."""
    return Comparison(truth, output, plan or FieldPlan(), plan is None or _conforms(output))


def answers(*outputs: Any, plan: FieldPlan | None = None, unparseable: int = 0) -> CaseOutputs:
    """The answers to one case: parsed outputs, each as its own text, and so many that could not be parsed."""
    found = CaseOutputs(plan or FieldPlan())
    for output in outputs:
        found.add(json.dumps(output), canonical_json(output))
    for index in range(unparseable):
        found.add(f"no JSON {index}", None)
    return found


def reordered(value: Any, plan: FieldPlan, seed: int, *, below_items: bool) -> Any:
    """The same value with object keys in another order, and the items of arrays without order, too.

    With `below_items` also the arrays inside array items, unless the items are compared as a whole (`set`).
    """
    return _reordered(value, plan, "", random.Random(seed), below_items, move_items=True)


def _reordered(value: Any, plan: FieldPlan, path: str, dice: random.Random, below_items: bool, move_items: bool) -> Any:
    if isinstance(value, dict):
        keys = dice.sample(list(value), len(value))
        return {
            key: _reordered(value[key], plan, f"{path}.{key}" if path else key, dice, below_items, move_items)
            for key in keys
        }
    if isinstance(value, list):
        rule = plan.field(path).array_rule(*value)
        below = move_items and below_items and rule.align != "set"
        items = [_reordered(item, plan, f"{path}[]", dice, below_items, below) for item in value]
        return dice.sample(items, len(items)) if move_items and rule.align != "ordered" else items
    return value
