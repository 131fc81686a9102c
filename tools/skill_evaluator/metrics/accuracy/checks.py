"""The weighted share of a case's checks that an output passes."""

from collections.abc import Iterable

from skill_evaluator.metrics.base import Comparison


def checks(comparison: Comparison) -> float | None:
    """Return the weighted mean score of the checks: Σ weight · score ÷ Σ weight; a passed check scores 1.

    Checks read the raw text, so that an unparseable output has a value, too. Range 0 to 1, 1 is best; undefined if a
    case has no check, or if a check was not measured. Needs no ground truth.

    >>> checks(Comparison(None, "ok", checks=[(1.0, 1.0), (3.0, 0.0)]))
    0.25
    """
    return share_passed(comparison.checks)


def share_passed(checks: Iterable[tuple[float, float | None]]) -> float | None:
    """Return the weighted mean of (weight, score) pairs. Return None if there are no checks or a score is None."""
    total, passed = 0.0, 0.0
    for weight, score in checks:
        if score is None:
            return None
        total, passed = total + weight, passed + weight * score
    return passed / total if total else None
