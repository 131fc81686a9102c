"""Accuracy metrics on small values, computed by hand."""

import sys
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule
from skill_evaluator.metrics import accuracy
from skill_evaluator.metrics.accuracy import checks, exact_match, field_level_f1, jaccard, pass_hat_k, schema_valid
from skill_evaluator.metrics.tree_similarity import tree_similarity

from tests.metrics.orders import comparison, order_plan
from tests.support.components import component
from tests.support.json_values import thorough


@pytest.mark.parametrize(
    ("scored", "expected"),
    [
        ([(1.0, 1.0), (3.0, 0.0)], 0.25),
        ([(1.0, 0.5)], 0.5),
        ([(1.0, 1.0), (9.0, None)], None),  # one was not measured
        ([], None),
    ],
)
def test_share_of_passed_checks(scored: Sequence[tuple[float, float | None]], expected: float | None) -> None:
    assert checks(accuracy.Comparison(None, "ok", checks=scored)) == expected


def test_exact_match_is_1_for_equal_json_values() -> None:
    assert exact_match(comparison({"a": 1, "b": None}, {"a": 1.0})) == 1.0
    assert exact_match(comparison([1, 2], [2, 1])) == 0.0


def test_exact_match_ignores_field_rules() -> None:
    plan = FieldPlan(leaves={"a": FieldRule(compare="string", casefold=True), "b": FieldRule(compare="ignore")})
    assert exact_match(comparison({"a": "x"}, {"a": "X"}, plan)) == 0.0
    assert exact_match(comparison({"b": 1}, {"b": 2}, plan)) == 0.0


PERFECT = {"id": "A", "paid": True, "tags": ["a", "b"], "lines": [{"sku": "x", "qty": 1}, {"sku": "y", "qty": 2}]}


@pytest.mark.parametrize(
    ("truth", "output", "expected"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, 2 * 1 / 4),  # wrong: costs precision and recall
        ({"a": 1, "b": 2}, {"a": 1}, 2 * 1 / 3),  # missing: costs recall
        ({"a": 1}, {"a": 1, "b": 2}, 2 * 1 / 3),  # extra: costs precision
        ({"a": 1, "b": None}, {"a": 1}, 1),
        ({"a": 1}, None, 0),
        ({}, {}, 1),
        (None, None, 1),
        ({"a": None}, [], 1),  # neither has a leaf
    ],
)
def test_field_level_f1_without_a_schema(truth: Any, output: Any, expected: float) -> None:
    assert field_level_f1(comparison(truth, output)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("align", "output", "expected"),
    [
        ("ordered", {**PERFECT, "lines": PERFECT["lines"][::-1]}, 2 * 4 / 16),
        # one of the 8 leaves wrong; under `set` its whole item is lost
        ("key", {**PERFECT, "lines": [{"sku": "x", "qty": 9}, {"sku": "y", "qty": 2}]}, 2 * 7 / 16),
        ("best", {**PERFECT, "lines": [{"sku": "x", "qty": 9}, {"sku": "y", "qty": 2}]}, 2 * 7 / 16),
        ("set", {**PERFECT, "lines": [{"sku": "x", "qty": 9}, {"sku": "y", "qty": 2}]}, 2 * 6 / 16),
        # the key wrong: by key nothing of that item is found
        ("key", {**PERFECT, "lines": [{"sku": "z", "qty": 1}, {"sku": "y", "qty": 2}]}, 2 * 6 / 16),
        ("best", {**PERFECT, "lines": [{"sku": "z", "qty": 1}, {"sku": "y", "qty": 2}]}, 2 * 7 / 16),
    ],
)
def test_field_level_f1_by_alignment(align: str, output: Any, expected: float) -> None:
    assert field_level_f1(comparison(PERFECT, output, order_plan(align))) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("note", "output", "expected"),
    [
        # free text without a threshold stays out, right or wrong
        (FieldRule(compare="text"), {"id": "A", "note": "something else"}, 1),
        (FieldRule(compare="text"), {"id": "A"}, 1),
        (FieldRule(compare="text"), {"id": "B", "note": "the cat sat"}, 0),
        # with one it counts from there
        (FieldRule(compare="text", threshold=0.6), {"id": "A", "note": "the cat ran"}, 1),
        (FieldRule(compare="text", threshold=0.7), {"id": "A", "note": "the cat ran"}, 2 * 1 / 4),
        (FieldRule(compare="text", threshold=0.7), {"id": "A"}, 2 * 1 / 3),
        (FieldRule(compare="ignore"), {"id": "A", "note": "something else"}, 1),
        # a weight counts a leaf so many times, 0 not at all
        (FieldRule(compare="string", weight=3), {"id": "A", "note": "x"}, 2 * 1 / 8),
        (FieldRule(compare="string", weight=3), {"id": "B", "note": "the cat sat"}, 2 * 3 / 8),
        (FieldRule(compare="string", weight=3), {"id": "A"}, 2 * 1 / 5),
        (FieldRule(compare="string", weight=0), {"id": "A", "note": "x"}, 1),
    ],
)
def test_field_level_f1_counts_fields_by_weight_and_threshold(note: FieldRule, output: Any, expected: float) -> None:
    plan = order_plan("best", note=note)
    assert field_level_f1(comparison({"id": "A", "note": "the cat sat"}, output, plan)) == pytest.approx(expected)


