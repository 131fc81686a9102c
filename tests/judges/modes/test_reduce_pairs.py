"""The joint verdict of both orders, unscored outputs, and the overall verdict weighted by criterion."""

from typing import Any

import pytest
from skill_evaluator.judges.modes.pairwise import OrderJudgement, PairItem, combine, preference_form, read_order

from tests.support.asked_judges import QUOTE, answer, compared, method, rubric_of

TEXTS = (QUOTE, "no sum")
TIES = method("pairwise_comparison", "ties_allowed")
NO_TIES = method("pairwise_comparison")


def said(text: str, order: int = 1, primary: Any = TIES) -> OrderJudgement:
    """What an answer says by the usual criterion."""
    return read_order(text, rubric_of({"method": primary}).criteria, TEXTS, order)["totals"]


def both(first: Any, second: Any) -> Any:
    """The verdict of two answers, each of which names what it saw first or second."""
    orders = [said(answer(totals=first)), said(answer(totals=second), order=2)]
    return combine("totals", 0, orders)


def test_orders_agree_on_a_winner_or_give_a_tie_at_one_half() -> None:
    for first, second, winner, confidence, agreed in (
        (compared("first"), compared("second", confidence=0.7), 1, 0.8, True),
        (compared("second"), compared("first"), 2, 0.9, True),
        (compared("tie"), compared("tie", confidence=0.5), "tie", 0.7, True),
        (compared("first"), compared("first"), "tie", 0.5, False),
        (compared("tie"), compared("first"), "tie", 0.5, False),
        (compared("first"), compared("third"), None, None, None),
    ):
        verdict = both(first, second)
        assert (verdict.winner, verdict.agreed) == (winner, agreed), first
        assert verdict.confidence == (None if confidence is None else pytest.approx(confidence)), first


def test_answer_without_a_valid_winner_does_not_count() -> None:
    for text, reason in (
        (answer(totals=compared("output_1")), "off_scale"),
        (answer(totals=compared(1)), "off_scale"),
        (answer(totals=compared("first", evidence_second=[])), "no_evidence"),
        ("The first one.", "not_json"),
    ):
        judgement = said(text)
        assert (judgement.winner, judgement.unscored) == (None, reason), text


def test_tie_needs_permission_and_overall_needs_each_criterion() -> None:
    assert said(answer(totals=compared("tie"))).winner == "tie"
    assert said(answer(totals=compared("tie")), primary=NO_TIES).unscored == "off_scale"
    allowed: Any = preference_form(rubric_of({"id": "a", "method": TIES}, {"id": "b", "method": NO_TIES}).criteria)[0]
    criteria = allowed["properties"]["criteria"]["properties"]
    assert criteria["a"]["properties"]["winner"]["enum"] == ["first", "second", "tie"]
    assert criteria["b"]["properties"]["winner"]["enum"] == ["first", "second"]
    assert list(criteria["a"]["properties"])[-3:] == ["justification", "winner", "confidence"]
    criteria = rubric_of({"id": "a", "method": TIES}, {"id": "b", "method": TIES}).criteria
    read = read_order(answer(a=compared("first")), criteria, TEXTS, 1)
    assert (read["a"].winner, read["b"].unscored, read["overall"].unscored) == (
        1,
        "missing_criterion",
        "missing_criterion",
    )


def test_overall_winner_follows_from_the_weights() -> None:
    for words, weights, winner in (
        (("first", "first"), (1, 1), 1),
        (("first", "second"), (2, 1), 1),
        (("first", "second"), (1, 3), 2),
        (("tie", "second"), (5, 1), 2),
        (("tie", "tie"), (1, 1), "tie"),
    ):
        rubric = rubric_of(
            *({"id": name, "weight": weight, "method": TIES} for name, weight in zip("ab", weights, strict=True))
        )
        text = answer(a=compared(words[0], confidence=1.0), b=compared(words[1], confidence=0.4))
        overall = read_order(text, rubric.criteria, TEXTS, 1)["overall"]
        assert overall.winner == winner, words
        share = weights[0] / sum(weights)
        assert overall.confidence == pytest.approx(share + 0.4 * (1 - share), abs=1e-6), words


def test_item_without_two_outputs_is_rejected() -> None:
    for item in (
        {"id": "a"},
        {"id": "a", "output_1": "x"},
        {"id": "a", "outputs": {"one": "x", "two": ""}},
        {"id": "a", "output_1": "x", "output_2": "y", "outputs": {"one": "x", "two": "y"}},
    ):
        with pytest.raises(ValueError, match="output"):
            PairItem.model_validate(item)
