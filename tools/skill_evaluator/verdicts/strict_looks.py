"""The strict rule of `adaptive` on many runs at once: which would have been stopped at which look, and with what.

Its own module because it works on arrays of runs, where `effects` measures a single one in more detail.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtr, stdtrit

from skill_evaluator.verdicts.effects import ALPHA, Extra
from skill_evaluator.verdicts.randomisation import Floats
from skill_evaluator.verdicts.watched import Watched

Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]
NOTHING_SETTLED = ""
VERDICTS = (NOTHING_SETTLED, "regressed", "improved", "unchanged")
NEITHER, REGRESSED, IMPROVED, UNCHANGED = range(4)
_SLACK = 1e-9  # a spread below this is rounding
_NORMAL = 1e6  # so many degrees of freedom are as good as any more


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
        each = _strict(_Sides.of(before, _Arm.of(in_turn[: look.after])), watched, look)
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

    def parts(self, there: Bools) -> Floats:
        """Return what each case adds to the variance of the mean; a single replicate takes the others' variance."""
        repeated = there & (self.counts > 1)
        mean = np.where(repeated, self.variances, 0.0).sum(axis=-1) / np.maximum(1, repeated.sum(axis=-1))
        variances = np.where(self.counts > 1, self.variances, mean[..., None])
        cases = np.maximum(1, there.sum(axis=-1))[..., None]
        return np.asarray(np.where(there, variances / np.maximum(1.0, self.counts), 0.0) / cases**2)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sides:
    """Both arms of runs by measure, on the cases that both have (`there`), and the differences of those."""

    arms: tuple[_Arm, _Arm]
    there: Bools
    cases: Floats
    moved: Floats
    difference: Floats

    @classmethod
    def of(cls, before: _Arm, after: _Arm) -> "_Sides":
        there = (before.counts > 0) & (after.counts > 0)
        cases = np.maximum(1.0, there.sum(axis=-1))
        moved = np.where(there, after.means - before.means, 0.0)
        return cls(arms=(before, after), there=there, cases=cases, moved=moved, difference=moved.sum(axis=-1) / cases)

    def counts(self) -> list[Floats]:
        """Return the replicates of each case that both have, by arm."""
        return [np.where(self.there, arm.counts, 0.0) for arm in self.arms]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answers:
    """By run and measure: whether a question can be answered, the interval's lower end, p, and what may be unseen."""

    told: Bools
    low: Floats
    p: Floats
    unseen: Floats

    def both(self, other: "_Answers") -> "_Answers":
        """Return the answer that holds by both questions."""
        return _Answers(
            told=self.told & other.told,
            low=np.minimum(self.low, other.low),
            p=np.maximum(self.p, other.p),
            unseen=np.maximum(self.unseen, other.unseen),
        )

    def where(self, chosen: Bools, other: "_Answers") -> "_Answers":
        """Return this answer for the chosen measures, and the other for the rest."""
        return _Answers(
            told=np.where(chosen, self.told, other.told),
            low=np.where(chosen, self.low, other.low),
            p=np.where(chosen, self.p, other.p),
            unseen=np.where(chosen, self.unseen, other.unseen),
        )


def _strict(sides: _Sides, watched: Watched, look: StrictLook) -> Integers:
    """Return the verdict on each measure of each run, much as `adaptive` draws it from the effect of a single one."""
    answers = beyond = _beyond(sides, [noise.run for noise in watched.noises], look)
    if watched.gate != "generalises":
        draws = np.array([noise.unshown is not None for noise in watched.noises])
        answers = _on_fixtures(sides, [noise.unshown or Extra() for noise in watched.noises], look).where(draws, beyond)
    if watched.gate == "robust":
        answers = answers.both(beyond)
    certain, tolerances, difference = answers.p <= look.level, watched.tolerances, sides.difference
    excluded = np.where(tolerances > 0.0, np.maximum(-1.0, answers.low) >= -tolerances, difference >= 0)
    unchanged = (tolerances > 0.0) & (answers.unseen <= tolerances)
    calm = np.where(certain & (difference > 0), IMPROVED, np.where(unchanged, UNCHANGED, NEITHER))
    verdicts = np.where(excluded, calm, np.where(certain & (difference < 0), REGRESSED, NEITHER))
    return np.asarray(np.where(answers.told, verdicts, NEITHER))


def _on_fixtures(sides: _Sides, extras: Sequence[Extra], look: StrictLook) -> _Answers:
    """Return what the replicates tell of these cases, with the noise that they do not show."""
    counts = sides.counts()
    parts = [arm.parts(sides.there) for arm in sides.arms]
    variance = np.asarray(sum(part.sum(axis=-1) for part in parts))
    spread = sum(
        (part**2 / np.maximum(1.0, arm.counts - 1.0)).sum(axis=-1) for part, arm in zip(parts, sides.arms, strict=True)
    )
    varied = variance >= _SLACK**2
    degrees = np.where(varied, variance**2 / np.where(varied, spread, 1.0), 1.0)
    answers = [np.maximum(1.0, count.sum(axis=-1)) for count in counts]
    widest = np.maximum(*(np.where(sides.there, arm.ranges, 0.0).max(axis=-1) for arm in sides.arms))
    unseen_variance = np.where(varied, sum((widest / 2 / count) ** 2 for count in answers), 0.0)
    sampled = _Sampled.of(np.where(varied, variance, 0.0), degrees, extras)
    unseen = 1.0 - ALPHA ** (1.0 / np.minimum(*answers))  # `unseen_share` of many
    return _Answers(
        told=np.maximum(*(count.max(axis=-1) for count in counts)) > 1,
        low=sampled.low(sides.difference, unseen_variance, unseen, look, varied),
        p=sampled.p(sides.difference, _dealing_p(sides)),
        unseen=unseen,
    )


