"""How many of a case's checks does an answer pass?"""

from collections.abc import Iterable

from skill_evaluator.metrics.base import Comparison


def checks(comparison: Comparison) -> float | None:
    """Return the mean score of the checks by weight: Σ weight · score ÷ Σ weight, a score being 1 for passed.

    Checks look at the raw text, so that an answer that cannot be parsed has a value, too. Range 0 to 1, 1 is best;
    undefined where a case has no check, or one was not measured. Needs no ground truth.

    >>> checks(Comparison(None, "ok", checks=[(1.0, 1.0), (3.0, 0.0)]))
    0.25
    """
    return share_passed(comparison.checks)


def share_passed(checks: Iterable[tuple[float, float | None]]) -> float | None:
    """Return the mean of scores by weight, from (weight, score); None of no check, and where one was not measured."""
    total, passed = 0.0, 0.0
    for weight, score in checks:
        if score is None:
            return None
        total, passed = total + weight, passed + weight * score
    return passed / total if total else None
