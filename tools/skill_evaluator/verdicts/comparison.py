"""Pairs of records and the rules → verdicts on every measure, every model and the component.

What is comparable, how large each effect is and what noise it stands in (`measuring`) → q within each family → verdicts
→ what a good mean may not hide (fields lost, loss since the anchor, an earlier run of the same version) → the reasons.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import get_args

from skill_evaluator.library.config import Gate, Tier, VerdictName
from skill_evaluator.records.judged import judged_changes
from skill_evaluator.stats import rounded
from skill_evaluator.verdicts.comparability import Measure, Pair, Scores, case_means
from skill_evaluator.verdicts.effects import Effect, adjusted
from skill_evaluator.verdicts.measuring import Compared, Measured, measure_all
from skill_evaluator.verdicts.missing import bounds_of
from skill_evaluator.verdicts.noise import parts_of
from skill_evaluator.verdicts.reasons import named_cases, profile_of, reasons_of
from skill_evaluator.verdicts.results import (
    Cases,
    ComparisonResult,
    MeasureResult,
    ModelVerdict,
    NoisePart,
    RunSummary,
    Scope,
    Waived,
    Watch,
)
from skill_evaluator.verdicts.rules import (
    Losses,
    VerdictRules,
    bounded_verdict,
    component_verdict,
    is_harmed,
    measure_verdict,
    model_verdict,
    verdict_with_losses,
)
from skill_evaluator.verdicts.watching import at_look, failed_before, look_of, spending, watch_anchors

GATES: tuple[Gate, ...] = get_args(Gate)
FAMILY = "the measures of equal weight, of all models (Benjamini-Hochberg)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tested:
    """An effect in its family: its q-value, and the number of effects in the family."""

    effect: Effect
    q: float
    family: int


Tests = Mapping[Gate, _Tested | None]
"""One measure by each question."""


def compare_records(
    skill: str,
    pairs: Sequence[Pair],
    rules: VerdictRules,
    left_out: Mapping[str, str] | None = None,
    wanted: Callable[[Measure], bool] = lambda measure: True,
) -> ComparisonResult:
    """Return the verdict on a component from the records of its models, by the measures that are `wanted`.

    `left_out` holds models that have no records, and why; they are only shown.
    """
    compared = measure_all(pairs, rules.primary_metric, wanted)
    measured = [(model.pair, measured) for model in compared for measured in model.measured]
    by_gate = {gate: _within_families(measured, gate, rules) for gate in GATES}
    tests = iter([{gate: by_gate[gate][at] for gate in GATES} for at in range(len(measured))])
    models = [
        _model(model, list(islice(tests, len(model.measured))), watch, rules, models=len(pairs))
        for model, watch in zip(compared, watch_anchors(pairs, rules), strict=True)
    ]
    return ComparisonResult(
        skill=skill,
        verdict=component_verdict(model.verdict for model in models),
        fixtures=component_verdict(model.fixtures for model in models),
        generalises=component_verdict(model.generalises for model in models),
        gate=rules.policy.gate,
        alpha=rules.alpha,
        family=FAMILY,
        models=models,
        left_out=dict(left_out or {}),
    )


def _within_families(
    measured: Sequence[tuple[Pair, Measured]], gate: Gate, rules: VerdictRules
) -> list[_Tested | None]:
    """Return each measure's test by one question: q over the measures of its tier, of all models."""
    tested: list[_Tested | None] = [None] * len(measured)
    effects = [own.effects[gate] for _, own in measured]
    for tier in get_args(Tier):
        family = [
            (at, effect, at_look(effect.p, look_of(pair)))
            for at, ((pair, own), effect) in enumerate(zip(measured, effects, strict=True))
            if effect is not None and rules.tier(own.measure) == tier
        ]
        q_values = adjusted([p for *_, p in family])
        for (at, effect, _), q in zip(family, q_values, strict=True):
            tested[at] = _Tested(effect=effect, q=q, family=len(family))
    return tested