def _beyond(sides: _Sides, extras: Sequence[Extra], look: StrictLook) -> _Answers:
    """Return what the cases tell of others, with the noise that all of them share."""
    there, cases, moved = sides.there, sides.cases, sides.moved
    own = np.where(there, moved - sides.difference[..., None], 0.0)
    variance = (own**2).sum(axis=-1) / np.maximum(1.0, cases - 1.0) / cases
    span = np.where(there, moved, -np.inf).max(axis=-1) - np.where(there, moved, np.inf).min(axis=-1)
    widest = np.where(np.isfinite(span), span, 0.0)
    signed = (~there | (moved == 0.0) | (np.abs(moved) == 1.0)).all(axis=-1) & (moved != 0.0).any(axis=-1)
    up, down = (moved > 0).sum(axis=-1) + 0.5, (moved < 0).sum(axis=-1) + 0.5  # Agresti and Min, as for a single run
    paired = (up - down) / (cases + 2)
    variance = np.where(signed, np.maximum(0.0, (up + down) / (cases + 2) - paired**2) / (cases + 2), variance)
    varied = variance >= _SLACK**2
    sampled = _Sampled.of(np.where(varied, variance, 0.0), np.maximum(1.0, cases - 1.0), extras)
    flipped = np.sqrt((moved**2).sum(axis=-1)) / cases  # a sum of random signs is near to normal
    z = np.abs(sides.difference) / np.where(flipped > 0.0, flipped, 1.0)
    unseen_variance = np.where(varied & ~signed, (widest / 2 / cases) ** 2, 0.0)
    return _Answers(
        told=there.sum(axis=-1) > 1,
        low=sampled.low(
            np.where(signed, paired, sides.difference), unseen_variance, 1 - ALPHA ** (1 / cases), look, varied
        ),
        p=sampled.p(sides.difference, np.maximum(2.0 * ndtr(-z), np.exp2(1.0 - cases))),
        unseen=np.zeros_like(cases),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sampled:
    """The variance of differences with the noise that no run shows, its degrees of freedom, and where there is such."""

    variance: Floats
    degrees: Floats
    hidden: Bools

    @classmethod
    def of(cls, variance: Floats, degrees: Floats, extras: Sequence[Extra]) -> "_Sampled":
        """Add the noise of each measure (Satterthwaite 1946)."""
        added = np.array([extra.variance for extra in extras])
        own = np.array([min(extra.degrees, _NORMAL) for extra in extras])
        total = variance + added
        spread = variance**2 / degrees + added**2 / own
        together = np.where(total > 0.0, total**2 / np.where(spread > 0.0, spread, 1.0), 1.0)
        return cls(variance=total, degrees=together, hidden=added > 0.0)

    def low(self, centre: Floats, unseen_variance: Floats, unseen: Floats, look: StrictLook, varied: Bools) -> Floats:
        """Return the lower ends of intervals that miss the truth in no more than the look's share of 5 %."""
        error = np.sqrt(self.variance + unseen_variance)
        half = stdtrit(self.degrees, 1 - ALPHA * look.share / 2) * error
        usual = stdtrit(self.degrees, 1 - ALPHA / 2) * error
        still = np.minimum(centre - usual, centre * (1 - unseen) - unseen) - (half - usual)
        return np.asarray(np.where(varied, centre - half, still))

    def p(self, difference: Floats, drawn: Floats) -> Floats:
        """Return p of drawing, or that of Student's t with the noise that drawing does not show, if that is larger."""
        t = np.abs(difference) / np.sqrt(np.where(self.variance > 0.0, self.variance, 1.0))
        return np.asarray(np.where(self.hidden, np.maximum(drawn, 2.0 * stdtr(self.degrees, -t)), drawn))


def _dealing_p(sides: _Sides) -> Floats:
    """Return about the p that dealing the replicates anew gives: Student's t of the variance that dealing has."""
    before, after = sides.arms
    pairs = np.where(sides.there, before.counts + after.counts, 2.0)
    apart = before.counts * after.counts / pairs * (before.means - after.means) ** 2
    within = sum(np.maximum(0.0, arm.counts - 1.0) * arm.variances for arm in sides.arms)
    weight = sum(1.0 / np.maximum(1.0, arm.counts) for arm in sides.arms)
    parts = np.where(sides.there, (within + apart) / (pairs - 1.0) * weight, 0.0) / sides.cases[..., None] ** 2
    variance, spread = parts.sum(axis=-1), (parts**2 / (pairs - 1.0)).sum(axis=-1)
    varied = variance >= _SLACK**2
    degrees = np.where(varied, variance**2 / np.where(varied, spread, 1.0), 1.0)
    t = np.abs(sides.difference) / np.sqrt(np.where(varied, variance, 1.0))
    return np.asarray(np.where(varied, 2.0 * stdtr(degrees, -t), 1.0))
