"""Aligned items and the outcome of every leaf, by hand."""

from typing import Any

import pytest
from skill_evaluator.comparing import comparison
from skill_evaluator.comparing.comparison import LeafOutcome, compare
from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule

from tests.metrics.orders import order_plan

R: LeafOutcome = "right"
W: LeafOutcome = "wrong"
M: LeafOutcome = "missing"
X: LeafOutcome = "extra"


def verdicts(truth: Any, output: Any, plan: FieldPlan) -> list[tuple[str, LeafOutcome]]:
    return [(row.path, row.outcome) for row in compare(truth, output, plan)]


@pytest.mark.parametrize(
    ("truth", "output", "expected"),
    [
        ({"a": 1}, {"a": 1.0}, [("a", R)]),
        ({"a": 1, "b": 2}, {"b": 3, "a": 1}, [("a", R), ("b", W)]),
        ({"a": 1}, {}, [("a", M)]),
        ({}, {"a": 1}, [("a", X)]),
        # null is absent
        ({"a": None}, {}, []),
        ({}, {"a": None}, []),
        ({"a": None}, {"a": 1}, [("a", X)]),
        ({"a": 1}, {"a": None}, [("a", M)]),
        (None, None, []),
        # a missing object or array is its leaves missing
        ({"a": {"b": 1, "c": None}}, {}, [("a.b", M)]),
        ({"a": {"b": 1}}, {"a": None}, [("a.b", M)]),
        ({}, {"a": [1, 2]}, [("a[]", X), ("a[]", X)]),
        ({"a": []}, {}, []),
        ({"a": {}}, {"a": []}, []),
        # another kind of value: the one is missing, the other extra
        ({"a": {"b": 1}}, {"a": 5}, [("a.b", M), ("a", X)]),
        ({"a": [1]}, {"a": {"b": 1}}, [("a[]", M), ("a.b", X)]),
        ({"a": "1"}, {"a": 1}, [("a", W)]),
        # without a schema: scalars as a multiset, objects by the best assignment
        ({"a": ["x", "y", "y"]}, {"a": ["y", "x", "z"]}, [("a[]", R), ("a[]", R), ("a[]", M), ("a[]", X)]),
        ({"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 2}, {"b": 1}]}, [("a[].b", R), ("a[].b", R)]),
        ([1, 2], [2], [("[]", M), ("[]", R)]),
        (5, 5, [("", R)]),
        ("x", {"a": 1}, [("", M), ("a", X)]),
    ],
)
def test_leaves_are_compared_without_a_schema(truth: Any, output: Any, expected: list[tuple[str, LeafOutcome]]) -> None:
    assert verdicts(truth, output, FieldPlan()) == expected


def line(sku: Any, qty: Any = None) -> dict[str, Any]:
    return {"sku": sku, "qty": qty}


SKU, QTY = "lines[].sku", "lines[].qty"


@pytest.mark.parametrize(
    ("align", "truth", "output", "expected"),
    [
        # by key: wherever it stands, whatever else it says
        ("key", [line("x", 1), line("y", 2)], [line("y", 2), line("x", 9)], [(SKU, R), (QTY, W), (SKU, R), (QTY, R)]),
        ("key", [line("x", 1)], [line("z", 1)], [(SKU, M), (QTY, M), (SKU, X), (QTY, X)]),
        ("key", [line(" x")], [line("x")], [(SKU, R)]),
        # a key that is missing on both sides is a key like any other
        ("key", [line(None, 1)], [line(None, 1)], [(QTY, R)]),
        ("key", [line("x", 1)], [line(None, 1)], [(SKU, M), (QTY, M), (QTY, X)]),
        # a key used twice: which is which is decided by the other fields, and what is left over is missing or extra
        ("key", [line("x", 1), line("x", 2)], [line("x", 2), line("x", 1)], [(SKU, R), (QTY, R)] * 2),
        ("key", [line("x", 1), line("x", 2)], [line("x", 2)], [(SKU, M), (QTY, M), (SKU, R), (QTY, R)]),
        ("key", [line("x", 2)], [line("x", 1), line("x", 2)], [(SKU, R), (QTY, R), (SKU, X), (QTY, X)]),
        # best: the assignment with most right leaves; of equals, the one nearest to the order given
        ("best", [line("x", 1), line("y", 2)], [line("y", 2), line("x", 1)], [(SKU, R), (QTY, R)] * 2),
        ("best", [line("x", 1), line("y", 2)], [line("z", 2)], [(SKU, M), (QTY, M), (SKU, W), (QTY, R)]),
        ("best", [line("x")], [line("a"), line("x"), line("b")], [(SKU, R), (SKU, X), (SKU, X)]),
        ("best", [line("a"), line("b")], [line("c"), line("d")], [(SKU, W), (SKU, W)]),
        ("best", [], [line("x")], [(SKU, X)]),
        ("best", [line("x")], [], [(SKU, M)]),
        # ordered: place by place
        ("ordered", [line("x"), line("y")], [line("y"), line("x")], [(SKU, W), (SKU, W)]),
        ("ordered", [line("x"), line("y")], [line("x")], [(SKU, R), (SKU, M)]),
        ("ordered", [line("x")], [line("y"), line("x")], [(SKU, W), (SKU, X)]),
        # set: the whole item or nothing
        ("set", [line("x", 1), line("y")], [line("y"), line("x", 1)], [(SKU, R), (QTY, R), (SKU, R)]),
        ("set", [line("x", 1)], [line("x", 2)], [(SKU, M), (QTY, M), (SKU, X), (QTY, X)]),
        ("set", [line("x"), line("x")], [line("x")], [(SKU, R), (SKU, M)]),
        ("set", [line("x", 1)], [{"qty": 1.0, "sku": "x", "price": None}], [(SKU, R), (QTY, R)]),
    ],
)
def test_items_are_paired_by_each_alignment(
    align: str, truth: list[Any], output: list[Any], expected: list[tuple[str, LeafOutcome]]
) -> None:
    assert verdicts({"lines": truth}, {"lines": output}, order_plan(align)) == expected


def test_items_other_than_objects_have_no_key() -> None:
    assert verdicts({"lines": [line("x")]}, {"lines": ["x"]}, order_plan("key")) == [(SKU, M), ("lines[]", X)]


def test_key_of_two_fields_requires_both() -> None:
    plan = order_plan("best", lines=FieldRule(align="key", key=("sku", "qty")))
    found = verdicts({"lines": [line("x", 1), line("x", 2)]}, {"lines": [line("x", 2), line("x", 3)]}, plan)
    assert found == [(SKU, M), (QTY, M), (SKU, R), (QTY, R), (SKU, X), (QTY, X)]


def test_keys_are_compared_by_their_rule() -> None:
    plan = order_plan("key", lines__sku=FieldRule(compare="string", casefold=True))
    assert verdicts({"lines": [line("x", 1)]}, {"lines": [line("X", 1)]}, plan) == [(SKU, R), (QTY, R)]


def test_scalars_with_a_tolerance_are_assigned() -> None:
    plan = order_plan("best", tags__=FieldRule(compare="string", threshold=0.6))
    assert verdicts({"tags": ["one", "three"]}, {"tags": ["threo", "onx"]}, plan) == [("tags[]", R), ("tags[]", R)]


def test_weight_decides_the_best_assignment() -> None:
    plan = order_plan("best", lines__qty=FieldRule(weight=3))
    found = verdicts({"lines": [line("x", 1)]}, {"lines": [{"sku": "x"}, {"qty": 1}]}, plan)
    assert found == [(SKU, M), (QTY, R), (SKU, X)]


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ({"lines": FieldRule(compare="ignore")}, [("id", R)]),
        ({"lines": FieldRule(compare="exact")}, [("id", R), ("lines", W)]),
        ({"lines__qty": FieldRule(compare="ignore")}, [("id", R), (SKU, R)]),
        ({"lines": FieldRule(align="best")}, [("id", R), (SKU, R), (QTY, W)]),
    ],
)
def test_a_subtree_may_be_ignored_or_compared_as_a_whole(
    declared: dict[str, FieldRule], expected: list[tuple[str, LeafOutcome]]
) -> None:
    truth = {"id": "1", "lines": [line("x", 1)]}
    output = {"id": "1", "lines": [line("x", 2)]}
    assert verdicts(truth, output, order_plan("best", **declared)) == expected


