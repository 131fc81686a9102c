"""What changed: the verdicts on the newest versions of a component, as its history has them."""

from collections.abc import Iterator
from typing import Any

from skill_evaluator.display import ends
from skill_evaluator.verdicts.history.component import ComponentStanding

_NEWEST = 5  # versions of a model: the page of a component has all
_REASONS = 4
MOST_CHANGES = 1_500_000  # characters of the page's data, the newest first


def change_rows(name: str, standing: ComponentStanding) -> Iterator[dict[str, Any]]:
    """Yield a row for each of the newest versions of each model."""
    for model in standing.history.models:
        for point in model.points[-_NEWEST:]:
            step = point.step
            low, high = ends(step.ci95 if step else None, point.n_cases)
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
            }
