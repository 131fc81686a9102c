"""Two ordered labelled trees in, the least number of nodes to insert, delete or relabel out: exact.

Zhang and Shasha's tables, of which only the cells are filled that a distance of at most k can pass through. The edit
distances between all beginnings and ends of the two postorders, cheap as texts, say which cells those are.
"""

from bisect import bisect_right
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from skill_evaluator.text import frozen

_MOST_PAIRS = 100_000_000  # of nodes: four bits each, and about 10 s at worst
_MOST_CELLS = 20_000_000  # found or filled: about 10 s

_Row = dict[int, int]  # of a table: cost by column


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Nodes in postorder: the subtree of a node is the run of `sizes[node]` nodes that ends with it.

    Labels and shapes are numbers: equal labels have the same number, and so have equal subtrees.
    """

    labels: list[int]
    sizes: list[int]
    shapes: list[int]


def trees(value: Any, other: Any) -> tuple[Tree, Tree]:
    """Return two JSON values as trees: a node per object, array and scalar, labelled with its key and kind or value."""
    numbers: dict[Hashable, int] = {}
    return tree(_postorder(value), numbers), tree(_postorder(other), numbers)


def _postorder(value: Any) -> Iterable[tuple[Hashable, int]]:
    """Return the nodes of a JSON value: label and number of children."""
    postorder: list[tuple[Hashable, int]] = []
    waiting: list[tuple[Hashable, Any]] = [] if value is None else [(None, value)]
    while waiting:  # by hand, because a value may be nested deeper than calls may be
        key, value = waiting.pop()
        members: list[tuple[Hashable, Any]] = []
        if isinstance(value, dict):
            present = {frozen(name): child for name, child in value.items() if child is not None}
            members = sorted(present.items(), key=itemgetter(0))
            label: Hashable = ("object",)
        elif isinstance(value, list):
            members = [(None, child) for child in value]
            label = ("array",)
        else:
            label = frozen(value) if value == value else ("not a number",)
        postorder.append(((key, label), len(members)))
        waiting += members
    return reversed(postorder)  # roots first and right to left, read backwards


def tree(nodes: Iterable[tuple[Hashable, int]], numbers: dict[Hashable, int]) -> Tree:
    """Return the tree of (label, number of children) in postorder; trees that are compared share `numbers`.

    >>> tree([("x", 0), ("y", 0), ("root", 2)], {}).sizes
    [1, 1, 3]
    """
    labels: list[int] = []
    sizes: list[int] = []
    shapes: list[int] = []
    waiting: list[int] = []  # roots of the subtrees that have no parent yet
    for node, (name, arity) in enumerate(nodes):
        label = numbers.setdefault(("label", name), len(numbers))
        shape: tuple[int, ...] = (label,)
        size = 1
        if arity:
            children = waiting[-arity:]
            del waiting[-arity:]
            shape = (label, *[shapes[child] for child in children])
            size += sum([sizes[child] for child in children])
        waiting.append(node)
        labels.append(label)
        sizes.append(size)
        shapes.append(numbers.setdefault(shape, len(numbers)))
    return Tree(labels=labels, sizes=sizes, shapes=shapes)


def tree_distance(a: Tree, b: Tree) -> int | None:
    """Return the ordered tree edit distance, every insertion, deletion and relabelling at cost 1.

    None where it would take longer than about 10 s. Zhang and Shasha 1989, https://doi.org/10.1137/0218082.

    >>> numbers = {}
    >>> one, other = tree([("x", 0), ("y", 0), ("root", 2)], numbers), tree([("z", 0), ("root", 1)], numbers)
    >>> tree_distance(one, other)
    2
    """
    if not a.sizes or not b.sizes:
        return len(a.sizes) + len(b.sizes)
    if a.shapes[-1] == b.shapes[-1]:
        return 0
    a, b = _without_common_ends(a, b)
    if len(a.sizes) * len(b.sizes) > _MOST_PAIRS:
        return None
    tables, best = _Tables(a, b), len(a.sizes) + len(b.sizes)
    try:  # to allow ever more than the least it can be, and in the end anything
        for slack in (0, 1, 2, 4, 8):
            k = min(tables.least + slack, best - 1)
            best = min(best, tables.distance_within(k))
            if best <= k + 1:  # found, or nothing is cheaper
                return best
        return min(best, tables.distance_within(best - 1))
    except _TooManyCellsError:
        return None


def _without_common_ends(a: Tree, b: Tree) -> tuple[Tree, Tree]:
    """Remove equal roots and the equal first and last subtrees under them from two different trees.

    The distance stays the same. Take the best mapping, and follow a node that it sends into a removed part on from that
    part's twin. Mappings keep preorder (for last subtrees, postorder), so the path only moves further from the middle
    and ends with a deletion. Deleting the node at once, and mapping the part to its twin, costs no more.
    """
    while a.labels[-1] == b.labels[-1]:
        left, right = _children(a), _children(b)
        low, high, least = 0, 0, min(len(left), len(right))
        while low < least and a.shapes[left[low]] == b.shapes[right[low]]:
            low += 1
        while high < least - low and a.shapes[left[-1 - high]] == b.shapes[right[-1 - high]]:
            high += 1
        if not low == high == 0:
            a, b = _only(a, left, low, high, -1), _only(b, right, low, high, -2)
        if len(left) - low - high != 1 or len(right) - low - high != 1:
            break
        a, b = _without_root(a), _without_root(b)
    return a, b


def _children(of: Tree) -> list[int]:
    children, child = [], len(of.sizes) - 2
    while child >= 0:
        children.append(child)
        child -= of.sizes[child]
    return children[::-1]


def _only(of: Tree, children: list[int], low: int, high: int, shape: int) -> Tree:
    """Return the tree without the first `low` and the last `high` of its root's children; `shape` is a new number."""
    begin = children[low - 1] + 1 if low else 0
    end = children[-1 - high] + 1 if high < len(children) else begin
    return Tree(
        labels=[*of.labels[begin:end], of.labels[-1]],
        sizes=[*of.sizes[begin:end], end - begin + 1],
        shapes=[*of.shapes[begin:end], shape],
    )


