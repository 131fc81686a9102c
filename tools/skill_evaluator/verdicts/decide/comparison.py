"""Pairs of records and the rules → verdicts on every measure, every model and the component.

What is comparable, how large each effect is and what noise it stands in (`measuring`) → q within each family → verdicts
→ what a good mean may not hide (fields lost, loss since the anchor, an earlier run of the same version) → the reasons.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import get_args

from skill_evaluator.identifiers import Tier
from skill_evaluator.library.config import Gate, VerdictName
from skill_evaluator.stats import rounded
from skill_evaluator.verdicts.decide.cases import named_cases, profile_of
from skill_evaluator.verdicts.decide.comparability import Measure, Pair, served_change
from skill_evaluator.verdicts.decide.effects import Effect, adjusted
from skill_evaluator.verdicts.decide.lost_answers import bounds_of
from skill_evaluator.verdicts.decide.measuring import Compared, Measured, measure_all, parts_of
from skill_evaluator.verdicts.decide.reasons import falls_of, reasons_of, remedy_of
from skill_evaluator.verdicts.decide.results import (
    Cases,
    ComparisonResult,
    MeasureResult,
    ModelVerdict,
    RunSummary,
    Scope,
    Watch,
)
from skill_evaluator.verdicts.decide.rules import (
    Levels,
    Losses,
    VerdictRules,
    bounded_verdict,
    component_verdict,
    is_lost,
    judged_verdict,
    measure_verdict,
    model_verdict,
    supported_verdict,
    verdict_with_losses,
)


def watch_anchors(pairs: Sequence[Pair], rules: VerdictRules) -> list[Watch | None]:
    """Return what became of the critical measures of each model since its anchor.

    None where there is no anchor, where the baseline is the anchor, and where the two are not comparable.
    """
    counts = rules.is_critical_accuracy
    since = [
        replace(pair, baseline=pair.anchor, baseline_again=pair.anchor_again, anchor=None)
        for pair in pairs
        if pair.anchor is not None and not pair.is_since_anchor
    ]
    tested = [
        (compared, measured, effect)
        for compared in measure_all(since, rules.primary_metric, counts)
        for measured in compared.measured
        if counts(measured.measure) and (effect := measured.effects[rules.policy.gate]) is not None
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
    runs, counts = (*pair.candidate_again, pair.candidate), rules.is_critical_accuracy
    for after in range(1, len(runs)):
        prefix = replace(
            pair, candidate=runs[after - 1], candidate_again=runs[: after - 1], look=pair.look - len(runs) + after
        )
        (compared,) = measure_all([prefix], rules.primary_metric, counts)
        for measured in compared.measured:
            effect = measured.effects[rules.policy.gate]
            if effect is None or not counts(measured.measure):
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
    verdict = judged_verdict(verdict, measured, compared.pair, rules.policy.harm)
    missing = None if compared.common is None else bounds_of(compared.common.cases, measure.name, measure.kind)
    verdict = bounded_verdict(verdict, missing, tolerance, rules.required_coverage)
    return supported_verdict(verdict, compared, measured, rules)


GATES: tuple[Gate, ...] = get_args(Gate)
FAMILY = "the measures of equal weight, of all models (Benjamini-Hochberg)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tested:
    """An effect in its family: its q-value, and the number of effects in the family."""

    effect: Effect
    q: float
    family: int


Tests = Mapping[Gate, _Tested | None]
"""One measure in each scope."""


def compare_records(
    skill: str,
    pairs: Sequence[Pair],
    rules: VerdictRules,
    left_out: Mapping[str, str] | None = None,
    wanted: Callable[[Measure], bool] = lambda measure: True,
    rest: Sequence[Pair] = (),
) -> ComparisonResult:
    """Return the verdict on a component from the records of its models, by the measures that are `wanted`.

    `left_out` holds models that have no records, and why; they are only shown. `rest` holds pairs of further models:
    they are in the families, and nothing else is told of them.
    """
    served, judge = rules.policy.served == "any", rules.uncalibrated_judge
    family = [
        replace(pair, any_served=pair.any_served or served, unproved_judge=judge(pair.candidate))
        for pair in (*pairs, *rest)
    ]
    comparable = sum(pair.baseline is not None for pair in family)
    compared = measure_all(family, rules.primary_metric, wanted)
    measured = [(model.pair, measured) for model in compared for measured in model.measured]
    by_gate = {gate: _within_families(measured, gate, rules) for gate in GATES}
    tests = iter([{gate: by_gate[gate][at] for gate in GATES} for at in range(len(measured))])
    models = [
        _model(model, list(islice(tests, len(model.measured))), watch, rules, models=comparable)
        for model, watch, _ in zip(compared, watch_anchors(family, rules), pairs, strict=False)
    ]
    return ComparisonResult(
        skill=skill,
        verdict=component_verdict(model.verdict for model in models),
        these=component_verdict(model.these for model in models),
        beyond=component_verdict(model.beyond for model in models),
        gate=rules.policy.gate,
        alpha=rules.alpha,
        family=FAMILY,
        models=models,
        left_out=dict(left_out or {}),
    )


def _within_families(
    measured: Sequence[tuple[Pair, Measured]], gate: Gate, rules: VerdictRules
) -> list[_Tested | None]:
    """Return each measure's test in one scope: q over the measures of its tier, of all models; agreement is apart."""
    tested: list[_Tested | None] = [None] * len(measured)
    effects = [own.effects[gate] for _, own in measured]
    keys = [(rules.tier(own.measure), own.measure.kind == "reproducibility") for _, own in measured]
    for key in set(keys):
        family = [(at, effect) for at, effect in enumerate(effects) if effect is not None and keys[at] == key]
        q_values = adjusted([effect.p for _, effect in family])
        for (at, effect), q in zip(family, q_values, strict=True):
            tested[at] = _Tested(effect=effect, q=q, family=len(family))
    return tested


