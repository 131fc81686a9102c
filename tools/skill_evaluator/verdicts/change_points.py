"""From which of several versions on is a score another? Scores per case, version and replicate in, splits out.

Its own module because it knows nothing of records: a list of numbers has change points, too.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Sequences = Sequence[Sequence[Sequence[float]]]
"""Per case, per version, the scores of its replicates: every case has at least one score of every version."""

_DRAWS = 2_000
_SLACK = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The best split of the versions `first` to before `end` is before version `at` (places in the sequence).

    `before` and `after` are the means of the versions on either side; `p` is of there being no split at all.
    """

    first: int
    at: int
    end: int
    before: float
    after: float
    p: float


def splits(sequences: Sequences, alpha: float, seed: int = 0) -> list[Split]:
    """Every split that was tested, the whole sequence's first: binary segmentation (Scott and Knott 1974).

    The statistic of a split before version k of V is CUSUM, √(k(V − k) / V) · |mean after − mean before|, on the means
    over cases. The best split is tested by its maximum over all k, so that looking at every k costs no further
    correction: within each case its replicates are dealt anew to the versions, (b + 1) / (m + 1). Where p ≤ α, either
    side is looked at in the same way.
    """
    if not sequences:
        return []
    rng = np.random.default_rng(seed)
    return list(_segmented(sequences, 0, len(sequences[0]), alpha, rng))


def _segmented(sequences: Sequences, first: int, end: int, alpha: float, rng: np.random.Generator) -> list[Split]:
    if end - first < 2:
        return []
    split = _best(sequences, first, end, rng)
    if split.p > alpha:
        return [split]
    return [
        split,
        *_segmented(sequences, first, split.at, alpha, rng),
        *_segmented(sequences, split.at, end, alpha, rng),
    ]


def _best(sequences: Sequences, first: int, end: int, rng: np.random.Generator) -> Split:
    observed = np.zeros((1, end - first))
    dealt = np.zeros((_DRAWS, end - first))
    for case in sequences:
        arms = [np.asarray(arm, float) for arm in case[first:end]]
        observed += [arm.mean() for arm in arms]
        dealt += _dealt(arms, rng)
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


def _dealt(arms: Sequence[Floats], rng: np.random.Generator) -> Floats:
    """Means of the versions when a case's scores are dealt anew to them, one row a draw."""
    sizes = np.array([len(arm) for arm in arms])
    pooled = np.concatenate(arms)
    if (pooled == pooled[0]).all():
        return np.full((_DRAWS, len(arms)), pooled[0])
    drawn = rng.permuted(np.tile(pooled, (_DRAWS, 1)), axis=1)
    starts = np.concatenate(([0], sizes.cumsum()[:-1]))
    return np.asarray(np.add.reduceat(drawn, starts, axis=1) / sizes, float)


def _cusum(totals: Floats) -> Floats:
    """Of every row of totals over cases, the statistic of each split."""
    count = totals.shape[1]
    sums = totals.cumsum(axis=1)
    places = np.arange(1, count)
    before = sums[:, :-1] / places
    after = (sums[:, -1:] - sums[:, :-1]) / (count - places)
    weights = np.sqrt(places * (count - places) / count)
    return np.asarray(np.abs(after - before) * weights, float)


def as_sequences_of_means(sequences: Sequences) -> list[list[list[float]]]:
    """One score a case and version: so that what is dealt anew is a case's sequence, and cases are the sample."""
    return [[[math.fsum(arm) / len(arm)] for arm in case] for case in sequences]
