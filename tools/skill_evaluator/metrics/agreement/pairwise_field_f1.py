"""How much of two answers to the same document agrees, leaf by leaf?"""

import json
import random
from collections.abc import Iterator
from itertools import combinations
from math import fsum
from operator import mul

from skill_evaluator.comparing.comparison import compare_sides, counted_weight
from skill_evaluator.comparing.sides import Side
from skill_evaluator.metrics.base import CaseAnswers

Given = tuple[Side, int]  # with how often it was given
_PAIRS = 2_000
_MOST = 63  # different answers, all pairs of which are compared


def pairwise_field_f1(answers: CaseAnswers) -> float | None:
    """Return the mean of `field_level_f1` over the N(N−1)/2 pairs of a case's answers.

    One of a pair is taken as the truth of the other; the result is symmetric. Range 0 to 1, 1 is best; a pair with an
    unparseable answer scores 0; undefined for fewer than two answers, or where no field of any of them counts. Of more
    than 63 different answers about 2,000 pairs stand for all: every answer is in as many, and they are always the same.

    >>> answers = CaseAnswers()
    >>> for text in ('{"a":1,"b":0}', '{"a":2,"b":0}'): answers.add(text, text)
    >>> pairwise_field_f1(answers)
    0.5
    """
    given = [(Side(json.loads(text), answers.plan), count) for text, count in sorted(answers.groups.items())]
    counts = answers.plan.counts or any(counted_weight(compare_sides(side, side))[1] for side, _ in given)
    if not answers.pairs or not counts:
        return None
    agreed = float(answers.equal_pairs)
    if len(given) > 1:
        pairs = list(combinations(given, 2) if len(given) <= _MOST else _some_pairs(given))
        times = [count * other_count for (_, count), (_, other_count) in pairs]
        weights = [counted_weight(compare_sides(side, other)) for (side, _), (other, _) in pairs]
        shares = [2 * matched / (one + other) if one + other else 1.0 for matched, one, other in weights]
        different = answers.groups.total() * (answers.groups.total() - 1) // 2 - answers.equal_pairs
        agreed += different * fsum(map(mul, times, shares)) / sum(times)
    return min(1.0, agreed / answers.pairs)


def _some_pairs(given: list[Given]) -> Iterator[tuple[Given, Given]]:
    """Yield pairs in which every answer is as often as the others, the same ones for the same answers."""
    order = random.Random(0).sample(given, len(given))  # noqa: S311 - no secret hangs on it
    for distance in range(1, max(2, _PAIRS // len(order) + 1)):
        yield from zip(order, order[distance:] + order[:distance], strict=True)