KEYED_LINES = FieldPlan(arrays={"lines": FieldRule(align="key", key=("sku",))})


@pytest.mark.parametrize(
    ("truth", "output", "expected"),
    [
        ({"a": [1, 2]}, {"a": [2, 1.0]}, 1),
        ({"a": []}, {}, 1),
        ({}, {"a": ["x"]}, 0),
        ({"a": ["x"]}, {"a": "x"}, 0),
        ({"a": 1}, {"a": 2}, None),  # no array anywhere
        (None, None, None),
        # the mean over arrays, however long
        ({"a": [1, 2], "b": [1, 2, 3, 4]}, {"a": [1, 2], "b": [1]}, (1 + 1 / 4) / 2),
        # items that are objects: the whole object, keys in any order, null absent
        ({"a": [{"k": 1, "v": 2}]}, {"a": [{"v": 2.0, "k": 1, "w": None}]}, 1),
        ({"a": [{"k": 1, "v": 2}, {"k": 2}]}, {"a": [{"k": 1, "v": 3}, {"k": 2}]}, 1 / 3),
        # arrays inside items are pooled by path: `a` has 1 of 3 items, `a[].b` 3 of 5
        ({"a": [{"b": [1, 2]}, {"b": [3, 4]}]}, {"a": [{"b": [1, 2]}, {"b": [3, 5]}]}, (1 / 3 + 3 / 5) / 2),
    ],
)
def test_jaccard_without_a_schema(truth: Any, output: Any, expected: float | None) -> None:
    found = jaccard(comparison(truth, output))
    assert found == expected or found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("truth", "output", "expected"),
    [
        ([{"sku": "x", "qty": 1}], [{"sku": "x", "qty": 9}], 1),  # the key is all that counts
        ([{"sku": "x"}, {"sku": "y"}], [{"sku": "y"}, {"sku": "z"}], 1 / 3),
        ([{"sku": "x"}, {"sku": "x"}], [{"sku": "x"}], 1 / 2),
        ([{"sku": "x"}], [{}], 0),
        # an item without a key is known by the whole of it
        ([{"qty": 1}, {"qty": 2}], [{"qty": 1}, {"sku": None, "qty": 3}], 1 / 3),
        ([{"qty": 1}, "x"], [{"qty": 1.0}, "x"], 1),
        ([], [], 1),
    ],
)
def test_jaccard_identifies_items_by_their_key(truth: Any, output: Any, expected: float) -> None:
    assert jaccard(comparison({"lines": truth}, {"lines": output}, KEYED_LINES)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("truth", "output", "expected"),
    [
        ({"tags": ["a"]}, {"tags": ["b"]}, 0),
        ({"tags": ["a"], "steps": [], "lines": []}, {"tags": []}, 0),
        ({"tags": ["a", "b"], "steps": [1]}, {"tags": ["a"], "steps": [1], "lines": []}, (1 / 2 + 1) / 2),
        ({"tags": []}, {"lines": [{"marks": []}]}, 0),
        ({"tags": []}, {"steps": []}, 1),
        ({}, {}, 1),
    ],
)
def test_jaccard_skips_arrays_that_are_empty_on_both_sides(truth: Any, output: Any, expected: float) -> None:
    plan = order_plan("best")  # tags, steps, lines and lines[].marks
    assert jaccard(comparison(truth, output, plan)) == pytest.approx(expected)


def test_jaccard_compares_items_by_their_rule() -> None:
    plan = FieldPlan(
        leaves={"a[]": FieldRule(compare="string", casefold=True)}, arrays={"a": FieldRule(align="ordered")}
    )
    assert jaccard(comparison({"a": ["X", "y"]}, {"a": ["Y", "x"]}, plan)) == 1.0


def test_jaccard_is_undefined_for_ignored_arrays() -> None:
    plan = FieldPlan(leaves={"meta": FieldRule(compare="ignore")})
    assert jaccard(comparison({"meta": [1]}, {"meta": [2]}, plan)) is None


