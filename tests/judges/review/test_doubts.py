"""Items queued for human review: the reason of each doubt, and a random sample."""

import json
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.judges.modes.pairwise import PairItem, matches_of
from skill_evaluator.judges.modes.regression import JudgeRegressions
from skill_evaluator.judges.review.queue import decisions_on_regressions, paired_item, select_for_review

from tests.judges.review.reviews import pair
from tests.support.asked_judges import JUDGE, QUOTE, JudgingLibrary, answer, compared, method, written
from tests.support.judged import SAME as USUAL
from tests.support.judged import answer as regression
from tests.support.judged import judged

QUEUE = ".evaluator/reviews/queue.jsonl"
PAIR = {"input": "Add 5 and 7.", "output_1": QUOTE, "output_2": "There is no sum here."}


@pytest.fixture
def library(tmp_path: Path) -> JudgingLibrary:
    return JudgingLibrary(tmp_path)


def test_output_is_queued_with_its_scale_and_without_its_judge(library: JudgingLibrary) -> None:
    library.items(*({"id": name, "input": f"Add 5 and 7: {name}.", "output": QUOTE} for name in ("sure", "off", "far")))
    scores = {("sure", 0): 3, ("sure", 1): 4, ("off", 0): 9, ("off", 1): 3, ("far", 0): 3, ("far", 1): 5}
    library.record_answers(
        {(f"{name}/direct", n): answer(totals=written(score)) for (name, n), score in scores.items()}
    )
    done = library.judge("score", "--judge", JUDGE, "-n", "2", "--review", "--review-sample", "0")
    assert "2 items queued for review in .evaluator/reviews" in done.err
    assert library.reasons() == {"off": ["unscored"], "far": ["disagreement"]}
    (question,) = library.queued()["off"]["questions"]
    assert (question["name"], list(question["levels"])) == ("totals", list("12345"))
    assert JUDGE not in (library.root / QUEUE).read_text()


def test_random_sample_of_pairs_is_the_same_when_repeated(library: JudgingLibrary) -> None:
    library.rubric({"method": method("pairwise_comparison", "ties_allowed")})
    library.items(*({"id": f"i{n}", **PAIR, "input": f"{n}?"} for n in range(6)))
    words = {f"i{n}/{order}": "first" if order == 1 else "second" for n in range(6) for order in (1, 2)}
    library.record_answers({(question, 0): answer(totals=compared(word)) for question, word in words.items()})
    for _ in range(2):
        assert library.judge("pairwise", "--judge", JUDGE, "--review", "--review-sample", "2").code == 0
        assert list(library.reasons().values()) == [["random"], ["random"]]
        assert (library.root / QUEUE).read_text().count("\n") == 2


def test_reasons_of_a_regression() -> None:
    worse, unverified = (
        {**USUAL, "completeness": ("worse", "medium", *texts)} for texts in ((), ("nice", "less nice"))
    )
    blocking, incomplete = {**USUAL, "factuality": ("worse", "low")}, {"factuality": "same"}
    for first, second, stakes, expected in (
        (USUAL, USUAL, False, []),
        (USUAL, worse, False, ["disagreement"]),
        (worse, worse, False, ["regression"]),
        (unverified, unverified, False, ["regression", "unverified"]),
        (blocking, blocking, False, ["block"]),
        (incomplete, incomplete, False, ["unscored"]),
        (USUAL, USUAL, True, ["stakes"]),
    ):
        judge = JudgeRegressions.model_construct(pairs=[judged(regression(first), regression(second))])
        (decision,) = decisions_on_regressions([judge], high_stakes=stakes)
        assert decision.reasons == expected, expected


@pytest.mark.parametrize(
    ("mode", "answers", "expected"),
    [
        ("score", [{**written(3), "confidence": 0.2}], ["low_confidence"]),
        ("pairwise", [compared("first", confidence=0.2), compared("second", confidence=0.2)], ["low_confidence"]),
        ("pairwise", [compared("first", confidence=0.9)] * 2, ["disagreement"]),
    ],
)
def test_reasons_of_a_judged_item(mode: str, answers: Any, expected: list[str], library: JudgingLibrary) -> None:
    library.rubric({"method": method("pairwise_comparison" if mode == "pairwise" else "direct_scoring")})
    library.items({"id": "p", **PAIR, "output": QUOTE} if mode == "pairwise" else {"id": "p", "output": QUOTE})
    keys = ["p/direct"] if mode == "score" else ["p/1", "p/2"]
    library.record_answers({(key, 0): answer(totals=said) for key, said in zip(keys, answers, strict=True)})
    done = library.judge(mode, "--judge", JUDGE, "--review", "--review-sample", "0")
    assert done.code == 0, done.err
    assert library.reasons() == {"p": expected}


def test_regressions_are_sampled_from_those_without_a_doubt() -> None:
    blocked, shipped = pair("blocked"), pair("shipped")
    items = [
        (item.model_copy(update={"kind": "regression"}), reasons)
        for item, reasons in ((blocked, ["block"]), (shipped, []))
    ]
    queued = select_for_review(items, 1, seed=0)
    assert {item.item: item.reasons for item in queued} == {"blocked": ("block",), "shipped": ("random",)}


def test_incomplete_judge_run_queues_nothing(library: JudgingLibrary) -> None:
    library.items(*({"id": name, "input": name, "output": QUOTE} for name in ("a", "b")))
    library.record_answers({(f"{name}/direct", 0): answer(totals=written(3)) for name in ("a", "b")})
    done = library.judge("score", "--judge", JUDGE, "--max-calls", "1", "--review")
    assert done.code == 4
    assert "items are queued for review once the judge run is complete" in done.err
    assert "--review" in done.err.splitlines()[-1]
    assert library.queued() == {}


def test_names_of_outputs_are_not_queued(library: JudgingLibrary) -> None:
    texts = {"gpt-5": "one", "claude": "two", "llama": "three"}
    library.write("several.jsonl", json.dumps({"id": "x", "input": "q", "outputs": texts}) + "\n")
    assert "3 items added" in library.call("review", "add", "several.jsonl").out
    assert list(library.queued()) == ["x/1-2", "x/1-3", "x/2-3"]
    assert not any(name in (library.root / QUEUE).read_text() for name in texts)


def test_outputs_named_1_and_2_keep_the_ids_of_their_questions() -> None:
    """Judge runs with these question ids can be resumed; the review queue has the id of the item."""
    (match,) = matches_of([PairItem(id="x", input="q", outputs={"1": "one", "2": "two"})])
    assert (match.id, paired_item(match).item) == ("x/1-2", "x")
