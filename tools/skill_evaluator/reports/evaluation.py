"""The finished runs of an evaluation → text, Markdown or JSON, and `report.md` in a run folder."""

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.text import Text

from skill_evaluator.display import number
from skill_evaluator.display.safe_text import code_span, name_text, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, markdown_table, print_result
from skill_evaluator.files import replace_text
from skill_evaluator.library.components import Component
from skill_evaluator.records.record import Record
from skill_evaluator.records.summaries import FieldSummary, Summary
from skill_evaluator.reports.changed_answers import print_changes
from skill_evaluator.reports.comparison import print_comparison
from skill_evaluator.reports.faults import fault_lines
from skill_evaluator.reports.ranking import print_rankings
from skill_evaluator.runner.journal import REPORT
from skill_evaluator.scoring.changed_answers import ChangedAnswers
from skill_evaluator.scoring.recording import Finished
from skill_evaluator.text import counted, listed
from skill_evaluator.verdicts.ranking_results import ModelRanking
from skill_evaluator.verdicts.results import ComparisonResult
from skill_evaluator.verdicts.spreads import RunSpread

_OF_A_CASE = ("case_id", "accuracy", "reproducibility", "failures")
_DRAFT = "a draft: in no leaderboard and never a baseline; raise the version and evaluate it to have it recorded"
_WEAKEST = 5
_FAULTS = 3
_FIGURES = ("strict mean", "95 % interval", "mean", "stdev", "n")
_FIELD_COLUMNS = ("weakest field", "accuracy", "right/n", "wrong", "missing", "extra", "stability", "cases: profile")
Quote = Callable[[str], str]  # how a text from outside is written: `visible` on a terminal, `code_span` on a page


def _as_json(record: Record) -> dict[str, Any]:
    """Return a record without what each of a case's answers scored."""
    value = record.model_dump(mode="json", exclude={"schema_version", "draft", "judged", "faults"})
    cases = [{key: case[key] for key in _OF_A_CASE} for case in value.pop("per_case")]
    last = record.model_dump(mode="json", include={"draft", "judged", "faults"})
    return {**value, "digest": record.row().digest, "per_case": cases, **last}


def print_finished(
    finished: Sequence[Finished],
    component: Component,
    form: Format,
    verdict: ComparisonResult | None = None,
    spreads: Sequence[RunSpread] = (),
    changes: Sequence[ChangedAnswers] = (),
    ranking: ModelRanking | None = None,
) -> None:
    """Print the result of an evaluation to stdout, then what it was for: a verdict, or the spread of one version.

    After the verdict comes what became of the answers, and of several models which is better.
    """
    print_result(
        form,
        json=lambda: {
            "skill": component.name,
            "runs": [
                {**_as_json(run.record), "record": str(run.record_path), "run_folder": str(run.folder)}
                for run in finished
            ],
            "comparison": None if verdict is None else verdict.model_dump(mode="json"),
            "spreads": [asdict(spread) for spread in spreads],
            **({"changed_answers": [asdict(model) for model in changes]} if changes else {}),
            **({} if ranking is None else {"ranking": ranking.model_dump(mode="json")}),
        },
        markdown=lambda: "\n".join(
            [*(markdown(run, component) for run in finished), *(f"{_spread(spread)}\n" for spread in spreads)]
        ),
        text=lambda: [
            *(piece for run in finished for piece in text_pieces(run, component)),
            *(Text(f"\n{_spread(spread)}") for spread in spreads),
        ],
    )
    if verdict is not None and form != "json":
        print_comparison(verdict, form)
    if changes and form != "json":
        print_changes(changes, form)
    if ranking is not None and form != "json":
        print_rankings([ranking], form)


def _spread(spread: RunSpread) -> str:
    """Return how far a version moved by itself, or under other wordings, in a sentence."""
    name = visible(f"{spread.model_id} {spread.version}")
    scores = [visible(f"{label} {number(score)}") for label, score in spread.scores.items()]
    if spread.over == "runs":
        counted = (
            f"{name}, measured {len(scores)} times: {spread.metric} {', '.join(map(number, spread.scores.values()))}"
        )
        between = "standard deviation between runs"
    else:
        counted = f"{name} under {len(scores)} scenarios: {spread.metric} {', '.join(scores)}"
        between = "neutral rewordings move it by"
    return counted if spread.sigma is None else f"{counted}; {between} {number(spread.sigma)}"


def write_report(finished: Finished, component: Component) -> None:
    """Write `report.md` into the run folder."""
    replace_text(finished.folder / REPORT, markdown(finished, component))


