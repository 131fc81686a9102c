"""What people agree on becomes labels of the development split; how far they agree, and what they see differently."""

from pathlib import Path

import pytest
from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.calibration.labels import LabelledPair, RegressionLabel, read_labels
from skill_evaluator.judges.people.items import ReviewItem
from skill_evaluator.judges.people.labelled import labelled_items, merge_labels, review_status
from skill_evaluator.judges.people.queue import ReviewLabel, latest

from tests.support.reviews import NOON, change, label, pair, scored


def pairs_of(items: list[ReviewItem], labels: list[ReviewLabel]) -> list[LabelledPair]:
    lines = labelled_items({item.id: item for item in items}, latest(labels)).lines
    return [line for line in lines if isinstance(line, LabelledPair)]


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
    with pytest.raises(JudgeError, match="two items of the queue differ and share the id 'p1'"):
        pairs_of(items, [label(item, overall="1") for item in items])


def test_regressions_drawn_by_chance_give_labels_by_dimension_and_others_none() -> None:
    drawn = change("drawn", reasons=["block", "random"])
    labels = [
        label(item, name, factuality=f"candidate_worse {impact}", tone=tone)
        for item in (drawn, change("doubtful"))
        for name, impact, tone in (("ada", "low", "same"), ("ben", "high", "candidate_better low"))
    ]
    items = {item.id: item for item in (drawn, change("doubtful"), pair())}
    labelled = labelled_items(items, latest([*labels, label(pair(), overall="1")]))
    regressions = [one for one in labelled.lines if isinstance(one, RegressionLabel)]
    assert [(one.id, one.dimension, one.human, one.impact) for one in regressions] == [
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


def test_kappa_is_of_the_items_that_both_labelled_and_near_scores_agree_more_than_far_ones() -> None:
    items = {item.id: item for item in (pair(f"p{number}") for number in range(8))}
    ada = [label(item, "ada", overall="1" if place < 4 else "2") for place, item in enumerate(items.values())]
    ben = [label(item, "ben", overall="2" if place == 0 else "1" if place < 4 else "2") for place, item in
           list(enumerate(items.values()))[:6]]  # fmt: skip
    status = review_status(items, [*ada, *ben])
    assert (status.items, status.unlabelled, status.reviewers) == (8, 0, {"ada": 8, "ben": 6})
    assert (status.open, status.oldest, status.newest_label) == ({}, None, NOON)
    (row,) = status.agreement
    assert (row.reviewers, row.n, row.agreed) == (("ada", "ben"), 6, 5)
    assert round(row.kappa.value, 3) == 0.667
    assert row.kappa.ci95 is not None
    assert [(one.item, one.answers) for one in status.disputed] == [("p0", {"ada": "1", "ben": "2"})]
    items = {item.id: item for item in (scored(f"s{number}") for number in range(6))}
    ada = [label(item, "ada", tone=str(1 + place % 3)) for place, item in enumerate(items.values())]
    near = [label(item, "ben", tone=str(min(3, 2 + place % 3))) for place, item in enumerate(items.values())]
    far = [label(item, "ben", tone=str(3 - place % 3)) for place, item in enumerate(items.values())]
    kappas = [review_status(items, [*ada, *ben]).agreement[0].kappa.value or 0.0 for ben in (near, far)]
    assert kappas[0] > 0 > kappas[1]


def test_what_waits_is_counted_by_reason_with_the_moment_its_judging_began() -> None:
    begun = ("20260302T080000Z-abc123", "20260301T080000Z-abc123", "20269999T080000Z-abc123", "by hand", None)
    waiting = [pair(f"p{place}", judging=judging) for place, judging in enumerate(begun)]
    done = pair("done", judging="20250101T000000Z-abc123", reasons=["block"])
    items = {item.id: item for item in (*waiting, done)}
    status = review_status(items, [label(done, overall="1")])
    assert (status.reasons, status.open) == ({"random": 5, "block": 1}, {"random": 5})
    assert (status.oldest, status.newest_label) == ("2026-03-01T08:00:00Z", NOON)


def test_notes_stand_with_what_is_disputed() -> None:
    item = change()
    labels = [
        label(item, "ada", factuality="candidate_worse high", tone="same", note="is an estimate a fact?"),
        label(item, "ben", factuality="same", tone="same"),
    ]
    (disputed,) = review_status({item.id: item}, labels).disputed
    assert (disputed.question, disputed.notes) == ("factuality", {"ada": "is an estimate a fact?"})