def _model(
    compared: Compared, tests: Sequence[Tests], watch: Watch | None, rules: VerdictRules, *, models: int
) -> ModelVerdict:
    pair, common = compared.pair, compared.common
    coverage = _coverage(compared)
    covered = coverage >= rules.required_coverage
    results = [
        _result(measured, test, compared, rules, models, covered=covered)
        for measured, test in zip(compared.measured, tests, strict=True)
    ]
    verdicts: dict[Gate, VerdictName] = dict.fromkeys(GATES, "incomparable")
    stability: VerdictName = "incomparable"
    cases = Cases(broke=[], fixed=[], left_out={})
    losses = Losses(watch=watch)
    if common is not None and not common.barriers:
        cases = named_cases(common, compared.primary(rules.primary_metric), rules)
    if common is not None and not common.barriers and common.cases:
        verdicts = {gate: model_verdict(_deciding(results, gate, rules)) for gate in GATES}
        agreement = [one for one in results if one.kind == "reproducibility"]
        stability = model_verdict(("critical", one.verdict) for one in agreement)
        losses = Losses(
            fields=tuple(one.metric for one in results if one.harmed),
            cases=tuple(case for case in cases.broke if covered and case.before - case.after > rules.policy.harm),
            critical_cases=rules.critical_cases,
            earlier_run=failed_before(pair, rules, models) if covered else None,
            watch=watch,
        )
    verdict = verdict_with_losses(verdicts[rules.policy.gate], losses)
    primary = compared.primary(rules.primary_metric)
    over_cases = None if primary is None else primary.effects["beyond"]
    return ModelVerdict(
        model_id=pair.candidate.model_id,
        verdict=verdict,
        these=verdicts["these"],
        beyond=verdicts["beyond"],
        stability=stability,
        coverage=round(coverage, 6),
        metrics=[result for result in results if result.kind != "field"],
        fields=[result for result in results if result.kind == "field"],
        cases=cases,
        lost_fields=list(losses.fields),
        lost_cases=[case.case_id for case in losses.cases],
        noise=[] if primary is None or over_cases is None else parts_of(primary.runs, compared.run, over_cases.error),
        watch=watch,
        baseline_runs=1 + len(pair.baseline_again),
        candidate_runs=1 + len(pair.candidate_again),
        baseline=None if pair.baseline is None else RunSummary.of(pair.baseline, beside=pair.candidate),
        candidate=RunSummary.of(pair.candidate),
        reasons=[*reasons_of(compared, results, losses, coverage, rules), *pair.passed_over],
        falls=falls_of(losses, results),
        remedy=remedy_of(compared, results, coverage, rules) if verdict == "inconclusive" else None,
        unproved_judge=_deciding_judge(compared, results, verdict),
        served=None if pair.baseline is None else served_change(pair.baseline, pair.candidate),
    )


