"""The reasons of a verdict, and what would decide an inconclusive one. Nothing here changes a verdict."""

import math
from collections.abc import Iterator, Sequence

from skill_evaluator.display import MIN_CASES_FOR_INTERVAL
from skill_evaluator.library.scenarios import SCHEMA_ALONE
from skill_evaluator.stats import ALPHA, t_quantile
from skill_evaluator.text import counted, listed
from skill_evaluator.verdicts.decide.comparability import Common, Pair
from skill_evaluator.verdicts.decide.effects import MAX_MISSED, Effect
from skill_evaluator.verdicts.decide.measuring import Compared, Measured, samples
from skill_evaluator.verdicts.decide.missing_outputs import missing_reasons
from skill_evaluator.verdicts.decide.results import (
    CaseChange,
    Fall,
    MeasureResult,
    calibration_words,
    joined_falls,
    less_repeatable,
)
from skill_evaluator.verdicts.decide.rules import Losses, VerdictRules, measure_verdict

_MAX_TIMES = 20  # times as many cases; more is no advice
_MISSING = "the missing outputs would decide it"


def open_measure(measured: Measured, pair: Pair, rules: VerdictRules) -> tuple[str, str] | None:
    """Return what keeps a measure open, and what would decide it. Return None if it is not chance."""
    effect, measure, tolerance = measured.effect, measured.measure, rules.tolerance(measured.measure)
    if effect is None or measured.q is None:
        return None
    is_judged = pair.unproved_judge is not None and measure.judged
    needs_labels = is_judged and abs(effect.difference) > tolerance and effect.difference >= -rules.policy.harm
    if needs_labels or measure_verdict(effect, measured.q, tolerance, rules.levels(measure)) != "inconclusive":
        return None
    still_open = f"{measure.name}: a drop beyond {tolerance:g} is not ruled out"
    if tolerance == 0.0:
        fell = f"{measure.name} fell from {measured.before.mean:.3f} to {measured.after.mean:.3f}"
        still_open = f"{fell}, not significantly, and no drop is tolerated"
    elif effect.unseen > tolerance:
        still_open += f", as {effect.unseen:.0%} of new outputs could fail unseen"
    elif len(measure.case_ids) >= MIN_CASES_FOR_INTERVAL:
        still_open += f" (interval {effect.ci95[0]:+.3f} to {effect.ci95[1]:+.3f})"
    return still_open, _remedy(measured, effect, pair, rules)


def _remedy(measured: Measured, effect: Effect, pair: Pair, rules: VerdictRules) -> str:
    """Return what would decide a measure if the difference stays.

    The error has to be at most (D + tolerance) ÷ t to exclude a drop, or −D ÷ t for a significant one. The part of the
    error between cases falls with the square root of their number; what two runs on different days add stays.
    """
    measure, candidate = measured.measure, pair.candidate
    cases, tolerance, levels, ways = len(measure.case_ids), rules.tolerance(measure), rules.levels(measure), []
    if effect.unseen > tolerance > 0.0:
        enough = math.ceil(math.log(ALPHA) / math.log(1.0 - tolerance))
        return f"2 replicates of each case, or {enough} cases, would decide it"
    family = measured.q / effect.p if measured.q and effect.p else 1.0
    to_exclude, to_show = t_quantile(effect.degrees, [1 - MAX_MISSED, 1 - levels.fall / family])
    allowed = max((effect.difference + tolerance) / to_exclude if tolerance else 0.0, -effect.difference / to_show)
    between, is_called = effect.error**2 - measured.of_runs, candidate.provider != "replay"
    is_same_model = pair.baseline is not None and pair.baseline.model_id == candidate.model_id
    if measured.of_runs and between <= allowed**2 and is_same_model and is_called:
        ways.append("the baseline interleaved (1.5 × the calls)")
    left = allowed**2 - measured.of_runs
    times = between / left if left > 0.0 else math.inf
    if times <= _MAX_TIMES:
        count = max(cases + 1, math.ceil(cases * times))
        ways.append(f"about {count} cases ({count / cases:.2g} × the calls)")
    differ = measured.before.variances.any() or measured.after.variances.any()
    sampled = None if measured.is_sampled else measured.effect_if(is_sampled=True)
    if sampled is not None and differ and candidate.settings is not None and is_called:
        q = min(1.0, sampled.p * family)
        if measure_verdict(sampled, q, tolerance, levels) != "inconclusive":
            ways.append(f"`profile: sampled` of {candidate.model_id} in models.yaml, if each output is drawn anew,")
    if not ways:
        return f"more than {_MAX_TIMES} times the cases would be needed, if the difference stays"
    return f"{', or '.join(ways)} would decide it, if the difference stays"


