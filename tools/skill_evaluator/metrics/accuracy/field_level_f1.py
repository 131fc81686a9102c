"""How many leaves are right, counting what is missing and what was invented."""

from skill_evaluator.comparing.comparison import counted_weight
from skill_evaluator.metrics.base import Comparison


def field_level_f1(comparison: Comparison) -> float | None:
    """Return F1 of aligned leaves, by weight: 2·matched ÷ (leaves of truth + leaves of output).

    A wrong leaf costs precision and recall, a missing one recall, an extra one precision. Ignored fields, and free
    text without a threshold, stay out. Range 0 to 1, 1 is best; both sides empty → 1; undefined without truth, or where
    all fields stay out.
    van Rijsbergen 1979, Information Retrieval, ch. 7 (micro-averaged over leaves).

    >>> field_level_f1(Comparison({"a": 1, "b": 2}, {"a": 1, "b": 3}))
    0.5
    """
    matched, of_truth, of_output = counted_weight(comparison.rows)
    if of_truth + of_output:
        return 2 * matched / (of_truth + of_output)
    return 1.0 if comparison.plan.counts else None
