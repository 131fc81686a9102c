"""How much of two answers to the same document agrees, leaf by leaf?

Equal answers are grouped first; distinct ones are compared as bit sets of leaves where alignment allows it.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from skill_evaluator.metrics.answers import CaseAnswers
from skill_evaluator.metrics.comparators import canonical, equal
from skill_evaluator.metrics.comparison import compare, counted_weight
from skill_evaluator.metrics.fieldplan import FieldPlan, FieldRule
from skill_evaluator.metrics.leaves import PartnerDependentError, leaves_of


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
    total = float(answers.equal_pairs)
    if len(answers.groups) > 1:
        values, counts = zip(*answers.distinct(), strict=True)
        sides = zip(_sides(values, answers.plan), counts, strict=True)
        for (left, left_count), (right, right_count) in combinations(sides, 2):
            total += left_count * right_count * left.f1(right)
    return total / answers.pairs


def _sides(values: Iterable[Any], plan: FieldPlan) -> "list[Any]":
    numbering: dict[Hashable, int] = {}
    try:
        return [_leaf_set(value, plan, numbering) for value in values]
    except PartnerDependentError:
        return [_Whole(value, plan) for value in values]


@dataclass(slots=True)
class _Whole:
    """An output whose alignment depends on its partner."""

    value: Any
    plan: FieldPlan

    def f1(self, other: "_Whole") -> float:
        matched, left, right = counted_weight(compare(self.value, other.value, self.plan))
        return 2 * matched / (left + right) if left + right else 1.0


@dataclass(slots=True)
class _LeafSet:
    """An output as bits: one per distinct (place, canonical value), kept apart by weight.

    Leaves whose equality is a matter of closeness cannot be bits; they are compared one by one.
    """

    bits: dict[float, int] = field(default_factory=dict)
    near: dict[Hashable, tuple[Any, FieldRule]] = field(default_factory=dict)
    weight: float = 0.0

    def f1(self, other: "_LeafSet") -> float:
        total = self.weight + other.weight
        if not total:
            return 1.0
        matched = sum(weight * (mask & other.bits.get(weight, 0)).bit_count() for weight, mask in self.bits.items())
        for place, (value, rule) in self.near.items():
            partner = other.near.get(place)
            if partner is not None and equal(value, partner[0], rule):
                matched += rule.weight
        return min(1.0, 2 * matched / total)  # sums of weights in another order may differ in the last digit


def _leaf_set(value: Any, plan: FieldPlan, numbering: dict[Hashable, int]) -> _LeafSet:
    found = _LeafSet()
    for leaf in leaves_of(value, plan):
        rule = leaf.rule
        if not rule.counts:
            continue
        found.weight += rule.weight
        if rule.exact_equality:
            token = (leaf.instance, canonical(leaf.value, rule))
            bit = 1 << numbering.setdefault(token, len(numbering))
            found.bits[rule.weight] = found.bits.get(rule.weight, 0) | bit
        else:
            found.near[leaf.instance] = (leaf.value, rule)
    return found