def test_an_ignored_object_is_ignored_with_everything_in_it() -> None:
    plan = FieldPlan(leaves={"meta": FieldRule(compare="ignore")})
    assert verdicts({"a": 1, "meta": {"x": 1}}, {"a": 1, "meta": {"y": [2]}}, plan) == [("a", R)]


def places(truth: Any, output: Any, plan: FieldPlan) -> list[tuple[Any, Any]]:
    return [(row.truth_at, row.output_at) for row in compare(truth, output, plan)]


def test_a_row_says_where_its_values_stand() -> None:
    truth = {"id": "1", "lines": [line("x", 1), line("y")], "total": None}
    output = {"lines": [line("z"), line("y"), line("x", 2)], "total": 3}
    assert places(truth, output, order_plan("key")) == [
        (("id",), None),
        (("lines", 0, "sku"), ("lines", 2, "sku")),
        (("lines", 0, "qty"), ("lines", 2, "qty")),
        (("lines", 1, "sku"), ("lines", 1, "sku")),
        (None, ("lines", 0, "sku")),
        (("total",), ("total",)),
    ]
    assert places(1, 2, FieldPlan()) == [((), ())]
    assert places([[1], [2]], [[2]], FieldPlan()) == [((0, 0), None), ((1, 0), (0, 0))]


