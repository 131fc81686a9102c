"""The queue on disk: nothing is lost or doubled, whoever writes at once; what is wrong is named with its line."""

import json
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from pydantic import ValidationError
from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.review.items import ReviewQuestion, review_item
from skill_evaluator.judges.review.queue import LABELS, QUEUE, ReviewQueue, latest

from tests.support.reviews import change, label, pair, queue_of, scored

ITEMS = [pair(f"p{number}") for number in range(20)]


def test_adding_an_item_twice_changes_nothing(tmp_path: Path) -> None:
    assert pair(judging="20260301T080000Z-abcdef").id == pair().id
    assert pair(reference="at 8").id != pair().id
    assert pair(outputs=["p1 opens at nine.", "p1 opens at 8."]).id != pair().id
    queue = queue_of(tmp_path, pair(), scored())
    before = (queue.folder / QUEUE).read_bytes()
    assert queue.add([scored(), pair(reasons=["block"])]) == []
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
    assert [queue.label(given) for given in (first, first, second)] == [True, False, True]
    assert not queue.label(label(pair(), at="2026-03-03T08:00:00Z", overall="tie")), "the same answer once more"
    assert queue.labels(queue.items()) == [first, second]
    assert latest([second, first])[pair().id]["ada"] == second


def test_repeated_line_counts_once(tmp_path: Path) -> None:
    queue = queue_of(tmp_path, pair())
    queue.label(label(pair(), overall="1"))
    for name in (QUEUE, LABELS):
        path = queue.folder / name
        path.write_text(path.read_text() * 2)
    items = queue.items()
    assert len(items) == len(queue.labels(items)) == 1


def test_label_that_misfits_its_item_is_refused_with_its_line(tmp_path: Path) -> None:
    queue = queue_of(tmp_path, pair())
    queue.label(label(pair(), overall="1"))
    right = (queue.folder / LABELS).read_text()
    for answers, problem in (
        ([("overall", "3", None)], "'3' is no answer to 'overall'"),
        ([("other", "1", None)], "must have one answer to each of overall"),
        ([("overall", "1", None), ("overall", "2", None)], "must have one answer to each of overall"),
        ([("overall", "1", "high")], "which has no impact"),
    ):
        wrong = [{"question": name, "answer": answer, "impact": impact} for name, answer, impact in answers]
        line = {"item": pair().id, "reviewer": "ben", "at": "2026-03-01T12:00:00Z", "answers": wrong}
        (queue.folder / LABELS).write_text(right + json.dumps(line) + "\n")
        with pytest.raises(JudgeError, match=problem) as refused:
            queue.labels(queue.items())
        assert f"{LABELS}:2: " in str(refused.value)


def test_worse_answer_requires_its_impact(tmp_path: Path) -> None:
    queue = queue_of(tmp_path, change())
    with pytest.raises(JudgeError, match="lacks its impact"):
        queue.label(label(change(), factuality="candidate_worse", tone="same"))
    queue.label(label(change(), factuality="candidate_worse high", tone="same"))


def test_invalid_item_is_refused_with_its_line(tmp_path: Path) -> None:
    queue = queue_of(tmp_path, pair())
    right = json.loads((queue.folder / QUEUE).read_text())
    for edit, problem in (
        ({"outputs": ["other", "texts"]}, "the item was edited"),
        ({"outputs": ["one"]}, "kind pairwise needs 2 outputs, not 1"),
        ({"reasons": ["bored"]}, "at reasons"),
        ({"model": "gpt-5"}, "unknown key at model"),
    ):
        (queue.folder / QUEUE).write_text("\n" + json.dumps({**right, **edit}) + "\n")
        with pytest.raises(JudgeError, match=problem) as refused:
            queue.items()
        assert f"{QUEUE}:2: " in str(refused.value)


def test_item_refuses_questions_of_another_kind() -> None:
    with pytest.raises(ValidationError, match="levels are for kind score"):
        review_item("score", "s", ["text"], [ReviewQuestion(name="tone")], ["random"])
    with pytest.raises(ValidationError, match="same name"):
        review_item("pairwise", "p", ["a", "b"], [ReviewQuestion(name="x"), ReviewQuestion(name="x")], ["random"])
