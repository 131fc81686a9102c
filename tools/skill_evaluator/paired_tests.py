"""Two samples compared case by case: effect, interval, p-value and the smallest drop that could have been seen.

Numbers in, numbers out. Two questions that must not be mixed: on these cases (replicates are the sample), and beyond
them (cases are the sample). numpy and scipy.special come with this module, which only a comparison needs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, stdtrit

Floats = NDArray[np.float64]
Interval = tuple[float, float]
Arm = Sequence[Sequence[float]]
"""One sample: per case, the scores of its replicates."""

ALPHA = 0.05
POWER = 0.8
_DRAWS = 20_000
_EXACT_CASES = 14  # 2^14 patterns of signs are fewer than the draws
_SUBSETS = 2_000  # ways of dealing a case's replicates that are told apart
_SLACK = 1e-9  # two sums of the same scores in another order differ by less


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """Candidate minus baseline. `p` is two-sided; `detectable_drop` is what would be seen with 80 % power.

    `n` counts what the question takes as its sample: replicates of the smaller arm, or cases.
    """

    difference: float
    ci95: Interval
    p: float
    n: int
    detectable_drop: float


def replicate_effect(baseline: Arm, candidate: Arm, seed: int = 0) -> Effect | None:
    """Is the expected score on these very cases another? None when no arm has two replicates of a case.

    The statistic is the mean over cases of the difference of case means. p: replicates are dealt anew to the two arms
    within each case (Fisher's randomisation test, stratified); exact for scores of 0 and 1, else Monte Carlo with
    (b + 1) / (m + 1), Phipson and Smyth 2010 (doi:10.2202/1544-6115.1585). Interval: Welch 1947
    (doi:10.1093/biomet/34.1-2.28) on the variances within cases.
    """
    left, right = [np.asarray(case, float) for case in baseline], [np.asarray(case, float) for case in candidate]
    if max(map(len, left), default=0) < 2 and max(map(len, right), default=0) < 2:
        return None
    differences = np.array([after.mean() - before.mean() for before, after in zip(left, right, strict=True)])
    difference = float(differences.mean())
    n = min(sum(map(len, left)), sum(map(len, right)))
    error, degrees = _within_error(left, right)
    return Effect(
        difference=difference,
        ci95=_interval(difference, error, degrees, n),
        p=_dealing_p(left, right, difference, np.random.default_rng(seed)),
        n=n,
        detectable_drop=_detectable(error, degrees, n),
    )


def case_effects(differences: Sequence[Sequence[float]], seed: int = 0) -> list[Effect | None]:
    """Would the score be another on cases not seen? Per metric, from its difference in each case (all metrics at once).

    p: signs are flipped (Fisher 1935), exact for up to 14 cases and for differences of −1, 0 and 1 (then it is
    McNemar's exact test), else Monte Carlo with (b + 1) / (m + 1). Interval: Student's t; for differences of −1, 0 and
    1 Agresti and Min 2005 (doi:10.1002/sim.1781). None for a metric with fewer than two cases.
    """
    rng = np.random.default_rng(seed)
    most = max(map(len, differences), default=0)
    signs = _signs(most, rng)
    return [_case_effect(np.asarray(of_metric, float), signs) for of_metric in differences]


def adjusted(p_values: Sequence[float]) -> list[float]:
    """q-values: p-values with the false discovery rate controlled over all of them.

    Benjamini and Hochberg 1995 (doi:10.1111/j.2517-6161.1995.tb02031.x).

    >>> adjusted([0.01, 0.04, 0.03])
    [0.03, 0.04, 0.04]
    """
    count = len(p_values)
    order = sorted(range(count), key=p_values.__getitem__, reverse=True)
    found, least = [1.0] * count, 1.0
    for rank, place in zip(range(count, 0, -1), order, strict=True):
        least = min(least, p_values[place] * count / rank)
        found[place] = least
    return found


def _case_effect(differences: Floats, signs: NDArray[np.int8]) -> Effect | None:
    n = len(differences)
    if n < 2:
        return None
    difference = float(differences.mean())
    signed = bool(np.isin(differences, (-1.0, 0.0, 1.0)).all())
    shown, error = _matched_pairs(differences) if signed and differences.any() else (difference, _spread(differences))
    return Effect(
        difference=difference,
        ci95=_interval(shown, error, n - 1, n, at=difference),
        p=_mcnemar_p(differences) if signed else _flipping_p(differences, signs),
        n=n,
        detectable_drop=_detectable(error, n - 1, n),
    )


def _spread(values: Floats) -> float:
    """The standard error of a mean; 0 where nothing varied beyond rounding."""
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    return 0.0 if error < _SLACK else error


def _matched_pairs(differences: Floats) -> tuple[float, float]:
    """Centre and standard error of a difference of paired rates, with half a pair added to each cell of the table."""
    n = len(differences) + 2
    up, down = (differences > 0).sum() + 0.5, (differences < 0).sum() + 0.5
    centre = float((up - down) / n)
    return centre, math.sqrt(max(0.0, (up + down) / n - centre**2) / n)


def _within_error(left: Sequence[Floats], right: Sequence[Floats]) -> tuple[float, float]:
    """Standard error of the mean difference from the variances within cases, and its degrees of freedom (Welch).

    A case with one replicate takes the mean variance of the others. Rates (0 and 1) get one unseen answer more in each
    arm, since what did not vary among few replicates may well vary.
    """
    variance, weight = 0.0, 0.0
    rates = all(np.isin(case, (0.0, 1.0)).all() for case in (*left, *right))
    for arm in (left, right):
        known = [float(case.var(ddof=1)) for case in arm if len(case) > 1]
        usual = sum(known) / len(known) if known else 0.0
        for case in arm:
            part = (float(case.var(ddof=1)) if len(case) > 1 else usual) / len(case) / len(arm) ** 2
            variance += part
            weight += part**2 / max(1, len(case) - 1)
    if variance < _SLACK**2:
        return 0.0, 1.0
    degrees = variance**2 / weight
    if rates:
        variance += sum(1.0 / sum(map(len, arm)) ** 2 for arm in (left, right))
    return math.sqrt(variance), degrees


def _interval(centre: float, error: float, degrees: float, n: int, at: float | None = None) -> Interval:
    """The 95 % interval; where nothing varied, what may have gone unseen: 1 − 0.05^(1/n), which may be anything."""
    if error == 0.0:
        value, unseen = centre if at is None else at, _unseen(n)
        return max(-1.0, value * (1 - unseen) - unseen), min(1.0, value * (1 - unseen) + unseen)
    half = float(stdtrit(degrees, 1 - ALPHA / 2)) * error
    return max(-1.0, centre - half), min(1.0, centre + half)


def _unseen(n: int) -> float:
    """The probability that what never came in n trials may still have, with 95 % confidence."""
    return 1.0 - math.pow(ALPHA, 1.0 / n)


def _detectable(error: float, degrees: float, n: int) -> float:
    """The smallest drop that a test of this error finds with 80 % power; never below what may have gone unseen."""
    if error == 0.0:
        return _unseen(n)
    return min(1.0, float(stdtrit(degrees, 1 - ALPHA / 2) + stdtrit(degrees, POWER)) * error)


def _signs(cases: int, rng: np.random.Generator) -> NDArray[np.int8]:
    """Patterns of signs to flip differences by: Monte Carlo, one row a draw."""
    return rng.integers(0, 2, size=(_DRAWS if cases > _EXACT_CASES else 0, cases), dtype=np.int8) * 2 - 1


def _flipping_p(differences: Floats, signs: NDArray[np.int8]) -> float:
    n = len(differences)
    extreme = abs(float(differences.sum())) - _SLACK
    if n <= _EXACT_CASES:
        patterns = (np.arange(2**n)[:, None] >> np.arange(n) & 1) * 2 - 1
        return float((np.abs(patterns @ differences) >= extreme).mean())
    drawn = np.abs(signs[:, :n].astype(np.float32) @ differences.astype(np.float32))
    return float(((drawn >= extreme - 1e-5).sum() + 1) / (len(drawn) + 1))


def _mcnemar_p(differences: Floats) -> float:
    up, down = int((differences > 0).sum()), int((differences < 0).sum())
    return min(1.0, 2.0 * float(bdtr(min(up, down), up + down, 0.5))) if up + down else 1.0


def _dealing_p(left: Sequence[Floats], right: Sequence[Floats], difference: float, rng: np.random.Generator) -> float:
    sizes = {(len(before), len(after)) for before, after in zip(left, right, strict=True)}
    pooled = [np.concatenate(pair) for pair in zip(left, right, strict=True)]
    if len(sizes) == 1 and all(np.isin(case, (0.0, 1.0)).all() for case in pooled):
        return _hypergeometric_p(pooled, right, *sizes.pop())
    totals = np.zeros(_DRAWS)
    for case, before, after in zip(pooled, left, right, strict=True):
        means = _dealt(case, len(after), len(before), rng)
        totals += means[rng.integers(0, len(means), _DRAWS)]
    extreme = abs(difference) * len(pooled) - _SLACK
    return float(((np.abs(totals) >= extreme).sum() + 1) / (_DRAWS + 1))


def _dealt(case: Floats, after: int, before: int, rng: np.random.Generator) -> Floats:
    """Differences of means when a case's replicates are dealt anew: in every way there is, or in many drawn ones."""
    total, size = float(case.sum()), len(case)
    if math.comb(size, after) <= _SUBSETS:
        chosen = _combinations(size, after)
    else:
        chosen = np.argsort(rng.random((_SUBSETS, size)), axis=1)[:, :after]
    sums = case[chosen].sum(axis=1)
    return np.asarray(sums / after - (total - sums) / before, float)


def _combinations(size: int, chosen: int) -> NDArray[np.intp]:

    return np.array(list(combinations(range(size), chosen)), dtype=np.intp)


def _hypergeometric_p(pooled: Sequence[Floats], right: Sequence[Floats], before: int, after: int) -> float:
    """Exact: the number of ones dealt to the candidate, over all cases, is a sum of hypergeometric counts."""
    mass, size = np.ones(1), before + after
    for case in pooled:
        ones = int(case.sum())
        counts = [math.comb(ones, k) * math.comb(size - ones, after - k) for k in range(min(ones, after) + 1)]
        mass = np.convolve(mass, np.array(counts, float) / math.comb(size, after))
    expected = sum(float(case.sum()) for case in pooled) * after / size
    observed = sum(float(case.sum()) for case in right)
    far = np.abs(np.arange(len(mass)) - expected) >= abs(observed - expected) - _SLACK
    return min(1.0, float(mass[far].sum()))
