"""Stability of each field over the answers to one case."""

from skill_evaluator.metrics.base import CaseAnswers
from skill_evaluator.metrics.diagnosis.field_profile import field_values


def field_stability_by_path(answers: CaseAnswers) -> dict[str, float]:
    """Return the share of the modal value by leaf path: answers with the most frequent value ÷ all answers.

    Values are compared by canonical form (an array path by its multiset of values; tolerances do not apply). Absent is
    a value; an unparseable answer shares no value. Range 1/N (0 if no answer was parsed) to 1, 1 is best; empty for
    fewer than two answers.

    >>> answers = CaseAnswers()
    >>> for text in ('{"a":1}', '{"a":1}', '{"a":2}'): answers.add(text, text)
    >>> round(field_stability_by_path(answers)["a"], 3)
    0.667
    """
    if answers.n < 2:
        return {}
    return {path: max(counts.values(), default=0) / answers.n for path, counts in field_values(answers).items()}


def field_stability(answers: CaseAnswers) -> float | None:
    """Return the mean of `field_stability_by_path` over the fields.

    Range 0 to 1, 1 is best; undefined for fewer than two answers or without fields.

    >>> answers = CaseAnswers()
    >>> for text in ('{"a":1,"b":1}', '{"a":1,"b":2}'): answers.add(text, text)
    >>> field_stability(answers)
    0.75
    """
    shares = field_stability_by_path(answers)
    return sum(shares.values()) / len(shares) if shares else None
