"""The review queue on disk: writers, invalid lines, choices, the export of labels and the status."""

import json
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Literal

import pytest
from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.review.queue import (
    LABELS,
    QUEUE,
    ReviewItem,
    ReviewLabel,
    ReviewQueue,
    choices,
    export_labels,
    first_shown,
    latest,
    status_lines,
)

from tests.judges.review.reviews import change, label, pair, queue_of, scored

ITEMS = [pair(f"p{number}") for number in range(20)]


def test_adding_an_item_twice_changes_nothing(tmp_path: Path) -> None:
    assert pair(judging="20260301T080000Z-abcdef").id == pair().id
    assert pair(reference="at 8").id != pair().id
    assert pair(outputs=("p1 opens at nine.", "p1 opens at 8.")).id != pair().id
    queue = queue_of(tmp_path, pair(), scored())
    before = (queue.folder / QUEUE).read_bytes()
    assert queue.add([scored(), pair(reasons=("block",))]) == []
    assert (queue.folder / QUEUE).read_bytes() == before
    assert list(queue.items().values()) == [pair(), scored()]


def _label_all(folder: Path, reviewer: str) -> None:
    queue = ReviewQueue(folder=folder)
    for item in ITEMS:
        queue.label(label(item, reviewer, overall="1"))


@pytest.mark.process
def test_concurrent_reviewers_lose_no_label(tmp_path: Path) -> None:
    queue = queue_of(tmp_path, *ITEMS)
    with ProcessPoolExecutor(3) as processes:
        for done in [processes.submit(_label_all, queue.folder, name) for name in ("ada", "ben", "cy")]:
            done.result()
    counting = latest(queue.labels(queue.items()))
    assert all(set(counting[item.id]) == {"ada", "ben", "cy"} for item in ITEMS)
    assert len((queue.folder / LABELS).read_text().splitlines()) == 60


def test_latest_label_counts_and_earlier_labels_are_kept(tmp_path: Path) -> None:
    queue = queue_of(tmp_path, pair())
    first, second = label(pair(), overall="1"), label(pair(), at="2026-03-02T08:00:00Z", overall="tie")
    for given in (first, second):
        queue.label(given)
    assert queue.labels(queue.items()) == [first, second]
    assert latest([second, first])[pair().id]["ada"] == second


def test_label_that_misfits_its_item_is_refused_with_its_line(tmp_path: Path) -> None:
    queue = queue_of(tmp_path, pair(), change())
    queue.label(label(pair(), overall="1"))
    with pytest.raises(JudgeError, match=r"is not an answer to question 'factuality' \(one of candidate_worse \(low"):
        queue.label(label(change(), factuality="candidate_worse", tone="same"))
    right = (queue.folder / LABELS).read_text()
    for answers, problem in (
        ([("overall", "3", None)], "'3' is not an answer to question 'overall'"),
        ([("other", "1", None)], "must have one answer to each question: overall"),
        ([("overall", "1", None), ("overall", "2", None)], "must have one answer to each question: overall"),
        ([("overall", "1", "high")], r"'1 \(high\)' is not an answer to question 'overall' \(one of 1, 2, tie\)"),
    ):
        wrong = [{"question": name, "answer": answer, "impact": impact} for name, answer, impact in answers]
        line = {"item": pair().id, "reviewer": "ben", "at": "2026-03-01T12:00:00Z", "answers": wrong}
        (queue.folder / LABELS).write_text(right + json.dumps(line) + "\n")
        with pytest.raises(JudgeError, match=problem) as refused:
            queue.labels(queue.items())
        assert f"{LABELS}:2: " in str(refused.value)


def test_invalid_item_is_refused_with_its_line(tmp_path: Path) -> None:
    queue = queue_of(tmp_path, pair())
    right = json.loads((queue.folder / QUEUE).read_text())
    for edit, problem in (
        ({"outputs": ["other", "texts"]}, "the item was edited"),
        ({"reasons": ["bored"]}, "at reasons"),
        ({"model": "gpt-5"}, "unknown key at model"),
    ):
        (queue.folder / QUEUE).write_text("\n" + json.dumps({**right, **edit}) + "\n")
        with pytest.raises(JudgeError, match=problem) as refused:
            queue.items()
        assert f"{QUEUE}:2: " in str(refused.value)


def test_order_is_random_by_reviewer_and_reproducible() -> None:
    items = [pair(f"p{number}") for number in range(200)]
    ada, ben = ([first_shown(item, name) for item in items] for name in ("ada", "ben"))
    assert ada == [first_shown(item, "ada") for item in items]
    assert 70 < ada.count(1) < 130
    assert 70 < sum(left == right for left, right in zip(ada, ben, strict=True)) < 130


