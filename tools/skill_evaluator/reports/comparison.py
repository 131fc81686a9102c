"""The report of a comparison: conclusion, largest changes, reasons, and all figures in collapsed details."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from skill_evaluator import display
from skill_evaluator.display import pages
from skill_evaluator.display.pages import Block, Cell, Fold, Heading, Line, LinePart, Lines, Page, Section, Sheet
from skill_evaluator.identifiers import UNNAMED
from skill_evaluator.metrics.agreement import Stability
from skill_evaluator.records.record import served_text
from skill_evaluator.reports import summary
from skill_evaluator.stats import by_key
from skill_evaluator.text import counted, listed
from skill_evaluator.verdicts.decide import results
from skill_evaluator.verdicts.decide.results import CaseChange, ComparisonResult, MeasureResult, ModelVerdict

Example = tuple[str, Sheet]
"""A sentence on the outputs of a run that changed ("" if there is nothing to report), and a table of some of them."""

_MAX_NAMED = 5
_MAX_ROWS, _MAX_ROWS_OF_SEVERAL = 4, 2
_MAX_EXAMPLES, _MAX_REASONS = 3, 2
_MAX_TABLE_ROWS, _MAX_FIELDS_OF_CASE = 10, 2
_LEGEND = (
    "before → after: strict means, critical metrics with a star · detects: the smallest drop found 4 times in 5",
    "p: one-sided; the interval, shown from five cases on, excludes 0 if p ≤ 0.025",
    "per 1,000: tokens and cost of 1,000 outputs, failures in 1,000 calls; runs of different sizes are comparable",
)
_RISE = "rise not significant"
_STABILITIES: tuple[Stability, ...] = ("stable_right", "stable_wrong", "flaky", "stable", "unscored")
_NUMBERS = frozenset({"before → after", "change", "95 % interval", "p", "detects", "cases"})
_CHANGE = ("before → after", "change", "95 % interval", "verdict")
_MEASURED = ("before → after", "change", "95 % interval", "p")


def comparison_page(result: ComparisonResult, reader: summary.Reader, site: str | None = None) -> Page:
    """Build the page of a comparison for a reader. Its links lead to the site at the address `site`."""
    return Page([comparison_section(result, summary.conclude(result, reader)), legend_section([result])], site)


def comparison_section(
    result: ComparisonResult, conclusion: summary.ComparisonSummary, examples: Mapping[str, Example] = {}
) -> Section:
    """Build the section of a comparison: conclusion, metrics, largest changes and reasons; all figures are collapsed.

    `examples` maps the run id of a candidate to a sentence on its changed outputs and a table of some of these outputs.
    The sentences that are not empty replace the table of changed fields and cases.
    """
    models, several = summary.worst_first(result), len(result.models) > 1
    shown = {model.model_id: examples[run] for model in models if (run := model.candidate.run_id) in examples}
    sentences = [words for words, _ in shown.values() if words]
    moved = {model.model_id: _moved_sheet(model, result.skill) for model in models}
    reasons = dict[str, list[str]]()
    for model in models:
        open_reasons = [reason for reason in _open_reasons(model) if reason not in conclusion.lost]
        for reason in open_reasons[: 1 if several else _MAX_REASONS]:
            reasons.setdefault(reason, []).append(model.model_id)
    left_out = [f"{model_id} is skipped: {reason}" for model_id, reason in result.left_out.items()]
    figures = [block for model in models for block in (_model_heading(model), *model_blocks(model, result.skill))]
    blocks: list[Block] = [
        Lines([result.unmeasured] if result.unmeasured else [], style="yellow"),
        Heading(*_title(result), level=2),
        conclusion.closing,
        *joined({model.model_id: _main_measures(model, several=several) for model in models}, _MAX_ROWS, 1),
        *(sentences or joined(moved, _MAX_ROWS)),
        *joined({name: sheet for name, (_, sheet) in shown.items()}, _MAX_EXAMPLES),
        Lines([f"{', '.join(names)}: {reason}" if several else reason for reason, names in reasons.items()]),
        Lines(left_out, style="yellow"),
        Fold("All figures", figures),
    ]
    return Section(name=result.skill, blocks=blocks)


def legend_section(comparisons: Sequence[ComparisonResult]) -> Section:
    """Return a collapsed section that explains the figures of some comparisons."""
    lines = dict.fromkeys(line for result in comparisons for line in reading_words(result))
    return Section(name="how to read the figures", blocks=[Fold("How to read the figures", [Lines(list(lines), "-")])])


def reading_words(result: ComparisonResult) -> list[str]:
    """Return the sentences that explain the figures of a comparison."""
    return [*_LEGEND, f"verdicts: by p adjusted over {result.family}; α {display.plain(result.alpha)}"]


def _title(result: ComparisonResult) -> Iterator[LinePart]:
    models = summary.worst_first(result)
    versions = listed(list(dict.fromkeys(" → ".join(_versions(model)) for model in models)))
    skill = Cell(result.skill, code=True, link=pages.component_address(result.skill))
    metric = next((one.metric for model in models for one in model.metrics if one.tier == "critical"), "")
    name = metric if models[0].model_id == UNNAMED else models[0].model_id
    several = " of ".join(filter(None, [metric, f"{len(models)} models"]))
    yield from (skill, " ", Cell(versions, code=True), ": ")
    yield Cell(name, code=True) if len(models) == 1 else several
    counts = {_replicates_words(model) for model in models}
    if result.n_cases is not None:
        size = [counted(result.n_cases, "case"), *(counts if len(counts) == 1 else ())]
        yield f" on {' × '.join(size)}"


def _replicates_words(model: ModelVerdict) -> str:
    before = "" if model.baseline is None else str(model.baseline.calls.replicates)
    after = counted(model.candidate.calls.replicates, "replicate")
    return f"{before} → {after}" if before not in ("", str(model.candidate.calls.replicates)) else after


def _open_reasons(model: ModelVerdict) -> list[str]:
    """Return the reasons for a verdict, except those in tables. Changes of the pass status of cases come first."""
    shown = ("less repeatable:", *(f"{one.metric} {verb} from " for one in model.metrics for verb in ("fell", "rose")))
    falls = results.joined_falls(model.falls) if model.falls else None
    reasons = [one for one in model.reasons if not one.startswith(shown) and not (falls and falls in one)]
    return [*_turned_cases(model), *reasons]


def joined(sheets: Mapping[str, Sheet], limit: int, limit_of_several: int = _MAX_ROWS_OF_SEVERAL) -> Iterator[Sheet]:
    """Merge the first rows of each model's table. Yield nothing if there are no rows.

    One model has at most `limit` rows. Several models have at most `limit_of_several` rows each, and a model column.
    """
    several = len(sheets) > 1
    shown = {name: sheet.rows[: limit_of_several if several else limit] for name, sheet in sheets.items()}
    if rows := [[Cell(name, code=True), *row] for name, rows in shown.items() for row in rows]:
        sheet = next(iter(sheets.values()))
        columns = ("model", *sheet.columns)
        yield replace(sheet, columns=columns, rows=rows, whole=sheet.whole | {"model"}).only(*columns[not several :])


def _main_measures(model: ModelVerdict, *, several: bool) -> Sheet:
    sheet = measure_sheet(model).only("metric", *_CHANGE)
    rows = sorted((row for row in sheet.rows if row[0].text), key=lambda row: not row[0].text.endswith(" *"))
    if several:
        since = model.only_since_accepted
        text = f"regressed since {since.version}" if since else str(model.verdict)
        text += f", {_RISE}" * (text == "unchanged" and any(row[-1].text == _RISE for row in rows[:1]))
        marked = f"{summary.MARKS[model.verdict]} {summary.with_served(model, verdict=text)}"
        verdict = Cell(marked, summary.STYLES.get(model.verdict, ""))
        rows = [[*row[:-1], verdict] for row in rows[:1] or [[Cell("–")] * 5]]
    columns = ("metric (* critical)", *_CHANGE)
    sheet = replace(sheet, columns=columns, rows=rows, below=columns[3:4], whole=frozenset(columns[:1]))
    return sheet.only(*columns[several:])


def _moved_sheet(model: ModelVerdict, skill: str) -> Sheet:
    columns = ("before → after", "change", "verdict")
    fields = _field_sheet(model, _moved_fields(model), skill).only("field", *columns)
    rows = [[replace(row[0], text=f"field {row[0].text}"), *row[1:]] for row in fields.rows]
    for verdict, changes in (("regressed", model.cases.broke), ("improved", model.cases.fixed)):
        for name, scores, counts in _case_sheet("", changes, skill).rows:
            text = f"case {name.text}" + (f": {counts.text}" if counts.code else "")
            rows.append([replace(name, text=text), scores, Cell("–"), Cell(verdict, summary.STYLES[verdict])])
    rows.sort(key=lambda row: row[-1].text not in ("regressed", "improved"))
    return Sheet(columns=("field or case", *columns), rows=rows, numbers=_NUMBERS)


def _model_heading(model: ModelVerdict) -> Heading:
    verdict = " · ".join(filter(None, [summary.with_served(model), summary.lost_words(model)]))
    return Heading(f"{summary.MARKS[model.verdict]} ", Cell(model.model_id, code=True), f": {verdict}")


def model_blocks(model: ModelVerdict, skill: str, limit: int = _MAX_TABLE_ROWS) -> list[Block]:
    """Return the blocks of a model's comparison: versions and cases, notes, and tables of at most `limit` rows."""
    notes = [*_turned_cases(model), *model.reasons, *_model_notes(model)]
    size = Line(f"{' → '.join(_versions(model))} · {_size_words(model)}")
    return [size, Lines(notes, "-"), *_all_sheets(model, skill, limit)]


