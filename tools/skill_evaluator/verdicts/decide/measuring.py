"""Measure the difference of each measure of two records, with its confidence interval and p-value.

The case is the unit and differences are paired, so a deviation that all outputs of a case in a run share counts as
variance between cases. docs/statistics.md has the reasons.

Output tokens, cost and latency per output are measures, too. The score of a case is −ln of its mean amount per output,
so an increase counts as a drop.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from skill_evaluator.identifiers import Tier
from skill_evaluator.records.record import CHECKS_METRIC, CaseRecord, Record
from skill_evaluator.records.summaries import AMOUNTS
from skill_evaluator.stats import CONFIDENCE, POWER, Interval, smallest_drop, t_cdf, t_quantile, unseen_share
from skill_evaluator.verdicts.decide import comparability
from skill_evaluator.verdicts.decide.comparability import (
    CasePairs,
    Kind,
    Pair,
    Scores,
    SharedCases,
    check_of,
    field_scores,
    strict_scores,
)
from skill_evaluator.verdicts.decide.results import Missing, bounds_of

Floats = NDArray[np.float64]
Arm = Sequence[Sequence[float]]  # one version: the scores of each case's replicates

MAX_MISSED = 0.03  # accepted probability that a drop of the tolerated size is called excluded
_SLACK = 1e-9  # a smaller spread is rounding
_MIN_EQUAL = 3  # equal outputs of a case, both versions together, that count as deterministic
_MAX_LIMITS = 16  # if there are more differences, only this many serve as clipping limits
_FEW = 5  # up to this number of cases, the test of a rise clips at most a quarter
_SPARING = 0.25  # share of the differences that may be clipped if false alarms must be rare
_STRICT = 0.01  # p below this requires that few differences are clipped


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The mean difference between two versions, candidate minus baseline, with its standard error and p-value.

    `n` is the number of cases or outputs. `p` is one-sided, in the direction of the difference. The difference is above
    `lowest` with 97 % confidence. `unseen` is 0 if the outputs of a case score differently, or if each case has at
    least three outputs. Otherwise the outputs are too few to show that scores are stable, and `unseen` is the largest
    share of new cases or outputs that may still score differently.
    """

    difference: float
    error: float
    degrees: float
    p: float
    ci95: Interval
    lowest: float
    n: int
    unseen: float = 0.0

    def detectable(self, level: float) -> float | None:
        """Return the smallest drop that a test at `level` detects with 80 % power. Return None if it detects none."""
        if self.error == 0.0:
            return self.unseen or None
        variance = max(0.0, self.error**2 - (self.difference / (2 * self.n)) ** 2)
        quantiles = float(t_quantile(self.degrees, 1 - level) + t_quantile(self.degrees, POWER))
        return smallest_drop(variance, self.n, quantiles)


@dataclass(frozen=True, kw_only=True, eq=False)
class ArmStatistics:
    """The number, mean and variance of the scores of each case.

    If a case has only one score, its variance is the mean variance of the cases with several scores.
    """

    counts: Floats
    means: Floats
    variances: Floats

    @classmethod
    def of(cls, arm: Arm) -> "ArmStatistics":
        """Compute the statistics of a version from the scores of each case."""
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
        """The mean of the cases' mean scores."""
        return float(self.means.sum()) / len(self.means)

    @cached_property
    def slope(self) -> float:
        """The rate at which the mean score changes if all cases shift on the logit scale, as from one day to another.

        The slope is about the mean of x (1 − x), where x is the mean score of a case. If there are replicates, the
        slope is at most the mean standard deviation within a case.
        """
        scores = (self.counts * self.means + self.mean) / (self.counts + 1)
        moved = float((scores * (1 - scores)).mean())
        return min(moved, float(np.sqrt(self.variances).mean())) if (self.counts > 1).any() else moved


