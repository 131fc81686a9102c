"""Where two records differ: cases that broke or were fixed, with their fields; how fields stand; cost and failures."""

from collections import Counter

from skill_evaluator.records.record import CaseRecord, FieldCount, Record
from skill_evaluator.verdicts.measures import Cases, Measure
from skill_evaluator.verdicts.results import CaseChange, RunSummary
from skill_evaluator.verdicts.rules import TierRules

_UNSCORED = "unscored"


def changed_cases(cases: Cases, primary: Measure, rules: TierRules) -> tuple[list[CaseChange], list[CaseChange]]:
    """Cases whose primary metric fell, and rose, by more than the tolerance; the largest change first."""
    tolerance = rules.tolerance(primary)
    pairs = {before.case_id: (before, after) for before, after in cases}
    moved = [
        (after_mean - before_mean, _change(case_id, before_mean, after_mean, *pairs[case_id]))
        for case_id, before_mean, after_mean in zip(
            primary.case_ids, map(_mean, primary.before), map(_mean, primary.after), strict=True
        )
        if abs(after_mean - before_mean) > tolerance
    ]
    moved.sort(key=lambda one: (-abs(one[0]), one[1].case_id))
    return [change for step, change in moved if step < 0], [change for step, change in moved if step > 0]


def _change(case_id: str, old: float, new: float, before: CaseRecord, after: CaseRecord) -> CaseChange:
    return CaseChange(case_id=case_id, before=round(old, 6), after=round(new, 6), fields=_fields(before, after))


def _fields(before: CaseRecord, after: CaseRecord) -> dict[str, str]:
    """The fields that are right more or less often than before, the largest change first: `right/n → right/n`."""
    found = []
    for path in sorted(before.fields.keys() | after.fields.keys()):
        old, new = _share(before.fields.get(path)), _share(after.fields.get(path))
        if old != new:
            counts = (
                f"{count.right}/{count.n}" if count else "–"
                for count in (before.fields.get(path), after.fields.get(path))
            )
            found.append((round(abs((new or 0.0) - (old or 0.0)), 6), path, " → ".join(counts)))
    found.sort(key=lambda one: -one[0])
    return {path: counts for _, path, counts in found}


def _share(count: FieldCount | None) -> float | None:
    return count.right / count.n if count is not None and count.n else None


def profile_of(record: Record, path: str) -> dict[str, int]:
    """In how many cases a field stands how (stable-right, stable-wrong, flaky, …)."""
    standings = Counter(case.profile.get(path, _UNSCORED) for case in record.per_case if path in case.fields)
    return dict(sorted(standings.items()))


def side_of(record: Record) -> RunSummary:
    """What a run cost and how it went."""
    return RunSummary(
        run_id=record.run_id,
        skill_version=record.skill_version,
        served_model=record.served_model,
        coverage=record.coverage,
        replicates=record.replicates,
        failures=record.failures,
        input_tokens=record.tokens.input,
        output_tokens=record.tokens.output,
        cost_usd=record.cost_usd,
        latency_p50_s=record.latency_s.p50,
        latency_p95_s=record.latency_s.p95,
    )


def _mean(scores: tuple[float, ...]) -> float:
    return sum(scores) / len(scores)