@pytest.mark.parametrize("first", [1, 2])
def test_choices_name_the_output_that_is_shown_first_a(first: Literal[1, 2]) -> None:
    second = 3 - first
    texts = {text: answer.answer for text, answer in choices(pair(), pair().questions[0], first)}
    assert texts == {"A is better": str(first), "B is better": str(second), "neither": "tie"}
    better = {1: "candidate_worse", 2: "candidate_better"}  # output 1 is the baseline
    shown = [(text, answer.answer, answer.impact) for text, answer in choices(change(), change().questions[0], first)]
    assert shown[2] == ("A is better, high impact", better[first], "high")
    assert shown[3] == ("B is better, low impact", better[second], "low")
    assert shown[6] == ("the same", "same", None)
    assert [text for text, _ in choices(scored(), scored().questions[0], first)] == ["1 rude", "2 curt", "3 friendly"]


def export(root: Path, items: list[ReviewItem], labels: list[ReviewLabel]) -> tuple[int, int, int]:
    queue = queue_of(root, *items)
    for given in labels:
        queue.label(given)
    return export_labels(queue, root / "labels.jsonl")


def exported(root: Path) -> dict[str, Any]:
    """The lines of the file by id."""
    lines = map(json.loads, (root / "labels.jsonl").read_text().splitlines())
    return {line["id"]: line for line in lines}


@pytest.mark.parametrize(
    ("answers", "human"),
    [(["1"], 1), (["2", "2"], 2), (["1", "2"], None), (["1", "tie"], None), (["tie", "2", "tie"], "tie")],
)
def test_pair_is_exported_with_the_answer_of_the_majority(answers: list[str], human: object, tmp_path: Path) -> None:
    labels = [label(pair(), f"r{number}", overall=answer) for number, answer in enumerate(answers)]
    assert export(tmp_path, [pair()], labels) == (int(human is not None), int(human is None), 0)
    assert human is None or exported(tmp_path)["p1"]["human"] == human


def test_export_refuses_two_items_with_one_id(tmp_path: Path) -> None:
    items = [pair(), pair(document="another")]
    with pytest.raises(JudgeError, match="two different items of the queue have the id 'p1'"):
        export(tmp_path, items, [label(item, overall="1") for item in items])


def test_export_skips_items_that_were_not_drawn_at_random(tmp_path: Path) -> None:
    drawn = change("drawn", reasons=["random"])
    shipped = change("shipped", reasons=["random"], judging="20260301T080000Z-abc123")
    labels = [
        label(item, name, factuality=f"candidate_worse {impact}", tone=tone)
        for item in (drawn, change("doubtful"), shipped)
        for name, impact, tone in (("ada", "low", "same"), ("ben", "high", "candidate_better low"))
    ]
    assert export(tmp_path, [drawn, change("doubtful"), shipped], labels) == (1, 1, 2)
    finding = {"id": "drawn", "dimension": "factuality", "human": "candidate_worse", "impact": "high"}
    assert exported(tmp_path) == {"drawn": finding}


def test_export_keeps_scores_by_reviewer_and_other_lines(tmp_path: Path) -> None:
    (tmp_path / "labels.jsonl").write_text('{"id": "p1", "human": 1}\n{"id": "old", "human": 2}\n')
    item = scored(reasons=["random"])
    labels = [label(item, "ben", tone="2"), label(item, "ada", tone="3"), label(pair(), overall="tie")]
    for _ in range(2):
        assert export(tmp_path, [item, pair()], labels) == (2, 0, 0)
    lines = exported(tmp_path)
    assert (lines["p1"]["human"], lines["old"]["human"], lines["s1"]["scores"]) == ("tie", 2, {"tone": [3, 2]})


def test_status_counts_labels_and_lists_differences() -> None:
    items = {item.id: item for item in (pair(f"p{number}") for number in range(8))}
    first, *rest = items.values()
    ada = [label(item, "ada", overall="1" if number < 4 else "2") for number, item in enumerate([first, *rest[:6]])]
    ben = [label(item, "ben", overall="1" if number < 3 else "2") for number, item in enumerate(rest[:5])]
    assert status_lines(items, [*ada, *ben, label(first, "ben", overall="2", note="both say 8")]) == [
        "8 items: 7 labelled, 1 without a label",
        "ada: 7 labels",
        "ben: 6 labels",
        "reviewers agree on 5 of 6 questions",
        "differ on p0, overall: ada says 1, ben says 2 (both say 8)",
    ]