def _deciding(results: Sequence[MeasureResult], gate: Gate, rules: VerdictRules) -> Iterator[tuple[Tier, VerdictName]]:
    """Yield tier and verdict of each measure. Agreement of replicates never decides beside a better primary metric."""
    better = any(one.metric == rules.primary_metric and one.by(gate).verdict == "improved" for one in results)
    for one in results:
        if not (better and one.kind == "reproducibility"):
            yield one.tier, one.by(gate).verdict


def _deciding_judge(compared: Compared, results: Sequence[MeasureResult], verdict: VerdictName) -> str | None:
    """Return the uncalibrated judge that the verdict rests on. Return None if other drops decide."""
    judged = {(own.measure.name, own.measure.kind) for own in compared.measured if own.measure.judged}
    others = (one for one in results if (one.metric, one.kind) not in judged)
    suffices = any(one.harmed or (one.tier != "advisory" and one.verdict == "regressed") for one in others)
    return None if verdict == "regressed" and suffices else compared.judge


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


def _result(
    measured: Measured, tests: Tests, compared: Compared, rules: VerdictRules, models: int, *, covered: bool
) -> MeasureResult:
    measure, pair = measured.measure, compared.pair
    tolerance = rules.tolerance(measure)
    missing = None if compared.common is None else bounds_of(compared.common.cases, measure.name, measure.kind)
    is_critical = rules.is_critical(measure)
    required = rules.required_coverage if is_critical else 0.0  # of the cases that the metric says something about
    levels = rules.levels(measure, pair.baseline_look)
    lost = covered and measure.kind != "reproducibility" and is_lost(measured, models)
    scopes: dict[str, Scope] = {}
    for gate, test in tests.items():
        effect, q = (None, None) if test is None else (test.effect, test.q)
        verdict = measure_verdict(effect, q, tolerance, levels, covered=covered)
        if lost and gate == "these":
            verdict = "regressed"
        verdict = judged_verdict(verdict, measured, pair, rules.policy.harm)
        verdict = bounded_verdict(verdict, missing, tolerance, required)
        scopes[gate] = _scope(test, levels, supported_verdict(verdict, compared, measured, rules))
    gating = scopes[rules.policy.gate]
    is_field = measure.kind == "field"
    difference = measured.after.mean - measured.before.mean
    surely = gating.q is not None and gating.q <= levels.fall
    harmed = is_field and covered and (lost or (surely and difference < -rules.policy.harm))
    harmed = harmed and judged_verdict("regressed", measured, pair, rules.policy.harm) == "regressed"
    return MeasureResult.view(
        gating,
        metric=measure.name,
        kind=measure.kind,
        tier=rules.tier(measure),
        tolerance=tolerance,
        baseline=round(measured.before.mean, 6),
        candidate=round(measured.after.mean, 6),
        difference=round(difference, 6),
        n_cases=len(measure.case_ids),
        **scopes,
        harmed=harmed,
        missing=missing,
        profile_before=profile_of(pair.baseline, measure.name) if is_field and pair.baseline else None,
        profile_after=profile_of(pair.candidate, measure.name) if is_field else None,
    )


def _scope(test: _Tested | None, levels: Levels, verdict: VerdictName) -> Scope:
    if test is None:
        return Scope(verdict=verdict)
    effect = test.effect
    low, high = effect.ci95
    return Scope(
        difference=round(effect.difference, 6),
        ci95=(round(low, 6), round(high, 6)),
        p=round(effect.p, 6),
        q=round(test.q, 6),
        n=effect.n,
        detectable_drop=rounded(effect.detectable(levels.fall / test.family)),
        verdict=verdict,
    )
