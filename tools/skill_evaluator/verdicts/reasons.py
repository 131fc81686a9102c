"""Why a verdict is what it is, and where: sentences, the cases that broke or were fixed, and how a field stands.

Results that are already decided come in. Nothing here changes a verdict.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from skill_evaluator.records.record import CaseRecord, Record
from skill_evaluator.verdicts.comparability import CasePairs, Common, Measure, case_means
from skill_evaluator.verdicts.effects import unseen_share
from skill_evaluator.verdicts.results import CaseChange, MeasureResult
from skill_evaluator.verdicts.rules import VerdictRules

_UNSCORED = "unscored"
_MOST_LEFT_OUT = 5


def changed_cases(cases: CasePairs, primary: Measure, tolerance: float) -> tuple[list[CaseChange], list[CaseChange]]:
    """Return the cases whose primary metric fell, and those where it rose, by more than the tolerance.

    The largest change comes first.
    """
    pairs = {before.case_id: (before, after) for before, after in cases}
    means = zip(primary.case_ids, case_means(primary.before), case_means(primary.after), strict=True)
    moved = [
        (
            after - before,
            CaseChange(
                case_id=case_id,
                before=round(before, 6),
                after=round(after, 6),
                fields=_changed_fields(*pairs[case_id]),
            ),
        )
        for case_id, before, after in means
        if abs(after - before) > tolerance
    ]
    moved.sort(key=lambda step: (-abs(step[0]), step[1].case_id))
    return [change for step, change in moved if step < 0], [change for step, change in moved if step > 0]


def _changed_fields(before: CaseRecord, after: CaseRecord) -> dict[str, str]:
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


def reasons_of(common: Common, results: Sequence[MeasureResult], coverage: float, rules: VerdictRules) -> Iterator[str]:
    """Yield why the verdict on a model is what it is, the weightiest reason first. Advisory fields give none."""
    yield from (f"not comparable: {barrier}" for barrier in common.barriers)
    if not common.cases:
        yield "not comparable: no case is the same in both"
    if coverage < rules.required_coverage:
        yield f"coverage {coverage:.2f} is below the required {rules.required_coverage:.2f}"
    if results and all(result.fixtures.p is None for result in results if result.kind == "accuracy"):
        yield "one replicate a case says nothing of chance on these fixtures"
    yield from _reasons_of_measures(
        [result for result in results if result.kind != "field" or result.tier != "advisory"], rules.alpha
    )
    yield from common.remarks
    if common.left_out:
        named = ", ".join(list(common.left_out)[:_MOST_LEFT_OUT])
        yield f"{len(common.left_out)} cases left out: {named}"


def _reasons_of_measures(results: Sequence[MeasureResult], alpha: float) -> Iterator[str]:
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
    critical = [result for result in results if result.tier == "critical"]
    yield from (_moved(result, "rose") for result in critical if result.verdict == "improved")
    for result in critical:
        if result.verdict != "inconclusive" or result.ci95 is None:
            continue
        low, high = result.ci95
        if result.tolerance == 0.0:
            if (result.difference or 0.0) < 0.0:
                yield f"{_moved(result, 'fell')}, within chance, and no drop is tolerated"
        elif low >= -result.tolerance:
            answers = result.fixtures.n
            unseen = f"{unseen_share(answers):.3f} that none shows"
            yield f"{result.metric}: {answers} answers leave room for a failure in {unseen}"
        else:
            drop = result.detectable_drop
            seen = "no drop, whatever its size" if drop is None else f"a drop of {drop:.3f}"
            interval = f"interval {low:+.3f} to {high:+.3f}"
            yield (
                f"{result.metric}: a drop of {result.tolerance:g} is not excluded ({interval}); "
                f"this run could have seen {seen}"
            )


def _moved(result: MeasureResult, verb: str) -> str:
    return f"{result.metric} {verb} from {result.baseline:.3f} to {result.candidate:.3f}"
