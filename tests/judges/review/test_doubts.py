"""Judge runs queue outputs for people: each doubt under its reason, and a random sample."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.asked_judges import JUDGE, QUOTE, JudgingLibrary, answer, compared, method, written
from tests.support.judged import CHANGE
from tests.support.judged import answer as regression

QUEUE = ".evaluator/reviews/queue.jsonl"
PAIR = {"input": "Add 5 and 7.", "output_1": QUOTE, "output_2": "There is no sum here."}
SAME = {"factuality": "same", "completeness": "same"}


@pytest.fixture
def library(tmp_path: Path) -> JudgingLibrary:
    return JudgingLibrary(tmp_path)


def test_output_is_queued_with_the_whole_scale_and_without_its_judge(library: JudgingLibrary) -> None:
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


WORSE = {**SAME, "completeness": ("worse", "medium")}
UNVERIFIED = {**SAME, "completeness": ("worse", "medium", "nice", "less nice")}
BLOCKING = {**SAME, "factuality": ("worse", "low")}
UNSURE = (compared("first", confidence=0.2), compared("second", confidence=0.2))


@pytest.mark.parametrize(
    ("cause", "mode", "answers", "sample", "expected"),  # in one order or in both
    [
        ("nothing", "score", [written(3)], 0, []),
        ("low confidence", "score", [{**written(3), "confidence": 0.2}], 0, ["low_confidence"]),
        ("low confidence", "pairwise", UNSURE, 0, ["low_confidence"]),
        ("disagreement", "pairwise", [compared("first", confidence=0.9)] * 2, 0, ["disagreement"]),
        ("unverified evidence", "regression", [UNVERIFIED] * 2, 0, ["regression", "unverified"]),
        ("a block", "regression", [BLOCKING] * 2, 0, ["block"]),
        ("an answer that does not count", "regression", [{"factuality": "same"}] * 2, 0, ["unscored"]),
        ("a random sample", "regression", [SAME, SAME], 1, ["random"]),
        ("high stakes", "regression", [SAME, SAME], 0, ["stakes"]),
        ("a block, which is not drawn", "regression", [BLOCKING] * 2, 1, ["block"]),
    ],
)
def test_reasons_of_a_judged_item(
    cause: str, mode: str, answers: Any, sample: int, expected: list[str], library: JudgingLibrary
) -> None:
    library.rubric({"method": method("pairwise_comparison" if mode == "pairwise" else "direct_scoring")})
    library.items({"id": "p", **(PAIR if mode == "pairwise" else CHANGE), "output": QUOTE})
    texts = [json.dumps(regression(said)) if mode == "regression" else answer(totals=said) for said in answers]
    keys = ["p/direct"] if mode == "score" else ["p/1", "p/2"]
    library.record_answers({(key, 0): text for key, text in zip(keys, texts, strict=True)})
    rubric = ["--dimensions", "factuality,completeness"] if mode == "regression" else ["rubric.yaml"]
    words = ["--items", "items.jsonl", "--judge", JUDGE, "--review", "--review-sample", str(sample)]
    words += ["--stakes", "high"] if cause == "high stakes" else []
    done = library.call("judge", mode, *rubric, *words)
    assert done.code in (0, 3, 4), done.err
    assert library.reasons() == ({"p": expected} if expected else {}), cause


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
