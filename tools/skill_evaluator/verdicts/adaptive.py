"""Is the verdict on a model settled before all of its replicates are asked? A group-sequential rule.

Looks come at fixed numbers of replicates. Each spends a share of the error in proportion to the replicates asked since
the look before (alpha spending, Lan and DeMets 1983, doi:10.1093/biomet/70.3.659). The shares add up by Bonferroni's
inequality, which assumes nothing of how the looks depend on each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, get_args

from scipy.special import stdtr, stdtrit

from skill_evaluator.library.config import VerdictName
from skill_evaluator.verdicts import randomisation
from skill_evaluator.verdicts.comparability import Pair
from skill_evaluator.verdicts.comparison import compare_records
from skill_evaluator.verdicts.effects import ALPHA, Effect
from skill_evaluator.verdicts.held_out import HELD_OUT
from skill_evaluator.verdicts.rules import VerdictRules, measure_verdict, model_verdict
from skill_evaluator.verdicts.strict_looks import VERDICTS, StrictLook, strict_verdicts
from skill_evaluator.verdicts.watched import critical_measures, watch

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
    """The effect on a critical measure so far, by the question that gates, and the drop of it that is tolerated."""

    effect: Effect | None
    tolerance: float


def looks_of(replicates: int) -> tuple[Look, ...]:
    """Return the looks before the end of a run, at most ten and evenly spaced; what a look saves is asked after it.

    >>> [look.after for look in looks_of(20)]
    [2, 4, 6, 8, 10, 12, 14, 16, 18]
    """
    step = -(-replicates // _MOST_LOOKS)
    ends = range(max(_LEAST_REPLICATES, step), replicates - HELD_OUT, step)
    return tuple(Look(after=end, share=(end - before) / replicates) for before, end in pairwise((0, *ends)))


def settled_between(pair: Pair, rules: VerdictRules, look: Look, models: int) -> Settled | None:
    """Return the verdict that a look settles between two records, the candidate's with what was asked so far."""
    if pair.baseline is None:
        return None
    (result,) = compare_records(rules.skill, [pair], rules).models
    if result.verdict not in get_args(Settled):
        return None
    gauges = [
        Gauge(effect=own.effects[rules.policy.gate], tolerance=rules.tolerance(own.measure))
        for own in critical_measures(pair, rules)
    ]
    verdict = settled(gauges, result.verdict, look.share, rules.alpha, models)
    watched = watch(pair, rules)
    if verdict is None or watched is None:
        return verdict
    # what other orders of the replicates are tried by must hold of the one that is
    strict = strict_look(look, rules.alpha, len(gauges) * models)
    ((seen,),) = strict_verdicts(watched, watched.after[None], [strict])
    return verdict if VERDICTS[seen] == verdict else None


def strict_look(look: Look, alpha: float, gauges: int) -> StrictLook:
    """Return a look with the level that p must reach at it on each of so many measures."""
    return StrictLook(after=look.after, share=look.share, level=alpha * CHANGE_SPENT * look.share / max(1, gauges))


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
    """Return the verdict on a measure with an interval that misses the truth in no more than `share` of 5 %.

    An interval stays as it is where nothing varied. There it bounds what may have gone unseen, and to have seen nothing
    at a later look is to have seen nothing at the first. Student's t continues p where it is the smallest that drawing
    can show.
    """
    effect = gauge.effect
    p = None if effect is None else effect.p
    if effect is not None and effect.error != 0.0:
        quantiles = stdtrit(effect.degrees, [1 - ALPHA * share / 2, 1 - ALPHA / 2])
        further = float(quantiles[0] - quantiles[1]) * effect.error
        low, high = effect.ci95
        if p == 1.0 / (randomisation.DRAWS + 1):
            p = min(p, 2.0 * float(stdtr(effect.degrees, -abs(effect.difference) / effect.error)))
        effect = replace(effect, ci95=(low - further, high + further))
    verdict = measure_verdict(effect, p, gauge.tolerance, level, covered=True)
    return "inconclusive" if verdict == "unchanged" and gauge.tolerance == 0.0 else verdict
