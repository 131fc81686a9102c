"""A finished evaluation for people: tables on a terminal, Markdown for a page, JSON for a program."""

import io
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from skill_evaluator.display import number
from skill_evaluator.display.safe_text import code_span, name_text, visible
from skill_evaluator.files import replace_text
from skill_evaluator.library.components import Component
from skill_evaluator.records.record import ContractSummary, FieldSummary, Profile, Record, Summary
from skill_evaluator.reports.comparison import print_comparison
from skill_evaluator.runner.journal import REPORT
from skill_evaluator.verdicts.results import ComparisonResult

_WEAKEST = 5
_FAULTS = 3
_FIELD_COLUMNS = ("accuracy", "right/n", "wrong", "missing", "extra", "stability", "cases: profile")
_WIDTH = 110
Quote = Callable[[str], str]  # how a text from outside is written: `visible` on a terminal, `code_span` on a page


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """One model's run, recorded."""

    record: Record
    record_path: Path
    folder: Path


def print_finished(
    finished: Sequence[Finished],
    component: Component,
    form: Literal["text", "json", "markdown"],
    verdict: ComparisonResult | None = None,
) -> None:
    """Write the result of an evaluation to stdout; then, if there was something to compare with, the verdict."""
    if form == "json":
        runs = [{**_row(one.record), "record": str(one.record_path), "run_folder": str(one.folder)} for one in finished]
        compared = None if verdict is None else verdict.model_dump(mode="json")
        json.dump({"skill": component.name, "runs": runs, "comparison": compared}, sys.stdout, indent=2)
        sys.stdout.write("\n")
    elif form == "markdown":
        sys.stdout.write("\n".join(markdown(one, component) for one in finished))
    else:
        console = Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False)
        for one in finished:
            print_text(console, one, component)
    if verdict is not None and form != "json":
        print_comparison(verdict, form)


def write_report(finished: Finished, component: Component) -> None:
    """Write `report.md` into the run folder."""
    replace_text(finished.folder / REPORT, markdown(finished, component))


def _row(record: Record) -> dict[str, Any]:
    row: dict[str, Any] = record.row().model_dump(mode="json")
    return row


def print_text(console: Console, finished: Finished, component: Component) -> None:
    """Print one run to a console: facts, metrics, weakest fields, and where everything is."""
    record = finished.record
    console.print()
    console.rule(f"[bold]{component.name} {record.skill_version}[/] · [bold]{record.model_id}[/]", align="left")
    console.print(_facts_text(record), soft_wrap=True)
    console.print(_metrics_table(record))
    weakest = _weakest(record)
    if weakest:
        table = Table("weakest fields", *_FIELD_COLUMNS, box=None, pad_edge=False)
        for column in table.columns[1:-1]:
            column.justify = "right"
        for row in weakest:
            table.add_row(*map(Text, row))
        console.print(table)
    for line in (*_remarks(record, visible), *_places(finished)):
        console.print(visible(line), soft_wrap=True, markup=False)


