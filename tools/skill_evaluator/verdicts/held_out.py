"""Means of a run that was stopped early, without the luck that stopped it.

A run is stopped when its scores so far are far up or down, so their mean is too high or too low. The replicates asked
after the last look are not: no look saw them. A case's replicates could have come in any order. So the mean of those is
averaged over the orders in which all looks would have said the same. It is unbiased among the runs that were stopped
there, and keeps what earlier replicates can still tell (Rao-Blackwell; a conditionally unbiased estimate, Cohen and
Sackrowitz 1989, Statistics & Probability Letters 8). A run that no look stopped is corrected alike.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from skill_evaluator.verdicts.effects import ALPHA, unseen_share
from skill_evaluator.verdicts.randomisation import Floats
from skill_evaluator.verdicts.strict_looks import NEITHER, UNCHANGED, VERDICTS, StrictLook, strict_verdicts
from skill_evaluator.verdicts.watched import Arms, Watched

HELD_OUT = 1  # replicates of every case that are asked after the decision to stop
DRAWS = 2_000  # orders of the replicates that are tried, and runs that are made up
_FEWEST = 30  # of them must have been stopped alike to tell how much the look has chosen
_BLOCK = 500_000  # scores held in memory at once
_SLACK = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """The mean that these very cases are expected to score, unbiased among runs stopped alike; its 95 % interval."""

    mean: float
    ci95: tuple[float, float]


def corrected_means(
    watched: Watched, looks: Sequence[StrictLook], verdict: str, metrics: Sequence[Arms], seed: int = 0
) -> list[Corrected]:
    """Return the corrected mean of each metric of a run whose last look settled the verdict (nothing, if empty)."""
    rng = np.random.default_rng(seed)
    condition = _Condition.of(watched, looks, verdict)
    weights = _unseen_places(condition, rng)
    shares = _informative_shares(condition, metrics, rng)
    return [
        _corrected(metric, weights, watched.after.shape[2] - condition.after * (1 - share))
        for metric, share in zip(metrics, shares, strict=True)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Condition:
    """What all looks say: nothing before the last one, and there, `after` so many replicates, what was `reached`.

    `looks` are those that the critical measures alone explain: at another, a supporting metric may have decided.
    """

    watched: Watched
    looks: Sequence[StrictLook]
    after: int
    reached: int

    @classmethod
    def of(cls, watched: Watched, looks: Sequence[StrictLook], verdict: str) -> "_Condition":
        """Return the condition that the run itself has met."""
        reached = VERDICTS.index(verdict)
        (observed,) = strict_verdicts(watched, watched.after[None], looks)
        expected = [*[NEITHER] * (len(looks) - 1), reached]
        kept = [look for look, was, is_so in zip(looks, expected, observed, strict=True) if was == is_so]
        return cls(watched=watched, looks=kept, after=looks[-1].after, reached=reached)

    def met_by(self, runs: Floats) -> NDArray[np.bool_]:
        """Return of which runs, shape (runs, measures, cases, replicates), the looks would have said the same."""
        met = np.ones(len(runs), bool)
        for look in reversed(self.looks):  # the last look refuses most
            expected = self.reached if look.after == self.after else NEITHER
            met[met] = strict_verdicts(self.watched, runs[met], [look])[:, 0] == expected
        return met


def _unseen_places(condition: _Condition, rng: np.random.Generator) -> Floats:
    """Return how probable it is that each replicate of a case is one that no look saw, shape (cases, replicates).

    It is divided by the number of those, so that the probabilities of a case add up to 1.
    """
    after = condition.watched.after
    cases, asked = after.shape[1:]
    unseen = asked - condition.after
    tried, alike, stopped = np.zeros((cases, asked)), np.zeros((cases, asked)), 0
    for count in _blocks(after.size):
        orders = np.argsort(rng.random((count, cases, asked)), axis=2)
        met = condition.met_by(np.take_along_axis(after[None], orders[:, None], axis=3))
        stopped += int(met.sum())
        for places, chosen in ((tried, orders), (alike, orders[met])):
            np.add.at(places, (np.arange(cases)[:, None], chosen[:, :, condition.after :]), 1.0 / unseen)
    if stopped < _FEWEST:  # the order that was counts, too: it is always one of those of which the looks say the same
        alike[:, condition.after :] += 1.0 / unseen
        return np.asarray(alike / (stopped + 1))
    return np.asarray(1.0 / asked + alike / stopped - tried / DRAWS)  # less what the draws have in common by chance


def _informative_shares(condition: _Condition, metrics: Sequence[Arms], rng: np.random.Generator) -> list[float]:
    """Return by metric which share of what the replicates before the last look tell is left by what the looks say.

    It is the share of its variance that their mean keeps among runs stopped alike, as information is in an exponential
    family. Runs are made up of both versions' answers where the two are held to be alike, else of the run's own.
    """
    watched, first = condition.watched, 0 if condition.reached == UNCHANGED else condition.watched.before.shape[2]
    scores = np.concatenate([watched.before, watched.after], axis=2)[:, :, first:]
    tables = [np.concatenate([metric.before, metric.after], axis=1)[:, first:] for metric in metrics]
    cases, places = scores.shape[1:]
    means, met = [], []
    for count in _blocks(watched.after.size):
        chosen = rng.integers(0, places, (count, cases, condition.after))
        met.append(condition.met_by(np.take_along_axis(scores[None], chosen[:, None], axis=3)))
        means.append([_mean_over_cases(np.take_along_axis(table[None], chosen, axis=2)) for table in tables])
    alike = np.concatenate(met)
    if alike.sum() < _FEWEST:
        return [0.0] * len(tables)
    every = np.concatenate(means, axis=1)
    return [
        min(1.0, float(of_metric[alike].var() / of_metric.var())) if of_metric.var() > _SLACK**2 else 1.0
        for of_metric in every
    ]


def _corrected(metric: Arms, weights: Floats, replicates: float) -> Corrected:
    """Return the mean by weights, and the interval of a mean of so many replicates of every case."""
    there = np.isfinite(metric.after)
    shares = np.where(there, weights, 0.0)
    totals = shares.sum(axis=1)
    measured = np.abs(totals) > _SLACK
    sums = (np.where(there, metric.after, 0.0) * shares).sum(axis=1)
    mean = min(1.0, max(0.0, float((sums[measured] / totals[measured]).mean())))
    cases = int(measured.sum())
    answers = cases * replicates
    spread = max((_Spread.of(arm) for arm in (metric.before, metric.after)), key=lambda spread: spread.variance)
    if spread.variance < _SLACK**2:
        half = unseen_share(int(answers))
    else:
        error = math.hypot(math.sqrt(spread.variance / answers), spread.widest / 2 / answers)
        half = float(stdtrit(spread.degrees, 1 - ALPHA / 2)) * error
    return Corrected(mean=mean, ci95=(max(0.0, mean - half), min(1.0, mean + half)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spread:
    """How the replicates of a case differ: their mean variance, its degrees of freedom, and the widest range."""

    variance: float = 0.0
    degrees: int = 1
    widest: float = 0.0

    @classmethod
    def of(cls, arm: Floats) -> "_Spread":
        """Measure an arm, shape (cases, replicates)."""
        counts = np.isfinite(arm).sum(axis=1)
        repeated = arm[counts > 1]
        if not len(repeated):
            return cls()
        return cls(
            variance=float(np.nanvar(repeated, axis=1, ddof=1).mean()),
            degrees=int((counts[counts > 1] - 1).sum()),
            widest=float((np.nanmax(repeated, axis=1) - np.nanmin(repeated, axis=1)).max()),
        )


def _mean_over_cases(runs: Floats) -> Floats:
    """Return the mean over cases of the means of what was measured, by run."""
    there = np.isfinite(runs)
    counts = there.sum(axis=2)
    means = np.where(there, runs, 0.0).sum(axis=2) / np.maximum(1, counts)
    return np.asarray(means.sum(axis=1) / np.maximum(1, (counts > 0).sum(axis=1)))


def _blocks(scores: int) -> Iterator[int]:
    """Yield how many runs of so many scores to draw at once, until all are drawn."""
    most = max(1, _BLOCK // max(1, scores))
    for begun in range(0, DRAWS, most):
        yield min(most, DRAWS - begun)
