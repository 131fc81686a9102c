"""Ground truths with known errors planted in them, and the list of what an ideal comparison must report.

Everything follows from one seed. Beside the errors, things that are none are planted too: another order of keys and
of unordered items, 1.0 for 1, decomposed letters, other case or spacing where the field's rule forgives it.
"""

import copy
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule

from tests.support.leaf_edits import bare, may_be_equal, same_said_otherwise, wrong_value

Place = tuple[str | int, ...]
Kind = Literal["wrong", "missing", "extra"]
Pool = Mapping[str, list[Any]]
Entry = tuple[int | None, Any]  # an item of an output and its index in the truth; None: it is not from there

CHANGED, REMOVED, SAME = 0.05, 0.02, 0.1  # shares of leaves
MADE_UP = 0.03  # of leaves that are null
DROPPED, REPLACED = 0.05, 0.03  # of items
NEW_ITEM, LOST = 0.15, 0.01  # of arrays; of objects and arrays
INVENTED = 0.01  # of objects: a key that no schema knows
_TRIES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """One error: its path in the plan, what it is, and where the leaf stands in truth and in output."""

    path: str
    kind: Kind
    truth_at: Place | None
    output_at: Place | None


def pool_of(truths: Iterable[Any]) -> Pool:
    """All values that truths have at each path, objects and items too: what plausible errors are taken from."""
    pool: dict[str, list[Any]] = defaultdict(list)
    for truth in truths:
        for path, _, value in _nodes(truth, "", ()):
            if value is not None and value not in pool[path]:
                pool[path].append(value)
    return dict(pool)


def mutate(truth: Any, plan: FieldPlan, pool: Pool, seed: int) -> tuple[Any, list[Planted]]:
    """A copy of the truth with errors in it, and the errors."""
    mutation = _Mutation(plan, pool, random.Random(seed))
    output = mutation.value(copy.deepcopy(truth), "", (), ())
    return copy.deepcopy(output), mutation.planted


def leaves_of(value: Any, path: str = "", place: Place = ()) -> Iterator[tuple[str, Place, Any]]:
    """Every leaf that is not null: path, place, value."""
    for child_path, child_place, child in _nodes(value, path, place):
        if child is not None and not isinstance(child, dict | list):
            yield child_path, child_place, child


