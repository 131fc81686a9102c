"""`review` on the command line: queue, label by keys, stop and go on, and how far reviewers agree."""

import io
import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.support.library import Ended, Library
from tests.support.reviews import change, pair, queue_of, scored

LINES = [
    {"id": f"p{number}", "input": "When?", "output_1": f"at {number}", "output_2": f"at {number + 1}", "human": 1}
    for number in range(5)
]
LABELS = ".evaluator/reviews/labels.jsonl"


@pytest.fixture
def library(tmp_path: Path) -> Library:
    library = Library(tmp_path)
    library.lines("pairs.jsonl", *LINES)
    return library


def review(library: Library, *arguments: str, keys: str = "") -> Ended:
    with patch("sys.stdin", io.StringIO(keys)):
        return library.call("review", *arguments)


def labels(library: Library, path: str = LABELS) -> list[Any]:
    return [json.loads(line) for line in (library.root / path).read_text().splitlines()]


def test_a_file_is_queued_once_and_a_sample_of_it_is_always_the_same(library: Library) -> None:
    assert "2 items added" in library.call("review", "add", "pairs.jsonl", "--sample", "2").out
    again = library.call("review", "add", "pairs.jsonl", "--sample", "2").out
    assert "0 items added to .evaluator/reviews, 2 there already" in again
    assert "3 items added to .evaluator/reviews, 2 there already" in library.call("review", "add", "pairs.jsonl").out


def test_the_order_of_the_outputs_stays_hidden_and_the_label_is_mapped_back(library: Library) -> None:
    library.call("review", "add", "pairs.jsonl")
    done = review(library, "--reviewer", "ada", keys="1\n" * 5)
    assert done.code == 0, done.err
    assert "5 labels kept" in done.err
    given = labels(library)
    assert {line["answers"][0]["answer"] for line in given} == {"1", "2"}, "A is now this output, now that one"
    assert all(str(line["first"]) == line["answers"][0]["answer"] for line in given)


def test_it_goes_on_where_it_stopped(library: Library) -> None:
    library.call("review", "add", "pairs.jsonl")
    assert "2 labels kept" in review(library, "--reviewer", "ada", keys="1\n?\ns\n2\nq\n").err
    assert "3 items to label" in review(library, "--reviewer", "ada").err
    assert "5 items to label" in review(library, "--reviewer", "ben").err
    assert len(labels(library)) == 2


def test_a_regression_is_asked_by_dimension_with_its_impact_and_without_roles(library: Library) -> None:
    queue_of(library.root, change())
    done = review(library, "--reviewer", "ada", keys="1\n3\nt\nhard to say\n0\n")
    assert "baseline" not in done.out
    (line,) = labels(library)
    worse = "candidate_worse" if line["first"] == 1 else "candidate_better"
    assert line["answers"] == [
        {"question": "factuality", "answer": worse, "impact": "high"},
        {"question": "tone", "answer": "same"},
    ]
    assert line["note"] == "hard to say"


def test_a_single_key_suffices_on_a_terminal(library: Library) -> None:
    queue_of(library.root, pair())
    here, there = pty.openpty()
    command = [sys.executable, "-m", "skill_evaluator", "review", "--reviewer", "ada"]
    process = subprocess.Popen(command, cwd=library.root, stdin=there, stdout=there, stderr=there)
    os.close(there)
    shown = b""
    while b"> " not in shown.split(b"\n")[-1]:
        shown += os.read(here, 1024)
    for _ in range(500):  # a key that comes before the terminal listens for single ones is dropped
        if process.poll() is not None:
            break
        os.write(here, b"0")
        time.sleep(0.02)
    assert process.wait(30) == 0
    os.close(here)
    assert labels(library)[0]["answers"] == [{"question": "overall", "answer": "tie"}]


def test_texts_from_outside_move_no_cursor(library: Library) -> None:
    queue_of(library.root, pair(document="\x1b[2Jgone", outputs=["\x1b]0;x\x07", "b"]))
    done = review(library, "--reviewer", "ada", keys="q\n")
    assert "\x1b" not in done.out
    assert "\\u001b[2Jgone" in done.out


def test_status_says_how_far_reviewers_agree(library: Library) -> None:
    library.call("review", "add", "pairs.jsonl")
    review(library, "--reviewer", "ada", keys="0\n" * 5)
    review(library, "--reviewer", "ben", keys="0\n0\n0\nt\nboth say 8\n1\n")
    done = library.call("review", "status", "--format", "json")
    assert done.json["reviewers"] == {"ada": 5, "ben": 4}
    assert [(row["n"], row["agreed"]) for row in done.json["agreement"]] == [(4, 3)]
    assert done.json["disputed"][0]["notes"] == {"ben": "both say 8"}
    assert "p3    overall   ada says tie · ben says 1 (both say 8)" in library.call("review", "status").out
    assert "| `overall` | `ada · ben` | 4 | 3 |" in library.call("review", "status", "--format", "markdown").out


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"id": "x", "output_1": "a"}\n', "wrong.jsonl:1: output_1 and output_2 are needed"),
        ('{"id": "x", "prompt": "p", "baseline_output": "a"}\n', "wrong.jsonl:1: a required key is missing"),
        ("\n[1]\n", "wrong.jsonl:2: a mapping of keys to values is expected"),
        ("", "wrong.jsonl is empty"),
    ],
)
def test_a_wrong_file_is_one_line_with_its_place(content: str, problem: str, library: Library) -> None:
    library.write("wrong.jsonl", content)
    assert library.call("review", "add", "wrong.jsonl").refuses(problem)


