"""Loss that no single step shows: since the last accepted version, and over several runs of one version.

A look is a run that is held against the anchor. All looks together give no more false alarms than are accepted, however
many there are (`rules.spending`).
"""

from collections.abc import Sequence
from dataclasses import replace

from skill_evaluator.library.config import VerdictName
from skill_evaluator.verdicts.comparability import Pair
from skill_evaluator.verdicts.effects import Effect, adjusted
from skill_evaluator.verdicts.measuring import Compared, Measured, measure_all
from skill_evaluator.verdicts.missing import bounds_of
from skill_evaluator.verdicts.results import Watch
from skill_evaluator.verdicts.rules import VerdictRules, bounded_verdict, measure_verdict


def watch_anchors(pairs: Sequence[Pair], rules: VerdictRules) -> list[Watch | None]:
    """Return what became of the critical measures of each model since its anchor.

    None where there is no anchor, where the baseline is the anchor, and where the two are not comparable.
    """
    since = [
        replace(pair, baseline=pair.anchor, baseline_again=pair.anchor_again, anchor=None)
        for pair in pairs
        if pair.anchor is not None and not pair.is_since_anchor
    ]
    tested = [
        (compared, measured, effect)
        for compared in measure_all(since, rules.primary_metric, rules.is_critical)
        for measured in compared.measured
        if rules.is_critical(measured.measure) and (effect := measured.effects[rules.policy.gate]) is not None
    ]
    q_values = adjusted([effect.p for *_, effect in tested])
    watches: dict[str, Watch] = {}
    for (compared, measured, effect), q in zip(tested, q_values, strict=True):
        watch = _watch(compared, measured, effect, q, rules)
        model_id = compared.pair.candidate.model_id
        if model_id not in watches or watch.difference < watches[model_id].difference:
            watches[model_id] = watch
    return [None if pair.is_since_anchor else watches.get(pair.candidate.model_id) for pair in pairs]


def _watch(compared: Compared, measured: Measured, effect: Effect, q: float, rules: VerdictRules) -> Watch:
    pair, measure = compared.pair, measured.measure
    anchor = pair.baseline
    assert anchor is not None  # noqa: S101  (only pairs with an anchor are watched)
    level = rules.levels(measure, pair.look).fall
    low, high = effect.interval(2 * level)
    return Watch(
        anchor_version=anchor.skill_version,
        anchor_run_id=anchor.run_id,
        look=pair.look,
        metric=measure.name,
        difference=round(effect.difference, 6),
        interval=(round(low, 6), round(high, 6)),
        p=round(effect.p, 6),
        level=level,
        verdict=_verdict(compared, measured, q, rules, pair.look),
    )


def failed_before(pair: Pair, rules: VerdictRules, models: int) -> str | None:
    """Return the id of an earlier run of the candidate's version that, with those before it, was a regression.

    Trying again does not help: a version that fell beyond chance once needs runs that exclude the drop, a new version,
    or somebody who accepts it. Only critical measures count, at a level shared by all `models`.
    """
    runs = (*pair.candidate_again, pair.candidate)
    for after in range(1, len(runs)):
        prefix = replace(
            pair, candidate=runs[after - 1], candidate_again=runs[: after - 1], look=pair.look - len(runs) + after
        )
        (compared,) = measure_all([prefix], rules.primary_metric, rules.is_critical)
        for measured in compared.measured:
            effect = measured.effects[rules.policy.gate]
            if effect is None or not rules.is_critical(measured.measure):
                continue
            q = min(1.0, effect.p * models)
            if _verdict(compared, measured, q, rules, prefix.baseline_look) == "regressed":
                return runs[after - 1].run_id
    return None


def _verdict(compared: Compared, measured: Measured, q: float, rules: VerdictRules, look: int) -> VerdictName:
    """Return the verdict on a measure, whatever the missing answers would have been."""
    measure, tolerance = measured.measure, rules.tolerance(measured.measure)
    levels = rules.levels(measure, look)
    verdict = measure_verdict(measured.effects[rules.policy.gate], q, tolerance, levels, covered=True)
    missing = None if compared.common is None else bounds_of(compared.common.cases, measure.name, measure.kind)
    return bounded_verdict(verdict, missing, tolerance, rules.required_coverage)
