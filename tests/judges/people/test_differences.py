"""Differences between two texts: joined, the pieces are the text; what is marked is what the other lacks."""

from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.judges.people.steps import differences

WORDS = st.lists(st.sampled_from(["a", "b", " ", "\n", "12", ".", "ß"])).map("".join)


@given(WORDS | st.text(), WORDS | st.text())
def test_joined_the_pieces_are_the_texts(left: str, right: str) -> None:
    for text, pieces in zip((left, right), differences(left, right), strict=True):
        assert "".join(part for part, _ in pieces) == text


@given(WORDS)
def test_equal_texts_have_no_difference(text: str) -> None:
    assert not any(own for pieces in differences(text, text) for _, own in pieces)


def test_what_is_marked_is_what_the_other_lacks_but_in_very_long_texts() -> None:
    for left, right, own in (
        ("The fee is 0.40 a day", "The fee is 0.45 a day", (["40"], ["45"])),
        ("one two three", "one three", (["two "], [])),
        ("big old red house", "house", (["big old red "], [])),
    ):
        assert tuple([part for part, marked in pieces if marked] for pieces in differences(left, right)) == own, left
    assert differences("a " * 20_000, "b") == ([("a " * 20_000, False)], [("b", False)])
