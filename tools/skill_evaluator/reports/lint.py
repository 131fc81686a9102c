"""Linted components → text, Markdown or JSON: field plans, hints and problems."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.text import Text

from skill_evaluator.checking.lint import Linted, PlanLine
from skill_evaluator.comparing.declarations import aligned_by, compared_as
from skill_evaluator.display.safe_text import code_span, name_text, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, markdown_table, print_result
from skill_evaluator.library.components import Component
from skill_evaluator.text import counted

_COLUMNS = ("path", "compared, aligned", "weight", "in F1", "why")


def print_linted(linted: Sequence[Linted], form: Format) -> None:
    """Print what lint says of components."""
    print_result(
        form,
        json=lambda: {"components": [_as_json(result) for result in linted]},
        markdown=lambda: "\n".join(_markdown(result) for result in linted),
        text=lambda: (piece for result in linted for piece in _text(result)),
    )


def _as_json(linted: Linted) -> dict[str, Any]:
    component = linted.component
    fields = []
    for line in linted.lines:
        rule = line.rule
        leaf = {"compare": rule.compare, **rule.options}
        how = {"align": rule.align, "key": list(rule.key)} if line.kind == "array" else leaf
        weight = {"weight": rule.weight, "counted": line.counted} if line.kind == "field" else {}
        fields.append({"path": line.path, "kind": line.kind, **how, **weight, "why": line.why})
    return {
        "component": linted.name,
        "version": component.version if component else None,
        "output": component.output if component else None,
        "metrics": list(component.metrics) if component else [],
        "primary_metric": component.primary_metric if component else None,
        "cases": linted.cases,
        "labelled": linted.labelled,
        "questions": asdict(linted.balance) if linted.balance else None,
        "fields": fields,
        "hints": list(linted.hints),
        "problems": list(linted.problems),
    }


def _sheet(lines: Sequence[PlanLine]) -> Sheet:
    rows = []
    for line in lines:
        if line.kind == "array":
            how = (Cell(f"array, {aligned_by(line.rule)}", "cyan", code=True), Cell("–"), Cell("–"))
        else:
            counts = Cell("yes") if line.counted else Cell("no", "yellow")
            how = (Cell(compared_as(line.rule), code=True), Cell(f"{line.rule.weight:g}"), counts)
        path = Cell(name_text(line.path), code=True) if line.path else Cell("(the whole answer)")
        rows.append((path, *how, Cell(line.why, code=True)))
    return Sheet(columns=_COLUMNS, rows=rows, numbers=frozenset({"weight"}), whole=frozenset({"path"}))


def _facts(linted: Linted, component: Component) -> str:
    fields = sum(line.kind == "field" for line in linted.lines)
    arrays = len(linted.lines) - fields
    others = ", ".join(name for name in component.metrics if name != component.primary_metric)
    facts = (
        f"{counted(linted.cases, 'question' if linted.balance else 'case')}, {linted.labelled} with ground truth · "
        f"{counted(fields, 'field')}, {counted(arrays, 'array')} · "
        f"ranked by {component.primary_metric}{f', also {others}' if others else ''}"
    )
    if linted.balance is None:
        return facts
    fewest, most = linted.balance.fewest_options, linted.balance.most_options
    options = f"{most} options" if fewest == most else f"{fewest} to {most} options"
    keys = ", ".join(f"{letter} {count}" for letter, count in linted.balance.keys.items())
    return f"{facts} · {options}, keys {keys}"


def _text(linted: Linted) -> Iterator[Sheet | Text]:
    component = linted.component
    yield Text(visible(f"{linted.name} {component.version}" if component else linted.name), style="bold")
    if component:
        yield Text(visible(_facts(linted, component)))
        yield Text()
        yield _sheet(linted.lines)
    if component and (linted.hints or linted.problems):
        yield Text()
    yield from (Text(f"hint: {visible(hint)}", style="yellow") for hint in linted.hints)
    yield from (Text(f"problem: {visible(problem)}", style="red") for problem in linted.problems)
    yield Text()


def _markdown(linted: Linted) -> str:
    component = linted.component
    page = f"## {code_span(linted.name)}{f' {component.version}' if component else ''}\n\n"
    if component:
        page += f"{visible(_facts(linted, component))}\n\n{markdown_table(_sheet(linted.lines))}"
    notes = [f"- hint: {code_span(hint)}\n" for hint in linted.hints]
    notes += [f"- **problem:** {code_span(problem)}\n" for problem in linted.problems]
    return page + ("\n" if component and notes else "") + "".join(notes)
