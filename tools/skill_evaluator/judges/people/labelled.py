"""What people say → labels by which `judge calibrate` measures judges: development, never held out.

Items come into the queue because a judge was in doubt of them, and what they teach goes into the rubric. So they must
not be what a judge is finally measured by.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from skill_evaluator.errors import JudgeError
from skill_evaluator.files import replace_blocks
from skill_evaluator.judges.asking.results import Winner
from skill_evaluator.judges.calibration.labels import LabelledPair, LabelLine, RegressionLabel, ScoredItem, read_labels
from skill_evaluator.judges.modes.pairwise import OVERALL
from skill_evaluator.judges.modes.ship_rules import IMPACTS
from skill_evaluator.judges.people.items import ReviewItem, ReviewKind
from skill_evaluator.judges.people.queue import ReviewAnswer, ReviewLabel

WINNERS: Mapping[str, Winner] = {"1": 1, "2": 2, "tie": "tie"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledItems:
    """Lines for a file of labels, and the number of questions of which reviewers differ."""

    lines: Sequence[LabelLine]
    disputed: int = 0


def labelled_items(items: Mapping[str, ReviewItem], counting: Mapping[str, Mapping[str, ReviewLabel]]) -> LabelledItems:
    """Return all that people agree on; raise JudgeError where two items of a kind have one id."""
    pairs, regressions = labelled_pairs(items, counting), labelled_regressions(items, counting)
    lines = [*pairs.lines, *scored_items(items, counting), *regressions.lines]
    return LabelledItems(lines=lines, disputed=pairs.disputed + regressions.disputed)


def labelled_pairs(items: Mapping[str, ReviewItem], counting: Mapping[str, Mapping[str, ReviewLabel]]) -> LabelledItems:
    """Return a pair for every two outputs, with the answers on which more than half of the reviewers agree.

    The id is that of the judging; questions beside `overall` are criteria. Raise JudgeError for two pairs of one id.
    """
    answers: dict[str, tuple[ReviewItem, dict[str, Winner]]] = {}
    disputed = 0
    for item, question, given in _questions(items, counting, "pairwise"):
        agreed = agreed_answer(question, given)
        if agreed is None:
            disputed += 1
            continue
        labelled, winners = answers.setdefault(item.item, (item, {}))
        if labelled is not item:
            raise JudgeError(f"two items of the queue are called '{item.item}' and differ; give one another id")
        winners[question] = WINNERS[agreed.answer]
    return LabelledItems(lines=[_pair(item, winners) for item, winners in answers.values()], disputed=disputed)


def labelled_regressions(
    items: Mapping[str, ReviewItem], counting: Mapping[str, Mapping[str, ReviewLabel]]
) -> LabelledItems:
    """Return what more than half of the reviewers say of regressions, by dimension, of items drawn by chance alone.

    Those that are queued for a doubt say nothing of the rate in a batch. The impact is the highest that is given.
    """
    drawn = {item_id: item for item_id, item in items.items() if "random" in item.reasons}
    labels: dict[tuple[str, str], RegressionLabel] = {}
    disputed = 0
    for item, question, given in _questions(drawn, counting, "regression"):
        agreed = agreed_answer(question, given)
        if agreed is None:
            disputed += 1
            continue
        impact = agreed.impact if agreed.answer == "candidate_worse" else None
        label = RegressionLabel.model_validate(
            {"id": item.item, "dimension": question, "human": agreed.answer, "impact": impact}
        )
        if (label.id, label.dimension) in labels:
            raise JudgeError(f"two items of the queue are called '{label.id}' and differ; give one another id")
        labels[label.id, label.dimension] = label
    return LabelledItems(lines=list(labels.values()), disputed=disputed)


def _questions(
    items: Mapping[str, ReviewItem], counting: Mapping[str, Mapping[str, ReviewLabel]], kind: ReviewKind
) -> Iterator[tuple[ReviewItem, str, list[ReviewAnswer]]]:
    """Yield the questions of labelled items of a kind with all answers."""
    for item_id, given in counting.items():
        item = items.get(item_id)
        for question in item.questions if item is not None and item.kind == kind else ():
            answers = [one for label in given.values() for one in label.answers if one.question == question.name]
            yield items[item_id], question.name, answers


def agreed_answer(question: str, given: Sequence[ReviewAnswer]) -> ReviewAnswer | None:
    """Return what more than half of the reviewers answer, with the highest impact that they give; None without it."""
    answer, count = Counter(one.answer for one in given).most_common(1)[0]
    if 2 * count <= len(given):
        return None
    impacts = [one.impact for one in given if one.impact is not None and one.answer == answer]
    return ReviewAnswer(question=question, answer=answer, impact=max(impacts, key=IMPACTS.index) if impacts else None)


def _pair(item: ReviewItem, winners: Mapping[str, Winner]) -> LabelledPair:
    return LabelledPair(
        id=item.item,
        stratum=item.stratum,
        human=winners.get(OVERALL),
        criteria={question: winner for question, winner in winners.items() if question != OVERALL},
        split="development",
        input=item.document,
        output_1=item.outputs[0],
        output_2=item.outputs[1],
    )


def scored_items(
    items: Mapping[str, ReviewItem], counting: Mapping[str, Mapping[str, ReviewLabel]]
) -> list[ScoredItem]:
    """Return every output that people scored, with the score of each of them by criterion.

    Nothing is left out as disputed: a judge is held against each person alike. Raise JudgeError for two of one id.
    """
    given: dict[str, tuple[ReviewItem, dict[str, dict[str, int]]]] = {}
    for item_id, labels in counting.items():
        item = items[item_id]
        if item.kind != "score":
            continue
        first, scores = given.setdefault(item.item, (item, {}))
        if (first.document, first.reference, first.outputs) != (item.document, item.reference, item.outputs):
            raise JudgeError(f"two items of the queue are called '{item.item}' and differ; give one another id")
        for reviewer, label in sorted(labels.items()):
            for answer in label.answers:
                scores.setdefault(answer.question, {})[reviewer] = int(answer.answer)
    return [
        ScoredItem(
            id=name,
            stratum=item.stratum,
            scores={criterion: tuple(people.values()) for criterion, people in scores.items()},
            split="development",
            input=item.document or None,
            output=item.outputs[0],
            reference=item.reference or None,
        )
        for name, (item, scores) in given.items()
    ]


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
    return type(line).__name__, line.id, line.dimension if isinstance(line, RegressionLabel) else ""


def _texts(line: LabelLine) -> tuple[str, frozenset[str | None]]:
    """Return what is asked about; a finding has no texts."""
    if isinstance(line, RegressionLabel):
        return "", frozenset((None,))
    outputs = (line.output,) if isinstance(line, ScoredItem) else (line.output_1, line.output_2)
    return line.input or "", frozenset(outputs)
