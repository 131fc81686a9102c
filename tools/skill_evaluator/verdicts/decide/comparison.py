"""Pairs of records and the rules → verdicts on every measure, every model and the component."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from skill_evaluator.library.config import VerdictName
from skill_evaluator.stats import benjamini_hochberg, by_key, rounded
from skill_evaluator.verdicts.decide.cases import named_cases, profile_of
from skill_evaluator.verdicts.decide.comparability import Measure, Pair, served_change
from skill_evaluator.verdicts.decide.measuring import Compared, Measured, measure_all
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
    Losses,
    VerdictRules,
    component_verdict,
    is_harmed_everywhere,
    is_lost,
    judged_verdict,
    model_verdict,
    verdict_on,
    verdict_with_losses,
)

FAMILY = "the measures of equal weight, of all models (Benjamini-Hochberg)"


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
    compared, since_accepted = _with_q(measure_all(family, wanted), rules), changes_since_accepted(family, rules)
    models = [
        _model(model, change, rules, comparable)
        for model, change, _ in zip(compared, since_accepted, pairs, strict=False)
    ]
    return ComparisonResult(
        skill=skill,
        verdict=component_verdict(model.verdict for model in models),
        alpha=rules.alpha,
        family=FAMILY,
        models=models,
        left_out=dict(left_out or {}),
    )


def _with_q(compared: Sequence[Compared], rules: VerdictRules) -> list[Compared]:
    """Adjust p over the measures of equal tier, of all models; the agreement of replicates is not tested."""
    tested = [
        (own.measure, own.effect.p)
        for model in compared
        for own in model.measured
        if own.effect is not None and own.measure.kind != "reproducibility"
    ]
    q_of: dict[int, tuple[float, int]] = {}
    for family in by_key((rules.tier(measure), (measure, p)) for measure, p in tested).values():
        for (measure, _), q in zip(family, benjamini_hochberg([p for _, p in family]), strict=True):
            q_of[id(measure)] = q, len(family)

    def adjust(measured: Measured) -> Measured:
        q, family = q_of.get(id(measured.measure), (None, 1))
        return replace(measured, q=q, family=family)

    return [replace(model, measured=tuple(map(adjust, model.measured))) for model in compared]


def changes_since_accepted(pairs: Sequence[Pair], rules: VerdictRules) -> list[SinceAccepted | None]:
    """Return the change of the critical measures since the accepted version for each pair: of the one that fell most.

    None if there is no accepted version, if it is the baseline itself, and if the two are not comparable.
    """
    since = {
        at: replace(pair, baseline=pair.anchor, baseline_again=pair.anchor_again)
        for at, pair in enumerate(pairs)
        if pair.anchor is not None and (pair.baseline is None or pair.baseline.run_id != pair.anchor.run_id)
    }
    tested = [
        (at, compared, measured, measured.effect)
        for at, compared in zip(since, measure_all(list(since.values()), rules.is_critical), strict=True)
        for measured in compared.measured
        if measured.effect is not None
    ]
    changes = dict[int, SinceAccepted]()
    for (at, compared, measured, effect), q in zip(
        tested, benjamini_hochberg([effect.p for *_, effect in tested]), strict=True
    ):
        accepted = pairs[at].anchor
        assert accepted is not None  # noqa: S101  (only pairs with an accepted version are tested)
        levels = rules.levels(measured.measure, is_accepted=True)
        change = SinceAccepted(
            version=accepted.skill_version,
            run_id=accepted.run_id,
            metric=measured.measure.name,
            difference=round(effect.difference, 6),
            ci95=_rounded(effect.ci95),
            q=round(q, 6),
            verdict=verdict_on(compared, replace(measured, q=q), rules, levels),
        )
        if at not in changes or change.difference < changes[at].difference:
            changes[at] = change
    return [changes.get(at) for at in range(len(pairs))]


def failed_before(pair: Pair, rules: VerdictRules, models: int) -> str | None:
    """Return the id of an earlier run of the candidate's version that, with those before it, was a regression.

    Trying again does not help: a version that fell significantly once needs runs that exclude the drop, a new version,
    or somebody who accepts it. Only critical measures count, at a level shared by all `models`.
    """
    runs = (*pair.candidate_again, pair.candidate)
    for count, run in enumerate(runs[:-1]):
        (compared,) = measure_all([replace(pair, candidate=run, candidate_again=runs[:count])], rules.is_critical)
        for measured in compared.measured:
            if measured.effect is not None:
                tested = replace(measured, q=min(1.0, measured.effect.p * models))
                if verdict_on(compared, tested, rules, rules.levels(measured.measure)) == "regressed":
                    return run.run_id
    return None


def _model(compared: Compared, since_accepted: SinceAccepted | None, rules: VerdictRules, models: int) -> ModelVerdict:
    pair, common, coverage = compared.pair, compared.common, _coverage(compared)
    covered = coverage >= rules.required_coverage
    results = [_result(measured, compared, rules, models if covered else None) for measured in compared.measured]
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


def _result(measured: Measured, compared: Compared, rules: VerdictRules, models: int | None) -> MeasureResult:
    """Return the result of a measure; `models` is the number of models, or None if too few outputs came."""
    measure, effect, pair, q = measured.measure, measured.effect, compared.pair, measured.q
    levels, tolerance, harm = rules.levels(measure), rules.tolerance(measure), rules.policy.harm
    is_tested, is_field = measure.kind != "reproducibility", measure.kind == "field"
    difference = measured.after.mean - measured.before.mean
    lost = is_tested and models is not None and is_lost(measured, models) and difference < -tolerance
    collapsed = lost or (rules.is_critical(measure) and is_harmed_everywhere(measured, max(harm, tolerance)))
    verdict: VerdictName | None = None
    if is_tested:
        verdict = "inconclusive"
        if models is not None:
            verdict = verdict_on(compared, measured, rules, levels, collapsed=collapsed)
    harmed = is_field and models is not None and (lost or (q is not None and q <= levels.fall)) and difference < -harm
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
        detectable_drop=rounded(effect.detectable(levels.fall / measured.family)) if effect and is_tested else None,
        verdict=verdict,
        harmed=harmed and judged_verdict("regressed", measured, pair, harm) == "regressed",
        missing=measured.missing,
        profile_before=profile_of(pair.baseline, measure.name) if is_field and pair.baseline else None,
        profile_after=profile_of(pair.candidate, measure.name) if is_field else None,
    )


def _rounded(interval: tuple[float, float]) -> tuple[float, float]:
    return round(interval[0], 6), round(interval[1], 6)
