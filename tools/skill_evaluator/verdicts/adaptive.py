"""Whether the verdict on a model is settled before all of its replicates are asked: a group-sequential rule.

Looks come at fixed numbers of replicates, and each spends its share of the error by the replicates asked since the one
before (alpha spending, Lan and DeMets 1983, doi:10.1093/biomet/70.3.659). The shares add up by Bonferroni's inequality:
nothing is supposed of how the looks depend on each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, get_args

from scipy.special import stdtr, stdtrit

from skill_evaluator.library.config import VerdictName
from skill_evaluator.verdicts import randomisation
from skill_evaluator.verdicts.comparability import common_part
from skill_evaluator.verdicts.comparison import Pair, compare_records
from skill_evaluator.verdicts.effects import ALPHA, Effect, case_effects, replicate_effect
from skill_evaluator.verdicts.measures import Measure, measures
from skill_evaluator.verdicts.rules import VerdictRules, of_model, verdict

Settled = Literal["regressed", "improved", "unchanged"]
CHANGE_SPENT = 0.1  # of the accepted false alarms goes to the looks (after Haybittle and Peto); the end keeps its own
_MOST_LOOKS = 10
_LEAST_REPLICATES = 2  # fewer say nothing of chance


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A look after so many replicates of every case; `share` is its part of the error that looks may make."""

    after: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """What was measured so far of one critical measure, and the drop of it that is tolerated."""

    effect: Effect | None
    tolerance: float


def looks_of(replicates: int) -> tuple[Look, ...]:
    """The looks before the end of a run, at most ten and evenly spaced.

    >>> [look.after for look in looks_of(20)]
    [2, 4, 6, 8, 10, 12, 14, 16, 18]
    """
    step = -(-replicates // _MOST_LOOKS)
    ends = range(max(_LEAST_REPLICATES, step), replicates, step)
    return tuple(Look(after=end, share=(end - before) / replicates) for before, end in pairwise((0, *ends)))


def settled(gauges: Sequence[Gauge], ordinary: VerdictName, share: float, alpha: float, models: int) -> Settled | None:
    """What a look settles, if anything: the ordinary verdict, when the critical measures say the same more strictly.

    A change must be beyond the look's part of a tenth of alpha, divided by the critical measures of all `models` that
    run beside each other; that nothing fell beyond the tolerance must follow from an interval as much wider as its part
    of the error asks (a repeated confidence interval, Jennison and Turnbull 1989).
    """
    level = alpha * CHANGE_SPENT * share / max(1, len(gauges) * models)
    said = of_model(
        ("critical", verdict(_repeated(one.effect, share), _chance(one.effect), one.tolerance, level, covered=True))
        for one in gauges
    )
    return next((one for one in get_args(Settled) if one == said == ordinary), None)


def settled_between(pair: Pair, judge: VerdictRules, share: float, models: int) -> Settled | None:
    """The same of two records, the candidate's with what was asked so far."""
    if pair.baseline is None:
        return None
    (result,) = compare_records(judge.rules.skill, [pair], judge).models
    if result.verdict not in get_args(Settled):
        return None
    common = common_part(pair.baseline, pair.candidate)
    gauges = [
        Gauge(effect=_effect(one), tolerance=judge.rules.tolerance(one))
        for one in measures(common.cases, pair.candidate.accuracy)
        if judge.rules.tier(one) == "critical"
    ]
    return settled(gauges, result.verdict, share, judge.rules.alpha, models)


def _effect(measure: Measure) -> Effect | None:
    """On these fixtures; of agreement between replicates, which has one value a case, the cases are the sample."""
    if measure.kind == "reproducibility":
        return case_effects([measure.differences])[0]
    return replicate_effect(measure.before, measure.after)


def _repeated(effect: Effect | None, share: float) -> Effect | None:
    """With an interval that misses the truth in `share` of 5 % only. Where nothing varied it stays as it is.

    There it says what may have gone unseen; to have seen nothing at a later look is to have seen nothing at the first.
    """
    if effect is None or effect.error == 0.0:
        return effect
    quantiles = stdtrit(effect.degrees, [1 - ALPHA * share / 2, 1 - ALPHA / 2])
    further = float(quantiles[0] - quantiles[1]) * effect.error
    low, high = effect.ci95
    return replace(effect, ci95=(low - further, high + further))


def _chance(effect: Effect | None) -> float | None:
    """The p-value; where it is the least that drawing can show, Student's t continues it."""
    if effect is None:
        return None
    if effect.error == 0.0 or effect.p != 1.0 / (randomisation.DRAWS + 1):
        return effect.p
    return min(effect.p, 2.0 * float(stdtr(effect.degrees, -abs(effect.difference) / effect.error)))