def _model(
    compared: Compared, tests: Sequence[Tests], watch: Watch | None, rules: VerdictRules, *, models: int
) -> ModelVerdict:
    pair, common = compared.pair, compared.common
    coverage = _coverage(compared)
    covered = coverage >= rules.required_coverage
    results = [
        _result(measured, test, compared, rules, covered=covered)
        for measured, test in zip(compared.measured, tests, strict=True)
    ]
    verdicts: dict[Gate, VerdictName] = dict.fromkeys(GATES, "incomparable")
    stability: VerdictName = "incomparable"
    cases = Cases(broke=[], fixed=[], left_out={})
    losses = Losses(watch=watch)
    if common is not None and not common.barriers:
        cases = named_cases(common, compared.primary(rules.primary_metric), rules)
    if common is not None and not common.barriers and common.cases:
        weighed = [result for result in results if not result.is_waived]
        verdicts = {gate: model_verdict((one.tier, one.by(gate).verdict) for one in weighed) for gate in GATES}
        agreement = [one for one in results if one.kind == "reproducibility"]
        stability = model_verdict(("critical", one.verdict) for one in agreement)
        losses = Losses(
            fields=tuple(one.metric for one in weighed if one.harmed),
            cases=tuple(case for case in cases.broke if case.before - case.after > rules.policy.harm)
            if covered
            else (),
            critical_cases=rules.critical_cases,
            earlier_run=failed_before(pair, rules, models) if covered else None,
            watch=watch,
        )
    return ModelVerdict(
        model_id=pair.candidate.model_id,
        verdict=verdict_with_losses(verdicts[rules.policy.gate], losses),
        fixtures=verdicts["fixtures"],
        generalises=verdicts["generalises"],
        stability=stability,
        coverage=round(coverage, 6),
        metrics=[result for result in results if result.kind != "field"],
        fields=[result for result in results if result.kind == "field"],
        cases=cases,
        lost_fields=list(losses.fields),
        lost_cases=[case.case_id for case in losses.cases],
        noise=_noise(compared, rules),
        watch=watch,
        baseline_runs=1 + len(pair.baseline_again),
        candidate_runs=1 + len(pair.candidate_again),
        baseline=None if pair.baseline is None else RunSummary.of(pair.baseline, beside=pair.candidate),
        candidate=RunSummary.of(pair.candidate),
        reasons=[
            *reasons_of(compared, results, losses, coverage, rules),
            *pair.passed_over,
            *judged_changes(None if pair.baseline is None else pair.baseline.judged, pair.candidate.judged),
        ],
    )


def _coverage(compared: Compared) -> float:
    """Return the least of both runs' coverage and of the share of the baseline's cases that are still there.

    A case that is not applicable to the candidate's model is not missed.
    """
    pair, common = compared.pair, compared.common
    if pair.baseline is None or common is None:
        return pair.candidate.coverage
    wanted = [case for case in pair.baseline.per_case if case.case_id not in pair.candidate.not_applicable]
    kept = len(common.cases) / max(1, len(wanted))
    return min(pair.candidate.coverage, pair.baseline.coverage, kept)


def _noise(compared: Compared, rules: VerdictRules) -> list[NoisePart]:
    """Return what moves the primary metric by chance; nothing where it is not measured."""
    primary = compared.primary(rules.primary_metric)
    if primary is None or (beyond := primary.effects["generalises"]) is None:
        return []
    parts = parts_of(primary.noise, compared.run, beyond.error)
    return [NoisePart(part=part, sd=rounded(sd), source=source) for part, sd, source in parts]


def _result(
    measured: Measured, tests: Tests, compared: Compared, rules: VerdictRules, *, covered: bool
) -> MeasureResult:
    measure, pair = measured.measure, compared.pair
    tolerance = rules.tolerance(measure)
    missing = None if compared.common is None else bounds_of(compared.common.cases, measure.name, measure.kind)
    is_critical = rules.is_critical(measure)
    required = rules.required_coverage if is_critical else 0.0  # of the cases that the metric says something about
    scopes = {}
    for gate in GATES:
        scope = _scope(tests[gate], pair, tolerance, rules.alpha, covered=covered)
        verdict = bounded_verdict(scope.verdict, missing, tolerance, required)
        scopes[gate] = scope.model_copy(update={"verdict": verdict})
    if is_critical:
        scopes["robust"] = _above_floor(scopes["robust"], pair)
    gating = scopes[rules.policy.gate]
    is_field = measure.kind == "field"
    harmed = is_field and covered and is_harmed(measure, gating.q, rules)
    waived = None
    waiver = rules.waiver_for(measure, pair.candidate.model_id)
    if waiver is not None and (gating.verdict == "regressed" or harmed):
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
        fixtures=scopes["fixtures"],
        generalises=scopes["generalises"],
        robust=scopes["robust"],
        harmed=harmed,
        missing=missing,
        waived=waived,
        profile_before=profile_of(pair.baseline, measure.name) if is_field and pair.baseline else None,
        profile_after=profile_of(pair.candidate, measure.name) if is_field else None,
    )


def _scope(test: _Tested | None, pair: Pair, tolerance: float, alpha: float, *, covered: bool) -> Scope:
    if test is None:
        return Scope(verdict="inconclusive")
    effect = test.effect
    low, high = effect.ci95
    return Scope(
        difference=round(effect.difference, 6),
        ci95=(round(low, 6), round(high, 6)),
        p=round(effect.p, 6),
        q=round(test.q, 6),
        n=effect.n,
        detectable_drop=rounded(effect.detectable(alpha / test.family / spending(look_of(pair)))),
        verdict=measure_verdict(effect, test.q, tolerance, alpha, covered=covered),
    )


def _above_floor(scope: Scope, pair: Pair) -> Scope:
    """Return the answer with no regression that is smaller than what a neutral rewording does to this model."""
    floor = None if pair.rewording is None else pair.rewording.sigma
    if scope.verdict != "regressed" or floor is None or scope.difference is None or -scope.difference > floor:
        return scope
    return scope.model_copy(update={"verdict": "inconclusive"})


def _mean(arm: Sequence[Scores]) -> float:
    return round(sum(case_means(arm)) / len(arm), 6)