def text_pieces(finished: Finished, component: Component) -> Iterator[Sheet | Text]:
    """Yield what a terminal shows of one run: facts, metrics, weakest fields, and where everything is."""
    record = finished.record
    yield Text()
    yield Text(visible(f"{component.name} {record.skill_version} · {record.model_id}"), style="bold")
    facts = Text(_facts(record, visible))
    if not record.complete:
        facts.append(" · ").append(_incomplete(record, visible), style="yellow")
    yield facts
    for line in fault_lines(record, visible):
        yield Text(line, style="yellow")
    rows = []
    for title, part in (("accuracy", record.accuracy), ("reproducibility", record.reproducibility)):
        rows.append([Cell(title, "bold"), *(Cell("") for _ in _FIGURES)])
        for name, summary in part.items():
            style = "bold cyan" if name == record.primary_metric else ""
            rows.append([Cell(text, style) for text in (f"  {name}", *_cells(summary))])
    yield Sheet(columns=("", *_FIGURES), rows=rows, numbers=frozenset(_FIGURES))
    weakest = _weakest(record)
    for sheet in (weakest, *_judged(record)):
        if sheet.rows:
            yield sheet
    yield from (Text(visible(line)) for line in _remarks(record, visible))
    yield from (Text(visible(line), no_wrap=True) for line in _places(finished))


def _cells(summary: Summary) -> tuple[str, ...]:
    return (
        number(summary.strict_mean),
        _interval(summary.ci95),
        number(summary.mean),
        number(summary.stdev),
        str(summary.n),
    )


def _facts(record: Record, quote: Quote) -> str:
    cost = "unknown" if record.cost_usd is None else f"${record.cost_usd:.4f}"
    saved = f" ({record.saved_calls} calls saved: the verdict was settled)" if record.saved_calls else ""
    left_out = f" ({counted(len(record.not_applicable), 'case')} not applicable)" if record.not_applicable else ""
    failures = ", ".join(f"{count} {kind}" for kind, count in record.failures.items())
    if record.reasons:
        failures += f" ({', '.join(f'{quote(reason)} {count}' for reason, count in record.reasons.items())})"
    rate = record.tokens.hit_rate
    cached = "" if rate is None else f" ({rate:.0%} from a cache)"
    tokens = f"{_count(record.tokens.input)} in{cached}, {_count(record.tokens.output)} out"
    parts = [
        f"{counted(record.n_cases, 'case')} × {counted(record.replicates, 'replicate')}{saved}{left_out}",
        f"{record.scored} of {record.planned} scored",
        f"failures: {failures or 'none'}",
        f"cost {cost}",
        f"tokens {tokens}",
        f"latency p50 {number(record.latency_s.p50)} s, p95 {number(record.latency_s.p95)} s",
    ]
    return " · ".join(parts)


def _incomplete(record: Record, quote: Quote) -> str:
    stopped = f", stopped by {quote(record.stopped)}" if record.stopped else ""
    return f"INCOMPLETE: coverage {record.coverage:.2f}{stopped}"


def _weakest(record: Record) -> Sheet:
    """Return the fields with the lowest accuracy below 1; free text shows embedding similarity, else token F1."""
    scored = [(path, field) for path, field in record.per_field.items() if field.n]
    ranked = sorted(scored, key=lambda item: (_field_score(item[1]), item[0]))
    rows = []
    for path, field in ranked[:_WEAKEST]:
        score = _field_score(field)
        if score >= 1:
            break
        unit = " cosine" if field.embedding is not None else " F1" if field.token_f1 is not None else ""
        counts = (f"{field.right}/{field.n}", str(field.wrong), str(field.missing), str(field.extra))
        name = Cell(name_text(path) or "(the whole answer)", code=True)
        standings = field.profile.model_dump() if field.profile else {}  # `3 right · 9 wrong · 2 flaky` of the cases
        profile = " · ".join(f"{count} {name.removeprefix('stable_')}" for name, count in standings.items() if count)
        figures = (number(score) + unit, *counts, number(field.stability), profile if field.profile else "–")
        rows.append((name, *map(Cell, figures)))
    return Sheet(columns=_FIELD_COLUMNS, rows=rows, numbers=frozenset(_FIELD_COLUMNS[1:-1]))


def _judged(record: Record) -> Iterator[Sheet]:
    """Yield the table of what a judge says of free text, if one was asked: a row a field, and one a criterion."""
    if record.judged is None:
        return
    rows = []
    for path, field in record.judged.fields.items():
        left_out = ", ".join(f"{count} {reason}" for reason, count in field.left_out.items())
        rows.append(
            (name_text(path) or "(the whole answer)", field.rubric, number(field.mean), field.ci95, field.n, left_out)
        )
        for name, one in field.criteria.items():
            unscored = ", ".join(f"{count} {reason}" for reason, count in one.unscored.items())
            rows.append((f"  {name}", "", f"{number(one.mean)} of {one.highest}", one.ci95, one.n, unscored))
    columns = (f"judged by {record.judged.judge}", "rubric", "0 to 1", "95 % interval", "n", "unscored")
    yield Sheet(
        columns=columns,
        rows=[
            [Cell(name, code=True), Cell(rubric), Cell(mean), Cell(_interval(ci95)), Cell(str(n)), Cell(reasons or "–")]
            for name, rubric, mean, ci95, n, reasons in rows
        ],
        numbers=frozenset(columns[2:5]),
    )


