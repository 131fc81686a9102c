"""A value as tokens, by hand: which leaves are the same token, what waits for its partner, and what is noted beside."""

from typing import Any

import pytest
from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule
from skill_evaluator.comparing.forms import Leaves
from skill_evaluator.comparing.leaves import Lexicon, values_by_path

from tests.support.json_values import order_plan

NESTED = FieldPlan(
    arrays={
        "a": FieldRule(align="key", key=("k",)),
        "a[].b": FieldRule(align="key", key=("k",)),
        "a[].c": FieldRule(align="best"),
    }
)


def shared(one: Any, other: Any, plan: FieldPlan) -> int:
    """How many tokens two values have in common."""
    lexicon = Lexicon(plan)
    return len(set(lexicon.leaves(one).tokens) & set(lexicon.leaves(other).tokens))


@pytest.mark.parametrize(
    ("align", "one", "other", "expected"),
    [
        ("key", {"id": "A", "total": 1}, {"id": " A", "total": 1.0, "paid": True}, 2),
        ("key", {"id": "A"}, {"note": "A"}, 0),  # another place
        ("key", {"tags": ["a", "b", "b"]}, {"tags": ["b", "a", "a"]}, 2),
        ("key", {"steps": [1, 2]}, {"steps": [2, 1]}, 0),
        ("key", {"lines": [{"sku": "x", "qty": 1}]}, {"lines": [{"sku": "y"}, {"sku": "x", "qty": 1}]}, 2),
        ("key", {"lines": [{"sku": "x", "qty": 1}]}, {"lines": [{"sku": "y", "qty": 1}]}, 0),
        ("best", {"lines": [{"sku": "x"}]}, {"lines": [{"sku": "x"}]}, 0),  # waits for its partner
        ("key", {"total": None}, {"total": None}, 0),
    ],
)
def test_equal_leaves_in_the_same_place_are_one_token(align: str, one: Any, other: Any, expected: int) -> None:
    assert shared(one, other, order_plan(align)) == expected


def sizes(leaves: Leaves) -> list[list[int]]:
    return [[len(item.tokens) for item in items] for items in leaves.groups.values()]


def test_only_items_of_the_same_key_wait_for_their_partner() -> None:
    lines = [{"sku": "x", "qty": 1}, {"sku": "y"}, {"sku": "x"}]
    leaves = Lexicon(order_plan("key")).leaves({"id": "1", "lines": lines})
    assert (len(leaves.tokens), sizes(leaves), leaves.weight) == (2, [[2, 1]], 5.0)


def test_the_only_item_of_its_key_can_be_taken_out_again_with_all_that_is_in_it() -> None:
    lexicon = Lexicon(NESTED)
    item = {"k": 1, "b": [{"k": 1}, {"k": 2, "v": 3}], "c": [{"v": 1}, {"v": 2}]}
    once, twice = lexicon.leaves({"a": [{"k": 0}, item]}), lexicon.leaves({"a": [item, item]})
    (place,) = twice.groups
    (alone,) = once.at(place)
    assert (len(alone.tokens), sizes(alone), alone.weight) == (4, [[1, 1]], 6.0)
    assert set(alone.tokens) == set(twice.at(place)[0].tokens)
    assert twice.groups[place][0] is twice.groups[place][1]  # equal items are one object
    assert lexicon.leaves({}).at(place) == []


def test_closeness_is_noted_once_more_and_bars_equal_items_from_meeting_first() -> None:
    plan = order_plan("best", lines__price=FieldRule(compare="number", tolerance=0.005))
    exact, close = Lexicon(plan).items([{"sku": "x"}, {"sku": "x", "price": 1}], plan.field("lines"))
    assert (exact.transitive, len(exact.near), close.transitive, len(close.near)) == (True, 0, False, 1)


def test_the_outline_of_a_value() -> None:
    lexicon = Lexicon(order_plan("key"))
    outline = lexicon.outline({"id": "1", "tags": ["b", "a", "a"], "lines": [{"marks": ["p"]}, {}]})
    assert outline.lengths == {"tags": 3, "lines": 2, "lines[].marks": 1}
    assert {path: lexicon.canonical(forms) for path, forms in outline.forms.items()} == {
        "id": frozenset({("1", 1)}),
        "tags[]": frozenset({("a", 2), ("b", 1)}),
        "lines[].marks[]": frozenset({("p", 1)}),
    }


def test_canonical_values_are_the_same_whatever_they_were_read_with() -> None:
    plan = order_plan("best")
    assert values_by_path({"tags": ["a ", "b"]}, plan) == values_by_path({"tags": ["b", "a"]}, plan)
    assert values_by_path({"tags": ["a", "a"]}, plan) != values_by_path({"tags": ["a"]}, plan)
