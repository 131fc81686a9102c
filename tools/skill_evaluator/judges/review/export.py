"""Labels of the review queue → the labels on which reviewers agree, and the status of the queue as text."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from skill_evaluator.errors import JudgeError
from skill_evaluator.files import replace_blocks
from skill_evaluator.judges.asking.results import Winner
from skill_evaluator.judges.calibration.labels import LabelledPair, LabelLine, RegressionLabel, ScoredItem, read_labels
from skill_evaluator.judges.modes.pairwise import OVERALL
from skill_evaluator.judges.modes.ship_rules import IMPACTS
from skill_evaluator.judges.review.items import ReviewItem, ReviewQuestion
from skill_evaluator.judges.review.queue import (
    LabelsByItem,
    ReviewAnswer,
    ReviewLabel,
    ReviewQueue,
    allowed_answers,
    latest,
)
from skill_evaluator.judges.statistics.agreement import cohen_kappa, confusion
from skill_evaluator.text import counted, listed

_WINNERS: Mapping[str, Winner] = {"1": 1, "2": 2, "tie": "tie"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedLabels:
    """Counts of `review export`: exported labels, questions on which reviewers differ, items not drawn at random."""

    exported: int
    disputed: int
    not_random: int


def export_labels(queue: ReviewQueue, path: Path) -> ExportedLabels:
    """Write the labels on which reviewers agree into a file of labels, replacing the labels of the same items.

    Only items that were drawn at random are exported: items that were queued for a doubt are harder than the rest, so
    that a judge would be measured on those alone. Raise JudgeError for an invalid file, and StorageError.
    """
    items = queue.items()
    counting = latest(queue.labels(items))
    random_items = {name: labels for name, labels in counting.items() if items[name].is_random}
    fresh: dict[tuple[str, ...], LabelLine] = {}
    disputed = 0
    for item_id, labels in random_items.items():
        item = items[item_id]
        lines = _label_lines(item, labels)
        disputed += len(item.questions) * (item.kind != "score") - sum(map(_answer_count, lines))
        for line in lines:
            fresh[_key(line)] = _merged(fresh.get(_key(line)), line)
    existing = read_labels(path).lines if path.exists() else ()
    merged = {_key(line): line for line in (*existing, *fresh.values())}
    if fresh:
        replace_blocks(path, (f"{line.model_dump_json(exclude_none=True)}\n" for line in merged.values()))
    return ExportedLabels(exported=len(fresh), disputed=disputed, not_random=len(counting) - len(random_items))


def _key(line: LabelLine) -> tuple[str, ...]:
    question = getattr(line, "dimension" if isinstance(line, RegressionLabel) else "sentence", "")
    return type(line).__name__, line.id, question


def _merged(earlier: LabelLine | None, line: LabelLine) -> LabelLine:
    """Return a line with the scores of an earlier line for the same output. Raise JudgeError for two other lines."""
    if earlier is None:
        return line
    if isinstance(earlier, ScoredItem) and isinstance(line, ScoredItem):
        merged = line.model_copy(update={"scores": {**earlier.scores, **line.scores}})
        if merged == earlier.model_copy(update={"scores": merged.scores}):
            return merged
    raise JudgeError(f"two items of the queue differ and share the id '{line.id}'; rename one")


def _answer_count(line: LabelLine) -> int:
    """Return how many questions of a pair or regression a line answers."""
    if isinstance(line, LabelledPair):
        return len(line.criteria) + (line.human is not None)
    return int(isinstance(line, RegressionLabel))


def _label_lines(item: ReviewItem, labels: Mapping[str, ReviewLabel]) -> Sequence[LabelLine]:
    """Return the lines for a file of labels.

    A pair or regression has the answers of more than half of its reviewers. A scored output has the score of each
    reviewer, because a judge is compared with each person alike.
    """
    if item.kind == "score":
        return [_scored_line(item, labels)]
    answers = [
        _agreed_answer(question.name, list(_answers_to(labels, question.name).values())) for question in item.questions
    ]
    agreed = {answer.question: answer for answer in answers if answer is not None}
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
    winners = {question: _WINNERS[answer.answer] for question, answer in agreed.items()}
    pair = {
        "id": item.item,
        "stratum": item.stratum,
        "human": winners.pop(OVERALL, None),
        "criteria": winners,
        "input": item.document,
        "output_1": item.outputs[0],
        "output_2": item.outputs[1],
    }
    return [LabelledPair.model_validate(pair)] if agreed else []


def _scored_line(item: ReviewItem, labels: Mapping[str, ReviewLabel]) -> ScoredItem:
    scores: dict[str, list[int]] = {}
    for _, label in sorted(labels.items()):
        for answer in label.answers:
            scores.setdefault(answer.question, []).append(int(answer.answer))
    return ScoredItem(
        id=item.item,
        stratum=item.stratum,
        scores={criterion: tuple(given) for criterion, given in scores.items()},
        input=item.document or None,
        output=item.outputs[0],
        reference=item.reference or None,
    )


def _answers_to(labels: Mapping[str, ReviewLabel], question: str) -> dict[str, ReviewAnswer]:
    """Return the answer of each reviewer to a question."""
    return {name: answer for name, label in labels.items() for answer in label.answers if answer.question == question}


def _agreed_answer(question: str, answers: Sequence[ReviewAnswer]) -> ReviewAnswer | None:
    """Return the answer of more than half with its highest impact. Return None without a majority."""
    answer, count = Counter(given.answer for given in answers).most_common(1)[0]
    if 2 * count <= len(answers):
        return None
    impacts = [given.impact for given in answers if given.impact is not None and given.answer == answer]
    return ReviewAnswer(question=question, answer=answer, impact=max(impacts, key=IMPACTS.index) if impacts else None)


def status_lines(
    items: Mapping[str, ReviewItem], labels: Sequence[ReviewLabel], *, published: bool = False
) -> list[str]:
    """Describe the queue: items without a label, labels by reviewer, agreement, and disputed items with notes.

    If `published` is true, reviewers are numbered and notes are omitted.
    """
    counting = latest(labels)
    reviewers = sorted({label.reviewer for label in labels})
    names = {name: f"reviewer {number}" if published else name for number, name in enumerate(reviewers, 1)}
    waiting = [item for item_id, item in items.items() if item_id not in counting]
    reasons = Counter(reason for item in waiting for reason in item.reasons)
    why = f" ({listed([f'{reason} {count}' for reason, count in reasons.most_common()], 10)})" if reasons else ""
    return [
        f"{counted(len(items), 'item')}: {len(items) - len(waiting)} labelled, {len(waiting)} without a label{why}",
        *(
            f"{names[name]}: {counted(sum(name in given for given in counting.values()), 'label')}"
            for name in reviewers
        ),
        *_agreement_lines(items, counting, names),
        *_disputed_lines(items, counting, names, published=published),
    ]


def _agreement_lines(
    items: Mapping[str, ReviewItem], counting: LabelsByItem, names: Mapping[str, str]
) -> Iterator[str]:
    """Yield agreement and Cohen's κ of every two reviewers for each question; κ of scores is weighted linearly."""
    questions: dict[tuple[str, str], ReviewQuestion] = {}
    answers: dict[tuple[str, str, str, str], list[tuple[str, str]]] = {}
    example: dict[tuple[str, str], ReviewItem] = {}
    for item_id, labels in counting.items():
        for question in (item := items[item_id]).questions:
            key = item.kind, question.name
            questions[key], example[key] = question, item
            given = _answers_to(labels, question.name)
            for left, right in combinations(sorted(given), 2):
                both = (given[left].answer, given[right].answer)
                answers.setdefault((*key, left, right), []).append(both)
    for (kind, name, left, right), pairs in answers.items():
        categories = allowed_answers(example[kind, name], questions[kind, name])
        table = confusion([first for first, _ in pairs], [second for _, second in pairs], categories)
        kappa = cohen_kappa(table, "linear" if kind == "score" else "nominal").value
        agreed = sum(one == other for one, other in pairs)
        words = "" if kappa is None else f", κ {kappa:.2f}"
        yield f"{names[left]} and {names[right]} agree on {name} for {agreed} of {counted(len(pairs), 'item')}{words}"


def _disputed_lines(
    items: Mapping[str, ReviewItem], counting: LabelsByItem, names: Mapping[str, str], *, published: bool
) -> Iterator[str]:
    """Yield the questions to which reviewers give different answers: the rubric may need an edge case."""
    for item_id, labels in counting.items():
        for question in items[item_id].questions:
            answers = {name: answer.answer for name, answer in _answers_to(labels, question.name).items()}
            if len(set(answers.values())) > 1:
                words = [
                    f"{names[name]} says {answer}"
                    + (f" ({labels[name].note})" if labels[name].note and not published else "")
                    for name, answer in answers.items()
                ]
                yield f"differ on {items[item_id].item}, {question.name}: {', '.join(words)}"
