"""What both orders say together, what does not count, and how the criteria make one overall verdict."""

import json
from typing import Any

import pytest
from skill_evaluator.judges.modes.pairwise import (
    MatchResult,
    OrderJudgement,
    PairItem,
    combine,
    pair_results,
    preference_form,
    rank_outputs,
    read_order,
    winner_of,
)

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


def test_agreement_is_a_winner_with_the_mean_confidence_and_disagreement_a_tie_at_one_half() -> None:
    for first, second, winner, confidence, agreed in (
        (compared("first"), compared("second", confidence=0.7), 1, 0.8, True),
        (compared("second"), compared("first"), 2, 0.9, True),
        (compared("tie"), compared("tie", confidence=0.5), "tie", 0.7, True),
        (compared("first"), compared("first"), "tie", 0.5, False),
        (compared("second"), compared("second"), "tie", 0.5, False),
        (compared("tie"), compared("first"), "tie", 0.5, False),
        (compared("first"), compared("third"), None, None, None),
    ):
        verdict = both(first, second)
        assert (verdict.winner, verdict.agreed) == (winner, agreed), first
        assert verdict.confidence == (None if confidence is None else pytest.approx(confidence)), first


def test_an_answer_that_names_no_winner_as_demanded_does_not_count() -> None:
    for text, reason in (
        (answer(totals=compared("output_1")), "off_scale"),
        (answer(totals=compared(1)), "off_scale"),
        (answer(totals=compared("first", confidence=90)), "off_scale"),
        (answer(totals=compared("first", evidence_second=[])), "no_evidence"),
        (answer(totals=compared("first", justification="")), "no_justification"),
        (
            answer(totals=compared("first")).replace('"winner": "first"', '"winner": "first", "winner": "tie"'),
            "contradictory",
        ),
        ("The first one.", "not_json"),
        (json.dumps(compared("first")), "wrong_format"),
    ):
        judgement = said(text)
        assert (judgement.winner, judgement.unscored) == (None, reason), text


def test_a_tie_is_a_winner_only_where_allowed_and_there_is_no_overall_verdict_without_each() -> None:
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


def test_code_makes_the_overall_verdict_of_the_criteria_by_their_weights() -> None:
    for words, weights, winner in (
        (("first", "first"), (1, 1), 1),
        (("first", "second"), (1, 1), "tie"),
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


def test_an_item_has_two_outputs_or_several_by_name() -> None:
    for item in (
        {"id": "a"},
        {"id": "a", "output_1": "x"},
        {"id": "a", "output_1": "x", "output_2": ""},
        {"id": "a", "outputs": {"one": "x"}},
        {"id": "a", "outputs": {"one": "x", "two": ""}},
        {"id": "a", "output_1": "x", "output_2": "y", "outputs": {"one": "x", "two": "y"}},
    ):
        with pytest.raises(ValueError, match="output"):
            PairItem.model_validate(item)


def match_of(item: str, *names: str) -> MatchResult:
    return MatchResult(item=item, stratum="all", names=(names[0], names[1]), shares={}, judgements=[])


def test_outputs_named_1_and_2_among_several_are_not_the_pair() -> None:
    pair, among = match_of("a", "1", "2"), [match_of("b", "1", "2"), match_of("b", "1", "3"), match_of("b", "2", "3")]
    assert pair_results([pair, *among, match_of("c", "x", "y")]) == [pair]


def test_match_is_won_if_all_replicates_agree() -> None:
    assert [winner_of(share) for share in (1.0, 0.75, 0.5, 0.25, 0.0, None)] == [1, "tie", "tie", "tie", 2, None]


def test_outputs_are_ranked_by_their_win_rate_over_all_pairs() -> None:
    shares = {("a", "b"): 1.0, ("a", "c"): 0.5, ("b", "c"): 0.0}
    ranked = rank_outputs([(item, names, share) for item in "xyz" for names, share in shares.items()])
    assert [(one.name, one.wins.value, one.wins.n) for one in ranked] == [("a", 0.75, 3), ("c", 0.75, 3), ("b", 0.0, 3)]
    assert rank_outputs([("x", ("a", "b"), None)]) == []
