"""What changed: the verdicts on the newest versions of a component, as its history has them."""

from collections.abc import Iterator
from typing import Any

from skill_evaluator.display import number, probability
from skill_evaluator.verdicts.history_results import ModelHistory
from skill_evaluator.verdicts.standing import ComponentStanding

_NEWEST = 5  # versions of a model: the page of a component has all
_REASONS = 4
MOST_CHANGES = 1_500_000  # characters of the page's data, the newest first


def change_rows(name: str, standing: ComponentStanding) -> Iterator[dict[str, Any]]:
    """Yield a row for each of the newest versions of each model."""
    for model in standing.history.models:
        for point in model.points[-_NEWEST:]:
            step = point.step
            low, high = (step.ci95 if step else None) or (None, None)
            yield {
                "component": name,
                "model": model.model_id,
                "version": point.version,
                "timestamp": point.timestamp,
                "run": point.run_id,
                "verdict": None if step is None else step.verdict,
                "before": None if step is None else step.before,
                "metric": standing.history.metric,
                "difference": None if step is None else step.difference,
                "low": low,
                "high": high,
                "reasons": [] if step is None else step.reasons[:_REASONS],
                "level": _level(model, point.version),
            }


def _level(model: ModelHistory, version: str) -> str | None:
    """Say that a version changed the level of the primary metric; None where it did not."""
    change = next((change for change in model.changes if change.version == version), None)
    if change is None:
        return None
    levels = f"{number(change.before)} → {number(change.after)}"
    return f"{change.direction.capitalize()} from here on: {levels} (q {probability(change.q)})"
