"""`tree_similarity` against `apted`, on the same pairs, in turn.

Ours is timed from the JSON values on, apted from trees already made of them. Both must find the same distance.
"""

import copy
import random
import time
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import apted
from skill_evaluator.comparing.field_plan import FieldPlan
from skill_evaluator.metrics.accuracy import Comparison
from skill_evaluator.metrics.tree_similarity import tree_similarity

from benchmarks.measure import Measured, spread
from benchmarks.records import KEYS, mutant, record

Nested = tuple[Hashable, list["Nested"]]
Pair = tuple[Any, Any]


class UnitCosts(apted.Config):
    def rename(self, node1: Nested, node2: Nested) -> int:
        return int(node1[0] != node2[0])

    def children(self, node: Nested) -> list[Nested]:
        return node[1]


def nested(value: Any, key: str | None = None) -> Nested:
    """The tree as apted takes it: a node is its label and its children."""
    if isinstance(value, dict):
        below = [nested(child, name) for name, child in sorted(value.items()) if child is not None]
        return (key, "object"), below
    if isinstance(value, list):
        return (key, "array"), [nested(child) for child in value]
    return (key, type(value) is bool, value), []


def size(tree: Nested) -> int:
    return 1 + sum(map(size, tree[1]))


def slightly_wrong(truth: dict[str, Any], seed: int) -> dict[str, Any]:
    """5 % of the leaves changed; of every array of objects an item dropped, one added and one moved."""
    dice = random.Random(seed)
    output = copy.deepcopy(truth)
    places = list(places_of(output))
    for holder, key in dice.sample(places, len(places) // 20):
        holder[key] = f"wrong {dice.randrange(10**6)}"
    for path in KEYS:
        items = output[path]
        items.pop(dice.randrange(len(items)))
        items.insert(dice.randrange(len(items)), copy.deepcopy(dice.choice(record(seed + 1)[path])))
        items.insert(dice.randrange(len(items)), items.pop(dice.randrange(len(items))))
    return output


def places_of(value: Any) -> Iterator[tuple[Any, Any]]:
    """Where the leaves are: what holds each, and under which key or index."""
    for key, child in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(child, dict | list):
            yield from places_of(child)
        else:
            yield value, key


def random_tree(seed: int, nodes: int = 300) -> Any:
    """Arrays in arrays at random, with five kinds of leaves: where no bound helps."""
    dice = random.Random(seed)
    arrays: list[list[Any]] = [[]]
    for _ in range(nodes - 1):
        child: Any = [] if dice.random() < 0.5 else dice.randrange(5)
        dice.choice(arrays[-30:]).append(child)
        if isinstance(child, list):
            arrays.append(child)
    return arrays[0]


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    found = work()
    return time.perf_counter() - begun, found


def compare(truth: Any, output: Any) -> tuple[float, float]:
    """Seconds of ours and of apted's; raises if they disagree."""
    left, right = nested(truth), nested(output)
    ours_s, similarity = timed(lambda: tree_similarity(Comparison(truth, output, FieldPlan(), bool)))
    apted_s, distance = timed(lambda: apted.APTED(left, right, UnitCosts()).compute_edit_distance())
    expected = 1 - distance / (size(left) + size(right))
    if abs(similarity - expected) > 1e-12:
        raise SystemExit(f"ours {similarity}, apted {expected}")
    return ours_s, apted_s


def rows(quick: bool) -> Iterator[Measured]:
    pairs = 2 if quick else 10
    sets: dict[str, tuple[int, Callable[[int], Pair]]] = {
        "records, an item of each array moved": (1, lambda seed: (record(seed), slightly_wrong(record(seed), seed))),
        "records, all reordered": (1, lambda seed: (record(seed), mutant(record(seed), seed))),
        "unrelated records": (1, lambda seed: (record(seed), record(seed + 1000))),
        "unrelated random trees": (1, lambda seed: (random_tree(seed), random_tree(seed + 1000))),
    }
    for name, (least, pair) in sets.items():
        compare(*pair(pairs))  # warms caches, not counted
        times = [compare(*pair(seed)) for seed in range(pairs)]
        yield Measured(
            name=f"apted ÷ tree distance, {name}",
            values=tuple(peer / ours for ours, peer in times),
            least=least,
            note=f"{spread([ours * 1000 for ours, _ in times], '.1f')} ms",
        )
