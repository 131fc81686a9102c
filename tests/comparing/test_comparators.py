"""Comparators on pairs of values: each line has a rule, two values, and whether they are equal."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from skill_evaluator import plugins
from skill_evaluator.comparing.field_plan import (
    Comparator,
    FieldRule,
    amount,
    canonical,
    comparator,
    equal,
    rouge_l,
    token_f1,
)

EXACT = FieldRule(compare="exact")
STRING = FieldRule(compare="string")
LOOSE = FieldRule(compare="string", casefold=True, ignore_punctuation=True)
NUMBER = FieldRule(compare="number")
DATE = FieldRule(compare="date")
CATEGORY = FieldRule(compare="category")
TEXT = FieldRule(compare="text")


LEAVES: Sequence[tuple[FieldRule, Any, Any, bool]] = [
    # JSON equality: 1 = 1.0, true ≠ 1, text as NFC, otherwise by type
    (EXACT, 1, 1.0, True),
    (EXACT, True, 1, False),
    (EXACT, False, 0, False),
    (EXACT, 1, "1", False),
    (EXACT, "é", "e\u0301", True),
    (EXACT, "a", "A", False),
    (EXACT, "a b", "a  b", False),
    (EXACT, [1, 2], [1.0, 2.0], True),
    (EXACT, [1, 2], [2, 1], False),
    (EXACT, {"a": 1, "b": None}, {"a": 1}, True),
    (EXACT, {"b": 1, "a": 2}, {"a": 2, "b": 1}, True),
    (EXACT, 9007199254740993, 9007199254740992.0, False),
    # text: white space and normalisation forms never matter, case and punctuation only where told
    (STRING, " ACME\n Ltd.", "ACME Ltd.", True),
    (STRING, "Café", "Cafe\u0301", True),
    (STRING, "ACME", "acme", False),
    (STRING, "A-B", "A B", False),
    (STRING, "1", 1, False),
    (STRING, 1, 1.0, True),
    (LOOSE, "ACME, Ltd.", "acme ltd", True),
    (LOOSE, "Straße", "STRASSE", True),
    (LOOSE, "A-B", "a b", True),
    (LOOSE, "A-B", "ab", False),
    (LOOSE, "«Bob’s»", "bob s", True),
    # numbers by value; text is a number only where told
    (NUMBER, 1, 1.0, True),
    (NUMBER, 1, 1.0000001, False),
    (NUMBER, True, 1, False),
    (NUMBER, 5, "5", False),
    (NUMBER, "n/a", "n/a", True),
    (FieldRule(compare="number", from_string=True), 1234.5, "RM 1,234.50", True),
    (FieldRule(compare="number", from_string=True), "$12.00", "12", True),
    (FieldRule(compare="number", from_string=True), "n/a", 0, False),
    (FieldRule(compare="number", from_string=True), True, "1", False),
    # tolerances include their edge, in whichever direction binary fractions err
    (FieldRule(compare="number", tolerance=0.005), 9, 9.005, True),
    (FieldRule(compare="number", tolerance=0.01), 0.29, 0.3, True),
    (FieldRule(compare="number", tolerance=0.005), 9, 9.0051, False),
    (FieldRule(compare="number", tolerance=1), 10, 11, True),
    (FieldRule(compare="number", tolerance=1), 10, 12, False),
    (FieldRule(compare="number", relative_tolerance=0.1), 90, 100, True),
    (FieldRule(compare="number", relative_tolerance=0.1), 89, 100, False),
    (FieldRule(compare="number", relative_tolerance=0.1), 0, 0.001, False),
    (FieldRule(compare="number", tolerance=1, relative_tolerance=0.1), 0, 1, True),
    (FieldRule(compare="number", tolerance=5), 1, "1", False),
    # dates by day; one that no format reads is text
    (DATE, "2024-01-02", " 2024-01-02 ", True),
    (DATE, "2024-01-02", "2024-01-03", False),
    (DATE, "2024-01-02", "02/01/2024", False),
    (DATE, "unknown", "unknown", True),
    (DATE, "2024-02-30", "2024-02-30", True),
    (DATE, 20240102, 20240102.0, True),
    (FieldRule(compare="date", formats=("%d/%m/%Y", "%d %b %y")), "02/01/2024", "2 Jan 24", True),
    (FieldRule(compare="date", formats=("%d/%m/%Y",)), "02/01/2024", "2024-01-02", False),
    (FieldRule(compare="date", tolerance_days=2), "2024-02-28", "2024-03-01", True),
    (FieldRule(compare="date", tolerance_days=2), "2024-02-28", "2024-03-02", False),
    (FieldRule(compare="date", tolerance_days=2), "soon", "soon", True),
    (FieldRule(compare="date", tolerance_days=2), "soon", "2024-03-02", False),
    # categories: the label, white space aside
    (CATEGORY, "sale", " sale", True),
    (CATEGORY, "sale", "Sale", False),
    (CATEGORY, 1, 1.0, True),
    # similarity from the declared threshold on: one edit in four letters is 0.75
    (FieldRule(compare="string", threshold=0.75), "abcd", "abce", True),
    (FieldRule(compare="string", threshold=0.76), "abcd", "abce", False),
    (FieldRule(compare="string", threshold=0.75), "abcd", 4, False),
    (FieldRule(compare="string", threshold=0.8), "hello", "hallo", True),
    (FieldRule(compare="string", threshold=0.8), "hello", "hell", True),
    (FieldRule(compare="string", threshold=0.8), "hello", "help", False),
    (FieldRule(compare="string", threshold=0.9), "0123456789", "012345678x", True),
    (FieldRule(compare="string", threshold=1.0), "", "", True),
    (FieldRule(compare="string", threshold=0.0), "abcd", "xyz", True),
    # free text: the same words without a threshold, enough of them with one (token F1 is 2/3)
    (TEXT, "the cat sat", "the cat  sat", True),
    (TEXT, "the cat sat", "the cat ran", False),
    (FieldRule(compare="text", threshold=0.66), "the cat sat", "the cat ran", True),
    (FieldRule(compare="text", threshold=0.67), "the cat sat", "the cat ran", False),
    (FieldRule(compare="text", threshold=0.5), "sat", ["sat"], False),
    # ignored: whatever it is
    (FieldRule(compare="ignore"), 1, "x", True),
    # numbers beyond the floats, as models in a loop write them
    (FieldRule(compare="number", tolerance=0.005), 10**400, 5.0, False),
    (FieldRule(compare="number", tolerance=0.005), 10**400, 10**400 + 1, False),
    (FieldRule(compare="number", relative_tolerance=0.5), 10**400, 10**400 + 1, False),
    (FieldRule(compare="number", tolerance=0.005), 10**400, 10**400, True),
    (FieldRule(compare="number", relative_tolerance=0.5), float("inf"), 5, False),
    (FieldRule(compare="number", tolerance=0.5), 10**17, 10**17 + 1, False),
    (FieldRule(compare="string"), "abcde", "abcdx", False),  # without a threshold every letter counts
    (FieldRule(compare="date", tolerance_days=2), "2026-01-01", "2026-01-03", True),
    (FieldRule(compare="date", tolerance_days=2), "2026-01-01", "2026-01-04", False),
    # a rule without a comparator is exact
    (FieldRule(), "a", "a ", False),
]


def test_leaves_are_equal_under_a_rule() -> None:
    for rule, truth, output, expected in LEAVES:
        assert equal(truth, output, rule) is equal(output, truth, rule) is expected, (rule, truth, output)


AMOUNTS: Sequence[tuple[str, float | None]] = [
    ("12", 12.0),
    ("12.50", 12.5),
    ("1,234.50", 1234.5),
    ("1.234,50", 1234.5),
    ("1.234.567,8", 1234567.8),
    ("1,234,567", 1234567.0),
    ("1,23,456.00", 123456.0),
    ("1,234", 1234.0),
    ("12,5", 12.5),
    ("12,50", 12.5),
    ("1.234", 1.234),
    ("1 234,50", 1234.5),
    ("1\u202f234,50", 1234.5),
    ("1'234.50", 1234.5),
    ("1’234.50", 1234.5),
    ("12. 50", 12.5),
    (".50", 0.5),
    (",50", 0.5),
    ("RM .50", 0.5),
    ("5.", 5.0),
    ("CHF 5.-", 5.0),
    ("5,-", 5.0),
    ("CHF 5.–", 5.0),
    ("RM 1,234.50", 1234.5),
    ("RM12", 12.0),
    ("Rs. 100", 100.0),
    ("Rs.100", 100.0),
    ("$5", 5.0),
    ("€ 5,00", 5.0),
    ("1.234,50 €", 1234.5),
    ("12.00 CR", 12.0),
    ("7 %", 7.0),
    ("-3", -3.0),
    ("−3", -3.0),
    ("-$3.00", -3.0),
    ("3.00-", -3.0),
    ("(12.00)", -12.0),
    (" (RM 12.00) ", -12.0),
    ("٣", 3.0),
    ("", None),
    ("free", None),
    ("½", None),
    ("-", None),
    ("1.2.3", None),
    # two numbers are not one
    ("10-12", None),
    ("3 x 4.00", None),
    ("12.50 (7% tax)", None),
    ("2024-01-05", None),
    ("1e5", None),
    ("7" * 400, None),  # no number that could be compared
]


def test_amount_reads_the_number_of_a_printed_amount() -> None:
    assert [(text, amount(text)) for text, _ in AMOUNTS] == AMOUNTS


@pytest.mark.parametrize("metric", [token_f1, rouge_l])
def test_shared_words_of_two_texts(metric: Callable[[str, str], float]) -> None:
    assert [metric(*pair) for pair in (("", ""), ("a", ""), ("", "a"), ("a b c d", "a d"))] == [1.0, 0.0, 0.0, 4 / 6]


def test_canonical_forms_differ_by_type() -> None:
    forms = {canonical(value, EXACT) for value in (1, "1", True, [1], {"a": 1}, "true", "[1]")}
    assert len(forms) == 7


def test_comparator_of_a_package_decides_with_a_tolerance(monkeypatch: pytest.MonkeyPatch) -> None:
    added = {
        "test-exact": Comparator(lambda value, rule: str(value).upper()),
        "test-close": Comparator(
            lambda value, rule: value, lambda one, other, rule: abs(one - other) <= rule.tolerance
        ),
    }
    monkeypatch.setattr(plugins, "load", lambda group, name, kind: added.get(name))
    assert comparator("test-exact").close is None
    assert equal("a", "A", FieldRule(compare="test-exact", tolerance=1))
    assert [equal(1, other, FieldRule(compare="test-close", tolerance=1)) for other in (2, 3)] == [True, False]
