"""The agreement of the leaves of two answers to the same case."""

import json
import random
from collections.abc import Iterator
from itertools import combinations
from math import fsum
from operator import mul

from skill_evaluator.comparing.array_items import MemoizedValue
from skill_evaluator.comparing.comparison import compare_values, counted_weight
from skill_evaluator.metrics.base import CaseAnswers

CountedAnswer = tuple[MemoizedValue, int]  # an answer and its count
_SAMPLED_PAIRS = 2_000
_MAX_ANSWERS_FOR_ALL_PAIRS = 63  # with more distinct answers, pairs are sampled


def pairwise_field_f1(answers: CaseAnswers) -> float | None:
    """Return the mean of `field_level_f1` over the N(N−1)/2 pairs of a case's answers.

    One answer of a pair serves as the ground truth of the other; the result is symmetric. Range 0 to 1, 1 is best; a
    pair with an unparseable answer scores 0; undefined for fewer than two answers, or if no field of any answer counts.
    With more than 63 distinct answers, about 2,000 pairs are sampled: every answer is in the same number of pairs, and
    the sample is always the same.

    >>> answers = CaseAnswers()
    >>> for text in ('{"a":1,"b":0}', '{"a":2,"b":0}'): answers.add(text, text)
    >>> pairwise_field_f1(answers)
    0.5
    """
    values = [(MemoizedValue(json.loads(text), answers.plan), count) for text, count in sorted(answers.groups.items())]
    counts = answers.plan.counts or any(counted_weight(compare_values(side, side))[1] for side, _ in values)
    if not answers.pairs or not counts:
        return None
    agreed = float(answers.equal_pairs)
    if len(values) > 1:
        pairs = list(combinations(values, 2) if len(values) <= _MAX_ANSWERS_FOR_ALL_PAIRS else _sampled_pairs(values))
        times = [first_count * second_count for (_, first_count), (_, second_count) in pairs]
        weights = [counted_weight(compare_values(first, second)) for (first, _), (second, _) in pairs]
        shares = [2 * matched / (first + second) if first + second else 1.0 for matched, first, second in weights]
        different = answers.groups.total() * (answers.groups.total() - 1) // 2 - answers.equal_pairs
        agreed += different * fsum(map(mul, times, shares)) / sum(times)
    return min(1.0, agreed / answers.pairs)


def _sampled_pairs(values: list[CountedAnswer]) -> Iterator[tuple[CountedAnswer, CountedAnswer]]:
    """Yield pairs in which every answer occurs equally often. The same answers always give the same pairs."""
    order = random.Random(0).sample(values, len(values))  # noqa: S311 (no secret)
    for distance in range(1, max(2, _SAMPLED_PAIRS // len(order) + 1)):
        yield from zip(order, order[distance:] + order[:distance], strict=True)
