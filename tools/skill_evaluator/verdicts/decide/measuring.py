"""Pairs of records → every measure that both have, its effect on these cases and beyond them, and the noise of runs.

Two records hold one run each, so that a run and a version cannot be told apart in them. Further runs of one version
(A/A runs, and the baselines that were asked beside other versions) tell what a run adds; without them a stated value
stands in. Nothing here knows a verdict.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from skill_evaluator.library.config import Gate
from skill_evaluator.records.record import Record
from skill_evaluator.text import counted
from skill_evaluator.verdicts.decide.comparability import Common, Measure, Pair, arms_of, common_part, measures, pooled
from skill_evaluator.verdicts.decide.effects import (
    Arm,
    Effect,
    Floats,
    Within,
    beyond,
    both,
    paired_effect,
    replicate_effect,
)

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
        return cls(before=tuple(map(Within.of, before)), after=tuple(map(Within.of, after)))

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


def parts_of(runs: Runs, run: RunEffect, error: float) -> list[tuple[str, float, str]]:
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
    return [
        ("replicate", math.sqrt(replicate), "the answers of each case"),
        ("case", math.sqrt(rest), "how differently the cases moved, and what answers of one case have in common"),
        ("run", math.sqrt(of_runs), of_run),
    ]


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
    of_runs: float
    independent: bool
    effects: dict[Gate, Effect | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A pair with what it has in common, and its measures. Nothing is common without a baseline.

    `run` is the effect of a whole run that its measures allow for.
    """

    pair: Pair
    common: Common | None
    run: RunEffect
    measured: tuple[Measured, ...] = ()

    def primary(self, metric: str) -> Measured | None:
        """Return the component's primary metric as it was measured, if it was."""
        return next((measured for measured in self.measured if measured.measure.name == metric), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Matched:
    """A pair with the figures of its common part, and for each figure what its single runs scored."""

    pair: Pair
    common: Common | None = None
    figures: tuple[Measure, ...] = ()
    runs: tuple[Runs, ...] = ()

    @property
    def independent(self) -> bool:
        """Whether the replicates of a case are known to be independent draws, in both versions."""
        return all(samples(record) for record in (self.pair.baseline, self.pair.candidate) if record is not None)


def measure_all(
    pairs: Sequence[Pair], primary_metric: str, wanted: Callable[[Measure], bool] = lambda measure: True
) -> list[Compared]:
    """Measure what the records of each pair have in common, as far as it is `wanted`.

    The effect of a run is learned from the primary metric of all pairs.
    """
    matched = [_match(pair, lambda figure: wanted(figure) or figure.name == primary_metric) for pair in pairs]
    between_runs = run_effect(list(_runs_of(matched, primary_metric)))
    return [_measure(match, ONE_RUN if match.pair.is_beside else between_runs) for match in matched]


def _runs_of(matched: Iterable[_Matched], metric: str) -> Iterator[Runs]:
    """Yield the runs of a metric; a version that is in several pairs has its A/A runs in the first of them alone."""
    seen: set[str] = set()
    for match in matched:
        versions = {"before": match.pair.baseline, "after": match.pair.candidate}
        repeated = {arm for arm, record in versions.items() if record is not None and record.run_id in seen}
        seen |= {record.run_id for record in versions.values() if record is not None}
        for figure, runs in zip(match.figures, match.runs, strict=True):
            if figure.name == metric and figure.kind == "accuracy":
                yield replace(runs, **{arm: getattr(runs, arm)[:1] for arm in repeated})


def _match(pair: Pair, wanted: Callable[[Measure], bool]) -> _Matched:
    if pair.baseline is None:
        return _Matched(pair=pair)
    before, after = pooled(pair.baseline, pair.baseline_again), pooled(pair.candidate, pair.candidate_again)
    common = common_part(before, after, any_served=pair.any_served)
    if common.barriers:
        return _Matched(pair=pair, common=common)
    shared = [name for name in pair.candidate.accuracy if name in pair.baseline.accuracy]
    figures = tuple(filter(wanted, measures(common.cases, shared)))
    baselines, candidates = (pair.baseline, *pair.baseline_again), (pair.candidate, *pair.candidate_again)
    runs = tuple(Runs.of(*arms_of(figure, baselines, candidates)) for figure in figures)
    return _Matched(pair=pair, common=common, figures=figures, runs=runs)


def _measure(match: _Matched, run: RunEffect) -> Compared:
    measured = []
    for figure, runs in zip(match.figures, match.runs, strict=True):
        alone = len(runs.before) == len(runs.after) == 1  # then the figure has the scores of these runs, and no others
        before, after = (runs.before[0], runs.after[0]) if alone else map(Within.of, (figure.before, figure.after))
        of_runs = run.variance(runs) if run.sd else 0.0
        independent = match.independent and figure.kind != "reproducibility"  # agreement is one value a case
        paired = paired_effect(before, after, of_runs)
        these = (replicate_effect(before, after, of_runs) if independent else None) or paired
        others = None if paired is None else beyond(paired, len(figure.case_ids))
        effects: dict[Gate, Effect | None] = {"these": these, "both": both(these, others), "beyond": others}
        measured.append(
            Measured(
                measure=figure,
                runs=runs,
                before=before,
                after=after,
                of_runs=of_runs,
                independent=independent,
                effects=effects,
            )
        )
    return Compared(pair=match.pair, common=match.common, run=run, measured=tuple(measured))
