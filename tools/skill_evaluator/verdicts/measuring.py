"""Pairs of records → every measure that both have, its effect by either question, and the noise that it stands in.

Its own module because it ends where decisions begin: nothing here knows a verdict.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from skill_evaluator.library.config import Gate
from skill_evaluator.verdicts.comparability import Common, Measure, Pair, arms_of, common_part, measures
from skill_evaluator.verdicts.effects import Effect, both, case_effects, replicate_effect
from skill_evaluator.verdicts.noise import ONE_RUN, RunEffect, RunNoise, Runs, noise_of, run_effect, samples
from skill_evaluator.verdicts.pooling import pooled


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A measure with its noise, and its effect by each question; None where it cannot be told."""

    measure: Measure
    noise: RunNoise
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
        return next((own for own in self.measured if own.measure.name == metric), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Matched:
    """A pair with the figures of its common part, and for each figure what its single runs scored."""

    pair: Pair
    common: Common | None = None
    figures: tuple[Measure, ...] = ()
    runs: tuple[Runs, ...] = ()

    @property
    def interleaved(self) -> bool:
        """Whether both versions were asked in one run."""
        baseline, candidate = self.pair.baseline, self.pair.candidate
        return baseline is not None and candidate.beside == baseline.run_id

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
    matched = [_match(pair, lambda own: wanted(own) or own.name == primary_metric) for pair in pairs]
    between_runs = run_effect(list(_runs_of(matched, primary_metric)))
    return [_measure(match, ONE_RUN if match.interleaved else between_runs) for match in matched]


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
    common = common_part(before, after)
    if common.barriers:
        return _Matched(pair=pair, common=common)
    shared = [name for name in pair.candidate.accuracy if name in pair.baseline.accuracy]
    figures = tuple(filter(wanted, measures(common.cases, shared)))
    baselines, candidates = (pair.baseline, *pair.baseline_again), (pair.candidate, *pair.candidate_again)
    runs = tuple(Runs.of(*arms_of(figure, baselines, candidates)) for figure in figures)
    return _Matched(pair=pair, common=common, figures=figures, runs=runs)


def _measure(match: _Matched, run: RunEffect) -> Compared:
    noises = [noise_of(runs, run, independent=match.independent) for runs in match.runs]
    beyond = case_effects([figure.differences for figure in match.figures], extras=[noise.run for noise in noises])
    measured = []
    for figure, noise, effect in zip(match.figures, noises, beyond, strict=True):
        fixtures = effect  # where a case counts as one draw, and for agreement, which is one value a case
        if figure.kind != "reproducibility" and noise.case_run is not None:
            fixtures = replicate_effect(figure.before, figure.after, extra=noise.unshown) or effect
        effects: dict[Gate, Effect | None] = {
            "fixtures": fixtures,
            "generalises": effect,
            "robust": both(fixtures, effect),
        }
        measured.append(Measured(measure=figure, noise=noise, effects=effects))
    return Compared(pair=match.pair, common=match.common, run=run, measured=tuple(measured))
