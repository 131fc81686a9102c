"""Why a verdict is what it is, and what would decide an open one: more cases, more replicates, or both side by side.

Results that are already decided come in. Nothing here changes a verdict. What would decide is the verdict's own
arithmetic, with the difference as it is and a smaller error.
"""

import math
from bisect import bisect_left
from calendar import month_name
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from scipy.special import stdtr, stdtrit

from skill_evaluator.display import FEWEST_CASES
from skill_evaluator.library.config import Gate
from skill_evaluator.library.scenarios import SCHEMA_ALONE
from skill_evaluator.text import counted, listed
from skill_evaluator.verdicts.decide.comparability import Common, Pair, moment_of
from skill_evaluator.verdicts.decide.effects import MISSED, Effect
from skill_evaluator.verdicts.decide.lost_answers import missing_reasons
from skill_evaluator.verdicts.decide.measuring import Compared, Measured, samples
from skill_evaluator.verdicts.decide.results import (
    CaseChange,
    Fall,
    MeasureResult,
    calibration_words,
    joined_falls,
    less_repeatable,
)
from skill_evaluator.verdicts.decide.rules import OF_OTHERS, Losses, VerdictRules, measure_verdict, spending

_MOST = 20  # times as many cases or replicates; more is no advice
_SETTLED = 2  # replicates of a case that show a model to repeat itself
_BESIDE = 1.5  # times the calls of a candidate that is asked alone


def open_measure(measured: Measured, result: MeasureResult, pair: Pair, rules: VerdictRules) -> tuple[str, str] | None:
    """Return what keeps an inconclusive measure open, and what would decide it; None where it is not chance."""
    gate, levels = rules.policy.gate, rules.levels(measured.measure, pair.baseline_look)
    effect = measured.effects[gate]
    if result.verdict != "inconclusive" or effect is None or result.q is None or result.ci95 is None:
        return None
    family = result.q / result.p if result.p else 1.0

    def decides(other: Effect) -> bool:
        q = min(1.0, other.p * family)
        return measure_verdict(other, q, result.tolerance, levels, covered=True) != "inconclusive"

    difference, is_judged = effect.difference, pair.unproved_judge is not None and measured.measure.judged
    needs_labels = is_judged and abs(difference) > result.tolerance and difference >= -rules.policy.harm
    if needs_labels or decides(effect):
        return None
    (low, high), tolerance = result.ci95, result.tolerance
    still_open = f"{result.metric}: a drop beyond {tolerance:g} is not ruled out"
    if tolerance == 0.0:
        fell = f"{result.metric} fell from {result.baseline:.3f} to {result.candidate:.3f}"
        still_open = f"{fell}, within chance, and no drop is tolerated"
    elif effect.lowest >= -tolerance:
        unit = "documents" if effect.n == result.n_cases else "answers"
        still_open += f", as failures in {effect.unseen:.0%} of all {unit} could go unseen in {effect.n}"
    elif result.n_cases >= FEWEST_CASES:
        still_open += f" (interval {low:+.3f} to {high:+.3f})"
    asked = pair.baseline is not None and pair.baseline.model_id == pair.candidate.model_id
    can_be_beside = asked and pair.candidate.provider != "replay"
    return still_open, _ways(measured, effect, decides, gate, can_be_beside=can_be_beside)


def _ways(
    measured: Measured, effect: Effect, decides: Callable[[Effect], bool], gate: Gate, *, can_be_beside: bool
) -> str:
    """Return in words what would make the effect in a scope decisive, if the difference stays as it is.

    The error falls with the square root of the cases, and its part within cases with that of the replicates. What two
    runs add as a whole stays, unless both versions are asked side by side.
    """
    cases, replicates = len(measured.measure.case_ids), int(measured.after.counts.max())
    seen = max(0.0, effect.error**2 - measured.of_runs)
    of_answers = effect.n != cases  # the answers are the sample, and all of the error is between them
    within = seen if of_answers else min(seen, measured.before.explained + measured.after.explained)

    def with_cases(count: int) -> Effect:
        factor = count / cases
        unseen = 1.0 - math.pow(1.0 - effect.unseen, 1 / factor)
        return _like(effect, seen / factor + measured.of_runs, effect.degrees * factor, unseen)

    def with_replicates(count: int) -> Effect:
        factor = count / replicates
        left = seen - within + within / factor + measured.of_runs
        degrees = effect.degrees * factor if of_answers else effect.degrees
        return _like(effect, left, degrees, 0.0 if gate == "these" and count >= _SETTLED else effect.unseen)

    more_cases = _fewest(range(cases + 1, _MOST * cases + 1), lambda count: decides(with_cases(count)))
    more = _fewest(range(replicates + 1, _MOST * replicates + 1), lambda count: decides(with_replicates(count)))
    beside = can_be_beside and measured.of_runs > 0.0 and decides(_like(effect, seen, effect.degrees, effect.unseen))
    ways = [f"both versions asked side by side ({_BESIDE:g} × the calls)"] if beside else []
    ways += [f"about {count} cases ({count / cases:.2g} × the calls)" for count in more_cases]
    ways += [f"{count} replicates of these ({count / replicates:.2g} ×)" for count in more]
    if not ways:
        return f"more than {_MOST} times the cases or replicates would be needed, if the difference stays"
    return f"{', or '.join(ways)}{',' * (len(ways) > 1)} would decide it, if the difference stays"