def reasons_of(
    compared: Compared, results: Sequence[MeasureResult], losses: Losses, coverage: float, rules: VerdictRules
) -> Iterator[str]:
    """Yield why the verdict on a model is what it is, the weightiest reason first. Advisory fields give none."""
    common = compared.common
    if common is None:
        yield compared.pair.absent
        return
    if compared.judge is not None:
        only = f"only a drop of more than {rules.policy.harm:g} counts"
        counts = only if compared.pair.is_judged_alike else "the baseline's judge differs, so that no change counts"
        yield f"judged by {compared.judge}, not calibrated: {counts}"
    yield from (f"not comparable: {barrier}" for barrier in common.barriers)
    if not common.cases:
        yield "not comparable: no case is the same in both"
    if coverage < rules.required_coverage:
        yield f"coverage {coverage:.2f} is below the required {rules.required_coverage:.2f}; {_MISSING}"
    yield from (reason for reason, _ in _unsupported(common, results, rules))
    if _is_of_one_case(results):
        yield f"one case says nothing of chance: {_more_than_one_case(compared.pair)}"
    weighed = [result for result in results if result.kind == "accuracy" or result.tier != "advisory"]
    yield from _lift(compared.pair, results)
    yield from _reasons_of_losses(losses, results, rules)
    yield from _reasons_of_measures(weighed, rules)
    yield from filter(None, [less_repeatable(results)])
    yield from map("; ".join, _open_measures(compared, results, rules))
    for result in weighed:
        if result.tier == "critical" and result.missing is not None:
            yield from missing_reasons(result.metric, result.missing, result.tolerance, rules.required_coverage)
    if common.cases and not common.barriers:
        yield from _premise(compared.pair)
    if compared.pair.side_by_side and compared.pair.candidate.is_from_elsewhere:
        yield "taken to be measured side by side; `compare --apart` allows for different days"
    yield from common.remarks
    if common.left_out:
        left_out = [f"{case_id} ({why})" for case_id, why in common.left_out.items()]
        yield f"{counted(len(left_out), 'case')} left out: {listed(left_out)}"


def remedy_of(compared: Compared, results: Sequence[MeasureResult], coverage: float, rules: VerdictRules) -> str | None:
    """Return what would decide an inconclusive verdict on a model; None where only a look at its cases would."""
    if coverage < rules.required_coverage:
        return _MISSING
    if _is_of_one_case(results):
        return _more_than_one_case(compared.pair)
    unsupported = list(_unsupported(compared.common, results, rules)) if compared.common else []
    for _, remedy in (*unsupported, *_open_measures(compared, results, rules)):
        return remedy
    if any(result.missing is not None and result.missing.lost for result in results if result.tier == "critical"):
        return _MISSING
    return None if compared.judge is None else calibration_words(compared.judge)


def _unsupported(common: Common, results: Sequence[MeasureResult], rules: VerdictRules) -> Iterator[tuple[str, str]]:
    """Yield why the outputs do not support a verdict, and what would: too few are readable, or no score can fall."""
    for side, outputs in zip(("baseline", "candidate"), common.read, strict=True):
        if not outputs.suffices:
            reason = f"{outputs.read} of {outputs.planned} outputs of the {side} could be read, fewer than half"
            yield reason, "outputs that can be read would decide it"
    for result in results:
        is_open = result.verdict == "inconclusive" and not (result.difference or 0.0) > 0.0
        if is_open and not rules.has_room(result.metric, result.tolerance, result.baseline):
            limit = f"cannot fall by more than the tolerated {result.tolerance:g}"
            more_room = "a version that scores higher, or partial credit (fields in evals/datasets.json)"
            reason = f"{result.metric} was {result.baseline:.3f} and {limit}, so it is never unchanged"
            yield reason, f"{more_room}, would decide it"


def _open_measures(
    compared: Compared, results: Sequence[MeasureResult], rules: VerdictRules
) -> Iterator[tuple[str, str]]:
    """Yield what keeps the critical measures open, and what would decide them."""
    for measured, result in zip(compared.measured, results, strict=True):
        if result.tier == "critical" and result.verdict == "inconclusive":
            yield from filter(None, [open_measure(measured, compared.pair, rules)])


def _lift(pair: Pair, results: Sequence[MeasureResult]) -> Iterator[str]:
    """Yield what the prompt adds, if the baseline was run without it."""
    if pair.baseline is not None and pair.baseline.scenario == SCHEMA_ALONE:
        for one in results:
            if one.tier == "critical":
                yield f"{one.metric}: with {pair.candidate.skill} {one.candidate:.3f}, without {one.baseline:.3f}"


