"""A comparison for people: the verdict first, then why, where, and how sure; text, Markdown or JSON."""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from rich.console import Console
from rich.table import Table

from skill_evaluator.regression.results import CaseChange, ComparisonResult, MeasureResult, ModelResult, Side
from skill_evaluator.reports.shown import code_span, visible

_WIDTH = 124
_MOST_CASES, _MOST_FIELDS = 10, 10
_STYLES = {"regressed": "bold red", "improved": "bold green", "inconclusive": "yellow", "incomparable": "yellow"}
_COLUMNS = (
    "metric",
    "before",
    "after",
    "difference",
    "95 % interval",
    "p",
    "q",
    "could see",
    "verdict",
    "beyond these",
)


def print_comparison(result: ComparisonResult, form: Literal["text", "json", "markdown"]) -> None:
    """Write it to stdout."""
    if form == "json":
        json.dump(result.model_dump(mode="json"), sys.stdout, indent=2)
        sys.stdout.write("\n")
    elif form == "markdown":
        sys.stdout.write(comparison_markdown(result))
    else:
        console = Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False, markup=False)
        for model in result.models:
            _print_model(console, model)
        style = _STYLES.get(result.verdict, "")
        console.print(f"\n{visible(result.skill)}: ", end="")
        console.print(f"{result.verdict} {_scope(result)}", style=style)
        console.print(f"q over the family: {result.family}; alpha {result.alpha:g}")


def comparison_markdown(result: ComparisonResult) -> str:
    """The page: nothing in it that came from outside is taken for mark-up."""
    lines = [f"## {code_span(result.skill)}: {result.verdict} {_scope(result)}", ""]
    for model in result.models:
        lines += [f"### {code_span(model.model_id)}: {model.verdict}", "", _facts(model), ""]
        lines += [f"- {code_span(reason)}" for reason in model.reasons]
        rows = [*model.metrics, *_moved(model.fields)]
        if rows:
            lines += ["", f"| {' | '.join(_COLUMNS)} |", f"|{'---|' * len(_COLUMNS)}"]
            lines += [f"| {' | '.join((code_span(one.metric), *_cells(one)[1:]))} |" for one in rows]
        for title, changes in (("Broke", model.cases.broke), ("Fixed", model.cases.fixed)):
            if changes:
                lines += ["", f"{title}:", ""]
                lines += [f"- {code_span(_case(change))}" for change in changes[:_MOST_CASES]]
        lines.append("")
    return "\n".join([*lines, f"q over the family: {result.family}; α {result.alpha:g}."]) + "\n"


def _print_model(console: Console, model: ModelResult) -> None:
    console.print()
    console.rule(f"{visible(model.model_id)} · {model.verdict}", align="left", style=_STYLES.get(model.verdict, ""))
    console.print(_facts(model), soft_wrap=True)
    for reason in model.reasons:
        console.print(f"  {visible(reason)}", soft_wrap=True)
    rows = [*model.metrics, *_moved(model.fields)]
    if rows:
        table = Table(*_COLUMNS, box=None, pad_edge=False)
        for column in table.columns[1:8]:
            column.justify = "right"
        for one in rows:
            table.add_row(*_cells(one), style=_STYLES.get(one.verdict, ""))
        console.print(table)
    for title, changes in (("broke", model.cases.broke), ("fixed", model.cases.fixed)):
        for change in changes[:_MOST_CASES]:
            console.print(f"{title}: {visible(_case(change))}", soft_wrap=True)
        if len(changes) > _MOST_CASES:
            console.print(f"… and {len(changes) - _MOST_CASES} more {title}")


def _moved(fields: Sequence[MeasureResult]) -> list[MeasureResult]:
    """The fields that say something: those with a verdict of their own, or the largest differences."""
    moved = [one for one in fields if one.difference]
    moved.sort(key=lambda one: (one.verdict not in ("regressed", "improved"), -abs(one.difference or 0.0), one.metric))
    return moved[:_MOST_FIELDS]


def _scope(result: ComparisonResult) -> str:
    here = "on these fixtures" if result.gate == "fixtures" else "beyond these fixtures"
    other = f"; beyond them {result.generalises}" if result.gate == "fixtures" else ""
    return f"{here}{other}"


def _facts(model: ModelResult) -> str:
    sides = [model.candidate] if model.baseline is None else [model.baseline, model.candidate]
    parts = [
        " → ".join(f"{side.skill_version} ({side.replicates} replicates)" for side in sides),
        f"coverage {model.coverage:.2f}",
        f"agreement {model.stability}",
        f"beyond these fixtures {model.generalises}",
        "cost " + _arrow(sides, lambda side: "–" if side.cost_usd is None else f"${side.cost_usd:.4f}"),
        "tokens out " + _arrow(sides, lambda side: "–" if side.output_tokens is None else f"{side.output_tokens:,}"),
        "p50 " + _arrow(sides, lambda side: "–" if side.latency_p50_s is None else f"{side.latency_p50_s:.2f} s"),
        "failures " + _arrow(sides, lambda side: str(sum(side.failures.values()))),
    ]
    return " · ".join(parts)


def _arrow(sides: Iterable[Side], said: Callable[[Side], str]) -> str:
    return " → ".join(map(said, sides))


def _cells(one: MeasureResult) -> tuple[str, ...]:
    waived = f" (waived until {one.waived.expires})" if one.waived and one.waived.in_force else ""
    expired = f" (waiver expired {one.waived.expires})" if one.waived and not one.waived.in_force else ""
    tier = {"critical": " *", "supporting": "", "advisory": " (advisory)"}[one.tier]
    return (
        visible(one.metric) + tier,
        _number(one.baseline),
        _number(one.candidate),
        _signed(one.difference),
        "–" if one.ci95 is None else f"{one.ci95[0]:+.3f} to {one.ci95[1]:+.3f}",
        _number(one.p),
        _number(one.q),
        _number(one.detectable_drop),
        one.verdict + waived + expired,
        one.generalises.verdict,
    )


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f}"


def _case(change: CaseChange) -> str:
    fields = "; ".join(f"{path} {counts}" for path, counts in change.fields.items())
    return f"{change.case_id} {change.before:.3f} → {change.after:.3f}{f' ({fields})' if fields else ''}"
