"""A recorded version that was asked again → did its model move, though the prompt did not?

Days differ. Two runs of a version cannot tell a day from a move, so a move must be beyond chance by the rules of a
verdict, and besides be further off than one more run may be, by the spread of the earlier ones.
"""

import math
from collections.abc import Container, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Settings
from skill_evaluator.records.archive import Archive
from skill_evaluator.records.record import Record
from skill_evaluator.records.summaries import Drift
from skill_evaluator.text import counted
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.results import ComparisonResult, MeasureResult, ModelVerdict
from skill_evaluator.verdicts.decide.rules import VerdictRules, rules_for
from skill_evaluator.verdicts.history.baselines import drift_pair

if TYPE_CHECKING:  # numpy is imported where a run is held against others
    from skill_evaluator.verdicts.decide.measuring import Measured

_MISSED = 0.025  # of further runs that are beyond a day's interval though nothing moved


def drift_of(
    records: Sequence[Record], component: Component, archive: Archive, settings: Settings, config: Path
) -> ComparisonResult | None:
    """Hold complete runs of a recorded version against the earlier ones of their series; None where none has any.

    The rules are those of a verdict between versions.
    """
    archive.add(records)
    pairs = [pair for record in records if (pair := drift_pair(record, archive)) is not None]
    if not pairs:
        return None
    return drifted(component.name, pairs, rules_for(settings, config, records[0]))


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
