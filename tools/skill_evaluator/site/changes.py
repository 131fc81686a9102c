"""What changed: the newest versions of every component, each with its verdict on every model."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from skill_evaluator.display import ends, signed
from skill_evaluator.display.addresses import verdict_address
from skill_evaluator.records.archive import precedence
from skill_evaluator.site.component import verdict_of
from skill_evaluator.site.rendering import Pages
from skill_evaluator.site.state import change_words
from skill_evaluator.site.writing import fitting
from skill_evaluator.verdicts.decide.rules import WORST_FIRST
from skill_evaluator.verdicts.history.component import ComponentStanding
from skill_evaluator.verdicts.history.series import History, Point

NEWEST = 5  # versions of a component
_MAX_REASONS = 4
_MAX_NAME = 18  # characters of a model in the line of a version
_MAX_DATA = 350_000  # characters of the data of the page, the newest versions first
ORDER = (*WORST_FIRST, "first")


def version_changes(state: Mapping[str, Any], standing: ComponentStanding) -> Iterator[dict[str, Any]]:
    """Yield each of the newest versions of a component with its verdicts, the worst first; the newest has the state."""
    name, history = state["component"], standing.history
    points = [(model.model_id, point) for model in history.models for point in model.points]
    versions = sorted({point.version for _, point in points}, key=precedence, reverse=True)
    for version in versions[:NEWEST]:
        entries = [version_entry(model, point, standing) for model, point in points if point.version == version]
        entries.sort(key=lambda entry: (ORDER.index(entry["verdict"]), entry["difference"] or 0.0))
        yield {
            "component": name,
            "address": state["address"],
            "verdict_address": verdict_address(name, version),
            "version": version,
            "state": state if version == history.newest else None,
            "timestamp": max(entry["timestamp"] for entry in entries),
            "verdicts": _summary(entries),
            "whole": next((entry["also"] for entry in entries if entry["also"]), None),
            "entries": entries,
        }


def version_entry(model: str, point: Point, standing: ComponentStanding) -> dict[str, Any]:
    """Return the verdict on a version with a model, its figures and first reasons."""
    step = point.step
    return {
        "model": model,
        "verdict": "first" if step is None else step.verdict,
        "before": None if step is None else step.before,
        "also": other_verdict(model, point, standing),
        "difference": None if step is None else step.difference,
        "figures": figures_words(standing.history, point),
        "reasons": [] if step is None else step.reasons[:_MAX_REASONS],
        "timestamp": point.timestamp,
    }


def other_verdict(model: str, point: Point, standing: ComponentStanding) -> Mapping[str, Any] | None:
    """Return the verdict on a model's highest version since a version other than the one before, if it differs."""
    if point.step is None or all(point is not one.points[-1] for one in standing.history.models):
        return None
    stands = verdict_of(model, standing)
    if stands["also"] is None:
        return None
    return next((one for one in (stands, stands["also"]) if one["before"] != point.step.before), None)


def figures_words(history: History, point: Point) -> str:
    """Format the change of the primary metric since the version before, with its confidence interval; "" if
    unknown.
    """
    if point.step is None or point.step.difference is None:
        return ""
    return change_words(history.metric, point.step.difference, *ends(point.step.ci95, point.n_cases))


def _summary(entries: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return each verdict with the number of its models, and for changes the model that changed the most."""
    by_verdict: dict[str, list[Mapping[str, Any]]] = {}
    for entry in entries:
        by_verdict.setdefault(entry["verdict"], []).append(entry)
    summary = []
    for verdict, some in by_verdict.items():
        most = max(some, key=lambda entry: abs(entry["difference"] or 0.0))
        words = f"× {len(some)}"
        if verdict in ("regressed", "improved"):
            moved = "" if most["difference"] is None else f" {signed(most['difference'])}"
            name = most["model"] if len(most["model"]) <= _MAX_NAME else f"{most['model'][:7]}…{most['model'][-9:]}"
            words = f"{name}{moved}{f', {len(some) - 1} more' * (len(some) > 1)}"
        summary.append({"verdict": verdict, "words": words})
    return summary


def write_changes(pages: "Pages", changes: Iterable[dict[str, Any]]) -> None:
    """Write the page of changes, the newest versions first."""
    newest = sorted(changes, key=lambda change: (change["timestamp"], change["component"]), reverse=True)
    shown, left = fitting(newest, _MAX_DATA)
    pages.write("changes.html", "changes.html", versions=shown, left=left)
