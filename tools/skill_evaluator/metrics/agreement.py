"""Reproducibility: metrics that compare the answers to one case with each other, without a ground truth."""

import json
import random
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import fsum
from operator import mul

from skill_evaluator.comparing.array_items import MemoizedValue
from skill_evaluator.comparing.comparison import compare_values, counted_weight
from skill_evaluator.metrics.base import CaseAnswers
from skill_evaluator.metrics.fields import field_values

CountedAnswer = tuple[MemoizedValue, int]  # an answer and its count
_SAMPLED_PAIRS = 2_000
_MAX_ANSWERS_FOR_ALL_PAIRS = 63  # pairs of more distinct answers are sampled


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayLengths:
    """One array over a case's answers: the share of the most frequent length, and the extremes.

    The extremes are None if no answer was parsed.
    """

    stability: float
    shortest: int | None
    longest: int | None


def array_lengths(answers: CaseAnswers) -> dict[str, ArrayLengths]:
    """Map array paths to the share of outputs with the most frequent length, and the shortest and longest length.

    An absent array has length 0; arrays inside array items are pooled by path; an unparseable output shares no length.
    `stability` ranges from 1/N (0 if nothing was parsed) to 1, 1 is best. Return an empty mapping for fewer than two
    outputs.

    >>> answers = CaseAnswers()
    >>> for text in ('{"a":[1,2]}', '{"a":[2,3]}', '{"a":[1]}', '{}'): answers.add(text, text)
    >>> array_lengths(answers)["a"]
    ArrayLengths(stability=0.5, shortest=0, longest=2)
    """
    if answers.n < 2:
        return {}
    tallied = {path: Counter[int]() for path in answers.plan.arrays} | answers.tally().lengths
    parsed = answers.groups.total()
    arrays = {}
    for path, lengths in tallied.items():
        absent = parsed - lengths.total()
        counts = lengths + Counter({0: absent}) if absent else lengths
        arrays[path] = ArrayLengths(
            stability=max(counts.values(), default=0) / answers.n,
            shortest=min(counts, default=None),
            longest=max(counts, default=None),
        )
    return arrays


def array_length_stability(answers: CaseAnswers) -> float | None:
    """Return the mean of `array_lengths(…).stability` over the arrays.

    Range 0 to 1, 1 is best; undefined for fewer than two answers, or if neither schema nor answers have an array.

    >>> answers = CaseAnswers()
    >>> for text in ('{"a":[1],"b":[]}', '{"a":[2],"b":[3]}'): answers.add(text, text)
    >>> array_length_stability(answers)
    0.75
    """
    arrays = array_lengths(answers)
    return sum(one.stability for one in arrays.values()) / len(arrays) if arrays else None


def krippendorff_alpha(units: Iterable[Mapping[Hashable, int]]) -> float | None:
    """Return nominal α = 1 − observed ÷ expected disagreement. A unit maps each value to its count.

    Only units with two or more values count. With n values, n_c of value c, and n_uc of value c in unit u with m_u
    values, α = [(n − 1) Σ_u Σ_c n_uc (n_uc − 1) ÷ (m_u − 1) − Σ_c n_c (n_c − 1)] ÷ [n (n − 1) − Σ_c n_c (n_c − 1)].
    Units may have different numbers of values. Range −1 to 1, 1 is best, 0 is chance. α is undefined if no unit has two
    values, or if all values are equal, since the expected disagreement is then 0.
    Krippendorff 2011, https://repository.upenn.edu/asc_papers/43.

    >>> krippendorff_alpha([{"yes": 2}, {"no": 2}])
    1.0
    >>> round(krippendorff_alpha([{"yes": 2}, {"no": 1, "yes": 1}]), 3)
    0.0
    """
    totals: Counter[Hashable] = Counter()
    agreeing = 0.0
    for unit in units:
        count_of_unit = sum(unit.values())
        if count_of_unit > 1:
            agreeing += sum(count * (count - 1) for count in unit.values()) / (count_of_unit - 1)
            totals.update(unit)
    n = totals.total()
    chance_pairs = sum(count * (count - 1) for count in totals.values())
    possible = n * (n - 1) - chance_pairs
    return ((n - 1) * agreeing - chance_pairs) / possible if possible else None
