"""Scores of every case, version and replicate → the versions from which on the score is another.

Its own module because it knows nothing of records: any list of numbers has change points.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Sequences = Sequence[Sequence[Sequence[float]]]
"""The scores of the replicates, by case and version. Every case has at least one score of every version."""

_DRAWS = 2_000
_SLACK = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The best split of the versions in [`first`, `end`): it lies before version `at`. All three are places.

    `before` and `after` are the means of the versions on either side. `p` is that of no split at all.
    """

    first: int
    at: int
    end: int
    before: float
    after: float
    p: float


def find_splits(sequences: Sequences, alpha: float, seed: int = 0) -> list[Split]:
    """Return every split that was tested, that of the whole sequence first: binary segmentation (Scott and Knott 1974).

    The statistic of a split before version k of V is CUSUM, √(k(V − k) / V) · |mean after − mean before|, on the means
    over cases. The maximum over all k is tested, so that looking at every k needs no further correction: within each
    case its replicates are dealt anew to the versions, p = (b + 1) / (m + 1). Where p ≤ α, either side is split in the
    same way.
    """
    if not sequences:
        return []
    rng = np.random.default_rng(seed)
    return _split_stretch(sequences, 0, len(sequences[0]), alpha, rng)


def _split_stretch(sequences: Sequences, first: int, end: int, alpha: float, rng: np.random.Generator) -> list[Split]:
    if end - first < 2:
        return []
    split = _best_split(sequences, first, end, rng)
    if split.p > alpha:
        return [split]
    return [
        split,
        *_split_stretch(sequences, first, split.at, alpha, rng),
        *_split_stretch(sequences, split.at, end, alpha, rng),
    ]


def _best_split(sequences: Sequences, first: int, end: int, rng: np.random.Generator) -> Split:
    observed = np.zeros((1, end - first))
    dealt = np.zeros((_DRAWS, end - first))
    for case in sequences:
        arms = [np.asarray(arm, float) for arm in case[first:end]]
        observed += [arm.mean() for arm in arms]
        pooled = np.concatenate(arms)  # dealt anew to the versions in every draw
        if (pooled == pooled[0]).all():
            dealt += pooled[0]
            continue
        sizes = np.array([len(arm) for arm in arms])
        starts = np.concatenate(([0], sizes.cumsum()[:-1]))
        drawn = rng.permuted(np.tile(pooled, (_DRAWS, 1)), axis=1)
        dealt += np.add.reduceat(drawn, starts, axis=1) / sizes
    means = observed[0] / len(sequences)
    statistic = _cusum(observed)[0]
    at = int(statistic.argmax()) + 1
    extreme = (_cusum(dealt).max(axis=1) >= statistic.max() - _SLACK).sum()
    return Split(
        first=first,
        at=first + at,
        end=end,
        before=float(means[:at].mean()),
        after=float(means[at:].mean()),
        p=float((extreme + 1) / (_DRAWS + 1)),
    )


def _cusum(totals: Floats) -> Floats:
    """Return the statistic of each split, shape (rows, versions − 1), from rows of totals over cases."""
    count = totals.shape[1]
    sums = totals.cumsum(axis=1)
    places = np.arange(1, count)
    before = sums[:, :-1] / places
    after = (sums[:, -1:] - sums[:, :-1]) / (count - places)
    weights = np.sqrt(places * (count - places) / count)
    return np.asarray(np.abs(after - before) * weights, float)


def as_sequences_of_means(sequences: Sequences) -> list[list[list[float]]]:
    """Reduce the replicates of a case and version to their mean, so that the cases are the sample."""
    return [[[math.fsum(arm) / len(arm)] for arm in case] for case in sequences]
