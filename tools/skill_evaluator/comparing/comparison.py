"""Compare one output with one ground truth: aligned leaves with outcomes; null and absent leaves are equal."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations, zip_longest
from math import fsum, perm
from operator import getitem
from typing import Any, Literal

from skill_evaluator.comparing import array_items
from skill_evaluator.comparing.array_items import ItemLeaves, MemoizedValue
from skill_evaluator.comparing.comparators import equal
from skill_evaluator.comparing.declarations import FieldRule
from skill_evaluator.comparing.field_plan import Field, FieldPlan
from skill_evaluator.text import key_path, keys_by_nfc_name, rename_keys

ValuePath = tuple[str | int, ...]
Pair = tuple[int | None, int | None]
Weights = list[list[float]]
LeafOutcome = Literal["right", "wrong", "missing", "extra", "unscored"]
# Identical values of these types are equal under any rule, without normalisation.
_SCALARS = frozenset({str, int, float, bool})
_CONTAINERS = (dict, list)
_OBJECT = (dict, type(None))
_ARRAY = (list, type(None))
_MAX_ENUMERATED_ASSIGNMENTS = 60  # assignments


@dataclass(slots=True)  # mutable for speed: there is one per leaf
class ComparedLeaf:
    """One aligned leaf: its path in the plan, its rule, both values and the outcome. Treat it as immutable.

    The outcome is `unscored` only in views of cases without a ground truth. `truth_at` and `output_at` are the paths of
    the values as keys and array indexes, None if there is no value.
    """

    path: str
    rule: FieldRule
    truth: Any
    output: Any
    outcome: LeafOutcome
    truth_at: ValuePath | None
    output_at: ValuePath | None

    @property
    def location(self) -> str:
        """The path with array indexes of the ground truth, or of the output (`[→2]`) for an extra value."""
        if self.truth_at is not None:
            return key_path(self.truth_at)
        return key_path(self.output_at or ()).replace("[", "[→")


def compare(truth: Any, output: Any, plan: FieldPlan) -> list[ComparedLeaf]:
    """Align two JSON values and return their compared leaves, as `compare_values` does."""
    return compare_values(MemoizedValue(truth, plan), MemoizedValue(output, plan))


def compare_values(truth: MemoizedValue, output: MemoizedValue) -> list[ComparedLeaf]:
    """Align two values of one plan and return their compared leaves. In each object, the truth's keys come first."""
    walk = _Comparison(truth, output)
    walk.compare(truth.value, output.value, truth.plan.field(""), (), ())
    return walk.rows


