"""Agreement of whole answers by hand: equal pairs, different answers, and all of them alike (TARr, TARa)."""

from typing import Any

import pytest
from skill_evaluator.comparing.field_plan import FieldPlan
from skill_evaluator.metrics.agreement import distinct_outputs, pairwise_exact_match, tara_at_n, tarr_at_n
from skill_evaluator.metrics.base import CaseAnswers

from tests.metrics.orders import answers


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
def test_share_of_equal_pairs(outputs: list[Any], unparseable: int, expected: float | None) -> None:
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
def test_distinct_parsed_outputs(outputs: list[Any], unparseable: int, expected: float | None) -> None:
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
def test_all_answers_or_none(texts: list[tuple[str, str | None]], raw: float | None, parsed: float | None) -> None:
    of_case = CaseAnswers(FieldPlan())
    for text, canonical in texts:
        of_case.add(text, canonical)
    assert (tarr_at_n(of_case), tara_at_n(of_case)) == (raw, parsed)
