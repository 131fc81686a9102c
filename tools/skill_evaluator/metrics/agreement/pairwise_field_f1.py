"""How much of two answers to the same document agrees, leaf by leaf?

Pairs whose leaves weigh the same in all have the same denominator: how often each leaf was given then says what all of
them share together, without looking at one pair. Only items whose partner depends on the pair are compared one by one.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import fsum
from typing import NamedTuple

from skill_evaluator.comparing.assignment import matched_weights
from skill_evaluator.comparing.forms import Form, Leaves, Slot, Token
from skill_evaluator.comparing.small_groups import LARGEST_GROUP, distinct_groups
from skill_evaluator.metrics.base import CaseAnswers, keeping_all

Given = tuple[Leaves, int]  # with how often it was given
Digits = Mapping[float, list[int]]
_ONE = ord("1")
_MANY = 2_000  # pairs, which take as long as the import of numpy


class _Group(NamedTuple):
    """The items of one key in an output: what all leaves of that output weigh, and how often it was given."""

    items: Sequence[Leaves]
    weight: float
    times: int


def pairwise_field_f1(answers: CaseAnswers) -> float | None:
    """Return the mean of `field_level_f1` over the N(N−1)/2 pairs of a case's answers.

    One of a pair is taken as the truth of the other; the result is symmetric. Range 0 to 1, 1 is best; a pair with an
    unparseable answer scores 0; undefined for fewer than two answers, or where no field of any of them counts.

    >>> from skill_evaluator.comparing.field_plan import FieldPlan
    >>> answers = CaseAnswers(FieldPlan())
    >>> for text in ('{"a":1,"b":0}', '{"a":2,"b":0}'): answers.add(text, text)
    >>> pairwise_field_f1(answers)
    0.5
    """
    if not answers.pairs or (
        not answers.plan.counts and not any(leaves.weight for leaves, _ in answers.tally().leaves)
    ):
        return None
    if len(answers.groups) < 2:
        return answers.equal_pairs / answers.pairs
    outputs = answers.tally().leaves
    with keeping_all():
        total = _total_of_tokens(outputs) + _total_of_groups(outputs)
    return min(1.0, total / answers.pairs)  # sums in another order may differ in the last digit


def _share(matched: float, left: float, right: float) -> float:
    return 2 * matched / (left + right) if left + right else 0.0


def _total_of_groups(outputs: list[Given]) -> float:
    """Sum what items whose partner depends on the pair add to the sum of F1 over all pairs."""
    places: dict[Slot, list[_Group]] = {}
    for leaves, count in outputs:
        for place, group in leaves.groups.items():
            places.setdefault(place, []).append(_Group(group, leaves.weight, count))
    alone: dict[Slot, list[_Group]] = {place: [] for place in places}
    for leaves, count in outputs:
        for place in places.keys() & leaves.singles.keys():
            alone[place].append(_Group(leaves.at(place), leaves.weight, count))
    total = 0.0
    for place, groups in places.items():
        for items, weight, count in groups:
            beside_itself = fsum([item.weight for item in items])
            total += count * (count - 1) / 2 * _share(beside_itself, weight, weight)
        many = len(groups) * (len(groups) + len(alone[place])) >= _MANY
        at_once = many and _are_small(groups) and _are_small(alone[place])
        total += (_total_at_once if at_once else _total_one_by_one)(groups, alone[place])
    return total


def _are_small(groups: Iterable[_Group]) -> bool:
    return all(
        len(group.items) <= LARGEST_GROUP and not any(item.near or item.groups for item in group.items)
        for group in groups
    )


def _total_one_by_one(groups: list[_Group], alone: list[_Group]) -> float:
    """Sum over the pairs of different groups, and of a group and an item that is the only one of its key."""
    total = 0.0
    for index, (items, weight, count) in enumerate(groups):
        others = groups[index + 1 :] + alone
        matched = matched_weights(items, (other.items for other in others))
        for weight_of_both, (_, other_weight, times) in zip(matched, others, strict=True):
            total += count * times * _share(weight_of_both, weight, other_weight)
    return total


def _total_at_once(groups: list[_Group], alone: list[_Group]) -> float:
    """Sum the same by how often each distinct group was given in outputs of each weight."""
    import numpy as np

    numbers, matched = distinct_groups([group.items for group in (*groups, *alone)])
    weights = {weight: row for row, weight in enumerate({group.weight: None for group in (*groups, *alone)})}
    grouped, single = np.zeros((2, len(weights), len(matched)))
    itself = np.zeros((len(weights), len(weights)))
    for place, (number, (_, weight, count)) in enumerate(zip(numbers, (*groups, *alone), strict=True)):
        row = weights[weight]
        if place < len(groups):
            grouped[row, number] += count
            itself[row, row] += count * count * matched[number, number]
        else:
            single[row, number] += count
    sums = (grouped @ matched @ grouped.T - itself) / 2 + grouped @ matched @ single.T
    of_both = np.add.outer(list(weights), list(weights))
    return float(np.divide(2 * sums, of_both, out=np.zeros_like(sums), where=of_both > 0).sum())


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