def _interval(ci95: tuple[float, float] | None) -> str:
    return "–" if ci95 is None else f"{ci95[0]:.3f} to {ci95[1]:.3f}"


def _remarks(record: Record, quote: Quote) -> list[str]:
    """Return what a draft is, what looks at the run mean, pass^k of several answers, and what broke the contract."""
    remarks = [*([_DRAFT] if record.draft else []), *_looked_at(record)]
    if record.not_applicable:
        named = [f"{quote(case_id)} ({quote(why)})" for case_id, why in record.not_applicable.items()]
        remarks.append(f"not applicable to this model, and not asked: {listed(named)}")
    powers = {k: summary.mean for k, summary in record.pass_hat_k.items() if summary.mean is not None}
    if max(powers, default=1) > 1:
        remarks.append("exact k times in a row (pass^k): " + ", ".join(f"{k}: {number(p)}" for k, p in powers.items()))
    judged = record.judged
    if judged is not None:
        cost = "unknown" if judged.cost_usd is None else f"${judged.cost_usd:.4f}"
        remarks.append(
            f"the judge {quote(judged.judge)} gave {judged.answered} of {judged.planned} answers, cost {cost}; "
            "its scores are in no metric and no verdict, and say nothing of what it is worth (judge calibrate does)"
        )
    contract = record.contract
    if contract is not None and contract.errors:
        faults = "; ".join(
            f"{quote(name_text(fault.path)) if fault.path else 'the whole output'}: {fault.rule} {fault.count} "
            f"({quote(fault.message)})"
            for fault in contract.errors[:_FAULTS]
        )
        remarks.append(
            f"contract: {number(contract.valid)} of {contract.n} parsed outputs are valid, "
            f"{number(contract.valid_apart_from_extra_keys)} apart from extra keys; "
            f"{faults}{_more(len(contract.errors) - _FAULTS)}"
        )
    for title, keys in (("missing", contract.missing_keys), ("extra", contract.extra_keys)) if contract else ():
        if keys:
            named = [f"{quote(key)} {count}" for key, count in list(keys.items())[:_WEAKEST]]
            remarks.append(f"{title} top-level keys: {', '.join(named)}{_more(len(keys) - _WEAKEST)}")
    return remarks


def _looked_at(record: Record) -> Iterator[str]:
    """Yield what looks at an adaptive run mean for its scores."""
    adaptive = record.adaptive
    if adaptive is None:
        return
    planned = adaptive.planned_replicates
    if record.saved_calls:
        yield (
            f"stopped early: after {adaptive.looks[-1]} of {planned} replicates the verdict was settled, "
            f"{adaptive.verdict}, so the means above are too high or too low and no baseline; "
            f"evaluate {record.skill} --top-up {record.run_id} asks the rest"
        )
    corrected = adaptive.corrected.get(record.primary_metric)
    if corrected is not None:
        low, high = corrected.ci95
        yield (
            f"{record.primary_metric} corrected for the looks of --adaptive: {number(corrected.strict_mean)}, "
            f"95 % interval {low:.3f} to {high:.3f} on these cases"
        )


def _more(count: int) -> str:
    return f", and {count} more" if count > 0 else ""


def _field_score(field: FieldSummary) -> float:
    return next(float(score) for score in (field.embedding, field.token_f1, field.accuracy) if score is not None)


def _places(finished: Finished) -> list[str]:
    return [f"record  {finished.record_path}", f"outputs {finished.folder}"]


def _count(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"


def markdown(finished: Finished, component: Component) -> str:
    """Return one model's run as a Markdown section."""
    record = finished.record
    page = io.StringIO()
    page.write(f"## {component.name} {record.skill_version} · {record.model_id}\n\n")
    incomplete = "" if record.complete else f" · **{_incomplete(record, code_span)}**"
    page.write(f"{_facts(record, code_span)}{incomplete}\n\n")
    page.write("".join(f"- {line}\n" for line in fault_lines(record, code_span)) + "\n" * bool(record.faults))
    rows = [
        [Cell(f"{title}: {name}"), *map(Cell, _cells(summary))]
        for title, part in (("accuracy", record.accuracy), ("reproducibility", record.reproducibility))
        for name, summary in part.items()
    ]
    page.write(markdown_table(Sheet(columns=("metric", *_FIGURES), rows=rows, numbers=frozenset(_FIGURES))))
    weakest = _weakest(record)
    for sheet in (weakest, *_judged(record)):
        if sheet.rows:
            page.write("\n" + markdown_table(sheet))
    page.write("\n" + "\n".join(f"- {line}" for line in (*_remarks(record, code_span), *_places(finished))) + "\n")
    return page.getvalue()
