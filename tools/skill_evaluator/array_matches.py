"""Which item of an array met which, and why: the steps of an alignment, for people.

Walks truth and output side by side as comparing them does, and asks the same `align`.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from skill_evaluator.metrics.comparison import At, Row, align
from skill_evaluator.metrics.fieldplan import FieldPlan, FieldRule
from skill_evaluator.metrics.leaves import Lexicon, pairs_by_best
from skill_evaluator.text import canonical_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """Two array items that were compared with each other, by index; None where one had no counterpart. And why."""

    truth: int | None
    output: int | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayMatch:
    """How the items of one array found each other; `at` is its path with the indexes of the arrays around it."""

    at: str
    path: str
    rule: FieldRule
    items: tuple[Met, ...]


class ArrayMatches:
    """Every array of one comparison. First `walk` the two values, then read `found` and ask for the `place` of rows."""

    def __init__(self, plan: FieldPlan, rows: Sequence[Row]) -> None:
        self.found: list[ArrayMatch] = []
        self._plan = plan
        self._in_truth: dict[At, str] = {}
        self._in_output: dict[At, str] = {}
        self._leaves: Counter[tuple[str, At]] = Counter()
        for row in rows:
            side = "truth" if row.truth_at is not None else "output"
            for item in _items(row.truth_at if row.truth_at is not None else row.output_at or ()):
                self._leaves[side, item] += 1
                self._leaves["right", item] += row.verdict == "right"

    def place(self, row: Row) -> str:
        """A row's path with the array indexes of truth and output: `items[2→0].amount`; one index if they agree."""
        at, known = (row.truth_at, self._in_truth) if row.truth_at is not None else (row.output_at, self._in_output)
        at = at or ()
        item = next(_items(at), ())
        place = known.get(item, "")
        for key in at[len(item) :]:
            place = f"{place}.{key}" if place else str(key)
        return place

    def walk(self, truth: Any, output: Any, path: str, place: str, truth_at: At, output_at: At) -> None:
        """Note how each array in two values is aligned."""
        if path in self._plan.leaves:
            return
        if isinstance(truth, dict) or isinstance(output, dict):
            left, right = (side if isinstance(side, dict) else {} for side in (truth, output))
            for key in {**left, **right}:
                below, there = self._plan.below(path, key), f"{place}.{key}" if place else key
                self.walk(left.get(key), right.get(key), below, there, (*truth_at, key), (*output_at, key))
        if isinstance(truth, list) or isinstance(output, list):
            lefts, rights = (side if isinstance(side, list) else [] for side in (truth, output))
            self._walk_items(lefts, rights, path, place, truth_at, output_at)

    def _walk_items(
        self, truth: list[Any], output: list[Any], path: str, place: str, truth_at: At, output_at: At
    ) -> None:
        rule = self._plan.array(path, truth + output)
        pairs = list(align(truth, output, path, self._plan))
        reasons = _Reasons(rule, path, truth, output, self._plan)
        items = []
        for left, right in pairs:
            agreed = "" if left is None or right is None else self._agreed((*truth_at, left), (*output_at, right))
            items.append(Met(truth=left, output=right, why=reasons.why(left, right, agreed)))
        self.found.append(ArrayMatch(at=place, path=path, rule=rule, items=tuple(items)))
        for left, right in pairs:
            there = f"{place}[{_index(left, right)}]"
            in_truth = truth_at if left is None else (*truth_at, left)
            in_output = output_at if right is None else (*output_at, right)
            if left is not None:
                self._in_truth[in_truth] = there
            if right is not None:
                self._in_output[in_output] = there
            left_item = None if left is None else truth[left]
            right_item = None if right is None else output[right]
            self.walk(left_item, right_item, f"{path}[]", there, in_truth, in_output)

    def _agreed(self, left: At, right: At) -> str:
        leaves = self._leaves["truth", left] + self._leaves["output", right]
        return f"{self._leaves['right', left]} of {leaves} leaves right"


class _Reasons:
    """Why two items of one array met, or why one met none."""

    def __init__(self, rule: FieldRule, path: str, truth: list[Any], output: list[Any], plan: FieldPlan) -> None:
        field, lexicon = plan.field(path), Lexicon(plan)
        self._keys = rule.key
        self._how = "best" if pairs_by_best(rule, field) else rule.align
        self._items = (truth, output)
        self._known_by = [
            lexicon.identities(items, rule, field) if rule.align == "key" else [] for items in self._items
        ]
        self._times = [Counter(identities) for identities in self._known_by]

    def why(self, left: int | None, right: int | None, agreed: str) -> str:
        """In words; `agreed` says how many leaves of the two are right."""
        other = "output" if right is None else "truth"
        alone = left is None or right is None
        if self._how == "key":
            return self._by_key(left, right, agreed)
        if self._how == "ordered":
            return f"the {other} ends before" if alone else "the same place"
        if self._how == "set":
            return f"no equal item left in the {other}" if alone else "equal"
        return f"left over: the {other} has fewer items" if alone else f"best assignment: {agreed}"

    def _by_key(self, left: int | None, right: int | None, agreed: str) -> str:
        side, index = (0, left) if left is not None else (1, right or 0)
        key = ", ".join(f"{name} {canonical_json(_value(self._items[side][index], name))}" for name in self._keys)
        counts = [times[self._known_by[side][index]] for times in self._times]
        if left is not None and right is not None:
            return f"{key}, which is there more than once; {agreed}" if max(counts) > 1 else key
        other = "output" if right is None else "truth"
        return f"the {other} has fewer items of {key}" if min(counts) else f"the {other} has none of {key}"


def _value(item: Any, key: str) -> Any:
    """The value of a key field, which may be dotted."""
    if isinstance(item, dict) and key in item:
        return item[key]
    for part in key.split("."):
        item = item.get(part) if isinstance(item, dict) else None
    return item


def _index(left: int | None, right: int | None) -> str:
    return str(left) if left == right else f"{'–' if left is None else left}→{'–' if right is None else right}"


def _items(at: At) -> Iterator[At]:
    """The array items that a place is in, the innermost first."""
    for length in range(len(at), 0, -1):
        if isinstance(at[length - 1], int):
            yield at[:length]
