"""Linted components → text, Markdown or JSON: field plans, hints and problems."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.text import Text

from skill_evaluator.checking.lint import Linted, PlanLine
from skill_evaluator.comparing.declarations import aligned_by, compared_as
from skill_evaluator.display import WHOLE
from skill_evaluator.display.safe_text import code_span, name_text, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, markdown_table, print_result
from skill_evaluator.text import counted

_COLUMNS = ("path", "compared, aligned", "weight", "in F1", "why")


def print_linted(linted: Sequence[Linted], form: Format) -> None:
    """Print what lint says of components."""
    print_result(
        form,
        json=lambda: {"components": [_as_json(result) for result in linted]},
        markdown=lambda: "\n".join([*map(_markdown, linted), *(f"{line}\n" for line in not_evaluated(linted))]),
        text=lambda: [*(piece for result in linted for piece in _text(result)), *map(Text, not_evaluated(linted))],
    )


def not_evaluated(linted: Sequence[Linted]) -> list[str]:
    """Count what is not to be evaluated, or not yet, in a line; no line where that is nothing."""
    left_out = sum(component.not_evaluated is not None for component in linted)
    waiting = sum(len(component.waiting) for component in linted)
    counts = [f"{left_out} of {counted(len(linted), 'component')}"] if left_out else []
    counts += [f"{counted(waiting, 'case')} without a document"] if waiting else []
    return [f"not evaluated: {' and '.join(counts)}"] if counts else []


def _as_json(linted: Linted) -> dict[str, Any]:
    fields = []
    for line in linted.lines:
        rule = line.rule
        leaf = {"compare": rule.compare, **rule.options}
        how = {"align": rule.align, "key": list(rule.key)} if line.kind == "array" else leaf
        weight = {"weight": rule.weight, "counted": line.counted} if line.kind == "field" else {}
        fields.append({"path": line.path, "kind": line.kind, **how, **weight, "why": line.why})
    return {
        "component": linted.name,
        "version": linted.version,
        "output": linted.output,
        "metrics": list(linted.metrics),
        "primary_metric": linted.primary_metric,
        "cases": linted.cases,
        "labelled": linted.labelled,
        "questions": asdict(linted.balance) if linted.balance else None,
        "fields": fields,
        "attested": linted.attested,
        "not_evaluated": linted.not_evaluated,
        "waiting": list(linted.waiting),
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
        path = Cell(name_text(line.path), code=True) if line.path else Cell(WHOLE)
        rows.append((path, *how, Cell(line.why, code=True)))
    return Sheet(columns=_COLUMNS, rows=rows, numbers=frozenset({"weight"}), whole=frozenset({"path"}))


def _facts(linted: Linted) -> str:
    fields = sum(line.kind == "field" for line in linted.lines)
    arrays = len(linted.lines) - fields
    others = ", ".join(name for name in linted.metrics if name != linted.primary_metric)
    facts = (
        f"{counted(linted.cases, 'question' if linted.balance else 'case')}, {linted.labelled} with ground truth · "
        f"{counted(fields, 'field')}, {counted(arrays, 'array')} · "
        f"ranked by {linted.primary_metric}{f', also {others}' if others else ''}"
    )
    if linted.balance is None:
        return facts
    fewest, most = linted.balance.fewest_options, linted.balance.most_options
    options = f"{most} options" if fewest == most else f"{fewest} to {most} options"
    keys = ", ".join(f"{letter} {count}" for letter, count in linted.balance.keys.items())
    return f"{facts} · {options}, keys {keys}"


def _text(linted: Linted) -> Iterator[Sheet | Text]:
    yield Text(visible(f"{linted.name} {linted.version or ''}".rstrip()), style="bold")
    if linted.version:
        yield Text(visible(_facts(linted)))
        yield Text()
        yield _sheet(linted.lines)
    if linted.version and (linted.hints or linted.problems or _left_out(linted)):
        yield Text()
    if linted.attested is not None:
        yield Text(f"records: {_attested(linted.attested)}")
    yield from (Text(visible(line)) for line in _left_out(linted))
    yield from (Text(f"hint: {visible(hint)}", style="yellow") for hint in linted.hints)
    yield from (Text(f"problem: {visible(problem)}", style="red") for problem in linted.problems)
    yield Text()


def _left_out(linted: Linted) -> list[str]:
    """Say what of a component is not evaluated, a line each."""
    if linted.not_evaluated is not None:
        return [linted.not_evaluated]
    return [f"case '{case_id}' is not evaluated yet: it has no document" for case_id in linted.waiting]


def _attested(counts: Mapping[str, int]) -> str:
    words = {"verified": "verified", "absent": "without attestation", "failed": "whose attestation does not hold"}
    return ", ".join(f"{counts[status]} {meaning}" for status, meaning in words.items() if counts[status]) or "none"


def _markdown(linted: Linted) -> str:
    page = f"## {code_span(linted.name)}{f' {linted.version}' if linted.version else ''}\n\n"
    if linted.version:
        page += f"{visible(_facts(linted))}\n\n{markdown_table(_sheet(linted.lines))}"
    records = [] if linted.attested is None else [f"- records: {_attested(linted.attested)}\n"]
    notes = [*records, *(f"- {code_span(line)}\n" for line in _left_out(linted))]
    notes += [*(f"- hint: {code_span(hint)}\n" for hint in linted.hints)]
    notes += [f"- **problem:** {code_span(problem)}\n" for problem in linted.problems]
    return page + ("\n" if linted.version and notes else "") + "".join(notes)
