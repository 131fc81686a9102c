"""Panels: the combined scores and verdicts of several judges."""

import json
import re
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
    """Have each judge score the item `a`; None is an output that does not count."""
    library.items({"id": "a", "input": "Add.", "output": QUOTE, "model": "gpt-5"})
    for judge, score in zip(JUDGES, scores, strict=True):
        text = "Fine." if score is None else answer(totals=written(score))
        library.record_answers({("a/direct", 0): text}, f"{judge}.jsonl")


def test_scores_are_averaged_by_weight(library: JudgingLibrary) -> None:
    panel(library, weights={"three": 2.0})
    scored(library, 1, 3, 5)
    whole = library.outcome("score", *NAMED)["panel"]
    (item,) = whole["by_item"]
    assert (item["verdicts"], item["verdict"]) == ({"totals": 3.5}, pytest.approx(2.5 / 4))
    assert whole["agreement"]["value"] == 0.0
    assert [(one["judge"], one["agrees"]["value"]) for one in whole["judges"]] == [
        ("one", 0.0),
        ("two", 1.0),
        ("three", 0.0),
    ]


def test_judge_without_a_score_has_no_vote(library: JudgingLibrary) -> None:
    scored(library, 2, 4, None)
    done = library.judge("score", *NAMED, "--format", "json")
    assert (done.code, done.json["panel"]["by_item"][0]["verdicts"]) == (4, {"totals": 3.0})  # one judge is unusable
    assert library.outcome("score", "--judge", "one")["panel"] is None


def test_judge_of_the_writers_family_is_refused_or_named(library: JudgingLibrary) -> None:
    library.rubric({"method": method("direct_scoring", "different_model_family")})
    own = {**REPLAY, "id": "three", "api_id": "gpt-5-mini", "params": {"file": "three.jsonl"}}
    library.models(*({**REPLAY, "id": judge, "params": {"file": f"{judge}.jsonl"}} for judge in JUDGES[:2]), own)
    scored(library, 1, 1, 5)
    assert library.judge("score", *NAMED).refuses("three is of the family of gpt-5, which wrote outputs")
    assert not library.judgements.exists()
    panel(library, same_family="allow")
    done = library.judge("score", *NAMED, "--format", "json")
    assert done.json["panel"]["by_item"][0]["verdicts"]["totals"] == pytest.approx(7 / 3, abs=1e-5)
    assert "warning: three is of the family of gpt-5, which wrote outputs" in done.err


def test_pair_without_a_majority_is_a_tie(library: JudgingLibrary) -> None:
    library.rubric({"method": PAIRWISE})
    library.items(*({"id": f"i{n}", "input": "Add.", "output_1": QUOTE, "output_2": "no sum"} for n in range(3)))
    first, second, tie = "first", "second", "tie"
    wins = {"one": (first, first, tie), "two": (first, second, first), "three": (first, first, second)}
    swapped = {first: second, second: first, tie: tie}
    for judge, words in wins.items():
        answers = {
            (f"i{n}/{order}", 0): answer(totals=compared(word if order == 1 else swapped[word]))
            for n, word in enumerate(words)
            for order in (1, 2)
        }
        library.record_answers(answers, f"{judge}.jsonl")
    whole = library.outcome("pairwise", *NAMED)["panel"]
    assert [match["verdicts"]["totals"] for match in whole["by_item"]] == [1, 1, "tie"]
    assert whole["by_item"][1]["votes"]["overall"] == {"one": 1, "two": 2, "three": 1}
    assert (whole["figures"]["totals"]["n"], whole["agreement"]["value"]) == (3, pytest.approx(1 / 3, abs=1e-5))
    assert [one["agrees"]["value"] for one in whole["judges"]] == pytest.approx([1.0, 1 / 3, 2 / 3], abs=1e-5)
    panel(library, weights={"two": 3.0})
    text = library.judge("pairwise", *NAMED).out
    assert "panel (majority, wins of output 1): totals 0.667 " in text
    assert re.search(r"two +3 +1\.000", text)


def test_outputs_named_by_number_are_ranked_in_a_panel(library: JudgingLibrary) -> None:
    library.rubric({"method": PAIRWISE})
    library.items({"id": "i", "input": "Add.", "outputs": {"1": QUOTE, "2": f"no sum. {QUOTE}", "3": f"{QUOTE} Yes."}})
    words = {1: "first", 2: "second"}  # the output with the lower number wins in both orders
    pairs = [(pair, order) for pair in ("1-2", "1-3", "2-3") for order in (1, 2)]
    for judge in JUDGES:
        answers = {(f"i/{pair}/{order}", 0): answer(totals=compared(words[order])) for pair, order in pairs}
        library.record_answers(answers, f"{judge}.jsonl")
    done = library.outcome("pairwise", *NAMED)
    assert {name: one["value"] for name, one in done["panel"]["win_rates"].items()} == {"1": 1.0, "2": 0.5, "3": 0.0}
    assert done["panel"]["win_rates"] == done["judges"][0]["win_rates"]
    assert done["panel"]["figures"]["totals"]["n"] == 0, "no item has just two outputs"


def lost_by(library: JudgingLibrary, *worse: str, finding: Short = ("worse", "high"), **more: str) -> None:
    """Have these judges find the candidate of one pair worse, and the others the same."""
    dimensions = {"regression_dimensions": "completeness"}
    library.items({"id": "p", **CHANGE, **dimensions, **more})
    for judge in JUDGES:
        text = json.dumps(regression_answer({"completeness": finding if judge in worse else "same"}))
        library.record_answers({(f"p/{order}", 0): text for order in (1, 2)}, f"{judge}.jsonl")


def test_panel_on_regressions_requires_another_family(library: JudgingLibrary) -> None:
    lost_by(library, "one", candidate_model="one-mini")
    words = ("judge", "regression", "--items", "items.jsonl")
    assert library.call(*words, *NAMED).refuses("one is of the family of one-mini")
    alone = library.call(*words, "--judge", "one")
    assert alone.code == 3, "by itself it is not refused"
    assert "warning: one is of the family of one-mini, which wrote outputs" in alone.err


@pytest.mark.parametrize(
    ("worse", "decision", "reason"),
    [
        ((), "ship", "no regression"),
        (("one",), "review_required", "not every judge lets it ship"),
        (("one", "two"), "block", "a regression of high impact: completeness"),
    ],
)
def test_majority_blocks_and_single_judge_sends_to_review(
    worse: tuple[str, ...], decision: str, reason: str, library: JudgingLibrary
) -> None:
    lost_by(library, *worse)
    done = library.call("judge", "regression", "--items", "items.jsonl", *NAMED, "--format", "json")
    assert done.code == {"ship": 0, "review_required": 4, "block": 3}[decision], done.err
    (pair,) = done.json["panel"]["by_item"]
    assert (done.json["ship_decision"], pair["verdict"], pair["reasons"][0]) == (decision, decision, reason)
