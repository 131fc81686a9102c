"""A recorded version that was asked again: did its model move, and how far does its score spread?

Days differ. Two runs of a version cannot tell a day from a move, so a move must be beyond chance by the rules of a
verdict, and besides be further off than one more run may be, by the spread of the earlier ones.
"""

import math
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skill_evaluator.records.archive import Archive, entry_of
from skill_evaluator.records.record import Record
from skill_evaluator.records.selection import runs_alike, same_series
from skill_evaluator.records.summaries import Drift
from skill_evaluator.stats import stdev_or_none
from skill_evaluator.text import counted
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.results import ComparisonResult, MeasureResult, ModelVerdict
from skill_evaluator.verdicts.decide.rules import VerdictRules
from skill_evaluator.verdicts.history.baselines import drift_pair
from skill_evaluator.verdicts.history.component import RecordedComponent

if TYPE_CHECKING:
    from skill_evaluator.verdicts.decide.measuring import Measured


_MISSED = 0.025  # of further runs that are beyond a day's interval though nothing moved


def drift_of(records: Sequence[Record], recorded: RecordedComponent) -> ComparisonResult | None:
    """Hold complete runs of a recorded version against the earlier ones of their series; None where none has any.

    The rules are those of a verdict between versions.
    """
    recorded.archive.add(records)
    pairs = [pair for record in records if (pair := drift_pair(record, recorded.archive)) is not None]
    return drifted(recorded.component.name, pairs, recorded.rules(records[0])) if pairs else None


def drifts_in(result: ComparisonResult | None) -> dict[str, Drift]:
    """Return what asking recorded versions again showed, by the run that asked."""
    models = [] if result is None else result.models
    return {
        model.candidate.run_id: Drift(since=model.baseline.run_id, moved=model.moved)
        for model in models
        if model.baseline is not None
    }


def drifted(skill: str, pairs: Sequence[Pair], rules: VerdictRules) -> ComparisonResult:
    """Return the verdict on runs beside the earlier ones of their series, where only what is no day has moved."""
    from skill_evaluator.verdicts.decide.comparison import compare_records
    from skill_evaluator.verdicts.decide.measuring import measure_all

    result = compare_records(skill, pairs, rules)
    models = []
    for model, compared in zip(result.models, measure_all(pairs, rules.primary_metric), strict=True):
        days = {(own.measure.kind, own.measure.name) for own in compared.measured if not _is_beyond_a_day(own)}
        models.append(_without(model, days))
    return result.model_copy(update={"models": models})


def _is_beyond_a_day(measured: "Measured") -> bool:
    """Return whether the new run is outside the 97.5 % prediction interval of one more run.

    The variance of a run is that between the earlier ones, weighed with what the answers and the stated value of a day
    make of it. Student's t, with the degrees of freedom of both.
    """
    import numpy as np
    from scipy.special import stdtrit

    from skill_evaluator.verdicts.decide.measuring import RUN_DEGREES, RUN_SD

    runs, effect = measured.runs, measured.effects["beyond"]
    if effect is None:
        return False
    means, new = np.array([run.mean for run in runs.before]), runs.after[0].mean
    share = 1 + 1 / len(means)
    stated = (RUN_SD * runs.before[0].slope) ** 2 + max(0.0, effect.error**2 - measured.of_runs) / share
    squares = float(((means - means.mean()) ** 2).sum())
    degrees = RUN_DEGREES + len(means) - 1
    half = float(stdtrit(degrees, 1 - _MISSED / 2)) * math.sqrt((squares + RUN_DEGREES * stated) / degrees * share)
    return abs(new - float(means.mean())) > half


def _without(model: ModelVerdict, days: Container[tuple[str, str]]) -> ModelVerdict:
    """Return a verdict in which nothing has moved that a day may explain, and that says so."""

    def settled(one: MeasureResult) -> MeasureResult:
        moved = one.harmed or one.verdict in ("regressed", "improved")
        if not moved or (one.kind, one.metric) not in days:
            return one
        return one.model_copy(update={"verdict": "inconclusive", "harmed": False})

    metrics, fields = (list(map(settled, measures)) for measures in (model.metrics, model.fields))
    if (metrics, fields) == (model.metrics, model.fields):
        return model
    runs = counted(model.baseline_runs, "earlier run")
    update = {"metrics": metrics, "fields": fields, "reasons": [*model.reasons, f"{runs} cannot tell this from a day"]}
    left = model.model_copy(update=update)
    if left.verdict == "regressed" and not any(one.verdict == "regressed" or one.harmed for one in (*metrics, *fields)):
        left = left.model_copy(update={"verdict": "inconclusive"})
    return left


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpread:
    """The strict means of a version's primary metric by run, and their standard deviation; None for fewer than two."""

    model_id: str
    version: str
    metric: str
    scores: dict[str, float]
    sigma: float | None


def spreads_of(records: Iterable[Record], archive: Archive) -> list[RunSpread]:
    """Return the spread of the runs of each model's version that was run again."""
    spreads = []
    for record in {record.model_id: record for record in records}.values():
        scores = {name: score for name, score in _of_runs(record, archive).items() if score is not None}
        spreads.append(
            RunSpread(
                model_id=record.model_id,
                version=record.skill_version,
                metric=record.primary_metric,
                scores=scores,
                sigma=stdev_or_none(list(scores.values())),
            )
        )
    return spreads


def _of_runs(record: Record, archive: Archive) -> dict[str, float | None]:
    entry = entry_of(record)
    runs = [
        archive.record(other)
        for other in runs_alike(archive.runs_of(entry.model_id), entry)
        if other.version == entry.version
        and other.run_id != entry.run_id
        and other.is_comparable(entry)
        and other.digests.get("prompt") == entry.digests.get("prompt")
    ]
    return {run.run_id: _score(run) for run in (*same_series(record, runs), record)}


def _score(record: Record) -> float | None:
    return record.accuracy[record.primary_metric].strict_mean