def _nodes(value: Any, path: str, place: Place) -> Iterator[tuple[str, Place, Any]]:
    yield path, place, value
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _nodes(child, _below(path, key), (*place, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _nodes(child, f"{path}[]", (*place, index))


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


class _Mutation:
    """One walk over one truth; `planted` grows as it goes."""

    def __init__(self, plan: FieldPlan, pool: Pool, dice: random.Random) -> None:
        self.plan = plan
        self.pool = pool
        self.dice = dice
        self.planted: list[Planted] = []

    def value(self, truth: Any, path: str, at: Place, out: Place) -> Any:
        """What stands at `out` of the output for what stands at `at` of the truth."""
        if isinstance(truth, dict | list) and at and self._chance(LOST):
            return self._lost(truth, path, at, out)
        if isinstance(truth, dict):
            return self._object(truth, path, at, out)
        if isinstance(truth, list):
            return self._array(truth, path, at, out)
        return self._leaf(truth, path, at, out)

    def _chance(self, probability: float) -> bool:
        return self.dice.random() < probability

    def _plant(self, path: str, kind: Kind, at: Place | None, out: Place | None) -> None:
        if self.plan.leaf(path).compare != "ignore":
            self.planted.append(Planted(path=path, kind=kind, truth_at=at, output_at=out))

    def _plant_all(self, value: Any, path: str, kind: Kind, place: Place) -> None:
        for leaf_path, leaf_place, _ in leaves_of(value, path, place):
            at, out = (leaf_place, None) if kind == "missing" else (None, leaf_place)
            self._plant(leaf_path, kind, at, out)

    def _lost(self, truth: Any, path: str, at: Place, out: Place) -> Any:
        """An object or array that is not there, or a text in its stead."""
        self._plant_all(truth, path, "missing", at)
        if self._chance(0.5):
            return None
        self._plant(path, "extra", None, out)
        return "not available"

    def _object(self, truth: dict[str, Any], path: str, at: Place, out: Place, keep: tuple[str, ...] = ()) -> Any:
        """Its members one by one, those of `keep` without errors, in another order."""
        output: dict[str, Any] = {}
        for key, child in truth.items():
            if key in keep:
                new = self._same(child, self.plan.leaf(_below(path, key), child))
            else:
                new = self.value(child, _below(path, key), (*at, key), (*out, key))
            if new is not None or self._chance(0.5):  # absent is null
                output[key] = new
        if self._chance(INVENTED):
            output["invented"] = self.dice.choice([5, "x", False])
            self._plant(_below(path, "invented"), "extra", None, (*out, "invented"))
        return {key: output[key] for key in self.dice.sample(list(output), len(output))}

    def _leaf(self, truth: Any, path: str, at: Place, out: Place) -> Any:
        rule, seen = self.plan.leaf(path, truth), self.pool.get(path, [])
        if truth is None:
            if path not in self.plan.leaves or not self._chance(MADE_UP):  # else it is an array or object that is null
                return None
            self._plant(path, "extra", None, out)
        elif self._chance(CHANGED):
            self._plant(path, "wrong", at, out)
        elif self._chance(REMOVED):
            self._plant(path, "missing", at, None)
            return None
        else:
            return self._same(truth, rule)
        return wrong_value(truth, rule, seen, self.dice)

    def _same(self, truth: Any, rule: FieldRule) -> Any:
        return same_said_otherwise(truth, rule, self.dice) if self._chance(SAME) else truth

    def _array(self, truth: list[Any], path: str, at: Place, out: Place) -> Any:
        """Items dropped, added and moved, those that stay mutated in themselves."""
        rule = self.plan.field(path).array_rule(*truth)
        if rule.align == "best":
            return self._best(truth, path, at, out)
        if rule.align == "ordered":
            return self._ordered(truth, path, at, out)
        taken = [_identity(item, rule) for item in truth]
        if len(set(taken)) < len(taken):  # which of two equal items has an error, nobody can say
            return truth
        entries: list[Entry] = []
        for index, item in enumerate(truth):
            if self._chance(REPLACED):
                entries.append((None, self._other_item(path, rule, taken, item)))
            elif not self._chance(DROPPED):
                entries.append((index, item))
        if self._chance(NEW_ITEM):
            entries.append((None, self._other_item(path, rule, taken)))
        entries = [(index, item) for index, item in entries if item is not None]
        return self._arranged(truth, self.dice.sample(entries, len(entries)), path, at, out, rule)

    def _arranged(
        self, truth: list[Any], entries: list[Entry], path: str, at: Place, out: Place, rule: FieldRule
    ) -> list[Any]:
        """The output's items in their order: planted are the errors in each, and all of those without counterpart."""
        output: list[Any] = []
        for place, (index, item) in enumerate(entries):
            there = (*out, place)
            if index is None:
                self._plant_all(item, f"{path}[]", "extra", there)
            elif rule.align == "set":
                item = self._same(item, self.plan.leaf(f"{path}[]", item)) if isinstance(item, str) else item
            elif isinstance(item, dict):
                item = self._object(item, f"{path}[]", (*at, index), there, rule.key)
            else:
                item = self.value(item, f"{path}[]", (*at, index), there)
            output.append(item)
        stayed = {index for index, _ in entries}
        for index, item in enumerate(truth):
            if index not in stayed:
                self._plant_all(item, f"{path}[]", "missing", (*at, index))
        return output

    def _ordered(self, truth: list[Any], path: str, at: Place, out: Place) -> Any:
        """Only the end can be dropped or added without moving what stands behind it."""
        entries: list[Entry] = list(enumerate(truth))
        if entries and self._chance(DROPPED * len(truth)):
            entries.pop()
        elif self.pool.get(f"{path}[]") and self._chance(NEW_ITEM):
            entries.append((None, self.dice.choice(self.pool[f"{path}[]"])))
        return self._arranged(truth, entries, path, at, out, FieldRule(align="ordered"))

    def _other_item(self, path: str, rule: FieldRule, taken: list[Any], like: Any = None) -> Any:
        """An item whose identity is not taken, and takes it: `like` another with one field changed, or one seen."""
        for _ in range(_TRIES):
            item = copy.deepcopy(like if like is not None else self.dice.choice(self.pool.get(f"{path}[]", [None])))
            if isinstance(item, dict):
                key = self.dice.choice(rule.key or [*item])
                known = self.plan.leaf(_below(f"{path}[]", key), item.get(key))
                if not isinstance(item.get(key), dict | list):
                    item[key] = wrong_value(item.get(key), known, self.pool.get(f"{path}[].{key}", []), self.dice)
            elif item is not None:
                item = wrong_value(item, self.plan.leaf(f"{path}[]", item), self.pool.get(f"{path}[]", []), self.dice)
            identity = _identity(item, rule)
            if item is not None and identity not in taken:
                taken.append(identity)
                return item
        return None

    def _best(self, truth: list[Any], path: str, at: Place, out: Place) -> Any:
        """As any array, but drawn again until the assignment meant is beyond doubt the only one that is best."""
        known, seen = len(self.planted), self.pool.get(f"{path}[]", [])
        for _ in range(_TRIES):
            entries: list[Entry] = list(enumerate(truth))
            if seen and self._chance(NEW_ITEM):  # not both: what is left over on both sides would be assigned
                entries.append((None, copy.deepcopy(self.dice.choice(seen))))
            else:
                entries = [entry for entry in entries if not self._chance(DROPPED)]
            entries = self.dice.sample(entries, len(entries))
            output = self._arranged(truth, entries, path, at, out, FieldRule(align="best"))
            if self._beyond_doubt(truth, entries, output, path, at, self.planted[known:]):
                return output
            del self.planted[known:]
        return truth

    def _beyond_doubt(
        self, truth: list[Any], entries: list[Entry], output: list[Any], path: str, at: Place, planted: list[Planted]
    ) -> bool:
        """Every item of the shorter side has more in common with its own partner than with any other item."""
        partner = {index: place for place, (index, _) in enumerate(entries) if index is not None}
        for index, place in partner.items():
            weight = sum(self._weight(leaf) for leaf, _, _ in leaves_of(truth[index], f"{path}[]"))
            lost = (error for error in planted if (error.truth_at or ())[: len(at) + 1] == (*at, index))
            own = weight - sum(self._weight(error.path) for error in lost)
            if len(output) >= len(truth):
                rivals = [(truth[index], item) for other, item in enumerate(output) if other != place]
            else:
                rivals = [(item, output[place]) for other, item in enumerate(truth) if other != index]
            if any(self._in_common(left, right, f"{path}[]") >= own for left, right in rivals):
                return False
        return True

    def _in_common(self, left: Any, right: Any, path: str) -> float:
        """The weight of the leaves of one item that may be equal to one of the other: an upper bound."""
        there: dict[str, list[Any]] = defaultdict(list)
        for leaf, _, value in leaves_of(right, path):
            there[leaf].append(value)
        return sum(
            self._weight(leaf)
            for leaf, _, value in leaves_of(left, path)
            if any(may_be_equal(value, other, self.plan.leaf(leaf, value)) for other in there[leaf])
        )

    def _weight(self, path: str) -> float:
        rule = self.plan.leaf(path)
        return rule.weight if rule.counts else 0.0


def _identity(item: Any, rule: FieldRule) -> Any:
    """What tells an item from the others: its key fields, or all of it."""
    if rule.align == "key" and isinstance(item, dict):
        return tuple(bare(item.get(key)) for key in rule.key)
    return tuple(sorted((path, bare(value)) for path, _, value in leaves_of(item)))
