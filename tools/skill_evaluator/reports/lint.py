"""The field plans of linted components for people: tables on a terminal, Markdown for a page, JSON for a program."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.text import Text

from skill_evaluator.checking.hints import KeyBalance
from skill_evaluator.checking.lint import Linted, PlanLine
from skill_evaluator.comparing.declarations import aligned_by, compared_as
from skill_evaluator.display.safe_text import code_span, name_text, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, markdown_table, print_result
from skill_evaluator.library.components import Component
from skill_evaluator.text import counted

_COLUMNS = ("path", "compared, aligned", "weight", "in F1", "why")


def print_linted(linted: Sequence[Linted], form: Format) -> None:
    """Write what was found to stdout."""
    print_result(
        form,
        json=lambda: {"components": [_as_json(result) for result in linted]},
        markdown=lambda: "\n".join(_markdown(result) for result in linted),
        text=lambda: (piece for result in linted for piece in _text(result)),
    )


def _as_json(one: Linted) -> dict[str, Any]:
    known = one.component
    return {
        "component": one.name,
        "version": known.version if known else None,
        "output": known.output if known else None,
        "metrics": list(known.metrics) if known else [],
        "primary_metric": known.primary_metric if known else None,
        "cases": one.cases,
        "labelled": one.labelled,
        "questions": asdict(one.balance) if one.balance else None,
        "fields": [_line_as_json(line) for line in one.lines],
        "hints": list(one.hints),
        "problems": list(one.problems),
    }


def _line_as_json(line: PlanLine) -> dict[str, Any]:
    rule = line.rule
    leaf = {"compare": rule.compare, **rule.options}
    how = {"align": rule.align, "key": list(rule.key)} if line.kind == "array" else leaf
    weight = {"weight": rule.weight, "counted": line.counted} if line.kind == "field" else {}
    return {"path": line.path, "kind": line.kind, **how, **weight, "why": line.why}


def _sheet(lines: Sequence[PlanLine]) -> Sheet:
    rows = [_cells(line) for line in lines]
    return Sheet(columns=_COLUMNS, rows=rows, numbers=frozenset({"weight"}), whole=frozenset({"path"}))


def _cells(line: PlanLine) -> tuple[Cell, ...]:
    path = Cell(name_text(line.path), code=True) if line.path else Cell("(the whole answer)")
    if line.kind == "array":
        words = f"array, {aligned_by(line.rule)}"
        return path, Cell(words, "cyan", code=True), Cell("–"), Cell("–"), Cell(line.why, code=True)
    return (
        path,
        Cell(compared_as(line.rule), code=True),
        Cell(f"{line.rule.weight:g}"),
        Cell("yes") if line.counted else Cell("no", "yellow"),
        Cell(line.why, code=True),
    )


def _facts(one: Linted, component: Component) -> str:
    if one.balance:
        return f"{_counts(one, component)} · {_keys(one.balance)}"
    return _counts(one, component)


def _keys(balance: KeyBalance) -> str:
    """How many options there are, and how often each letter is the key."""
    fewest, most = balance.fewest_options, balance.most_options
    options = f"{most} options" if fewest == most else f"{fewest} to {most} options"
    return f"{options}, keys {', '.join(f'{letter} {count}' for letter, count in balance.keys.items())}"


def _counts(one: Linted, component: Component) -> str:
    fields = sum(line.kind == "field" for line in one.lines)
    arrays = len(one.lines) - fields
    others = ", ".join(name for name in component.metrics if name != component.primary_metric)
    return (
        f"{counted(one.cases, 'question' if one.balance else 'case')}, {one.labelled} with ground truth · "
        f"{counted(fields, 'field')}, {counted(arrays, 'array')} · "
        f"ranked by {component.primary_metric}{f', also {others}' if others else ''}"
    )


def _text(one: Linted) -> Iterator[Sheet | Text]:
    known = one.component
    yield Text(visible(f"{one.name} {known.version}" if known else one.name), style="bold")
    if known:
        yield Text(visible(_facts(one, known)))
        yield Text()
        yield _sheet(one.lines)
    if known and (one.hints or one.problems):
        yield Text()
    yield from (Text(f"hint: {visible(hint)}", style="yellow") for hint in one.hints)
    yield from (Text(f"problem: {visible(problem)}", style="red") for problem in one.problems)
    yield Text()


def _markdown(one: Linted) -> str:
    known = one.component
    page = f"## {code_span(one.name)}{f' {known.version}' if known else ''}\n\n"
    if known:
        page += f"{visible(_facts(one, known))}\n\n{markdown_table(_sheet(one.lines))}"
    notes = [f"- hint: {code_span(hint)}\n" for hint in one.hints]
    notes += [f"- **problem:** {code_span(problem)}\n" for problem in one.problems]
    return page + ("\n" if known and notes else "") + "".join(notes)
