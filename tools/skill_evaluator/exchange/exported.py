"""Export records as tables (CSV or JSON Lines) and verdicts as JUnit XML; values that were not measured are None."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree

from skill_evaluator.display import number, visible
from skill_evaluator.errors import LeaderboardError
from skill_evaluator.identifiers import is_file_name
from skill_evaluator.library.options import ComponentsOption, ConfigOption, OnlyModels, argument, option, options
from skill_evaluator.library.sources import component_names
from skill_evaluator.records.record import SCORED, Record, read_record, served_text, strict_by_replicate
from skill_evaluator.records.selection import choose_candidates
from skill_evaluator.records.summaries import Summary
from skill_evaluator.runner.journal import RECORD
from skill_evaluator.text import nearest
from skill_evaluator.verdicts.component import RecordedComponent
from skill_evaluator.verdicts.decide.results import ModelVerdict

ExportedRow = dict[str, Any]

# The columns of every table, and the other columns of `records`, each with the path of an attribute of Record.
_RUN_COLUMNS = ("run_id", "timestamp", "skill", "skill_version", "model_id", "scenario", "draft", "complete")
_RECORD_COLUMNS = {
    **{name: name for name in ("provider", "shard", "beside", "stopped", "replicates")},
    "cases": "n_cases",
    **{name: name for name in ("planned", "scored", "coverage", "primary_metric")},
    "input_tokens": "cost.tokens.input",
    "output_tokens": "cost.tokens.output",
    "cost_usd": "cost.cost_usd",
    "latency_p50_s": "cost.latency_s.p50",
    "latency_p95_s": "cost.latency_s.p95",
    "retries": "retries",
    **{name: f"git.{name}" for name in ("prompt_commit", "dataset_commit")},
    **{name: name for name in ("evaluator_version", "scorer_version")},
}
_FORMULA_PREFIXES = ("=", "+", "-", "@")
_RECORDS_GLOB = "*/evals/records/*.json"


def _record_rows(record: Record) -> Iterator[ExportedRow]:
    row = _run_values(record) | {name: attrgetter(path)(record) for name, path in _RECORD_COLUMNS.items()}
    row |= {"served_model": served_text(record.served_model), "prompt_digest": record.digests.get("prompt")}
    summaries: Mapping[str, Summary] = {**record.accuracy, **record.reproducibility}
    for name, summary in summaries.items():
        low, high = summary.ci95 or (None, None)
        row |= {f"strict_mean_{name}": summary.strict_mean, f"mean_{name}": summary.mean, f"n_{name}": summary.n}
        row |= {f"ci95_low_{name}": low, f"ci95_high_{name}": high}
    yield row


def _case_rows(record: Record) -> Iterator[ExportedRow]:
    metric = record.primary_metric
    for case in record.per_case:
        strict = strict_by_replicate(case, metric)
        for index, outcome in enumerate(case.outcomes):
            yield {
                **_run_values(record),
                "case_id": case.case_id,
                "replicate": index,
                "outcome": outcome,
                "primary_metric": metric,
                "strict_score": strict[index] if index < len(strict) else None,
                "case_digest": case.digest,
                **{f"score_{name}": scores[index] for name, scores in case.replicates.items() if index < len(scores)},
                **{f"agreement_{name}": value for name, value in case.reproducibility.items()},
            }


def _leaf_rows(record: Record) -> Iterator[ExportedRow]:
    for case in record.per_case:
        for path in dict.fromkeys([*case.fields, *case.profile]):
            count, field = case.fields.get(path), record.per_field.get(path)
            yield {
                **_run_values(record),
                "case_id": case.case_id,
                "path": path,
                "compare": None if field is None else field.compare,
                "n_right": None if count is None else count.right,
                "n": None if count is None else count.n,
                "standing": case.profile.get(path),
            }


def _run_values(record: Record) -> ExportedRow:
    return {name: getattr(record, name) for name in _RUN_COLUMNS}


TABLES: Mapping[str, Callable[[Record], Iterator[ExportedRow]]] = {
    "records": _record_rows,
    "cases": _case_rows,
    "leaves": _leaf_rows,
}


@options
class ExportRequest(ComponentsOption, ConfigOption):
    """The options of `export`."""

    sources: tuple[str, ...] = argument("Components, runs or records; default: all.", (), "SOURCE")
    to: Literal["csv", "jsonl", "junit"] = option("The output format; junit takes only components.", "csv")
    table: Literal["records", "cases", "leaves"] = option(
        "Rows: runs; outputs (cases); or fields of cases (leaves).", "records"
    )
    out: Path | None = option("The output file; default: stdout.", metavar="FILE")
    models: OnlyModels = ()


@dataclass(frozen=True, slots=True)
class Exported:
    """The text of an export, and its number of rows, which is 0 for JUnit."""

    text: str
    rows: int


def export_records(request: ExportRequest, recorded: Callable[[str], RecordedComponent]) -> Exported:
    """Export the requested records. For JUnit, `recorded` loads a component by name.

    Raise LeaderboardError if a source or model is unknown, if no record is found, or if `table` is set for JUnit.
    """
    names = request.sources or sorted({path.parents[2].name for path in request.components.glob(_RECORDS_GLOB)})
    if request.to == "junit":
        if request.table != "records":
            raise LeaderboardError(f"--table {request.table} requires --to csv or --to jsonl")
        suites = _verdict_suites(map(recorded, names), request.models)
        return Exported(junit_text(suites), 0)
    paths = [path for name in names for path in _record_files(name, request.components)]
    if not paths:
        locations = ", ".join(request.sources) or request.components
        raise LeaderboardError(
            f"no record in {locations}; run `skill-evaluator evaluate` first, or pass --components DIR"
        )
    records = [read_record(path) for path in dict.fromkeys(paths)]
    recorded_ids = {record.model_id for record in records}
    if unknown := [model_id for model_id in request.models if model_id not in recorded_ids]:
        raise LeaderboardError(f"no record of model '{unknown[0]}' {nearest(unknown[0], recorded_ids)}")
    model_ids = request.models or recorded_ids
    rows = [row for record in records if record.model_id in model_ids for row in TABLES[request.table](record)]
    lines = (json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
    text = _csv_text(rows) if request.to == "csv" else "".join(lines)
    return Exported(text, len(rows))


def _record_files(source: str, components: Path) -> list[Path]:
    """Return the record files of `source` (component, run or path). Raise LeaderboardError if `source` is unknown."""
    if source in (names := component_names(components)):
        return sorted((components / source / "evals" / "records").glob("*.json"))
    candidates = [Path(source), Path(source, RECORD)]
    if is_file_name(source):
        candidates += [*components.glob(f"*/evals/results/{source}/{RECORD}")]
        candidates += [*components.glob(f"*/evals/records/{source}.json")]
    if not (files := [path for path in candidates if path.is_file()]):
        raise LeaderboardError(f"'{source}' is not a component, a run or a record file {nearest(source, names)}")
    return files[:1]


def _csv_text(rows: Sequence[ExportedRow]) -> str:
    names = dict.fromkeys(name for row in rows for name in row)
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_csv_cell(row.get(name)) for name in names] for row in rows)
    return text.getvalue()


def _csv_cell(value: Any) -> Any:
    """Return the CSV cell of a value. A text that a spreadsheet would take for a formula gets an apostrophe (OWASP)."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return value
    text = visible(value)
    return f"'{text}" if text.startswith(_FORMULA_PREFIXES) else text


