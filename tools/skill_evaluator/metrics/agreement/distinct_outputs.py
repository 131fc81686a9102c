"""How many different answers does one document get?"""

from skill_evaluator.metrics.base import CaseAnswers


def distinct_outputs(answers: CaseAnswers) -> float | None:
    """Return the number of distinct outputs among a case's answers; every unparseable answer is one of its own.

    Range 1 to N, 1 is best; undefined for fewer than two answers.

    >>> from skill_evaluator.comparing.field_plan import FieldPlan
    >>> answers = CaseAnswers(FieldPlan())
    >>> for text in ("1", "1", "2"): answers.add(text, text)
    >>> distinct_outputs(answers)
    2.0
    """
    return float(len(answers.groups) + answers.unparsed) if answers.n > 1 else None
