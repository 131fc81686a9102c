"""Do all answers to a document agree? Raw (TARr@N) and parsed (TARa@N).

Total agreement rate, Atil et al. 2024, https://arxiv.org/abs/2408.04667; averaged over cases it is their TAR.
"""

from skill_evaluator.metrics.answers import CaseAnswers


def tarr_at_n(answers: CaseAnswers) -> float | None:
    """1 if the raw texts of all N answers are the same, else 0; undefined for fewer than two answers."""
    return float(len(answers.raw) == 1) if answers.n > 1 else None


def tara_at_n(answers: CaseAnswers) -> float | None:
    """1 if all N answers were parsed to equal JSON values, else 0; undefined for fewer than two answers."""
    return float(len(answers.groups) == 1 and not answers.unparsed) if answers.n > 1 else None
