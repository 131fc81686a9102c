"""Accuracy metrics: scores of one output, most of them by comparison with the ground truth; pass^k; counts by field."""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from math import comb
from numbers import Real
from typing import Any, Literal

from skill_evaluator import plugins
from skill_evaluator.comparing.comparison import ComparedLeaf, MemoizedValue, compare_values, counted_weight
from skill_evaluator.comparing.field_plan import FieldPlan, rouge_l, token_f1
from skill_evaluator.errors import ConfigError
from skill_evaluator.text import canonical_json, normalise

KS = (1, 2, 3, 5, 10)  # values of k in pass^k


class Comparison:
    """One parsed output and its ground truth. `truth` is None if the ground truth is null or missing."""

    def __init__(
        self,
        truth: Any,
        output: Any,
        plan: FieldPlan | None = None,
        is_valid: bool = True,
        checks: Sequence[tuple[float, float | None]] = (),
    ) -> None:
        """Prepare the comparison. Without a plan, leaves are compared by the type of their values.

        `is_valid` is whether the output validates against the schema; `checks` are pairs (weight, score).
        """
        self.plan = plan or FieldPlan()
        self.memoized_truth = MemoizedValue(truth, self.plan)
        self.memoized_output = MemoizedValue(output, self.plan)
        self.truth, self.output = self.memoized_truth.value, self.memoized_output.value
        self.is_valid, self.checks = is_valid, checks

    @cached_property
    def rows(self) -> list[ComparedLeaf]:
        """The compared leaves of truth and output."""
        return compare_values(self.memoized_truth, self.memoized_output)


