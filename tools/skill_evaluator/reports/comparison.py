"""A comparison for people: the verdict, then the reasons, the tables, and how to read them.

A decided `ComparisonResult` comes in; text, Markdown or JSON goes out. A terminal gets the columns that fit it.
"""

from collections.abc import Callable, Iterator, Sequence

from rich.text import Text

from skill_evaluator.display import number, probability
from skill_evaluator.display.safe_text import code_span, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, markdown_table, print_result
from skill_evaluator.verdicts.results import ComparisonResult, MeasureResult, ModelVerdict, Scope, Watch
from skill_evaluator.verdicts.rules import WORST_FIRST

STYLES = {"regressed": "bold red", "improved": "bold green", "inconclusive": "yellow", "incomparable": "yellow"}
MARKS = {"regressed": "▼", "improved": "▲", "unchanged": "=", "inconclusive": "?", "incomparable": "≠"}
_MOST_CASES, _MOST_FIELDS, _MOST_FIELDS_OF_A_CASE, _MOST_NAMED, _MOST_LOST = 10, 10, 4, 5, 3
_STANDINGS = {
    "stable_right": "right",
    "stable_wrong": "wrong",
    "flaky": "flaky",
    "stable": "stable",
    "unscored": "unscored",
}
_NUMBERS = frozenset({"before → after", "change", "95 % interval", "p", "q", "detects", "n"})
_LEGEND = (
    "* critical · before → after: strict means · detects: the smallest drop this comparison finds 4 times in 5",
    "scope: fixtures (these cases), beyond (cases not seen), both (the same figures), together (both at once)",
    "n: answers on a line of fixtures, else cases",
)


def print_comparison(result: ComparisonResult, form: Format) -> None:
    """Print a comparison to stdout."""
    print_result(
        form,
        json=lambda: result.model_dump(mode="json"),
        markdown=lambda: comparison_markdown(result),
        text=lambda: _text(result),
    )


def _text(result: ComparisonResult) -> Iterator[Sheet | Text]:
    yield _headline(result.verdict, f"{result.skill}: {result.verdict} {_scope(result)}{_lost(*result.models)}")
    for model in _worst_first(result):
        versions = " → ".join(_versions(model))
        yield Text()
        words = f"{MARKS[model.verdict]} {model.model_id}: {model.verdict} · {versions}{_lost(model)}"
        yield _headline(model.verdict, words)
        yield Text(visible(_other_verdicts(model, result.gate)))
        yield from (Text(visible(f"  {reason}")) for reason in (*model.reasons, *_notes(model)))
        for sheet, more in _sheets(model, narrow=True):
            yield Text()
            yield sheet
            if more:
                yield Text(more)
    yield Text()
    yield from (Text(visible(line), style="yellow") for line in _left_out(result))
    yield from (Text(line, style="dim") for line in _LEGEND)
    yield Text(f"q: p adjusted over {result.family}; α {result.alpha:g}", style="dim")


def comparison_markdown(result: ComparisonResult) -> str:
    """Return the page. Text from outside stands in code spans, so that none of it is taken for mark-up."""
    lost = _lost(*result.models, shown=code_span)
    lines = [f"## {code_span(result.skill)}: {result.verdict} {_scope(result)}{lost}", ""]
    for model in _worst_first(result):
        versions = " → ".join(map(code_span, _versions(model)))
        lost = _lost(model, shown=code_span)
        lines += [f"### {MARKS[model.verdict]} {code_span(model.model_id)}: {model.verdict}{lost}", ""]
        lines += [f"{versions} · {_other_verdicts(model, result.gate)}", ""]
        lines += [f"- {code_span(reason)}" for reason in (*model.reasons, *_notes(model))]
        folded = model.verdict != "regressed"  # a page of many models stays short
        lines += ["", "<details><summary>The figures</summary>"] if folded else []
        for sheet, more in _sheets(model, narrow=False):
            lines += ["", markdown_table(sheet).rstrip("\n"), *(["", more] if more else [])]
        lines += ["", "</details>", ""] if folded else [""]
    lines += [f"- {code_span(line)}" for line in _left_out(result)]
    legend = [line.replace("*", "\\*") for line in _LEGEND]
    lines += ["", " · ".join([*legend, f"q: p adjusted over {result.family}; α {result.alpha:g}"])]
    return "\n".join(lines) + "\n"


