"""Overlap of free texts, worked by hand: words in common, and the longest run of them in order."""

import pytest
from skill_evaluator.comparing.similarity import rouge_l, token_f1


@pytest.mark.parametrize(
    ("truth", "output", "tokens", "sequence"),
    [
        ("the cat sat", "The cat, sat!", 1, 1),  # case and punctuation are not words
        ("Café au lait", "cafe\u0301 au lait", 1, 1),
        ("the cat sat", "sat cat the", 1, 1 / 3),  # the same words, one of three in order
        ("", "", 1, 1),
        ("—", "…", 1, 1),  # neither has a word
    ],
)
def test_overlap_by_hand(truth: str, output: str, tokens: float, sequence: float) -> None:
    assert token_f1(truth, output) == pytest.approx(tokens)
    assert rouge_l(truth, output) == pytest.approx(sequence)
    assert token_f1(output, truth) == pytest.approx(tokens)
    assert rouge_l(output, truth) == pytest.approx(sequence)
