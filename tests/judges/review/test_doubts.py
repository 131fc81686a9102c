"""What judges leave to people: each doubt under its reason, and of the rest so many by chance."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.asked_judges import JUDGE, QUOTE, JudgingLibrary, answer, compared, method, written
from tests.support.judged import CHANGE
from tests.support.judged import answer as regression
from tests.support.library import CASES, REPLAY, SKILL

QUEUE = ".evaluator/reviews/queue.jsonl"
PAIR = {"input": "Add 5 and 7.", "output_1": QUOTE, "output_2": "There is no sum here."}
SAME = {"factuality": "same", "completeness": "same"}


@pytest.fixture
def library(tmp_path: Path) -> JudgingLibrary:
    return JudgingLibrary(tmp_path)


def test_scores_in_doubt_are_queued_with_the_whole_scale(library: JudgingLibrary) -> None:
    library.items(*({"id": name, "input": f"Add 5 and 7: {name}.", "output": QUOTE} for name in ("sure", "low", "off")))
    unsure = {**written(3), "confidence": 0.2}
    given = {"sure": written(3), "low": unsure, "off": written(9)}
    library.record_answers({(f"{name}/direct", 0): answer(totals=one) for name, one in given.items()})
    done = library.judge("score", "--judge", JUDGE, "--review", "--review-sample", "0")
    assert "2 items queued for review in .evaluator/reviews" in done.err
    assert library.reasons() == {"low": ["low_confidence"], "off": ["unscored"]}
    line = library.queued()["low"]
    assert (line["kind"], line["document"], line["outputs"]) == ("score", "Add 5 and 7: low.", [QUOTE])
    assert [question["name"] for question in line["questions"]] == ["totals"]
    assert list(line["questions"][0]["levels"]) == ["1", "2", "3", "4", "5"]
    assert JUDGE not in (library.root / QUEUE).read_text(), "nobody is to see which judge it was"


def test_scores_of_replicates_two_levels_apart_are_a_disagreement(library: JudgingLibrary) -> None:
    library.items({"id": "near", "input": "1", "output": QUOTE}, {"id": "far", "input": "2", "output": QUOTE})
    scores = {("near", 0): 3, ("near", 1): 4, ("far", 0): 3, ("far", 1): 5}
    library.record_answers(
        {(f"{name}/direct", replicate): answer(totals=written(one)) for (name, replicate), one in scores.items()}
    )
    library.judge("score", "--judge", JUDGE, "-n", "2", "--review", "--review-sample", "0")
    assert library.reasons() == {"far": ["disagreement"]}


def test_pairs_whose_orders_differ_are_queued_and_a_sample_of_the_others(library: JudgingLibrary) -> None:
    library.rubric({"method": method("pairwise_comparison", "ties_allowed")})
    library.items(*({"id": f"i{n}", **PAIR, "input": f"{n}?"} for n in range(6)))
    words = {f"i{n}/{order}": "first" if n == 0 or order == 1 else "second" for n in range(6) for order in (1, 2)}
    library.record_answers({(question, 0): answer(totals=compared(word)) for question, word in words.items()})
    done = library.judge("pairwise", "--judge", JUDGE, "--review", "--review-sample", "2")
    assert done.code == 0, done.err
    first = library.reasons()
    assert sum("random" in given for given in first.values()) == 2
    assert first["i0"] == ["disagreement"], "the sample is of what is not in doubt"
    assert [name for name, given in first.items() if "disagreement" in given] == ["i0"]
    assert [question["name"] for question in library.queued()["i0"]["questions"]] == ["overall"]
    library.judge("pairwise", "--judge", JUDGE, "--review", "--review-sample", "2")
    assert (library.root / QUEUE).read_text().count("\n") == len(first), "the same sample again"


WORSE = {**SAME, "completeness": ("worse", "medium")}
UNVERIFIED = {**SAME, "completeness": ("worse", "medium", "nice", "less nice")}
BLOCKING = {**SAME, "factuality": ("worse", "low")}
AGREED = (compared("first"), compared("second"))
UNSURE = (compared("first", confidence=0.2), compared("second", confidence=0.2))


@pytest.mark.parametrize(
    ("cause", "mode", "answers", "sample", "expected"),  # in one order or in both
    [
        ("nothing", "score", [written(3)], 0, []),
        ("nothing", "pairwise", AGREED, 0, []),
        ("nothing", "regression", [SAME, SAME], 0, []),
        ("low confidence", "pairwise", UNSURE, 0, ["low_confidence"]),
        ("disagreement", "pairwise", [compared("first", confidence=0.9)] * 2, 0, ["disagreement"]),
        ("disagreement", "regression", [SAME, WORSE], 0, ["disagreement"]),
        ("unverified evidence", "regression", [UNVERIFIED] * 2, 0, ["regression", "unverified"]),
        ("a block", "regression", [BLOCKING] * 2, 0, ["block"]),
        ("a regression", "regression", [WORSE] * 2, 0, ["regression"]),
        ("an answer that does not count", "pairwise", [compared("neither"), compared("second")], 0, ["unscored"]),
        ("an answer that does not count", "regression", [{"factuality": "same"}] * 2, 0, ["unscored"]),
        ("a random sample", "score", [written(3)], 1, ["random"]),
        ("a random sample", "pairwise", AGREED, 1, ["random"]),
        ("a random sample", "regression", [SAME, SAME], 1, ["random"]),
        ("a block, which is not drawn", "regression", [BLOCKING] * 2, 1, ["block"]),
    ],
)
def test_what_feeds_the_queue(
    cause: str, mode: str, answers: Any, sample: int, expected: list[str], library: JudgingLibrary
) -> None:
    asked = ["--judge", JUDGE, "--review", "--review-sample", str(sample)]
    if mode == "regression":
        library.items({"id": "p", **CHANGE})
        library.record_answers({(f"p/{n}", 0): json.dumps(regression(said)) for n, said in enumerate(answers, 1)})
        words = ["--items", "items.jsonl", "--dimensions", "factuality,completeness"]
        done = library.call("judge", mode, *words, *asked)
    elif mode == "pairwise":
        library.rubric({"method": method("pairwise_comparison")})
        library.items({"id": "p", **PAIR})
        library.record_answers({(f"p/{n}", 0): answer(totals=said) for n, said in enumerate(answers, 1)})
        done = library.judge(mode, *asked)
    else:
        library.items({"id": "p", "input": "Add 5 and 7.", "output": QUOTE})
        library.record_answers({("p/direct", 0): answer(totals=answers[0])})
        done = library.judge(mode, *asked)
    assert done.code in (0, 3, 4), done.err
    assert library.reasons() == ({"p": expected} if expected else {}), cause


@pytest.mark.process  # a run is scored in others
def test_outputs_of_a_component_of_high_stakes_all_go_to_people(library: JudgingLibrary) -> None:
    assert library.evaluate_here().code == 0
    library.models(REPLAY, {**REPLAY, "id": "judge", "params": {"file": "judge.jsonl"}})
    texts = {(f"{case}/{order}", 0): json.dumps(regression(SAME)) for case in CASES for order in (1, 2)}
    library.record_answers(texts, "judge.jsonl")
    run = library.run_folder().name
    runs = ("--candidate", run, "--baseline", run, "--judge", "judge", "--dimensions", "factuality,completeness")
    words = ("judge", "regression", *runs, "--review", "--review-sample", "0")
    assert library.call(*words).code == 0
    assert library.reasons() == {}
    library.settings(policy={"components": {SKILL: {"stakes": "high"}}})
    assert library.call(*words).code == 4, "never without a person"
    assert library.reasons() == {case: ["stakes"] for case in CASES}


def test_nothing_is_queued_of_a_judging_that_stopped(library: JudgingLibrary) -> None:
    library.items(*({"id": name, "input": name, "output": QUOTE} for name in ("a", "b")))
    library.record_answers({(f"{name}/direct", 0): answer(totals=written(3)) for name in ("a", "b")})
    done = library.judge("score", "--judge", JUDGE, "--max-calls", "1", "--review")
    assert done.code == 4
    assert "nothing is queued for review until the judge run is complete" in done.err
    assert "--review" in done.err.splitlines()[-1]
    assert library.queued() == {}


def test_outputs_by_name_are_queued_without_their_names(library: JudgingLibrary) -> None:
    texts = {"gpt-5": "one", "claude": "two", "llama": "three"}
    library.write("several.jsonl", json.dumps({"id": "x", "input": "q", "outputs": texts}) + "\n")
    assert "3 items added" in library.call("review", "add", "several.jsonl").out
    assert list(library.queued()) == ["x/1-2", "x/1-3", "x/2-3"]
    assert not any(name in (library.root / QUEUE).read_text() for name in texts)
