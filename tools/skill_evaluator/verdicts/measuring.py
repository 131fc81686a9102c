"""Pairs of records → every measure that both have, its effect on these cases and beyond them, and the noise of runs.

Its own module because it ends where decisions begin: nothing here knows a verdict.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from skill_evaluator.library.config import Gate
from skill_evaluator.verdicts.comparability import Common, Measure, Pair, arms_of, common_part, measures
from skill_evaluator.verdicts.effects import Effect, Within, beyond, both, paired_effect, replicate_effect
from skill_evaluator.verdicts.noise import ONE_RUN, RunEffect, Runs, run_effect, samples
from skill_evaluator.verdicts.pooling import pooled


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
