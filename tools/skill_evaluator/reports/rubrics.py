"""Linted rubrics → text, Markdown or JSON: every remark with its place."""

from collections.abc import Iterator

from rich.text import Text

from skill_evaluator.checking.rubrics import RubricLint
from skill_evaluator.display.safe_text import visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, markdown_table, print_result
from skill_evaluator.text import counted

_COLUMNS = ("file", "line", "", "rule", "remark")
_STYLES = {"error": "red", "warning": "yellow"}


def print_rubric_lint(linted: RubricLint, form: Format) -> None:
    """Print what `judge lint` says of rubrics."""
    print_result(
        form,
        json=lambda: linted.model_dump(mode="json"),
        markdown=lambda: f"## Rubrics\n\n{_closing(linted)}\n" + (f"\n{_table(linted)}" if _remarks(linted) else ""),
        text=lambda: _text(linted),
    )


def _remarks(linted: RubricLint) -> int:
    return linted.errors + linted.warnings


def _closing(linted: RubricLint) -> str:
    criteria = sum(len(rubric.criteria) for rubric in linted.rubrics)
    return (
        f"{counted(len(linted.rubrics), 'rubric')}, {criteria} {'criterion' if criteria == 1 else 'criteria'}: "
        f"{counted(linted.errors, 'error')}, {counted(linted.warnings, 'warning')}"
    )


def _table(linted: RubricLint) -> str:
    rows = [
        (
            Cell(rubric.file, code=True),
            Cell(str(remark.line)),
            Cell(remark.severity),
            Cell(remark.rule),
            Cell(remark.message, code=True),
        )
        for rubric in linted.rubrics
        for remark in rubric.remarks
    ]
    return markdown_table(Sheet(columns=_COLUMNS, rows=rows, numbers=frozenset({"line"})))


def _text(linted: RubricLint) -> Iterator[Text]:
    for rubric in linted.rubrics:
        for remark in rubric.remarks:
            place = visible(f"{rubric.file}:{remark.line}: ")
            kind = Text(remark.severity, style=_STYLES[remark.severity])
            yield Text.assemble(place, kind, visible(f" {remark.rule}: {remark.message}"))
    yield Text(_closing(linted))
