"""Which items of two arrays belong together: the one-to-one assignment with the most matched leaf weight.

Works on the leaves of items (`leaves`), so that the weight of any two is what their sets of tokens share.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations
from math import fsum, perm
from operator import getitem

from skill_evaluator.comparing.forms import Leaves, Token

Weights = list[list[float]]
Columns = dict[Token, list[int]]  # which items have it
_FEW = 60  # assignments


def matched_weight(lefts: Sequence[Leaves], rights: Sequence[Leaves]) -> float:
    """Return the weight of the leaves that two lists of items have in common, under their best assignment."""
    equal, lefts, rights = _without_equal(lefts, rights)
    return equal + (_total(_weights(lefts, rights)) if lefts and rights else 0.0)


def matched_weights(items: Sequence[Leaves], others: Iterable[Sequence[Leaves]]) -> Iterator[float]:
    """Yield `matched_weight` of one list with each of many, whose tokens are looked up in the one."""
    columns = _columns(items)
    plain = _is_plain(items)
    for other in others:
        if plain and (len(items) == 1 or len(other) == 1) and _is_plain(other):
            yield max(map(max, _shared_tokens(other, columns, len(items))))
        else:
            yield matched_weight(items, other)


def pair_items(lefts: Sequence[Leaves], rights: Sequence[Leaves]) -> dict[int, int]:
    """Return, as index → index, the heaviest assignment; of equally heavy ones the nearest to the order given.

    Every item of the shorter side is assigned.
    """
    return heaviest(_weights(lefts, rights)) if lefts and rights else {}


def equal_items(lefts: Sequence[Leaves], rights: Sequence[Leaves]) -> list[tuple[list[int], list[int]]]:
    """Return the indexes of the items that both sides have: these may meet first, as that makes no assignment lighter.

    (What x shares with a and with b is at most what x has in all, plus what a and b share: where equality is
    transitive, which it is not by closeness.)
    """
    groups: dict[Leaves, tuple[list[int], list[int]]] = {}
    for side, items in enumerate((lefts, rights)):
        for index, item in enumerate(items):
            if item.transitive:
                groups.setdefault(item, ([], []))[side].append(index)
    return [group for group in groups.values() if group[0] and group[1]]


def _weights(lefts: Sequence[Leaves], rights: Sequence[Leaves]) -> Weights:
    """Return what every left and right item have in common. One frame per level of nested arrays."""
    weights = _shared_tokens(lefts, _columns(rights), len(rights))
    if _is_plain(lefts) and _is_plain(rights):
        return weights
    for line, left in zip(weights, lefts, strict=True):
        for column, right in enumerate(rights):
            for slot, form in left.near.items():
                other = right.near.get(slot)
                if other is not None and other is not form and form.close_to(other):
                    line[column] += form.weight
            for place in {**left.groups, **right.groups}:  # no set: sums of fractions hang on their order
                equal, items, others = _without_equal(left.at(place), right.at(place))
                line[column] += equal + (_total(_weights(items, others)) if items and others else 0.0)
    return weights


def _is_plain(items: Sequence[Leaves]) -> bool:
    """Return whether what items share with others is told by their tokens alone."""
    for item in items:  # noqa: SIM110 (a generator takes longer than all the rest for an item or two)
        if item.near or item.groups:
            return False
    return True


def _columns(rights: Sequence[Leaves]) -> Columns:
    columns: Columns = {}
    for column, right in enumerate(rights):
        for token in right.tokens:
            columns.setdefault(token, []).append(column)
    return columns


def _shared_tokens(lefts: Sequence[Leaves], columns: Columns, width: int) -> Weights:
    weights = []
    for left in lefts:
        line = [0.0] * width
        for token in left.tokens:
            for column in columns.get(token, ()):
                line[column] += token.weight
        weights.append(line)
    return weights


def _without_equal(
    lefts: Sequence[Leaves], rights: Sequence[Leaves]
) -> tuple[float, Sequence[Leaves], Sequence[Leaves]]:
    """Return the weight of the items that both sides have (where these may be paired first), and the others."""
    common = {item for item in set(lefts).intersection(rights) if item.transitive}
    if not common:
        return 0.0, lefts, rights
    left, right = ([item for item in items if item not in common] for items in (lefts, rights))
    if len(lefts) - len(left) == len(rights) - len(right) == len(common):  # each stands once on either side
        return fsum([item.weight for item in common]), left, right
    in_left, in_right = Counter(lefts), Counter(rights)
    weights = []
    for item in common:
        pairs = min(in_left[item], in_right[item])
        weights.append(item.weight * pairs)
        left += [item] * (in_left[item] - pairs)
        right += [item] * (in_right[item] - pairs)
    return fsum(weights), left, right


def _total(weights: Weights) -> float:
    return fsum([weights[row][column] for row, column in heaviest(weights).items()])


def heaviest(weights: Weights) -> dict[int, int]:
    """Return the heaviest assignment of rows to columns; of equally heavy ones the nearest to the diagonal."""
    if len(weights) > len(weights[0]):
        flipped = heaviest([list(column) for column in zip(*weights, strict=True)])
        return {row: column for column, row in flipped.items()}
    chosen = _of_row_maxima(weights)
    return _search(weights) if chosen is None else chosen


def _of_row_maxima(weights: Weights) -> dict[int, int] | None:
    """Return every row with its heaviest column, if these are all different: then no assignment can be heavier."""
    chosen: dict[int, int] = {}
    for row, line in enumerate(weights):
        most = max(line)
        if most > 0:
            chosen[row] = row if line[row] == most else line.index(most)
    taken = set(chosen.values())
    if len(taken) < len(chosen):
        return None
    free = (column for column in range(len(weights[0])) if column not in taken)
    return chosen | {row: next(free) for row in range(len(weights)) if row not in chosen}


def _search(weights: Weights) -> dict[int, int]:
    """Try all assignments where these are few, which spares the import of scipy; else have scipy find the heaviest."""
    width = len(weights[0])
    if perm(width, len(weights)) <= _FEW:

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
