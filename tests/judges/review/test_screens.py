"""What a reviewer sees and presses: an order by chance, the same keys in either order, and what differs marked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.review.items import ReviewQuestion, review_item
from skill_evaluator.judges.review.screens import ReviewScreen, differences

from tests.support.reviews import NOON, change, pair, scored

IMPACT = "impact of the difference in factuality"


def test_order_is_random_by_reviewer_and_reproducible() -> None:
    items = [pair(f"p{number}") for number in range(200)]
    ada, ben = ([ReviewScreen.of(item, name, 0).first for item in items] for name in ("ada", "ben"))
    assert ada == [ReviewScreen.of(item, "ada", 0).first for item in items]
    assert 70 < ada.count(1) < 130
    assert 70 < sum(one == other for one, other in zip(ada, ben, strict=True)) < 130
    assert ada != [ReviewScreen.of(item, "ada", 1).first for item in items]


def test_label_maps_keys_to_answers_and_back() -> None:
    for item, keys, first, answers in (
        (pair(), {"overall": "1"}, 1, [("1", None)]),
        (pair(), {"overall": "1"}, 2, [("2", None)]),
        (pair(), {"overall": "0"}, 2, [("tie", None)]),
        (scored(), {"tone": "3"}, 1, [("3", None)]),
        (
            change(),
            {"factuality": "1", IMPACT: "3", "tone": "0"},
            1,  # A is the baseline
            [("candidate_worse", "high"), ("same", None)],
        ),
        (change(), {"factuality": "1", IMPACT: "3", "tone": "0"}, 2, [("candidate_better", "high"), ("same", None)]),
    ):
        screen = ReviewScreen(item=item, reviewer="ada", first=first)  # type: ignore[arg-type]
        label = screen.label(keys, NOON)
        assert [(answer.answer, answer.impact) for answer in label.answers] == answers, item
        assert screen.keys(label) == keys, item
    scale = ReviewQuestion(name="tone", levels=dict.fromkeys(range(1, 11), ""))
    item = review_item("score", "s", ["text"], [scale], ["random"])
    screen = ReviewScreen(item=item, reviewer="ada")
    assert list(screen.steps[0].choices)[-1] == "0"
    assert screen.label({"tone": "0"}, NOON).answers[0].answer == "10"


def test_impact_is_asked_whichever_output_is_better() -> None:
    steps = ReviewScreen(item=change(), reviewer="ada").steps
    assert steps[1].only_after == ("factuality", ("1", "2"))
    shown = [(step.name, step.text, *step.choices.values()) for step in steps]
    assert not any("baseline" in f"{words}" or "candidate" in f"{words}" for words in shown)


@pytest.mark.parametrize("keys", [{}, {"overall": "3"}, {"overall": "1", "other": "1"}])
def test_label_refuses_unknown_keys(keys: dict[str, str]) -> None:
    with pytest.raises(JudgeError, match="no answer"):
        ReviewScreen(item=pair(), reviewer="ada").label(keys, NOON)


@given(st.text(min_size=1), st.text(), st.integers())
def test_screen_shows_both_outputs_in_either_order(reviewer: str, text: str, seed: int) -> None:
    item = pair(outputs=[text, "other"])
    assert sorted(ReviewScreen.of(item, reviewer, seed).outputs) == sorted(item.outputs)


WORDS = st.lists(st.sampled_from(["a", "b", " ", "\n", "12", ".", "ß"])).map("".join)


@given(WORDS | st.text(), WORDS | st.text())
def test_pieces_join_to_the_texts(left: str, right: str) -> None:
    for text, pieces in zip((left, right), differences(left, right), strict=True):
        assert "".join(part for part, _ in pieces) == text


@given(WORDS)
def test_equal_texts_have_no_marks(text: str) -> None:
    assert not any(own for pieces in differences(text, text) for _, own in pieces)


def test_marks_show_what_the_other_text_lacks() -> None:
    for left, right, own in (
        ("The fee is 0.40 a day", "The fee is 0.45 a day", (["40"], ["45"])),
        ("one two three", "one three", (["two "], [])),
        ("big old red house", "house", (["big old red "], [])),
    ):
        assert tuple([part for part, marked in pieces if marked] for pieces in differences(left, right)) == own, left
    assert differences("a " * 20_000, "b") == ([("a " * 20_000, False)], [("b", False)])
