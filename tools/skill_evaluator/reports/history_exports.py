"""A history for other programs: CSV, one line a run and metric; JUnit XML, one test case a model and step."""

import csv
import sys
from collections.abc import Iterable, Iterator
from typing import Any
from xml.etree import ElementTree

from skill_evaluator.records import Row, Summary
from skill_evaluator.regression.history import History, ModelHistory, Point, Step
from skill_evaluator.reports.sheets import write
from skill_evaluator.reports.shown import visible

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
                sheet.writerow(map(_cell, _line(row, kind, metric, summary)))


def _line(row: Row, kind: str, metric: str, summary: Summary) -> Iterator[Any]:
    yield from (row.skill, row.skill_version, row.model_id, row.served_model, row.run_id, row.timestamp, row.scenario)
    yield from (row.complete, row.coverage, row.replicates, row.n_cases, kind, metric, summary.strict_mean)
    yield from (summary.ci95 or (None, None))
    yield from (summary.mean, summary.n)


def _cell(value: Any) -> Any:
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
