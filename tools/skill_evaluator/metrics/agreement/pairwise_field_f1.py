"""How much of two answers to the same document agrees, leaf by leaf?

Pairs whose leaves weigh the same in all have the same denominator: how often each leaf was given then says what all of
them share together, without looking at one pair. Only items whose partner depends on the pair are compared one by one.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from math import fsum

from skill_evaluator.comparing.assignment import matched_weights
from skill_evaluator.comparing.forms import Form, Leaves, Slot, Token
from skill_evaluator.metrics.base import CaseAnswers

Given = tuple[Leaves, int]  # with how often it was given
Digits = Mapping[float, list[int]]
_ONE = ord("1")


def pairwise_field_f1(answers: CaseAnswers) -> float | None:
    """Return the mean of `field_level_f1` over the N(N−1)/2 pairs of a case's answers.

    One of a pair is taken as the truth of the other; the result is symmetric. Range 0 to 1, 1 is best; a pair with an
    unparseable answer scores 0; undefined for fewer than two answers.

    >>> from skill_evaluator.comparing.field_plan import FieldPlan
    >>> answers = CaseAnswers(FieldPlan())
    >>> for text in ('{"a":1,"b":0}', '{"a":2,"b":0}'): answers.add(text, text)
    >>> pairwise_field_f1(answers)
    0.5
    """
    if not answers.pairs:
        return None
    if len(answers.groups) < 2:
        return answers.equal_pairs / answers.pairs
    outputs = answers.tally().leaves
    total = _total_of_tokens(outputs) + _total_of_groups(outputs)
    return min(1.0, total / answers.pairs)  # sums in another order may differ in the last digit


def _share(matched: float, left: float, right: float) -> float:
    return 2 * matched / (left + right) if left + right else 0.0


def _total_of_groups(outputs: list[Given]) -> float:
    """Sum what items whose partner depends on the pair add to the sum of F1 over all pairs."""
    total = 0.0
    for place in dict.fromkeys(place for leaves, _ in outputs for place in leaves.groups):
        grouped = [(leaves.groups[place], leaves.weight, count) for leaves, count in outputs if place in leaves.groups]
        single = [(leaves.at(place), leaves.weight, count) for leaves, count in outputs if place in leaves.singles]
        for index, (items, weight, count) in enumerate(grouped):
            beside_itself = fsum([item.weight for item in items])
            total += count * (count - 1) / 2 * _share(beside_itself, weight, weight)
            others = grouped[index + 1 :] + single
            matched = matched_weights(items, (other for other, _, _ in others))
            for weight_of_both, (_, other_weight, times) in zip(matched, others, strict=True):
                total += count * times * _share(weight_of_both, weight, other_weight)
    return total


@dataclass(slots=True)
class _Class:
    """All outputs whose leaves weigh the same in all: how often each leaf was given.

    `near` counts those leaves once more whose equality is a matter of closeness, by place.
    """

    members: int = 0
    counts: Counter[Token] = field(default_factory=Counter)
    near: dict[Slot, Counter[Form]] = field(default_factory=dict)

    def add(self, leaves: Leaves, times: int) -> None:
        """Count one output, given so many times."""
        self.members += times
        for _ in range(times):
            self.counts.update(leaves.tokens)
        for slot, form in leaves.near.items():
            self.near.setdefault(slot, Counter())[form] += times


def _total_of_tokens(outputs: list[Given]) -> float:
    """Sum what leaves that have their place add to the sum of F1 over all pairs; 1 for every pair without leaves."""
    classes: dict[float, _Class] = {}
    for leaves, count in outputs:
        classes.setdefault(leaves.weight, _Class()).add(leaves, count)
    digits = {weight: _binary(group.counts) for weight, group in classes.items()}
    total = 0.0
    for weight, group in classes.items():
        if weight:
            beside_itself = fsum([token.weight * count for token, count in group.counts.items()])
            matched = _matched(digits[weight], digits[weight]) + _matched_nearly(group, group)
            total += _share((matched - beside_itself) / 2, weight, weight)  # each pair once
        else:
            total += group.members * (group.members - 1) / 2
    for (weight, group), (other_weight, other) in combinations(classes.items(), 2):
        matched = _matched(digits[weight], digits[other_weight]) + _matched_nearly(group, other)
        total += _share(matched, weight, other_weight)
    return total


def _binary(counts: Mapping[Token, int]) -> Digits:
    """Write counts of tokens in binary, by weight: bit t of digit p says whether 2^p is in the count of token t."""
    left: dict[float, list[tuple[int, int]]] = {}
    for token, count in counts.items():
        left.setdefault(token.weight, []).append((token.number, count))
    left.pop(0.0, None)
    size = 1 + max((token.number for token in counts), default=0)
    digits: dict[float, list[int]] = {weight: [] for weight in left}
    for weight, numbers in left.items():
        while numbers:
            bits = bytearray(b"0") * size
            for number, count in numbers:
                if count & 1:
                    bits[-number - 1] = _ONE
            digits[weight].append(int(bits, 2))
            numbers = [(number, count >> 1) for number, count in numbers if count > 1]
    return digits


def _matched(left: Digits, right: Digits) -> float:
    """Sum over tokens of weight · left count · right count: AND of each two digits, thousands of tokens at a time."""
    return fsum(
        weight * sum([(one & other).bit_count() << (p + q) for p, one in enumerate(ours) for q, other in theirs])
        for weight, ours in left.items()
        if (theirs := list(enumerate(right.get(weight, ()))))
    )


def _matched_nearly(left: _Class, right: _Class) -> float:
    """Sum the same over leaves that are equal by closeness, but not the same token."""
    return fsum(
        form.weight * count * times
        for slot, forms in left.near.items()
        for other, times in right.near.get(slot, {}).items()
        for form, count in forms.items()
        if form is not other and form.close_to(other)
    )
