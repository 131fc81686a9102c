"""Pairs of records → every measure that both have, with its effect. Nothing here knows a verdict."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.decide.comparability import RUN_SD, Common, Measure, Pair, common_part, measures, pooled
from skill_evaluator.verdicts.decide.effects import ArmStatistics, Effect, paired_effect, replicate_effect
from skill_evaluator.verdicts.decide.missing_outputs import Missing, bounds_of
from skill_evaluator.verdicts.decide.same_checks import check_changes, with_same_checks


def samples(record: Record) -> bool:
    """Return whether the replicates of a case are known to be independent draws: the provider samples each.

    Nothing is known of outputs that were replayed or imported, and the deterministic profile aims at equal outputs.
    """
    return record.settings is not None and record.settings.profile == "sampled" and record.provider != "replay"


def run_variance(pair: Pair, before: ArmStatistics) -> float:
    """Return the variance that two different days add to the difference."""
    if pair.is_beside:
        return 0.0
    runs = 1 / (1 + len(pair.baseline_again)) + 1 / (1 + len(pair.candidate_again))
    return runs * (RUN_SD * before.slope) ** 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A measure with its effect; None for a single case whose replicates are not known to be independent draws.

    `of_runs` is the variance that a day between two runs adds. `is_sampled`: the replicates are independent draws. `q`
    is p, adjusted over a `family` of so many measures; None if the measure is not tested.
    """

    measure: Measure
    before: ArmStatistics
    after: ArmStatistics
    of_runs: float = 0.0
    is_sampled: bool = False
    effect: Effect | None = None
    missing: Missing | None = None
    q: float | None = None
    family: int = 1

    @classmethod
    def of(cls, measure: Measure, pair: Pair, common: Common) -> "Measured":
        """Measure what two versions differ by."""
        before, after = ArmStatistics.of(measure.before), ArmStatistics.of(measure.after)
        has_replicates = measure.kind != "reproducibility"  # agreement is one value a case
        own = cls(
            measure=measure,
            before=before,
            after=after,
            of_runs=run_variance(pair, before),
            is_sampled=has_replicates and all(run is not None and samples(run) for run in pair.runs),
            missing=bounds_of(common.cases, measure.name, measure.kind),
        )
        return replace(own, effect=own.effect_if(is_sampled=own.is_sampled))

    def effect_if(self, *, is_sampled: bool) -> Effect | None:
        """Return the effect if replicates are independent draws (`is_sampled`), or if only cases are."""
        sampled = replicate_effect(self.before, self.after, self.of_runs) if is_sampled else None
        return sampled or paired_effect(self.before, self.after, self.of_runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A pair with what it has in common, and its measures. Nothing is common without a baseline."""

    pair: Pair
    common: Common | None = None
    measured: tuple[Measured, ...] = ()

    @property
    def judge(self) -> str | None:
        """The uncalibrated judge that decided some measure, if there is one."""
        return self.pair.unproved_judge if any(own.measure.judged for own in self.measured) else None

    def primary(self, metric: str) -> Measured | None:
        """Return the measured primary metric of the component, if both records have it."""
        return next((measured for measured in self.measured if measured.measure.name == metric), None)


def measure_all(pairs: Sequence[Pair], wanted: Callable[[Measure], bool] = lambda measure: True) -> list[Compared]:
    """Measure what the records of each pair have in common, as far as it is `wanted`."""
    return [Compared(pair=pair) if pair.baseline is None else _measure(pair, pair.baseline, wanted) for pair in pairs]


def _measure(pair: Pair, baseline: Record, wanted: Callable[[Measure], bool]) -> Compared:
    like = with_same_checks(pair)
    assert like.baseline is not None  # noqa: S101  (it has one as the pair has)
    before, after = pooled(like.baseline, like.baseline_again), pooled(like.candidate, like.candidate_again)
    common = common_part(before, after, any_served=pair.any_served)
    common = replace(
        common,
        barriers=(*common.barriers, *_moves_between(pair, baseline)),
        remarks=(*common.remarks, *check_changes(baseline, pair.candidate)),
    )
    if common.barriers:
        return Compared(pair=pair, common=common)
    shared = [name for name in pair.candidate.accuracy if name in baseline.accuracy]
    figures = filter(wanted, measures(common.cases, shared))
    return Compared(pair=pair, common=common, measured=tuple(Measured.of(figure, like, common) for figure in figures))


def _moves_between(pair: Pair, baseline: Record) -> Iterator[str]:
    """Yield that the model moved after the baseline was run: the difference would count for the prompt's."""
    version = baseline.skill_version
    if pair.any_served or pair.is_beside or version == pair.candidate.skill_version:
        return
    for run in (*pair.candidate_again, pair.candidate):
        if run.drift and run.drift.moved and run.timestamp > baseline.timestamp:
            yield f"the model moved after {version} was asked, though the prompt did not ({run.drift.moved[0]})"
