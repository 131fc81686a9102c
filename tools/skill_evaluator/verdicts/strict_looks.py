"""The strict rule of `adaptive` on many runs at once: which would have been stopped at which look, and with what.

Its own module because it works on arrays of runs, where `effects` measures a single one in more detail.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from skill_evaluator.verdicts.effects import ALPHA
from skill_evaluator.verdicts.randomisation import Floats
from skill_evaluator.verdicts.watched import Watched

Integers = NDArray[np.int64]
NOTHING_SETTLED = ""
VERDICTS = (NOTHING_SETTLED, "regressed", "improved", "unchanged")
NEITHER, REGRESSED, IMPROVED, UNCHANGED = range(4)
_SLACK = 1e-9  # a spread below this is rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class StrictLook:
    """A look after so many replicates: its `share` of the error of intervals, and the `level` that a change reaches."""

    after: int
    share: float
    level: float


def strict_verdicts(watched: Watched, runs: Floats, looks: Sequence[StrictLook]) -> Integers:
    """Return the strict verdict at each look on each of the runs, shape (runs, looks), as a place in `VERDICTS`.

    `runs` has shape (runs, measures, cases, replicates).
    """
    verdicts = np.zeros((len(runs), len(looks)), np.int64)
    before = _Arm.of(np.moveaxis(watched.before[None], -1, 0))
    in_turn = np.ascontiguousarray(np.moveaxis(runs, -1, 0))  # sums over replicates are fastest over the first axis
    for at, look in enumerate(looks):
        each = _strict(before, _Arm.of(in_turn[: look.after]), look, watched.tolerances)
        calm = np.where((each == IMPROVED).any(axis=1), IMPROVED, UNCHANGED)
        settled = np.where((each == NEITHER).any(axis=1), NEITHER, calm)
        verdicts[:, at] = np.where((each == REGRESSED).any(axis=1), REGRESSED, settled)
    return verdicts


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arm:
    """Runs by measure and case: how many replicates were measured, their mean, variance and range."""

    counts: Floats
    means: Floats
    variances: Floats
    ranges: Floats

    @classmethod
    def of(cls, runs: Floats) -> "_Arm":
        """Summarise runs of shape (replicates, runs, measures, cases)."""
        there = np.isfinite(runs)
        counts = there.sum(axis=0).astype(float)
        means = np.where(there, runs, 0.0).sum(axis=0) / np.maximum(1.0, counts)
        squares = np.where(there, (runs - means) ** 2, 0.0).sum(axis=0)
        spans = np.where(there, runs, -np.inf).max(axis=0) - np.where(there, runs, np.inf).min(axis=0)
        return cls(
            counts=counts,
            means=means,
            variances=squares / np.maximum(1.0, counts - 1.0),
            ranges=np.where(counts > 0, spans, 0.0),
        )

    def parts(self, there: NDArray[np.bool_]) -> Floats:
        """Return what each case adds to the variance of the mean; a single replicate takes the others' variance."""
        repeated = there & (self.counts > 1)
        mean = np.where(repeated, self.variances, 0.0).sum(axis=-1) / np.maximum(1, repeated.sum(axis=-1))
        variances = np.where(self.counts > 1, self.variances, mean[..., None])
        cases = np.maximum(1, there.sum(axis=-1))[..., None]
        return np.asarray(np.where(there, variances / np.maximum(1.0, self.counts), 0.0) / cases**2)


def _dealing_p(before: _Arm, after: _Arm, there: NDArray[np.bool_], difference: Floats) -> Floats:
    """Return about the p that dealing the replicates anew gives: Student's t of the variance that dealing has."""
    pairs = np.where(there, before.counts + after.counts, 2.0)
    apart = before.counts * after.counts / pairs * (before.means - after.means) ** 2
    within = sum(np.maximum(0.0, arm.counts - 1.0) * arm.variances for arm in (before, after))
    weight = sum(1.0 / np.maximum(1.0, arm.counts) for arm in (before, after))
    cases = np.maximum(1, there.sum(axis=-1, keepdims=True))
    parts = np.where(there, (within + apart) / (pairs - 1.0) * weight, 0.0) / cases**2
    variance, spread = parts.sum(axis=-1), (parts**2 / (pairs - 1.0)).sum(axis=-1)
    varied = variance >= _SLACK**2
    degrees = np.where(varied, variance**2 / np.where(varied, spread, 1.0), 1.0)
    t = np.abs(difference) / np.sqrt(np.where(varied, variance, 1.0))
    return np.asarray(np.where(varied, 2.0 * stdtr(degrees, -t), 1.0))


def _strict(before: _Arm, after: _Arm, look: StrictLook, tolerances: Floats) -> Integers:
    """Return the verdict on each measure of each run, much as `adaptive` draws it from the effect of a single one."""
    there = (before.counts > 0) & (after.counts > 0)
    cases = np.maximum(1, there.sum(axis=-1))
    moved = np.where(there, after.means - before.means, 0.0)
    difference = moved.sum(axis=-1) / cases
    parts = [arm.parts(there) for arm in (before, after)]
    variance = sum(part.sum(axis=-1) for part in parts)
    spread = sum(
        (part**2 / np.maximum(1.0, arm.counts - 1.0)).sum(axis=-1)
        for part, arm in zip(parts, (before, after), strict=True)
    )
    varied = variance >= _SLACK**2
    degrees = np.where(varied, variance**2 / np.where(varied, spread, 1.0), 1.0)
    answers = [np.where(there, arm.counts, 0.0).sum(axis=-1) for arm in (before, after)]
    widest = np.maximum(*(np.where(there, arm.ranges, 0.0).max(axis=-1) for arm in (before, after)))
    unseen_variance = sum((widest / 2 / np.maximum(1.0, count)) ** 2 for count in answers)
    error = np.sqrt(np.where(varied, variance + unseen_variance, 1.0))
    unseen = 1.0 - ALPHA ** (1.0 / np.maximum(1.0, np.minimum(*answers)))  # `unseen_share` of many
    half = stdtrit(degrees, 1 - ALPHA * look.share / 2) * error
    low = np.where(varied, difference - half, difference * (1 - unseen) - unseen)
    certain = _dealing_p(before, after, there, difference) <= look.level
    tolerated = tolerances > 0.0
    excluded = np.where(tolerated, np.maximum(-1.0, low) >= -tolerances, difference >= 0)
    unchanged = tolerated & (unseen <= tolerances)
    calm = np.where(certain & (difference > 0), IMPROVED, np.where(unchanged, UNCHANGED, NEITHER))
    verdicts = np.where(excluded, calm, np.where(certain & (difference < 0), REGRESSED, NEITHER))
    measured = np.maximum(*(np.where(there, arm.counts, 0.0).max(axis=-1) for arm in (before, after))) > 1
    return np.asarray(np.where(measured, verdicts, NEITHER))
