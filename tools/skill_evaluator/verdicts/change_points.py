"""Scores of every case, version and answer → the versions from which on the score is another.

Its own module because it knows nothing of records: any list of numbers has change points.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skill_evaluator.library.config import Gate

Floats = NDArray[np.float64]
Sequences = Sequence[Sequence[Sequence[float]]]
"""The scores of the answers, by case and version. Every case has at least one score of every version."""

_DRAWS = 2_000
_SLACK = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The best split of the versions in [`first`, `end`): it lies before version `at`. All three are places.

    `depth` counts the splits that [`first`, `end`) came from. `before` and `after` are the means of the versions on
    either side. `p` is that of no split at all.
    """

    first: int
    at: int
    end: int
    depth: int
    before: float
    after: float
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """What moves the scores though no version is another.

    `gate` is the question: on these cases, beyond them, or both. `independent`: the answers of a case are independent
    draws; else those of a version are one draw, and the cases are the sample for either question, as in `compare`.
    `runs` holds the standard deviation of each version's runs as a whole, which all cases share (none: 0), and
    `degrees` the degrees of freedom of these. `remarks` are for people.
    """

    gate: Gate
    independent: bool = False
    runs: tuple[float, ...] = ()
    degrees: float = math.inf
    remarks: tuple[str, ...] = ()

    def draw_runs(self, first: int, end: int, rng: np.random.Generator) -> Floats:
        """Draw what the runs of the versions in [`first`, `end`) add to the means of all cases."""
        drawn = rng.standard_normal((_DRAWS, end - first)) * np.asarray(self.runs[first:end] or 0.0)
        if math.isfinite(self.degrees):
            drawn *= np.sqrt(self.degrees / rng.chisquare(self.degrees, (_DRAWS, 1)))
        return np.asarray(drawn, float)


def find_splits(sequences: Sequences, alpha: float, chance: Chance, seed: int = 0) -> list[Split]:
    """Return every split that was tested, the least deep first: binary segmentation (Scott and Knott 1974).

    The statistic of a split before version k of V is CUSUM, √(k(V − k) / V) · |mean after − mean before|, on the means
    over cases. The maximum over all k is tested, so that looking at every k needs no further correction. It is compared
    with the maxima of sequences in which no version is another, p = (b + 1) / (m + 1). On these cases the answers of
    each case are dealt anew to the versions. Beyond them the deviations of each case from its own mean get a sign at
    random (Fisher 1935), so that versions may take after the ones before. For both questions the larger p counts. The
    runs of each version are drawn on top. Where p ≤ α, either side is split in the same way.
    """
    if not sequences:
        return []
    rng = np.random.default_rng(seed)
    splits, stretches = [], [(0, len(sequences[0]), 0)]
    while stretches:
        first, end, depth = stretches.pop(0)
        if end - first > 1:
            split = _best_split(sequences, first, end, depth, chance, rng)
            splits.append(split)
            if split.p <= alpha:
                stretches += [(first, split.at, depth + 1), (split.at, end, depth + 1)]
    return splits


def _best_split(
    sequences: Sequences, first: int, end: int, depth: int, chance: Chance, rng: np.random.Generator
) -> Split:
    stretch = [case[first:end] for case in sequences]
    by_case = means_by_case(stretch)
    means = by_case.mean(axis=0)
    statistic = cusum(means)
    at = int(statistic.argmax()) + 1
    drawn = []
    if chance.independent and chance.gate != "generalises":
        drawn.append(_deal(stretch, rng))
    if not chance.independent or chance.gate != "fixtures":
        drawn.append(_flip(by_case, rng))
    largest = [cusum(means_drawn + chance.draw_runs(first, end, rng)).max(axis=1) for means_drawn in drawn]
    extreme = max(int((maxima >= statistic.max() - _SLACK).sum()) for maxima in largest)
    return Split(
        first=first,
        at=first + at,
        end=end,
        depth=depth,
        before=float(means[:at].mean()),
        after=float(means[at:].mean()),
        p=(extreme + 1) / (_DRAWS + 1),
    )


def _deal(sequences: Sequences, rng: np.random.Generator) -> Floats:
    """Deal the scores of each case anew to the versions; return the means over cases, shape (draws, versions)."""
    totals = np.zeros((_DRAWS, len(sequences[0])))
    for case in sequences:
        pooled = np.concatenate([np.asarray(arm, float) for arm in case])
        if (pooled == pooled[0]).all():
            totals += pooled[0]
            continue
        sizes = np.array([len(arm) for arm in case])
        starts = np.concatenate(([0], sizes.cumsum()[:-1]))
        drawn = rng.permuted(np.tile(pooled, (_DRAWS, 1)), axis=1)
        totals += np.add.reduceat(drawn, starts, axis=1) / sizes
    return totals / len(sequences)


def _flip(by_case: Floats, rng: np.random.Generator) -> Floats:
    """Give the deviations of each case a sign of their own; return the means over cases, shape (draws, versions)."""
    signs = rng.integers(0, 2, (_DRAWS, len(by_case)), dtype=np.int8) * 2.0 - 1.0
    deviations = by_case - by_case.mean(axis=1, keepdims=True)
    return np.asarray(signs @ deviations / len(by_case), float)


def means_by_case(sequences: Sequences) -> Floats:
    """Return the mean of each case (rows) and version (columns)."""
    return np.array([[math.fsum(arm) / len(arm) for arm in case] for case in sequences])


def cusum(means: Floats) -> Floats:
    """Return the statistic of each split along the last axis, from the means of the versions."""
    count = means.shape[-1]
    sums = means.cumsum(axis=-1)
    places = np.arange(1, count)
    before = sums[..., :-1] / places
    after = (sums[..., -1:] - sums[..., :-1]) / (count - places)
    weights = np.sqrt(places * (count - places) / count)
    return np.asarray(np.abs(after - before) * weights, float)