# The arrays whose item order does not change the score. "all": all that are not declared `ordered`; "outer": those of
# them that are not inside an item of another array.
UnorderedArrays = Literal["all", "outer", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One accuracy metric. `score` is a pure function of a comparison; it returns 0 to 1, or None if undefined.

    `unparseable` is the score of an unparseable output (None: not measured). `symmetric`: the score stays
    the same if truth and output are swapped. `unordered_arrays`: the arrays whose item order does not matter. The last
    two are for tests (`tests/metrics/test_common.py`); a metric of another package may omit them.
    """

    score: Callable[[Comparison], float | None]
    needs_truth: bool = True
    unparseable: float | None = None
    symmetric: bool | None = None
    unordered_arrays: UnorderedArrays | None = None


def apply_metrics(metrics: Mapping[str, Metric], comparison: Comparison, *, labelled: bool) -> dict[str, float | None]:
    """Return the scores by metric. Scores are None if undefined, or if they need a truth and the case has none."""
    return {
        name: metric.score(comparison) if labelled or not metric.needs_truth else None
        for name, metric in metrics.items()
    }


def checked_score(name: str, score: Callable[[Comparison], Any], comparison: Comparison) -> float | None:
    """Return the score of a plugin's metric. Raise ConfigError if it fails or returns neither None nor 0 to 1."""
    value = plugins.call(f"metric '{name}'", score, comparison)
    if value is not None and not (isinstance(value, Real) and 0 <= float(value) <= 1):
        raise ConfigError(f"metric '{name}' returned {value!r:.80}, which is neither None nor a number from 0 to 1")
    return None if value is None else float(value)


def schema_valid(comparison: Comparison) -> float:
    """Return 1 if the output validates against the component's `schema.json`, else 0; formats are checked.

    Range {0, 1}, 1 is best; an unparseable output scores 0; without a schema every parsed output is valid. Needs no
    ground truth.
    JSON Schema, https://json-schema.org/draft/2020-12.

    >>> schema_valid(Comparison(None, {"total": 9}, is_valid=True))
    1.0
    """
    return float(comparison.is_valid)


def exact_match(comparison: Comparison) -> float:
    """Return 1 if output and truth are equal JSON values, else 0; field rules do not apply.

    Key order and white space between tokens never matter, 1 = 1.0, text is compared as NFC, a null member equals an
    absent one, arrays are ordered. Range {0, 1}, 1 is best; undefined without truth.

    >>> exact_match(Comparison({"a": 1, "b": None}, {"a": 1.0}))
    1.0
    """
    return float(comparison.memoized_truth.canonical_text == comparison.memoized_output.canonical_text)


def field_level_f1(comparison: Comparison) -> float | None:
    """Return the weighted F1 of aligned leaves: 2·matched ÷ (leaves of truth + leaves of output).

    A wrong leaf costs precision and recall, a missing leaf recall, an extra leaf precision. Ignored fields, and free
    text without a threshold, do not count. Range 0 to 1, 1 is best; both sides empty → 1; undefined without truth, or
    if no field counts.
    van Rijsbergen 1979, Information Retrieval, ch. 7 (micro-averaged over leaves).

    >>> field_level_f1(Comparison({"a": 1, "b": 2}, {"a": 1, "b": 3}))
    0.5
    """
    matched, of_truth, of_output = counted_weight(comparison.rows)
    if of_truth + of_output:
        return 2 * matched / (of_truth + of_output)
    return 1.0 if comparison.plan.counts else None


def jaccard(comparison: Comparison) -> float | None:
    """Return the mean of |truth ∩ output| ÷ |truth ∪ output| over the arrays. Each array is a multiset of items.

    Items are compared by canonical value or, if the array has `align: key`, by their key fields. Arrays at one path,
    such as the `lines` of all `orders`, count as one array. An array with items in neither truth nor output does not
    count. If no array counts, the score is 1. Range 0 to 1, 1 is best. Undefined without truth, or if there are no
    arrays in schema, truth and output. Jaccard 1901; multiset form, Ruzicka 1958.

    >>> jaccard(Comparison({"a": [1, 2, 3]}, {"a": [3, 2, 4]}))
    0.5
    >>> jaccard(Comparison({"a": [1], "b": []}, {"a": [], "b": []}))
    0.0
    """
    truth, output = comparison.memoized_truth.item_counts, comparison.memoized_output.item_counts
    paths = comparison.plan.arrays.keys() | truth.keys() | output.keys()
    if not paths:
        return None
    no_items: Counter[Hashable] = Counter()
    overlaps = []
    for path in paths:
        truth_counts, output_counts = truth.get(path, no_items), output.get(path, no_items)
        common = sum([min(count, output_counts[item]) for item, count in truth_counts.items() if item in output_counts])
        union = truth_counts.total() + output_counts.total() - common
        overlaps += [common / union] if union else []
    return sum(overlaps) / len(overlaps) if overlaps else 1.0


def checks(comparison: Comparison) -> float | None:
    """Return the weighted mean score of the checks: Σ weight · score ÷ Σ weight; a passed check scores 1.

    Checks read the raw text, so that an unparseable output has a value, too. Range 0 to 1, 1 is best; undefined if a
    case has no check with a weight, or if a check was not measured. Needs no ground truth.

    >>> checks(Comparison(None, "ok", checks=[(1.0, 1.0), (3.0, 0.0)]))
    0.25
    """
    return share_passed(comparison.checks)


def share_passed(checks: Iterable[tuple[float, float | None]]) -> float | None:
    """Return the weighted mean score of (weight, score) pairs. Return None if a score is None or all weights are 0."""
    total, passed = 0.0, 0.0
    for weight, score in checks:
        if score is None:
            return None
        total, passed = total + weight, passed + weight * score
    return passed / total if total else None


def pass_hat_k(successes: int, n: int, k: int) -> float | None:
    """Return C(successes, k) ÷ C(n, k): the probability that k of n outputs, drawn without replacement, all succeed.

    This is an unbiased estimate of the chance that k further outputs all succeed; a run's pass^k is the mean over its
    cases. With k = 1 it is the share of successes. Range 0 to 1, 1 is best; it falls with k; undefined for k > n.
    Yao et al. 2024 (τ-bench), https://arxiv.org/abs/2406.12045.

    >>> [pass_hat_k(3, 4, k) for k in (1, 2, 4)]
    [0.75, 0.5, 0.0]
    """
    return comb(successes, k) / comb(n, k) if k <= n else None


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
    """The counts of the leaves at one path, by outcome, over one or more outputs.

    `flawed` counts outputs with a leaf that is not right. `filled` counts outputs with a value at the path.
    `filled_in_truth` counts outputs whose ground truth has a value at the path. `texts` counts free texts, and
    `token_f1` and `rouge_l` are sums over these texts. `confusion` counts pairs of a true label and an output label.
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
        """The number of compared leaves. A leaf that is in both truth and output counts once."""
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
