"""Compare one output with one ground truth: aligned leaves as rows with outcomes, used by all accuracy metrics.

Objects align by key, arrays by their declared rule. Null and absent leaves are equal.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations, zip_longest
from math import fsum, perm
from operator import getitem
from typing import Any, Literal

from skill_evaluator.comparing.comparators import equal
from skill_evaluator.comparing.declarations import FieldRule
from skill_evaluator.comparing.field_plan import Field, FieldPlan
from skill_evaluator.comparing.sides import ItemLeaves, Leaf, Side, identities, item_leaves, pairs_by_best, text_of
from skill_evaluator.text import keys_by_nfc_name, rename_keys

At = tuple[str | int, ...]
Pair = tuple[int | None, int | None]
Weights = list[list[float]]
LeafOutcome = Literal["right", "wrong", "missing", "extra"]
# A value of these is equal to itself under any rule; it need not be normalised to know that.
_SCALARS = frozenset({str, int, float, bool})
_CONTAINERS = (dict, list)
_OBJECT = (dict, type(None))
_ARRAY = (list, type(None))
_FEW = 60  # assignments


@dataclass(slots=True)  # not frozen: there is one per leaf, and making a frozen one takes five times as long
class ComparedLeaf:
    """One aligned leaf: its path in the plan, its rule, both values and what came of them. Not to be changed.

    `truth_at` and `output_at` say where the value stands: keys and array indexes; None where there is no value.
    """

    path: str
    rule: FieldRule
    truth: Any
    output: Any
    outcome: LeafOutcome
    truth_at: At | None
    output_at: At | None


def compare(truth: Any, output: Any, plan: FieldPlan) -> list[ComparedLeaf]:
    """Align two JSON values and compare their leaves, in the order of the truth's keys, then the output's own."""
    return compare_sides(Side(truth, plan), Side(output, plan))


def compare_sides(truth: Side, output: Side) -> list[ComparedLeaf]:
    """Return the rows of two values of one plan."""
    return _Comparing(truth, output).run()


class _Comparing:
    """One walk over truth and output: their aligned leaves."""

    def __init__(self, truth: Side, output: Side) -> None:
        self.rows: list[ComparedLeaf] = []
        self._truth = truth
        self._output = output

    def run(self) -> list[ComparedLeaf]:
        self.compare(self._truth.value, self._output.value, self._truth.plan.field(""), (), ())
        return self.rows

    def compare(self, truth: Any, output: Any, field: Field, truth_at: At, output_at: At) -> None:
        """Compare two values at a field; one frame per level of nesting, as values may be hundreds of levels deep."""
        if field.rule is None and (isinstance(truth, _CONTAINERS) or isinstance(output, _CONTAINERS)):
            if isinstance(truth, _OBJECT) and isinstance(output, _OBJECT):
                left, right = truth or {}, output or {}
                if keys_by_nfc_name(left) or keys_by_nfc_name(right):
                    return self._compare_respelt(left, right, field, truth_at, output_at)
                children = field.children
                for key in left if left.keys() >= right.keys() else {**left, **right}:
                    below = children.get(key) or field.child(key)
                    self.compare(left.get(key), right.get(key), below, (*truth_at, key), (*output_at, key))
            elif isinstance(truth, _ARRAY) and isinstance(output, _ARRAY):
                lefts, rights = truth or [], output or []
                for i, j in self._align(lefts, rights, field):
                    item, in_truth = (None, truth_at) if i is None else (lefts[i], (*truth_at, i))
                    other, in_output = (None, output_at) if j is None else (rights[j], (*output_at, j))
                    self.compare(item, other, field.item, in_truth, in_output)
            else:  # of different kinds: the one is missing, the other extra
                self.compare(truth, None, field, truth_at, output_at)
                self.compare(None, output, field, truth_at, output_at)
        elif field.ignored:
            pass
        elif truth is not None and output is not None:
            rule = field.rule or field.leaf_rule(truth)
            same = truth == output and truth.__class__ is output.__class__ and truth.__class__ in _SCALARS
            outcome: LeafOutcome = "right" if same or equal(truth, output, rule) else "wrong"
            self.rows.append(ComparedLeaf(field.path, rule, truth, output, outcome, truth_at, output_at))
        elif truth is not None:
            self.rows.append(ComparedLeaf(field.path, field.leaf_rule(truth), truth, None, "missing", truth_at, None))
        elif output is not None:
            self.rows.append(ComparedLeaf(field.path, field.leaf_rule(output), None, output, "extra", None, output_at))
        return None

    def _compare_respelt(
        self, truth: dict[str, Any], output: dict[str, Any], field: Field, truth_at: At, output_at: At
    ) -> None:
        """Compare objects with keys that are not NFC: members meet by name, and stand at the key as it is spelt."""
        truth_keys, output_keys = keys_by_nfc_name(truth), keys_by_nfc_name(output)
        left, right = rename_keys(truth, truth_keys), rename_keys(output, output_keys)
        for name in {**left, **right}:
            in_truth = (*truth_at, truth_keys.get(name, name))
            in_output = (*output_at, output_keys.get(name, name))
            self.compare(left.get(name), right.get(name), field.child(name), in_truth, in_output)

    def _align(self, truth: list[Any], output: list[Any], field: Field) -> Iterable[Pair]:
        rule = field.array_rule(*truth, *output)
        lefts, rights = range(len(truth)), range(len(output))
        if not truth or not output or rule.align == "ordered":
            return zip_longest(lefts, rights)
        if pairs_by_best(rule, field):
            return self._assign(lefts, rights, truth, output, field)
        groups: dict[Hashable, tuple[list[int], list[int]]] = {}
        for index, who in enumerate(self._truth.once(identities, truth, field, rule)):
            groups.setdefault(who, ([], []))[0].append(index)
        for index, who in enumerate(self._output.once(identities, output, field, rule)):
            groups.setdefault(who, ([], []))[1].append(index)
        pairs: list[Pair] = []
        for left, right in groups.values():
            one_each = len(left) < 2 and len(right) < 2
            if one_each or rule.align == "set":
                pairs += zip_longest(left, right)
            else:  # more than one item of a key: which is which, their other fields decide
                pairs += self._assign(left, right, truth, output, field)
        return pairs

    def _assign(
        self, lefts: Sequence[int], rights: Sequence[int], truth: list[Any], output: list[Any], field: Field
    ) -> Iterable[Pair]:
        """Return the assignment that maximises matched leaf weight, in the truth's order, then the output's rest.

        Items that both sides have meet first: that makes no assignment lighter where equality is transitive, which it
        is not by closeness. Ties must not depend on the order of the items: their content decides.
        """
        if not lefts or not rights or len(lefts) == len(rights) == 1:
            return zip_longest(lefts, rights)
        left_leaves = self._truth.once(item_leaves, truth, field)
        right_leaves = self._output.once(item_leaves, output, field)
        equal_items: dict[frozenset[Leaf], tuple[list[int], list[int]]] = {}
        for index in lefts:
            equal_items.setdefault(left_leaves[index].leaves, ([], []))[0].append(index)
        for index in rights:
            equal_items.setdefault(right_leaves[index].leaves, ([], []))[1].append(index)

        def said_in_truth(index: int) -> str:
            return self._truth.once(text_of, truth[index], field.item)

        def said_in_output(index: int) -> str:
            return self._output.once(text_of, output[index], field.item)

        partners: dict[int, int] = {}
        for left, right in equal_items.values():
            if left and right:
                if len(left) > 1 or len(right) > 1:
                    left.sort(key=said_in_truth)
                    right.sort(key=said_in_output)
                partners.update(zip(left, right, strict=False))
        taken = set(partners.values())
        left = sorted((index for index in lefts if index not in partners), key=said_in_truth)
        right = sorted((index for index in rights if index not in taken), key=said_in_output)
        if left and right:
            weights = [
                [self._matched(left_leaves[i], right_leaves[j], truth[i], output[j], field.item) for j in right]
                for i in left
            ]
            partners |= {left[row]: right[column] for row, column in heaviest(weights).items()}
            taken = set(partners.values())
        return [*((i, partners.get(i)) for i in lefts), *((None, j) for j in rights if j not in taken)]

    def _matched(self, left: ItemLeaves, right: ItemLeaves, truth: Any, output: Any, field: Field) -> float:
        """Return the total weight of the equal leaves of two array items."""
        if left.plain and right.plain:
            return fsum([weight for _, _, weight in left.leaves & right.leaves])
        walk = _Comparing(self._truth, self._output)
        walk.compare(truth, output, field, (), ())
        return counted_weight(walk.rows)[0]


def heaviest(weights: Weights) -> dict[int, int]:
    """Return the heaviest assignment of rows to columns, nearest to the diagonal in ties."""
    if len(weights) > len(weights[0]):
        flipped = heaviest([list(column) for column in zip(*weights, strict=True)])
        return {row: column for column, row in flipped.items()}
    chosen: dict[int, int] = {}  # every row with its heaviest column: if these all differ, nothing can be heavier
    for row, line in enumerate(weights):
        most = max(line)
        if most > 0:
            chosen[row] = row if line[row] == most else line.index(most)
    taken, width = set(chosen.values()), len(weights[0])
    if len(taken) == len(chosen):
        free = (column for column in range(width) if column not in taken)
        return chosen | {row: next(free) for row in range(len(weights)) if row not in chosen}
    if perm(width, len(weights)) <= _FEW:  # then all are tried, which spares the import of scipy

        def worth(columns: tuple[int, ...]) -> tuple[float, int]:
            return fsum(map(getitem, weights, columns)), -sum([abs(row - column) for row, column in enumerate(columns)])

        best: tuple[int, ...] = max(permutations(range(width), len(weights)), key=worth)
        return dict(enumerate(best))
    from scipy.optimize import linear_sum_assignment

    tie_break = 1e-6 / (len(weights) * width**2)
    near_diagonal = [
        [weight - tie_break * abs(row - column) for column, weight in enumerate(line)]
        for row, line in enumerate(weights)
    ]
    rows, columns = linear_sum_assignment(near_diagonal, maximize=True)
    return dict(zip(rows.tolist(), columns.tolist(), strict=True))


def counted_weight(rows: Iterable[ComparedLeaf]) -> tuple[float, float, float]:
    """Sum weights (matched, of the truth's leaves, of the output's leaves) over the rows that count."""
    weights: dict[int, float] = {}  # by rule: its properties are looked up once
    matched = of_truth = of_output = 0.0
    for row in rows:
        rule, outcome = row.rule, row.outcome
        weight = weights.get(id(rule))
        if weight is None:
            weight = weights[id(rule)] = rule.weight if rule.counts else 0.0
        if outcome != "extra":
            of_truth += weight
        if outcome != "missing":
            of_output += weight
        if outcome == "right":
            matched += weight
    return matched, of_truth, of_output
