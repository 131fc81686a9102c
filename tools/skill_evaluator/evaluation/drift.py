"""Drift: compare a recorded version that was run again with its earlier runs, to detect a changed model.

Scores of the same model vary from day to day. So only two things count as drift: lost fields, and a change of the
primary metric whose confidence interval, with the variance of a day, excludes 0.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skill_evaluator.library.config import VerdictName
from skill_evaluator.records.archive import Archive, entry_of
from skill_evaluator.records.record import Record
from skill_evaluator.records.selection import runs_like, same_series
from skill_evaluator.records.summaries import Drift
from skill_evaluator.stats import stdev_or_none, t_quantile
from skill_evaluator.text import counted, listed
from skill_evaluator.verdicts.decide.comparability import Pair, without_unstable
from skill_evaluator.verdicts.decide.comparison import compare_records
from skill_evaluator.verdicts.decide.measuring import Compared, MeasureEffects, measure_all
from skill_evaluator.verdicts.decide.results import ComparisonResult, MeasureResult, ModelVerdict
from skill_evaluator.verdicts.decide.rules import VerdictRules, has_collapsed, rules_for
from skill_evaluator.verdicts.history.component import RecordedComponent, drift_pair

_ALPHA = 0.025  # rate of false drift reports


def drift_of(records: Sequence[Record], recorded: RecordedComponent) -> ComparisonResult | None:
    """Compare complete runs of a version with earlier runs of their series. Return None if there are none."""
    recorded.archive.add(records)
    pairs = [pair for record in records if (pair := drift_pair(record, recorded.archive)) is not None]
    return drifted(recorded.component.name, pairs, rules_for(recorded.settings, records[0])) if pairs else None


def with_drift(records: Sequence[Record], repeated: Sequence[bool], recorded: RecordedComponent) -> list[Record]:
    """Add the drift to the complete records whose flag in `repeated` is true, and warn of models that drifted."""
    reruns = [record for record, is_rerun in zip(records, repeated, strict=True) if is_rerun and record.complete]
    drifts = drifts_in(drift_of(reruns, recorded)) if reruns else {}
    for record in reruns:
        if record.run_id in drifts and (moved := drifts[record.run_id].moved):
            message = f"{record.model_id} drifted with an unchanged prompt: {listed(moved)}"
            print(f"warning: {message}; this run begins a new series", file=sys.stderr)
    return [record.model_copy(update={"drift": drifts.get(record.run_id)}) for record in records]


def drifts_in(result: ComparisonResult | None) -> dict[str, Drift]:
    """Return the drift of each model of a comparison, by the id of the new run."""
    models = [] if result is None else result.models
    return {
        model.candidate.run_id: Drift(since=model.baseline.run_id, moved=model.moved)
        for model in models
        if model.baseline is not None
    }


def drifted(skill: str, pairs: Sequence[Pair], rules: VerdictRules) -> ComparisonResult:
    """Compare runs of a version with earlier runs (the baselines of `pairs`). Only drift counts as a change."""
    pairs = [without_unstable(pair, rules.unstable_cases, rules.primary_metric) for pair in pairs]
    result = compare_records(skill, pairs, rules)
    measured = measure_all(pairs)
    models = [_only_drift(*pair, rules.primary_metric) for pair in zip(result.models, measured, strict=True)]
    return result.model_copy(update={"models": models})


def _only_drift(model: ModelVerdict, compared: Compared, primary_metric: str) -> ModelVerdict:
    """Reduce a verdict to drift: only lost fields and the primary metric may count as changed."""
    drift: dict[tuple[str, str], VerdictName] = {}
    for measured in compared.measured:
        if measured.measure.name == primary_metric and _is_beyond_a_day(measured):
            has_risen = measured.after.mean > measured.before.mean
            drift[measured.measure.kind, measured.measure.name] = "improved" if has_risen else "regressed"
        elif measured.measure.kind != "reproducibility" and has_collapsed(measured, models=1):
            drift[measured.measure.kind, measured.measure.name] = "regressed"

    def with_drift_verdict(result: MeasureResult) -> MeasureResult:
        verdict = drift.get((result.kind, result.metric))
        if verdict is None and (result.harmed or result.verdict in ("regressed", "improved")):
            return result.model_copy(update={"verdict": "inconclusive", "harmed": False})
        return result if verdict is None else result.model_copy(update={"verdict": verdict})

    update: dict[str, object] = {
        "metrics": list(map(with_drift_verdict, model.metrics)),
        "fields": list(map(with_drift_verdict, model.fields)),
    }
    if model.verdict == "regressed" and not (drift or model.lost_cases):
        runs = counted(model.baseline_runs, "earlier run")
        reason = f"{runs}: this may be the usual variation between days"
        update |= {"verdict": "inconclusive", "reasons": [*model.reasons, reason]}
    return model.model_copy(update=update)


def _is_beyond_a_day(measured: MeasureEffects) -> bool:
    """Return whether the 97.5 % confidence interval of the difference excludes 0.

    The standard error includes the variance of a day, which counts as known: there are (cases − 1) degrees of freedom.
    """
    effect = measured.effect_if(is_sampled=False)
    if effect is None:
        return False
    half_width = float(t_quantile(len(measured.before.means) - 1, 1 - _ALPHA / 2)) * effect.error
    return bool(abs(effect.difference) > half_width)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpread:
    """The strict means of a version's primary metric by run id, and their standard deviation (None for one run)."""

    model_id: str
    version: str
    metric: str
    scores: dict[str, float]
    sigma: float | None


def spreads_of(records: Iterable[Record], archive: Archive) -> list[RunSpread]:
    """Return the spread over the runs of each record's version; the last record of a model counts."""
    spreads = []
    for record in {record.model_id: record for record in records}.values():
        runs = (*same_series(record, _earlier_runs(record, archive)), record)
        means = {run.run_id: run.accuracy[run.primary_metric].strict_mean for run in runs}
        scores = {run_id: mean for run_id, mean in means.items() if mean is not None}
        sigma, metric = stdev_or_none(list(scores.values())), record.primary_metric
        version = record.skill_version
        spreads.append(RunSpread(model_id=record.model_id, version=version, metric=metric, scores=scores, sigma=sigma))
    return spreads


def _earlier_runs(record: Record, archive: Archive) -> list[Record]:
    entry = entry_of(record)
    return [
        archive.record(run)
        for run in runs_like(archive.runs_of(entry.model_id), entry)
        if run.version == entry.version
        and run.run_id != entry.run_id
        and run.is_comparable(entry)
        and run.digests.get("prompt") == entry.digests.get("prompt")
    ]
