"""The tables of a comparison: what moved, how sure that is, what the noise is, and the two runs."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from skill_evaluator.display import WHOLE, arrow, interval, number, probability, signed
from skill_evaluator.display.addresses import NO_SITE, Site
from skill_evaluator.display.sheets import Cell, Sheet
from skill_evaluator.records.served import served_text
from skill_evaluator.text import listed
from skill_evaluator.verdicts.decide.results import MeasureResult, ModelVerdict, Scope

STYLES = {"regressed": "bold red", "improved": "bold green", "inconclusive": "yellow", "incomparable": "yellow"}
_MOST_ROWS, _MOST_FIELDS_OF_A_CASE = 10, 4
_STANDINGS = {
    "stable_right": "right",
    "stable_wrong": "wrong",
    "flaky": "flaky",
    "stable": "stable",
    "unscored": "unscored",
}
_NUMBERS = frozenset({"before → after", "change", "95 % interval", "p", "q", "detects", "n"})


def all_sheets(
    model: ModelVerdict, *, narrow: bool, skill: str = "", site: Site = NO_SITE, most: int = _MOST_ROWS
) -> Iterator[Sheet | str]:
    """Yield every table that has a row, and a line on the rows that were cut off."""
    if model.metrics:
        yield measure_sheet(model, narrow=narrow)
    if model.noise:
        yield noise_sheet(model)
    yield from changed_sheets(model, narrow=narrow, skill=skill, site=site, most=most)
    yield run_sheet(model)


def changed_sheets(
    model: ModelVerdict, *, narrow: bool, skill: str = "", site: Site = NO_SITE, most: int = _MOST_ROWS
) -> Iterator[Sheet | str]:
    """Yield the tables of the fields that moved or weigh, and of the cases that broke or were fixed."""
    fields = sorted(  # the ones beyond chance first, then by weight and by difference
        (field for field in model.fields if field.difference or field.tier != "advisory"),
        key=lambda field: (
            field.verdict not in ("regressed", "improved"),
            field.tier == "advisory",
            -abs(field.difference or 0.0),
            field.metric,
        ),
    )
    if fields:
        page = partial(site.page, skill, model=model.model_id)
        yield _field_sheet(fields[:most], narrow, page)
        yield from _more(len(fields) - most, " fields")
    for title, changes in (("broke", model.cases.broke), ("fixed", model.cases.fixed)):
        if changes:
            rows = []
            for change in changes[:most]:
                counts = [f"{path or WHOLE} {count}" for path, count in change.fields.items()]
                cell = Cell(listed(counts, _MOST_FIELDS_OF_A_CASE), code=True) if counts else Cell("–")
                case = Cell(change.case_id, code=True, link=site.page(skill, case=change.case_id, model=model.model_id))
                rows.append([case, Cell(arrow(change.before, change.after)), cell])
            first = f"{title}: {len(changes)}"
            columns = (first, "before → after", "right answers by field, before → after")
            yield Sheet(columns=columns, rows=rows, numbers=_NUMBERS, whole=frozenset({first}))
            yield from _more(len(changes) - most)


def _more(count: int, of: str = "") -> Iterator[str]:
    if count > 0:
        yield f"… and {count} more{of}"


def measure_sheet(model: ModelVerdict, *, narrow: bool) -> Sheet:
    """Return the table of metrics: a row on these cases, below it a row beyond them, or one row for both."""
    figures = ("95 % interval", *(() if narrow else ("p",)), "q", "detects", "n")
    rows = []
    for result in model.metrics:
        scopes = [("these", result.these), ("beyond", result.beyond)]
        if result.these.ci95 == result.beyond.ci95 and result.these.verdict == result.beyond.verdict:
            scopes = [("both", result.beyond)]
        elif result.both.verdict not in (result.these.verdict, result.beyond.verdict):
            scopes.append(("together", result.both))
        mark = {"critical": " *", "supporting": "", "advisory": " (advisory)"}[result.tier]
        scores = Cell(arrow(result.baseline, result.candidate)), Cell(signed(result.difference))
        first = [Cell(result.metric + mark, code=True), *scores]
        for at, (name, scope) in enumerate(scopes):
            lead = [Cell(""), Cell(""), Cell("")] if at else first
            verdict = _verdict_cell(result.verdict if name == "both" else scope.verdict, None if at else result)
            rows.append([*lead, Cell(name), *_scope_cells(scope, figures, result.n_cases), verdict])
    columns = ("metric", "before → after", "change", "scope", *figures, "verdict")
    return Sheet(columns=columns, rows=rows, numbers=_NUMBERS, whole=frozenset({"metric"}), below=figures[::-1])


def noise_sheet(model: ModelVerdict) -> Sheet:
    """Return the table of what moves the primary metric by chance, as standard deviations of the difference."""
    rows = [[Cell(part.part), Cell(number(part.sd)), Cell(part.source)] for part in model.noise]
    return Sheet(columns=("noise from", "sd", "known from"), rows=rows, numbers=frozenset({"sd"}))


def _scope_cells(scope: Scope, columns: Sequence[str], cases: int) -> list[Cell]:
    figures = {
        "95 % interval": interval(scope.ci95, cases, signed),
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


def _field_sheet(fields: Sequence[MeasureResult], narrow: bool, page: Callable[..., str]) -> Sheet:
    """Return the table of fields, with how each stands in the cases before and after."""
    figures = ("before → after", "change", *(() if narrow else ("95 % interval",)), "q")
    rows = []
    for field in fields:
        mark = {"critical": " *", "supporting": " (supporting)", "advisory": ""}[field.tier]
        values = {
            "before → after": arrow(field.baseline, field.candidate),
            "change": signed(field.difference),
            "95 % interval": interval(field.ci95, field.n_cases, signed),
            "q": probability(field.q),
        }
        before, after = field.profile_before or {}, field.profile_after or {}
        counts = {name: (before.get(standing, 0), after.get(standing, 0)) for standing, name in _STANDINGS.items()}
        changed = ", ".join(f"{name} {then} → {now}" for name, (then, now) in counts.items() if then != now)
        path = field.metric or WHOLE
        name = Cell(path + mark, code=True, link=page(field=path))
        cells = [name, *(Cell(values[column]) for column in figures)]
        rows.append([*cells, _verdict_cell(field.verdict, field), Cell(changed or "as before")])
    columns = ("field", *figures, "verdict", "cases in which it is")
    return Sheet(columns=columns, rows=rows, numbers=_NUMBERS, whole=frozenset({"field"}))


def run_sheet(model: ModelVerdict) -> Sheet:
    """Return the table of the two runs: how they went, what they took, and the failures by kind."""
    runs = [run for run in (model.baseline, model.candidate) if run is not None]
    failures = sorted({kind for run in runs for kind, count in run.failures.items() if count})
    rows = [
        _facts("run", [run.run_id for run in runs], code=True),
        _facts("served model", [served_text(run.served_model) or "–" for run in runs], code=True),
        _facts("replicates", [str(run.replicates) for run in runs]),
        _facts("answered", [f"{run.coverage * 100:.4g} %" for run in runs]),
        *(_amounts(kind, [run.failures.get(kind, 0) for run in runs], "{:,.0f}", code=True) for kind in failures),
        _amounts("input tokens", [run.input_tokens for run in runs], "{:,.0f}"),
        _amounts("output tokens", [run.output_tokens for run in runs], "{:,.0f}"),
        *(
            [_facts("read from a cache", ["–" if run.hit_rate is None else f"{run.hit_rate:.0%}" for run in runs])]
            if any(run.hit_rate for run in runs)
            else []
        ),
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
