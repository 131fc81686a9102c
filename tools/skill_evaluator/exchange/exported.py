"""Records → what other programs read: flat tables as CSV, JSON Lines or Parquet, and verdicts as JUnit XML.

A table has columns of its own, which are always there in their order, and then those of the metrics that a record has.
Every column has one type in every file. What was not measured is None.
"""

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import islice
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Literal
from xml.etree import ElementTree

from skill_evaluator.display import number
from skill_evaluator.display.options import ComponentsOption, ConfigOption, OnlyModels, argument, option, options
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import LeaderboardError, RunError, StorageError
from skill_evaluator.files import replace_blocks
from skill_evaluator.identifiers import is_file_name
from skill_evaluator.library.sources import component_names
from skill_evaluator.records.record import SCORED, CaseRecord, Record, read_record, strict_by_replicate
from skill_evaluator.records.selection import choose
from skill_evaluator.records.served import served_text
from skill_evaluator.records.summaries import Summary
from skill_evaluator.runner.journal import RECORD, find_run
from skill_evaluator.text import nearest
from skill_evaluator.verdicts.decide.results import ModelVerdict
from skill_evaluator.verdicts.history.component import RecordedComponent

Kind = Literal["text", "integer", "number", "boolean"]
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """One column, its type and what it holds; `<metric>` in a name stands for each metric of the records.

    `key` is the key of a record that has its value, if that differs from the name.
    """

    name: str
    kind: Kind
    meaning: str
    key: str = ""

    def of(self, record: Record) -> Any:
        """Return the value that a record has for it."""
        return attrgetter(self.key or self.name)(record)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What a table has a row of, and how rows are made of a record; `of_metrics` are columns for each metric."""

    row: str
    columns: tuple[Column, ...]
    of_metrics: tuple[Column, ...]
    rows: Callable[[Record], Iterator[Row]]

    def kind_of(self, name: str) -> Kind:
        """Return the type of a column by its name."""
        named = {column.name: column.kind for column in self.columns}
        return named[name] if name in named else self.of_metrics[_place(self, name)[1]].kind


_RUN = (
    Column("run_id", "text", "the run, whose record is `evals/records/<run_id>.json`"),
    Column("timestamp", "text", "when the run began (ISO 8601, UTC)"),
    Column("skill", "text", "the component"),
    Column("skill_version", "text", "its version"),
    Column("model_id", "text", "the model, as models.yaml names it"),
    Column("scenario", "text", "the scenario the prompt was asked under; empty without one"),
    Column("draft", "boolean", "whether it is a draft, which is never a baseline"),
    Column("complete", "boolean", "whether enough calls were answered for it to be a measurement"),
)
_RECORDS = (
    Column("served_model", "text", "the model that the provider says answered; of several each with its answers"),
    Column("provider", "text", "the provider; of imported results the tool"),
    Column("shard", "text", "the part of the cases that was asked; empty for all"),
    Column("beside", "text", "the run whose calls alternated with this one's"),
    Column("stopped", "text", "why the run ended early"),
    Column("replicates", "integer", "answers asked for each case"),
    Column("cases", "integer", "cases asked", "n_cases"),
    Column("planned", "integer", "calls planned"),
    Column("scored", "integer", "calls whose answer was scored; the others failed"),
    Column("saved_calls", "integer", "calls not made, because the verdict was settled"),
    Column("coverage", "number", "share of the planned calls that the model answered"),
    Column("primary_metric", "text", "the metric that decides"),
    Column("input_tokens", "integer", "tokens read, as the vendor counted", "tokens.input"),
    Column("output_tokens", "integer", "tokens written, as the vendor counted", "tokens.output"),
    Column("cost_usd", "number", "cost of the run in US dollars"),
    Column("latency_p50_s", "number", "median latency of a call in seconds", "latency_s.p50"),
    Column("latency_p95_s", "number", "95 % of the calls took at most this many seconds", "latency_s.p95"),
    Column("retries", "integer", "calls made again"),
    Column("prompt_commit", "text", "commit of the prompt"),
    Column("dataset_commit", "text", "commit of the cases"),
    Column("prompt_digest", "text", "digest of the prompt", "digests"),
    Column("evaluator_version", "text", "version of this tool"),
    Column("scorer_version", "integer", "version of the scorer; only equal ones are compared"),
)
_RECORD_METRICS = (
    Column("strict_mean_<metric>", "number", "mean over cases; an unparseable, refused or truncated answer counts 0"),
    Column("mean_<metric>", "number", "mean over scored answers"),
    Column("ci95_low_<metric>", "number", "lower end of the 95 % interval of the strict mean, over cases"),
    Column("ci95_high_<metric>", "number", "its upper end"),
    Column("n_<metric>", "integer", "what entered the mean"),
)
_CASE = Column("case_id", "text", "the case")
_CASES = (
    _CASE,
    Column("replicate", "integer", "which answer to the case, from 0"),
    Column("outcome", "text", "`scored`, `unparseable`, or the kind of failure"),
    Column("primary_metric", "text", "the metric that decides"),
    Column("strict_score", "number", "what the answer counts with by that metric; empty where nothing was measured"),
    Column("case_digest", "text", "digest of document and ground truth: a different digest is a different case"),
)
_CASE_METRICS = (
    Column("score_<metric>", "number", "the answer's score from 0 to 1; empty where it was not measured"),
    Column("agreement_<metric>", "number", "reproducibility of the whole case, the same in each row of it"),
)
_LEAVES = (
    _CASE,
    Column("path", "text", "the field, such as `lines[].price`"),
    Column("compare", "text", "how it is compared"),
    Column("n_right", "integer", "leaves that were right, over all answers to the case"),
    Column("n", "integer", "leaves compared, over all answers to the case"),
    Column("standing", "text", "`stable_right`, `stable_wrong`, `stable`, `flaky` or `unscored`"),
)


def _record_rows(record: Record) -> Iterator[Row]:
    row = {column.name: column.of(record) for column in (*_RUN, *_RECORDS)}
    row |= {"served_model": served_text(record.served_model), "prompt_digest": record.digests.get("prompt")}
    summaries: Mapping[str, Summary] = {**record.accuracy, **record.reproducibility}
    for name, summary in summaries.items():
        low, high = summary.ci95 or (None, None)
        row |= {f"strict_mean_{name}": summary.strict_mean, f"mean_{name}": summary.mean, f"n_{name}": summary.n}
        row |= {f"ci95_low_{name}": low, f"ci95_high_{name}": high}
    yield row


def _case_rows(record: Record) -> Iterator[Row]:
    metric = record.primary_metric
    for case in record.per_case:
        agreement = {f"agreement_{name}": value for name, value in case.reproducibility.items()}
        strict = strict_by_replicate(case, metric)
        for index, outcome in enumerate(case.outcomes):
            yield {
                **_run(record),
                "case_id": case.case_id,
                "replicate": index,
                "outcome": outcome,
                "primary_metric": metric,
                "strict_score": strict[index] if index < len(strict) else None,
                "case_digest": case.digest,
                **{f"score_{name}": scores[index] for name, scores in case.replicates.items() if index < len(scores)},
                **agreement,
            }


def _leaf_rows(record: Record) -> Iterator[Row]:
    for case in record.per_case:
        for path in dict.fromkeys([*case.fields, *case.profile]):
            count, field = case.fields.get(path), record.per_field.get(path)
            yield {
                **_run(record),
                "case_id": case.case_id,
                "path": path,
                "compare": None if field is None else field.compare,
                "n_right": None if count is None else count.right,
                "n": None if count is None else count.n,
                "standing": case.profile.get(path),
            }


def _run(record: Record) -> Row:
    return {column.name: column.of(record) for column in _RUN}


TABLES: Mapping[str, Table] = {
    "records": Table(row="a run", columns=(*_RUN, *_RECORDS), of_metrics=_RECORD_METRICS, rows=_record_rows),
    "cases": Table(row="an answer", columns=(*_RUN, *_CASES), of_metrics=_CASE_METRICS, rows=_case_rows),
    "leaves": Table(row="a field of a case", columns=(*_RUN, *_LEAVES), of_metrics=(), rows=_leaf_rows),
}


@options
class ExportRequest(ComponentsOption, ConfigOption):
    """What to export, and in which form: the options of `export`."""

    sources: tuple[str, ...] = argument(
        "Components, run folders, run ids, or files of records; default: all components.",
        (),
        metavar="SOURCE",
        completes="components",
        show_default=False,
    )
    to: Literal["csv", "jsonl", "parquet", "junit"] = option("The form to write.", "csv")
    table: Literal["records", "cases", "leaves"] = option(
        "A row a run, an answer, or a field of a case (of csv, jsonl, parquet).", "records"
    )
    out: Path | None = option("Where to write; default: stdout.", metavar="FILE")
    models: OnlyModels = ()


class Exported:
    """What was asked for, in blocks of text or bytes that are made as they are read; `rows` counts those of a table."""

    def __init__(self, request: ExportRequest, recorded: Callable[[str], RecordedComponent]) -> None:
        """Find the records; raise LeaderboardError without any. `recorded` reads a component by its name."""
        self.rows = 0
        every = sorted({path.parents[2].name for path in request.components.glob("*/evals/records/*.json")})
        names = request.sources or every
        self._blocks: Iterable[str | bytes]
        if request.to == "junit":
            if request.table != "records":
                raise LeaderboardError(f"--table {request.table} is of csv, jsonl and parquet, not of junit")
            suites = _verdict_suites(map(recorded, names), request.models)
            self._blocks = [junit_text(suites, "skill-evaluator")]
            return
        paths = [path for name in names for path in _record_files(name, request.components)]
        if not paths:
            where = ", ".join(request.sources) or request.components
            raise LeaderboardError(f"nothing is recorded in {where} yet; evaluate it, or see --components DIR")
        table = TABLES[request.table]
        rows = (row for record in _records_of(paths, request.models) for row in table.rows(record))
        self._blocks = table_blocks(table, map(self._counted, rows), request.to)

    def _counted(self, row: "Row") -> "Row":
        self.rows += 1
        return row

    def __iter__(self) -> Iterator[str | bytes]:
        return iter(self._blocks)

    def save(self, path: Path) -> None:
        """Write a file; raise StorageError, and leave the old file, when the system refuses."""
        replace_blocks(path, self)


def _records_of(paths: Iterable[Path], models: Sequence[str]) -> Iterator[Record]:
    """Yield records, those of some models or all; raise LeaderboardError for a model that has none."""
    there = set()
    for path in dict.fromkeys(paths):
        record = read_record(path)
        there.add(record.model_id)
        if not models or record.model_id in models:
            yield record
    for model_id in models:
        if model_id not in there:
            raise LeaderboardError(f"no record of model '{model_id}' is among them {nearest(model_id, there)}")


def _record_files(source: str, components: Path) -> list[Path]:
    """Return the files of the records that a component, a run folder, a run id or a file names, the oldest first."""
    names = component_names(components)
    if source in names:
        return sorted((components / source / "evals" / "records").glob("*.json"))
    if Path(source).is_file():
        return [Path(source)]
    recorded = [*components.glob(f"*/evals/records/{source}.json")] if is_file_name(source) else []
    try:
        folder = find_run(source, components)
    except RunError:
        if recorded:
            return recorded
        message = f"'{source}' is no component, run or file of a record {nearest(source, names)}"
        raise LeaderboardError(message) from None
    if not (folder / RECORD).exists():
        raise LeaderboardError(f"{folder} has no {RECORD} yet: `skill-evaluator score {folder}` writes it")
    return [folder / RECORD]


TableForm = Literal["csv", "jsonl", "parquet"]
INSTALL = "`pip install pyarrow` (the extra `parquet` of this package)"
_AT_ONCE = 5_000  # rows of a row group
_BLOCK = 2**20
_FORMULA = ("=", "+", "-", "@")
_ARROW = {"text": "string", "integer": "int64", "number": "float64", "boolean": "bool_"}


def table_blocks(table: Table, rows: Iterable[Row], form: TableForm) -> Iterator[str | bytes]:
    """Yield the text or bytes of a table; raise StorageError where the library for a form is not installed."""
    if form == "jsonl":
        yield from (_line(row) for row in rows)
        return
    if form == "parquet":
        _arrow()  # before any row is read
    with TemporaryFile("w+", encoding="utf-8", errors="surrogatepass") as waiting:
        found: dict[str, None] = {}
        for row in rows:
            found |= dict.fromkeys(row)
            waiting.write(_line(row))
        own = [column.name for column in table.columns]
        names = [*own, *sorted(found.keys() - set(own), key=lambda name: _place(table, name))]
        waiting.seek(0)
        again = (json.loads(line) for line in waiting)
        if form == "parquet":
            yield from _parquet(table, names, again)
            return
        yield _csv_lines([names])
        while block := list(islice(again, _AT_ONCE)):
            yield _csv_lines([row.get(name) for name in names] for row in block)


def _line(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"


def _place(table: Table, name: str) -> tuple[str, int]:
    """Return the key that puts the columns of one metric beside each other, in the order the page has them."""
    starts = [column.name.removesuffix("<metric>") for column in table.of_metrics]
    at = next(at for at, start in enumerate(starts) if name.startswith(start))
    return name.removeprefix(starts[at]), at


def _csv_lines(lines: Iterable[list[Any]]) -> str:
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(_csv_cell, line) for line in lines)
    return text.getvalue()


def _parquet(table: Table, names: list[str], rows: Iterator[Row]) -> Iterator[bytes]:
    arrow = _arrow()
    from pyarrow import parquet

    schema = arrow.schema([(name, getattr(arrow, _ARROW[table.kind_of(name)])()) for name in names])
    with TemporaryFile() as file:
        with parquet.ParquetWriter(file, schema) as writer:
            while batch := list(islice(rows, _AT_ONCE)):
                writer.write_table(arrow.Table.from_pylist([_valid(row) for row in batch], schema=schema))
        file.seek(0)
        while block := file.read(_BLOCK):
            yield block


def _valid(row: Row) -> Row:
    """Return a row whose texts are valid UTF-8: half a surrogate pair is written as its escape."""
    return {
        name: value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
        for name, value in row.items()
    }


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as problem:
        raise StorageError(f"Parquet needs a library that does not load ({problem}): {INSTALL}") from problem
    return pyarrow


def _csv_cell(value: Any) -> Any:
    """Write a value so that no spreadsheet takes it for a formula: OWASP advises an apostrophe («CSV injection»)."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return value
    text = visible(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


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


def _verdict_suites(
    components: Iterable[RecordedComponent], models: Sequence[str]
) -> Iterator[tuple[str, Iterator[Test]]]:
    """Yield a suite for each component and model that `compare` would judge: a test a case, and one for the verdict.

    A case fails where it broke or was lost, and where every answer to it is worse in a version that regressed. It is
    skipped where no answer was scored, or it was not compared.
    """
    for recorded in components:
        choices = choose(recorded.runs(models), None, None).choices
        records = [recorded.archive.record(choice.candidate) for choice in choices]
        result = recorded.verdict_on(records)
        verdicts = {} if result is None else {model.model_id: model for model in result.models}
        for record in records:
            yield f"{record.skill}.{record.model_id}", _tests(record, verdicts.get(record.model_id))


def _tests(record: Record, verdict: ModelVerdict | None) -> Iterator[Test]:
    if verdict is None:
        yield _VERDICT, "skipped", ["incomparable", "no lower version is recorded to compare with"]
    elif verdict.verdict == "regressed":
        fell = [f"cases that fell: {', '.join(verdict.lost_cases)}"] if verdict.lost_cases else []
        yield _VERDICT, "failure", [verdict.verdict, *verdict.reasons, *fell]
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
        if verdict.verdict == "regressed" and case.case_id in verdict.cases.every_answer_worse:
            return case.case_id, "failure", ["worse", "every answer scored less than any before"]
        if case.case_id in verdict.cases.left_out:
            return case.case_id, "skipped", ["not compared", verdict.cases.left_out[case.case_id]]
    if SCORED not in case.outcomes:
        kinds = ", ".join(f"{count} {kind}" for kind, count in case.failures.items())
        return case.case_id, "skipped", ["no answer was scored", kinds]
    return case.case_id, "passed", []
