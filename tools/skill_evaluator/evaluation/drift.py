"""Drift: a recorded version is run again and compared with its earlier runs; the model moved, or not.

Two runs of a version lie on different days, and a day moves a score. So only the mean of the primary metric, with a
confidence interval that allows for a day, and fields that are lost show that the model moved.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skill_evaluator.library.config import VerdictName
from skill_evaluator.records.archive import Archive, entry_of
from skill_evaluator.records.record import Record
from skill_evaluator.records.selection import runs_alike, same_series
from skill_evaluator.records.summaries import Drift
from skill_evaluator.stats import stdev_or_none, t_quantile
from skill_evaluator.text import counted, listed
from skill_evaluator.verdicts.decide.comparability import Pair, without_unstable
from skill_evaluator.verdicts.decide.comparison import compare_records
from skill_evaluator.verdicts.decide.measuring import Compared, Measured, measure_all
from skill_evaluator.verdicts.decide.results import ComparisonResult, MeasureResult, ModelVerdict
from skill_evaluator.verdicts.decide.rules import VerdictRules, is_lost
from skill_evaluator.verdicts.history.component import RecordedComponent, drift_pair

_ALPHA = 0.025  # drift that is reported where no model moved


def drift_of(records: Sequence[Record], recorded: RecordedComponent) -> ComparisonResult | None:
    """Compare complete runs of a recorded version with the earlier runs of their series, by the verdict rules.

    Return None if no run has an earlier one.
    """
    recorded.archive.add(records)
    pairs = [pair for record in records if (pair := drift_pair(record, recorded.archive)) is not None]
    return drifted(recorded.component.name, pairs, recorded.rules(records[0])) if pairs else None


def with_drift(records: Sequence[Record], repeated: Sequence[bool], recorded: RecordedComponent) -> list[Record]:
    """Return the records; complete runs that `repeated` a recorded version say whether the model drifted.

    Warn of each model that drifted.
    """
    again = [record for record, is_again in zip(records, repeated, strict=True) if is_again and record.complete]
    drifts = drifts_in(drift_of(again, recorded)) if again else {}
    for record in again:
        if record.run_id in drifts and (moved := drifts[record.run_id].moved):
            words = f"{record.model_id} moved though the prompt did not: {listed(moved)}"
            print(f"warning: {words}; this run begins a series of its own", file=sys.stderr)
    return [record.model_copy(update={"drift": drifts.get(record.run_id)}) for record in records]


def drifts_in(result: ComparisonResult | None) -> dict[str, Drift]:
    """Return the drift of recorded versions that were run again, by the id of the new run."""
    models = [] if result is None else result.models
    return {
        model.candidate.run_id: Drift(since=model.baseline.run_id, moved=model.moved)
        for model in models
        if model.baseline is not None
    }


def drifted(skill: str, pairs: Sequence[Pair], rules: VerdictRules) -> ComparisonResult:
    """Return the comparison of runs with earlier runs of their series, in which only drift counts as a change."""

    pairs = [without_unstable(pair, rules.unstable_cases, rules.primary_metric) for pair in pairs]
    result = compare_records(skill, pairs, rules)
    measured = measure_all(pairs)
    models = [_only_drift(*both, rules.primary_metric) for both in zip(result.models, measured, strict=True)]
    return result.model_copy(update={"models": models})


def _only_drift(model: ModelVerdict, compared: "Compared", primary_metric: str) -> ModelVerdict:
    """Return a verdict in which the lost measures and the primary metric alone may have changed."""
    drift: dict[tuple[str, str], VerdictName] = {}
    for own in compared.measured:
        if own.measure.name == primary_metric and _is_beyond_a_day(own):
            drift[own.measure.kind, own.measure.name] = "improved" if own.after.mean > own.before.mean else "regressed"
        elif own.measure.kind != "reproducibility" and is_lost(own, models=1):
            drift[own.measure.kind, own.measure.name] = "regressed"

    def settled(one: MeasureResult) -> MeasureResult:
        verdict = drift.get((one.kind, one.metric))
        if verdict is None and (one.harmed or one.verdict in ("regressed", "improved")):
            return one.model_copy(update={"verdict": "inconclusive", "harmed": False})
        return one if verdict is None else one.model_copy(update={"verdict": verdict})

    update: dict[str, object] = {
        "metrics": list(map(settled, model.metrics)),
        "fields": list(map(settled, model.fields)),
    }
    if model.verdict == "regressed" and not (drift or model.lost_cases):
        runs = counted(model.baseline_runs, "earlier run")
        update |= {"verdict": "inconclusive", "reasons": [*model.reasons, f"{runs} cannot tell this from a day"]}
    return model.model_copy(update=update)


def _is_beyond_a_day(measured: "Measured") -> bool:
    """Return whether 0 is outside the 97.5 % confidence interval of the difference, with the cases' degrees of freedom.

    The standard error has the variance of a day, which is taken as known.
    """
    effect = measured.effect_if(is_sampled=False)
    if effect is None:
        return False
    half = float(t_quantile(len(measured.before.means) - 1, 1 - _ALPHA / 2)) * effect.error
    return bool(abs(effect.difference) > half)


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
