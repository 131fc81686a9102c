"""What of two records can be compared: the cases both have unchanged, and what makes the rest another measurement."""

from collections.abc import Iterator
from dataclasses import dataclass

from skill_evaluator.records.record import CaseRecord, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """The part that is comparable. `barriers`: why nothing is; `remarks`: what is different and does not prevent it.

    `cases`: baseline and candidate of each unchanged case; `left_out`: by case, why it is not among them.
    """

    cases: tuple[tuple[CaseRecord, CaseRecord], ...]
    left_out: dict[str, str]
    barriers: tuple[str, ...]
    remarks: tuple[str, ...]


def common_part(baseline: Record, candidate: Record) -> Common:
    """What two records of one component have in common."""
    before = {case.case_id: case for case in baseline.per_case}
    after = {case.case_id: case for case in candidate.per_case}
    left_out = {case_id: "not in the baseline" for case_id in after if case_id not in before}
    left_out |= {case_id: "no longer there" for case_id in before if case_id not in after}
    shared = [case_id for case_id in before if case_id in after]
    left_out |= {
        case_id: "document or truth changed" for case_id in shared if before[case_id].digest != after[case_id].digest
    }
    return Common(
        cases=tuple((before[case_id], after[case_id]) for case_id in shared if case_id not in left_out),
        left_out=dict(sorted(left_out.items())),
        barriers=tuple(_barriers(baseline, candidate)),
        remarks=tuple(_remarks(baseline, candidate)),
    )


def _barriers(baseline: Record, candidate: Record) -> Iterator[str]:
    if baseline.skill != candidate.skill:
        yield f"they are of different components: '{baseline.skill}' and '{candidate.skill}'"
    if baseline.scorer_version != candidate.scorer_version:
        yield (
            f"they were scored by different rules (scorer {baseline.scorer_version} and {candidate.scorer_version}); "
            "score the older run again with `skill-evaluator score`"
        )
    for name, words in (
        ("schema", "the schema changed"),
        ("datasets", "evals/datasets.json declares other comparisons"),
        ("settings", "the model's settings changed"),
        ("scenario", "they are of different scenarios"),
    ):
        if baseline.digests.get(name) != candidate.digests.get(name):
            yield words


def _remarks(baseline: Record, candidate: Record) -> Iterator[str]:
    if baseline.model_id != candidate.model_id:
        yield f"the models differ: {baseline.model_id} and {candidate.model_id}"
    if baseline.served_model != candidate.served_model:
        yield f"the vendor served {baseline.served_model or 'an unnamed model'}, then {candidate.served_model}"
    if baseline.evaluator_version != candidate.evaluator_version:
        yield f"the evaluator was {baseline.evaluator_version}, then {candidate.evaluator_version} (same scorer)"
    if baseline.replicates != candidate.replicates:
        yield f"{baseline.replicates} replicates a case, then {candidate.replicates}"
