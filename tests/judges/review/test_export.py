"""Export of the labels on which reviewers agree, and the status of the queue."""

import json
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.review.queue import ReviewItem, ReviewLabel, export_labels, status_lines

from tests.judges.review.reviews import change, label, pair, queue_of, scored


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


def test_export_keeps_the_score_of_each_reviewer_and_other_lines_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "labels.jsonl").write_text('{"id": "p1", "human": 1}\n{"id": "old", "human": 2}\n')
    item = scored(reasons=["random"])
    labels = [label(item, "ben", tone="2"), label(item, "ada", tone="3"), label(pair(), overall="tie")]
    for _ in range(2):
        assert export(tmp_path, [item, pair()], labels) == (2, 0, 0)
    lines = exported(tmp_path)
    assert (lines["p1"]["human"], lines["old"]["human"], lines["s1"]["scores"]) == ("tie", 2, {"tone": [3, 2]})


def test_status_counts_labels_and_shows_on_what_reviewers_differ() -> None:
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
