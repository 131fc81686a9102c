"""How steady the lengths of arrays are, by hand; every array counts once, whatever its place."""

from typing import Any

import pytest
from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule
from skill_evaluator.metrics.agreement import array_length_stability, array_lengths

from tests.metrics.orders import answers

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
def test_share_of_the_commonest_length(outputs: list[Any], unparseable: int, expected: dict[str, Lengths]) -> None:
    assert lengths(*outputs, unparseable=unparseable) == expected


def test_an_array_of_the_schema_counts_even_where_no_answer_has_it() -> None:
    assert lengths({}, {}, plan=PLANNED) == {"a": (1, 0, 0)}
    assert lengths(plan=PLANNED, unparseable=2) == {"a": (0, None, None)}


def test_an_array_compared_as_a_whole_is_a_leaf() -> None:
    assert lengths({"whole": [1]}, {"whole": [1, 2]}, plan=PLANNED) == {"a": (1, 0, 0)}


def test_the_mean_over_arrays() -> None:
    given = answers({"a": [1], "b": [1]}, {"a": [1], "b": []})
    assert array_length_stability(given) == pytest.approx((1 + 1 / 2) / 2)
    assert array_length_stability(answers({"x": 1}, {"x": 2})) is None