def _versions(model: ModelVerdict) -> list[str]:
    return [run.title for run in (model.baseline, model.candidate) if run is not None]


def _size_words(model: ModelVerdict) -> str:
    parts = [counted(model.n_cases, "case")]
    if model.n_cases and model.verdict in ("improved", "unchanged"):
        parts.append(results.new_cases_words(model.n_cases))
    parts.append(f"completion {display.percent(model.coverage)}")
    if model.baseline is not None and model.baseline_runs + model.candidate_runs > 2:
        counts = zip((model.baseline, model.candidate), (model.baseline_runs, model.candidate_runs), strict=True)
        parts.append("runs: " + ", ".join(f"{runs} of {run.skill_version}" for run, runs in counts))
    return " · ".join(parts)


def _turned_cases(model: ModelVerdict) -> Iterator[str]:
    if turned := [f"{one.case_id} {one.before} → {one.after}" for one in model.cases.turned]:
        yield f"turned: {listed(turned, _MAX_NAMED)}"
    if unreliable := [f"{one.case_id} {one.before}" for one in model.cases.unreliable]:
        yield f"unreliable baseline: {listed(unreliable, _MAX_NAMED)}"


def _model_notes(model: ModelVerdict) -> Iterator[str]:
    if fell := summary.fell_most_words(model):
        yield f"fell most: {fell}"
    change = model.since_accepted
    if change is not None and change.verdict != "regressed":  # a regression is already a reason
        yield summary.since_accepted_words(change)
    yield from _amount_notes(model.amounts)
    cases = model.cases
    if cases.within_noise:
        yield f"cases that changed, but not significantly: {cases.within_noise}"
    if cases.every_answer_worse:
        yield f"cases in which every output is worse: {listed(cases.every_answer_worse, _MAX_NAMED)}"


