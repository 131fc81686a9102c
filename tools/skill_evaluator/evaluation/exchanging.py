"""Scores of several versions, case by case → how often chance alone sets the last apart from the others as far.

Where the others are edits that mean nothing, their spread is all that is known of chance. A case in which none of them
moved is no proof that it never does: within a case any of the versions could have been the one that moved.
"""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from skill_evaluator.stats import ROUNDING
from skill_evaluator.verdicts.decide.effects import Floats

_DRAWS = 4_000


def chances_of_last(scores: Floats) -> list[float]:
    """Return p of each figure from scores of shape (figures, cases, versions); NaN where a version has none.

    Under the null the versions of a case are exchangeable, whatever the cases have to do with their fields. p is the
    share of exchanges within cases by which any of the figures is set apart as far as this (the largest of all
    standardised sums, Westfall and Young 1993): so the figures are one family, however they hang together.
    """
    versions = scores.shape[2]
    apart = (scores - scores.mean(axis=2, keepdims=True)) * (versions / (versions - 1))  # from the mean of the others
    apart = np.where(np.isnan(apart) | (np.abs(apart) < ROUNDING), 0.0, apart)
    apart = apart[:, apart.any(axis=(0, 2))]  # the cases in which anything moved
    scale = np.sqrt((apart**2).mean(axis=2).sum(axis=1))
    scale[scale == 0.0] = np.inf
    chosen = _exchanges(apart.shape[1], versions)
    sums = np.zeros((len(scores), len(chosen)))
    for case in range(apart.shape[1]):
        sums += apart[:, case, chosen[:, case]]
    largest = np.abs(sums / scale[:, None]).max(axis=0, initial=0.0)
    actual = np.abs(apart[:, :, -1].sum(axis=1)) / scale
    return [float((largest >= value - ROUNDING).mean()) if value else 1.0 for value in actual]


def _exchanges(cases: int, versions: int) -> NDArray[np.int_]:
    """Return which version is taken for the last in each case: what was measured, and all other ways, or many."""
    if versions**cases <= _DRAWS:
        return np.array(list(product(range(versions), repeat=cases)), int).reshape(versions**cases, cases)
    drawn = np.random.default_rng(0).integers(versions, size=(_DRAWS, cases))
    return np.vstack([np.full(cases, versions - 1), drawn])
