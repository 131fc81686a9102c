"""Equality of whole answers to one case: of pairs, of all answers, and the number of distinct answers."""

from skill_evaluator.metrics.base import CaseAnswers


def pairwise_exact_match(answers: CaseAnswers) -> float | None:
    """Return the share of the N(N−1)/2 pairs of a case's answers whose parsed outputs are equal JSON values.

    Range 0 to 1, 1 is best; an unparseable answer equals no other; undefined for fewer than two answers.

    >>> answers = CaseAnswers()
    >>> for text in ("1", "1", "2"): answers.add(text, text)
    >>> round(pairwise_exact_match(answers), 3)
    0.333
    """
    return answers.equal_pairs / answers.pairs if answers.pairs else None


def distinct_outputs(answers: CaseAnswers) -> float | None:
    """Return the number of distinct outputs among a case's answers. Each unparseable answer counts as distinct.

    Range 1 to N, 1 is best; undefined for fewer than two answers.

    >>> answers = CaseAnswers()
    >>> for text in ("1", "1", "2"): answers.add(text, text)
    >>> distinct_outputs(answers)
    2.0
    """
    return float(len(answers.groups) + answers.unparsed) if answers.n > 1 else None


def tarr_at_n(answers: CaseAnswers) -> float | None:
    """Return 1 if the raw texts of all N answers are the same, else 0.

    Range {0, 1}, 1 is best; undefined for fewer than two answers. Averaged over cases it is the total agreement rate of
    Atil et al. 2024, https://arxiv.org/abs/2408.04667 (TARr@N).

    >>> answers = CaseAnswers()
    >>> for text in ("1", "1.0"): answers.add(text, "1")
    >>> tarr_at_n(answers), tara_at_n(answers)
    (0.0, 1.0)
    """
    return float(len(answers.raw) == 1) if answers.n > 1 else None


def tara_at_n(answers: CaseAnswers) -> float | None:
    """Return 1 if all N answers were parsed to equal JSON values, else 0.

    Range {0, 1}, 1 is best; undefined for fewer than two answers.

    >>> answers = CaseAnswers()
    >>> for text in ("1", "no number"): answers.add(text, "1" if text == "1" else None)
    >>> tara_at_n(answers)
    0.0
    """
    return float(len(answers.groups) == 1 and not answers.unparsed) if answers.n > 1 else None
