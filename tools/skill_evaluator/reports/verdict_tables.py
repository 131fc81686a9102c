"""The tables of a comparison: metrics by either question, fields, cases, and the two runs beside each other.

Finished results in, sheets out; a terminal gets the columns that fit it, a page all of them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from skill_evaluator.display import number, probability
from skill_evaluator.display.sheets import Cell, Sheet
from skill_evaluator.verdicts.results import CaseChange, MeasureResult, ModelVerdict, RunSummary, Scope

STYLES = {"regressed": "bold red", "improved": "bold green", "inconclusive": "yellow", "incomparable": "yellow"}
MARKS = {"regressed": "▼", "improved": "▲", "unchanged": "=", "inconclusive": "?", "incomparable": "≠"}
MOST_CASES, MOST_FIELDS, _MOST_FIELDS_OF_A_CASE = 10, 10, 4
_STANDINGS = {
    "stable_right": "right",
    "stable_wrong": "wrong",
    "flaky": "flaky",
    "stable": "stable",
    "unscored": "unscored",
}
_NUMBERS = frozenset({"before → after", "change", "95 % interval", "p", "q", "detects", "n"})
_SCOPE = ("95 % interval", "p", "q", "detects", "n")
_OF_FIELDS = ("before → after", "change", "95 % interval", "q")
_CROWDED = {"p"}  # on a terminal the rest must fit beside each other


def measure_sheet(metrics: Sequence[MeasureResult], *, narrow: bool) -> Sheet:
    """Every metric: on these fixtures, and below it beyond them, with what each can say and cannot."""
    shown = [name for name in _SCOPE if not (narrow and name in _CROWDED)]
    rows = [row for one in metrics for row in _measure_rows(one, shown)]
    columns = ("metric", "before → after", "change", "scope", *shown, "verdict")
    return Sheet(columns=columns, rows=rows, numbers=_NUMBERS, whole=frozenset({"metric"}))


def _measure_rows(one: MeasureResult, shown: Sequence[str]) -> Iterator[list[Cell]]:
    mark = {"critical": " *", "supporting": "", "advisory": " (advisory)"}[one.tier]
    first = [Cell(one.metric + mark, code=True), Cell(arrow(one.baseline, one.candidate)), Cell(signed(one.difference))]
    if one.kind == "reproducibility" and one.fixtures.verdict == one.generalises.verdict:
        yield [*first, *_scope_cells("both", one.fixtures, shown, _waiver(one))]
        return
    yield [*first, *_scope_cells("fixtures", one.fixtures, shown, _waiver(one))]
    yield [Cell(""), Cell(""), Cell(""), *_scope_cells("beyond", one.generalises, shown, "")]


def _scope_cells(name: str, scope: Scope, shown: Sequence[str], waiver: str) -> list[Cell]:
    figures = {
        "95 % interval": interval(scope),
        "p": probability(scope.p),
        "q": probability(scope.q),
        "detects": number(scope.detectable_drop),
        "n": f"{scope.n:,}" if scope.n else "–",
    }
    return [Cell(name), *(Cell(figures[column]) for column in shown), _verdict(scope.verdict, waiver)]


def _verdict(said: str, waiver: str = "") -> Cell:
    return Cell(said + waiver, STYLES.get(said, ""))


def _waiver(one: MeasureResult) -> str:
    if one.waived is None:
        return ""
    return ", waived" if one.waived.in_force else ", waiver expired"


def field_sheet(fields: Sequence[MeasureResult], *, narrow: bool) -> Sheet:
    """The first of the fields that moved, with how they stand in the cases before and after."""
    shown = [name for name in _OF_FIELDS if not (narrow and name == "95 % interval")]
    columns = ("field", *shown, "verdict", "cases in which it is")
    rows = [_field_row(one, shown) for one in moved(fields)[:MOST_FIELDS]]
    return Sheet(columns=columns, rows=rows, numbers=_NUMBERS, whole=frozenset({"field"}))


def _field_row(one: MeasureResult, shown: Sequence[str]) -> list[Cell]:
    mark = {"critical": " *", "supporting": " (supporting)", "advisory": ""}[one.tier]
    figures = {
        "before → after": arrow(one.baseline, one.candidate),
        "change": signed(one.difference),
        "95 % interval": interval(one),
        "q": probability(one.q),
    }
    return [
        Cell(one.metric + mark, code=True),
        *(Cell(figures[column]) for column in shown),
        _verdict(one.verdict, _waiver(one)),
        Cell(_standings(one)),
    ]


def _standings(one: MeasureResult) -> str:
    """`right 12 → 5, wrong 0 → 6`: by standing, the number of cases; only where it changed."""
    before, after = one.profile_before or {}, one.profile_after or {}
    changed = [name for name in _STANDINGS if before.get(name, 0) != after.get(name, 0)]
    counts = (f"{_STANDINGS[name]} {before.get(name, 0)} → {after.get(name, 0)}" for name in changed)
    return ", ".join(counts) or "as before"


def moved(fields: Sequence[MeasureResult]) -> list[MeasureResult]:
    """The fields that say something: what is beyond chance, then what weighs, then the largest differences."""
    found = [one for one in fields if one.difference or one.tier != "advisory"]
    return sorted(found, key=_interest)


def _interest(one: MeasureResult) -> tuple[bool, bool, float, str]:
    certain = one.verdict in ("regressed", "improved")
    return not certain, one.tier == "advisory", -abs(one.difference or 0.0), one.metric


def case_sheet(title: str, changes: Sequence[CaseChange]) -> Sheet:
    """Cases that broke or were fixed: the primary metric on both sides, and of each field the right answers."""
    rows = [
        [Cell(one.case_id, code=True), Cell(arrow(one.before, one.after)), Cell(_fields(one), code=bool(one.fields))]
        for one in changes[:MOST_CASES]
    ]
    columns = (title, "before → after", "right answers by field, before → after")
    return Sheet(columns=columns, rows=rows, numbers=_NUMBERS, whole=frozenset({title}))


def _fields(change: CaseChange) -> str:
    named = [f"{path} {counts}" for path, counts in list(change.fields.items())[:_MOST_FIELDS_OF_A_CASE]]
    more = len(change.fields) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "") if named else "–"


def run_sheet(model: ModelVerdict) -> Sheet:
    """The two runs beside each other: how they went, what they took, and the failures by kind."""
    before, after = model.baseline, model.candidate
    sides = [after] if before is None else [before, after]
    rows = [
        _facts("run", sides, lambda side: side.run_id, code=True),
        _facts("served model", sides, lambda side: side.served_model or "–", code=True),
        _facts("replicates", sides, lambda side: str(side.replicates)),
        _facts("answered", sides, lambda side: f"{side.coverage * 100:.4g} %"),
        *(_amounts(kind, sides, _failures(kind), "{:,.0f}", code=True) for kind in _kinds(sides)),
        _amounts("input tokens", sides, lambda side: side.input_tokens, "{:,.0f}"),
        _amounts("output tokens", sides, lambda side: side.output_tokens, "{:,.0f}"),
        _amounts("cost", sides, lambda side: side.cost_usd, "${:,.4f}"),
        _amounts("latency, median", sides, lambda side: side.latency_p50_s, "{:.2f} s"),
        _amounts("latency, 95 % below", sides, lambda side: side.latency_p95_s, "{:.2f} s"),
    ]
    columns = ("the runs", *(name for name, _ in zip(("before", "after"), sides, strict=False)), "change")
    if before is None:
        columns = ("the run", "candidate", "change")
    return Sheet(columns=columns, rows=rows, numbers=frozenset({"change"}))


def _kinds(sides: Iterable[RunSummary]) -> list[str]:
    return sorted({kind for side in sides for kind, count in side.failures.items() if count})


def _failures(kind: str) -> Callable[[RunSummary], float | None]:
    return lambda side: side.failures.get(kind, 0)


def _facts(
    name: str, sides: Sequence[RunSummary], said: Callable[[RunSummary], str], *, code: bool = False
) -> list[Cell]:
    return [Cell(name), *(Cell(said(side), code=code) for side in sides), Cell("")]


def _amounts(
    name: str,
    sides: Sequence[RunSummary],
    amount: Callable[[RunSummary], float | None],
    form: str,
    *,
    code: bool = False,
) -> list[Cell]:
    amounts = [amount(side) for side in sides]
    known = [value for value in amounts if value is not None]
    change = _share(known[0], known[1]) if len(known) == 2 else ""
    return [
        Cell(name, code=code),
        *(Cell("–" if value is None else form.format(value)) for value in amounts),
        Cell(change),
    ]


def _share(before: float, after: float) -> str:
    share = round((after / before - 1) * 100) if before else None
    if before == after or share == 0:
        return "="
    return f"{after:+g}" if share is None else f"{share:+} %"


def arrow(before: float | None, after: float | None) -> str:
    """Two scores, the earlier first."""
    return f"{number(before)} → {number(after)}"


def signed(value: float | None) -> str:
    """A difference of scores; nothing is neither more nor less."""
    return "–" if value is None else f"{value:+.3f}" if round(value, 3) else "0.000"


def interval(scope: Scope | MeasureResult) -> str:
    """The 95 % interval of a difference."""
    return "–" if scope.ci95 is None else f"{signed(scope.ci95[0])} to {signed(scope.ci95[1])}"
