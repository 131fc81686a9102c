"""The history of a component: each recorded version compared with the one before, and the versions that changed it.

Records and the rules come in, frozen models go out: programs read them, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Literal

from skill_evaluator.files import FrozenModel
from skill_evaluator.library.config import VerdictName
from skill_evaluator.records.record import Record
from skill_evaluator.stats import mean_or_none, rounded
from skill_evaluator.verdicts.change_points import Split, as_sequences_of_means, find_splits
from skill_evaluator.verdicts.comparability import Pair, common_part, strict_scores
from skill_evaluator.verdicts.comparison import compare_records
from skill_evaluator.verdicts.effects import adjusted
from skill_evaluator.verdicts.results import ModelVerdict
from skill_evaluator.verdicts.rules import VerdictRules


class Step(FrozenModel):
    """A version's verdict against the recorded version before it, as `compare` draws it."""

    before: str
    verdict: VerdictName
    generalises: VerdictName
    difference: float | None
    ci95: tuple[float, float] | None
    q: float | None
    reasons: list[str]

    @classmethod
    def of(cls, model: ModelVerdict, primary_metric: str) -> "Step":
        """Return the step that a comparison with the version before found."""
        primary = next((result for result in model.metrics if result.metric == primary_metric), None)
        return cls(
            before=model.baseline.skill_version if model.baseline else "",
            verdict=model.verdict,
            generalises=model.generalises,
            difference=primary.difference if primary else None,
            ci95=primary.ci95 if primary else None,
            q=primary.q if primary else None,
            reasons=model.reasons,
        )


class Point(FrozenModel):
    """A version's newest complete run: the strict mean of the primary metric, and the step that led there."""

    version: str
    run_id: str
    timestamp: str
    strict_mean: float | None
    n_cases: int
    step: Step | None = None

    @classmethod
    def of(cls, record: Record, step: Step | None, primary_metric: str) -> "Point":
        """Return the point of a recorded run."""
        scores = [strict_scores(case, primary_metric) for case in record.per_case]
        means = [fmean(case) for case in scores if case]
        return cls(
            version=record.skill_version,
            run_id=record.run_id,
            timestamp=record.timestamp,
            strict_mean=rounded(mean_or_none(means)),
            n_cases=len(means),
            step=step,
        )


class Change(FrozenModel):
    """A version from which on the primary metric has another level; `q` is adjusted over all splits that were tested.

    `before` and `after` are the mean levels up to this change and from it to the next. `remarks` name what else changed
    with the version.
    """

    version: str
    direction: Literal["worse", "better"]
    before: float
    after: float
    p: float
    q: float
    n_cases: int
    remarks: list[str]


class ModelHistory(FrozenModel):
    """One model, the lowest version first. `remarks` name runs stopped early, and what was not searched."""

    model_id: str
    points: list[Point]
    changes: list[Change]
    remarks: list[str]


class History(FrozenModel):
    """The history of a component; `gate` names the question that the verdicts answer."""

    skill: str
    metric: str
    gate: str
    alpha: float
    models: list[ModelHistory]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stretch:
    """The latest versions of a model that are comparable, and the scores of the cases that all of them have.

    `cases` holds the scores of the primary metric by case, version and replicate.
    """

    records: Sequence[Record]
    cases: Sequence[Sequence[Sequence[float]]]
    remarks: tuple[str, ...]


