"""Why a verdict is what it is, and where: sentences, the cases that broke or were fixed, and how a field stands.

Results that are already decided come in. Nothing here changes a verdict.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from skill_evaluator.records.record import CaseRecord, Record
from skill_evaluator.text import counted
from skill_evaluator.verdicts.comparability import Common, Rewording, case_means
from skill_evaluator.verdicts.effects import unseen_share
from skill_evaluator.verdicts.measuring import Compared, Measured
from skill_evaluator.verdicts.missing import missing_reasons
from skill_evaluator.verdicts.moved import moved_beyond_chance
from skill_evaluator.verdicts.results import CaseChange, Cases, MeasureResult
from skill_evaluator.verdicts.rules import Losses, VerdictRules

_UNSCORED = "unscored"
_MOST_NAMED = 5
_NAMED_ALONE = 0.01  # a measure with so small a p is named even where its family does not confirm it


def named_cases(common: Common, primary: Measured | None, rules: VerdictRules) -> Cases:
    """Return the cases whose primary metric fell, and those where it rose, beyond the tolerance and beyond chance.

    The largest change comes first.
    """
    if primary is None:
        return Cases(broke=[], fixed=[], left_out=common.left_out)
    measure, tolerance = primary.measure, rules.tolerance(primary.measure)
    pairs = {before.case_id: (before, after) for before, after in common.cases}
    surely = dict(zip(measure.case_ids, moved_beyond_chance(measure, primary.noise), strict=True))
    means = zip(measure.case_ids, case_means(measure.before), case_means(measure.after), strict=True)
    moved = [
        CaseChange(
            case_id=case_id, before=round(before, 6), after=round(after, 6), fields=changed_fields(*pairs[case_id])
        )
        for case_id, before, after in means
        if abs(after - before) > tolerance
    ]
    moved.sort(key=lambda change: (-abs(change.after - change.before), change.case_id))
    named = [change for change in moved if surely[change.case_id]]
    worse = {
        case_id
        for case_id, before, after in zip(measure.case_ids, measure.before, measure.after, strict=True)
        if max(after) < min(before)
    }
    return Cases(
        broke=[change for change in named if change.after < change.before],
        fixed=[change for change in named if change.after > change.before],
        left_out=common.left_out,
        within_noise=len(moved) - len(named),
        every_answer_worse=[
            change.case_id for change in moved if change.case_id in worse and not surely[change.case_id]
        ],
    )


def changed_fields(before: CaseRecord, after: CaseRecord) -> dict[str, str]:
    """Return `right/n → right/n` of each field that is right more or less often, the largest change first."""
    changes = []
    for path in sorted(before.fields.keys() | after.fields.keys()):
        counts = (before.fields.get(path), after.fields.get(path))
        old, new = (count.right / count.n if count and count.n else None for count in counts)
        if old != new:
            words = " → ".join(f"{count.right}/{count.n}" if count else "–" for count in counts)
            changes.append((round(abs((new or 0.0) - (old or 0.0)), 6), path, words))
    changes.sort(key=lambda change: -change[0])
    return {path: words for _, path, words in changes}


def profile_of(record: Record, path: str) -> dict[str, int]:
    """Return the number of cases in which a field is stable-right, stable-wrong, flaky, …"""
    standings = Counter(case.profile.get(path, _UNSCORED) for case in record.per_case if path in case.fields)
    return dict(sorted(standings.items()))


def reasons_of(
    compared: Compared, results: Sequence[MeasureResult], losses: Losses, coverage: float, rules: VerdictRules
) -> Iterator[str]:
    """Yield why the verdict on a model is what it is, the weightiest reason first. Advisory fields give none."""
    common = compared.common
    if common is None:
        yield compared.pair.absent
        return
    yield from (f"not comparable: {barrier}" for barrier in common.barriers)
    if not common.cases:
        yield "not comparable: no case is the same in both"
    if coverage < rules.required_coverage:
        yield f"coverage {coverage:.2f} is below the required {rules.required_coverage:.2f}"
    if results and all(result.by(rules.policy.gate).p is None for result in results if result.kind == "accuracy"):
        yield "one case says nothing of chance"
    weighed = [result for result in results if result.kind != "field" or result.tier != "advisory"]
    yield from _reasons_of_losses(losses, results, rules)
    yield from _reasons_of_measures(weighed, rules)
    for result in weighed:
        if result.tier == "critical" and result.missing is not None:
            yield from missing_reasons(result.metric, result.missing, result.tolerance, rules.required_coverage)
    yield from _reasons_of_rewording(compared.pair.rewording, weighed)
    yield from common.remarks
    if common.left_out:
        left_out = [f"{case_id} ({why})" for case_id, why in common.left_out.items()]
        yield f"{counted(len(left_out), 'case')} left out: {_first(left_out)}"


def _reasons_of_rewording(rewording: Rewording | None, results: Sequence[MeasureResult]) -> Iterator[str]:
    """Yield how far another wording of the same prompt would have moved what fell."""
    for result in results:
        if rewording is None or result.tier != "critical" or result.difference is None or result.difference >= 0:
            continue
        yield (
            f"{result.metric}: {-result.difference:.3f} lower; neutral rewordings move this model by "
            f"{rewording.sigma:.3f} ({rewording.source})"
        )


def _reasons_of_losses(losses: Losses, results: Sequence[MeasureResult], rules: VerdictRules) -> Iterator[str]:
    """Yield what is lost though the means may not show it."""
    lost = sorted(
        (result for result in results if result.kind == "field" and result.metric in losses.fields),
        key=lambda result: result.difference or 0.0,
    )
    if lost:
        fell = _first([f"{result.metric} {result.baseline:.3f} → {result.candidate:.3f}" for result in lost])
        fields = _count(lost, "field")
        yield f"{fields} lost more than {rules.policy.harm:g}, which counts whatever the mean does: {fell}"
    critical = [case for case in losses.cases if case.case_id in losses.critical_cases]
    if critical:
        yield f"{_count(critical, 'critical case')} lost more than {rules.policy.harm:g}: {_falls(critical)}"
    if losses.cases and any(result.tier == "critical" and result.verdict == "improved" for result in results):
        yield (
            f"*improved* is not said where {_count(losses.cases, 'case')} lost more than {rules.policy.harm:g}: "
            f"{_falls(losses.cases)}"
        )
    watch = losses.watch
    if watch is not None and watch.verdict == "regressed":
        yield (
            f"{watch.metric}: {watch.difference:+.3f} ({watch.ci95[0]:+.3f} to {watch.ci95[1]:+.3f}) since the anchor "
            f"{watch.anchor_version} (p {watch.p:.2g}; look {watch.look} allows {watch.level:.2g})"
        )
    if losses.earlier_run is not None:
        yield f"run {losses.earlier_run} of this version regressed, and the runs since do not exclude that drop"


def _reasons_of_measures(results: Sequence[MeasureResult], rules: VerdictRules) -> Iterator[str]:
    alpha = rules.alpha
    regressed = [result for result in results if result.verdict == "regressed"]
    for result in regressed:
        yield f"{_moved(result, 'fell')}{' (waived)' * result.is_waived}"
    kinds = {result.kind for result in regressed}
    if "reproducibility" in kinds and "accuracy" not in kinds:
        yield "a stability regression: answers agree less while accuracy is not worse"
    for result in results:
        fell = result.difference is not None and result.difference < 0
        if fell and result.verdict == "unchanged" and result.q is not None and result.q <= alpha:
            yield f"{_moved(result, 'fell')}, beyond chance, but by no more than the tolerated {result.tolerance:g}"
        if result.p is not None and result.q is not None and result.p < _NAMED_ALONE and result.q > alpha:
            verb = "fell" if fell else "rose"
            moved = _moved(result, verb)
            yield f"{moved}: p {result.p:.2g} alone, which its family does not confirm (q {result.q:.2g})"
    critical = [result for result in results if result.tier == "critical"]
    yield from (_moved(result, "rose") for result in critical if result.verdict == "improved")
    for result in critical:
        if rules.policy.gate == "robust" and result.verdict == "inconclusive":
            yield from _only_these_answers(result)
        if result.verdict == "inconclusive" and result.ci95 is not None:
            yield from _not_excluded(result)


def _only_these_answers(result: MeasureResult) -> Iterator[str]:
    """Yield that a change is one of these documents alone, where it is."""
    if result.fixtures.verdict in ("regressed", "improved"):
        verb = "fell" if result.fixtures.verdict == "regressed" else "rose"
        yield f"{_moved(result, verb)} on these documents; that others would too is not shown"


def _not_excluded(result: MeasureResult) -> Iterator[str]:
    """Yield what keeps a measure open."""
    low, high = result.ci95 or (-1.0, 1.0)
    drop = result.detectable_drop
    seen = "so little cannot show any drop" if drop is None else f"this run could have seen a drop of {drop:.3f}"
    if result.tolerance == 0.0:
        if (result.difference or 0.0) < 0.0:
            yield f"{_moved(result, 'fell')}, within chance, and no drop is tolerated"
    elif low < -result.tolerance:
        interval = f"interval {low:+.3f} to {high:+.3f}"
        yield f"{result.metric}: a drop of {result.tolerance:g} is not excluded ({interval}); {seen}"
    elif result.missing is None:
        unseen = f"{unseen_share(result.fixtures.n):.3f}"
        yield f"{result.metric}: failures in {unseen} of all answers could go unseen in {result.fixtures.n}"


def _moved(result: MeasureResult, verb: str) -> str:
    return f"{result.metric} {verb} from {result.baseline:.3f} to {result.candidate:.3f}"


def _count(things: Sequence[object], name: str) -> str:
    return f"{len(things)} {name}{'s' * (len(things) != 1)}"


def _falls(cases: Sequence[CaseChange]) -> str:
    return _first([f"{case.case_id} {case.before:.3f} → {case.after:.3f}" for case in cases])


def _first(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
