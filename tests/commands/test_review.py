"""`review` on the command line: queue outputs, and export the labels on which reviewers agree."""

import json
from pathlib import Path

import pytest

from tests.judges.review.reviews import label_queue
from tests.support.library import Library

LINES = [
    {"id": f"p{number}", "input": "When?", "output_1": f"at {number}", "output_2": f"at {number + 1}", "human": 1}
    for number in range(5)
]


@pytest.fixture
def library(tmp_path: Path) -> Library:
    library = Library(tmp_path)
    library.lines("pairs.jsonl", *LINES)
    return library


def test_add_queues_the_same_sample_once(library: Library) -> None:
    assert "2 items added" in library.call("review", "add", "pairs.jsonl", "--sample", "2").out
    again = library.call("review", "add", "pairs.jsonl", "--sample", "2").out
    assert "0 items added to .evaluator/reviews, 2 already queued" in again
    assert "3 items added to .evaluator/reviews, 2 already queued" in library.call("review", "add", "pairs.jsonl").out


def test_add_refuses_an_empty_file(library: Library) -> None:
    library.write("wrong.jsonl", "")
    assert library.call("review", "add", "wrong.jsonl").refuses("wrong.jsonl is empty")


@pytest.mark.parametrize("command", [("serve",), ("export", "--labels", "labels.jsonl")])
def test_review_without_a_queue_names_review_add(command: tuple[str, ...], library: Library) -> None:
    assert library.call("review", *command).refuses("add items with `skill-evaluator review add FILE`")


def test_exported_labels_calibrate_a_judge(library: Library) -> None:
    library.call("review", "add", "pairs.jsonl")
    for reviewer in ("ada", "ben"):
        label_queue(library.root, reviewer, overall="tie")
    done = library.call("review", "export", "--labels", "items.jsonl")
    assert done.out == "5 labels in items.jsonl; skipped: 0 disputed, 0 items not drawn at random\n"
    items = [json.loads(line) for line in (library.root / "items.jsonl").read_text().splitlines()]
    verdicts = [{"id": item["id"], "judge": "j", "order": order, "winner": "tie"} for item in items for order in (1, 2)]
    library.lines("verdicts.jsonl", *verdicts)
    words = ("judge", "calibrate", "--labels", "items.jsonl", "--verdicts", "verdicts.jsonl", "--format", "json")
    assert library.call(*words).json["judges"][0]["judge"] == "j"
