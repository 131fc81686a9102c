"""Validity of the output under the component's schema."""

from skill_evaluator.metrics.base import Comparison


def schema_valid(comparison: Comparison) -> float:
    """Return 1 if the output validates against the component's `schema.json`, else 0; formats are checked.

    Range {0, 1}, 1 is best; an unparseable output scores 0; without a schema every parsed output is valid. Needs no
    ground truth.
    JSON Schema, https://json-schema.org/draft/2020-12.

    >>> schema_valid(Comparison(None, {"total": 9}, schema_valid=lambda value: "total" in value))
    1.0
    """
    return float(comparison.conforms())