def _worst_first(result: ComparisonResult) -> list[ModelVerdict]:
    return sorted(result.models, key=lambda model: (WORST_FIRST.index(model.verdict), model.model_id))


def _headline(verdict: str, words: str) -> Text:
    return Text(visible(words), style=STYLES.get(verdict, "bold"))


def _scope(result: ComparisonResult) -> str:
    if result.gate == "fixtures":
        return f"on these fixtures; beyond them {result.generalises}"
    if result.gate == "generalises":
        return "beyond these fixtures"
    if result.fixtures == result.generalises == result.verdict:
        return "on these fixtures and beyond them"
    return f"(on these fixtures {result.fixtures}, beyond them {result.generalises})"


def _lost(*models: ModelVerdict, shown: Callable[[str], str] = str) -> str:
    """Name the fields and cases that lost more than a good mean may hide; nothing where there are none."""
    lost = {
        "field": dict.fromkeys(path for model in models for path in model.lost_fields),
        "case": dict.fromkeys(case_id for model in models for case_id in model.lost_cases),
    }
    words = [
        f"{kind}{'s' * (len(names) > 1)} {_first([shown(name) for name in names], _MOST_LOST)}"
        for kind, names in lost.items()
        if names
    ]
    return f" · lost: {'; '.join(words)}" if words else ""


def _versions(model: ModelVerdict) -> list[str]:
    return [run.title for run in (model.baseline, model.candidate) if run is not None]


def _other_verdicts(model: ModelVerdict, gate: str) -> str:
    """Word the verdicts that do not decide, and how much was measured."""
    words = [f"these fixtures: {model.fixtures}"] if gate == "robust" else []
    words += [f"beyond them: {model.generalises}"] if gate != "generalises" else []
    words += [f"agreement of replicates: {model.stability}", f"coverage {model.coverage:.2f}"]
    if model.baseline is not None and model.baseline_runs + model.candidate_runs > 2:
        counts = zip((model.baseline, model.candidate), (model.baseline_runs, model.candidate_runs), strict=True)
        words.append("runs: " + ", ".join(f"{count} of {run.skill_version}" for run, count in counts))
    return " · ".join(words)


def since_anchor(watch: Watch) -> str:
    """Return in words what became of a model since the anchor."""
    return (
        f"since the anchor {watch.anchor_version}: {watch.metric} {signed(watch.difference)} "
        f"({signed(watch.ci95[0])} to {signed(watch.ci95[1])}), {watch.verdict} at look {watch.look}"
    )


def _notes(model: ModelVerdict) -> Iterator[str]:
    """Yield what stands below the reasons: waivers, the way since the anchor, and cases that moved within the noise."""
    yield from _waivers(model)
    if model.watch is not None and model.watch.verdict != "regressed":  # else it is a reason
        yield since_anchor(model.watch)
    cases = model.cases
    if cases.within_noise:
        yield f"cases that moved within the noise of a single case: {cases.within_noise}"
    if cases.every_answer_worse:
        named = _first(cases.every_answer_worse, _MOST_NAMED)
        yield f"of these, worse in every answer (evaluate --aa would tell them from noise): {named}"


def _waivers(model: ModelVerdict) -> Iterator[str]:
    for result in (*model.metrics, *model.fields):
        if result.waived is not None:
            waived = result.waived
            state = f"waived until {waived.expires}" if waived.in_force else f"its waiver expired on {waived.expires}"
            if waived.below:
                state = f"{number(result.candidate)} is below the floor of its waiver, {waived.down_to:g}"
            yield f"{result.metric}: {state}: {waived.reason}"


def _left_out(result: ComparisonResult) -> list[str]:
    return [f"{model_id} is left out: {why}" for model_id, why in result.left_out.items()]


