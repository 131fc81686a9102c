"""Pairs of records and the rules → verdicts on every measure, every model and the component.

What is comparable → what can be measured → how large is the effect and how sure (both questions) → q over the whole
family → verdicts → the reasons.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from skill_evaluator.library.config import VerdictName
from skill_evaluator.stats import rounded
from skill_evaluator.verdicts.comparability import Common, Measure, Pair, Scores, case_means, common_part, measures
from skill_evaluator.verdicts.effects import Effect, adjusted, case_effects, replicate_effect
from skill_evaluator.verdicts.reasons import changed_cases, profile_of, reasons_of
from skill_evaluator.verdicts.results import (
    Cases,
    ComparisonResult,
    MeasureResult,
    ModelVerdict,
    RunSummary,
    Scope,
    Waived,
)
from skill_evaluator.verdicts.rules import VerdictRules, component_verdict, measure_verdict, model_verdict

FAMILY = "all metrics and fields of all models, Benjamini-Hochberg"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """A measure with its effect on these fixtures and beyond them; None where it cannot be told."""

    measure: Measure
    fixtures: Effect | None
    generalises: Effect | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """A pair with what it has in common, and its measures. Nothing is common without a baseline."""

    pair: Pair
    common: Common | None
    measured: tuple[_Measured, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tested:
    """An effect in its family: its q-value, and the number of effects in the family."""

    effect: Effect
    q: float
    family: int


Tests = tuple[_Tested | None, _Tested | None]
"""One measure on these fixtures, and beyond them."""


def compare_records(
    skill: str, pairs: Sequence[Pair], rules: VerdictRules, left_out: Mapping[str, str] | None = None
) -> ComparisonResult:
    """Return the verdict on a component from the records of its models.

    `left_out` holds models that have no records, and why; they are only shown.
    """
    compared = [_measure(pair) for pair in pairs]
    measured = [measured for model in compared for measured in model.measured]
    fixtures = _within_family([one.fixtures for one in measured])
    generalises = _within_family([one.generalises for one in measured])
    tests = zip(fixtures, generalises, strict=True)
    models = [_model(model, list(islice(tests, len(model.measured))), rules) for model in compared]
    return ComparisonResult(
        skill=skill,
        verdict=component_verdict(model.verdict for model in models),
        generalises=component_verdict(model.generalises for model in models),
        gate=rules.policy.gate,
        alpha=rules.alpha,
        family=FAMILY,
        models=models,
        left_out=dict(left_out or {}),
    )


def _measure(pair: Pair) -> _Compared:
    """Measure all that the records of a pair have in common."""
    if pair.baseline is None:
        return _Compared(pair=pair, common=None, measured=())
    common = common_part(pair.baseline, pair.candidate)
    if common.barriers:
        return _Compared(pair=pair, common=common, measured=())
    shared = [name for name in pair.candidate.accuracy if name in pair.baseline.accuracy]
    figures = list(measures(common.cases, shared))
    effects = case_effects([figure.differences for figure in figures])
    measured = tuple(
        _Measured(
            measure=figure,
            # agreement between replicates is one value a case: the cases are its sample by either question
            fixtures=effect if figure.kind == "reproducibility" else replicate_effect(figure.before, figure.after),
            generalises=effect,
        )
        for figure, effect in zip(figures, effects, strict=True)
    )
    return _Compared(pair=pair, common=common, measured=measured)


def _within_family(effects: Sequence[Effect | None]) -> list[_Tested | None]:
    q_values = adjusted([effect.p for effect in effects if effect is not None])
    remaining = iter(q_values)
    return [
        None if effect is None else _Tested(effect=effect, q=next(remaining), family=len(q_values))
        for effect in effects
    ]


def _model(compared: _Compared, tests: Sequence[Tests], rules: VerdictRules) -> ModelVerdict:
    pair, common = compared.pair, compared.common
    coverage = pair.candidate.coverage
    if pair.baseline is not None and common is not None:
        kept = len(common.cases) / max(1, len(pair.baseline.per_case))
        coverage = min(coverage, pair.baseline.coverage, kept)
    results = [
        _result(measured.measure, test, pair, rules, covered=coverage >= rules.required_coverage)
        for measured, test in zip(compared.measured, tests, strict=True)
    ]
    metrics = [result for result in results if result.kind != "field"]
    fixtures: VerdictName = "incomparable"
    generalises: VerdictName = "incomparable"
    stability: VerdictName = "incomparable"
    if common is not None and not common.barriers and common.cases:
        weighed = [result for result in results if not result.is_waived]
        fixtures = model_verdict((result.tier, result.fixtures.verdict) for result in weighed)
        generalises = model_verdict((result.tier, result.generalises.verdict) for result in weighed)
        stability = model_verdict(("critical", one.verdict) for one in metrics if one.kind == "reproducibility")
    cases = Cases(broke=[], fixed=[], left_out={})
    if common is not None and not common.barriers:
        primary = [result.measure for result in compared.measured if result.measure.name == rules.primary_metric]
        broke, fixed = changed_cases(common.cases, primary[0], rules.tolerance(primary[0])) if primary else ([], [])
        cases = Cases(broke=broke, fixed=fixed, left_out=common.left_out)
    return ModelVerdict(
        model_id=pair.candidate.model_id,
        verdict=fixtures if rules.policy.gate == "fixtures" else generalises,
        generalises=generalises,
        stability=stability,
        coverage=round(coverage, 6),
        metrics=metrics,
        fields=[result for result in results if result.kind == "field"],
        cases=cases,
        baseline=None if pair.baseline is None else RunSummary.of(pair.baseline),
        candidate=RunSummary.of(pair.candidate),
        reasons=[pair.absent] if common is None else list(reasons_of(common, results, coverage, rules)),
    )


def _result(measure: Measure, tests: Tests, pair: Pair, rules: VerdictRules, *, covered: bool) -> MeasureResult:
    tolerance = rules.tolerance(measure)
    fixtures, generalises = (_scope(test, tolerance, rules.alpha, covered=covered) for test in tests)
    gating = fixtures if rules.policy.gate == "fixtures" else generalises
    is_field = measure.kind == "field"
    waived = None
    waiver = rules.waiver_for(measure, pair.candidate.model_id)
    if waiver is not None and gating.verdict == "regressed":
        below = waiver.breaks_floor(_mean(measure.after))
        waived = Waived(
            reason=waiver.reason,
            expires=waiver.expires.isoformat(),
            in_force=rules.today <= waiver.expires and not below,
            down_to=waiver.down_to,
            below=below,
        )
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
        waived=waived,
        profile_before=profile_of(pair.baseline, measure.name) if is_field and pair.baseline else None,
        profile_after=profile_of(pair.candidate, measure.name) if is_field else None,
    )


def _scope(test: _Tested | None, tolerance: float, alpha: float, *, covered: bool) -> Scope:
    if test is None:
        return Scope(verdict=measure_verdict(None, None, tolerance, alpha, covered=covered))
    effect = test.effect
    low, high = effect.ci95
    return Scope(
        difference=round(effect.difference, 6),
        ci95=(round(low, 6), round(high, 6)),
        p=round(effect.p, 6),
        q=round(test.q, 6),
        n=effect.n,
        detectable_drop=rounded(effect.detectable(alpha / test.family)),
        verdict=measure_verdict(effect, test.q, tolerance, alpha, covered=covered),
    )


def _mean(arm: Sequence[Scores]) -> float:
    return round(sum(case_means(arm)) / len(arm), 6)
