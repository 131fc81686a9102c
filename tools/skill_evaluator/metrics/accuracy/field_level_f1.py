"""F1 of the leaves, which counts missing and extra leaves as errors."""

from skill_evaluator.comparing.comparison import counted_weight
from skill_evaluator.metrics.base import Comparison


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