def _sheets(model: ModelVerdict, *, narrow: bool) -> Iterator[tuple[Sheet, str]]:
    """Yield every table that has a row, and a line on the rows that were cut off."""
    if model.metrics:
        yield _measure_sheet(model.metrics, narrow=narrow), ""
    if model.noise:
        yield _noise_sheet(model), ""
    fields = sorted(  # those that moved or weigh: the ones beyond chance first, then by weight and by difference
        (field for field in model.fields if field.difference or field.tier != "advisory"),
        key=lambda field: (
            field.verdict not in ("regressed", "improved"),
            field.tier == "advisory",
            -abs(field.difference or 0.0),
            field.metric,
        ),
    )
    if fields:
        yield _field_sheet(fields[:_MOST_FIELDS], narrow=narrow), _more(len(fields) - _MOST_FIELDS, " fields")
    for title, changes in (("broke", model.cases.broke), ("fixed", model.cases.fixed)):
        if changes:
            rows = []
            for change in changes[:_MOST_CASES]:
                counts = [f"{path} {count}" for path, count in change.fields.items()]
                cell = Cell(_first(counts, _MOST_FIELDS_OF_A_CASE), code=True) if counts else Cell("–")
                rows.append([Cell(change.case_id, code=True), Cell(arrow(change.before, change.after)), cell])
            first = f"{title}: {len(changes)}"
            columns = (first, "before → after", "right answers by field, before → after")
            sheet = Sheet(columns=columns, rows=rows, numbers=_NUMBERS, whole=frozenset({first}))
            yield sheet, _more(len(changes) - _MOST_CASES)
    yield _run_sheet(model), ""


def _first(names: Sequence[str], most: int) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def _more(count: int, of: str = "") -> str:
    return f"… and {count} more{of}" if count > 0 else ""


def _measure_sheet(metrics: Sequence[MeasureResult], *, narrow: bool) -> Sheet:
    """Return the table of metrics: a row on these fixtures, below it a row beyond them, or one row for both."""
    figures = ("95 % interval", *(() if narrow else ("p",)), "q", "detects", "n")
    rows = []
    for result in metrics:
        scopes = [("fixtures", result.fixtures), ("beyond", result.generalises)]
        if result.fixtures.ci95 == result.generalises.ci95 and result.fixtures.verdict == result.generalises.verdict:
            scopes = [("both", result.generalises)]
        elif result.robust.verdict not in (result.fixtures.verdict, result.generalises.verdict):
            scopes.append(("together", result.robust))
        mark = {"critical": " *", "supporting": "", "advisory": " (advisory)"}[result.tier]
        scores = Cell(arrow(result.baseline, result.candidate)), Cell(signed(result.difference))
        first = [Cell(result.metric + mark, code=True), *scores]
        for at, (name, scope) in enumerate(scopes):
            lead = [Cell(""), Cell(""), Cell("")] if at else first
            verdict = _verdict_cell(result.verdict if name == "both" else scope.verdict, None if at else result)
            rows.append([*lead, Cell(name), *_scope_cells(scope, figures), verdict])
    columns = ("metric", "before → after", "change", "scope", *figures, "verdict")
    return Sheet(columns=columns, rows=rows, numbers=_NUMBERS, whole=frozenset({"metric"}), below=figures[::-1])


def _noise_sheet(model: ModelVerdict) -> Sheet:
    """Return the table of what moves the primary metric by chance, as standard deviations of the difference."""
    rows = [[Cell(part.part), Cell(number(part.sd)), Cell(part.source)] for part in model.noise]
    return Sheet(columns=("noise from", "sd", "known from"), rows=rows, numbers=frozenset({"sd"}))


def _scope_cells(scope: Scope, columns: Sequence[str]) -> list[Cell]:
    figures = {
        "95 % interval": _interval(scope),
        "p": probability(scope.p),
        "q": probability(scope.q),
        "detects": number(scope.detectable_drop),
        "n": f"{scope.n:,}" if scope.n else "–",
    }
    return [Cell(figures[column]) for column in columns]


