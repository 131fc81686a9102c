"""Stability of the number of array items over the answers to one case."""

from collections import Counter
from dataclasses import dataclass

from skill_evaluator.metrics.base import CaseAnswers


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
