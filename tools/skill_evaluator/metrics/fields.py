"""Results by field: counts of leaves, confused labels, similarity of texts, and fill rates."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields

from skill_evaluator.comparing.comparators import rouge_l, token_f1
from skill_evaluator.comparing.comparison import ComparedLeaf
from skill_evaluator.text import canonical_json, normalise


def macro_f1(confusion: Mapping[tuple[str | None, str | None], int]) -> float | None:
    """Return the mean F1, 2·TP ÷ (2·TP + FP + FN), over the labels, from counts of (truth, output) pairs.

    The labels are those in truth or output; None means no label. A missed label is a false negative, an invented label
    a false positive. Range 0 to 1, 1 is best; undefined without labels. Opitz and Burst 2019,
    https://arxiv.org/abs/1911.03347 (the mean of F1 scores).

    >>> round(macro_f1({("sale", "sale"): 3, ("sale", "refund"): 1, ("refund", None): 1}), 3)
    0.429
    """
    labels = {label for pair in confusion for label in pair if label is not None}
    scores = []
    for label in labels:
        label_count = sum(count for pair, count in confusion.items() for side in pair if side == label)
        scores.append(2 * confusion.get((label, label), 0) / label_count)
    return sum(scores) / len(scores) if scores else None


@dataclass(slots=True)
class FieldCounts:
    """The leaves of one path in one or more outputs, by outcome.

    `flawed` counts outputs with a leaf that is not right, `filled` outputs with a value at the path, and
    `filled_in_truth` outputs whose ground truth has a value there. `token_f1` and `rouge_l` are sums over `texts` free
    texts; a missing or extra text adds 0. `confusion` counts pairs (true label, output label) of a category.
    """

    right: int = 0
    wrong: int = 0
    missing: int = 0
    extra: int = 0
    flawed: int = 0
    filled: int = 0
    filled_in_truth: int = 0
    texts: int = 0
    token_f1: float = 0.0
    rouge_l: float = 0.0
    confusion: dict[tuple[str, str], int] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """The number of leaves in truth or output."""
        return self.right + self.wrong + self.missing + self.extra

    def add(self, counts: "FieldCounts", times: int = 1) -> None:
        """Add the counts of other outputs, multiplied by `times`."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + times * getattr(counts, name))
        for pair, count in counts.confusion.items():
            self.confusion[pair] = self.confusion.get(pair, 0) + times * count


_SUMS = tuple(member.name for member in fields(FieldCounts) if member.name != "confusion")
_LIKE_JSON = re.compile(r'null|true|false|-?\d[\d.eE+-]*|["\[{].*', re.DOTALL)


def per_field(rows: Iterable[ComparedLeaf]) -> dict[str, FieldCounts]:
    """Return the counts of one output by leaf path; a field's accuracy is right ÷ n."""
    fields: dict[str, FieldCounts] = {}
    for row in rows:
        counts = fields.setdefault(row.path, FieldCounts())
        setattr(counts, row.outcome, getattr(counts, row.outcome) + 1)
        if row.rule.compare == "category":
            pair = label(row.truth), label(row.output)
            counts.confusion[pair] = counts.confusion.get(pair, 0) + 1
        elif row.rule.compare == "text":
            counts.texts += 1
            if row.outcome in ("right", "wrong"):
                truth, output = _texts(row)
                counts.token_f1 += token_f1(truth, output)
                counts.rouge_l += rouge_l(truth, output)
    for counts in fields.values():
        counts.flawed = int(counts.right < counts.n)
        counts.filled = int(counts.missing < counts.n)
        counts.filled_in_truth = int(counts.extra < counts.n)
    return fields


def total_fields(outputs: Iterable[tuple[Mapping[str, FieldCounts], int]]) -> dict[str, FieldCounts]:
    """Return the total counts by leaf path. Each output is a pair (counts by leaf path, number of occurrences)."""
    totals: dict[str, FieldCounts] = {}
    for counts_by_path, times in outputs:
        for path, counts in counts_by_path.items():
            totals.setdefault(path, FieldCounts()).add(counts, times)
    return totals


def text_similarity(row: ComparedLeaf) -> float | None:
    """Return the token F1 of a free text and its truth. Return None if one is missing, or if it is not free text.

    >>> from skill_evaluator.comparing.comparison import compare
    >>> from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule
    >>> plan = FieldPlan(leaves={"note": FieldRule(compare="text")})
    >>> [text_similarity(row) for row in compare({"note": "a b", "id": 1}, {"note": "b c", "id": 1}, plan)]
    [0.5, None]
    """
    is_pair = row.rule.compare == "text" and row.outcome in ("right", "wrong")
    return token_f1(*_texts(row)) if is_pair else None


def _texts(row: ComparedLeaf) -> tuple[str, str]:
    truth, output = (value if isinstance(value, str) else str(value) for value in (row.truth, row.output))
    return truth, output


def label(value: object) -> str:
    """Format a value as a label. Text is normalised. Other values, and text that looks like JSON, become JSON."""
    if not isinstance(value, str):
        return canonical_json(value)
    text = normalise(value)
    return canonical_json(text) if _LIKE_JSON.fullmatch(text) else text