def paired_effect(
    before: ArmStatistics, after: ArmStatistics, day_variance: float = 0.0, limit: float = 1.0
) -> Effect | None:
    """Return the difference between two versions by a paired t-test over the cases. Return None for a single case.

    `day_variance` is the variance that two runs on different days add. The confidence interval is cut at −`limit` and
    `limit`. The test is repeated with the largest differences clipped, and the smallest p-value counts. See
    docs/statistics.md for the formulas.
    """
    differences = after.means - before.means
    cases = len(differences)
    if cases < 2:
        return None
    differences[np.abs(differences) < _SLACK] = 0.0
    is_still = not (differences.any() or before.variances.any() or after.variances.any())
    is_repeated = is_still and bool((before.counts + after.counts >= _MIN_EQUAL).all())
    day_variance = 0.0 if is_repeated else day_variance
    least = 0.0
    if after.counts.sum() < before.counts.sum():
        least = float((before.variances * (1 / before.counts + 1 / after.counts)).sum()) / cases**2
    falls = _ClippedTests.of(differences, day_variance)
    rises = _ClippedTests.of(-differences, day_variance, least=least, max_share=_SPARING if cases <= _FEW else 1.0)
    confidence = (1 + CONFIDENCE) / 2
    return Effect(
        difference=float(falls.means[0]),
        error=float(falls.errors[0]),
        degrees=float(falls.degrees[0]),
        p=0.5 if is_still else falls.p if falls.means[0] < 0.0 else rises.p,
        ci95=(max(-limit, -rises.upper_limit(confidence)), min(limit, falls.upper_limit(confidence))),
        lowest=-rises.upper_limit(1 - MAX_MISSED),
        n=cases,
        unseen=unseen_share(cases) if is_still and not is_repeated else 0.0,
    )


