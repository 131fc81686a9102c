"""Pairs of records → every measure that both have, its effect on these cases and beyond them, and the noise of runs.

Two records hold one run each, so that a run and a version cannot be told apart in them. Further runs of one version
(A/A runs, and the baselines that were asked beside other versions) tell what a run adds; without them a stated value
stands in. Nothing here knows a verdict.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from skill_evaluator.library.config import Gate
from skill_evaluator.records.record import Record
from skill_evaluator.stats import rounded
from skill_evaluator.text import counted
from skill_evaluator.verdicts.decide.comparability import Common, Measure, Pair, arms_of, common_part, measures, pooled
from skill_evaluator.verdicts.decide.effects import Arm, Effect, Floats, Within, effects_of, within
from skill_evaluator.verdicts.decide.results import NoisePart
from skill_evaluator.verdicts.decide.same_checks import check_changes, with_same_checks

RUN_SD = 0.1  # standard deviation of a whole run on the logit scale, where nothing is known
RUN_DEGREES = 3.0  # the number of further runs that this value counts as much as


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """One measure in each run of the baseline's and of the candidate's version, on the same cases."""

    before: tuple[Within, ...]
    after: tuple[Within, ...]

    @classmethod
    def of(cls, before: Sequence[Arm], after: Sequence[Arm]) -> "Runs":
        """Summarise the scores of each run."""
        return cls(before=tuple(map(within, before)), after=tuple(map(within, after)))

    @property
    def repeats(self) -> list[Floats]:
        """The means of each version with several runs, shape (runs, cases), if two cases or more can be compared."""
        arms = (arms for arms in (self.before, self.after) if len(arms) > 1 and len(arms[0].means) > 1)
        return [np.array([arm.means for arm in arms]) for arms in arms]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEffect:
    """The standard deviation of a whole run on the logit scale, and the number of further runs that it rests on."""

    sd: float
    runs: int = 0

    def variance(self, runs: Runs) -> float:
        """Return the variance that runs as a whole add to the difference of two versions."""
        return (1 / len(runs.before) + 1 / len(runs.after)) * (self.sd * runs.before[0].slope) ** 2


ONE_RUN = RunEffect(sd=0.0)
"""Both versions were asked in one run: no day stands between them."""


def samples(record: Record) -> bool:
    """Return whether the replicates of a case are known to be independent draws: the provider samples each.

    Nothing is known of answers that were replayed or imported, and the deterministic profile asks for equal answers.
    """
    return record.settings is not None and record.settings.profile == "sampled" and record.provider != "replay"


def run_effect(models: Sequence[Runs]) -> RunEffect:
    """Return the effect of a run as a whole, from the further runs of all models and the stated value.

    Each version gives an estimate: the variance between its run means, less what cases explain (method of moments), on
    the logit scale. Estimates of few answers count for less; the stated value counts as `RUN_DEGREES` of them.
    """
    squares, weight, repeated = RUN_DEGREES * RUN_SD**2, RUN_DEGREES, 0
    for runs in models:
        slope = runs.before[0].slope
        for means in runs.repeats if slope else ():
            explained = _interaction(means) / means.shape[1] / slope**2
            between = float(means.mean(axis=1).var(ddof=1)) / slope**2
            counts = (len(means) - 1) * (RUN_SD**2 / (RUN_SD**2 + explained)) ** 2
            squares += counts * max(0.0, between - explained)
            weight += counts
            repeated += len(means) - 1
    return RunEffect(sd=math.sqrt(max(0.0, squares / weight)), runs=repeated)


def parts_of(runs: Runs, run: RunEffect, error: float) -> list[NoisePart]:
    """Return each part of the noise with its standard deviation and what that is from, for people.

    `error` is the standard error over cases: what replicates and runs leave of it is how differently cases moved.
    """
    measured = f"{counted(run.runs, 'further run')} of one version"
    if run is ONE_RUN:
        of_run = "none: both versions were asked side by side"
    elif run.runs:
        of_run = f"{measured}, weighed with the value taken where there are none"
    else:
        of_run = f"taken to be {RUN_SD:g} on the logit scale, as no version was run twice"
    replicate = sum(arm.explained / len(arms) ** 2 for arms in (runs.before, runs.after) for arm in arms)
    of_runs = run.variance(runs)
    rest = max(0.0, error**2 - of_runs - replicate)
    of_cases = "how differently the cases moved, and what answers of one case have in common"
    parts = (("replicate", replicate, "the answers of each case"), ("case", rest, of_cases), ("run", of_runs, of_run))
    return [NoisePart(part=part, sd=rounded(math.sqrt(variance)), source=source) for part, variance, source in parts]


def _interaction(means: Floats) -> float:
    """Return the mean square of case × run, from the means by run (rows) and case (columns)."""
    rest = means - means.mean(axis=1, keepdims=True) - means.mean(axis=0) + means.mean()
    return float((rest**2).sum() / ((means.shape[0] - 1) * (means.shape[1] - 1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A measure with its runs, and its effect in each scope; None where it cannot be told.

    `of_runs` is the variance that runs as a whole add to the difference. `independent`: the replicates of a case are
    known to be independent draws.
    """

    measure: Measure
    runs: Runs
    before: Within
    after: Within
    independent: bool
    of_runs: float = 0.0
    effects: Mapping[Gate, Effect | None] = field(default_factory=dict)

    @classmethod
    def of(cls, measure: Measure, pair: Pair) -> "Measured":
        """Return a measure of a pair with what its single runs scored, and without its effect."""
        assert pair.baseline is not None  # noqa: S101  (nothing is measured without one)
        baselines, candidates = (pair.baseline, *pair.baseline_again), (pair.candidate, *pair.candidate_again)
        runs = Runs.of(*arms_of(measure, baselines, candidates))
        alone = len(runs.before) == len(runs.after) == 1  # then the measure has the scores of these runs, and no others
        before, after = (runs.before[0], runs.after[0]) if alone else map(within, (measure.before, measure.after))
        independent = measure.kind != "reproducibility"  # agreement is one value a case
        independent = independent and all(map(samples, (pair.baseline, pair.candidate)))
        return cls(measure=measure, runs=runs, before=before, after=after, independent=independent)

    def under(self, run: RunEffect) -> "Measured":
        """Return it with its effect in each scope, as far as a run as a whole moves it by that much."""
        of_runs = run.variance(self.runs) if run.sd else 0.0
        return replace(self, of_runs=of_runs, effects=effects_of(self.before, self.after, of_runs, self.independent))


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A pair with what it has in common, and its measures. Nothing is common without a baseline.

    `run` is the effect of a whole run that its measures allow for.
    """

    pair: Pair
    common: Common | None = None
    run: RunEffect = ONE_RUN
    measured: tuple[Measured, ...] = ()

    @property
    def judge(self) -> str | None:
        """The uncalibrated judge that decided some measure, if there is one."""
        return self.pair.unproved_judge if any(own.measure.judged for own in self.measured) else None

    def primary(self, metric: str) -> Measured | None:
        """Return the component's primary metric as it was measured, if it was."""
        return next((measured for measured in self.measured if measured.measure.name == metric), None)


