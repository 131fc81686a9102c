"""One side of a comparison: what its arrays' items are known by, and that it is worked out once."""

from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule
from skill_evaluator.metrics.base import truth_side

from tests.support.json_values import order_plan


def test_items_are_counted_by_array_path_and_arrays_inside_items_are_pooled() -> None:
    value = {"lines": [{"sku": "x", "marks": ["p", "q"]}, {"sku": " x", "marks": ["p"]}, {"qty": 1}, {"qty": 1}]}
    counts = truth_side(value, order_plan("key")).item_counts
    assert {path: sorted(of_path.values()) for path, of_path in counts.items()} == {
        "lines": [2, 2],  # by key; the two without one by the whole of them
        "lines[].marks": [1, 2],
    }


def test_what_is_compared_as_a_whole_has_no_arrays() -> None:
    assert truth_side({"a": [1]}, FieldPlan(leaves={"a": FieldRule(compare="exact")})).item_counts == {}


def test_an_array_is_worked_out_once() -> None:
    value = {"lines": [{"sku": "x"}]}
    plan = order_plan("key")
    side, field, rule = truth_side(value, plan), plan.field("lines"), plan.array("lines", [])
    assert side.identities(value["lines"], rule, field) is side.identities(value["lines"], rule, field)
    assert side.leaves(value["lines"], field) is side.leaves(value["lines"], field)
    assert side.item_counts is side.item_counts


def test_the_text_of_an_item_is_that_of_its_equals_and_knows_no_order_where_there_is_none() -> None:
    items = [
        {"id": 1.0, "note": None}, {"id": 1}, {"id": True},
        {"tags": ["a", "b"], "id": "1"}, {"id": "1", "tags": ["b", "a"]},
        {"steps": [1, 2]}, {"steps": [2, 1]},
    ]  # fmt: skip
    plan = order_plan("best")
    side = truth_side(items, plan)
    number, same, truth, tags, same_tags, steps, other_steps = (side.text(item, plan.field("")) for item in items)
    assert number == same != truth
    assert tags == same_tags
    assert steps != other_steps