_VERDICT_TEST = "verdict"  # the JUnit test of the version's verdict
Outcome = Literal["passed", "failure", "skipped"]
Test = tuple[str, Outcome, Sequence[str]]  # name, outcome, reasons


def junit_text(suites: Iterable[tuple[str, Iterable[Test]]]) -> str:
    """Format test suites as JUnit XML. Each suite has a name and tests."""
    root = ElementTree.Element("testsuites", name="skill-evaluator")
    for suite_name, tests in suites:
        suite = ElementTree.SubElement(root, "testsuite", name=visible(suite_name))
        for test_name, outcome, reasons in tests:
            names = {"classname": visible(suite_name), "name": visible(test_name), "time": "0"}
            test = ElementTree.SubElement(suite, "testcase", names)
            lines = [visible(reason) for reason in reasons]
            if outcome != "passed":
                result = ElementTree.SubElement(test, outcome, message=": ".join(lines[:2]))
            if outcome == "failure":
                result.set("type", lines[0])
                result.text = "\n".join(lines[1:])
    for element in (root, *root):
        kinds = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
        for key, kind in kinds.items():
            element.set(key, str(len(list(element.iter(kind)))))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _verdict_suites(
    components: Iterable[RecordedComponent], models: Sequence[str]
) -> Iterator[tuple[str, Iterator[Test]]]:
    for recorded in components:
        runs, _ = choose_candidates(recorded.runs(models), None)
        records = list(map(recorded.archive.record, runs))
        result = recorded.verdict_on(records)
        verdicts = {} if result is None else {model.model_id: model for model in result.models}
        for record in records:
            yield f"{record.skill}.{record.model_id}", _junit_tests(record, verdicts.get(record.model_id))


def _junit_tests(record: Record, verdict: ModelVerdict | None) -> Iterator[Test]:
    if verdict is None:
        yield _VERDICT_TEST, "skipped", ["incomparable", "no lower version is recorded to compare with"]
    elif verdict.verdict == "regressed":
        fell = [f"cases that fell: {', '.join(verdict.lost_cases)}"] if verdict.lost_cases else []
        yield _VERDICT_TEST, "failure", [verdict.verdict, *verdict.reasons, *fell]
    else:
        decided = verdict.verdict in ("improved", "unchanged")
        yield _VERDICT_TEST, "passed" if decided else "skipped", [verdict.verdict, *verdict.reasons]
    failed = {} if verdict is None else _failed_cases(verdict)
    left_out = {} if verdict is None else verdict.cases.left_out
    for case in record.per_case:
        if case.case_id in failed:
            yield case.case_id, "failure", failed[case.case_id]
        elif case.case_id in left_out:
            yield case.case_id, "skipped", ["not compared", left_out[case.case_id]]
        elif SCORED not in case.outcomes:
            kinds = ", ".join(f"{count} {kind}" for kind, count in case.failures.items())
            yield case.case_id, "skipped", ["no output was scored", kinds]
        else:
            yield case.case_id, "passed", []


def _failed_cases(verdict: ModelVerdict) -> dict[str, Sequence[str]]:
    worse = verdict.cases.every_answer_worse if verdict.verdict == "regressed" else ()
    reason = "every output scored less than any output of the baseline"
    failed: dict[str, Sequence[str]] = {case: ["worse", reason] for case in worse}
    failed |= {case: ["lost", "it fell significantly by more than policy.harm"] for case in verdict.lost_cases}
    for change in verdict.cases.broke:
        fields = [f"{path}: {text}" for path, text in change.fields.items()]
        failed[change.case_id] = ["broke", f"{number(change.before)} → {number(change.after)}", *fields]
    return failed
