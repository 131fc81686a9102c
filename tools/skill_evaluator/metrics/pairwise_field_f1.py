"""How much of two answers to the same document agrees, leaf by leaf?

Pairs whose leaves weigh the same in all have the same denominator: how often each leaf was given then says what all of
them share together, without looking at one pair. Only items whose partner depends on the pair are compared one by one.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from math import fsum

from skill_evaluator.metrics.answers import CaseAnswers
from skill_evaluator.metrics.assignment import matched_weight
from skill_evaluator.metrics.forms import Form, Slot, Token
from skill_evaluator.metrics.leaves import Leaves

Given = tuple[Leaves, int]  # with how often it was given
Digits = Mapping[float, list[int]]


def pairwise_field_f1(answers: CaseAnswers) -> float | None:
    """Mean of `field_level_f1` over the N(N−1)/2 pairs of a case's answers, one taken as the truth of the other.

    Symmetric. Range 0 to 1, 1 is best; a pair with an unparseable answer scores 0; undefined for fewer than two
    answers.

    >>> from skill_evaluator.metrics.fieldplan import FieldPlan
    >>> answers = CaseAnswers(FieldPlan())
    >>> for text in ('{"a":1,"b":0}', '{"a":2,"b":0}'): answers.add(text, text)
    >>> pairwise_field_f1(answers)
    0.5
    """
    if not answers.pairs:
        return None
    if len(answers.groups) < 2:
        return answers.equal_pairs / answers.pairs
    outputs = [(output.leaves, output.count) for output in answers.outputs()]
    total = _total_of_tokens(outputs) + _total_of_groups(outputs)
    return min(1.0, total / answers.pairs)  # sums in another order may differ in the last digit


def _share(matched: float, left: float, right: float) -> float:
    return 2 * matched / (left + right) if left + right else 0.0


def _total_of_groups(outputs: list[Given]) -> float:
    """What items whose partner depends on the pair add to the sum of F1 over all pairs."""
    total = 0.0
    for place in dict.fromkeys(place for leaves, _ in outputs for place in leaves.groups):
        having = [(place in leaves.groups, leaves.at(place), leaves.weight, count) for leaves, count in outputs]
        having = [one for one in having if one[1]]
        for grouped, items, weight, count in having:
            if grouped:  # beside itself all of it matches
                total += count * (count - 1) / 2 * _share(fsum([item.weight for item in items]), weight, weight)
        for (grouped, items, weight, count), (other_grouped, others, other_weight, other_count) in combinations(
            having, 2
        ):
            if grouped or other_grouped:
                total += count * other_count * _share(matched_weight(items, others), weight, other_weight)
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
    """What leaves that have their place add to the sum of F1 over all pairs; 1 for every pair without leaves."""
    classes: dict[float, _Class] = {}
    for leaves, count in outputs:
        classes.setdefault(leaves.weight, _Class()).add(leaves, count)
    digits = {weight: _binary(one.counts) for weight, one in classes.items()}
    total = 0.0
    for weight, one in classes.items():
        if weight:
            beside_itself = fsum([token.weight * count for token, count in one.counts.items()])
            matched = _matched(digits[weight], digits[weight]) + _matched_nearly(one, one)
            total += _share((matched - beside_itself) / 2, weight, weight)  # each pair once
        else:
            total += one.members * (one.members - 1) / 2
    for (weight, one), (other_weight, other) in combinations(classes.items(), 2):
        matched = _matched(digits[weight], digits[other_weight]) + _matched_nearly(one, other)
        total += _share(matched, weight, other_weight)
    return total


def _binary(counts: Mapping[Token, int]) -> Digits:
    """Counts of tokens in binary, by weight: bit t of the digit p says whether 2^p is part of the count of token t."""
    digits: dict[float, list[bytearray]] = {}
    for token, count in counts.items():
        if token.weight:
            of_weight = digits.setdefault(token.weight, [])
            for place in range(count.bit_length()):
                if place == len(of_weight):
                    of_weight.append(bytearray())
                if count >> place & 1:
                    digit, at = of_weight[place], token.number >> 3
                    if at >= len(digit):
                        digit.extend(bytes(at + 1 - len(digit)))
                    digit[at] |= 1 << (token.number & 7)
    return {weight: [int.from_bytes(one, "little") for one in of_weight] for weight, of_weight in digits.items()}


def _matched(left: Digits, right: Digits) -> float:
    """Σ over tokens of weight · left count · right count: AND of each two digits, thousands of tokens at a time."""
    return fsum(
        weight * sum([(one & other).bit_count() << (p + q) for p, one in enumerate(ours) for q, other in theirs])
        for weight, ours in left.items()
        if (theirs := list(enumerate(right.get(weight, ()))))
    )


def _matched_nearly(left: _Class, right: _Class) -> float:
    """The same over leaves that are equal by closeness, but not the same token."""
    return fsum(
        form.weight * count * times
        for slot, forms in left.near.items()
        for other, times in right.near.get(slot, {}).items()
        for form, count in forms.items()
        if form is not other and form.close_to(other)
    )
