"""Results by field: right, wrong, missing and extra leaves, confused categories, agreement of texts, and fill rates."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from skill_evaluator.comparing.comparison import ComparedLeaf
from skill_evaluator.comparing.similarity import rouge_l, token_f1
from skill_evaluator.text import canonical_json, normalise


def macro_f1(confusion: Mapping[tuple[str | None, str | None], int]) -> float | None:
    """Return the mean over labels of 2·TP ÷ (2·TP + FP + FN), from counts of (truth, output); None means no label.

    The mean is over the labels in truth or output. A missed label is a false negative, an invented label a false
    positive. Range 0 to 1, 1 is best; undefined without labels. Opitz and Burst 2019, https://arxiv.org/abs/1911.03347
    (the mean of F1 scores).

    >>> round(macro_f1({("sale", "sale"): 3, ("sale", "refund"): 1, ("refund", None): 1}), 3)
    0.429
    """
    labels = {label for pair in confusion for label in pair if label is not None}
    scores = []
    for label in labels:
        label_count = sum(count for pair, count in confusion.items() for side in pair if side == label)
        scores.append(2 * confusion.get((label, label), 0) / label_count)
    return sum(scores) / len(scores) if scores else None


class FieldCounts(NamedTuple):
    """The number of leaves of one path in one output, by outcome."""

    right: int = 0
    wrong: int = 0
    missing: int = 0
    extra: int = 0

    @property
    def n(self) -> int:
        """The number of leaves in truth or output."""
        return sum(self)


class TextOverlap(NamedTuple):
    """The agreement of one free-text value with its ground truth."""

    path: str
    token_f1: float
    rouge_l: float


class Confusion(NamedTuple):
    """One category leaf: its true and its predicted label."""

    path: str
    truth: str
    output: str


@dataclass(frozen=True, slots=True)
class FieldScores:
    """The fields of one output."""

    counts: dict[str, FieldCounts] = field(default_factory=dict)
    texts: tuple[TextOverlap, ...] = ()
    confusions: tuple[Confusion, ...] = ()


_NONE = FieldCounts()
_LIKE_JSON = re.compile(r'null|true|false|-?\d[\d.eE+-]*|["\[{].*', re.DOTALL)


def per_field(rows: Iterable[ComparedLeaf]) -> FieldScores:
    """Count by leaf path; a field's accuracy is right ÷ n.

    Free text adds token F1 and ROUGE-L per value (0 for a missing or extra value), a category (truth, output) pairs.

    >>> from skill_evaluator.comparing.comparison import compare
    >>> from skill_evaluator.comparing.field_plan import FieldPlan
    >>> per_field(compare({"a": 1}, {"a": 2, "b": 3}, FieldPlan())).counts["a"]
    FieldCounts(right=0, wrong=1, missing=0, extra=0)
    """
    counted: dict[str, dict[str, int]] = {}
    texts: list[TextOverlap] = []
    confusions: list[Confusion] = []
    for row in rows:
        outcomes = counted.get(row.path)
        if outcomes is None:
            outcomes = counted[row.path] = {}
        outcomes[row.outcome] = outcomes.get(row.outcome, 0) + 1
        comparator = row.rule.compare
        if comparator == "category":
            confusions.append(Confusion(row.path, label(row.truth), label(row.output)))
        elif comparator == "text":
            texts.append(_text_overlap(row))
    counts = {path: FieldCounts(**outcomes) for path, outcomes in counted.items()}
    return FieldScores(counts, tuple(texts), tuple(confusions))


def sum_counts(total: FieldCounts, counts: FieldCounts, times: int = 1) -> FieldCounts:
    """Add `times` the counts to a total, element by element."""
    return FieldCounts(*(one + other * times for one, other in zip(total, counts, strict=True)))


def text_similarity(row: ComparedLeaf) -> float | None:
    """Return the token F1 of a free text and its ground truth. Return None for other values.

    >>> from skill_evaluator.comparing.comparison import compare
    >>> from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule
    >>> plan = FieldPlan(leaves={"note": FieldRule(compare="text")})
    >>> [text_similarity(row) for row in compare({"note": "a b", "id": 1}, {"note": "b c", "id": 1}, plan)]
    [0.5, None]
    """
    if row.rule.compare != "text" or row.outcome in ("missing", "extra"):
        return None
    return _text_overlap(row).token_f1


def _text_overlap(row: ComparedLeaf) -> TextOverlap:
    if row.outcome in ("missing", "extra"):
        return TextOverlap(row.path, 0.0, 0.0)
    left, right = (value if isinstance(value, str) else str(value) for value in (row.truth, row.output))
    return TextOverlap(row.path, token_f1(left, right), rouge_l(left, right))


def label(value: object) -> str:
    """Format a value so that equal values have equal texts: text normalised, other values and texts like them as JSON.

    >>> [label(value) for value in (" for  sale", None, "null", 5.0, "5")]
    ['for sale', 'null', '"null"', '5', '"5"']
    """
    if not isinstance(value, str):
        return canonical_json(value)
    text = normalise(value)
    return canonical_json(text) if _LIKE_JSON.fullmatch(text) else text


@dataclass(slots=True)
class FieldTotal:
    """The leaves of one path over many outputs."""

    counts: FieldCounts = _NONE
    texts: int = 0
    token_f1: float = 0.0
    rouge_l: float = 0.0
    confusion: Counter[tuple[str, str]] = field(default_factory=Counter)


def total_fields(outputs: Iterable[tuple[FieldScores, int]]) -> dict[str, FieldTotal]:
    """Sum (fields of an output, its count) by path. Divide the sums of text scores by `texts` for means."""
    totals: dict[str, FieldTotal] = {}
    for scores, times in outputs:
        for path, counts in scores.counts.items():
            total = totals.setdefault(path, FieldTotal())
            total.counts = sum_counts(total.counts, counts, times)
        for text in scores.texts:
            total = totals[text.path]
            total.texts += times
            total.token_f1 += text.token_f1 * times
            total.rouge_l += text.rouge_l * times
        for confusion in scores.confusions:
            totals[confusion.path].confusion[confusion.truth, confusion.output] += times
    return totals


class FilledCounts(NamedTuple):
    """The number of outputs in which a field has a value, and of outputs whose truth has one."""

    output: int = 0
    truth: int = 0


def filled_fields(outputs: Iterable[tuple[FieldScores, int]]) -> dict[str, FilledCounts]:
    """Count by leaf path the outputs and truths with a value, from (fields of an output, its count).

    A field has a value if a leaf at its path is not null; for array items, if any item has one. Paths without a value
    are omitted. The truth's count is best: fewer values were missed, more were invented.

    >>> from skill_evaluator.comparing.comparison import compare
    >>> from skill_evaluator.comparing.field_plan import FieldPlan
    >>> from skill_evaluator.metrics.diagnosis.per_field import per_field
    >>> filled_fields([(per_field(compare({"a": 1, "b": None}, {"b": 2}, FieldPlan())), 3)])
    {'a': FilledCounts(output=0, truth=3), 'b': FilledCounts(output=3, truth=0)}
    """
    filled: dict[str, FilledCounts] = {}
    for scores, times in outputs:
        for path, counts in scores.counts.items():
            previous = filled.get(path, FilledCounts())
            filled[path] = FilledCounts(
                previous.output + times * (counts.n > counts.missing),
                previous.truth + times * (counts.n > counts.extra),
            )
    return filled
