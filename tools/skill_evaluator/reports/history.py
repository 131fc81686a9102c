"""A component's history: versions beside models for people; CSV and JUnit XML for other programs.

Rows of a leaderboard or a finished `History` come in. CSV has a line for each run and metric, JUnit XML a test case for
each model and step.
"""

import csv
import sys
from collections.abc import Iterable, Iterator
from typing import Any
from xml.etree import ElementTree

import semver
from rich.text import Text

from skill_evaluator.display import number, probability
from skill_evaluator.display.safe_text import code_span, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, markdown_table, print_result, write
from skill_evaluator.records.record import Row, Summary
from skill_evaluator.reports.comparison import MARKS, STYLES, arrow
from skill_evaluator.verdicts.history import Change, History, ModelHistory, Point

_LEGEND = " · ".join(f"{mark} {name}" for name, mark in MARKS.items())
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
_NO_CHANGE = "no change beyond chance"


def print_history(history: History, form: Format) -> None:
    """Print a history to stdout."""
    print_result(
        form,
        json=lambda: history.model_dump(mode="json"),
        markdown=lambda: _markdown(history),
        text=lambda: _text(history),
    )


def _text(history: History) -> Iterator[Sheet | Text]:
    yield Text(visible(f"{history.skill}: {_title(history.metric)}"), style="bold")
    for model in history.models:
        for change in model.changes:
            yield Text(visible(f"{model.model_id}: {_worded(change)}"), style=STYLES[_verdict(change)])
        yield from (Text(visible(f"{model.model_id}: {remark}"), style="yellow") for remark in model.remarks)
    if not any(model.changes for model in history.models):
        yield Text(_NO_CHANGE)
    yield Text()
    yield _sheet(history, *(model.model_id for model in history.models))
    yield Text()
    yield Text(_LEGEND, style="dim")
    yield Text(_explanation(history), style="dim")


def _markdown(history: History) -> str:
    lines = [f"## {code_span(history.skill)}: {_title(code_span(history.metric))}", ""]
    for model in history.models:
        findings = [*map(_worded, model.changes), *model.remarks]
        lines += [f"- {code_span(model.model_id)}: {code_span(finding)}" for finding in findings]
    if not any(model.changes for model in history.models):
        lines.append(f"- {_NO_CHANGE}")
    table = markdown_table(_sheet(history, *(code_span(model.model_id) for model in history.models)))
    return "\n".join([*lines, "", table, f"{_LEGEND} · {_explanation(history)}"]) + "\n"


def _title(metric: str) -> str:
    return f"{metric} by version, each against the one before"


def _explanation(history: History) -> str:
    where = "on these fixtures" if history.gate == "fixtures" else "beyond these fixtures"
    return f"strict means, verdicts {where}; changes: best split of a model's versions, α {history.alpha:g}"


def _verdict(change: Change) -> str:
    return "regressed" if change.direction == "worse" else "improved"


def _worded(change: Change) -> str:
    also = f"; at the same time {'; '.join(change.remarks)}" if change.remarks else ""
    return (
        f"{MARKS[_verdict(change)]} {change.direction} from {change.version} on: {arrow(change.before, change.after)} "
        f"(q {probability(change.q)}, {change.n_cases} cases){also}"
    )


def _sheet(history: History, *names: str) -> Sheet:
    """Return versions beside models, the lowest first. A cell is empty where a model was not evaluated."""
    by_model = [{point.version: point for point in model.points} for model in history.models]
    versions = sorted({version for points in by_model for version in points}, key=semver.Version.parse)
    rows = [[Cell(version, code=True), *(_cell(points.get(version)) for points in by_model)] for version in versions]
    return Sheet(columns=("version", *names), rows=rows)


def _cell(point: Point | None) -> Cell:
    if point is None:
        return Cell("")
    if point.step is None:
        return Cell(number(point.strict_mean))
    return Cell(f"{number(point.strict_mean)} {MARKS[point.step.verdict]}", STYLES.get(point.step.verdict, ""))


def print_csv(rows: Iterable[Row]) -> None:
    """Print every run to stdout, the oldest first, also incomplete runs and those under a scenario."""
    write("")  # where stdout's encoding lacks a character, its escape is printed
    sheet = csv.writer(sys.stdout, lineterminator="\n")
    sheet.writerow(_COLUMNS)
    for row in sorted(rows, key=lambda row: (row.timestamp, row.run_id)):
        for kind, summaries in (("accuracy", row.accuracy), ("reproducibility", row.reproducibility)):
            for metric, summary in summaries.items():
                sheet.writerow(map(_csv_cell, _csv_line(row, kind, metric, summary)))


def _csv_line(row: Row, kind: str, metric: str, summary: Summary) -> Iterator[Any]:
    yield from (row.skill, row.skill_version, row.model_id, row.served_model, row.run_id, row.timestamp, row.scenario)
    yield from (row.complete, row.coverage, row.replicates, row.n_cases, kind, metric, summary.strict_mean)
    yield from (summary.ci95 or (None, None))
    yield from (summary.mean, summary.n)


def _csv_cell(value: Any) -> Any:
    """Write a value so that no spreadsheet takes it for a formula: OWASP advises an apostrophe («CSV injection»)."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return value
    text = visible(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def print_junit(history: History) -> None:
    """Print the steps to stdout as tests: regressed is a failure, inconclusive and incomparable are skipped."""
    suites = ElementTree.Element("testsuites", name=visible(history.skill))
    for model in history.models:
        _add_suite(suites, f"{history.skill}.{model.model_id}", model)
    for count in ("tests", "failures", "errors", "skipped"):
        suites.set(count, str(sum(int(suite.get(count, "0")) for suite in suites)))
    ElementTree.indent(suites)
    write('<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n")


def _add_suite(suites: ElementTree.Element, name: str, model: ModelHistory) -> None:
    suite = ElementTree.SubElement(suites, "testsuite", name=visible(name))
    steps = [(point.version, point.step) for point in model.points if point.step is not None]
    for version, step in steps:
        words = visible(f"{step.before} → {version}")
        test = ElementTree.SubElement(suite, "testcase", classname=visible(name), name=words, time="0")
        reasons = [visible(reason) for reason in step.reasons]
        message = ": ".join([step.verdict, *reasons[:1]])
        if step.verdict == "regressed":
            failure = ElementTree.SubElement(test, "failure", message=message, type=step.verdict)
            failure.text = "\n".join(reasons)
        elif step.verdict in ("inconclusive", "incomparable"):
            ElementTree.SubElement(test, "skipped", message=message)
    verdicts = [step.verdict for _, step in steps]
    suite.set("tests", str(len(verdicts)))
    suite.set("failures", str(verdicts.count("regressed")))
    suite.set("errors", "0")
    suite.set("skipped", str(verdicts.count("inconclusive") + verdicts.count("incomparable")))
