"""How far do people agree with each other? Labels of all reviewers → κ of each pair of them, by question."""

import datetime
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from skill_evaluator.judges.people.items import ReviewItem, ReviewKind
from skill_evaluator.judges.people.queue import (
    DisputedItem,
    ReviewerAgreement,
    ReviewLabel,
    ReviewStatus,
    allowed_answers,
    latest,
)
from skill_evaluator.judges.statistics.agreement import cohen_kappa, confusion


def review_status(items: Mapping[str, ReviewItem], labels: Sequence[ReviewLabel]) -> ReviewStatus:
    """Return how far the queue is, and where its reviewers agree."""
    counting = latest(labels)
    reviewers = sorted({label.reviewer for label in labels})
    waiting = [item for item_id, item in items.items() if item_id not in counting]
    begun = [moment for item in waiting if (moment := _judged_at(item)) is not None]
    return ReviewStatus(
        items=len(items),
        unlabelled=len(waiting),
        reasons=_by_reason(items.values()),
        open=_by_reason(waiting),
        oldest=min(begun, default=None),
        newest_label=max((label.at for label in labels), default=None),
        reviewers={name: sum(name in given for given in counting.values()) for name in reviewers},
        agreement=_agreement(items, counting),
        disputed=_disputed(items, counting),
    )


def _by_reason(items: Iterable[ReviewItem]) -> dict[str, int]:
    return dict(Counter(reason for item in items for reason in item.reasons))


def _judged_at(item: ReviewItem) -> str | None:
    """Return when the judging of an item began, which its id begins with; None where it says no moment."""
    try:
        moment = datetime.datetime.strptime((item.judging or "")[:16], "%Y%m%dT%H%M%SZ")
    except ValueError:
        return None
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def answers_to(given: Mapping[str, ReviewLabel], question: str) -> dict[str, str]:
    """Return what each reviewer of an item answers to one of its questions."""
    return {
        name: answer.answer for name, label in given.items() for answer in label.answers if answer.question == question
    }


def _agreement(
    items: Mapping[str, ReviewItem], counting: Mapping[str, Mapping[str, ReviewLabel]]
) -> list[ReviewerAgreement]:
    """Compare reviewers two at a time on all items that both labelled."""
    both: dict[tuple[str, ReviewKind, str, str], list[tuple[str, str]]] = {}
    categories: dict[tuple[str, ReviewKind], dict[str, None]] = {}
    for item_id, given in counting.items():
        item = items[item_id]
        for question in item.questions:
            answers = answers_to(given, question.name)
            categories.setdefault((question.name, item.kind), {}).update(dict.fromkeys(allowed_answers(item, question)))
            for left, right in combinations(sorted(answers), 2):
                pairs = both.setdefault((question.name, item.kind, left, right), [])
                pairs.append((answers[left], answers[right]))
    rows = []
    for (name, kind, left, right), pairs in both.items():
        scale = list(categories[name, kind])
        if kind == "score":
            scale.sort(key=int)
        table = confusion([one for one, _ in pairs], [other for _, other in pairs], scale)
        kappa = cohen_kappa(table, "quadratic" if kind == "score" else "nominal")
        rows.append(
            ReviewerAgreement(
                question=name,
                kind=kind,
                reviewers=(left, right),
                n=len(pairs),
                agreed=sum(one == other for one, other in pairs),
                kappa=kappa,
            )
        )
    return rows


def _disputed(items: Mapping[str, ReviewItem], counting: Mapping[str, Mapping[str, ReviewLabel]]) -> list[DisputedItem]:
    disputed = []
    for item_id, given in counting.items():
        for question in items[item_id].questions:
            answers = answers_to(given, question.name)
            if len(set(answers.values())) > 1:
                notes = {name: label.note for name, label in given.items() if label.note}
                disputed.append(
                    DisputedItem(
                        item=items[item_id].item, id=item_id, question=question.name, answers=answers, notes=notes
                    )
                )
    return disputed
