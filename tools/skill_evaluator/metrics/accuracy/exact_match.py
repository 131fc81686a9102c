"""Equality of output and truth as JSON values."""

from skill_evaluator.metrics.base import Comparison


def exact_match(comparison: Comparison) -> float:
    """Return 1 if output and truth are equal JSON values, else 0; field rules do not apply.

    Key order and white space between tokens never matter, 1 = 1.0, text is compared as NFC, a null member equals an
    absent one, arrays are ordered. Range {0, 1}, 1 is best; undefined without truth.

    >>> exact_match(Comparison({"a": 1, "b": None}, {"a": 1.0}))
    1.0
    """
    return float(comparison.memoized_truth.canonical_text == comparison.output_key)
