"""Parsed choices: a table of answers as models write them, by rule."""

import time
from collections.abc import Mapping, Sequence
from string import ascii_uppercase

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.parsing import parse_output

from tests.support.json_values import quick

CITIES = ("Lyon", "Nice", "Paris", "Bordeaux")
ALL_CITIES = "A. Lyon\nB. Nice\nC. Paris\nD. Bordeaux"
THINGS = ("York", "New York", "5", "-5", "all of the above", "Vitamin C", "E. coli")


def read(text: str, options: tuple[str, ...] = CITIES) -> str:
    """The letter and where it was found, or why there is none."""
    parsed = parse_output(text, "choice", options)
    assert (parsed.value is None) is (parsed.form is None) is (parsed.problem is not None)
    return f"{parsed.value} {parsed.form}" if parsed.form else str(parsed.problem)


BARE = [
    "C", "c", " C \n", "(C)", "(c)", "C.", "c.", "C!", "C?", "[C]", "\uff23", "\uff08\uff23\uff09",
    "\u00a0C\u00a0", "\u200bC",
]  # fmt: skip
MARKED_UP = [
    "**C**", "__C__", "`C`", "<b>C</b>", "$C$", r"\(C\)", r"\text{C}", "- C", "> C",
    "<think>Is it A?</think>\nC",
]  # fmt: skip
WITH_TEXT = [
    "C) Paris", "C. Paris", "C: paris", "C - Paris", "C Paris", "**C)** Paris.", "(C)\nParis",
    "Option C: Paris",
]  # fmt: skip
NAMED = ["Option C", "option C.", "Choice (C)", "Paris", "Paris.", "**Paris**"]


ALIKE: Mapping[str, Sequence[str]] = {
    "C whole": [*BARE, *MARKED_UP, *WITH_TEXT, *NAMED],
    "C stated": [
        "Answer: C",
        "Answer -> C",
        "Answer:\n\nC",
        "**Correct answer:**\n- C",
        "Final Answer: [C]",
        "The answer is C",
        "The answer is (C) Paris.",
        "The answer is Paris, the capital.",
        "The best option is C because it is the capital.",
        "The answer to the question is clearly C",
        "The best answer among A, B, C, and D is C.",
        "I choose C",
        '{"answer": "C"}',
        '{"reason": "A is wrong", "answer": "c", "sure": true}',
        '```json\n{"final_answer": ["C"]}\n```',
        "<answer>C</answer>",
        "Therefore, option (C) is clearly the best choice.",
        # several: the last counts
        "The answer is A? No. The answer is C.",
        "Answer: A\nOn reflection, that is wrong.\nAnswer: C",
        f"Answer:\n{ALL_CITIES}\n\nThe answer is C.",
        # what states nothing
        "Answer: C\nIf the answer is A, the map is wrong.",
        "The answer is C. The answer is not A.",
        "Answer: C\n\nThe answer is a matter of geography.",
        # letters that are not part of the statement
        "The answer is C, and A is wrong.",
        "Answer: C\nA: too small\nB: too warm\nD: too far",
    ],
    "ambiguous": [
        "C) Lyon",
        "The answer is either A or B, depending on the year.",
        "A and B are the correct answers: A and B",
        "The correct answers are A and C.",
        "The answer is C. Lyon",
        "It is Paris or Lyon.",
        ALL_CITIES,
    ],
    # a letter that is no option
    "no_option": [
        "The answer is a dog",
        "The answer is not A",
        "The answer is I think unclear",
        "The answer is C-reactive protein",
        "Answer: B = 5 T",
        "Hepatitis B is correct.",
        "E",
        "The answer is E.",
        "None of these, A is not right.",
    ],
}
BY_CLAIM: Mapping[str, Sequence[tuple[str, str]]] = {
    "a box is a statement": [
        (r"\boxed{C}", "C stated"),
        (r"So it is $\boxed{\text{C}}$.", "C stated"),
        (r"First \boxed{A}, but checking again: \boxed{C}", "C stated"),
        (r"\boxed{A, C}", "ambiguous"),
        (r"\boxed{E}, so Paris", "no_option"),
    ],
    "a line with a letter": [
        ("C\n\nThe capital of France is Paris; A is in the south.", "C line"),
        ("A\n\nNo, that is wrong.\n\n(C)", "C line"),
        ("C. Paris\n\nBecause it has been for long, not A.", "C line"),
        ("C, because it is the capital.", "C line"),
        ("A\nB\nC\nD", "ambiguous"),
        ("A. is wrong because it is small, B. is warm, so C.", "no_option"),
    ],
    "words": [
        ("Die Antwort ist C", "no_option"),  # English only
        ("It is Paris, of course.", "C option_text"),
        ("Parisian life", "no_option"),
        ("It is not Paris.", "no_option"),
        ("I don't think Paris is right.", "no_option"),
        ("Lyon is not the capital. It is Paris.", "C option_text"),
        ("", "empty"),
    ],
    "what is supposed or denied is no answer": [
        ("Answer: C\nIf the question were about silk, the answer would be A.", "C stated"),
        ("Answer: C. My initial answer was A.", "C stated"),
        ("The answer's C.", "C stated"),
        ("C<|im_end|>", "C whole"),
        ("Incorrect: A", "no_option"),
    ],
}


