"""The exact edit distance of two ordered labelled trees: the minimum number of insertions, deletions and relabellings.

The tables are those of Zhang and Shasha, but only cells that a distance of at most k can pass through are filled. These
cells follow from the edit distances between all prefixes and suffixes of the two postorders as texts.
"""

from bisect import bisect_right
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from skill_evaluator.text import frozen

_MAX_PAIRS = 100_000_000  # pairs of nodes: four bits each, and at most about 10 s
_MAX_CELLS = 20_000_000  # searched and filled cells: about 10 s

_Row = dict[int, int]  # row of a table: cost by column


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Nodes in postorder: the subtree of a node is the sequence of `sizes[node]` nodes that ends with it.

    Labels and shapes are numbers: equal labels have the same number, and equal subtrees have the same shape. `firsts`
    has the leftmost leaf of each node, `tops` the highest node of each leftmost leaf.
    """

    labels: list[int]
    sizes: list[int]
    shapes: list[int]
    firsts: list[int]
    tops: dict[int, int]


def trees(a: Any, b: Any) -> tuple[Tree, Tree]:
    """Convert two JSON values to trees with a node per object, array and scalar, labelled by key and kind or value."""
    numbers: dict[Hashable, int] = {}
    return tree(_postorder(a), numbers), tree(_postorder(b), numbers)


def _postorder(value: Any) -> Iterable[tuple[Hashable, int]]:
    postorder: list[tuple[Hashable, int]] = []
    waiting: list[tuple[Hashable, Any]] = [] if value is None else [(None, value)]
    while waiting:  # iterative, because values may be nested deeper than the recursion limit
        key, value = waiting.pop()
        members: list[tuple[Hashable, Any]] = []
        if isinstance(value, dict):
            members_by_key = {frozen(name): child for name, child in value.items() if child is not None}
            members = sorted(members_by_key.items(), key=itemgetter(0))
            label: Hashable = ("object",)
        elif isinstance(value, list):
            members = [(None, child) for child in value]
            label = ("array",)
        else:
            label = frozen(value) if value == value else ("not a number",)
        postorder.append(((key, label), len(members)))
        waiting += members
    return reversed(postorder)  # the traversal is roots first and right to left


def tree(nodes: Iterable[tuple[Hashable, int]], numbers: dict[Hashable, int]) -> Tree:
    """Build a tree from (label, number of children) of each node in postorder. Trees to compare share `numbers`."""
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
    firsts = [node - size + 1 for node, size in enumerate(sizes)]
    tops = {first: node for node, first in enumerate(firsts)}
    return Tree(labels=labels, sizes=sizes, shapes=shapes, firsts=firsts, tops=tops)


def tree_distance(a: Tree, b: Tree) -> int | None:
    """Return the ordered tree edit distance; an insertion, deletion or relabelling costs 1.

    Return None if it would take longer than about 10 s. Zhang and Shasha 1989, https://doi.org/10.1137/0218082.
    """
    if not a.sizes or not b.sizes:
        return len(a.sizes) + len(b.sizes)
    if a.shapes[-1] == b.shapes[-1]:
        return 0
    if len(a.sizes) * len(b.sizes) > _MAX_PAIRS:
        return None
    tables, best = _Tables(a, b), len(a.sizes) + len(b.sizes)
    try:  # allow increasing distances above the lower bound
        for slack in (0, 1, 2, 4, 8):
            k = min(tables.least + slack, best - 1)
            best = min(best, tables.distance_within(k))
            if best <= k + 1:  # exact, or no cheaper mapping exists
                return best
        return min(best, tables.distance_within(best - 1))
    except _TooManyCellsError:
        return None


class _TooManyCellsError(Exception):
    """The tables would take too long to fill."""


class _Tables:
    """The costs of mapping the first p nodes of one tree to the first q nodes of the other.

    A mapping keeps postorder. So a mapping through the cell (p, q) costs at least the edit distance of the labels
    before the cell plus that of the labels after it. If this sum is more than k, the cell is skipped.
    """

    def __init__(self, a: Tree, b: Tree) -> None:
        self.a, self.b = a, b
        self.before = _text_distances(a.labels, b.labels)
        self.behind = _text_distances(a.labels[::-1], b.labels[::-1])[::-1]
        self.masks = [((1 << q) - 1) << len(b.labels) | (1 << q) - 1 for q in range(len(b.labels) + 1)]
        self.least = len(a.labels) - len(b.labels) + self.before[-1].bit_count()
        self.never = len(a.labels) + len(b.labels) + 1  # above the cost of any mapping
        self.cells = 0
        self.within: list[list[int]] = []
        self.meeting: dict[tuple[int, int], int] = {}

    def distance_within(self, k: int) -> int:
        """Return the distance if it is at most k, else an upper bound of it."""
        self.within = self._cells_within(k)
        self.meeting = {}
        a, b = self.a, self.b
        roots = len(a.sizes) - 1, len(b.sizes) - 1
        for top_a in sorted(a.tops.values()):  # subtrees come before the trees that contain them
            if a.sizes[top_a] > 1:
                begins = self.within[a.firsts[top_a]]
                for top_b in sorted([b.tops[begin] for begin in begins if begin in b.tops]):
                    # the table gives the costs of mapping nodes on the leftmost paths of these subtrees to each other
                    if b.sizes[top_b] > 1 and (top_a, top_b) != roots:  # the roots are filled last
                        self._fill(top_a, top_b)
        return self._fill(*roots)

    def _cells_within(self, k: int) -> list[list[int]]:
        """Return for each p the values of q for which a mapping through (p, q) may cost k or less.

        It may if an alignment of the labels through (p, q) costs k or less. Such an alignment passes only through such
        cells, so each cell is below, diagonally below right, or right of another.
        """
        columns = len(self.b.labels)
        masks, masks_behind, max_cost = self.masks, self.masks[::-1], k - len(self.a.labels) + columns
        collected: list[list[int]] = []
        above = [0]
        for before, behind in zip(self.before, self.behind, strict=True):
            row: list[int] = []
            q = 0
            for begin in above:
                q, end = max(q, begin), begin + 1
                while q <= end and q <= columns:
                    if (before & masks[q]).bit_count() + (behind & masks_behind[q]).bit_count() <= max_cost:
                        row.append(q)
                        end = q + 1
                    q += 1
            self._count(len(row))
            collected.append(row)
            above = row
        return collected

    def _count(self, cells: int) -> None:
        self.cells += cells
        if self.cells > _MAX_CELLS:
            raise _TooManyCellsError

    def _fill(self, top_a: int, top_b: int) -> int:
        """Fill the table of two subtrees and return the cost of mapping one to the other.

        This also sets `meeting`, the costs of mapping nodes on their leftmost paths to each other.
        """
        a, begin_a, begin_b = self.a, self.a.firsts[top_a], self.b.firsts[top_b]
        above = {begin_b: 0} | {q: q - begin_b for q in self._columns(begin_a, begin_b, top_b)}
        before_first: dict[int, _Row] = {}  # key: leftmost leaf
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
        row = self.within[p]
        hits = row[bisect_right(row, begin) : bisect_right(row, top + 1)]
        self._count(len(hits) + 1)
        return hits

    def _fill_row(
        self, row: _Row, columns: list[int], node: int, above: _Row, before_first: _Row, leftmost: int | None
    ) -> None:
        """Fill a row: for each last node of the other forest, delete this node, insert the other, or map them.

        `leftmost` is the first leaf of the other subtree if this node is on its own leftmost path, else None.
        """
        never, firsts, sizes, labels, shapes = self.never, self.b.firsts, self.b.sizes, self.b.labels, self.b.shapes
        label, size, shape = self.a.labels[node], self.a.sizes[node], self.a.shapes[node]
        for q in columns:
            other_node = q - 1
            best, inserted = above.get(q, never), row.get(other_node, never)
            if inserted < best:
                best = inserted
            best += 1
            mapped = before_first.get(firsts[other_node], never)
            if mapped < best:
                if size == 1 or sizes[other_node] == 1:  # all other nodes of the larger subtree have no partner
                    mapped += size + sizes[other_node] - 1 - (label == labels[other_node])
                else:
                    if firsts[other_node] == leftmost:
                        self.meeting[node, other_node] = above.get(other_node, never) + (label != labels[other_node])
                    mapped += 0 if shape == shapes[other_node] else self.meeting.get((node, other_node), never)
                if mapped < best:
                    best = mapped
            row[q] = best


def _text_distances(a: list[int], b: list[int]) -> list[int]:
    """Return the edit distances of all prefixes of two texts, as a row of bits for each prefix of the first.

    Along a row the distance rises by one at the set bits of the lower half, and falls by one at the unset bits of the
    upper half; row p starts with p. So the distance of the first p and q labels is p − q plus the number of set bits
    before q in both halves. Hyyrö 2003, after Myers 1999: https://doi.org/10.1145/316542.316550.
    """
    label_bits: dict[int, int] = {}
    for position, label in enumerate(b):
        label_bits[label] = label_bits.get(label, 0) | 1 << position
    every = (1 << len(b)) - 1
    rises, falls = every, 0
    rows = [every << len(b) | every]
    for label in a:
        equal = label_bits.get(label, 0)
        diagonal = (((equal & rises) + rises) ^ rises) | equal | falls
        down, up = falls | ~(diagonal | rises), diagonal & rises
        down, up = down << 1 | 1, up << 1
        rises, falls = (up | ~(diagonal | down)) & every, down & diagonal & every
        rows.append((every ^ falls) << len(b) | rises)
    return rows