class _Comparison:
    def __init__(self, truth: MemoizedValue, output: MemoizedValue) -> None:
        self.rows: list[ComparedLeaf] = []
        self._truth = truth
        self._output = output

    def compare(self, truth: Any, output: Any, field: Field, truth_at: ValuePath, output_at: ValuePath) -> None:
        """Append the compared leaves of a field to `rows`, with one stack frame per level of nesting."""
        if field.rule is None and (isinstance(truth, _CONTAINERS) or isinstance(output, _CONTAINERS)):
            if isinstance(truth, _OBJECT) and isinstance(output, _OBJECT):
                truths, outputs = truth or {}, output or {}
                if keys_by_nfc_name(truths) or keys_by_nfc_name(outputs):
                    return self._compare_respelt(truths, outputs, field, truth_at, output_at)
                children = field.children
                for key in truths if truths.keys() >= outputs.keys() else {**truths, **outputs}:
                    below = children.get(key) or field.child(key)
                    self.compare(truths.get(key), outputs.get(key), below, (*truth_at, key), (*output_at, key))
            elif isinstance(truth, _ARRAY) and isinstance(output, _ARRAY):
                truth_items, output_items = truth or [], output or []
                for i, j in self._align(truth_items, output_items, field):
                    truth_item, item_truth_at = (None, truth_at) if i is None else (truth_items[i], (*truth_at, i))
                    output_item, item_output_at = (None, output_at) if j is None else (output_items[j], (*output_at, j))
                    self.compare(truth_item, output_item, field.item, item_truth_at, item_output_at)
            else:  # different kinds: the truth is missing, the output is extra
                self.compare(truth, None, field, truth_at, output_at)
                self.compare(None, output, field, truth_at, output_at)
        elif field.ignored:
            pass
        elif truth is not None and output is not None:
            rule = field.rule or field.leaf_rule(truth)
            is_identical = truth == output and truth.__class__ is output.__class__ and truth.__class__ in _SCALARS
            outcome: LeafOutcome = "right" if is_identical or equal(truth, output, rule) else "wrong"
            self.rows.append(ComparedLeaf(field.path, rule, truth, output, outcome, truth_at, output_at))
        elif truth is not None:
            self.rows.append(ComparedLeaf(field.path, field.leaf_rule(truth), truth, None, "missing", truth_at, None))
        elif output is not None:
            self.rows.append(ComparedLeaf(field.path, field.leaf_rule(output), None, output, "extra", None, output_at))
        return None

    def _compare_respelt(
        self, truth: dict[str, Any], output: dict[str, Any], field: Field, truth_at: ValuePath, output_at: ValuePath
    ) -> None:
        truth_keys, output_keys = keys_by_nfc_name(truth), keys_by_nfc_name(output)
        truths, outputs = rename_keys(truth, truth_keys), rename_keys(output, output_keys)
        for name in {**truths, **outputs}:
            key_in_truth = (*truth_at, truth_keys.get(name, name))
            key_in_output = (*output_at, output_keys.get(name, name))
            self.compare(truths.get(name), outputs.get(name), field.child(name), key_in_truth, key_in_output)

    def _align(self, truth: list[Any], output: list[Any], field: Field) -> Iterable[Pair]:
        rule = field.array_rule(*truth, *output)
        truth_indices, output_indices = range(len(truth)), range(len(output))
        if not truth or not output or rule.align == "ordered":
            return zip_longest(truth_indices, output_indices)
        if array_items.pairs_by_best(rule, field):
            return self._assign(truth_indices, output_indices, truth, output, field)
        truth_ids = self._truth.once(array_items.identities, truth, field, rule)
        output_ids = self._output.once(array_items.identities, output, field, rule)
        pairs: list[Pair] = []
        for truth_group, output_group in _equal_groups(enumerate(truth_ids), enumerate(output_ids)):
            one_each = len(truth_group) < 2 and len(output_group) < 2
            if one_each or rule.align == "set":
                pairs += zip_longest(truth_group, output_group)
            else:  # several items with one key are paired by their other fields
                pairs += self._assign(truth_group, output_group, truth, output, field)
        return pairs

    def _assign(
        self, rows: Sequence[int], columns: Sequence[int], truth: list[Any], output: list[Any], field: Field
    ) -> Iterable[Pair]:
        """Return index pairs of the assignment with maximum matched weight, in the truth's order, then extra outputs.

        Equal items are paired first (not optimal with a tolerance). Ties are broken by content, not by order.
        """
        if not rows or not columns or len(rows) == len(columns) == 1:
            return zip_longest(rows, columns)
        truth_leaves = self._truth.once(array_items.item_leaves, truth, field)
        output_leaves = self._output.once(array_items.item_leaves, output, field)
        equal_items = _equal_groups(
            ((index, truth_leaves[index].leaves) for index in rows),
            ((index, output_leaves[index].leaves) for index in columns),
        )

        def truth_text(index: int) -> str:
            return self._truth.once(array_items.text_of, truth[index], field.item)

        def output_text(index: int) -> str:
            return self._output.once(array_items.text_of, output[index], field.item)

        partners: dict[int, int] = {}
        for truth_group, output_group in equal_items:
            if truth_group and output_group:
                if len(truth_group) > 1 or len(output_group) > 1:
                    truth_group.sort(key=truth_text)
                    output_group.sort(key=output_text)
                partners.update(zip(truth_group, output_group, strict=False))
        paired = set(partners.values())
        truth_rest = sorted((index for index in rows if index not in partners), key=truth_text)
        output_rest = sorted((index for index in columns if index not in paired), key=output_text)
        if truth_rest and output_rest:
            weights = [
                [self._matched(truth_leaves[i], output_leaves[j], truth[i], output[j], field.item) for j in output_rest]
                for i in truth_rest
            ]
            partners |= {truth_rest[row]: output_rest[column] for row, column in heaviest(weights).items()}
            paired = set(partners.values())
        return [*((i, partners.get(i)) for i in rows), *((None, j) for j in columns if j not in paired)]

    def _matched(self, a: ItemLeaves, b: ItemLeaves, truth: Any, output: Any, field: Field) -> float:
        if a.plain and b.plain:
            return fsum([weight for _, _, weight in a.leaves & b.leaves])
        walk = _Comparison(self._truth, self._output)
        walk.compare(truth, output, field, (), ())
        return counted_weight(walk.rows)[0]


def _equal_groups(
    truth: Iterable[tuple[int, Hashable]], output: Iterable[tuple[int, Hashable]]
) -> Iterable[tuple[list[int], list[int]]]:
    """Return (indexes in truth, indexes in output) of each identity. Both arguments have pairs (index, identity)."""
    groups: dict[Hashable, tuple[list[int], list[int]]] = {}
    for index, identity in truth:
        groups.setdefault(identity, ([], []))[0].append(index)
    for index, identity in output:
        groups.setdefault(identity, ([], []))[1].append(index)
    return groups.values()


def heaviest(weights: Weights) -> dict[int, int]:
    """Return the column of each row in the assignment with maximum total weight.

    If there are more rows than columns, some rows are absent. Ties prefer the diagonal.
    """
    if len(weights) > len(weights[0]):
        transposed = heaviest([list(column) for column in zip(*weights, strict=True)])
        return {row: column for column, row in transposed.items()}
    chosen: dict[int, int] = {}  # each row's heaviest column; optimal if all differ
    for row, line in enumerate(weights):
        max_weight = max(line)
        if max_weight > 0:
            chosen[row] = row if line[row] == max_weight else line.index(max_weight)
    columns_used, width = set(chosen.values()), len(weights[0])
    if len(columns_used) == len(chosen):
        free = (column for column in range(width) if column not in columns_used)
        return chosen | {row: next(free) for row in range(len(weights)) if row not in chosen}
    if perm(width, len(weights)) <= _MAX_ENUMERATED_ASSIGNMENTS:  # then all are tried, which spares the import of scipy

        def rank(columns: tuple[int, ...]) -> tuple[float, int]:
            return fsum(map(getitem, weights, columns)), -sum([abs(row - column) for row, column in enumerate(columns)])

        best: tuple[int, ...] = max(permutations(range(width), len(weights)), key=rank)
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
    """Return the total weight of the right leaves, of the truth's leaves and of the output's leaves."""
    weights: dict[int, float] = {}  # key: id of the rule, whose properties are slow
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
