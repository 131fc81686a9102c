"""How often do two answers to the same document agree entirely?"""

from skill_evaluator.metrics.base import CaseAnswers


def pairwise_exact_match(answers: CaseAnswers) -> float | None:
    """Return the share of the N(N−1)/2 pairs of a case's answers whose parsed outputs are equal JSON values.

    Range 0 to 1, 1 is best; unparseable answers agree with nothing; undefined for fewer than two answers.

    >>> from skill_evaluator.comparing.field_plan import FieldPlan
    >>> answers = CaseAnswers(FieldPlan())
    >>> for text in ("1", "1", "2"): answers.add(text, text)
    >>> round(pairwise_exact_match(answers), 3)
    0.333
    """
    return answers.equal_pairs / answers.pairs if answers.pairs else None
