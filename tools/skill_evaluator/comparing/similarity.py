"""Similarity of two free texts by their words: token F1 and ROUGE-L."""

from collections import Counter

from skill_evaluator.text import words


def token_f1(truth: str, output: str) -> float:
    """Return the harmonic mean of precision and recall over words, as multisets.

    Range 0 to 1, 1 is best; both empty → 1. Rajpurkar et al. 2016 (SQuAD), https://arxiv.org/abs/1606.05250, but
    articles count.

    >>> round(token_f1("the cat sat", "the cat ran"), 3)
    0.667
    """
    truth_words, output_words = words(truth), words(output)
    if not truth_words and not output_words:
        return 1.0
    common = sum((Counter(truth_words) & Counter(output_words)).values())
    return 2 * common / (len(truth_words) + len(output_words))


def rouge_l(truth: str, output: str) -> float:
    """Return the F-measure of the longest common subsequence of words (β = 1).

    Range 0 to 1, 1 is best; both empty → 1. Lin 2004, https://aclanthology.org/W04-1013.

    >>> round(rouge_l("police killed the gunman", "police kill the gunman"), 2)
    0.75
    """
    truth_words, output_words = words(truth), words(output)
    if not truth_words and not output_words:
        return 1.0
    from rapidfuzz.distance import LCSseq

    return 2 * LCSseq.similarity(truth_words, output_words) / (len(truth_words) + len(output_words))
