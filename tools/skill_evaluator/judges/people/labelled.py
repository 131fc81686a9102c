"""What people say of a queue → labels by which `judge calibrate` measures judges, and how far people agree.

The labels are of the split `development`, never held out. Items come into the queue because a judge was in doubt of
them, and what they teach goes into the rubric. So they must not be what a judge is finally measured by.
"""

import datetime
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from skill_evaluator.errors import JudgeError
from skill_evaluator.files import replace_blocks
from skill_evaluator.judges.asking.results import Winner
from skill_evaluator.judges.calibration.labels import LabelledPair, LabelLine, RegressionLabel, ScoredItem, read_labels
from skill_evaluator.judges.modes.pairwise import OVERALL
from skill_evaluator.judges.modes.ship_rules import IMPACTS
from skill_evaluator.judges.people.items import ReviewItem, ReviewKind
from skill_evaluator.judges.people.queue import (
    DisputedItem,
    ReviewAnswer,
    ReviewerAgreement,
    ReviewLabel,
    ReviewQueue,
    ReviewStatus,
    allowed_answers,
    latest,
)
from skill_evaluator.judges.statistics.agreement import cohen_kappa, confusion

WINNERS: Mapping[str, Winner] = {"1": 1, "2": 2, "tie": "tie"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledItems:
    """Lines for a file of labels, and the number of questions of which reviewers differ."""

    lines: Sequence[LabelLine]
    disputed: int


def labelled_items(items: Mapping[str, ReviewItem], counting: Mapping[str, Mapping[str, ReviewLabel]]) -> LabelledItems:
    """Return what people say, under the ids of the judgings; raise JudgeError where two items of a kind have one id.

    A pair or a regression has the answers on which more than half of the reviewers agree; questions of a pair beside
    `overall` are criteria. A scored output has the score of each reviewer: a judge is held against each person alike.
    Of regressions those that were drawn by chance count; those that were queued for a doubt say nothing of the rate in
    a batch.
    """
    labelled: dict[tuple[str, ...], LabelLine] = {}
    scored: dict[str, ReviewItem] = {}
    scores: dict[str, dict[str, dict[str, int]]] = {}  # by item, criterion and reviewer
    disputed = 0
    for item_id, given in counting.items():
        item = items[item_id]
        if item.kind == "score":
            first = scored.setdefault(item.item, item)
            if (first.document, first.reference, first.outputs) != (item.document, item.reference, item.outputs):
                raise _two_of_one_id(item)
            by_criterion = scores.setdefault(item.item, {})
            for reviewer, label in sorted(given.items()):
                for answer in label.answers:
                    by_criterion.setdefault(answer.question, {})[reviewer] = int(answer.answer)
        elif item.kind == "pairwise" or "random" in item.reasons:
            answers = [agreed_answer(one.name, [*answers_to(given, one.name).values()]) for one in item.questions]
            agreed = {answer.question: answer for answer in answers if answer is not None}
            disputed += answers.count(None)
            for line in _lines_of(item, agreed):
                if labelled.setdefault(_key(line), line) is not line:
                    raise _two_of_one_id(item)
    pairs = [line for line in labelled.values() if isinstance(line, LabelledPair)]
    regressions = [line for line in labelled.values() if isinstance(line, RegressionLabel)]
    outputs = [_scored(item, scores[name]) for name, item in scored.items()]
    return LabelledItems(lines=[*pairs, *outputs, *regressions], disputed=disputed)


def _two_of_one_id(item: ReviewItem) -> JudgeError:
    return JudgeError(f"two items of the queue differ and share the id '{item.item}'; rename one")


def answers_to(given: Mapping[str, ReviewLabel], question: str) -> dict[str, ReviewAnswer]:
    """Return what each reviewer of an item answers to one of its questions."""
    return {name: answer for name, label in given.items() for answer in label.answers if answer.question == question}


def agreed_answer(question: str, given: Sequence[ReviewAnswer]) -> ReviewAnswer | None:
    """Return what more than half of the reviewers answer, with the highest impact that they give; None without it."""
    answer, count = Counter(one.answer for one in given).most_common(1)[0]
    if 2 * count <= len(given):
        return None
    impacts = [one.impact for one in given if one.impact is not None and one.answer == answer]
    return ReviewAnswer(question=question, answer=answer, impact=max(impacts, key=IMPACTS.index) if impacts else None)


def _lines_of(item: ReviewItem, agreed: Mapping[str, ReviewAnswer]) -> list[LabelledPair] | list[RegressionLabel]:
    if item.kind == "regression":
        return [
            RegressionLabel.model_validate(
                {
                    "id": item.item,
                    "dimension": question,
                    "human": answer.answer,
                    "impact": answer.impact if answer.answer == "candidate_worse" else None,
                }
            )
            for question, answer in agreed.items()
        ]
    winners = {question: WINNERS[answer.answer] for question, answer in agreed.items()}
    pair = {
        "id": item.item,
        "stratum": item.stratum,
        "human": winners.pop(OVERALL, None),
        "criteria": winners,
        "split": "development",
        "input": item.document,
        "output_1": item.outputs[0],
        "output_2": item.outputs[1],
    }
    return [LabelledPair.model_validate(pair)] if agreed else []


def _scored(item: ReviewItem, scores: Mapping[str, Mapping[str, int]]) -> ScoredItem:
    return ScoredItem(
        id=item.item,
        stratum=item.stratum,
        scores={criterion: tuple(people.values()) for criterion, people in scores.items()},
        split="development",
        input=item.document or None,
        output=item.outputs[0],
        reference=item.reference or None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedLabels:
    """How many labels went into a file, and how many were left out: disputed, or of what is held out there."""

    taken: int
    disputed: int
    held_out: int


def export_labels(queue: ReviewQueue, path: Path) -> ExportedLabels:
    """Write what people agree on into a file of labels, as `merge_labels`."""
    items = queue.items()
    labelled = labelled_items(items, latest(queue.labels(items)))
    taken, held_out = merge_labels(path, labelled.lines)
    return ExportedLabels(taken=taken, disputed=labelled.disputed, held_out=held_out)


def merge_labels(path: Path, fresh: Sequence[LabelLine]) -> tuple[int, int]:
    """Write labels into a file, over those of the same item; return how many came in, and how many were kept out.

    What is held out stays as it is, and its texts stay out of the development part. Raise JudgeError for a broken file,
    and StorageError.
    """
    there = list(read_labels(path).lines) if path.exists() else []
    held_out = {_key(line): _texts(line) for line in there if getattr(line, "split", None) == "held_out"}
    secret_texts = {texts for texts in held_out.values() if None not in texts[1]}
    taken = [line for line in fresh if _key(line) not in held_out and _texts(line) not in secret_texts]
    merged = {_key(line): line for line in (*there, *taken)}
    if taken:
        replace_blocks(path, (f"{line.model_dump_json(exclude_none=True)}\n" for line in merged.values()))
    return len(taken), len(fresh) - len(taken)


def _key(line: LabelLine) -> tuple[str, str, str]:
    of_kind = getattr(line, "dimension" if isinstance(line, RegressionLabel) else "sentence", "")
    return type(line).__name__, line.id, of_kind


def _texts(line: LabelLine) -> tuple[str, frozenset[str | None]]:
    """Return what is asked about; a finding has no texts."""
    if isinstance(line, RegressionLabel):
        return "", frozenset((None,))
    outputs = (line.output_1, line.output_2) if isinstance(line, LabelledPair) else (line.output,)
    return line.input or "", frozenset(outputs)


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


def _agreement(
    items: Mapping[str, ReviewItem], counting: Mapping[str, Mapping[str, ReviewLabel]]
) -> list[ReviewerAgreement]:
    """Compare reviewers two at a time on all items that both labelled."""
    both: dict[tuple[str, ReviewKind, str, str], list[tuple[str, str]]] = {}
    categories: dict[tuple[str, ReviewKind], dict[str, None]] = {}
    for item_id, given in counting.items():
        item = items[item_id]
        for question in item.questions:
            answers = {name: one.answer for name, one in answers_to(given, question.name).items()}
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
        kappa = cohen_kappa(table, "linear" if kind == "score" else "nominal")
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
            answers = {name: one.answer for name, one in answers_to(given, question.name).items()}
            if len(set(answers.values())) > 1:
                notes = {name: label.note for name, label in given.items() if label.note}
                disputed.append(
                    DisputedItem(
                        item=items[item_id].item, id=item_id, question=question.name, answers=answers, notes=notes
                    )
                )
    return disputed