def _amount_notes(amounts: Sequence[results.AmountResult]) -> Iterator[str]:
    for amount in amounts:
        if amount.change is not None:
            low, high = amount.test.ci95 or (0.0, 0.0)
            between = display.interval(
                (low + 1, high + 1), amount.test.n_cases, lambda ratio: display.times(ratio or 0.0)
            )
            yield f"{amount.name} per output: {display.times(amount.change + 1)} (95 % interval: {between})"
    unmeasured = by_key((amount.unmeasured, amount.name) for amount in amounts if amount.unmeasured)
    yield from (f"not measured: {listed(named)}, because {reason}" for reason, named in unmeasured.items())


def _all_sheets(model: ModelVerdict, skill: str, limit: int) -> Iterator[Block]:
    fields = _moved_fields(model)
    if model.metrics:
        yield measure_sheet(model)
    if fields:
        yield from pages.cut_table(_field_sheet(model, fields, skill), limit)
    for title, changes in (("broke", model.cases.broke), ("fixed", model.cases.fixed)):
        if changes:
            yield from pages.cut_table(_case_sheet(f"{title}: {len(changes)}", changes, skill), limit)
    yield run_sheet(model)


def _case_sheet(title: str, changes: Sequence[CaseChange], skill: str) -> Sheet:
    rows = []
    for change in changes:
        counts = [f"{path or display.WHOLE} {times}" for path, times in change.fields.items()]
        cell = Cell(listed(counts, _MAX_FIELDS_OF_CASE), code=True) if counts else Cell("–")
        case = Cell(change.case_id, code=True, link=pages.page_address("cases", skill, change.case_id))
        rows.append([case, Cell(display.arrow(change.before, change.after)), cell])
    columns = (title, "before → after", "right outputs by field, before → after")
    return Sheet(columns=columns, rows=rows, numbers=_NUMBERS, whole=frozenset({title}))


def _moved_fields(model: ModelVerdict) -> list[MeasureResult]:
    """Return the fields that changed or can decide the verdict. Improved and regressed fields come first."""
    return sorted(
        (field for field in model.fields if field.difference or field.tier != "advisory"),
        key=lambda field: (
            field.verdict not in ("regressed", "improved"),
            field.tier == "advisory",
            -abs(field.difference or 0.0),
            field.metric,
        ),
    )


