"""Scores → two-sided p-values, by dealing replicates anew to the arms of their case, or signs to the cases.

Its own module because random numbers are drawn only here. p is exact wherever that is cheap, else (b + 1) / (m + 1) by
Monte Carlo, Phipson and Smyth 2010 (doi:10.2202/1544-6115.1585).
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

Floats = NDArray[np.float64]
Arm = Sequence[Sequence[float]]
"""One sample: the scores of each case's replicates."""

DRAWS = 20_000
_EXACT_CASES = 14  # 2^14 patterns of signs are fewer than the draws
_DEALINGS = 2_000  # ways of dealing a case's replicates that are told apart
_BLOCK = 1_000  # draws held in memory at once
_SLACK = 1e-9  # two sums of the same scores in another order differ by less


def dealing_p(left: Arm, right: Arm, seed: int) -> float:
    """Return p of the mean over cases of the difference of case means, with the replicates of each case dealt anew.

    Exact for scores of 0 and 1 when all cases have as many replicates, else Monte Carlo.
    """
    scores = np.fromiter(chain.from_iterable(chain(left, right)), float)
    sizes = {(len(before), len(after)) for before, after in zip(left, right, strict=True)}
    if len(sizes) == 1 and bool(((scores == 0.0) | (scores == 1.0)).all()):
        # the ones dealt to the candidate, over all cases, are a sum of hypergeometric counts
        (before, after), mass = sizes.pop(), np.ones(1)
        ones = [int(sum(old) + sum(new)) for old, new in zip(left, right, strict=True)]
        for count in ones:
            mass = np.convolve(mass, _hypergeometric(count, before, after))
        expected = sum(ones) * after / (before + after)
        far = np.abs(np.arange(len(mass)) - expected) >= abs(sum(map(sum, right)) - expected) - _SLACK
        return min(1.0, float(mass[far].sum()))
    rng = np.random.default_rng(seed)
    observed, totals = 0.0, np.zeros(DRAWS)
    for before, after in sorted(sizes):
        pairs = [(*old, *new) for old, new in zip(left, right, strict=True) if (len(old), len(new)) == (before, after)]
        pooled = np.array(pairs)
        weights = np.concatenate([np.full(before, -1.0 / before), np.full(after, 1.0 / after)])
        observed += float((pooled @ weights).sum())
        varied = pooled[np.ptp(pooled, axis=1) > 0.0]
        for means in varied @ _dealings(before, after).T:
            totals += means[rng.integers(0, len(means), DRAWS, dtype=np.uint16)]
    return float(((np.abs(totals) >= abs(observed) - _SLACK).sum() + 1) / (DRAWS + 1))


def flipping_ps(differences: Sequence[Floats], seed: int) -> list[float]:
    """Return p of each measure's mean difference over cases, with the signs of the differences dealt anew.

    Exact for up to 14 cases; else Monte Carlo, with the same signs for all measures.
    """
    many = [at for at, values in enumerate(differences) if len(values) > _EXACT_CASES]
    p_values = [1.0] * len(differences)
    for at, values in enumerate(differences):
        if len(values) <= _EXACT_CASES:
            far = np.abs(_patterns(len(values)) @ values) >= abs(float(values.sum())) - _SLACK
            p_values[at] = float(far.mean())
    if many:
        table = np.zeros((max(len(differences[at]) for at in many), len(many)))  # cases × measures
        for column, at in enumerate(many):
            table[: len(differences[at]), column] = differences[at]
        extreme = np.abs(table.sum(axis=0)) - _SLACK
        rng, as_far = np.random.default_rng(seed), np.zeros(len(many), int)
        for _ in range(0, DRAWS, _BLOCK):
            signs = rng.integers(0, 2, size=(_BLOCK, len(table)), dtype=np.int8) * 2.0 - 1.0
            as_far += (np.abs(signs @ table) >= extreme).sum(axis=0)
        for column, at in enumerate(many):
            p_values[at] = float((as_far[column] + 1) / (DRAWS + 1))
    return p_values


def mcnemar_p(differences: Floats) -> float:
    """Return p of McNemar's exact test for differences of −1, 0 and 1: up or down is a coin toss for all that moved."""
    up, down = int((differences > 0).sum()), int((differences < 0).sum())
    return min(1.0, 2.0 * float(bdtr(min(up, down), up + down, 0.5))) if up + down else 1.0


def least_dealing_p(sizes: Sequence[tuple[int, int]]) -> float:
    """Return the smallest p that dealing can give: one dealing of all there are, or one and its mirror."""
    ways = sum(math.log(math.comb(before + after, after)) for before, after in sizes)
    mirrored = all(before == after for before, after in sizes)
    return max(1.0 / (DRAWS + 1), (1 + mirrored) * math.exp(-ways))


def least_flipping_p(cases: int) -> float:
    """Return the smallest p that flipping signs can give: that of equal signs."""
    return max(1.0 / (DRAWS + 1), math.ldexp(2.0, -cases))


@lru_cache(maxsize=_EXACT_CASES + 1)
def _patterns(cases: int) -> Floats:
    """Return every pattern of signs, shape (2^cases, cases)."""
    return np.asarray((np.arange(2**cases)[:, None] >> np.arange(cases) & 1) * 2.0 - 1.0)


@lru_cache(maxsize=64)
def _dealings(before: int, after: int) -> Floats:
    """Return weights that turn a case's pooled scores into a difference of means, shape (dealings, before + after).

    Every dealing has a row if there are few, else some are drawn.
    """
    size = before + after
    if math.comb(size, after) <= _DEALINGS:
        chosen = np.array(list(combinations(range(size), after)), dtype=np.intp)
    else:
        chosen = np.argsort(np.random.default_rng(0).random((_DEALINGS, size)), axis=1)[:, :after]
    weights = np.full((len(chosen), size), -1.0 / before)
    np.put_along_axis(weights, chosen, 1.0 / after, axis=1)
    return weights


@lru_cache(maxsize=1024)
def _hypergeometric(ones: int, before: int, after: int) -> Floats:
    """Return the probability of each number of ones dealt to `after` of `before + after` places."""
    size = before + after
    counts = [math.comb(ones, k) * math.comb(size - ones, after - k) for k in range(min(ones, after) + 1)]
    return np.array([count / math.comb(size, after) for count in counts])
