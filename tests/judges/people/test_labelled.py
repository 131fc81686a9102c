"""What people agree on becomes labelled pairs of the development split; what is held out is never touched."""

from pathlib import Path

import pytest
from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.calibration.labels import LabelledPair, RegressionLabel, read_labels
from skill_evaluator.judges.people.items import ReviewItem
from skill_evaluator.judges.people.labelled import labelled_pairs, labelled_regressions, merge_labels
from skill_evaluator.judges.people.queue import ReviewLabel, latest

from tests.support.reviews import change, label, pair


def pairs_of(items: list[ReviewItem], labels: list[ReviewLabel]) -> list[LabelledPair]:
    return list(labelled_pairs({item.id: item for item in items}, latest(labels)).lines)


def test_more_than_half_of_the_reviewers_must_agree_and_two_items_of_one_name_are_refused() -> None:
    for answers, human in (
        (["1"], 1),
        (["2", "2"], 2),
        (["1", "2"], None),
        (["1", "tie"], None),
        (["tie", "2", "tie"], "tie"),
    ):
        labels = [label(pair(), f"r{place}", overall=answer) for place, answer in enumerate(answers)]
        assert [one.human for one in pairs_of([pair()], labels)] == ([] if human is None else [human]), answers
    items = [pair(), pair(document="another")]
    with pytest.raises(JudgeError, match="two items of the queue are called 'p1'"):
        pairs_of(items, [label(item, overall="1") for item in items])


def test_regressions_drawn_by_chance_give_labels_by_dimension_and_others_none() -> None:
    drawn = change("drawn", reasons=["block", "random"])
    labels = [
        label(item, name, factuality=f"candidate_worse {impact}", tone=tone)
        for item in (drawn, change("doubtful"))
        for name, impact, tone in (("ada", "low", "same"), ("ben", "high", "candidate_better low"))
    ]
    items = {item.id: item for item in (drawn, change("doubtful"), pair())}
    labelled = labelled_regressions(items, latest([*labels, label(pair(), overall="1")]))
    assert [(one.id, one.dimension, one.human, one.impact) for one in labelled.lines] == [
        ("drawn", "factuality", "candidate_worse", "high")
    ]
    assert labelled.disputed == 1
    assert pairs_of([drawn], labels[:2]) == []


def test_what_is_held_out_stays_as_it_is_and_out_of_development(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    texts = {"input": "q", "output_1": "a", "output_2": "b"}
    there = [
        LabelledPair(id="secret", human=1, split="held_out"),
        LabelledPair(id="other name", human=1, split="held_out", **texts),
        LabelledPair(id="no input", human=1, split="held_out", output_1="c", output_2="d"),
        LabelledPair(id="old", human=1, split="development"),
    ]
    assert merge_labels(path, there) == (4, 0)
    before = read_labels(path).pairs
    fresh = [
        LabelledPair(id="secret", human=2, split="development"),
        LabelledPair(id="same texts", human=2, split="development", input="q", output_1="b", output_2="a"),
        LabelledPair(id="same without input", human=2, split="development", input="", output_1="c", output_2="d"),
        LabelledPair(id="old", human="tie", split="development"),
        RegressionLabel(id="new", dimension="tone", human="same"),
        LabelledPair(id="new", human=2, split="development"),
    ]
    for _ in range(2):
        assert merge_labels(path, fresh) == (3, 3)
    after = read_labels(path).pairs
    assert list(after) == ["secret", "other name", "no input", "old", "new"]
    assert [after[name] for name in list(after)[:3]] == [before[name] for name in list(after)[:3]]
    assert after["old"].human == "tie"