@pytest.mark.parametrize("arguments", [("label", "--reviewer", "ada"), ("status",)])
def test_without_a_queue_it_says_how_to_begin(arguments: tuple[str, ...], library: Library) -> None:
    assert library.call("review", *arguments).refuses("queue something with `review add FILE`")


def test_labels_go_out_as_csv_and_into_another_queue_once(library: Library) -> None:
    library.call("review", "add", "pairs.jsonl")
    review(library, "--reviewer", "ada", keys="1\n2\n0\nt\nsame text\n1\n1\n")
    assert "5 lines written" in library.call("review", "export", "--out", "labels.csv").out
    assert library.call("review", "export").out == (library.root / "labels.csv").read_text()
    given = labels(library)
    (library.root / LABELS).unlink()
    assert "5 labels added" in library.call("review", "import", "labels.csv").out
    assert labels(library) == given
    assert "0 labels added to .evaluator/reviews, 5 there already" in library.call("review", "import", "labels.csv").out


def test_a_wrong_line_imports_nothing(library: Library) -> None:
    library.call("review", "add", "pairs.jsonl")
    review(library, "--reviewer", "ada", keys="1\n1\nq\n")
    table = library.call("review", "export").out.splitlines()
    (library.root / LABELS).unlink()
    library.write("labels.csv", "\n".join([*table[:2], table[2].replace("overall", "overal")]))
    assert library.call("review", "import", "labels.csv").refuses("labels.csv:3: ")
    assert not (library.root / LABELS).exists()


def test_what_people_agree_on_is_what_judges_are_measured_by(library: Library) -> None:
    library.call("review", "add", "pairs.jsonl")
    for name, keys in (("ada", "1\n0\n0\n0\n0\n"), ("ben", "s\n1\n0\n0\n0\n")):
        review(library, "--reviewer", name, keys=keys)
    done = library.call("review", "export", "--labels", "items.jsonl")
    assert done.out == "4 labels in items.jsonl; left out: 1 disputed, 0 held out there\n"
    items = labels(library, "items.jsonl")
    assert {item["split"] for item in items} == {"development"}
    verdicts = [{"id": item["id"], "judge": "j", "order": order, "winner": "tie"} for item in items for order in (1, 2)]
    library.lines("verdicts.jsonl", *verdicts)
    asked = ("judge", "calibrate", "--labels", "items.jsonl", "--verdicts", "verdicts.jsonl", "--format", "json")
    assert library.call(*asked).json["judges"][0]["strata"]["all"]["accuracy"] == [0.75, 0.75]
    assert library.call(*asked, "--split", "held_out").code == 2


def test_what_each_person_scores_is_what_judges_of_outputs_are_measured_by(library: Library) -> None:
    queue_of(library.root, *(scored(f"s{number}") for number in range(4)), pair())
    for name, keys in (("ada", "1\n2\n3\n3\n0\n"), ("ben", "1\ns\n2\n3\n1\n")):
        review(library, "--reviewer", name, keys=keys)
    secret = {"id": "secret", "scores": {"tone": 1}, "output": "s0 says hello", "split": "held_out"}
    library.lines("scored.jsonl", secret)
    done = library.call("review", "export", "--labels", "scored.jsonl")
    assert done.out == "3 labels in scored.jsonl; left out: 1 disputed, 1 held out there\n"
    items = labels(library, "scored.jsonl")
    assert {item["id"]: (item["split"], item["scores"]["tone"]) for item in items if "scores" in item} == {
        "secret": ("held_out", [1]),
        "s1": ("development", [2]),
        "s2": ("development", [3, 2]),
        "s3": ("development", [3, 3]),
    }
    verdicts = [{"id": f"s{number}", "judge": "j", "criterion": "tone", "score": 3} for number in range(1, 4)]
    library.lines("verdicts.jsonl", *verdicts)
    asked = ("judge", "calibrate", "--labels", "scored.jsonl", "--verdicts", "verdicts.jsonl", "--format", "json")
    measured = library.call(*asked, "--split", "development").json["judges"][0]["scores"]["tone"]["all"]
    assert (measured["n"], measured["raters"], measured["right"]["value"]) == (3, 2, 0.5)
