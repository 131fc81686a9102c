"""Several judges in one judging: their scores and verdicts reduced to one, and what they disagree on."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.asked_judges import QUOTE, JudgingLibrary, answer, compared, method, written
from tests.support.judged import CHANGE, Short
from tests.support.judged import answer as regression_answer
from tests.support.library import REPLAY

JUDGES = ("one", "two", "three")
NAMED = tuple(word for judge in JUDGES for word in ("--judge", judge))
PAIRWISE = method("pairwise_comparison", "ties_allowed")


@pytest.fixture
def library(tmp_path: Path) -> JudgingLibrary:
    library = JudgingLibrary(tmp_path)
    library.answered_by(*JUDGES)
    return library


def panel(library: JudgingLibrary, **settings: Any) -> None:
    library.settings(policy={"judge": {"panel": settings}})


def scored(library: JudgingLibrary, *scores: int | None) -> None:
    """Have each judge give the item `a` its score; None is no answer that counts."""
    library.items({"id": "a", "input": "Add.", "output": QUOTE, "model": "gpt-5"})
    for judge, score in zip(JUDGES, scores, strict=True):
        text = "Fine." if score is None else answer(totals=written(score))
        library.record_answers({("a/direct", 0): text}, f"{judge}.jsonl")


@pytest.mark.parametrize(
    ("settings", "score"),
    [
        ({}, 3.0),
        ({"scores": "median"}, 3.0),
        ({"weights": {"three": 2.0}}, 3.5),
        ({"scores": "median", "weights": {"three": 3.0}}, 5.0),
    ],
)
def test_scores_are_reduced_by_mean_or_median_with_weights(
    settings: Mapping[str, Any], score: float, library: JudgingLibrary
) -> None:
    panel(library, **settings)
    scored(library, 1, 3, 5)
    whole = library.outcome("score", *NAMED)["panel"]
    (item,) = whole["items"]
    assert (item["scores"], item["spread"]) == ({"totals": score}, {"totals": 4.0})
    assert item["summary"] == pytest.approx((score - 1) / 4)
    assert whole["criteria"][0]["disputed"] == 1


def test_a_judge_without_a_score_has_no_voice_and_one_judge_is_no_panel(library: JudgingLibrary) -> None:
    scored(library, 2, 4, None)
    assert library.outcome("score", *NAMED)["panel"]["items"][0]["scores"] == {"totals": 3.0}
    assert library.outcome("score", "--judge", "one")["panel"] is None


def test_a_judge_of_the_writers_family_is_refused_or_counts_half_or_in_full(library: JudgingLibrary) -> None:
    library.rubric({"method": method("direct_scoring", "different_model_family")})
    own = {**REPLAY, "id": "three", "api_id": "gpt-5-mini", "params": {"file": "three.jsonl"}}
    library.models(*({**REPLAY, "id": judge, "params": {"file": f"{judge}.jsonl"}} for judge in JUDGES[:2]), own)
    scored(library, 1, 1, 5)
    assert library.judge("score", *NAMED).refuses("three is of that of gpt-5, which wrote outputs here")
    assert not library.judgements.exists()
    for same_family, score, much in (("half", 1.8, "half"), ("allow", 7 / 3, "in full")):
        panel(library, same_family=same_family)
        done = library.judge("score", *NAMED, "--format", "json")
        assert done.json["panel"]["items"][0]["scores"]["totals"] == pytest.approx(score, abs=1e-5)
        assert f"warning: three is of the family of gpt-5, and counts {much}" in done.err
    panel(library, same_family="half")
    assert library.judge("score", "--judge", "three").code == 2


def test_pairs_go_to_the_majority_and_without_one_are_ties(library: JudgingLibrary) -> None:
    library.rubric({"method": PAIRWISE})
    library.items(*({"id": f"i{n}", "input": "Add.", "output_1": QUOTE, "output_2": "no sum"} for n in range(3)))
    first, second, tie = "first", "second", "tie"
    wins = {"one": (first, first, tie), "two": (first, second, first), "three": (first, first, second)}
    exchanged = {first: second, second: first, tie: tie}
    for judge, words in wins.items():
        asked = {
            (f"i{n}/{order}", 0): answer(totals=compared(word if order == 1 else exchanged[word]))
            for n, word in enumerate(words)
            for order in (1, 2)
        }
        library.record_answers(asked, f"{judge}.jsonl")
    whole = library.outcome("pairwise", *NAMED)["panel"]
    matches = whole["matches"]
    assert [match["winners"]["totals"] for match in matches] == [1, 1, "tie"]
    assert matches[1]["votes"]["overall"] == {"1": 2.0, "2": 1.0}
    totals = whole["criteria"][0]
    assert (totals["counts"], totals["disputed"], totals["wins"]["n"]) == ({"1": 2, "tie": 1}, 2, 3)
    assert totals["agreement"]["n"] == 3
    panel(library, weights={"two": 3.0})
    text = library.judge("pairwise", *NAMED).out
    assert "panel (majority), totals: 1 better 2, 2 better 1, ties 0; judges differ on 2 comparisons, α " in text


def lost_by(library: JudgingLibrary, *worse: str, finding: Short = ("worse", "high"), **more: str) -> None:
    """Have these judges find the candidate of one pair worse, and the others the same."""
    dimensions = {"regression_dimensions": "completeness"}
    library.items({"id": "p", **CHANGE, **dimensions, **more})
    for judge in JUDGES:
        text = json.dumps(regression_answer({"completeness": finding if judge in worse else "same"}))
        library.record_answers({(f"p/{order}", 0): text for order in (1, 2)}, f"{judge}.jsonl")


@pytest.mark.parametrize(
    ("same_family", "votes", "verdict"),
    [
        ("half", {"candidate_worse": 1.0, "same": 1.5}, "same"),
        ("allow", {"candidate_worse": 2.0, "same": 2.0}, "uncertain"),
    ],
)
def test_a_judge_of_the_writers_family_counts_half_in_a_panel_on_regressions_too(
    same_family: str, votes: dict[str, float], verdict: str, library: JudgingLibrary
) -> None:
    library.models(
        *({**REPLAY, "id": judge, "params": {"file": f"{judge}.jsonl"}} for judge in JUDGES[1:]),
        {**REPLAY, "id": "one", "api_id": "gpt-5-mini", "params": {"file": "one.jsonl"}},
    )
    lost_by(library, "one", candidate_model="gpt-5")
    asked = ("judge", "regression", "--items", "items.jsonl", "--format", "json")
    refused = library.call(*asked, *NAMED)
    assert refused.refuses("same_family: refuse: a panel needs judges of a second family, and one is of that of gpt-5")
    panel(library, same_family=same_family, weights={"one": 2.0, "two": 0.5 if same_family == "half" else 1.0})
    done = library.call(*asked, *NAMED)
    (dimension,) = done.json["panel"]["pairs"][0]["dimensions"]
    assert (dimension["votes"], dimension["verdict"]) == (votes, verdict)
    counts = "half" if same_family == "half" else "in full"
    assert f"warning: one is of the family of gpt-5, and counts {counts}" in done.err
    alone = library.call(*asked, "--judge", "one")
    assert alone.code == 3, "by itself it is not refused"
    assert "warning: one is of the family of gpt-5, and counts in full" in alone.err


@pytest.mark.parametrize(
    ("worse", "decision", "reason"),
    [
        ((), "ship", "no regression"),
        (("one",), "review_required", "not every judge lets it ship"),
        (("one", "two"), "block", "a regression of high impact: completeness"),
    ],
)
def test_a_majority_blocks_and_a_single_judge_holds_back(
    worse: tuple[str, ...], decision: str, reason: str, library: JudgingLibrary
) -> None:
    lost_by(library, *worse)
    done = library.call("judge", "regression", "--items", "items.jsonl", *NAMED, "--format", "json")
    assert done.code == {"ship": 0, "review_required": 4, "block": 3}[decision], done.err
    (pair,) = done.json["panel"]["pairs"]
    assert (done.json["ship_decision"], pair["ship_decision"], pair["reasons"][0]) == (decision, decision, reason)
    assert sum(pair["dimensions"][0]["votes"].values()) == 3.0


def test_a_majority_blocks_by_what_code_confirms_alone(library: JudgingLibrary) -> None:
    lost_by(library, *JUDGES, finding=("worse", "high", "", "Something is gone."))
    done = library.call("judge", "regression", "--items", "items.jsonl", *NAMED, "--format", "json")
    (pair,) = done.json["panel"]["pairs"]
    assert (done.code, pair["reasons"][0]) == (4, "not every judge lets it ship")
    assert (pair["dimensions"][0]["verdict"], pair["dimensions"][0]["impact"]) == ("candidate_worse", None)