@dataclass(frozen=True, slots=True)
class _ClippedTests:
    """t-tests for a drop, each with the largest drops clipped to another limit. The first test clips no drop.

    `is_sparing`: whether a test clips at most 25 % of the differences.
    """

    means: Floats
    errors: Floats
    degrees: Floats
    is_sparing: NDArray[np.bool_]

    @classmethod
    def of(
        cls, differences: Floats, day_variance: float, *, least: float = 0.0, max_share: float = 1.0
    ) -> "_ClippedTests":
        """Build one t-test for each limit of `_clip_limits`. A larger drop is clipped to the limit.

        `least` is the lowest variance of the mean difference that a test may use. A test that clips more than
        `max_share` of the differences is left out. The degrees of freedom follow Satterthwaite (doi:10.2307/3002019).
        """
        count = len(differences)
        limits = _clip_limits(np.sort(differences))
        rows = np.maximum(differences, limits[:, None])
        share = (rows > differences).mean(axis=1)
        rows, share = rows[share <= max_share], share[share <= max_share]
        means = rows.mean(axis=1)
        still = means / count  # one case that did not move, or half of one
        still[0] /= 2
        seen = np.maximum(rows.var(axis=1, ddof=1) / count, least) + still**2
        seen[seen < _SLACK**2] = 0.0
        degrees = (count - 1.0) * ((seen + day_variance) / np.where(seen > 0.0, seen, 1.0)) ** 2
        degrees[seen == 0.0] = np.inf if day_variance else count - 1.0
        return cls(means, np.sqrt(seen + day_variance), degrees, share <= _SPARING)

    @property
    def p(self) -> float:
        """The smallest p-value of the tests.

        If it is below 0.01, only the tests with `is_sparing` count, and the result is at most 0.01.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            p_values = np.where(self.errors > 0.0, t_cdf(self.degrees, self.means / self.errors), 0.5)
        return max(float(p_values.min()), min(_STRICT, float(p_values[self.is_sparing].min())))

    def upper_limit(self, confidence: float) -> float:
        """Return the one-sided upper confidence limit of the mean difference: the lowest limit of all tests."""
        return float((self.means + t_quantile(self.degrees, confidence) * self.errors).min())


def _clip_limits(ordered: Floats) -> Floats:
    """Return the limits to which the largest drops are clipped. The first limit, −∞, clips no drop."""
    count = len(ordered)
    rest, squares = (part[::-1].cumsum()[::-1][1:] for part in (ordered, ordered**2))
    fell = rest < 0.0
    best = squares[fell] / rest[fell]
    best = best[(ordered[:-1][fell] <= best) & (best <= ordered[1:][fell])]
    some = ordered if count <= _MAX_LIMITS else ordered[np.linspace(0, count - 1, _MAX_LIMITS).astype(int)]
    return np.concatenate(([-np.inf], best, some[some < 0.0]))


def replicate_effect(before: ArmStatistics, after: ArmStatistics, day_variance: float = 0.0) -> Effect | None:
    """Return the difference between two versions if the replicates are independent draws.

    The effect holds for these cases, not for new cases. The variance is the variance of all outputs of a case around
    their common mean, as in Fisher's randomisation test, stratified by case. `day_variance` is the variance that two
    runs on different days add. Return None if no case has two outputs of the same version.
    """
    counts, totals = (before.counts, after.counts), before.counts + after.counts
    if max(arm.max() for arm in counts) < 2:
        return None
    within = sum((arm.counts - 1.0) * arm.variances for arm in (before, after))
    between = counts[0] * counts[1] / totals * (after.means - before.means) ** 2
    parts = (within + between) / (totals - 1.0) * totals / (counts[0] * counts[1]) / len(totals) ** 2
    variance, spread = float(parts.sum()), float((parts**2 / (totals - 1.0)).sum())
    degrees = variance**2 / spread if spread > 0.0 else float((totals - 1.0).sum())
    outputs, difference = int(min(arm.sum() for arm in counts)), after.mean - before.mean
    is_still = variance < _SLACK**2
    is_repeated = is_still and bool((totals >= _MIN_EQUAL).all())
    seen = 0.0 if is_still else variance + (difference / (2 * outputs)) ** 2
    total = seen + (0.0 if is_repeated else day_variance)
    degrees *= (total / seen) ** 2 if seen else 1.0
    error, difference = math.sqrt(total), 0.0 if is_still else difference
    half = float(t_quantile(degrees, (1 + CONFIDENCE) / 2)) * error
    return Effect(
        difference=difference,
        error=error,
        degrees=degrees,
        p=0.5 if is_still else float(t_cdf(degrees, -abs(difference) / error)),
        ci95=(max(-1.0, difference - half), min(1.0, difference + half)),
        lowest=difference - float(t_quantile(degrees, 1.0 - MAX_MISSED)) * error,
        n=outputs,
        unseen=unseen_share(outputs) if is_still and not is_repeated else 0.0,
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values by Holm's method (1979), which controls the probability of any false positive.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    count, largest = len(p_values), 0.0
    adjusted_values = [1.0] * count
    for rank, index in enumerate(sorted(range(count), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, p_values[index] * (count - rank)))
        adjusted_values[index] = largest
    return adjusted_values


def samples(record: Record) -> bool:
    """Return whether the replicates of a run are independent draws: the profile is `sampled`, and nothing is replayed.

    Return False if the settings of the run are unknown.
    """
    return record.settings is not None and record.settings.profile == "sampled" and record.provider != "replay"


@dataclass(frozen=True, kw_only=True, eq=False)
class Measure:
    """The scores of one metric, field or amount in the baseline and the candidate, by case.

    A case has one score per replicate. Amounts and the agreement of replicates have only one score per case. `tier` is
    the tier of a check, and None for other measures. If `judged` is true, a judge decided some of the scores. `cases`
    has all shared cases, with or without a score.
    """

    name: str
    kind: Kind
    case_ids: tuple[str, ...] = ()
    scores: tuple[Arm, Arm] = ((), ())
    tier: Tier | None = None
    judged: bool = False
    cases: CasePairs = ()
    pair: Pair | None = None

    @cached_property
    def before(self) -> ArmStatistics:
        """The statistics of the baseline's scores."""
        return ArmStatistics.of(self.scores[0])

    @cached_property
    def after(self) -> ArmStatistics:
        """The statistics of the candidate's scores."""
        return ArmStatistics.of(self.scores[1])

    @cached_property
    def day_variance(self) -> float:
        """The variance that two different days add to the difference. It is 0 if the runs are interleaved."""
        if self.pair is None or self.pair.is_beside:
            return 0.0
        runs = 1 / (1 + len(self.pair.baseline_again)) + 1 / (1 + len(self.pair.candidate_again))
        return runs * (comparability.RUN_SD * self.before.slope) ** 2

    @property
    def is_sampled(self) -> bool:
        """Whether the replicates are independent draws. False for agreement, which is one value per case."""
        runs = () if self.pair is None or self.kind == "reproducibility" else self.pair.runs
        return bool(runs) and all(run is not None and samples(run) for run in runs)

    @cached_property
    def effect(self) -> Effect | None:
        """The effect of the change. None if there are too few scores."""
        return self.effect_if(is_sampled=self.is_sampled)

    def effect_if(self, *, is_sampled: bool) -> Effect | None:
        """Return the difference between the versions with its test. Return None if there are too few scores.

        If `is_sampled` is true, the test uses the variance between replicates, otherwise the variance between cases.
        """
        sampled = replicate_effect(self.before, self.after, self.day_variance) if is_sampled else None
        limit = math.inf if self.kind == "amount" else 1.0
        return sampled or paired_effect(self.before, self.after, self.day_variance, limit)

    @cached_property
    def missing(self) -> Missing | None:
        """The missing values and the bounds of the difference. None if no value is missing."""
        return bounds_of(self.cases, self.name, self.kind)


