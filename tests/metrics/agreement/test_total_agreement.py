"""Total agreement by hand: of the raw texts (TARr) and of the parsed outputs (TARa)."""

import pytest
from skill_evaluator.comparing.field_plan import FieldPlan
from skill_evaluator.metrics.agreement.total_agreement import tara_at_n, tarr_at_n
from skill_evaluator.metrics.base import CaseAnswers


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
    answers = CaseAnswers(FieldPlan())
    for text, canonical in texts:
        answers.add(text, canonical)
    assert (tarr_at_n(answers), tara_at_n(answers)) == (raw, parsed)
