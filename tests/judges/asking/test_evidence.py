"""Evidence: what is a quote and what an observation, what supports a *worse*, and what is marked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.judges.asking.evidence import quote_similarity, read_evidence
from skill_evaluator.judges.modes.findings import left_out
from skill_evaluator.judges.modes.regression import RegressionItem
from skill_evaluator.judges.modes.ship_rules import dimensions_of

from tests.support.judged import LIBRARY, SAME, answer, judged, reading

TEXT = "The reading room opens at 8:30 from 4 May. Dogs are not allowed – “guide dogs” are."


def test_a_quote_is_found_exactly_or_nearly_with_its_numbers_and_negations() -> None:
    for quote, similarity in (
        ("opens at 8:30", 100.0),
        ("OPENS  at\n8:30.", 100.0),
        ('"guide dogs"', 100.0),
        ("Dogs are not allowed - 'guide dogs' are", 100.0),
        ("The reading room … from 4 May", 100.0),
        ("8:30", 100.0),
        ("The reading rooms open at 8:30 from 4 May", 97.4),  # near: from 90 of 100, in 20 characters or more
        ("opens at 8.30", None),  # too short for a near one
        ("The reading room opens at 9:30 from 4 May", None),  # another number is another statement
        ("The reading room opens at 8:30 from 8 May", None),
        ("Dogs are allowed – “guide dogs” are", None),  # and so is a negation that is gone
        ("The reading room … from 5 May", None),
        ("the library welcomes everybody", None),
        ("ogs are", None),
        ("…", None),
        ("", None),
    ):
        found = quote_similarity(quote, TEXT)
        assert (found is None) == (similarity is None), quote
        assert found is None or found == pytest.approx(similarity, abs=3), quote


@given(st.text(min_size=1, max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_a_piece_of_a_text_is_never_a_lesser_quote_than_exact(piece: str, before: str, after: str) -> None:
    assert quote_similarity(piece, f"{before} {piece} {after}") in (None, 100.0)


def test_code_tells_quotes_from_observations_and_what_is_in_the_baseline_alone() -> None:
    for evidence, kind, not_found in (
        ("", "none", ()),
        ("N/A", "none", ()),
        ("opens at 8:30", "quote", ()),
        ("It says «opens at 8:30», which is right.", "quote", ()),
        ("It gives the hours.", "observation", ()),
        ('It says "closed on Mondays".', "observation", ("closed on mondays",)),
        ('It drops the "late fees" of the other.', "observation", ()),  # quoted from beside
        ("The room's hours aren't given", "observation", ()),
    ):
        read = read_evidence(evidence, TEXT, beside=["Late fees rise."])
        assert read.kind == kind, evidence
        assert tuple(quote.casefold() for quote in read.not_found) == not_found, evidence
    for evidence, words in (
        ("Names the raised fees and the closed archive", ["fees", "closed", "archive"]),
        ("Names the reading room", []),  # which the candidate has, too
        ("Names the weather and the parking", []),  # which the baseline has not
        ("Gives three points in bullets, as requested", []),  # words about outputs
    ):
        assert left_out([evidence], LIBRARY.baseline_output, LIBRARY.candidate_output) == words, evidence


def test_another_form_of_a_word_is_no_omission() -> None:
    for before, after in (
        ("two classes", "a class"),
        ("two delays", "one delay"),
        ("each status", "all statuses"),
        ("planned works", "to plan a work"),
        ("a story", "stories"),
    ):
        assert left_out([before], before, after) == [], before


def test_a_worse_needs_one_leg_that_code_can_check_in_either_order() -> None:
    for dimension, before, after, legs, flags in (
        ("factuality", "", "It was founded in 1911", ("quote",), ()),
        ("factuality", "Late fees rise to 0.40 a day", "", ("quote", "omission"), ()),
        ("completeness", "Names fees and archive.", "Names neither.", ("omission",), ()),
        ("format_adherence", "Three bullets.", "No bullets.", ("form",), ()),
        ("completeness", "Three bullets.", "No bullets.", (), ("unsupported",)),
        ("factuality", "Correct.", 'It claims "the library burnt down".', (), ("unsupported", "quote_not_found")),
        ("factuality", "", "", (), ("unsupported", "no_evidence")),
        ("completeness", "", "The wording is less formal.", (), ("unsupported", "style_only")),
        ("completeness", "Concise.", "Wordy and verbose.", (), ("unsupported", "style_only")),
        ("completeness", "", "Less formal, and the fees are gone.", (), ("unsupported",)),
    ):
        read = reading(answer({**SAME, dimension: ("worse", "low", before, after)}))
        finding = read.finding(dimension)
        assert (finding.verdict, finding.impact) == ("candidate_worse", "low"), dimension  # kept, whatever it rests on
        assert (finding.legs, finding.flags) == (legs, flags), dimension
    bare = answer({**SAME, "completeness": ("worse", "low", "", "Something is gone.")})
    verdict = judged(bare, answer({**SAME, "completeness": ("worse", "low")}))
    assert verdict.dimensions[1].legs == ["quote", "omission"]
    assert verdict.dimensions[1].flags == []


def test_style_is_to_the_point_where_it_was_asked_about_and_a_better_without_evidence_is_marked() -> None:
    dimensions = dimensions_of(preset="chat")
    findings = {"factuality": "same", "completeness": "same", "tone": ("worse", "low", "", "Stiff and formal.")}
    read = reading(answer(findings), dimensions=dimensions)
    assert read.finding("tone").flags == ("unsupported",)
    read = reading(answer({**SAME, "completeness": ("better", "low", "", "")}))
    assert read.finding("completeness").flags == ("no_evidence",)


def test_evidence_of_any_length_is_read_quickly() -> None:
    pair = RegressionItem(id="p", prompt="p", baseline_output="a b c " * 20_000, candidate_output="a b d " * 20_000)
    read = reading(answer({**SAME, "factuality": ("worse", "low", "x y z " * 2_000, "a c b " * 300)}), pair=pair)
    assert read.finding("factuality").flags == ("unsupported",)
