"""Two records whose cases were held against different checks → the checks that both have, by which alone they compare.

A check is the same where its digest is: a changed one says nothing of what the baseline would have done.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from skill_evaluator.metrics.accuracy.checks import share_passed
from skill_evaluator.records.record import CHECKS_METRIC, CaseRecord, CheckRecord, Record, check_path
from skill_evaluator.text import counted, listed
from skill_evaluator.verdicts.decide.comparability import Pair

APART = "the two runs were held to different checks"


def with_same_checks(pair: Pair) -> Pair:
    """Return a pair with the checks that baseline and candidate have alike, weighed as the candidate weighs them.

    A further run counts if it has these checks, too. Checks of an uncalibrated judge have no weight beside others.
    """
    if pair.baseline is None:
        return pair
    before, after = ({case.case_id: case.checks for case in run.per_case} for run in (pair.baseline, pair.candidate))
    alike = {case_id: _alike(before.get(case_id, {}), checks) for case_id, checks in after.items()}
    if pair.unproved_judge and not all(check.judged for checks in alike.values() for check in checks.values()):
        alike = {case_id: _without_judged_weight(checks) for case_id, checks in alike.items()}

    def cut(runs: Sequence[Record]) -> tuple[Record, ...]:
        return tuple(_cut(run, alike) for run in runs if _has_checks(run, alike))

    (baseline,), (candidate,) = cut((pair.baseline,)), cut((pair.candidate,))
    return replace(
        pair,
        baseline=baseline,
        candidate=candidate,
        baseline_again=cut(pair.baseline_again),
        candidate_again=cut(pair.candidate_again),
    )


def _without_judged_weight(checks: Mapping[str, CheckRecord]) -> dict[str, CheckRecord]:
    return {name: one.model_copy(update={"weight": 0.0}) if one.judged else one for name, one in checks.items()}


def _alike(before: Mapping[str, CheckRecord], after: Mapping[str, CheckRecord]) -> dict[str, CheckRecord]:
    """Return the later checks that were the same before."""
    digests = {check_id: check.digest for check_id, check in before.items()}
    return {check_id: check for check_id, check in after.items() if digests.get(check_id) == check.digest}


def _has_checks(run: Record, wanted: Mapping[str, dict[str, CheckRecord]]) -> bool:
    of_cases = ((case.checks, wanted.get(case.case_id, {})) for case in run.per_case)
    return all(_alike(checks, of_case) == of_case for checks, of_case in of_cases)


def _cut(run: Record, wanted: Mapping[str, dict[str, CheckRecord]]) -> Record:
    """Return a run with these checks alone, and the metric `checks` of them."""
    cases = [_cut_case(case, wanted.get(case.case_id, {})) for case in run.per_case]
    return run if cases == run.per_case else run.model_copy(update={"per_case": cases})


def _cut_case(case: CaseRecord, wanted: Mapping[str, CheckRecord]) -> CaseRecord:
    kept = {
        check_id: case.checks[check_id].model_copy(update={"weight": check.weight, "tier": check.tier})
        for check_id, check in wanted.items()
    }
    if kept == case.checks:
        return case
    gone = {check_path(check_id) for check_id in case.checks.keys() - kept}
    weighed = [check for check in kept.values() if check.weight]
    by_answer = zip(*([(check.weight, score) for score in check.scores] for check in weighed), strict=True)
    shares = {CHECKS_METRIC: [share_passed(checks) for checks in by_answer]} if weighed else {}
    return case.model_copy(
        update={
            "checks": kept,
            "fields": {path: count for path, count in case.fields.items() if path not in gone},
            "replicates": {name: scores for name, scores in case.replicates.items() if name != CHECKS_METRIC} | shares,
            "accuracy": {name: mean for name, mean in case.accuracy.items() if weighed or name != CHECKS_METRIC},
        }
    )


def check_changes(baseline: Record, candidate: Record) -> Iterator[str]:
    """Yield which checks of the cases that both have are new, changed or gone, and what then decides about them."""
    before = {case.case_id: case for case in baseline.per_case}
    changes: dict[str, list[str]] = {}
    for case in candidate.per_case:
        was = before[case.case_id].checks if case.case_id in before else case.checks
        alike = _alike(was, case.checks)
        for check_id in (was.keys() | case.checks.keys()) - alike.keys():
            what = "gone" if check_id not in case.checks else "changed" if check_id in was else "new"
            changes.setdefault(f"{check_path(check_id)} ({what})", []).append(case.case_id)
    if changes:
        words = listed([f"{words} in {counted(len(ids), 'case')}" for words, ids in sorted(changes.items())])
        yield f"{APART}, which decide nothing here: {words}; `evaluate` asks both anew"
