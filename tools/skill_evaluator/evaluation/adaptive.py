"""`evaluate --adaptive`: is the verdict on a model settled before all of its replicates are asked?

A group-sequential rule. Looks come at fixed numbers of replicates. Each spends a share of the error in proportion to
the replicates asked since the look before (alpha spending, Lan and DeMets 1983, doi:10.1093/biomet/70.3.659). The
shares add up by Bonferroni's inequality, which assumes nothing of how the looks depend on each other.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, variance
from typing import TYPE_CHECKING, Literal, get_args

from skill_evaluator.evaluation.inputs import Inputs
from skill_evaluator.evaluation.request import EvaluationRequest
from skill_evaluator.library.config import VerdictName
from skill_evaluator.records.archive import Archive, RecordedRun, entry_of
from skill_evaluator.records.record import AdaptiveLooks, CorrectedMean, Record, strict_by_replicate
from skill_evaluator.records.selection import usual_baseline, why_no_lower
from skill_evaluator.runner.journal import Looks, Manifest
from skill_evaluator.runner.runs import Run
from skill_evaluator.scoring.recording import Recorder
from skill_evaluator.scoring.scorer import Scorer
from skill_evaluator.stats import ALPHA, unseen_share
from skill_evaluator.verdicts.decide.comparability import Pair, common_part
from skill_evaluator.verdicts.decide.rules import VerdictRules, model_verdict, rules_for
from skill_evaluator.verdicts.history.baselines import pair_of

if TYPE_CHECKING:  # numpy is imported where a run is looked at
    from skill_evaluator.verdicts.decide.effects import Effect

Settled = Literal["regressed", "improved", "unchanged"]
HELD_OUT = 2  # replicates of every case that are asked after the decision to stop: the fewest that show their own noise
CHANGE_SPENT = 0.1  # of the accepted false alarms goes to the looks (after Haybittle and Peto); the end keeps its own
_MOST_LOOKS = 10
_LEAST_REPLICATES = 2  # fewer say nothing of chance


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A look `after` some replicates of every case; `share` is its part of the error that looks may make."""

    after: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """The effect on a critical measure so far, by the question that gates, and the drop of it that is tolerated."""

    effect: "Effect | None"
    tolerance: float


