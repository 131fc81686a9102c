"""Quotations in evidence: found word for word, and those that show a difference of two outputs."""

import pytest
from skill_evaluator.judges.prompting.reading import contains_quotation, has_quotation, invented_quotations

TEXT = "The reading room opens at 8:30 from 4 May. Dogs are not allowed – “guide dogs” are."


@pytest.mark.parametrize(
    ("quotation", "found"),
    [
        ("opens at 8:30", True),
        ("OPENS  at\n8:30.", True),
        ('"guide dogs"', True),
        ("Dogs are not allowed - 'guide dogs' are", True),
        ("The reading room … from 4 May", True),
        ("The reading room opens at 9:30 from 4 May", False),
        ("at", False),
        ("…", False),
        ("", False),
    ],
)
def test_quotation_is_found_word_for_word(quotation: str, found: bool) -> None:
    assert contains_quotation(TEXT, quotation) is found


@pytest.mark.parametrize(
    ("evidence", "found", "invented"),
    [
        ("", False, []),
        ("It says «opens at 8:30», which is right.", True, []),
        ('It says "closed on Mondays".', False, ["closed on Mondays"]),
        ('It drops the "late fees" of the other.', False, []),
    ],
)
def test_evidence_quotes_its_text_or_invents(evidence: str, found: bool, invented: list[str]) -> None:
    assert has_quotation(evidence, TEXT) is found
    assert invented_quotations(evidence, [TEXT, "Late fees rise."]) == invented