def test_jaccard_pools_arrays_of_a_declared_star_path() -> None:
    plan = FieldPlan(arrays={"by.*": FieldRule(align="set")})
    truth, output = {"by": {"a": [1, 2], "b": [3]}}, {"by": {"a": [1], "c": [3]}}
    assert jaccard(comparison(truth, output, plan)) == pytest.approx(2 / 3)
    assert jaccard(comparison(truth, output)) == pytest.approx((1 / 2 + 0 + 0) / 3)


@thorough
@given(outcomes=st.lists(st.booleans(), max_size=7), k=st.integers(1, 7))
def test_pass_hat_k_is_the_share_of_draws_that_succeed(outcomes: list[bool], k: int) -> None:
    draws = [all(draw) for draw in combinations(outcomes, k)]
    expected = sum(draws) / len(draws) if draws else None
    assert pass_hat_k(sum(outcomes), len(outcomes), k) == (expected if expected is None else pytest.approx(expected))


TUPLE = {"type": "array", "items": [{"type": "string"}]}


@pytest.mark.parametrize(
    ("schema", "output", "expected"),
    [
        ({"type": "object", "required": ["a"]}, {"a": None}, 1.0),  # present: validity is not a comparison
        # an array of schemas in `items` is by place in draft 7
        ({"$schema": "http://json-schema.org/draft-07/schema#", **TUPLE}, ["x", 5], 1.0),
        ({"$schema": "http://json-schema.org/draft-07/schema#", **TUPLE}, [5], 0.0),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema", "prefixItems": [{"type": "string"}]}, [5], 0.0),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "prefixItems": [{"type": "string"}]}, [5], 1.0),
    ],
)
def test_schema_valid_follows_the_draft_of_the_schema(
    tmp_path: Path, schema: Any, output: Any, expected: float
) -> None:
    skill = component(tmp_path, schema=schema)
    comparison = accuracy.Comparison(None, output, skill.scoring.plan, skill.contract.conforms(output))
    assert schema_valid(comparison) == expected


def test_schema_valid_is_1_without_a_schema(tmp_path: Path) -> None:
    skill = component(tmp_path, prompt="---\nversion: 1.0.0\noutput: text\n---\nSay.\n", schema=None)
    comparison = accuracy.Comparison(None, "anything", skill.scoring.plan, skill.contract.conforms("anything"))
    assert schema_valid(comparison) == 1.0


DEEPEST = 2 * sys.getrecursionlimit()


def similarity(truth: Any, output: Any) -> float | None:
    return tree_similarity(comparison(truth, output))


@pytest.mark.parametrize(
    ("truth", "output", "distance", "nodes"),
    [
        ({"a": [1, 2, 3]}, {"b": [1, 2, 3]}, 1, 5 + 5),  # another key is one relabelling, whatever is below it
        ([1, 2], [2, 1], 2, 3 + 3),  # items are ordered
        ({"a": 1}, {"a": "1"}, 1, 2 + 2),
        ({"e\u0301": "e\u0301"}, {"é": "é"}, 0, 2 + 2),
        ({"a": 1, "b": None}, {"a": 1}, 0, 2 + 2),  # a null member is absent
        ([1, None], [1], 1, 3 + 2),  # a null item is not
        ({}, [], 1, 1 + 1),
        ({"a": "object"}, {"a": {}}, 1, 2 + 2),
        ("x", {"a": "x"}, 2, 1 + 2),  # `x` at the root is not `x` at `a`
        (float("nan"), float("nan"), 0, 1 + 1),
    ],
)
def test_tree_similarity_by_hand(truth: Any, output: Any, distance: int, nodes: int) -> None:
    assert similarity(truth, output) == similarity(output, truth) == pytest.approx(1 - distance / nodes)


def chain(depth: int, end: Any, *, in_arrays: bool = False) -> Any:
    value = end
    for _ in range(depth):
        value = [value] if in_arrays else {"a": value}
    return value


@pytest.mark.parametrize(
    ("truth", "output", "distance", "nodes"),
    [
        (chain(500, 1), chain(490, 1), 10, 501 + 491),
        (chain(500, 1), chain(500, 1, in_arrays=True), 501, 501 + 501),
        (chain(500, 1), 1, 501, 501 + 1),  # the 1 at `a` is not the 1 at the root
        (chain(DEEPEST, 1), chain(DEEPEST, 2), 1, 2 * DEEPEST + 2),
    ],
)
def test_tree_similarity_of_values_nested_below_the_recursion_limit(
    truth: Any, output: Any, distance: int, nodes: int
) -> None:
    assert similarity(truth, output) == pytest.approx(1 - distance / nodes)


def test_tree_similarity_is_undefined_for_too_large_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[tree_similarity.__module__], "_MAX_CELLS", 500)
    assert similarity(list(range(50)), list(range(50, 0, -1))) is None
    assert similarity(list(range(50)), list(range(51))) == pytest.approx(1 - 1 / 103)
