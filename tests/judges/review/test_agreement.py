"""How far people agree: κ of two reviewers on the items that both labelled, and the items they see differently."""

from skill_evaluator.judges.review.agreement import review_status

from tests.support.reviews import change, label, pair, scored


def test_kappa_is_of_the_items_that_both_labelled() -> None:
    items = {item.id: item for item in (pair(f"p{number}") for number in range(8))}
    ada = [label(item, "ada", overall="1" if place < 4 else "2") for place, item in enumerate(items.values())]
    ben = [label(item, "ben", overall="2" if place == 0 else "1" if place < 4 else "2") for place, item in
           list(enumerate(items.values()))[:6]]  # fmt: skip
    status = review_status(items, [*ada, *ben])
    assert (status.items, status.unlabelled, status.reviewers) == (8, 0, {"ada": 8, "ben": 6})
    (row,) = status.agreement
    assert (row.reviewers, row.n, row.agreed) == (("ada", "ben"), 6, 5)
    assert row.kappa.value is not None
    assert round(row.kappa.value, 3) == 0.667
    assert row.kappa.ci95 is not None
    assert [(one.item, one.answers) for one in status.disputed] == [("p0", {"ada": "1", "ben": "2"})]


def test_scores_that_are_near_agree_more_than_scores_that_are_far() -> None:
    items = {item.id: item for item in (scored(f"s{number}") for number in range(6))}
    ada = [label(item, "ada", tone=str(1 + place % 3)) for place, item in enumerate(items.values())]
    near = [label(item, "ben", tone=str(min(3, 2 + place % 3))) for place, item in enumerate(items.values())]
    far = [label(item, "ben", tone=str(3 - place % 3)) for place, item in enumerate(items.values())]
    kappas = [review_status(items, [*ada, *ben]).agreement[0].kappa.value or 0.0 for ben in (near, far)]
    assert kappas[0] > 0 > kappas[1]


def test_notes_stand_with_what_is_disputed_as_they_may_become_edge_cases() -> None:
    item = change()
    labels = [
        label(item, "ada", factuality="candidate_worse high", tone="same", note="is an estimate a fact?"),
        label(item, "ben", factuality="same", tone="same"),
    ]
    (disputed,) = review_status({item.id: item}, labels).disputed
    assert (disputed.question, disputed.notes) == ("factuality", {"ada": "is an estimate a fact?"})