def measure_all(
    pairs: Sequence[Pair], primary_metric: str, wanted: Callable[[Measure], bool] = lambda measure: True
) -> list[Compared]:
    """Measure what the records of each pair have in common, as far as it is `wanted`.

    The effect of a run is learned from the primary metric of all pairs.
    """
    matched = [_match(pair, lambda figure: wanted(figure) or figure.name == primary_metric) for pair in pairs]
    between_runs = run_effect(list(_runs_of(matched, primary_metric)))
    results = []
    for compared in matched:
        run = ONE_RUN if compared.pair.is_beside else between_runs
        results.append(replace(compared, run=run, measured=tuple(one.under(run) for one in compared.measured)))
    return results


def _runs_of(matched: Iterable[Compared], metric: str) -> Iterator[Runs]:
    """Yield the runs of a metric; a version that is in several pairs has its A/A runs in the first of them alone."""
    seen: set[str] = set()
    for compared in matched:
        versions = {"before": compared.pair.baseline, "after": compared.pair.candidate}
        repeated = {arm for arm, record in versions.items() if record is not None and record.run_id in seen}
        seen |= {record.run_id for record in versions.values() if record is not None}
        for measured in compared.measured:
            if measured.measure.name == metric and measured.measure.kind == "accuracy":
                yield replace(measured.runs, **{arm: getattr(measured.runs, arm)[:1] for arm in repeated})


def _moves_between(pair: Pair, baseline: Record) -> Iterator[str]:
    """Yield that the model was seen to move after the baseline was asked: that would pass for the prompt's doing."""
    version = baseline.skill_version
    if pair.any_served or pair.is_beside or version == pair.candidate.skill_version:
        return
    for run in (*pair.candidate_again, pair.candidate):
        if run.drift and run.drift.moved and run.timestamp > baseline.timestamp:
            yield f"the model moved after {version} was asked, though the prompt did not ({run.drift.moved[0]})"


def _match(pair: Pair, wanted: Callable[[Measure], bool]) -> Compared:
    """Return what the two have in common, measured, and without an effect yet."""
    if pair.baseline is None:
        return Compared(pair=pair)
    like = with_same_checks(pair)
    assert like.baseline is not None  # noqa: S101  (it has one as the pair has)
    before, after = pooled(like.baseline, like.baseline_again), pooled(like.candidate, like.candidate_again)
    common = common_part(before, after, any_served=pair.any_served)
    common = replace(
        common,
        barriers=(*common.barriers, *_moves_between(pair, pair.baseline)),
        remarks=(*common.remarks, *check_changes(pair.baseline, pair.candidate)),
    )
    if common.barriers:
        return Compared(pair=pair, common=common)
    shared = [name for name in pair.candidate.accuracy if name in pair.baseline.accuracy]
    figures = filter(wanted, measures(common.cases, shared))
    return Compared(pair=pair, common=common, measured=tuple(Measured.of(figure, like) for figure in figures))