@pytest.mark.parametrize(("expected", "texts"), ALIKE.items())
def test_choice_is_parsed_from_texts_of_models(expected: str, texts: Sequence[str]) -> None:
    assert {text: read(text) for text in texts} == dict.fromkeys(texts, expected)


@pytest.mark.parametrize("answers", BY_CLAIM.values(), ids=BY_CLAIM)
def test_choice_is_parsed_by_rule(answers: Sequence[tuple[str, str]]) -> None:
    assert [(text, read(text)) for text, _ in answers] == list(answers)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is New York.", "B option_text"),
        ("The answer is New York", "B stated"),
        ("Answer: -5", "D stated"),
        ("It is 1.5, or 5%, or 15.", "no_option"),
        ("Vitamin C is the correct answer.", "F option_text"),
        ("The answer is E. coli.", "G stated"),
        ("E. coli", "G whole"),
        ("E", "E whole"),
    ],
)
def test_option_text_comes_before_letters_in_it(text: str, expected: str) -> None:
    assert read(text, THINGS) == expected


@pytest.mark.parametrize(
    ("options", "text", "expected"),
    [
        (("B", "A", "AB", "O"), "The answer is B", "B stated"),  # a letter is the option's letter
        (("B", "A", "AB", "O"), "The answer is O.", "D stated"),  # no option has it, one is called so
        (("B", "A", "AB", "O"), "It is AB.", "C option_text"),
        (("2*3", "23"), "It is 23", "no_option"),  # told apart by mark-up alone
        (("a dog", "a cat"), "The answer is a dog", "A stated"),
        ((), "A", "no_option"),
        # numbers and denials among the options
        (("True", "False"), "This is not true.", "no_option"),
        (("3", "12", "4", "8"), "The answer is 12/3.", "no_option"),
        (("3", "-3"), "\u22123", "B whole"),
        (("It does not change", "It grows"), "I would say that it does not change.", "A option_text"),
    ],
)
def test_similar_options_are_distinguished(options: tuple[str, ...], text: str, expected: str) -> None:
    assert read(text, options) == expected


PIECES = ["answer", "is", "the", "A", "b", "C.", "(D)", "\n", ":", "not", "or", "\\boxed{", "}", "so", "Paris", "lyon"]


@quick
@given(
    text=st.text(st.characters(exclude_categories=()), max_size=20)
    | st.lists(st.sampled_from(PIECES), max_size=9).map(" ".join),
    options=st.lists(st.text(max_size=2), max_size=5).map(tuple) | st.just(CITIES),
)
def test_parsing_a_choice_never_raises(text: str, options: tuple[str, ...]) -> None:
    parsed = parse_output(text, "choice", options)
    assert (parsed.form is None) is (parsed.problem is not None)
    assert parsed.value is None or parsed.value in ascii_uppercase[: len(options)]
    assert (parsed.problem == "empty") is (not text.strip())


def test_choice_is_parsed_from_long_texts_quickly() -> None:
    endless = (
        "Answer: z ", "The answer is not A. ", "answer (", "\\boxed{", "\\text{", "<b ", "x\n", "A ", "so A, ",
        "5x", " ",
    )  # fmt: skip
    for piece in endless:
        text = "answer" + piece * (200_000 // len(piece))
        started = time.process_time()
        parse_output(text, "choice", (*CITIES, "5", "6"))
        taken = time.process_time() - started
        assert taken < 5, piece  # measured: below 0.05; a full garbage collection can add a second


def test_both_ends_of_a_very_long_answer_are_parsed() -> None:
    middle = "On and on it goes. " * 10_000
    assert read(f"{middle}The answer is C.") == "C stated"
    assert read(f"C\n{middle}") == "C line"
