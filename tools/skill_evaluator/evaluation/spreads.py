"""How far the score of one and the same version moved: between its runs, or between scenarios around it.

Records that were just made of a recorded version in, one `RunSpread` a model out, over all that is recorded of it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from skill_evaluator.records.archive import Archive, entry_of
from skill_evaluator.records.record import Record
from skill_evaluator.records.selection import runs_alike, same_series
from skill_evaluator.stats import stdev_or_none
from skill_evaluator.verdicts.history.baselines import neutral_sigma, scenario_runs


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpread:
    """The strict means of a version's primary metric, by run or by scenario, and their standard deviation.

    `sigma` is None for fewer than two. Over scenarios it is without what replicates explain.
    """

    model_id: str
    version: str
    metric: str
    over: Literal["runs", "scenarios"]
    scores: dict[str, float]
    sigma: float | None


def spreads_of(records: Iterable[Record], archive: Archive) -> list[RunSpread]:
    """Return the spread behind each model's records: those under a scenario are held against other scenarios."""
    newest = {(record.model_id, record.scenario is None): record for record in records}
    return [
        _between_runs(record, archive) if plain else _between_scenarios(record, archive)
        for (_, plain), record in newest.items()
    ]


def _between_runs(record: Record, archive: Archive) -> RunSpread:
    entry = entry_of(record)
    runs = [
        archive.record(other)
        for other in runs_alike(archive.runs_of(entry.model_id), entry)
        if other.version == entry.version
        and other.is_comparable(entry)
        and other.digests.get("prompt") == entry.digests.get("prompt")
    ]
    series = same_series(record, (run for run in runs if run.run_id != record.run_id))
    scores = {run.run_id: score for run in (*series, record) if (score := _score(run)) is not None}
    return _spread(record, "runs", scores, stdev_or_none(list(scores.values())))


def _between_scenarios(record: Record, archive: Archive) -> RunSpread:
    runs = scenario_runs(archive, record)
    rewording = neutral_sigma(record, runs)
    scores = {str(run.scenario): score for run in reversed(runs) if (score := _score(run)) is not None}
    return _spread(record, "scenarios", scores, None if rewording is None else rewording.sigma)


def _score(record: Record) -> float | None:
    return record.accuracy[record.primary_metric].strict_mean


def _spread(
    record: Record, over: Literal["runs", "scenarios"], scores: dict[str, float], sigma: float | None
) -> RunSpread:
    return RunSpread(
        model_id=record.model_id,
        version=record.skill_version,
        metric=record.primary_metric,
        over=over,
        scores=scores,
        sigma=sigma,
    )
