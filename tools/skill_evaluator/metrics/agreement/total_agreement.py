"""Do all answers to a document agree? Raw (TARr@N) and parsed (TARa@N).

Total agreement rate, Atil et al. 2024, https://arxiv.org/abs/2408.04667; averaged over cases it is their TAR.
"""

from skill_evaluator.metrics.base import CaseAnswers


def tarr_at_n(answers: CaseAnswers) -> float | None:
    """Return 1 if the raw texts of all N answers are the same, else 0.

    Range {0, 1}, 1 is best; undefined for fewer than two answers.

    >>> from skill_evaluator.comparing.field_plan import FieldPlan
    >>> answers = CaseAnswers(FieldPlan())
    >>> for text in ("1", "1.0"): answers.add(text, "1")
    >>> tarr_at_n(answers), tara_at_n(answers)
    (0.0, 1.0)
    """
    return float(len(answers.raw) == 1) if answers.n > 1 else None


def tara_at_n(answers: CaseAnswers) -> float | None:
    """Return 1 if all N answers were parsed to equal JSON values, else 0.

    Range {0, 1}, 1 is best; undefined for fewer than two answers.

    >>> from skill_evaluator.comparing.field_plan import FieldPlan
    >>> answers = CaseAnswers(FieldPlan())
    >>> for text in ("1", "no number"): answers.add(text, "1" if text == "1" else None)
    >>> tara_at_n(answers)
    0.0
    """
    return float(len(answers.groups) == 1 and not answers.unparsed) if answers.n > 1 else None