def _metrics_table(record: Record) -> Table:
    table = Table("", "strict mean", "95 % interval", "mean", "stdev", "n", box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for title, part in (("accuracy", record.accuracy), ("reproducibility", record.reproducibility)):
        table.add_row(f"[bold]{title}[/]")
        for name, summary in part.items():
            style = "bold cyan" if name == record.primary_metric else ""
            table.add_row(f"  {name}", *_cells(summary), style=style)
    return table


def _cells(summary: Summary) -> tuple[str, ...]:
    return (
        number(summary.strict_mean),
        _interval(summary),
        number(summary.mean),
        number(summary.stdev),
        str(summary.n),
    )


def _facts_text(record: Record) -> Text:
    text = Text(_facts(record, visible))
    if not record.complete:
        text.append(" · ").append(_incomplete(record, visible), style="yellow")
    return text


def _saved(record: Record) -> str:
    return f" ({record.saved_calls} calls saved: the verdict was settled)" if record.saved_calls else ""


def _facts(record: Record, quote: Quote) -> str:
    cost = "unknown" if record.cost_usd is None else f"${record.cost_usd:.4f}"
    tokens = f"{_count(record.tokens.input)} in, {_count(record.tokens.output)} out"
    parts = [
        f"{record.n_cases} cases × {record.replicates} replicates{_saved(record)}",
        f"{record.scored} of {record.planned} scored",
        f"failures: {_failures(record, quote) or 'none'}",
        f"cost {cost}",
        f"tokens {tokens}",
        f"latency p50 {number(record.latency_s.p50)} s, p95 {number(record.latency_s.p95)} s",
    ]
    return " · ".join(parts)


def _incomplete(record: Record, quote: Quote) -> str:
    stopped = f", stopped by {quote(record.stopped)}" if record.stopped else ""
    return f"INCOMPLETE: coverage {record.coverage:.2f}{stopped}"


def _failures(record: Record, quote: Quote) -> str:
    """`3 truncated, 1 provider_error (rate_limited 1)`."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in record.failures.items())
    reasons = ", ".join(f"{quote(reason)} {count}" for reason, count in record.reasons.items())
    return f"{kinds} ({reasons})" if reasons else kinds


def _weakest(record: Record) -> list[tuple[str, ...]]:
    """The fields with the lowest accuracy below 1; free text shows its embedding similarity, else its token F1."""
    known = [(path, field) for path, field in record.per_field.items() if field.n]
    ranked = sorted(known, key=lambda item: (_field_score(item[1]), item[0]))
    return [
        (
            name_text(path) or "(the whole answer)",
            number(_field_score(field)) + _unit(field),
            f"{field.right}/{field.n}",
            str(field.wrong),
            str(field.missing),
            str(field.extra),
            number(field.stability),
            _profile(field.profile),
        )
        for path, field in ranked[:_WEAKEST]
        if _field_score(field) < 1
    ]


def _profile(profile: Profile | None) -> str:
    """`3 right · 9 wrong · 2 flaky`: the cases in which every answer was right, alike but wrong, or neither."""
    if profile is None:
        return "–"
    counts = {
        "right": profile.stable_right,
        "wrong": profile.stable_wrong,
        "stable": profile.stable,
        "flaky": profile.flaky,
        "unscored": profile.unscored,
    }
    return " · ".join(f"{count} {word}" for word, count in counts.items() if count)


def _remarks(record: Record, quote: Quote) -> list[str]:
    """pass^k where there is more than one answer, and what broke the contract."""
    found = []
    known = {k: summary.mean for k, summary in record.pass_hat_k.items() if summary.mean is not None}
    if max(known, default=1) > 1:
        found.append("exact k times in a row (pass^k): " + ", ".join(f"{k}: {number(p)}" for k, p in known.items()))
    contract = record.contract
    if contract is not None and contract.errors:
        found.append(
            f"contract: {number(contract.valid)} of {contract.n} parsed outputs are valid, "
            f"{number(contract.valid_apart_from_extra_keys)} apart from extra keys; {_faults(contract, quote)}"
        )
    for title, keys in (("missing", contract.missing_keys), ("extra", contract.extra_keys)) if contract else ():
        if keys:
            named = [f"{quote(key)} {count}" for key, count in list(keys.items())[:_WEAKEST]]
            found.append(f"{title} top-level keys: {', '.join(named)}{_more(len(keys) - _WEAKEST)}")
    return found


def _faults(contract: ContractSummary, quote: Quote) -> str:
    """The commonest errors: `total: type 9 ("9" is not of type "number")`."""
    named = [
        f"{quote(name_text(fault.path)) if fault.path else 'the whole output'}: {fault.rule} {fault.count} "
        f"({quote(fault.message)})"
        for fault in contract.errors[:_FAULTS]
    ]
    return "; ".join(named) + _more(len(contract.errors) - _FAULTS)


def _more(count: int) -> str:
    return f", and {count} more" if count > 0 else ""


def _field_score(field: FieldSummary) -> float:
    return next(float(score) for score in (field.embedding, field.token_f1, field.accuracy) if score is not None)


def _unit(field: FieldSummary) -> str:
    return " cosine" if field.embedding is not None else " F1" if field.token_f1 is not None else ""


def _places(finished: Finished) -> list[str]:
    return [f"record  {finished.record_path}", f"outputs {finished.folder}"]


def _interval(summary: Summary) -> str:
    return "–" if summary.ci95 is None else f"{summary.ci95[0]:.3f} to {summary.ci95[1]:.3f}"


def _count(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"


def markdown(finished: Finished, component: Component) -> str:
    """One model's run as a Markdown section."""
    record = finished.record
    page = io.StringIO()
    page.write(f"## {component.name} {record.skill_version} · {record.model_id}\n\n")
    incomplete = "" if record.complete else f" · **{_incomplete(record, code_span)}**"
    page.write(f"{_facts(record, code_span)}{incomplete}\n\n")
    page.write("| metric | strict mean | 95 % interval | mean | stdev | n |\n|---|---:|---:|---:|---:|---:|\n")
    for title, part in (("accuracy", record.accuracy), ("reproducibility", record.reproducibility)):
        for name, summary in part.items():
            page.write(f"| {title}: {name} | {' | '.join(_cells(summary))} |\n")
    weakest = _weakest(record)
    if weakest:
        page.write(f"\n| weakest field | {' | '.join(_FIELD_COLUMNS)} |\n")
        page.write("|---|---:|---:|---:|---:|---:|---:|---|\n")
        for row in weakest:
            page.write(f"| {code_span(row[0])} | {' | '.join(row[1:])} |\n")
    page.write("\n" + "\n".join(f"- {line}" for line in (*_remarks(record, code_span), *_places(finished))) + "\n")
    return page.getvalue()
