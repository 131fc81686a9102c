"""A history for people: which version made it worse, then versions beside models; text, Markdown or JSON."""

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Literal

import semver
from rich.text import Text

from skill_evaluator.regression.history import Change, History, ModelHistory, Point
from skill_evaluator.reports.sheets import Cell, Sheet, markdown_table, show, write
from skill_evaluator.reports.shown import code_span, visible
from skill_evaluator.reports.verdict_tables import MARKS, STYLES, arrow, probability
from skill_evaluator.reports.wording import number

_LEGEND = " · ".join(f"{mark} {name}" for name, mark in MARKS.items())


def print_history(history: History, form: Literal["text", "json", "markdown"]) -> None:
    """Write it to stdout."""
    if form == "json":
        json.dump(history.model_dump(mode="json"), sys.stdout, indent=2)
        sys.stdout.write("\n")
    elif form == "markdown":
        write(_markdown(history))
    else:
        show(_text(history))


def _text(history: History) -> Iterator[Sheet | Text]:
    yield Text(visible(f"{history.skill}: {_title(history)}"), style="bold")
    for model in history.models:
        for change in model.changes:
            yield Text(visible(f"{model.model_id}: {_said(change)}"), style=_style(change))
        yield from (Text(visible(f"{model.model_id}: {remark}"), style="yellow") for remark in model.remarks)
    if not any(model.changes for model in history.models):
        yield Text("no change beyond chance")
    yield Text()
    yield _sheet(history, _names(history))
    yield Text()
    yield Text(_LEGEND, style="dim")
    yield Text(_explained(history), style="dim")


def _markdown(history: History) -> str:
    title = _title(history.model_copy(update={"metric": code_span(history.metric)}))
    lines = [f"## {code_span(history.skill)}: {title}", ""]
    for model in history.models:
        said = [*map(_said, model.changes), *model.remarks]
        lines += [f"- {code_span(model.model_id)}: {code_span(one)}" for one in said]
    if not any(model.changes for model in history.models):
        lines.append("- no change beyond chance")
    table = markdown_table(_sheet(history, [code_span(name) for name in _names(history)]))
    return "\n".join([*lines, "", table, f"{_LEGEND} · {_explained(history)}"]) + "\n"


def _title(history: History) -> str:
    return f"{history.metric} by version, each against the one before"


def _explained(history: History) -> str:
    where = "on these fixtures" if history.gate == "fixtures" else "beyond these fixtures"
    return f"strict means, verdicts {where}; changes: best split of a model's versions, α {history.alpha:g}"


def _style(change: Change) -> str:
    return STYLES["regressed" if change.direction == "worse" else "improved"]


def _said(change: Change) -> str:
    mark = MARKS["regressed" if change.direction == "worse" else "improved"]
    also = f"; at the same time {'; '.join(change.remarks)}" if change.remarks else ""
    return (
        f"{mark} {change.direction} from {change.version} on: {arrow(change.before, change.after)} "
        f"(q {probability(change.q)}, {change.n_cases} cases){also}"
    )


def _sheet(history: History, names: Sequence[str]) -> Sheet:
    """Versions beside models; a version that a model was not evaluated at is left empty."""
    by_model = [{point.version: point for point in model.points} for model in history.models]
    rows = [
        [Cell(version, code=True), *(_cell(points.get(version)) for points in by_model)]
        for version in _versions(history.models)
    ]
    return Sheet(columns=("version", *names), rows=rows)


def _names(history: History) -> list[str]:
    return [model.model_id for model in history.models]


def _versions(models: list[ModelHistory]) -> list[str]:
    """Every version, the lowest first."""
    return sorted({point.version for model in models for point in model.points}, key=semver.Version.parse)


def _cell(point: Point | None) -> Cell:
    if point is None:
        return Cell("")
    if point.step is None:
        return Cell(number(point.strict_mean))
    return Cell(f"{number(point.strict_mean)} {MARKS[point.step.verdict]}", STYLES.get(point.step.verdict, ""))
