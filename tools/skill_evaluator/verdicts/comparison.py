"""Pairs of records, a policy and waivers → verdicts on every measure, model and on the component.

The story: what is comparable → what can be measured → how big, how sure (both questions) → q over the whole family →
verdicts → where.
"""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skill_evaluator.library.config import VerdictName
from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.comparability import Common, common_part
from skill_evaluator.verdicts.effects import Effect, adjusted, case_effects, replicate_effect, unseen_share
from skill_evaluator.verdicts.localising import changed_cases, profile_of, side_of
from skill_evaluator.verdicts.measures import Measure, measures
from skill_evaluator.verdicts.results import Cases, ComparisonResult, MeasureResult, ModelVerdict, Scope, Waived
from skill_evaluator.verdicts.rules import VerdictRules, Waiver, of_component, of_model, verdict, waiver_for

FAMILY = "all metrics and fields of all models, Benjamini-Hochberg"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The records of one model to compare; without a baseline there is nothing to compare with: `absent` says why."""

    baseline: Record | None
    candidate: Record
    absent: str = "there is no complete record of a lower version to compare with"


@dataclass(frozen=True, slots=True, kw_only=True)
class _MeasuredEffect:
    """A measure with its effect by either question."""

    measure: Measure
    fixtures: Effect | None
    generalises: Effect | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """An effect in its family: its q-value, and how many effects the family has."""

    effect: Effect
    q: float
    family: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """One pair, measured."""

    pair: Pair
    common: Common | None
    measured: tuple[_MeasuredEffect, ...]


def compare_records(
    skill: str, pairs: Sequence[Pair], judge: VerdictRules, left_out: Mapping[str, str] | None = None
) -> ComparisonResult:
    """The verdict on a component from the records of its models; `left_out`, models without one, are shown only."""
    compared = [_measure(pair) for pair in pairs]
    every = [one for model in compared for one in model.measured]
    on_fixtures = _within_family([one.fixtures for one in every])
    beyond = _within_family([one.generalises for one in every])
    models, at = [], 0
    for model in compared:
        end = at + len(model.measured)
        models.append(_model(model, on_fixtures[at:end], beyond[at:end], judge))
        at = end
    return ComparisonResult(
        skill=skill,
        verdict=of_component(one.verdict for one in models),
        generalises=of_component(one.generalises for one in models),
        gate=judge.rules.policy.gate,
        alpha=judge.rules.alpha,
        family=FAMILY,
        models=models,
        left_out=dict(left_out or {}),
    )


def _measure(pair: Pair) -> _Compared:
    if pair.baseline is None:
        return _Compared(pair=pair, common=None, measured=())
    common = common_part(pair.baseline, pair.candidate)
    if common.barriers:
        return _Compared(pair=pair, common=common, measured=())
    shared = [name for name in pair.candidate.accuracy if name in pair.baseline.accuracy]
    found = list(measures(common.cases, shared))
    beyond = case_effects([one.differences for one in found])
    measured = tuple(
        _MeasuredEffect(measure=one, fixtures=_on_fixtures(one, effect), generalises=effect)
        for one, effect in zip(found, beyond, strict=True)
    )
    return _Compared(pair=pair, common=common, measured=measured)


def _on_fixtures(measure: Measure, beyond: Effect | None) -> Effect | None:
    """Agreement between replicates is one value a case: the cases are its sample by either question."""
    return beyond if measure.kind == "reproducibility" else replicate_effect(measure.before, measure.after)


def _within_family(effects: Sequence[Effect | None]) -> list[_Known | None]:
    q_values = adjusted([effect.p for effect in effects if effect is not None])
    known = iter(q_values)
    return [
        None if effect is None else _Known(effect=effect, q=next(known), family=len(q_values)) for effect in effects
    ]


def _model(
    compared: _Compared, on_fixtures: Sequence[_Known | None], beyond: Sequence[_Known | None], judge: VerdictRules
) -> ModelVerdict:
    pair, common = compared.pair, compared.common
    coverage = _coverage(pair, common)
    covered = coverage >= judge.required_coverage
    results = [
        _result(one, here, elsewhere, compared, judge, covered=covered)
        for one, here, elsewhere in zip(compared.measured, on_fixtures, beyond, strict=True)
    ]
    comparable = common is not None and not common.barriers and bool(common.cases)
    fixtures = _overall(results, comparable, "fixtures")
    generalises = _overall(results, comparable, "generalises")
    metrics = [one for one in results if one.kind != "field"]
    return ModelVerdict(
        model_id=pair.candidate.model_id,
        verdict=fixtures if judge.rules.policy.gate == "fixtures" else generalises,
        generalises=generalises,
        stability=_stability(metrics, comparable),
        coverage=round(coverage, 6),
        metrics=metrics,
        fields=[one for one in results if one.kind == "field"],
        cases=_cases(compared, judge),
        baseline=None if pair.baseline is None else side_of(pair.baseline),
        candidate=side_of(pair.candidate),
        reasons=_reasons(compared, [one for one in results if _weighs(one)], coverage, judge),
    )


def _coverage(pair: Pair, common: Common | None) -> float:
    """The least of: planned replicates that were answered, on either side, and cases of the baseline that are kept."""
    if pair.baseline is None or common is None:
        return pair.candidate.coverage
    kept = len(common.cases) / max(1, len(pair.baseline.per_case))
    return min(pair.candidate.coverage, pair.baseline.coverage, kept)


def _result(
    one: _MeasuredEffect,
    here: _Known | None,
    elsewhere: _Known | None,
    compared: _Compared,
    judge: VerdictRules,
    *,
    covered: bool,
) -> MeasureResult:
    measure, rules = one.measure, judge.rules
    tolerance = rules.tolerance(measure)
    fixtures = _scope(here, tolerance, rules.alpha, covered=covered)
    generalises = _scope(elsewhere, tolerance, rules.alpha, covered=covered)
    gating = fixtures if rules.policy.gate == "fixtures" else generalises
    waiver = waiver_for(measure, rules.skill, compared.pair.candidate.model_id, judge.waivers)
    is_field = measure.kind == "field"
    pair = compared.pair
    return MeasureResult(
        metric=measure.name,
        kind=measure.kind,
        tier=rules.tier(measure),
        tolerance=tolerance,
        baseline=_mean(measure.before),
        candidate=_mean(measure.after),
        difference=round(sum(measure.differences) / len(measure.differences), 6),
        ci95=gating.ci95,
        p=gating.p,
        q=gating.q,
        n_cases=len(measure.case_ids),
        detectable_drop=gating.detectable_drop,
        verdict=gating.verdict,
        fixtures=fixtures,
        generalises=generalises,
        waived=_waived(waiver, gating.verdict, judge.today),
        profile_before=profile_of(pair.baseline, measure.name) if is_field and pair.baseline else None,
        profile_after=profile_of(pair.candidate, measure.name) if is_field else None,
    )


def _scope(known: _Known | None, tolerance: float, alpha: float, *, covered: bool) -> Scope:
    if known is None:
        return Scope(verdict=verdict(None, None, tolerance, alpha, covered=covered))
    effect = known.effect
    detectable = effect.detectable(alpha / known.family)
    return Scope(
        difference=round(effect.difference, 6),
        ci95=(round(effect.ci95[0], 6), round(effect.ci95[1], 6)),
        p=round(effect.p, 6),
        q=round(known.q, 6),
        n=effect.n,
        detectable_drop=None if detectable is None else round(detectable, 6),
        verdict=verdict(effect, known.q, tolerance, alpha, covered=covered),
    )


def _mean(arm: Sequence[Sequence[float]]) -> float:
    return round(sum(sum(case) / len(case) for case in arm) / len(arm), 6)


def _waived(waiver: Waiver | None, said: VerdictName, today: datetime.date) -> Waived | None:
    if waiver is None or said != "regressed":
        return None
    return Waived(reason=waiver.reason, expires=waiver.expires.isoformat(), in_force=today <= waiver.expires)


def _overall(results: Sequence[MeasureResult], comparable: bool, question: str) -> VerdictName:
    if not comparable:
        return "incomparable"
    return of_model(
        (one.tier, getattr(one, question).verdict) for one in results if not (one.waived and one.waived.in_force)
    )


def _stability(metrics: Sequence[MeasureResult], comparable: bool) -> VerdictName:
    """The verdict on the agreement between replicates, whatever the accuracy did."""
    if not comparable:
        return "incomparable"
    return of_model(("critical", one.verdict) for one in metrics if one.kind == "reproducibility")


def _cases(compared: _Compared, judge: VerdictRules) -> Cases:
    if compared.common is None or compared.common.barriers:
        return Cases(broke=[], fixed=[], left_out={})
    primary = next((one.measure for one in compared.measured if one.measure.name == judge.rules.primary_metric), None)
    broke, fixed = ([], []) if primary is None else changed_cases(compared.common.cases, primary, judge.rules)
    return Cases(broke=broke, fixed=fixed, left_out=compared.common.left_out)


def _weighs(one: MeasureResult) -> bool:
    """Whether a measure is among the reasons: every metric, and the fields that are more than advisory."""
    return one.kind != "field" or one.tier != "advisory"


def _reasons(compared: _Compared, results: Sequence[MeasureResult], coverage: float, judge: VerdictRules) -> list[str]:
    """Why the verdict is what it is, in words; the weightiest first."""
    if compared.pair.baseline is None or compared.common is None:
        return [compared.pair.absent]
    common = compared.common
    reasons = [f"not comparable: {barrier}" for barrier in common.barriers]
    if not common.cases:
        reasons.append("not comparable: no case is the same in both")
    if coverage < judge.required_coverage:
        reasons.append(f"coverage {coverage:.2f} is below the required {judge.required_coverage:.2f}")
    if compared.measured and all(one.fixtures is None for one in compared.measured if one.measure.kind == "accuracy"):
        reasons.append("one replicate a case says nothing of chance on these fixtures")
    for one in results:
        if one.verdict == "regressed":
            waived = one.waived is not None and one.waived.in_force
            reasons.append(f"{one.metric} fell from {one.baseline:.3f} to {one.candidate:.3f}{' (waived)' * waived}")
    flat = all(one.verdict != "regressed" for one in results if one.kind == "accuracy")
    if flat and any(one.verdict == "regressed" for one in results if one.kind == "reproducibility"):
        reasons.append("a stability regression: answers agree less while accuracy is not worse")
    reasons += [_tolerated(one) for one in results if _is_tolerated(one, judge.rules.alpha)]
    reasons += [
        f"{one.metric} rose from {one.baseline:.3f} to {one.candidate:.3f}"
        for one in results
        if one.tier == "critical" and one.verdict == "improved"
    ]
    critical = [one for one in results if one.tier == "critical" and one.verdict == "inconclusive"]
    reasons += [_undecided(one) for one in critical if one.ci95 is not None]
    reasons += common.remarks
    if common.left_out:
        reasons.append(f"{len(common.left_out)} cases left out: " + ", ".join(list(common.left_out)[:5]))
    return reasons


def _undecided(one: MeasureResult) -> str:
    """Why a measure is inconclusive though it was measured."""
    low, high = one.ci95 or (-1.0, 1.0)
    if low >= -one.tolerance:
        unseen = unseen_share(one.fixtures.n)
        return f"{one.metric}: {one.fixtures.n} answers leave room for a failure in {unseen:.3f} that none shows"
    seen = "no drop, whatever its size" if one.detectable_drop is None else f"a drop of {one.detectable_drop:.3f}"
    return (
        f"{one.metric}: a drop of {one.tolerance:g} is not excluded (interval {low:+.3f} to {high:+.3f}); "
        f"this run could have seen {seen}"
    )


def _is_tolerated(one: MeasureResult, alpha: float) -> bool:
    """A drop that is real and small enough."""
    falling = one.difference is not None and one.difference < 0
    return falling and one.verdict == "unchanged" and one.q is not None and one.q <= alpha


def _tolerated(one: MeasureResult) -> str:
    return (
        f"{one.metric} fell from {one.baseline:.3f} to {one.candidate:.3f}, beyond chance, but by no more than the "
        f"tolerated {one.tolerance:g}"
    )
