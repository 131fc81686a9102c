"""Records made to fit: cut to some of their cases, and several runs of a version taken as one."""

from collections.abc import Container, Sequence

from skill_evaluator.records.record import ANSWERED, CaseRecord, FieldCount, Record
from skill_evaluator.stats import mean_or_none


def cut_to(record: Record, case_ids: Container[str]) -> Record:
    """Return a record of these cases alone."""
    cases = [case for case in record.per_case if case.case_id in case_ids]
    outcomes = [outcome in ANSWERED for case in cases for outcome in case.outcomes]
    return record.model_copy(update={"per_case": cases, "coverage": mean_or_none(outcomes) or 0.0})


def pooled(record: Record, again: Sequence[Record]) -> Record:
    """Return a record with the answers of further runs of its version, case by case; the cases are the record's own.

    Agreement between replicates is the mean over the runs.
    """
    if not again:
        return record
    others = [{(case.case_id, case.digest): case for case in run.per_case} for run in again]
    cases = [
        _pooled_case([case, *(run[key] for run in others if (key := (case.case_id, case.digest)) in run)])
        for case in record.per_case
    ]
    coverage = sum(run.coverage for run in (record, *again)) / (1 + len(again))
    return record.model_copy(update={"per_case": cases, "coverage": coverage})


def _pooled_case(runs: Sequence[CaseRecord]) -> CaseRecord:
    newest = runs[0]
    counts = [run.fields for run in runs]
    shares = [run.reproducibility for run in runs]
    return newest.model_copy(
        update={
            "outcomes": [outcome for run in runs for outcome in run.outcomes],
            "replicates": {
                name: [score for run in runs for score in run.replicates.get(name, [None] * len(run.outcomes))]
                for name in newest.replicates
            },
            "fields": {
                path: FieldCount(
                    right=sum(run[path].right for run in counts if path in run),
                    n=sum(run[path].n for run in counts if path in run),
                )
                for path in dict.fromkeys(path for run in counts for path in run)
            },
            "reproducibility": {
                name: mean_or_none([share for run in shares if (share := run.get(name)) is not None])
                for name in newest.reproducibility
            },
        }
    )