def history_of(skill: str, by_model: Mapping[str, Sequence[Record]], rules: VerdictRules) -> History:
    """Return the history of a component from one record for each model and version, the lowest version first."""
    families: dict[str, list[Pair]] = {}  # the models of a version are one family, as they are in `compare`
    for records in by_model.values():
        for before, after in pairwise(records):
            families.setdefault(after.skill_version, []).append(Pair(baseline=before, candidate=after))
    steps = {
        model.candidate.run_id: Step.of(model, rules.primary_metric)
        for pairs in families.values()
        for model in compare_records(skill, pairs, rules).models
    }
    stretches = {model_id: _comparable_stretch(records, rules) for model_id, records in by_model.items()}
    changes = _changes(stretches, rules)
    models = [
        ModelHistory(
            model_id=model_id,
            points=[Point.of(record, steps.get(record.run_id), rules.primary_metric) for record in records],
            changes=changes[model_id],
            remarks=[*_stopped_early(records), *stretches[model_id].remarks],
        )
        for model_id, records in by_model.items()
    ]
    return History(skill=skill, metric=rules.primary_metric, gate=rules.policy.gate, alpha=rules.alpha, models=models)


def _stopped_early(records: Sequence[Record]) -> list[str]:
    versions = [record.skill_version for record in records if record.saved_calls]
    return [f"stopped early by --adaptive, at a mean too high or too low: {', '.join(versions)}"] if versions else []


def _comparable_stretch(records: Sequence[Record], rules: VerdictRules) -> _Stretch:
    start, remarks = 0, []
    for place, (before, after) in enumerate(pairwise(records), 1):
        barriers = common_part(before, after).barriers
        if barriers:
            start, remarks = place, [f"changes are looked for from {after.skill_version} on: {'; '.join(barriers)}"]
    kept = records[start:]
    # the cases with the same document and truth in every record
    by_digest = [{(case.case_id, case.digest): case for case in record.per_case} for record in kept]
    shared = [key for key in by_digest[0] if all(key in cases for cases in by_digest)] if by_digest else []
    scores = [[strict_scores(cases[key], rules.primary_metric) for cases in by_digest] for key in shared]
    measured = [sequence for sequence in scores if all(sequence)]
    most = max((len(record.per_case) for record in kept), default=0)
    if len(kept) > 1 and len(measured) < most:
        remarks.append(
            f"changes are looked for on {len(measured)} of {most} cases: those that all versions have unchanged"
        )
    return _Stretch(records=kept, cases=measured, remarks=tuple(remarks))


def _changes(stretches: Mapping[str, _Stretch], rules: VerdictRules) -> dict[str, list[Change]]:
    """Return the changes of each model: its splits beyond chance, with q over the splits tested in any model."""
    alpha, beyond = rules.alpha, rules.policy.gate == "generalises"
    tested: list[tuple[str, Split]] = []
    for model_id, stretch in stretches.items():
        cases = as_sequences_of_means(stretch.cases) if beyond else stretch.cases
        tested += [(model_id, split) for split in find_splits(cases, alpha)]
    certain: dict[str, list[tuple[Split, float]]] = {model_id: [] for model_id in stretches}
    for (model_id, split), q in zip(tested, adjusted([split.p for _, split in tested]), strict=True):
        if q <= alpha:
            certain[model_id].append((split, q))
    return {model_id: _changes_of_level(stretches[model_id], splits) for model_id, splits in certain.items()}


def _changes_of_level(stretch: _Stretch, splits: Sequence[tuple[Split, float]]) -> list[Change]:
    """Return the changes in the order of versions, with the mean level of the versions between two of them."""
    if not splits:
        return []
    ordered = sorted(splits, key=lambda split: split[0].at)
    edges = [0, *(split.at for split, _ in ordered), len(stretch.records)]
    means = [fmean(fmean(case[place]) for case in stretch.cases) for place in range(len(stretch.records))]
    levels = [fmean(means[start:end]) for start, end in pairwise(edges)]
    return [
        Change(
            version=stretch.records[split.at].skill_version,
            direction="worse" if after < before else "better",
            before=round(before, 6),
            after=round(after, 6),
            p=round(split.p, 6),
            q=round(q, 6),
            n_cases=len(stretch.cases),
            remarks=list(common_part(stretch.records[split.at - 1], stretch.records[split.at]).remarks),
        )
        for (split, q), (before, after) in zip(ordered, pairwise(levels), strict=True)
    ]