def test_items_without_a_key_are_paired_by_their_other_fields() -> None:
    truth = [line(None, 1), line(None, 2), line("x", 3)]
    output = [line(None, 2), line("y", 1), line(None, 1), line(None, 3)]
    rows = compare({"lines": truth}, {"lines": output}, order_plan("key"))
    met = [(row.truth_at and row.truth_at[1], row.output_at and row.output_at[1], row.outcome) for row in rows]
    assert met == [(0, 2, R), (1, 0, R), (None, 3, X), (2, None, M), (2, None, M), (None, 1, X), (None, 1, X)]


def test_key_of_two_fields_may_have_a_missing_field() -> None:
    plan = order_plan("best", lines=FieldRule(align="key", key=("sku", "qty")))
    assert verdicts({"lines": [line("x"), line(None, 1)]}, {"lines": [line(None, 1), line("x")]}, plan) == [
        (SKU, R),
        (QTY, R),
    ]


def test_items_in_place_of_a_null_keep_their_own_places() -> None:
    extra = [(None, ("lines", index)) for index in range(2)]
    assert places({"lines": None}, {"lines": ["a", "b"]}, FieldPlan()) == extra
    assert places({"lines": None}, {"lines": "a"}, FieldPlan()) == [(("lines",), ("lines",))]


def test_object_keys_are_matched_in_nfc() -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    truth, output = {composed: {"b": 1}, "a": 1}, {"a": 1, decomposed: {"b": 1}}
    rows = compare(truth, output, FieldPlan(leaves={f"{composed}.b": FieldRule(compare="number", weight=2)}))
    assert [(row.path, row.rule.weight, row.truth_at, row.output_at) for row in rows] == [
        (f"{composed}.b", 2, (composed, "b"), (decomposed, "b")),
        ("a", 1, ("a",), ("a",)),
    ]
    both = {composed: 1, decomposed: 2}  # two keys all the same
    assert places(both, dict(reversed(both.items())), FieldPlan()) == [((key,), (key,)) for key in both]


def test_identities_are_canonical_keys_or_whole_items() -> None:
    plan = order_plan("key", lines__sku=FieldRule(compare="string", casefold=True))
    items = [line("X", 1), line(" x", 2), line(None), "x"]
    assert comparison.identities(items, plan.field("lines"), plan.arrays["lines"]) == [("x",), ("x",), (None,), (None,)]
    one, other = comparison.identities([{"a": 1, "b": None}, {"a": 1.0}], plan.field("lines"), FieldRule(align="set"))
    assert one == other


def test_text_of_a_value_ignores_the_order_of_keys_and_of_unordered_items() -> None:
    texts = {}
    for align in ("set", "ordered"):
        plan = FieldPlan(arrays={"a": FieldRule(align=align)})
        values = ({"a": [1, 2], "b": None, "c": 3}, {"c": 3, "a": [2, 1.0]})
        texts[align] = [comparison.text_of(value, plan.field("")) for value in values]
    assert texts["set"][0] == texts["set"][1]
    assert texts["ordered"][0] != texts["ordered"][1]


def test_item_counts_pool_arrays_inside_items() -> None:
    value = {"lines": [{"sku": "x", "marks": ["p", "q"]}, {"sku": " x", "marks": ["p"]}, {"qty": 1}, {"qty": 1}]}
    counts = comparison.MemoizedValue(value, order_plan("key")).item_counts
    assert {path: sorted(of_path.values()) for path, of_path in counts.items()} == {
        "lines": [2, 2],  # by key; the two without one by the whole of them
        "lines[].marks": [1, 2],
    }
    assert comparison.MemoizedValue({"a": [1]}, FieldPlan(leaves={"a": FieldRule(compare="exact")})).item_counts == {}


def test_values_by_path_have_array_lengths() -> None:
    value = {"id": "1", "tags": ["b", "a", "a "], "lines": [{"marks": ["p"]}, {}]}
    assert comparison.values_by_path(value, order_plan("key")) == (
        {"id": "1", "tags[]": {("a", 2), ("b", 1)}, "lines[].marks[]": "p"},
        {"tags": 3, "lines": 2, "lines[].marks": 1},
    )