def measure_sheet(model: ModelVerdict) -> Sheet:
    """Build the table of the metrics of a model, before and after."""
    rows = []
    for result in model.metrics:
        counts = (display.number(result.test.detectable_drop), display.count(result.test.n_cases))
        rows.append([*_measure_cells(result), *map(Cell, counts), _verdict_cell(result)])
    columns = ("metric", *_MEASURED, "detects", "cases", "verdict")
    below = columns[6:2:-1]
    return Sheet(columns=columns, rows=rows, numbers=_NUMBERS, whole=frozenset({"metric"}), below=below)


def _measure_cells(measure: MeasureResult, link: str = "") -> list[Cell]:
    usual = "supporting" if measure.kind == "accuracy" else "advisory"
    mark = " *" if measure.tier == "critical" else "" if measure.tier == usual else f" ({measure.tier})"
    test = measure.test
    chances = (display.interval(test.ci95, test.n_cases, display.signed), display.probability(test.p))
    figures = (display.arrow(measure.baseline, measure.candidate), display.signed(measure.difference), *chances)
    return [Cell((measure.metric or display.WHOLE) + mark, code=True, link=link), *map(Cell, figures)]


def _verdict_cell(measure: MeasureResult) -> Cell:
    verdict = measure.verdict or "–"
    if verdict == "unchanged" and (measure.difference or 0.0) > measure.tolerance:
        return Cell(_RISE)
    return Cell(verdict, summary.STYLES.get(verdict, ""))


def _field_sheet(model: ModelVerdict, fields: Sequence[MeasureResult], skill: str) -> Sheet:
    replicates = min(run.calls.replicates for run in (model.baseline, model.candidate) if run is not None)
    rows = []
    for field in fields:
        before, after = field.stability.profile_before or {}, field.stability.profile_after or {}
        counts = {name: (before.get(name, 0), after.get(name, 0)) for name in _STABILITIES}
        moved = [(name, *both) for name, both in counts.items() if both[0] != both[1]]
        changes = [f"{display.stability_words(name, replicates)} {then} → {now}" for name, then, now in moved]
        cells = _measure_cells(field, pages.component_address(skill, field.metric))
        rows.append([*cells, _verdict_cell(field), Cell(", ".join(changes) or "as before")])
    columns = ("field", *_MEASURED, "verdict", "cases in which it is")
    return Sheet(columns=columns, rows=rows, numbers=_NUMBERS, whole=frozenset({"field"}))


def run_sheet(model: ModelVerdict) -> Sheet:
    """Build the table of a comparison's runs: completion, failures by kind, tokens, cost and latency."""
    runs = [run for run in (model.baseline, model.candidate) if run is not None]
    failures = sorted({kind for run in runs for kind, times in run.calls.failures.items() if times})
    failed = {
        kind: [results.per_1000(run.calls.failures.get(kind, 0), run.calls.planned) for run in runs]
        for kind in failures
    }
    amounts = {
        name: [results.per_1000(getattr(run.cost, name), run.calls.outputs) for run in runs]
        for name in ("input_tokens", "output_tokens", "cost_usd")
    }
    cached = _run_facts("read from a cache", [display.percent(run.cost.hit_rate) for run in runs])
    four_digits = partial(display.plain, digits=4)
    rows = [
        _run_facts("run", [run.run_id for run in runs], code=True),
        _run_facts("served model", [served_text(run.served_model) or "–" for run in runs], code=True),
        _run_facts("replicates", [str(run.calls.replicates) for run in runs]),
        _run_facts("completion", [f"{four_digits(run.calls.coverage * 100)} %" for run in runs]),
        *(_run_amounts(f"{kind} per 1,000", shares, four_digits) for kind, shares in failed.items()),
        _run_amounts("input tokens per 1,000", amounts["input_tokens"], display.count),
        _run_amounts("output tokens per 1,000", amounts["output_tokens"], display.count),
        *([cached] if any(run.cost.hit_rate for run in runs) else []),
        _run_amounts("cost per 1,000", amounts["cost_usd"], display.cost_words),
        _run_amounts("latency, median", [run.cost.latency_p50_s for run in runs], display.seconds),
        _run_amounts("latency, 95 % below", [run.cost.latency_p95_s for run in runs], display.seconds),
    ]
    columns = ("the run", "candidate", "change") if len(runs) == 1 else ("the runs", "before", "after", "change")
    return Sheet(columns=columns, rows=rows, numbers=frozenset({"change"}))


def _run_facts(name: str, values: Sequence[str], *, code: bool = False) -> list[Cell]:
    return [Cell(name), *(Cell(value, code=code) for value in values), Cell("")]


def _run_amounts(name: str, amounts: Sequence[float | None], write: Callable[[float | None], str]) -> list[Cell]:
    change = display.relative_change(*amounts) if len(amounts) == 2 else ""
    return [Cell(name, code=True), *(Cell(write(amount)) for amount in amounts), Cell(change)]
