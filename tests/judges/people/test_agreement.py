"""How far people agree on what both labelled, and what they see differently."""

from skill_evaluator.judges.people.agreement import review_status

from tests.support.reviews import NOON, change, label, pair, scored


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
