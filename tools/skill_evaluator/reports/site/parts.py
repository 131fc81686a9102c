"""The parts that a page is made of where its tables are those of a report: words, tables, charts."""

from typing import Any

from skill_evaluator.display.sheets import Cell, Sheet

Part = dict[str, Any]


def table_part(caption: str, sheet: Sheet, *, fold: bool = False) -> Part:
    """Return a table as a page draws it; nothing for one without rows."""
    if not sheet.rows:
        return {}
    return {
        "caption": caption,
        "columns": [{"title": name, "number": name in sheet.numbers} for name in sheet.columns],
        "rows": [[_shown(cell) for cell in row] for row in sheet.rows],
        "fold": fold,
    }


def _shown(cell: Cell) -> Any:
    return {"text": cell.text, "link": cell.link} if cell.link else cell.text
