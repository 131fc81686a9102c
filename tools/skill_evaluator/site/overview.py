"""The overview's rows: each component beside each of its models, and those without any, with why."""

from collections.abc import Mapping
from typing import Any

from skill_evaluator.display import ends
from skill_evaluator.library.config import VerdictName
from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.history.component import ComponentStanding
from skill_evaluator.verdicts.planning.advice import usd_per_1000

AGREEMENT = "pairwise_exact_match"


def bare_row(name: str, version: str | None, why: str) -> dict[str, Any]:
    """Return the row of a component that has no complete run."""
    return {"component": name, "version": version, "model": None, "why": why}


def overview_rows(name: str, standing: ComponentStanding, grades: Mapping[str, str | None]) -> list[dict[str, Any]]:
    """Return a row for each model: the figures of its newest complete run of its highest version."""
    return [
        {
            "component": name,
            "version": record.skill_version,
            "model": model_id,
            **run_figures(record),
            **verdict_of(model_id, standing),
            "grade": grades.get(model_id),
        }
        for model_id, record in standing.newest.items()
    ]


def run_figures(record: Record) -> dict[str, Any]:
    """Return what the record of a run says of it as a whole."""
    accuracy = record.accuracy.get(record.primary_metric)
    low, high = ends(accuracy.ci95, accuracy.n_cases) if accuracy else (None, None)
    agreement = record.reproducibility.get(AGREEMENT)
    return {
        "run": record.run_id,
        "timestamp": record.timestamp,
        "metric": record.primary_metric,
        "accuracy": accuracy.strict_mean if accuracy else None,
        "low": low,
        "high": high,
        "reproducibility": agreement.strict_mean if agreement else None,
        "cases": record.n_cases,
        "replicates": record.replicates,
        "coverage": record.coverage,
        "usd": usd_per_1000(record),
        "p50": record.latency_s.p50,
        "p95": record.latency_s.p95,
    }


def verdict_of(model_id: str, standing: ComponentStanding) -> dict[str, Any]:
    """Return the verdict on a model's highest version, as `leaderboard` has it, else as `history` does.

    A version that mends the one before is *improved* only if it is better than the anchor, too; else the verdict is
    that since the anchor.
    """
    ranked = next((model for model in standing.ranking.models if model.model_id == model_id), None)
    points = next(model.points for model in standing.history.models if model.model_id == model_id)
    step = points[-1].step
    verdict: VerdictName | None = ranked.verdict if ranked is not None else None if step is None else step.verdict
    if verdict == "improved" and step is not None and step.watch is not None:
        verdict = step.watch.verdict
    return {"verdict": verdict}