def metric_measures(cases: CasePairs, metrics: Iterable[str], pair: Pair | None = None) -> Iterator[Measure]:
    """Yield a measure of each metric and of agreement. Skip measures without scores."""
    for name in metrics:
        yield from _measure(name, "accuracy", cases, pair)
    for name in comparability.AGREEMENT:
        yield from _measure(name, "reproducibility", cases, pair)


def field_measures(cases: CasePairs, pair: Pair | None = None) -> Iterator[Measure]:
    """Yield a measure of each field. Skip measures without scores."""
    for path in dict.fromkeys(path for both in cases for case in both for path in case.fields):
        yield from _measure(path, "field", cases, pair)


def _measure(name: str, kind: Kind, cases: CasePairs, pair: Pair | None) -> Iterator[Measure]:
    read = {"accuracy": strict_scores, "reproducibility": _agreement, "field": field_scores}[kind]
    having = [(old, new) for old, new in cases if kind != "field" or name in old.fields or name in new.fields]
    scores = [(old.case_id, read(old, name), read(new, name)) for old, new in having]
    measured = [(case_id, before, after) for case_id, before, after in scores if before and after]
    if not measured:
        return
    case_ids, before, after = zip(*measured, strict=True)
    checks = [check for _, case in having if (check := check_of(case, name))]
    tier = next((check.tier for check in checks if check.tier), None)
    if (name, kind) == (CHECKS_METRIC, "accuracy"):
        checks = [check for _, case in cases for check in case.checks.values() if check.weight]
    yield Measure(
        name=name,
        kind=kind,
        case_ids=case_ids,
        scores=(before, after),
        tier=tier,
        judged=any(check.judged for check in checks),
        cases=cases,
        pair=pair,
    )


