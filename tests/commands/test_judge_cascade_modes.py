"""The cascade of scores and of regressions; and what labels from the review do to its threshold, in every mode."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from skill_evaluator.api.schemas import schema_text

from tests.support.asked_judges import QUOTE, JudgingLibrary, answer, compared, method, written
from tests.support.judged import CHANGE
from tests.support.judged import answer as regression
from tests.support.library import Ended

CASCADE = ("--cascade", "cheap,strong")
EASY = {"audit": 0, "alpha": 0.2, "delta": 0.2}  # 8 labels are enough
QUEUE, LABELS = ".evaluator/reviews/queue.jsonl", ".evaluator/reviews/labels.jsonl"
SAME = {"factuality": "same", "completeness": "same"}
WORSE = {**SAME, "completeness": ("worse", "medium")}
BLOCK = {**SAME, "completeness": ("worse", "high")}
UNSUPPORTED = {**SAME, "completeness": ("worse", "medium", "nice", "less nice")}


@pytest.fixture
def library(tmp_path: Path) -> JudgingLibrary:
    library = JudgingLibrary(tmp_path)
    library.answered_by("cheap", "strong")
    library.settings(policy={"judge": {"cascade": EASY}})
    return library


def conforms(done: Ended, schema: str) -> None:
    """Hold a result against its schema, without the folder that stands beside it."""
    stored = {key: value for key, value in done.json.items() if key != "folder"}
    jsonschema.validate(stored, json.loads(schema_text(schema)))


# scores


def scored(library: JudgingLibrary, judge: str, *given: tuple[Any, float]) -> None:
    """Have a judge score i0, i1, … with a confidence."""
    library.record_answers(
        {(f"i{n}/direct", 0): answer(totals=written(score, confidence=sure)) for n, (score, sure) in enumerate(given)},
        f"{judge}.jsonl",
    )


def outputs(library: JudgingLibrary, count: int) -> None:
    library.items(*({"id": f"i{n}", "input": f"Add 5 and 7: {n}.", "output": QUOTE} for n in range(count)))


def test_a_score_that_is_unsure_or_does_not_count_goes_on_to_the_strong_judge_and_then_to_people(
    library: JudgingLibrary,
) -> None:
    outputs(library, 4)
    scored(library, "cheap", (4, 0.9), (4, 0.5), (9, 0.9), (2, 0.6))
    scored(library, "strong", (1, 0.9), (2, 0.9), (3, 0.9), (3, 0.4))
    done = library.judge("score", *CASCADE, "--format", "json")
    assert done.code == 0, done.err
    conforms(done, "judge-score-cascade")
    result = done.json["cascade"]
    assert [(stage["asked"], stage["settled"]) for stage in result["stages"]] == [(4, 1), (3, 2)]
    assert [(item["by"], item["scores"]) for item in result["items"]] == [
        ("cheap", {"totals": 4.0}),
        ("strong", {"totals": 2.0}),
        ("strong", {"totals": 3.0}),
        ("people", None),
    ]
    assert (result["summary"]["n"], result["people"], result["guarantee"]) == (3, 1, None)
    assert library.reasons() == {"i3": ["low_confidence"]}
    text = library.judge("score", *CASCADE).out
    assert "nothing guarantees that what the judges settled agrees with people" in text
    assert "left to people: 1" in text


def test_scores_agree_with_people_up_to_a_quarter_of_the_scale(library: JudgingLibrary) -> None:
    count = 64
    outputs(library, count)
    scored(library, "cheap", *[(4, 0.9) if n % 2 else (4, 0.7) for n in range(count)])
    scored(library, "strong", *[(3, 0.9)] * count)
    people = [{"id": f"i{n}", "scores": {"totals": 5 if n % 2 else [2, 2]}} for n in range(count)]
    library.lines("labels.jsonl", *people)
    library.settings(policy={"judge": {"cascade": {"audit": 0}}})
    result = library.outcome("score", *CASCADE, "--labels", "labels.jsonl")["cascade"]
    assert result["guarantee"] == {"alpha": 0.1, "delta": 0.1}
    cheap, _ = result["stages"]
    assert (cheap["labels"], cheap["settled"]) == (count, count / 2)
    library.settings(policy={"judge": {"cascade": EASY}})
    cheap, strong = library.outcome("score", *CASCADE, "--labels", "labels.jsonl")["cascade"]["stages"]
    assert 0.7 < cheap["threshold"] <= 0.9, "4 and 5 agree, 4 and 2 do not"
    assert (cheap["settled"], strong["asked"]) == (count / 2, count / 2)
    assert strong["settled"] == count / 2, "3 and 2 agree"


@pytest.mark.parametrize(
    ("label", "complaint"),
    [
        ({"id": "i0", "scores": {"totals": 11}}, "labels.jsonl:1: Input should be less than or equal to 10"),
        ({"id": "i0", "scores": {"tone": 3}}, "labels.jsonl has no score by every criterion of an output judged here"),
    ],
)
def test_a_wrong_score_of_people_is_one_line_before_any_call(
    label: Mapping[str, Any], complaint: str, library: JudgingLibrary
) -> None:
    outputs(library, 1)
    library.lines("labels.jsonl", label)
    assert library.judge("score", *CASCADE, "--labels", "labels.jsonl").refuses(complaint)
    assert not library.judgements.exists()


# regressions


def found(library: JudgingLibrary, judge: str, *findings: Any) -> None:
    """Have a judge find this in p0, p1, …: in both orders the same, or in each what a pair says; replicates alike."""
    asked = {}
    for n, given in enumerate(findings):
        for order in (1, 2):
            one = given[order - 1] if isinstance(given, tuple) else given
            asked[f"p{n}/{order}", 0] = json.dumps(regression(one))
    library.record_answers(asked, f"{judge}.jsonl")


def pairs(library: JudgingLibrary, count: int) -> None:
    library.items(*({"id": f"p{n}", **CHANGE, "prompt": f"{CHANGE['prompt']} {n}"} for n in range(count)))


def judged(library: JudgingLibrary, *arguments: str) -> Ended:
    asked = ("--items", "items.jsonl", "--dimensions", "factuality,completeness", *CASCADE)
    return library.call("judge", "regression", *asked, *arguments)


def test_a_regression_in_doubt_goes_on_and_what_blocks_is_shown_to_people_all_the_same(library: JudgingLibrary) -> None:
    pairs(library, 5)
    found(library, "cheap", SAME, BLOCK, (SAME, WORSE), UNSUPPORTED, (SAME, WORSE))
    found(library, "strong", *[SAME] * 3, WORSE, (SAME, WORSE))
    done = judged(library, "--format", "json")
    assert done.code == 3, done.err
    conforms(done, "judge-regression-cascade")
    result = done.json["cascade"]
    assert [(stage["asked"], stage["settled"]) for stage in result["stages"]] == [(5, 2), (3, 2)]
    assert [(pair["by"], pair["ship_decision"]) for pair in result["pairs"]] == [
        ("cheap", "ship"),
        ("cheap", "block"),
        ("strong", "ship"),
        ("strong", "review_required"),
        ("people", "review_required"),
    ]
    assert library.reasons() == {"p1": ["block"], "p3": ["regression"], "p4": ["disagreement"]}
    found(library, "cheap", *[SAME] * 5)
    assert judged(library).code == 0


def test_replicates_that_differ_lower_the_confidence_of_a_regression(library: JudgingLibrary) -> None:
    pairs(library, 1)
    replicates = {0: SAME, 1: SAME, 2: WORSE, 3: WORSE}
    for judge in ("cheap", "strong"):
        given = {(f"p0/{order}", n): json.dumps(regression(one)) for n, one in replicates.items() for order in (1, 2)}
        library.record_answers(given, f"{judge}.jsonl")
    done = judged(library, "-n", "4", "--format", "json")
    (pair,) = done.json["cascade"]["pairs"]
    assert (pair["by"], pair["confidence"], pair["ship_decision"]) == ("people", 0.5, "review_required")
    assert done.code == 4, "what is left to people does not ship without them"
    assert library.reasons() == {"p0": ["low_confidence"]}


def test_what_people_find_decides_by_the_same_rules_and_chooses_the_threshold(library: JudgingLibrary) -> None:
    count = 24
    pairs(library, count)
    found(library, "cheap", *[WORSE if n % 2 else SAME for n in range(count)])
    found(library, "strong", *[SAME] * count)
    people: list[dict[str, Any]] = []
    for n in range(count):
        worse = {"human": "candidate_worse", "impact": "medium"} if n % 2 else {"human": "same"}
        people.append({"id": f"p{n}", "dimension": "completeness", **worse})
        people.append({"id": f"p{n}", "dimension": "factuality", "human": "same"})
    library.lines("labels.jsonl", *people)
    done = judged(library, "--labels", "labels.jsonl", "--format", "json")
    cheap, _ = done.json["cascade"]["stages"]
    assert (cheap["labels"], cheap["settled"]) == (count, count)
    library.lines("labels.jsonl", *people[::2])
    refused = judged(library, "--labels", "labels.jsonl")
    assert (refused.code, "no pair judged here is labelled in every dimension" in refused.err) == (2, True)


# labels from the review


def label(library: JudgingLibrary, names: Iterable[str], answers: list[dict[str, Any]]) -> None:
    """Have a reviewer answer these items of the queue."""
    lines = [
        {"item": library.queued()[name]["id"], "reviewer": "ada", "at": "2026-01-01T00:00:00Z", "answers": answers}
        for name in names
    ]
    path = library.root / LABELS
    there = path.read_text() if path.exists() else ""
    library.write(LABELS, there + "".join(f"{json.dumps(line)}\n" for line in lines))


SETTINGS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "score": ("i", [{"question": "totals", "answer": "4"}]),
    "pairwise": ("i", [{"question": "overall", "answer": "1"}]),
    "regression": ("p", [{"question": name, "answer": "same"} for name in SAME]),
}


def prepared(library: JudgingLibrary, mode: str, count: int) -> None:
    """A batch of which the cheap judge is right about everything, with a confidence of 0.6 where it has any."""
    if mode == "score":
        outputs(library, count)
        for judge in ("cheap", "strong"):
            scored(library, judge, *[(4, 0.6)] * count)
    elif mode == "pairwise":
        library.rubric({"method": method("pairwise_comparison")})
        library.items(
            *({"id": f"i{n}", "input": f"{n}?", "output_1": QUOTE, "output_2": "no sum"} for n in range(count))
        )
        given = {
            (f"i{n}/{order}", 0): answer(totals=compared("first" if order == 1 else "second", confidence=0.6))
            for n in range(count)
            for order in (1, 2)
        }
        for judge in ("cheap", "strong"):
            library.record_answers(given, f"{judge}.jsonl")
    else:
        pairs(library, count)
        for judge in ("cheap", "strong"):
            found(library, judge, *[SAME] * count)


def run(library: JudgingLibrary, mode: str, *arguments: str) -> Ended:
    return judged(library, *arguments) if mode == "regression" else library.judge(mode, *CASCADE, *arguments)


@pytest.mark.parametrize("mode", SETTINGS)
def test_labels_of_what_was_drawn_by_chance_choose_the_threshold_once_there_are_enough(
    mode: str, library: JudgingLibrary
) -> None:
    count, needed = 12, 8
    prepared(library, mode, count)
    first = run(library, mode, "--review", "--review-sample", str(count), "--format", "json")
    assert first.code == 0, first.err
    assert all("random" in given for given in library.reasons().values())
    letter, answers = SETTINGS[mode]
    label(library, [f"{letter}{n}" for n in range(needed - 1)], answers)
    few = run(library, mode)
    assert f"{needed - 1} labels from review: too few to choose a threshold, which takes {needed}" in few.out
    assert "nothing guarantees" in few.out
    label(library, [f"{letter}{needed - 1}"], answers)
    done = run(library, mode, "--format", "json")
    cheap = done.json["cascade"]["stages"][0]
    assert cheap["labels"] == needed
    assert cheap["settled"] == count, "it was right about all that people looked at"
    assert done.json["cascade"]["guarantee"] is not None
    assert f"chosen on {needed} labels" in run(library, mode).out


def test_labels_from_review_add_to_those_of_a_file(library: JudgingLibrary) -> None:
    count = 32
    prepared(library, "pairwise", count)
    run(library, "pairwise", "--review", "--review-sample", str(count))
    label(library, library.queued(), SETTINGS["pairwise"][1])
    library.lines("labels.jsonl", *({"id": f"i{n}", "human": 1} for n in range(8)))
    done = run(library, "pairwise", "--labels", "labels.jsonl")
    assert "chosen on 32 labels" in done.out
