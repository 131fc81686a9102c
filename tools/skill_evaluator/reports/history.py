"""A history for other programs: CSV, one line a run and metric; JUnit XML, one test case a model and step.

A history for people: which version made it worse, then versions beside models; text, Markdown or JSON.
"""

import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from xml.etree import ElementTree

import semver
from rich.text import Text

from skill_evaluator.display import number, probability
from skill_evaluator.display.safe_text import code_span, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, markdown_table, print_result, write
from skill_evaluator.records.record import Row, Summary
from skill_evaluator.reports.verdict_tables import MARKS, STYLES, arrow
from skill_evaluator.verdicts.history import Change, History, ModelHistory, Point, Step

_COLUMNS = (
    "skill",
    "version",
    "model_id",
    "served_model",
    "run_id",
    "timestamp",
    "scenario",
    "complete",
    "coverage",
    "replicates",
    "cases",
    "kind",
    "metric",
    "strict_mean",
    "ci95_low",
    "ci95_high",
    "mean",
    "n",
)
_FORMULA = ("=", "+", "-", "@")


def print_csv(rows: Iterable[Row]) -> None:
    """Write every run to stdout, the oldest first; incomplete ones and those under a scenario say so."""
    write("")  # where stdout's encoding lacks a character, its escape is printed
    sheet = csv.writer(sys.stdout, lineterminator="\n")
    sheet.writerow(_COLUMNS)
    for row in sorted(rows, key=lambda one: (one.timestamp, one.run_id)):
        for kind, summaries in (("accuracy", row.accuracy), ("reproducibility", row.reproducibility)):
            for metric, summary in summaries.items():
                sheet.writerow(map(_csv_cell, _line(row, kind, metric, summary)))


def _line(row: Row, kind: str, metric: str, summary: Summary) -> Iterator[Any]:
    yield from (row.skill, row.skill_version, row.model_id, row.served_model, row.run_id, row.timestamp, row.scenario)
    yield from (row.complete, row.coverage, row.replicates, row.n_cases, kind, metric, summary.strict_mean)
    yield from (summary.ci95 or (None, None))
    yield from (summary.mean, summary.n)


def _csv_cell(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula is given an apostrophe, as OWASP advises («CSV injection»)."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return value
    text = visible(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def print_junit(history: History) -> None:
    """Write the steps to stdout: regressed fails, what says nothing either way is skipped."""
    root = ElementTree.Element("testsuites", name=visible(history.skill))
    for model in history.models:
        _suite(root, history, model)
    for count in ("tests", "failures", "errors", "skipped"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    ElementTree.indent(root)
    write('<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n")


def _suite(root: ElementTree.Element, history: History, model: ModelHistory) -> None:
    suite = ElementTree.SubElement(root, "testsuite", name=visible(f"{history.skill}.{model.model_id}"))
    steps = [(point, point.step) for point in model.points if point.step is not None]
    for point, step in steps:
        _test(suite, history, model, point, step)
    verdicts = [step.verdict for _, step in steps]
    suite.set("tests", str(len(verdicts)))
    suite.set("failures", str(verdicts.count("regressed")))
    suite.set("errors", "0")
    suite.set("skipped", str(verdicts.count("inconclusive") + verdicts.count("incomparable")))


def _test(suite: ElementTree.Element, history: History, model: ModelHistory, point: Point, step: Step) -> None:
    test = ElementTree.SubElement(
        suite,
        "testcase",
        classname=visible(f"{history.skill}.{model.model_id}"),
        name=visible(f"{step.before} → {point.version}"),
        time="0",
    )
    reasons = [visible(reason) for reason in step.reasons]
    said = f"{step.verdict}: {reasons[0]}" if reasons else step.verdict
    if step.verdict == "regressed":
        failure = ElementTree.SubElement(test, "failure", message=said, type=step.verdict)
        failure.text = "\n".join(reasons)
    elif step.verdict in ("inconclusive", "incomparable"):
        ElementTree.SubElement(test, "skipped", message=said)


_LEGEND = " · ".join(f"{mark} {name}" for name, mark in MARKS.items())


def print_history(history: History, form: Format) -> None:
    """Write it to stdout."""
    print_result(
        form,
        json=lambda: history.model_dump(mode="json"),
        markdown=lambda: _markdown(history),
        text=lambda: _text(history),
    )


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