def _like(effect: Effect, variance: float, degrees: float, unseen: float) -> Effect:
    error = math.sqrt(variance)
    p = float(stdtr(degrees, -abs(effect.difference) / error)) if error else 0.0 if effect.difference else 0.5
    lowest = effect.difference - (float(stdtrit(degrees, 1 - MISSED)) * error if error else 0.0)
    return replace(effect, error=error, degrees=degrees, p=p, lowest=lowest, unseen=unseen)


def _fewest(counts: Sequence[int], suffices: Callable[[int], bool]) -> Iterator[int]:
    """Yield the smallest count that suffices, if there is one."""
    place = bisect_left(counts, True, key=suffices)
    yield from counts[place : place + 1]


_MISSING = "the answers that are missing would decide it"
_MORE_ROOM = "a version that scores higher, or partial credit (fields in evals/datasets.json), would decide it"
_NAMED_ALONE = 0.01  # a measure with so small a p is named even where its family does not confirm it


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
    if _is_of_one_case(results, rules):
        yield f"one case says nothing of chance: {_more_than_one_case(compared.pair)}"
    weighed = [result for result in results if result.kind == "accuracy" or result.tier != "advisory"]
    yield from _lift(compared, results)
    yield from _reasons_of_losses(losses, results, rules)
    yield from _reasons_of_measures(weighed, rules)
    yield from filter(None, [less_repeatable(results)])
    yield from _too_unsure(compared, results, rules)
    for measured, result in _critical(compared, results):
        yield from _look_of_step(measured, result, compared.pair, rules)
        if (still_open := open_measure(measured, result, compared.pair, rules)) is not None:
            yield "; ".join(still_open)
    yield from _look_since_anchor(losses)
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
    if _is_of_one_case(results, rules):
        return _more_than_one_case(compared.pair)
    for _, remedy in _unsupported(compared.common, results, rules) if compared.common else ():
        return remedy
    for measured, result in _critical(compared, results):
        if (still_open := open_measure(measured, result, compared.pair, rules)) is not None:
            return still_open[1]
    lacking = any(result.missing is not None and result.missing.lost for result in results if result.tier == "critical")
    if lacking or (judge := compared.judge) is None:
        return _MISSING if lacking else None
    return calibration_words(judge)


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
            yield f"{result.metric} was {result.baseline:.3f} and {limit}, so it is never unchanged", _MORE_ROOM


def _critical(compared: Compared, results: Sequence[MeasureResult]) -> list[tuple[Measured, MeasureResult]]:
    pairs = zip(compared.measured, results, strict=True)
    return [(measured, result) for measured, result in pairs if result.tier == "critical"]


def _lift(compared: Compared, results: Sequence[MeasureResult]) -> Iterator[str]:
    """Yield what the prompt adds, where the baseline was asked without it."""
    baseline, name = compared.pair.baseline, compared.pair.candidate.skill
    for _, result in _critical(compared, results):
        if (
            baseline is not None
            and baseline.scenario == SCHEMA_ALONE
            and None not in (result.baseline, result.candidate)
        ):
            yield f"{result.metric}: with {name} {result.candidate:.3f}, without {result.baseline:.3f}"


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
    critical = [case for case in losses.cases if case.case_id in losses.critical_cases]
    if critical:
        yield f"{counted(len(critical), 'critical case')} lost more than {rules.policy.harm:g}: {_falls(critical)}"
    better = {result.verdict for result in results if result.tier == "critical"} & {"improved", "unchanged"}
    if losses.cases and better:
        lost = f"{counted(len(losses.cases), 'case')} lost more than {rules.policy.harm:g}"
        yield f"not called {min(better)}, since {lost}: {_falls(losses.cases)}"
    watch = losses.watch
    if watch is not None and watch.verdict == "regressed":
        sure = f"p {max(watch.p, 1e-6):.2g}; run {watch.look} needs ≤ {watch.level:.2g}"
        lost = f"{watch.difference:+.3f} ({watch.interval[0]:+.3f} to {watch.interval[1]:+.3f})"
        yield f"{watch.metric}: {lost} by all changes since {watch.anchor_version} ({sure})"
    if losses.earlier_run is not None:
        yield f"run {losses.earlier_run} of this version regressed, and the runs since do not exclude that drop"


