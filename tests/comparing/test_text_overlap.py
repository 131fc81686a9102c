"""Overlap of free texts, worked by hand: words in common, and the longest run of them in order."""

import pytest
from skill_evaluator.comparing.similarity import rouge_l, token_f1


@pytest.mark.parametrize(
    ("truth", "output", "tokens", "sequence"),
    [
        ("the cat sat", "the cat sat", 1, 1),
        ("the cat sat", "The cat, sat!", 1, 1),  # case and punctuation are not words
        ("Café au lait", "cafe\u0301 au lait", 1, 1),
        ("the cat sat", "sat cat the", 1, 1 / 3),  # the same words, one of three in order
        ("a b c d", "a x c y", 1 / 2, 1 / 2),
        ("a a b", "a b b", 2 / 3, 2 / 3),  # a word counts as often as it stands
        ("a b", "a b c d e f", 1 / 2, 1 / 2),  # 2·2 ÷ (2 + 6)
        ("police killed the gunman", "the gunman police killed", 1, 1 / 2),
        ("a", "b", 0, 0),
        ("a", "", 0, 0),
        ("", "", 1, 1),
        ("—", "…", 1, 1),  # neither has a word
    ],
)
def test_overlap_by_hand(truth: str, output: str, tokens: float, sequence: float) -> None:
    assert token_f1(truth, output) == pytest.approx(tokens)
    assert rouge_l(truth, output) == pytest.approx(sequence)
    assert token_f1(output, truth) == pytest.approx(tokens)
    assert rouge_l(output, truth) == pytest.approx(sequence)
