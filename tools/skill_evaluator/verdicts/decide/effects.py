"""Scores of two versions, case by case → the difference, its standard error, p, interval, and the drop it could show.

The case is the unit, and the difference is paired: what a case's answers have in common within a run is then part of
what differs between cases, whether it can be told or not. Numbers in, numbers out. numpy and scipy.special come with
this module, which only a comparison needs.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from skill_evaluator.library.config import Gate
from skill_evaluator.stats import ALPHA, POWER, unseen_share

Floats = NDArray[np.float64]
Arm = Sequence[Sequence[float]]
"""One sample: the scores of each case's replicates."""
Interval = tuple[float, float]

KEPT = 500  # arms and effects: a run meets those before and after it, and most fields are answered alike in all
MISSED = 0.03  # of drops of the tolerated size may be called excluded
_SLACK = 1e-9  # a spread below this is rounding
_MOST_CAPS = 16  # cut-offs that are tried
_FREE = 0.75  # of the differences stay as they are where few false alarms are allowed, or differences are few:
_STRICT = 0.01  # the share of false alarms
_FEW = 5  # the number of differences
_SETTLED = 3  # equal answers of both versions together: a model that gives them repeats itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """Candidate minus baseline, on scores in [0, 1], from a sample of `n`.

    `p` is one-sided, in the direction of the difference. `error` is the standard error (0: nothing varied) and
    `degrees` its degrees of freedom. The difference is above `lowest` with 97 % confidence, but for what may have gone
    unseen. `unseen` bounds the share of documents, or answers, that may fail though none of
    these did.
    """

    difference: float
    error: float
    degrees: float
    p: float
    lowest: float
    n: int
    unseen: float = 0.0

    @property
    def ci95(self) -> Interval:
        """The 95 % interval."""
        return self.interval(ALPHA)

    def interval(self, alpha: float) -> Interval:
        """Return the interval that misses the truth with probability alpha, within −1 and 1.

        It holds what may have gone unseen: a failure in each document or answer of a share `unseen`, which is that of
        95 % confidence.
        """
        half = float(stdtrit(self.degrees, 1 - alpha / 2)) * self.error if self.error else 0.0
        unseen = 1.0 - math.pow(1.0 - self.unseen, math.log(alpha) / math.log(ALPHA)) if self.unseen else 0.0
        seen = self.difference * (1.0 - unseen)
        low, high = min(self.difference - half, seen - unseen), max(self.difference + half, seen + unseen)
        return max(-1.0, low), min(1.0, high)

    def detectable(self, level: float) -> float | None:
        """Return the smallest drop that is beyond chance at this level, one-sided, with 80 % power; None for no drop.

        Where nothing varied it is the share that may go unseen.
        """
        if self.error == 0.0:
            return self.unseen or None
        if not math.isfinite(self.error):
            return None
        drop = float(stdtrit(self.degrees, 1 - level) + stdtrit(self.degrees, POWER)) * self.error
        return drop if drop < 1.0 else None


@dataclass(frozen=True, kw_only=True, eq=False)
class Within:
    """One arm: the scores of each case as their number (`counts`), mean, and the variance of one of them.

    A case with one score takes the mean variance of the others.
    """

    counts: Floats
    means: Floats
    variances: Floats

    @classmethod
    def of(cls, arm: Arm) -> "Within":
        """Summarise an arm."""
        sizes = np.fromiter(map(len, arm), int, len(arm))
        scores = np.fromiter(chain.from_iterable(arm), float, int(sizes.sum()))
        starts = np.cumsum(sizes) - sizes
        means = np.add.reduceat(scores, starts) / sizes
        squares = np.add.reduceat((scores - np.repeat(means, sizes)) ** 2, starts)
        repeated = sizes > 1
        variances = squares / np.maximum(1, sizes - 1)
        if not repeated.all():
            variances[~repeated] = variances[repeated].mean() if repeated.any() else 0.0
        variances[variances < _SLACK**2] = 0.0
        return cls(counts=sizes.astype(float), means=means, variances=variances)

    @cached_property
    def mean(self) -> float:
        """The mean over cases."""
        return float(self.means.sum()) / len(self.means)  # as mean() does it, in half of the time

    @property
    def explained(self) -> float:
        """The variance of the mean over cases, if the replicates of a case are independent draws."""
        return float((self.variances / self.counts).sum()) / len(self.counts) ** 2

    def variance_beside(self, counts: Floats) -> float:
        """Return the variance of the mean difference to another run of the version with this many replicates a case."""
        return float((self.variances * (1 / self.counts + 1 / counts)).sum()) / len(self.counts) ** 2

    @cached_property
    def slope(self) -> float:
        """How much the mean moves when every answer's odds do: the mean of s(1 − s) over the cases' scores s.

        Each s is drawn towards the mean of all by one answer's weight, since few answers are seldom all there are. A
        score of many parts that hardly varies moves no more than it varies.
        """
        scores = (self.counts * self.means + self.mean) / (self.counts + 1)
        moved = float((scores * (1 - scores)).sum()) / len(scores)
        return min(moved, float(np.sqrt(self.variances).mean())) if (self.counts > 1).any() else moved


within = lru_cache(maxsize=KEPT)(Within.of)


def paired_effect(before: Within, after: Within, of_runs: float = 0.0) -> Effect | None:
    """Return the effect with the cases as the sample: a paired t-test over them; None for one case.

    `of_runs` is the variance that two runs add as a whole, taken as known. error² = s² ÷ C + (D ÷ C)² + `of_runs`, with
    D the mean of the C differences and s their standard deviation. The second term is what one more case that did not
    move would say: a variance estimated as 0 from few cases is not 0. Where every answer to a case got the same score
    from both versions, nothing is left to chance.

    If the candidate has fewer replicates, s² ÷ C is for a rise, and for the drop that is excluded, at least what the
    baseline's replicates let an unchanged version differ by. A few answers that happen to be all right show no
    variance, but the baseline's failures do. The candidate's own does not count: a worse output would change it.
    """
    differences = after.means - before.means
    cases = len(differences)
    if cases < 2:
        return None
    differences[np.abs(differences) < _SLACK] = 0.0
    still = not (differences.any() or before.variances.any() or after.variances.any())
    settled = still and bool((before.counts + after.counts >= _SETTLED).all())
    of_runs = 0.0 if settled else of_runs
    difference = float(differences.sum()) / cases
    has_fewer = after.counts.sum() < before.counts.sum()  # else the differences scatter as far up as down
    rises = _Held.of(-differences, of_runs, least=before.variance_beside(after.counts) if has_fewer else 0.0)
    moved = _Held.of(differences, of_runs) if difference < 0.0 else rises
    return Effect(
        difference=difference,
        error=float(moved.errors[0]),
        degrees=float(moved.degrees[0]),
        p=0.5 if still else moved.p,
        lowest=-rises.highest,
        n=cases,
        unseen=unseen_share(cases) if still and not settled else 0.0,
    )


def replicate_effect(before: Within, after: Within, of_runs: float = 0.0) -> Effect | None:
    """Return the effect on these very cases where their replicates are known to be independent draws; else None.

    error² = Σ vᵢ (1 ÷ mᵢ + 1 ÷ nᵢ) ÷ C² + (D ÷ answers)² + `of_runs`, with vᵢ the variance of all answers of both
    versions to a case around their common mean: what dealing them to the two versions anew would show (Fisher's
    randomisation, stratified), by Student's t. The second term is what one more answer that did not move would say.
    None where no case has two answers of a version.
    """
    counts, totals = (before.counts, after.counts), before.counts + after.counts
    if max(arm.max() for arm in counts) < 2:
        return None
    within = sum((arm.counts - 1.0) * arm.variances for arm in (before, after))
    apart = counts[0] * counts[1] / totals * (after.means - before.means) ** 2
    parts = (within + apart) / (totals - 1.0) * totals / (counts[0] * counts[1]) / len(totals) ** 2
    variance, spread = float(parts.sum()), float((parts**2 / (totals - 1.0)).sum())
    degrees = variance**2 / spread if spread > 0.0 else float((totals - 1.0).sum())
    answers, difference = float(min(arm.sum() for arm in counts)), after.mean - before.mean
    still = variance < _SLACK**2
    settled = still and bool((totals >= _SETTLED).all())
    seen = 0.0 if still else variance + (difference / answers) ** 2
    total = seen + (0.0 if settled else of_runs)
    if seen:
        degrees *= (total / seen) ** 2
    error = math.sqrt(total)
    return Effect(
        difference=0.0 if still else difference,
        error=error,
        degrees=degrees,
        p=float(stdtr(degrees, -abs(difference) / error)) if error and not still else 0.5,
        lowest=(0.0 if still else difference) - float(stdtrit(degrees, 1.0 - MISSED)) * error,
        n=int(answers),
        unseen=unseen_share(int(answers)) if still and not settled else 0.0,
    )


@lru_cache(maxsize=KEPT)
def effects_of(before: Within, after: Within, of_runs: float, independent: bool) -> Mapping[Gate, Effect | None]:
    """Return the effect in each scope; `independent`: the replicates of a case are known to be independent draws."""
    paired = paired_effect(before, after, of_runs)
    these = (replicate_effect(before, after, of_runs) if independent else None) or paired
    others = None if paired is None else beyond(paired, len(before.means))
    return {"these": these, "both": both(these, others), "beyond": others}


def beyond(effect: Effect, cases: int) -> Effect:
    """Return an effect as it holds for cases not seen, of which some may fail as none of these did."""
    return replace(effect, n=cases, unseen=max(effect.unseen, unseen_share(cases)))


def both(these: Effect | None, others: Effect | None) -> Effect | None:
    """Return the effect that holds on these cases and beyond them; None where either cannot be told.

    p is the larger one (an intersection-union test, Berger 1982, doi:10.1080/00401706.1982.10487790), and the interval
    that of the wider.
    """
    if these is None or others is None:
        return None
    wider = max(these, others, key=lambda effect: effect.error)
    both_ways = {"p": max(these.p, others.p), "lowest": min(these.lowest, others.lowest)}
    return replace(wider, **both_ways, n=others.n, unseen=max(these.unseen, others.unseen))


def adjusted(p_values: Sequence[float]) -> list[float]:
    """Return the q-value of each p-value, which controls the false discovery rate over all of them.

    qᵢ = min over pⱼ ≥ pᵢ of m pⱼ ÷ rank(pⱼ), Benjamini and Hochberg 1995 (doi:10.1111/j.2517-6161.1995.tb02031.x).

    >>> adjusted([0.01, 0.04, 0.03])
    [0.03, 0.04, 0.04]
    """
    count = len(p_values)
    order = sorted(range(count), key=p_values.__getitem__, reverse=True)
    q_values, least = [1.0] * count, 1.0
    for rank, place in zip(range(count, 0, -1), order, strict=True):
        least = min(least, p_values[place] * count / rank)
        q_values[place] = least
    return q_values


@dataclass(frozen=True, slots=True)
class _Held:
    """Differences as they are, and below them in rows the same with the furthest falls held at a cut-off.

    A difference that falls further than the others makes t smaller, though it does not speak against a fall. Held at a
    cut-off it cannot: of all cut-offs the smallest p counts, and for a rise the highest lower end. So a lower score
    makes no fall less sure and no rise surer. t has its maxima where those held are at Σd² ÷ Σd of the others.
    """

    means: Floats
    errors: Floats
    degrees: Floats
    few: NDArray[np.bool_]  # the rows in which no more than a quarter is held
    count: int

    @classmethod
    def of(cls, differences: Floats, of_runs: float, least: float = 0.0) -> "_Held":
        """Hold the falls; s² ÷ C is at least `least`. Degrees of freedom are Satterthwaite's (doi:10.2307/3002019)."""
        count, ordered = len(differences), np.sort(differences)
        edge = min(-np.sort(np.abs(differences))[math.ceil(_FREE * count) - 1], -_SLACK)
        rest, squares = (part[::-1].cumsum()[::-1][1:] for part in (ordered, ordered**2))
        fell = rest < 0.0
        best = squares[fell] / rest[fell]  # by the number of those that are held, less one
        best = best[(ordered[:-1][fell] <= best) & (best <= ordered[1:][fell])]
        some = ordered if count <= _MOST_CAPS else ordered[np.linspace(0, count - 1, _MOST_CAPS).astype(int)]
        caps = np.concatenate(([-np.inf, edge], best, some))
        rows = np.maximum(differences, caps[:, None])
        means = rows.sum(axis=1) / count
        spread = ((rows - means[:, None]) ** 2).sum(axis=1) / (count - 1) / count
        seen = np.maximum(spread, least) + (means / count) ** 2
        seen[seen < _SLACK**2] = 0.0
        degrees = (count - 1.0) * ((seen + of_runs) / np.where(seen > 0.0, seen, 1.0)) ** 2
        degrees[seen == 0.0] = np.inf if of_runs else count - 1.0
        return cls(means, np.sqrt(seen + of_runs), degrees, caps <= edge, count)

    @property
    def p(self) -> float:
        """One-sided. Where 1 % or less is asked no more than a quarter is held: few that all fell a little look alike.

        By simulation this costs few false alarms: of 4 % asked there are 3.5 to 4.9 %, of 0.3 % up to 0.4 %.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            p_values = np.where(self.errors > 0.0, stdtr(self.degrees, self.means / self.errors), 0.5)
        return max(float(p_values.min()), min(_STRICT, float(p_values[self.few].min())))

    @property
    def highest(self) -> float:
        """What the mean is below with 97 % confidence, by simulation 95 to 98 %. Few differences are held sparingly."""
        ends = self.means + stdtrit(self.degrees, 1.0 - MISSED) * self.errors
        return float((ends if self.count > _FEW else ends[self.few]).min())