def _without_root(of: Tree) -> Tree:
    return Tree(labels=of.labels[:-1], sizes=of.sizes[:-1], shapes=of.shapes[:-1])


class _TooManyCellsError(Exception):
    """The tables would take too long to fill."""


class _Side:
    """A tree with the leftmost leaf of each node."""

    def __init__(self, of: Tree) -> None:
        self.labels, self.sizes, self.shapes = of.labels, of.sizes, of.shapes
        self.root = len(of.sizes) - 1
        self.firsts = [node - size + 1 for node, size in enumerate(of.sizes)]  # its leftmost leaf
        self.tops = {first: node for node, first in enumerate(self.firsts)}  # of a leaf: the highest it is the first of


class _Tables:
    """Costs of mapping forests: the first p nodes of one tree to the first q of the other, from some leaf on.

    A mapping keeps postorder. So one through the cell (p, q) costs at least the edit distance of the labels before it
    plus that of the labels behind it, and where that is more than k the cell need not be filled.
    """

    def __init__(self, a: Tree, b: Tree) -> None:
        self.a, self.b = _Side(a), _Side(b)
        self.before = _text_distances(a.labels, b.labels)
        self.behind = _text_distances(a.labels[::-1], b.labels[::-1])[::-1]
        self.masks = [((1 << q) - 1) << len(b.labels) | (1 << q) - 1 for q in range(len(b.labels) + 1)]
        self.least = len(a.labels) - len(b.labels) + self.before[-1].bit_count()
        self.never = len(a.labels) + len(b.labels) + 1  # more than any mapping costs
        self.cells = 0
        self.within: list[list[int]] = []
        self.meeting: dict[tuple[int, int], int] = {}

    def distance_within(self, k: int) -> int:
        """Return the distance, if it is at most k; else what some mapping costs, or more than any."""
        self.within = self._cells_within(k)
        self.meeting = {}
        a, b = self.a, self.b
        for top_a in sorted(a.tops.values()):  # smaller subtrees come before those they are part of
            if a.sizes[top_a] > 1:
                begins = self.within[a.firsts[top_a]]
                for top_b in sorted([b.tops[begin] for begin in begins if begin in b.tops]):
                    # only a table tells what it costs if two nodes on the leftmost paths of these subtrees meet
                    both_roots = top_a == a.root and top_b == b.root  # theirs comes last, whatever they are
                    if b.sizes[top_b] > 1 and not both_roots:
                        self._fill(top_a, top_b)
        return self._fill(a.root, b.root)

    def _cells_within(self, k: int) -> list[list[int]]:
        """Return for each p every q such that a mapping through (p, q) may cost k or less.

        It may if some alignment of the labels through (p, q) does. That passes through cells of the same cost: so a
        cell in question is at the q of one in the row above, one further right, or one to the right of one in its row.
        """
        columns = len(self.b.labels)
        masks, masks_behind, most = self.masks, self.masks[::-1], k - len(self.a.labels) + columns
        collected: list[list[int]] = []
        above = [0]
        for before, behind in zip(self.before, self.behind, strict=True):
            row: list[int] = []
            q = 0
            for begin in above:
                q, end = max(q, begin), begin + 1
                while q <= end and q <= columns:
                    if (before & masks[q]).bit_count() + (behind & masks_behind[q]).bit_count() <= most:
                        row.append(q)
                        end = q + 1
                    q += 1
            self._count(len(row))
            collected.append(row)
            above = row
        return collected

    def _count(self, cells: int) -> None:
        self.cells += cells
        if self.cells > _MOST_CELLS:
            raise _TooManyCellsError

    def _fill(self, top_a: int, top_b: int) -> int:
        """Fill the table of two subtrees; the cost of mapping one to the other.

        On the way, `meeting` is told what it costs if two nodes on their leftmost paths meet.
        """
        a, begin_a, begin_b = self.a, self.a.firsts[top_a], self.b.firsts[top_b]
        above = {begin_b: 0} | {q: q - begin_b for q in self._columns(begin_a, begin_b, top_b)}
        before_first: dict[int, _Row] = {}  # by leftmost leaf
        for node in range(begin_a, top_a + 1):
            first = a.firsts[node]
            if first == node:
                before_first[node] = above
            row = {begin_b: node + 1 - begin_a}
            columns = self._columns(node + 1, begin_b, top_b)
            self._fill_row(row, columns, node, above, before_first[first], begin_b if first == begin_a else None)
            if a.tops[first] == node:
                del before_first[first]
            above = row
        return above.get(top_b + 1, self.never)

    def _columns(self, p: int, begin: int, top: int) -> list[int]:
        """Return the cells to be filled in a row of the table of a subtree."""
        row = self.within[p]
        hits = row[bisect_right(row, begin) : bisect_right(row, top + 1)]
        self._count(len(hits) + 1)
        return hits

    def _fill_row(
        self, row: _Row, columns: list[int], node: int, above: _Row, before_first: _Row, leftmost: int | None
    ) -> None:
        """Fill in for every last node of the other forest: this one is deleted, that one inserted, or the two meet.

        `leftmost`, where this node is on the leftmost path of its table, is the leaf where that of the other begins.
        """
        never, firsts, sizes, labels, shapes = self.never, self.b.firsts, self.b.sizes, self.b.labels, self.b.shapes
        label, size, shape = self.a.labels[node], self.a.sizes[node], self.a.shapes[node]
        for q in columns:
            other = q - 1
            best, inserted = above.get(q, never), row.get(other, never)
            if inserted < best:
                best = inserted
            best += 1
            met = before_first.get(firsts[other], never)
            if met < best:
                if size == 1 or sizes[other] == 1:  # all other nodes of the larger subtree have no partner
                    met += size + sizes[other] - 1 - (label == labels[other])
                else:
                    if firsts[other] == leftmost:
                        self.meeting[node, other] = above.get(other, never) + (label != labels[other])
                    met += 0 if shape == shapes[other] else self.meeting.get((node, other), never)
                if met < best:
                    best = met
            row[q] = best


def _text_distances(a: list[int], b: list[int]) -> list[int]:
    """Return the edit distances of all beginnings of two texts, as a row of bits for each beginning of the first.

    Along a row the distance rises by one at the bits of its lower half, and falls by one at those that its upper half
    lacks; row p starts with p. So the distance of the first p and q labels is p − q and the bits before q in both
    halves. Hyyrö 2003, after Myers 1999: https://doi.org/10.1145/316542.316550.
    """
    places: dict[int, int] = {}
    for place, label in enumerate(b):
        places[label] = places.get(label, 0) | 1 << place
    every = (1 << len(b)) - 1
    rises, falls = every, 0
    rows = [every << len(b) | every]
    for label in a:
        equal = places.get(label, 0)
        diagonal = (((equal & rises) + rises) ^ rises) | equal | falls
        down, up = falls | ~(diagonal | rises), diagonal & rises
        down, up = down << 1 | 1, up << 1
        rises, falls = (up | ~(diagonal | down)) & every, down & diagonal & every
        rows.append((every ^ falls) << len(b) | rises)
    return rows
