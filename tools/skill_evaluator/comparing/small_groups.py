"""What every two of many small groups of array items have in common: all pairs at once, where there are thousands.

Leaves that one answer alone gives are nothing to any pair; without them most groups are one of a few, however many
answers there are. Its own module because it is worth numpy's import only for many; `assignment` does the same for two.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from skill_evaluator.comparing.forms import Leaves, Token

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LARGEST_GROUP = 6
_AT_ONCE = 100_000  # pairs


def distinct_groups(groups: Sequence[Sequence[Leaves]]) -> tuple[list[int], "NDArray[np.float64]"]:
    """Return which distinct group each of the groups is, and the `matched_weight` of every two distinct ones.

    Each group is of another answer, of at most `LARGEST_GROUP` items, and what these share is told by their tokens. The
    weights are those of two answers: of one with itself they lack the leaves that it alone gives.
    """
    times = Counter(item for items in groups for item in items)
    given: Counter[Token] = Counter()
    for item, count in times.items():
        for token in item.tokens:
            given[token] += count
    kinds: dict[frozenset[Token], int] = {}
    kind_of = {
        item: kinds.setdefault(frozenset(token for token in item.tokens if given[token] > 1), len(kinds))
        for item in times
    }
    distinct: dict[tuple[int, ...], int] = {}
    numbers = [distinct.setdefault(tuple(sorted(kind_of[item] for item in items)), len(distinct)) for items in groups]
    return numbers, _matched(list(distinct), _shared(kinds))


def _shared(kinds: Iterable[frozenset[Token]]) -> "NDArray[np.float64]":
    """Return the weight that every two kinds of items share; the last row and column are of no item at all."""
    import numpy as np

    kinds = list(kinds)
    columns = {token: column for column, token in enumerate({token: None for kind in kinds for token in kind})}
    has = np.zeros((len(kinds) + 1, len(columns)))
    for row, kind in enumerate(kinds):
        has[row, [columns[token] for token in kind]] = 1
    weights: NDArray[np.float64] = (has * [token.weight for token in columns]) @ has.T
    return weights


def _matched(groups: Sequence[tuple[int, ...]], shared: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Return the weight of the best assignment of every two groups: row by row, over the columns that may be taken."""
    import numpy as np

    size = max(map(len, groups))
    items = np.array([(*group, *[len(shared) - 1] * (size - len(group))) for group in groups])
    matched = np.empty((len(groups), len(groups)))
    step = max(1, _AT_ONCE // len(groups))
    for begin in range(0, len(groups), step):
        best: dict[int, NDArray[np.float64]] = {0: np.zeros((1, 1))}  # by the columns taken, as bits
        for row in items[begin : begin + step].T:
            gains = [shared[np.ix_(row, column)] for column in items.T]
            before, best = best, {}
            for taken, weight in before.items():
                for column, gain in enumerate(gains):
                    now = taken | 1 << column
                    if now != taken:
                        best[now] = np.maximum(best[now], weight + gain) if now in best else weight + gain
        (matched[begin : begin + step],) = best.values()
    return matched
