"""One output against one truth: aligned leaves as rows, each with its verdict. All accuracy metrics read these.

Objects align by key; arrays by their declared rule. Null and absent are the same thing for a leaf.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

from skill_evaluator.metrics.comparators import canonical, equal
from skill_evaluator.metrics.fieldplan import FieldPlan, FieldRule

Verdict = Literal["right", "wrong", "missing", "extra"]


@dataclass(frozen=True, slots=True)
class Row:
    """One aligned leaf: its path in the plan, its rule, both values and what came of them."""

    path: str
    rule: FieldRule
    truth: Any
    output: Any
    verdict: Verdict


def compare(truth: Any, output: Any, plan: FieldPlan) -> list[Row]:
    """Align two JSON values and compare their leaves, in the order of the truth's keys, then the output's own."""
    rows: list[Row] = []
    _compare(truth, output, "", plan, rows)
    return rows


def _compare(truth: Any, output: Any, path: str, plan: FieldPlan, rows: list[Row]) -> None:
    if path not in plan.leaves:
        if isinstance(truth, dict) and isinstance(output, dict | None):
            return _compare_objects(truth, output or {}, path, plan, rows)
        if isinstance(truth, list) and isinstance(output, list | None):
            return _compare_arrays(truth, output or [], path, plan, rows)
        if truth is None and isinstance(output, dict):
            return _compare_objects({}, output, path, plan, rows)
        if truth is None and isinstance(output, list):
            return _compare_arrays([], output, path, plan, rows)
        if isinstance(truth, dict | list) or isinstance(output, dict | list):
            _compare(truth, None, path, plan, rows)
            return _compare(None, output, path, plan, rows)
    if truth is None and output is None:
        return None
    rule = plan.leaf(path, truth, output)
    if rule.compare == "ignore":
        return None
    if truth is None or output is None:
        verdict: Verdict = "extra" if truth is None else "missing"
    else:
        verdict = "right" if equal(truth, output, rule) else "wrong"
    rows.append(Row(path, rule, truth, output, verdict))
    return None


def _compare_objects(
    truth: dict[str, Any], output: dict[str, Any], path: str, plan: FieldPlan, rows: list[Row]
) -> None:
    for key in truth if truth.keys() >= output.keys() else {**truth, **output}:
        _compare(truth.get(key), output.get(key), f"{path}.{key}" if path else key, plan, rows)


def _compare_arrays(truth: list[Any], output: list[Any], path: str, plan: FieldPlan, rows: list[Row]) -> None:
    for left, right in align(truth, output, path, plan):
        _compare(left, right, f"{path}[]", plan, rows)


def align(truth: list[Any], output: list[Any], path: str, plan: FieldPlan) -> Iterator[tuple[Any, Any]]:
    """Pairs (truth item, output item) of an array by its rule; None stands where an item has no counterpart."""
    rule = plan.array(path, truth + output)
    if rule.align == "ordered":
        length = max(len(truth), len(output))
        yield from zip(_padded(truth, length), _padded(output, length), strict=True)
        return
    if rule.align == "best" or not plan.leaf(f"{path}[]", *truth, *output).exact_equality:
        yield from _best(truth, output, path, plan)
        return
    groups: dict[Hashable, tuple[list[Any], list[Any]]] = {}
    for side, items in enumerate((truth, output)):
        for item in items:
            groups.setdefault(identity(item, rule, path, plan), ([], []))[side].append(item)
    for left, right in groups.values():  # more than one item of a key: which is which, their other fields decide
        yield from _best(left, right, path, plan) if rule.align == "key" else zip_longest(left, right)


def identity(item: Any, rule: FieldRule, path: str, plan: FieldPlan) -> Hashable:
    """What identifies an array item: its declared key fields, or its whole canonical value for a `set`."""
    if rule.align == "key":
        fields = item if isinstance(item, dict) else {}
        return tuple(canonical(fields.get(key), plan.leaf(f"{path}[].{key}", fields.get(key))) for key in rule.key)
    return canonical(item, plan.leaf(f"{path}[]", item))


def _padded(items: list[Any], length: int) -> list[Any]:
    return items + [None] * (length - len(items))


def _best(truth: list[Any], output: list[Any], path: str, plan: FieldPlan) -> Iterator[tuple[Any, Any]]:
    """The assignment that maximises matched leaf weight; of equals the one nearest to the original order."""
    if not truth or not output:
        yield from ((item, None) for item in truth)
        yield from ((None, item) for item in output)
        return
    if len(truth) == len(output) == 1:
        yield truth[0], output[0]
        return
    partners = _assign([[_matched(left, right, f"{path}[]", plan) for right in output] for left in truth])
    for index, item in enumerate(truth):
        partner = partners.get(index)
        yield item, None if partner is None else output[partner]
    taken = set(partners.values())
    yield from ((None, item) for index, item in enumerate(output) if index not in taken)


def _matched(left: Any, right: Any, path: str, plan: FieldPlan) -> float:
    rows: list[Row] = []
    _compare(left, right, path, plan, rows)
    return sum(row.rule.weight for row in rows if row.verdict == "right" and row.rule.counts)


def _assign(weights: list[list[float]]) -> dict[int, int]:
    """Rows → columns of the heaviest one-to-one assignment."""
    if len(weights) == 1 or len(weights[0]) == 1 or _diagonal_is_best(weights):
        return _assign_small(weights)
    from scipy.optimize import linear_sum_assignment

    tie_break = 1e-6 / (len(weights) * len(weights[0]) * max(len(weights), len(weights[0])))
    near_order = [
        [weight - tie_break * abs(row - column) for column, weight in enumerate(line)]
        for row, line in enumerate(weights)
    ]
    chosen_rows, chosen_columns = linear_sum_assignment(near_order, maximize=True)
    return dict(zip(chosen_rows.tolist(), chosen_columns.tolist(), strict=True))


def _diagonal_is_best(weights: list[list[float]]) -> bool:
    """True when item i's best partner is item i throughout: then no assignment can be heavier."""
    return len(weights) == len(weights[0]) and all(max(line) == line[row] for row, line in enumerate(weights))


def _assign_small(weights: list[list[float]]) -> dict[int, int]:
    if len(weights) == 1:
        line = weights[0]
        return {0: line.index(max(line))}
    if len(weights[0]) == 1:
        column = [line[0] for line in weights]
        return {column.index(max(column)): 0}
    return {row: row for row in range(len(weights))}


def counted_weight(rows: Sequence[Row]) -> tuple[float, float, float]:
    """Weights (matched, of the truth's leaves, of the output's leaves) over the rows that count."""
    matched = of_truth = of_output = 0.0
    for row in rows:
        if not row.rule.counts:
            continue
        weight = row.rule.weight
        if row.verdict != "extra":
            of_truth += weight
        if row.verdict != "missing":
            of_output += weight
        if row.verdict == "right":
            matched += weight
    return matched, of_truth, of_output