def _verdict_cell(verdict: str, result: MeasureResult | None = None) -> Cell:
    """Return the cell of a verdict. With the result it belongs to, it says whether a waiver accepts it."""
    if result is None or result.waived is None:
        return Cell(verdict, STYLES.get(verdict, ""))
    lapsed = ", below its waiver's floor" if result.waived.below else ", waiver expired"
    return Cell(verdict + (", waived" if result.is_waived else lapsed), STYLES.get(verdict, ""))


def _field_sheet(fields: Sequence[MeasureResult], *, narrow: bool) -> Sheet:
    """Return the table of fields, with how each stands in the cases before and after."""
    figures = ("before → after", "change", *(() if narrow else ("95 % interval",)), "q")
    rows = []
    for field in fields:
        mark = {"critical": " *", "supporting": " (supporting)", "advisory": ""}[field.tier]
        values = {
            "before → after": arrow(field.baseline, field.candidate),
            "change": signed(field.difference),
            "95 % interval": _interval(field),
            "q": probability(field.q),
        }
        before, after = field.profile_before or {}, field.profile_after or {}
        counts = {name: (before.get(standing, 0), after.get(standing, 0)) for standing, name in _STANDINGS.items()}
        changed = ", ".join(f"{name} {then} → {now}" for name, (then, now) in counts.items() if then != now)
        cells = [Cell(field.metric + mark, code=True), *(Cell(values[column]) for column in figures)]
        rows.append([*cells, _verdict_cell(field.verdict, field), Cell(changed or "as before")])
    columns = ("field", *figures, "verdict", "cases in which it is")
    return Sheet(columns=columns, rows=rows, numbers=_NUMBERS, whole=frozenset({"field"}))


def _run_sheet(model: ModelVerdict) -> Sheet:
    """Return the table of the two runs: how they went, what they took, and the failures by kind."""
    runs = [run for run in (model.baseline, model.candidate) if run is not None]
    failures = sorted({kind for run in runs for kind, count in run.failures.items() if count})
    rows = [
        _facts("run", [run.run_id for run in runs], code=True),
        _facts("served model", [run.served_model or "–" for run in runs], code=True),
        _facts("replicates", [str(run.replicates) for run in runs]),
        _facts("answered", [f"{run.coverage * 100:.4g} %" for run in runs]),
        *(_amounts(kind, [run.failures.get(kind, 0) for run in runs], "{:,.0f}", code=True) for kind in failures),
        _amounts("input tokens", [run.input_tokens for run in runs], "{:,.0f}"),
        _amounts("output tokens", [run.output_tokens for run in runs], "{:,.0f}"),
        _amounts("cost", [run.cost_usd for run in runs], "${:,.4f}"),
        _amounts("latency, median", [run.latency_p50_s for run in runs], "{:.2f} s"),
        _amounts("latency, 95 % below", [run.latency_p95_s for run in runs], "{:.2f} s"),
    ]
    columns = ("the run", "candidate", "change") if len(runs) == 1 else ("the runs", "before", "after", "change")
    return Sheet(columns=columns, rows=rows, numbers=frozenset({"change"}))


def _facts(name: str, values: Sequence[str], *, code: bool = False) -> list[Cell]:
    return [Cell(name), *(Cell(value, code=code) for value in values), Cell("")]


def _amounts(name: str, amounts: Sequence[float | None], form: str, *, code: bool = False) -> list[Cell]:
    cells = [Cell("–" if amount is None else form.format(amount)) for amount in amounts]
    measured = [amount for amount in amounts if amount is not None]
    change = ""
    if len(measured) == 2:
        before, after = measured
        share = round((after / before - 1) * 100) if before else None
        change = "=" if before == after or share == 0 else f"{after:+g}" if share is None else f"{share:+} %"
    return [Cell(name, code=code), *cells, Cell(change)]


def arrow(before: float | None, after: float | None) -> str:
    """Write two scores, the earlier first."""
    return f"{number(before)} → {number(after)}"


def signed(value: float | None) -> str:
    """Write a difference of scores; one that rounds to zero has no sign."""
    return "–" if value is None else f"{value:+.3f}" if round(value, 3) else "0.000"


def _interval(scope: Scope | MeasureResult) -> str:
    return "–" if scope.ci95 is None else f"{signed(scope.ci95[0])} to {signed(scope.ci95[1])}"