def falls_of(losses: Losses, results: Sequence[MeasureResult]) -> list[Fall]:
    """Return how far each lost field fell, the furthest first."""
    lost = [result for result in results if result.kind == "field" and result.metric in losses.fields]
    lost.sort(key=lambda result: result.difference or 0.0)
    return [(one.metric, f"{one.baseline:.3f} → {one.candidate:.3f}") for one in lost]


def _reasons_of_losses(losses: Losses, results: Sequence[MeasureResult], rules: VerdictRules) -> Iterator[str]:
    """Yield what is lost though the means may not show it."""
    if falls := falls_of(losses, results):
        fields, harm = counted(len(falls), "field"), f"{rules.policy.harm:g}"
        yield f"{fields} lost more than {harm}, which alone is a regression: {joined_falls(falls)}"
    if critical := losses.lost_critical_cases:
        yield f"{counted(len(critical), 'critical case')} lost more than {rules.policy.harm:g}: {_falls(critical)}"
    better = {result.verdict or "" for result in results if result.tier == "critical"} & {"improved", "unchanged"}
    if losses.cases and better:
        lost = f"{counted(len(losses.cases), 'case')} lost more than {rules.policy.harm:g}"
        yield f"not called {min(better)}, since {lost}: {_falls(losses.cases)}"
    since = losses.since_accepted
    if since is not None and since.verdict == "regressed":
        interval = f"{since.ci95[0]:+.3f} to {since.ci95[1]:+.3f}"
        yield f"{since.metric}: {since.difference:+.3f} ({interval}) by all changes since {since.version}"
    if losses.earlier_run is not None:
        yield f"run {losses.earlier_run} of this version regressed, and the runs since do not exclude that drop"


def _reasons_of_measures(results: Sequence[MeasureResult], rules: VerdictRules) -> Iterator[str]:
    for result in results:
        if result.verdict == "regressed":
            yield _moved(result, "fell")
    fell = [result for result in results if result.q is not None and (result.difference or 0.0) < 0.0]
    for result in fell:
        if result.verdict == "unchanged" and (result.q or 0.0) <= rules.alpha:
            yield f"{_moved(result, 'fell')} significantly, but by no more than the tolerated {result.tolerance:g}"
    far = [one for one in fell if (one.p or 0.0) <= rules.alpha / 2 and (one.difference or 0.0) < -one.tolerance]
    if names := [one.metric for one in far if one.verdict == "inconclusive"]:
        yield f"{listed(names)} fell, but not significantly among all measures"
    critical = [result for result in results if result.tier == "critical"]
    yield from (_moved(result, "rose") for result in critical if result.verdict == "improved")


def _is_of_one_case(results: Sequence[MeasureResult]) -> bool:
    accuracy = [result for result in results if result.kind == "accuracy"]
    return bool(accuracy) and all(result.p is None for result in accuracy)


def _more_than_one_case(pair: Pair) -> str:
    """Return what would decide where there is one case."""
    more, candidate = "more cases would decide it", pair.candidate
    if candidate.settings is None or candidate.provider == "replay" or samples(candidate):
        return more
    sampled = f"`profile: sampled` of {candidate.model_id} in models.yaml, which draws each answer anew"
    return f"{more}, or {sampled}; then `skill-evaluator evaluate {candidate.skill} --replicates 5`"


def _premise(pair: Pair) -> Iterator[str]:
    """Yield what a verdict on recorded runs takes for granted, and the command that makes it unneeded."""
    before, after = pair.baseline, pair.candidate
    if before is None or pair.is_beside or before.model_id != after.model_id or after.provider == "replay":
        return
    if before.digests.get("prompt") == after.digests.get("prompt"):  # did the model move? That is the question itself
        return
    days = sorted(f"{moment:%Y-%m-%d}" for moment in (before.moment, after.moment) if moment is not None)
    days = [f"of {' and '.join(dict.fromkeys(days))}"] if len(days) == 2 else []
    between = " ".join(["between the two runs", *days])
    can_rerun = after.settings is not None and after.provider != "program"
    remedy = f"; `skill-evaluator evaluate {after.skill}` runs both interleaved" if can_rerun else ""
    yield f"if the model did not move {between} (recorded runs){remedy}"


def _moved(result: MeasureResult, verb: str) -> str:
    return f"{result.metric} {verb} from {result.baseline:.3f} to {result.candidate:.3f}"


def _falls(cases: Sequence[CaseChange]) -> str:
    return listed([f"{case.case_id} {case.before:.3f} → {case.after:.3f}" for case in cases])