def looks_of(replicates: int) -> tuple[Look, ...]:
    """Return the looks before the end of a run, at most ten and evenly spaced; what a look saves is asked after it.

    >>> [look.after for look in looks_of(20)]
    [2, 4, 6, 8, 10, 12, 14, 16]
    """
    step = -(-replicates // _MOST_LOOKS)
    ends = range(max(_LEAST_REPLICATES, step), replicates - HELD_OUT, step)
    return tuple(Look(after=end, share=(end - before) / replicates) for before, end in pairwise((0, *ends)))


def settled_between(pair: Pair, rules: VerdictRules, look: Look, models: int) -> Settled | None:
    """Return the verdict that a look settles between two records, the candidate's with what was asked so far."""
    from skill_evaluator.verdicts.decide.comparison import compare_records
    from skill_evaluator.verdicts.decide.measuring import measure_all

    if pair.baseline is None:
        return None
    (result,) = compare_records(rules.skill, [pair], rules).models
    if result.verdict not in get_args(Settled):
        return None
    (compared,) = measure_all([pair], rules.primary_metric, rules.is_critical)
    gauges = [
        Gauge(effect=own.effects[rules.policy.gate], tolerance=rules.tolerance(own.measure))
        for own in compared.measured
        if rules.is_critical(own.measure)
    ]
    return settled(gauges, result.verdict, look.share, rules.alpha, models)


def settled(gauges: Sequence[Gauge], ordinary: VerdictName, share: float, alpha: float, models: int) -> Settled | None:
    """Return the ordinary verdict if a look settles it: if the critical measures give the same one more strictly.

    A change must be beyond the look's `share` of a tenth of alpha, divided by the critical measures of all `models`
    that run beside each other. A drop beyond the tolerance must be excluded by an interval that is as much wider as
    the look's share of the error asks (a repeated confidence interval, Jennison and Turnbull 1989). Where no drop is
    tolerated, no look settles that none will be seen.
    """
    level = alpha * CHANGE_SPENT * share / max(1, len(gauges) * models)
    strict = model_verdict(("critical", _strict_verdict(gauge, share, level)) for gauge in gauges)
    return next((verdict for verdict in get_args(Settled) if verdict == strict == ordinary), None)


def _strict_verdict(gauge: Gauge, share: float, level: float) -> VerdictName:
    """Return the verdict at a look that calls a change falsely in `level`, and misses a drop in `share` of 5 %.

    It rests on the difference, its standard error and the degrees of freedom. What else the ordinary verdict asks for,
    a settled one has too: it is the same.
    """
    from scipy.special import stdtrit

    effect = gauge.effect
    if effect is None or (effect.error == 0.0 and unseen_share(effect.n) > gauge.tolerance):
        return "inconclusive"  # answers that are all alike are asked for until a rare other one would have shown
    to_change, to_exclude = stdtrit(effect.degrees, [1 - level / 2, 1 - ALPHA * share / 2]) * effect.error
    if effect.difference - to_exclude < -gauge.tolerance:
        return "regressed" if effect.difference < -to_change else "inconclusive"
    return "improved" if effect.difference > to_change else "unchanged" if gauge.tolerance else "inconclusive"


def corrected_means(record: Record, seen: int) -> dict[str, CorrectedMean]:
    """Return by accuracy metric the strict mean of what no look saw: of all but the first `seen` replicates.

    No look chose these answers, so their mean is unbiased whether a look stopped the run or none did.
    """
    means = {}
    for name in record.accuracy:
        cases = [strict_by_replicate(case, name)[seen:] for case in record.per_case]
        unseen = [[score for score in case if score is not None] for case in cases]
        if any(unseen):
            means[name] = _mean_on_these([case for case in unseen if case])
    return means


def _mean_on_these(cases: Sequence[Sequence[float]]) -> CorrectedMean:
    """Return the mean over cases, and the 95 % interval of what these very cases are expected to score.

    It is Student's t on the noise within cases, and never narrower than a score allows that no answer has shown: that
    has a probability of at most 1 − 0.05^(1/n) (`unit_interval` says the same of cases).
    """
    from scipy.special import stdtrit

    mean, unseen = fmean(map(fmean, cases)), unseen_share(sum(map(len, cases)))
    half, repeated = 1.0, [case for case in cases if len(case) > 1]
    if repeated:
        degrees = sum(len(case) - 1 for case in repeated)
        spread = fmean(map(variance, repeated)) * sum(1 / len(case) for case in cases) / len(cases) ** 2
        half = float(stdtrit(degrees, 1 - ALPHA / 2)) * math.sqrt(spread)
    low = max(0.0, min(mean - half, mean * (1 - unseen)))
    high = min(1.0, max(mean + half, mean * (1 - unseen) + unseen))
    return CorrectedMean(strict_mean=round(mean, 6), ci95=(round(low, 6), round(high, 6)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookout:
    """Looks at one run between its replicates. `models`: those that are run beside it."""

    run: Run
    scorer: Scorer
    inputs: Inputs
    archive: Archive
    baseline: RecordedRun
    rules: VerdictRules
    models: int
    looks: "tuple[Look, ...]"

    @property
    def places(self) -> list[int]:
        """The numbers of replicates after which it looks."""
        return [look.after for look in self.looks]

    def look(self, after: int) -> Looks:
        """Return the looks up to this one, and what it settles; no call of the run may be in flight."""
        candidate = _so_far(self.run, self.scorer, self.inputs, after)
        pair = pair_of(candidate, self.baseline, self.archive, self.rules.policy)
        pair = replace(pair, candidate_again=())  # a look is at the run that is asked, and no earlier one
        (look,) = (look for look in self.looks if look.after == after)
        verdict = settled_between(pair, self.rules, look, self.models)
        return Looks(
            after=tuple(place for place in self.places if place <= after),
            against=self.baseline.run_id,
            verdict=verdict,
            enough=after + HELD_OUT if verdict else None,
        )


def lookout_for(run: Run, scorer: Scorer, inputs: Inputs, request: EvaluationRequest, models: int) -> Lookout | None:
    """Return who looks at an adaptive run; None, with a line on stderr, if it cannot be compared."""
    if not run.manifest.adaptive:
        return None

    archive = Archive(inputs.component)
    candidate = _so_far(run, scorer, inputs, run.manifest.replicates)
    entry = entry_of(candidate)
    baseline = usual_baseline(entry, archive, inputs.settings.policy)
    against = None if baseline is None else archive.record(baseline)
    absent = why_no_lower(archive.entries, entry)
    reason = next(_find_obstacles(against, candidate, inputs, absent), None)
    if reason is not None or baseline is None:
        print(f"{run.model.id}: --adaptive saves nothing, all replicates are asked: {reason}", file=sys.stderr)
        return None
    return Lookout(
        run=run,
        scorer=scorer,
        inputs=inputs,
        archive=archive,
        baseline=baseline,
        rules=rules_for(inputs.settings, request.config, candidate),
        models=models,
        looks=looks_of(run.manifest.replicates),
    )


def with_looks(record: Record, manifest: Manifest) -> Record:
    """Return the record of a run; of an adaptive one with the looks at it, and its means corrected for them."""
    looks = manifest.looks
    if looks is None:
        return record

    adaptive = AdaptiveLooks(
        planned_replicates=manifest.replicates,
        looks=list(looks.after),
        verdict=looks.verdict,
        against=looks.against,
        corrected=corrected_means(record, looks.after[-1]) if record.complete else {},
    )
    return record.model_copy(update={"adaptive": adaptive})


def _find_obstacles(baseline: Record | None, candidate: Record, inputs: Inputs, absent: str) -> Iterator[str]:
    """Yield the reasons why no number of replicates would settle a verdict."""
    if baseline is None:
        yield absent
        return
    if inputs.settings.policy.gate == "beyond":
        yield "the policy asks what holds beyond these cases, which cases tell and replicates do not"
    common = common_part(baseline, candidate, any_served=inputs.settings.policy.served == "any")
    yield from common.barriers
    if not common.cases:
        yield "no case is the same in both"


def _so_far(run: Run, scorer: Scorer, inputs: Inputs, replicates: int) -> Record:
    """Return what the record would be if no more than these replicates were asked."""
    recorder = Recorder(component=inputs.component, settings=inputs.settings, kinds=inputs.kinds)
    return recorder.record(run.model, run.manifest, scorer.scorecard(replicates))
