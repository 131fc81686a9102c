"""Decide the verdicts on measures, cases, models and the component from pairs of records, with reasons."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np

from skill_evaluator.display import MIN_CASES_FOR_INTERVAL
from skill_evaluator.library.config import VerdictName
from skill_evaluator.library.scenarios import SCHEMA_ALONE
from skill_evaluator.records.record import MIN_USABLE, CaseRecord, Record
from skill_evaluator.stats import ALPHA, ROUNDING, benjamini_hochberg, by_key, rounded, t_cdf, t_quantile
from skill_evaluator.text import counted, listed
from skill_evaluator.verdicts.decide import comparability
from skill_evaluator.verdicts.decide.comparability import Pair, SharedCases
from skill_evaluator.verdicts.decide.measuring import (
    MAX_MISSED,
    Compared,
    Effect,
    Floats,
    Measure,
    measure_pair,
    samples,
)
from skill_evaluator.verdicts.decide.results import (
    CaseChange,
    Cases,
    CaseTurn,
    ComparisonResult,
    Fall,
    MeasureResult,
    MeasureTest,
    ModelVerdict,
    RunSummary,
    SinceAccepted,
    StabilityCounts,
    calibration_words,
    joined_falls,
    less_repeatable,
    missing_reasons,
)
from skill_evaluator.verdicts.decide.rules import (
    ACCEPTED_SHARE,
    MOSTLY,
    VerdictRules,
    amount_reasons,
    amount_results,
    component_verdict,
    has_collapsed,
    is_harmed_everywhere,
    judged_verdict,
    limited_verdict,
    measure_verdict,
    model_verdict,
    tested_verdict,
)

Results = Sequence[MeasureResult]
FALSE_NAMES = 0.1  # accepted share of named cases that moved by chance
_HEAVY_TAILS = 5.0  # degrees of freedom of the distribution of case differences
_KEPT_TO_VARIANCE = 2.71  # ratio of a normal variance to the mean square of its smallest three quarters
_MIN_MOVED = 3
_MIN_FIELDS = 3


def named_cases(common: SharedCases, primary: Measure | None, rules: VerdictRules) -> Cases:
    """Return the cases that broke or were fixed, the cases whose pass status changed, and the skipped cases.

    A case broke if its primary metric fell significantly and by more than the tolerance. The drop of a case is
    significant if its adjusted p-value (q) is at most `FALSE_NAMES`, or if the case turned from nearly always right to
    nearly always wrong. For `fixed`, the same rules apply to rises. `within_noise` counts all other changes beyond the
    tolerance.
    """
    turned, unreliable = _turns(common, rules.primary_metric)
    if primary is None:
        return Cases(left_out=common.left_out, turned=turned, unreliable=unreliable)
    tolerance = rules.tolerance(primary)
    pairs = {before.case_id: (before, after) for before, after in common.cases}
    scores = (score for arm in primary.scores for case in arm for score in case)
    is_graded = any(score not in (0.0, 1.0) for score in scores)
    q_values = benjamini_hochberg(p_values_of_cases(primary.after.means - primary.before.means))
    named, others, worse = list[CaseChange](), list[CaseChange](), set[str]()
    for case_id, old, new, q in zip(primary.case_ids, *primary.scores, q_values, strict=True):
        before, after = sum(old) / len(old), sum(new) / len(new)
        if abs(after - before) > tolerance:
            before, after = round(before, 6), round(after, 6)
            fields = changed_fields(*pairs[case_id])
            is_turned = _is_turned(*pairs[case_id], (before, after), is_graded=is_graded)
            moved = named if q <= FALSE_NAMES or is_turned else others
            moved.append(CaseChange(case_id=case_id, before=before, after=after, fields=fields))
            worse |= {case_id} if max(new) < min(old) else set()
    for moved in (named, others):
        moved.sort(key=lambda change: (-abs(change.after - change.before), change.case_id))
    return Cases(
        broke=[change for change in named if change.after < change.before],
        fixed=[change for change in named if change.after > change.before],
        left_out=common.left_out,
        within_noise=len(others),
        every_answer_worse=[change.case_id for change in others if change.case_id in worse],
        turned=turned,
        unreliable=unreliable,
    )


def _turns(common: SharedCases, primary_metric: str) -> tuple[list[CaseTurn], list[CaseTurn]]:
    """Return the cases whose pass status changed, the largest drop first, and the cases that were flaky before."""
    turns = []
    for before, after in common.cases if any(case.checks for _, case in common.cases) else ():
        if (was := before.pass_text(primary_metric)) and (now := after.pass_text(primary_metric)):
            rise = fmean(after.passed(primary_metric)) - fmean(before.passed(primary_metric))
            turns.append((rise, CaseTurn(case_id=after.case_id, before=was, after=now)))
    turns.sort(key=lambda turn: turn[0])
    turned = [turn for _, turn in turns if turn.before.split()[0] != turn.after.split()[0]]
    return turned, [turn for _, turn in turns if turn.before.startswith("flaky")]


def _is_turned(before: CaseRecord, after: CaseRecord, means: tuple[float, float], *, is_graded: bool) -> bool:
    """Return whether a case is at least 90 % right in one version and at most 10 % right in the other version.

    The fields decide if there are at least three, else the metric. A metric that is only 0 or 1 turns no case.
    """
    if len(before.fields) >= _MIN_FIELDS:
        scores_of = comparability.field_scores
        sides = [[score for path in before.fields for score in scores_of(case, path)] for case in (before, after)]
        means = (fmean(sides[0] or [0.0]), fmean(sides[1] or [0.0]))
    elif not is_graded:
        return False
    return max(means) >= MOSTLY and min(means) <= 1 - MOSTLY + ROUNDING


def changed_fields(before: CaseRecord, after: CaseRecord) -> dict[str, str]:
    """Return the counts `right/n → right/n` by path of each field whose share changed, the largest change first."""
    changes = []
    for path in sorted(before.fields.keys() | after.fields.keys()):
        counts = (before.fields.get(path), after.fields.get(path))
        old, new = (count.right / count.n if count and count.n else None for count in counts)
        if old != new:
            counts_text = " → ".join(f"{count.right}/{count.n}" if count else "–" for count in counts)
            changes.append((round(abs((new or 0.0) - (old or 0.0)), 6), path, counts_text))
    changes.sort(key=lambda change: -change[0])
    return {path: counts_text for _, path, counts_text in changes}


def profile_of(record: Record, path: str) -> dict[str, int]:
    """Return the number of cases by the stability of a field in a record, for example `{"flaky": 2}`."""
    counts = Counter(case.profile.get(path, "unscored") for case in record.per_case if path in case.fields)
    return dict(sorted(counts.items()))


def p_values_of_cases(differences: Floats) -> list[float]:
    """Return the two-sided p-value of each case's difference.

    If fewer than three differences are not 0, all p-values are 1. The variance is estimated from the smallest three
    quarters of the differences that are not 0.
    """
    sizes = np.sort(np.abs(differences[np.abs(differences) > ROUNDING]))
    if len(sizes) < _MIN_MOVED:
        return [1.0] * len(differences)
    smallest = sizes[: -max(1, len(sizes) // 4)]
    error = float(np.sqrt(_KEPT_TO_VARIANCE * (smallest**2).mean()))
    return [float(p) for p in 2.0 * t_cdf(_HEAVY_TAILS, -np.abs(differences) / error)]


_MAX_TIMES = 20  # more cases than this multiple are not recommended
_MISSING = "the missing outputs would decide it"


def _open_measures(compared: Compared, results: Results, rules: VerdictRules) -> Iterator[tuple[str, str]]:
    """Yield the reason and the remedy, as texts, for each critical measure with too few data for a verdict.

    Skip measures that are inconclusive for another reason, such as an uncalibrated judge or unreadable outputs.
    """
    for measure, result in zip(compared.measured, results, strict=True):
        effect, q, tolerance = measure.effect, compared.q(measure), result.tolerance
        if result.tier != "critical" or result.verdict != "inconclusive" or effect is None or q is None:
            continue
        is_judged = compared.pair.unproved_judge is not None and measure.judged
        needs_labels = is_judged and abs(effect.difference) > tolerance and effect.difference >= -rules.policy.harm
        verdict = measure_verdict(effect, q, tolerance, rules.level(measure), rules.alpha)
        if needs_labels or verdict != "inconclusive":
            continue
        still_open = f"{measure.name}: a drop beyond {tolerance:g} is not ruled out"
        if tolerance == 0.0:
            fell = f"{measure.name} fell from {measure.before.mean:.3f} to {measure.after.mean:.3f}"
            still_open = f"{fell}, not significantly, and no drop is tolerated"
        elif effect.unseen > tolerance:
            still_open += f", as {effect.unseen:.0%} of new outputs could fail unseen"
        elif len(measure.case_ids) >= MIN_CASES_FOR_INTERVAL:
            still_open += f" (interval {effect.ci95[0]:+.3f} to {effect.ci95[1]:+.3f})"
        yield still_open, _remedy(measure, effect, compared, rules)


def _remedy(measure: Measure, effect: Effect, compared: Compared, rules: VerdictRules) -> str:
    """Format the ways to reach a verdict on an inconclusive measure, such as an interleaved baseline or more cases."""
    baseline, candidate, q = *compared.pair.runs, compared.q(measure)
    cases, tolerance, level, ways = len(measure.case_ids), rules.tolerance(measure), rules.level(measure), []
    if effect.unseen > tolerance > 0.0:
        enough = math.ceil(math.log(ALPHA) / math.log(1.0 - tolerance))
        return f"2 replicates of each case, or {enough} cases, would decide it"
    family = q / effect.p if q and effect.p else 1.0
    to_exclude, to_show = t_quantile(effect.degrees, [1 - MAX_MISSED, 1 - level / family])
    allowed = max((effect.difference + tolerance) / to_exclude if tolerance else 0.0, -effect.difference / to_show)
    between, is_called = effect.error**2 - measure.day_variance, candidate.provider != "replay"
    is_same_model = baseline is not None and baseline.model_id == candidate.model_id
    if measure.day_variance and between <= allowed**2 and is_same_model and is_called:
        ways.append("the baseline interleaved (1.5 × the calls)")
    remaining = allowed**2 - measure.day_variance
    times = between / remaining if remaining > 0.0 else math.inf
    if times <= _MAX_TIMES:
        count = max(cases + 1, math.ceil(cases * times))
        ways.append(f"about {count} cases ({count / cases:.2g} × the calls)")
    differ = measure.before.variances.any() or measure.after.variances.any()
    sampled = None if measure.is_sampled else measure.effect_if(is_sampled=True)
    if sampled is not None and differ and candidate.settings is not None and is_called:
        sampled_q = min(1.0, sampled.p * family)
        if measure_verdict(sampled, sampled_q, tolerance, level, rules.alpha) != "inconclusive":
            profile = f"`profile: sampled` of {candidate.model_id} in models.yaml"
            ways.append(f"{profile}, if each output is an independent sample,")
    if not ways:
        return f"more than {_MAX_TIMES} times the cases would be needed, if the difference stays"
    return f"{', or '.join(ways)} would decide it, if the difference stays"


def _reasons_of(compared: Compared, results: Results, losses: Sequence[str], rules: VerdictRules) -> Iterator[str]:
    """Yield the reasons for the verdict on a model. `losses` has the reasons that lowered the verdict."""
    common, coverage = compared.common, compared.coverage
    if compared.pair.baseline is None:
        yield compared.pair.absent
        return
    if compared.judge is not None:
        only = f"only a drop of more than {rules.policy.harm:g} counts"
        counts = only if compared.pair.is_judged_alike else "the baseline's judge differs, so no change counts"
        yield f"judged by {compared.judge}, not calibrated: {counts}"
    yield from (f"not comparable: {barrier}" for barrier in common.barriers)
    if not common.cases:
        yield "not comparable: no case is the same in both"
    if coverage < rules.required_coverage:
        yield f"coverage {coverage:.2f} is below the required {rules.required_coverage:.2f}; {_MISSING}"
    yield from (reason for reason, _ in _unsupported(common, results, rules))
    if _is_of_one_case(results):
        yield f"one case cannot show the effect of chance: {_more_than_one_case(compared.pair)}"
    weighed = [result for result in results if result.kind == "accuracy" or result.tier != "advisory"]
    yield from _lift(compared.pair, results)
    yield from losses
    yield from _reasons_of_measures(weighed, rules)
    yield from filter(None, [less_repeatable(results)])
    yield from map("; ".join, _open_measures(compared, results, rules))
    for result in weighed:
        if result.tier == "critical" and result.missing is not None:
            yield from missing_reasons(result.metric, result.missing, result.tolerance, rules.required_coverage)
    if common.cases and not common.barriers:
        yield from _premise(compared.pair)
    if compared.pair.side_by_side and compared.pair.candidate.is_from_elsewhere:
        yield "treated as measured on the same day; `compare --different-days` allows for different days"
    yield from common.remarks
    if common.left_out:
        left_out = [f"{case_id} ({why})" for case_id, why in common.left_out.items()]
        yield f"{counted(len(left_out), 'case')} left out: {listed(left_out)}"


def _remedy_of(compared: Compared, results: Results, rules: VerdictRules) -> str | None:
    if compared.coverage < rules.required_coverage:
        return _MISSING
    if _is_of_one_case(results):
        return _more_than_one_case(compared.pair)
    for _, remedy in (*_unsupported(compared.common, results, rules), *_open_measures(compared, results, rules)):
        return remedy
    if any(result.missing is not None and result.missing.lost for result in results if result.tier == "critical"):
        return _MISSING
    return None if compared.judge is None else calibration_words(compared.judge)


def _unsupported(common: SharedCases, results: Results, rules: VerdictRules) -> Iterator[tuple[str, str]]:
    for side, (read, planned) in zip(("baseline", "candidate"), common.outputs, strict=True):
        if read < MIN_USABLE * planned:
            reason = f"{read} of {planned} outputs of the {side} could be read, fewer than half"
            yield reason, "outputs that can be read would decide it"
    for result in results:
        is_open = result.verdict == "inconclusive" and not (result.difference or 0.0) > 0.0
        if is_open and not rules.has_room(result.metric, result.tolerance, result.baseline):
            limit = f"cannot fall by more than the tolerated {result.tolerance:g}"
            more_room = "a version that scores higher, or partial credit (fields in evals/datasets.json)"
            reason = f"{result.metric} was {result.baseline:.3f} and {limit}, so it is never unchanged"
            yield reason, f"{more_room}, would decide it"


def _lift(pair: Pair, results: Results) -> Iterator[str]:
    if pair.baseline is not None and pair.baseline.scenario == SCHEMA_ALONE:
        for result in results:
            if result.tier == "critical":
                with_prompt = f"with {pair.candidate.skill} {result.candidate:.3f}"
                yield f"{result.metric}: {with_prompt}, without {result.baseline:.3f}"


def falls_of(results: Results) -> list[Fall]:
    """Return each lost field as (path, means before and after as text), the largest drop first."""
    lost = sorted((one for one in results if one.harmed), key=lambda result: result.difference or 0.0)
    return [(one.metric, f"{one.baseline:.3f} → {one.candidate:.3f}") for one in lost]


def _with_losses(
    verdict: VerdictName,
    results: Results,
    cases: Sequence[CaseChange],
    since: SinceAccepted | None,
    failed_run: str | None,
    rules: VerdictRules,
) -> tuple[VerdictName, list[str]]:
    """Lower the verdict on a model if cases or fields are lost, or an earlier run regressed. Also return the reasons.

    `cases` are the lost cases. `since` is the change since the accepted version. `failed_run` is the id of an earlier
    run of the candidate's version that regressed.
    """
    lowered, reasons, harm = verdict, list[str](), f"{rules.policy.harm:g}"
    if cases and verdict in ("improved", "unchanged"):
        lowered = "inconclusive"
    if falls := falls_of(results):
        lowered, fields = "regressed", counted(len(falls), "field")
        reasons.append(f"{fields} lost more than {harm}, which alone is a regression: {joined_falls(falls)}")
    if critical := [case for case in cases if case.case_id in rules.critical_cases]:
        lowered = "regressed"
        reasons.append(f"{counted(len(critical), 'critical case')} lost more than {harm}: {_falls(critical)}")
    better = {result.verdict or "" for result in results if result.tier == "critical"} & {"improved", "unchanged"}
    if cases and better:
        lost = f"{counted(len(cases), 'case')} lost more than {harm}"
        reasons.append(f"not called {min(better)}, since {lost}: {_falls(cases)}")
    if since is not None and since.verdict == "regressed":
        lowered, interval = "regressed", f"{since.ci95[0]:+.3f} to {since.ci95[1]:+.3f}"
        reasons.append(f"{since.metric}: {since.difference:+.3f} ({interval}) by all changes since {since.version}")
    if failed_run is not None:
        lowered = "regressed" if verdict == "inconclusive" else lowered
        reasons.append(f"run {failed_run} of this version regressed, and the runs since do not exclude that drop")
    return lowered, reasons


def _reasons_of_measures(results: Results, rules: VerdictRules) -> Iterator[str]:
    for result in results:
        if result.verdict == "regressed":
            yield _moved(result, "fell")
    fell = [result for result in results if result.test.q is not None and (result.difference or 0.0) < 0.0]
    for result in fell:
        if result.verdict == "unchanged" and (result.test.q or 0.0) <= rules.alpha:
            yield f"{_moved(result, 'fell')} significantly, but by no more than the tolerated {result.tolerance:g}"
    far = [one for one in fell if (one.test.p or 0.0) <= rules.alpha / 2 and (one.difference or 0.0) < -one.tolerance]
    if names := [one.metric for one in far if one.verdict == "inconclusive"]:
        yield f"{listed(names)} fell, but not significantly among all measures"
    critical = [result for result in results if result.tier == "critical"]
    yield from (_moved(result, "rose") for result in critical if result.verdict == "improved")
    rose = [one for one in critical if one.verdict == "unchanged" and (one.difference or 0.0) > one.tolerance]
    yield from (f"{_moved(result, 'rose')}, but not significantly" for result in rose)


def _is_of_one_case(results: Results) -> bool:
    accuracy = [result for result in results if result.kind == "accuracy"]
    return bool(accuracy) and all(result.test.p is None for result in accuracy)


def _more_than_one_case(pair: Pair) -> str:
    more, candidate = "more cases would decide it", pair.candidate
    if candidate.settings is None or candidate.provider == "replay" or samples(candidate):
        return more
    sampled = f"`profile: sampled` of {candidate.model_id} in models.yaml, which samples each output independently"
    return f"{more}, or {sampled}; then `skill-evaluator evaluate {candidate.skill} --replicates 5`"


def _premise(pair: Pair) -> Iterator[str]:
    before, after = pair.baseline, pair.candidate
    if before is None or pair.is_beside or before.model_id != after.model_id or after.provider == "replay":
        return
    # with an unchanged prompt the comparison itself tests whether the model changed
    if before.digests.get("prompt") == after.digests.get("prompt"):
        return
    days = sorted(f"{moment:%Y-%m-%d}" for moment in (before.moment, after.moment) if moment is not None)
    days = [f"({' and '.join(dict.fromkeys(days))})"] if len(days) == 2 else []
    between = " ".join(["between the two runs", *days])
    can_rerun = after.settings is not None and after.provider != "program" and before.git.prompt_commit is not None
    remedy = f"; `skill-evaluator evaluate {after.skill}` runs both versions interleaved" if can_rerun else ""
    yield f"this verdict assumes that the model did not change {between}, which were not interleaved{remedy}"


def _moved(result: MeasureResult, verb: str) -> str:
    return f"{result.metric} {verb} from {result.baseline:.3f} to {result.candidate:.3f}"


def _falls(cases: Sequence[CaseChange]) -> str:
    return listed([f"{case.case_id} {case.before:.3f} → {case.after:.3f}" for case in cases])


FAMILY = "the measures of equal weight, of all models (Benjamini-Hochberg)"


def compare_records(
    pairs: Sequence[Pair],
    rules: VerdictRules,
    left_out: Mapping[str, str] | None = None,
    hidden: Sequence[Pair] = (),
    *,
    fields: bool = True,
) -> ComparisonResult:
    """Compare pairs of records, usually one per model of a component. Without `fields`, only their metrics count.

    `left_out` has the reason why a model is skipped, by model id. The pairs of `hidden` count in the correction for
    multiple tests and get no verdict.
    """
    family = []
    for pair in (*pairs, *hidden):
        pair = comparability.without_unstable(pair, rules.unstable_cases, rules.primary_metric)
        any_served = pair.any_served or rules.policy.served == "any"
        family.append(replace(pair, any_served=any_served, unproved_judge=rules.uncalibrated_judge(pair.candidate)))
    comparable = sum(pair.baseline is not None for pair in family)
    compared = _with_q([measure_pair(pair, fields=fields) for pair in family], rules)[: len(pairs)]
    changes = _changes_since_accepted(family, rules)[: len(pairs)]
    models = [_model(*changed, rules, comparable) for changed in zip(compared, changes, strict=True)]
    return ComparisonResult(
        skill=rules.skill,
        verdict=component_verdict(model.verdict for model in models),
        alpha=rules.alpha,
        family=FAMILY,
        models=models,
        left_out=dict(left_out or {}),
    )


def _with_q(compared: Sequence[Compared], rules: VerdictRules) -> list[Compared]:
    """Set `tests` of each comparison to p-values, adjusted over all measures of the same tier in all comparisons."""
    tested = [
        (_family_of(measure, rules), (measure, measure.effect.p))
        for model in compared
        for measure in (*model.measured, *model.amounts.values())
        if isinstance(measure, Measure) and measure.kind != "reproducibility" and measure.effect is not None
    ]
    tests: dict[Measure, tuple[float, int]] = {}
    for family in by_key(tested).values():
        q_values = benjamini_hochberg([p for _, p in family])
        tests |= {measure: (q, len(family)) for (measure, _), q in zip(family, q_values, strict=True)}
    return [replace(model, tests=tests) for model in compared]


def _family_of(measure: Measure, rules: VerdictRules) -> tuple[str, bool]:
    tier = rules.tier(measure)
    return tier, tier == "advisory" and measure.kind == "amount"


def _changes_since_accepted(pairs: Sequence[Pair], rules: VerdictRules) -> list[SinceAccepted | None]:
    """Return one change per pair, from its anchor to its candidate: the change of the critical measure that fell most.

    The anchor is an older record, usually of the accepted version. The change is None if the pair has no anchor, if the
    anchor is also the baseline, or if no critical measure can be compared.
    """
    tested = []
    for index, pair in enumerate(pairs):
        if pair.anchor is not None and (pair.baseline is None or pair.baseline.run_id != pair.anchor.run_id):
            since = replace(pair, baseline=pair.anchor, baseline_again=pair.anchor_again)
            compared = measure_pair(since)
            critical = filter(rules.is_critical, compared.measured)
            tested += [(index, pair.anchor, compared, one, one.effect) for one in critical if one.effect]
    changes = dict[int, SinceAccepted]()
    q_values = benjamini_hochberg([effect.p for *_, effect in tested])
    for (index, accepted, compared, measure, effect), q in zip(tested, q_values, strict=True):
        change = SinceAccepted(
            version=accepted.skill_version,
            run_id=accepted.run_id,
            metric=measure.name,
            difference=round(effect.difference, 6),
            ci95=_rounded(effect.ci95),
            q=round(q, 6),
            verdict=tested_verdict(compared, measure, q, rules, rules.alpha * ACCEPTED_SHARE),
        )
        if index not in changes or change.difference < changes[index].difference:
            changes[index] = change
    return [changes.get(index) for index in range(len(pairs))]


def _failed_before(pair: Pair, rules: VerdictRules, models: int) -> str | None:
    """Return the id of the oldest run in `candidate_again` that regressed. Return None if no run regressed."""
    runs = (*pair.candidate_again, pair.candidate)
    for count, run in enumerate(runs[:-1]):
        compared = measure_pair(replace(pair, candidate=run, candidate_again=runs[:count]))
        for measure in filter(rules.is_critical, compared.measured):
            q = None if measure.effect is None else min(1.0, measure.effect.p * models)
            if tested_verdict(compared, measure, q, rules, rules.level(measure)) == "regressed":
                return run.run_id
    return None


def _model(compared: Compared, since_accepted: SinceAccepted | None, rules: VerdictRules, models: int) -> ModelVerdict:
    pair, common = compared.pair, compared.common
    covered = compared.coverage >= rules.required_coverage
    results = [_result(measure, compared, rules, models, covered=covered) for measure in compared.measured]
    amounts = amount_results(compared, rules, covered=covered)
    verdict: VerdictName = "incomparable"
    if common.cases and not common.barriers:
        verdicts = [(one.tier, one.verdict) for one in results] + [(one.tier, one.verdict) for one in amounts]
        verdict = model_verdict((tier, one) for tier, one in verdicts if one is not None)
    is_tested = covered and verdict != "incomparable"
    primary = compared.primary(rules.primary_metric)
    cases = Cases() if common.barriers else named_cases(common, primary, rules)
    lost_cases = [case for case in cases.broke if covered and case.before - case.after > rules.policy.harm]
    failed_run = _failed_before(pair, rules, models) if is_tested else None
    verdict, losses = _with_losses(verdict, results, lost_cases, since_accepted, failed_run, rules)
    open_amounts = (one for one in amounts if one.tier == "critical" and one.verdict == "inconclusive")
    remedy = _remedy_of(compared, results, rules) or next(amount_reasons(open_amounts, 0), None)
    return ModelVerdict(
        model_id=pair.candidate.model_id,
        verdict=verdict,
        coverage=round(compared.coverage, 6),
        metrics=[result for result in results if result.kind != "field"],
        fields=[result for result in results if result.kind == "field"],
        amounts=amounts,
        cases=cases,
        lost_fields=[one.metric for one in results if one.harmed],
        lost_cases=[case.case_id for case in lost_cases],
        since_accepted=since_accepted,
        baseline_runs=1 + len(pair.baseline_again),
        candidate_runs=1 + len(pair.candidate_again),
        baseline=None if pair.baseline is None else RunSummary.of(pair.baseline, beside=pair.candidate),
        candidate=RunSummary.of(pair.candidate),
        reasons=[
            *_reasons_of(compared, results, losses, rules),
            *amount_reasons(amounts, pair.candidate.planned),
            *pair.skipped_notes,
        ],
        falls=falls_of(results),
        remedy=remedy if verdict == "inconclusive" else None,
        unproved_judge=_deciding_judge(compared, results, verdict),
        served=None if pair.baseline is None else comparability.served_change(pair.baseline, pair.candidate),
    )


def _deciding_judge(compared: Compared, results: Results, verdict: VerdictName) -> str | None:
    judged = {(measure.name, measure.kind) for measure in compared.measured if measure.judged}
    others = (one for one in results if (one.metric, one.kind) not in judged)
    suffices = any(one.harmed or (one.tier != "advisory" and one.verdict == "regressed") for one in others)
    return None if verdict == "regressed" and suffices else compared.judge


def _result(measure: Measure, compared: Compared, rules: VerdictRules, models: int, *, covered: bool) -> MeasureResult:
    """Build the result of a measure. `models` is the number of compared models.

    `covered` is false if the pair's coverage is too low; then tested measures are *inconclusive*.
    """
    effect, pair, (q, family) = measure.effect, compared.pair, compared.tests.get(measure, (None, 1))
    level, tolerance, harm = rules.level(measure), rules.tolerance(measure), rules.policy.harm
    is_tested, is_field = measure.kind != "reproducibility", measure.kind == "field"
    difference = measure.after.mean - measure.before.mean
    lost = is_tested and covered and has_collapsed(measure, models) and difference < -tolerance
    collapsed = lost or (rules.is_critical(measure) and is_harmed_everywhere(measure, max(harm, tolerance)))
    verdict: VerdictName | None = "inconclusive" if is_tested else None
    if is_tested and covered:
        tested = "regressed" if collapsed else measure_verdict(effect, q, tolerance, level, rules.alpha)
        verdict = limited_verdict(tested, compared, measure, rules)
    harmed = is_field and covered and (lost or (q is not None and q <= level)) and difference < -harm
    return MeasureResult(
        metric=measure.name,
        kind=measure.kind,
        tier=rules.tier(measure),
        tolerance=tolerance,
        baseline=round(measure.before.mean, 6),
        candidate=round(measure.after.mean, 6),
        difference=round(difference, 6),
        test=MeasureTest(
            ci95=None if effect is None else _rounded(effect.ci95),
            p=round(effect.p, 6) if effect is not None and is_tested else None,
            q=rounded(q),
            n=0 if effect is None else effect.n,
            n_cases=len(measure.case_ids),
            detectable_drop=rounded(effect.detectable(level / family)) if effect and is_tested else None,
        ),
        verdict=verdict,
        harmed=harmed and judged_verdict("regressed", measure, pair, harm) == "regressed",
        missing=measure.missing,
        stability=StabilityCounts(
            profile_before=profile_of(pair.baseline, measure.name) if is_field and pair.baseline else None,
            profile_after=profile_of(pair.candidate, measure.name) if is_field else None,
        ),
    )


def _rounded(interval: tuple[float, float]) -> tuple[float, float]:
    return round(interval[0], 6), round(interval[1], 6)