def _agreement(case: CaseRecord, name: str) -> Scores:
    share = case.reproducibility.get(name)
    return () if share is None else (share,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The shared cases (`common`) and the measures (`measured`) of a pair.

    `amounts` has the measures of output tokens, cost and latency, by name. It is empty if the runs differ in model or
    scenario. `tests` has the adjusted p-value of each measure and the number of tests in its family.
    """

    pair: Pair
    common: SharedCases  # empty if there is no baseline
    measured: tuple[Measure, ...] = ()
    amounts: Mapping[str, Measure | str] = field(default_factory=dict)  # str: reason why there is no measure
    tests: Mapping[Measure, tuple[float, int]] = field(default_factory=dict)  # (adjusted p, number of tests)

    @property
    def coverage(self) -> float:
        """The lowest of three shares: completion of the baseline, completion of the candidate, and shared cases.

        The share of shared cases is the number of `common.cases`, divided by the number of the baseline's cases that
        are applicable to the candidate. If there is no baseline, the coverage is the completion of the candidate.
        """
        baseline, candidate = self.pair.runs
        if baseline is None:
            return candidate.coverage
        wanted = [case for case in baseline.per_case if case.case_id not in candidate.not_applicable]
        return min(candidate.coverage, baseline.coverage, len(self.common.cases) / max(1, len(wanted)))

    @property
    def judge(self) -> str | None:
        """The model id of the uncalibrated judge that decided some of the measures. None if there is no such judge."""
        return self.pair.unproved_judge if any(measure.judged for measure in self.measured) else None

    def primary(self, metric: str) -> Measure | None:
        """Return the measure named `metric`. Return None if it was not measured."""
        return next((measure for measure in self.measured if measure.name == metric), None)

    def q(self, measure: Measure) -> float | None:
        """Return the adjusted p-value of a measure. Return None if the measure is not tested."""
        return self.tests[measure][0] if measure in self.tests else None


def measure_pair(pair: Pair, *, fields: bool = True) -> Compared:
    """Measure a pair, with fields or without. The result has no measures if the pair is not comparable."""
    like, baseline = comparability.with_same_checks(pair), pair.baseline
    if like.baseline is None or baseline is None:
        return Compared(pair=pair, common=SharedCases())
    before = comparability.pooled(like.baseline, like.baseline_again)
    after = comparability.pooled(like.candidate, like.candidate_again)
    common = comparability.common_part(before, after, any_served=pair.any_served)
    common = replace(
        common,
        left_out={**common.left_out, **pair.unstable},
        barriers=(*common.barriers, *_moves_between(pair, baseline)),
        remarks=(*common.remarks, *comparability.check_changes(baseline, pair.candidate)),
    )
    if common.barriers:
        return Compared(pair=pair, common=common)
    shared = [name for name in pair.candidate.accuracy if name in baseline.accuracy]
    amounts: dict[str, Measure | str] = {}
    if (baseline.model_id, baseline.scenario) == (pair.candidate.model_id, pair.candidate.scenario):
        amounts = {name: _measured_amount(name, pair, baseline, common.cases) for name in AMOUNTS}
    measured = [*metric_measures(common.cases, shared, like), *(field_measures(common.cases, like) if fields else ())]
    return Compared(pair=pair, common=common, measured=tuple(measured), amounts=amounts)


def _moves_between(pair: Pair, baseline: Record) -> Iterator[str]:
    version = baseline.skill_version
    if pair.any_served or pair.is_beside or version == pair.candidate.skill_version:
        return
    for run in (*pair.candidate_again, pair.candidate):
        if run.drift and run.drift.moved and run.timestamp > baseline.timestamp:
            yield f"the model moved after {version} was run, though the prompt did not ({run.drift.moved[0]})"


FREE = "it is 0 in both runs"


def _measured_amount(name: str, pair: Pair, baseline: Record, cases: CasePairs) -> Measure | str:
    """Return the measure of output tokens, cost or latency over the cases where both runs have more than 0.

    Return the reason if it cannot be measured.
    """
    candidate = pair.candidate
    if name == "latency_s" and (candidate.is_from_elsewhere or not pair.is_beside):
        return f"the two runs were not interleaved (`skill-evaluator evaluate {candidate.skill}` interleaves them)"
    for side, record in (("baseline", baseline), ("candidate", candidate)):
        if not any(case.amounts for case in record.per_case):
            return f"the record of the {side} has no amounts by case (a new run has them)"
    both = {old.case_id: [case.amounts[name].mean for case in (old, new) if name in case.amounts] for old, new in cases}
    usable = {case_id: means for case_id, means in both.items() if len(means) == 2 and min(means) > 0.0}
    if not usable and both and all(means == [0.0, 0.0] for means in both.values()):
        return FREE
    if not usable:
        price = f"; `price` of {candidate.model_id} in models.yaml gives it" if name == "cost_usd" else ""
        return f"no case has a value above 0 in both runs{price}"
    old, new = (tuple((-math.log(mean),) for mean in means) for means in zip(*usable.values(), strict=True))
    return Measure(name=name, kind="amount", case_ids=tuple(usable), scores=(old, new))
