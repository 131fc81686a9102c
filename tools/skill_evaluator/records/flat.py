"""A record → rows of flat tables, for spreadsheets, data frames and databases: the run, its answers, its leaves.

A table has columns of its own, which are always there in their order, and then those of the metrics that a record has.
Every column has one type in every file. What was not measured is None.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

from skill_evaluator.records.record import Record
from skill_evaluator.records.served import served_text
from skill_evaluator.records.strict import strict_by_replicate
from skill_evaluator.records.summaries import Summary

Kind = Literal["text", "integer", "number", "boolean"]
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """One column, its type and what it holds; `<metric>` in a name stands for each metric of the records."""

    name: str
    kind: Kind
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What a table has a row of, and how rows are made of a record; `of_metrics` are columns for each metric."""

    row: str
    columns: tuple[Column, ...]
    of_metrics: tuple[Column, ...]
    rows: Callable[[Record], Iterator[Row]]

    def kind_of(self, name: str) -> Kind:
        """Return the type of a column by its name."""
        named = (column.kind for column in self.columns if column.name == name)
        starts = ((column.name.removesuffix("<metric>"), column.kind) for column in self.of_metrics)
        return next(chain(named, (kind for start, kind in starts if name.startswith(start))))


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
    Column("cases", "integer", "cases asked"),
    Column("planned", "integer", "calls planned"),
    Column("scored", "integer", "calls whose answer was scored; the others failed"),
    Column("saved_calls", "integer", "calls not made, because the verdict was settled"),
    Column("coverage", "number", "share of the planned calls that the model answered"),
    Column("primary_metric", "text", "the metric that decides"),
    Column("input_tokens", "integer", "tokens read, as the vendor counted"),
    Column("output_tokens", "integer", "tokens written, as the vendor counted"),
    Column("cost_usd", "number", "cost of the run in US dollars"),
    Column("latency_p50_s", "number", "median latency of a call in seconds"),
    Column("latency_p95_s", "number", "95 % of the calls took at most so many seconds"),
    Column("retries", "integer", "calls made again"),
    Column("prompt_commit", "text", "commit of the prompt"),
    Column("dataset_commit", "text", "commit of the cases"),
    Column("prompt_digest", "text", "digest of the prompt"),
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
    Column("case_digest", "text", "digest of document and ground truth: another digest is another case"),
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
    """Yield the one row of a run."""
    row = _run(record)
    own = {column.name for column in _RECORDS}
    row |= record.model_dump(include=own & set(Record.model_fields))
    row |= {
        "served_model": served_text(record.served_model),
        "cases": record.n_cases,
        "input_tokens": record.tokens.input,
        "output_tokens": record.tokens.output,
        "latency_p50_s": record.latency_s.p50,
        "latency_p95_s": record.latency_s.p95,
        "prompt_digest": record.digests.get("prompt"),
    }
    summaries: Mapping[str, Summary] = {**record.accuracy, **record.reproducibility}
    for name, summary in summaries.items():
        low, high = summary.ci95 or (None, None)
        row |= {f"strict_mean_{name}": summary.strict_mean, f"mean_{name}": summary.mean, f"n_{name}": summary.n}
        row |= {f"ci95_low_{name}": low, f"ci95_high_{name}": high}
    yield row


def _case_rows(record: Record) -> Iterator[Row]:
    """Yield a row an answer that was planned."""
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
    """Yield a row a case and field."""
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
    return {column.name: getattr(record, column.name) for column in _RUN}


TABLES: Mapping[str, Table] = {
    "records": Table(row="a run", columns=(*_RUN, *_RECORDS), of_metrics=_RECORD_METRICS, rows=_record_rows),
    "cases": Table(row="an answer", columns=(*_RUN, *_CASES), of_metrics=_CASE_METRICS, rows=_case_rows),
    "leaves": Table(row="a field of a case", columns=(*_RUN, *_LEAVES), of_metrics=(), rows=_leaf_rows),
}