def _reasons_of_measures(results: Sequence[MeasureResult], rules: VerdictRules) -> Iterator[str]:
    alpha = rules.alpha
    for result in results:
        if result.verdict == "regressed" and result.kind != "reproducibility":
            yield _moved(result, "fell")
    for result in results:
        fell = result.difference is not None and result.difference < 0
        if fell and result.verdict == "unchanged" and result.q is not None and result.q <= alpha:
            yield f"{_moved(result, 'fell')}, beyond chance, but by no more than the tolerated {result.tolerance:g}"
        if result.p is not None and result.q is not None and result.p < _NAMED_ALONE and result.q > alpha:
            verb = "fell" if fell else "rose"
            moved = _moved(result, verb)
            yield f"{moved}: p {result.p:.2g} alone, not sure enough among all measures (q {result.q:.2g})"
    critical = [result for result in results if result.tier == "critical"]
    yield from (_moved(result, "rose") for result in critical if result.verdict == "improved")
    for result in critical:
        of_these = {"regressed": "fell", "improved": "rose"}.get(result.these.verdict)
        if rules.policy.gate == "both" and result.verdict == "inconclusive" and of_these is not None:
            yield f"{_moved(result, of_these)} on these cases; that it would on unseen ones is not shown"


def _too_unsure(compared: Compared, results: Sequence[MeasureResult], rules: VerdictRules) -> Iterator[str]:
    """Yield which metrics fell with an interval below 0 and did not regress: they share a small part of alpha."""
    level = rules.alpha * OF_OTHERS * spending(compared.pair.baseline_look)
    fell = [
        result.metric
        for result in results
        if (result.tier, result.verdict) == ("supporting", "inconclusive") and result.kind != "field"
        if result.q is not None and level < result.q and result.ci95 is not None and result.ci95[1] < 0.0
        if result.q <= rules.alpha or (result.p or 0.0) >= _NAMED_ALONE  # else a reason names it already
        if (result.difference or 0.0) < -result.tolerance
    ]
    if fell:
        yield f"{listed(fell)} fell, but not surely: supporting metrics share α/5"


def _is_of_one_case(results: Sequence[MeasureResult], rules: VerdictRules) -> bool:
    accuracy = [result.by(rules.policy.gate) for result in results if result.kind == "accuracy"]
    return bool(accuracy) and all(scope.p is None for scope in accuracy)


def _more_than_one_case(pair: Pair) -> str:
    """Return what would decide where there is one case."""
    more, candidate = "more cases would decide it", pair.candidate
    if candidate.settings is None or candidate.provider == "replay" or samples(candidate):
        return more
    sampled = f"`profile: sampled` of {candidate.model_id} in models.yaml, which draws each answer anew"
    return f"{more}, or {sampled}; then `skill-evaluator evaluate {candidate.skill} --replicates 5`"


def _look_of_step(measured: Measured, result: MeasureResult, pair: Pair, rules: VerdictRules) -> Iterator[str]:
    """Yield that a drop would count had its baseline, the anchor, not been looked at so often, where that is so."""
    look, fell = pair.baseline_look, (result.difference or 0.0) < 0.0
    if pair.anchor is None or result.verdict != "inconclusive" or result.q is None or not fell:
        return
    level = rules.levels(measured.measure, look).fall
    if level < result.q <= rules.levels(measured.measure, 0).fall:
        yield f"{result.metric}: {_look(look, pair.anchor.skill_version, level, result.q)}"


def _look_since_anchor(losses: Losses) -> Iterator[str]:
    """Yield that the loss since the anchor would count had it not been looked at so often, where that is so."""
    watch = losses.watch
    if watch is None or watch.verdict != "inconclusive" or watch.difference >= 0.0:
        return
    if watch.p <= watch.level / spending(watch.look):
        yield f"{watch.metric}: {_look(watch.look, watch.anchor_version, watch.level, watch.p)}"


def _look(look: int, anchor: str, level: float, p: float) -> str:
    return f"run {look} after {anchor}, the version it is held against, needs p ≤ {level:.2g}, and p is {p:.2g}"


def _premise(pair: Pair) -> Iterator[str]:
    """Yield what a verdict on recorded runs takes for granted, and the command that makes it unneeded."""
    before, after = pair.baseline, pair.candidate
    if before is None or pair.is_beside or before.model_id != after.model_id or after.provider == "replay":
        return
    if before.digests.get("prompt") == after.digests.get("prompt"):  # did the model move? That is the question itself
        return
    moments = [moment for moment in map(moment_of, (before, after)) if moment is not None]
    between = "between the two runs"
    if len(moments) == 2:
        first, last = sorted(moments)
        month, year = f" {month_name[first.month]}", f" {first.year}"
        year *= first.year != last.year
        month *= (first.year, first.month) != (last.year, last.month)
        between = f"between {first.day}{month}{year} and {last.day} {month_name[last.month]}{year and f' {last.year}'}"
        if first.date() == last.date():
            between = f"between two runs of {last.day} {month_name[last.month]}"
    beside = (
        ""
        if after.settings is None or after.provider == "program"
        else f"; `skill-evaluator evaluate {after.skill}` asks both side by side"
    )
    yield f"if the model did not move {between} (recorded runs){beside}"


def _moved(result: MeasureResult, verb: str) -> str:
    return f"{result.metric} {verb} from {result.baseline:.3f} to {result.candidate:.3f}"


def _falls(cases: Sequence[CaseChange]) -> str:
    return listed([f"{case.case_id} {case.before:.3f} → {case.after:.3f}" for case in cases])
