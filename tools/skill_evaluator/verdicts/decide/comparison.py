"""Pairs of records and the rules → verdicts on every measure, every model and the component.

Measure what is comparable (`measuring`) → q within each family → verdicts → what a good mean may hide (lost fields,
loss since the accepted version, an earlier run of the same version) → the reasons.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from skill_evaluator.library.config import VerdictName
from skill_evaluator.stats import benjamini_hochberg, rounded
from skill_evaluator.verdicts.decide.cases import named_cases, profile_of
from skill_evaluator.verdicts.decide.comparability import Measure, Pair, served_change
from skill_evaluator.verdicts.decide.effects import Effect
from skill_evaluator.verdicts.decide.measuring import Compared, Measured, measure_all
from skill_evaluator.verdicts.decide.missing_outputs import Missing, bounds_of
from skill_evaluator.verdicts.decide.reasons import falls_of, reasons_of, remedy_of
from skill_evaluator.verdicts.decide.results import (
    Cases,
    ComparisonResult,
    MeasureResult,
    ModelVerdict,
    RunSummary,
    SinceAccepted,
)
from skill_evaluator.verdicts.decide.rules import (
    Levels,
    Losses,
    VerdictRules,
    bounded_verdict,
    component_verdict,
    is_harmed_everywhere,
    is_lost,
    judged_verdict,
    measure_verdict,
    model_verdict,
    supported_verdict,
    verdict_with_losses,
)

FAMILY = "the measures of equal weight, of all models (Benjamini-Hochberg)"
_Test = tuple[float, int] | None
"""The q-value of a measure and the size of its family; None if it is not tested."""


def compare_records(
    skill: str,
    pairs: Sequence[Pair],
    rules: VerdictRules,
    left_out: Mapping[str, str] | None = None,
    wanted: Callable[[Measure], bool] = lambda measure: True,
    rest: Sequence[Pair] = (),
) -> ComparisonResult:
    """Return the verdict on a component from the records of its models, by the measures that are `wanted`.

    `left_out` holds the models that have no records, with the reason; they are only shown. `rest` holds pairs of
    further models, which belong to the families and have no verdict here.
    """
    any_served, judge = rules.policy.served == "any", rules.uncalibrated_judge
    family = [
        replace(pair, any_served=pair.any_served or any_served, unproved_judge=judge(pair.candidate))
        for pair in (*pairs, *rest)
    ]
    comparable = sum(pair.baseline is not None for pair in family)
    compared = measure_all(family, wanted)
    tests = iter(_test_all([own for model in compared for own in model.measured], rules))
    models = [
        _model(model, list(islice(tests, len(model.measured))), since_accepted, rules, comparable)
        for model, since_accepted, _ in zip(compared, changes_since_accepted(family, rules), pairs, strict=False)
    ]
    return ComparisonResult(
        skill=skill,
        verdict=component_verdict(model.verdict for model in models),
        alpha=rules.alpha,
        family=FAMILY,
        models=models,
        left_out=dict(left_out or {}),
    )


def _test_all(measured: Sequence[Measured], rules: VerdictRules) -> list[_Test]:
    """Adjust p over the measures of equal tier, of all models; the agreement of replicates is not tested."""
    tests: list[_Test] = [None] * len(measured)
    tiers = [None if own.measure.kind == "reproducibility" else rules.tier(own.measure) for own in measured]
    for tier in set(tiers) - {None}:
        family = [(at, own.effect.p) for at, own in enumerate(measured) if tiers[at] == tier and own.effect is not None]
        q_values = benjamini_hochberg([p for _, p in family])
        for (at, _), q in zip(family, q_values, strict=True):
            tests[at] = (q, len(family))
    return tests


def changes_since_accepted(pairs: Sequence[Pair], rules: VerdictRules) -> list[SinceAccepted | None]:
    """Return the change of the critical measures of each model since the accepted version.

    None if there is no accepted version, if it is the baseline itself, and if the two are not comparable.
    """
    since = [
        replace(pair, baseline=pair.anchor, baseline_again=pair.anchor_again, anchor=None)
        for pair in pairs
        if pair.anchor is not None and not pair.is_since_anchor
    ]
    tested = [
        (compared, measured, measured.effect)
        for compared in measure_all(since, rules.is_critical)
        for measured in compared.measured
        if measured.effect is not None
    ]
    changes: dict[str, SinceAccepted] = {}
    q_values = benjamini_hochberg([effect.p for *_, effect in tested])
    for (compared, measured, effect), q in zip(tested, q_values, strict=True):
        model_id, accepted = compared.pair.candidate.model_id, compared.pair.baseline
        assert accepted is not None  # noqa: S101  (only pairs with an accepted version are tested)
        change = SinceAccepted(
            version=accepted.skill_version,
            run_id=accepted.run_id,
            metric=measured.measure.name,
            difference=round(effect.difference, 6),
            ci95=_rounded(effect.ci95),
            q=round(q, 6),
            verdict=_verdict(compared, measured, q, rules, rules.levels(measured.measure, is_accepted=True)),
        )
        if model_id not in changes or change.difference < changes[model_id].difference:
            changes[model_id] = change
    return [None if pair.is_since_anchor else changes.get(pair.candidate.model_id) for pair in pairs]


def failed_before(pair: Pair, rules: VerdictRules, models: int) -> str | None:
    """Return the id of an earlier run of the candidate's version that, with those before it, was a regression.

    Trying again does not help: a version that fell significantly once needs runs that exclude the drop, a new version,
    or somebody who accepts it. Only critical measures count, at a level shared by all `models`.
    """
    runs = (*pair.candidate_again, pair.candidate)
    for count in range(1, len(runs)):
        earlier = replace(pair, candidate=runs[count - 1], candidate_again=runs[: count - 1])
        (compared,) = measure_all([earlier], rules.is_critical)
        for measured in compared.measured:
            if measured.effect is not None:
                q = min(1.0, measured.effect.p * models)
                if _verdict(compared, measured, q, rules, rules.levels(measured.measure)) == "regressed":
                    return runs[count - 1].run_id
    return None


def _verdict(
    compared: Compared, measured: Measured, q: float | None, rules: VerdictRules, levels: Levels, *, lost: bool = False
) -> VerdictName:
    """Return the verdict on a measure: by its effect, then by its judge, its missing outputs and its readable ones."""
    measure, tolerance = measured.measure, rules.tolerance(measured.measure)
    verdict = "regressed" if lost else measure_verdict(measured.effect, q, tolerance, levels)
    verdict = judged_verdict(verdict, measured, compared.pair, rules.policy.harm)
    required = rules.required_coverage if rules.is_critical(measure) else 0.0
    verdict = bounded_verdict(verdict, _missing(compared, measure), tolerance, required)
    return supported_verdict(verdict, compared, measured, rules)


def _missing(compared: Compared, measure: Measure) -> Missing | None:
    return None if compared.common is None else bounds_of(compared.common.cases, measure.name, measure.kind)


def _model(
    compared: Compared,
    tests: Sequence[_Test],
    since_accepted: SinceAccepted | None,
    rules: VerdictRules,
    models: int,
) -> ModelVerdict:
    pair, common = compared.pair, compared.common
    coverage = _coverage(compared)
    covered = coverage >= rules.required_coverage
    results = [
        _result(measured, test, compared, rules, models if covered else None)
        for measured, test in zip(compared.measured, tests, strict=True)
    ]
    verdict: VerdictName = "incomparable"
    cases = Cases(broke=[], fixed=[], left_out={})
    losses = Losses(since_accepted=since_accepted)
    if common is not None and not common.barriers:
        cases = named_cases(common, compared.primary(rules.primary_metric), rules)
    if common is not None and not common.barriers and common.cases:
        verdict = model_verdict((one.tier, one.verdict) for one in results if one.verdict is not None)
        losses = Losses(
            fields=tuple(one.metric for one in results if one.harmed),
            cases=tuple(case for case in cases.broke if covered and case.before - case.after > rules.policy.harm),
            critical_cases=rules.critical_cases,
            earlier_run=failed_before(pair, rules, models) if covered else None,
            since_accepted=since_accepted,
        )
    verdict = verdict_with_losses(verdict, losses)
    return ModelVerdict(
        model_id=pair.candidate.model_id,
        verdict=verdict,
        coverage=round(coverage, 6),
        metrics=[result for result in results if result.kind != "field"],
        fields=[result for result in results if result.kind == "field"],
        cases=cases,
        lost_fields=list(losses.fields),
        lost_cases=[case.case_id for case in losses.cases],
        since_accepted=since_accepted,
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
    measured: Measured, test: _Test, compared: Compared, rules: VerdictRules, models: int | None
) -> MeasureResult:
    """Return the result of a measure; `models` is the number of models, or None if too few outputs came."""
    measure, effect, pair = measured.measure, measured.effect, compared.pair
    levels, (q, family) = rules.levels(measure), test or (None, 1)
    is_tested, is_field = measure.kind != "reproducibility", measure.kind == "field"
    tolerance, harm = rules.tolerance(measure), rules.policy.harm
    difference = measured.after.mean - measured.before.mean
    lost = is_tested and models is not None and is_lost(measured, models) and difference < -tolerance
    collapsed = lost or (rules.is_critical(measure) and is_harmed_everywhere(measured, max(harm, tolerance)))
    verdict: VerdictName | None = None
    if is_tested:
        verdict = "inconclusive" if models is None else _verdict(compared, measured, q, rules, levels, lost=collapsed)
    fell = lost or (q is not None and q <= levels.fall)
    harmed = is_field and models is not None and fell and difference < -harm
    harmed = harmed and judged_verdict("regressed", measured, pair, harm) == "regressed"
    return MeasureResult(
        metric=measure.name,
        kind=measure.kind,
        tier=rules.tier(measure),
        tolerance=tolerance,
        baseline=round(measured.before.mean, 6),
        candidate=round(measured.after.mean, 6),
        difference=round(difference, 6),
        ci95=None if effect is None else _rounded(effect.ci95),
        p=round(effect.p, 6) if effect is not None and is_tested else None,
        q=rounded(q),
        n=0 if effect is None else effect.n,
        n_cases=len(measure.case_ids),
        detectable_drop=rounded(_detectable(effect, levels.fall / family) if is_tested else None),
        verdict=verdict,
        harmed=harmed,
        missing=_missing(compared, measure),
        profile_before=profile_of(pair.baseline, measure.name) if is_field and pair.baseline else None,
        profile_after=profile_of(pair.candidate, measure.name) if is_field else None,
    )


def _detectable(effect: Effect | None, level: float) -> float | None:
    return None if effect is None else effect.detectable(level)


def _rounded(interval: tuple[float, float]) -> tuple[float, float]:
    return round(interval[0], 6), round(interval[1], 6)
