"""Tests with their outcomes → JUnit XML, which CI systems show; and the verdict on recorded runs as such tests."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal
from xml.etree import ElementTree

from skill_evaluator.display import number
from skill_evaluator.display.safe_text import visible
from skill_evaluator.records.record import SCORED, CaseRecord, Record
from skill_evaluator.verdicts.decide.results import ComparisonResult, ModelVerdict

Outcome = Literal["passed", "failure", "skipped"]
Test = tuple[str, Outcome, Sequence[str]]  # its name, what became of it, and why
_COUNTS = ("tests", "failures", "errors", "skipped")  # nothing here is an error
_COUNTED = {"failure": "failures", "skipped": "skipped"}
_VERDICT = "verdict"  # the test that fails with the version, whichever cases broke


def junit_text(suites: Iterable[tuple[str, Iterable[Test]]], name: str) -> str:
    """Return suites of tests as JUnit XML; the first reason is the message, all of them the text."""
    root = ElementTree.Element("testsuites", name=visible(name))
    totals: Counter[str] = Counter()
    for suite_name, tests in suites:
        named = visible(suite_name)
        suite = ElementTree.SubElement(root, "testsuite", name=named)
        counts: Counter[str] = Counter()
        for words, outcome, reasons in tests:
            test = ElementTree.SubElement(suite, "testcase", classname=named, name=visible(words), time="0")
            counts["tests"] += 1
            if outcome in _COUNTED:
                counts[_COUNTED[outcome]] += 1
                said = [visible(reason) for reason in reasons]
                why = ElementTree.SubElement(test, outcome, message=": ".join(said[:2]))
                if outcome == "failure":
                    why.set("type", said[0])
                    why.text = "\n".join(said[1:])
        totals += counts
        for kind in _COUNTS:
            suite.set(kind, str(counts[kind]))
    for kind in _COUNTS:
        root.set(kind, str(totals[kind]))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def verdict_suites(records: Sequence[Record], result: ComparisonResult | None) -> Iterator[tuple[str, Iterator[Test]]]:
    """Yield a suite for each model of a component: a test a case, and one for the verdict on its version.

    A case fails where it broke or was lost. It is skipped where no answer was scored, or it was not compared.
    """
    verdicts = {} if result is None else {model.model_id: model for model in result.models}
    for record in records:
        yield f"{record.skill}.{record.model_id}", _tests(record, verdicts.get(record.model_id))


def _tests(record: Record, verdict: ModelVerdict | None) -> Iterator[Test]:
    if verdict is None:
        yield _VERDICT, "skipped", ["incomparable", "no lower version is recorded to compare with"]
    elif verdict.verdict == "regressed":
        yield _VERDICT, "failure", [verdict.verdict, *verdict.reasons]
    else:
        decided = verdict.verdict in ("improved", "unchanged")
        yield _VERDICT, "passed" if decided else "skipped", [verdict.verdict, *verdict.reasons]
    for case in record.per_case:
        yield _case(case, verdict)


def _case(case: CaseRecord, verdict: ModelVerdict | None) -> Test:
    if verdict is not None:
        broke = next((change for change in verdict.cases.broke if change.case_id == case.case_id), None)
        if broke is not None:
            fields = [f"{path}: {change}" for path, change in broke.fields.items()]
            return case.case_id, "failure", ["broke", f"{number(broke.before)} → {number(broke.after)}", *fields]
        if case.case_id in verdict.lost_cases:
            return case.case_id, "failure", ["lost", "it fell by more than policy.harm, beyond chance"]
        if case.case_id in verdict.cases.left_out:
            return case.case_id, "skipped", ["not compared", verdict.cases.left_out[case.case_id]]
    if SCORED not in case.outcomes:
        kinds = ", ".join(f"{count} {kind}" for kind, count in case.failures.items())
        return case.case_id, "skipped", ["no answer was scored", kinds]
    return case.case_id, "passed", []
