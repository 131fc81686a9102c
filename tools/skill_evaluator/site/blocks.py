"""What a page is made of, as data: charts, tables and sentences, in the words and figures of the other reports."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from skill_evaluator.display.pages import SiteBlock
from skill_evaluator.display.sheets import Cell, Sheet
from skill_evaluator.judges.asking.results import FigureResult
from skill_evaluator.reports.judge_figures import share


def point(label: str, series: str, figure: FigureResult) -> dict[str, Any]:
    """Return a point of a chart with its interval."""
    low, high = figure.ci95 or (None, None)
    name = label if label == series else f"{label}, {series}"
    words = f"{name}: {share(figure)}, n {figure.n}"
    return {"label": label, "series": series, "value": figure.value, "low": low, "high": high, "words": words}


def interval_chart(
    title: str,
    note: str,
    rows: Sequence[Mapping[str, Any]],
    sheet: SiteBlock,
    *,
    axis: str,
    domain: tuple[float, float] = (0.0, 1.0),
    marks: Mapping[float, str] = MappingProxyType({}),
) -> SiteBlock:
    """Return a chart of points with their intervals, and its table; `marks` are lines to read them by."""
    measured = [row for row in rows if row["value"] is not None]
    words = {
        "labels": list(dict.fromkeys(row["label"] for row in measured)),
        "series": list(dict.fromkeys(row["series"] for row in measured)),
        "domain": list(domain),
        "title": axis,
    }
    more = {"marks": [{"at": at, "words": meaning} for at, meaning in marks.items()]}
    return chart_block("intervals", title, note, measured, sheet, words=words, more=more)


def chart_block(
    name: str,
    title: str,
    note: str,
    rows: Sequence[Mapping[str, Any]],
    sheet: SiteBlock,
    *,
    words: Mapping[str, Any],
    more: Mapping[str, Any],
) -> SiteBlock:
    """Return a chart by its specification's name; without a row its table stands alone."""
    if not rows:
        return {**sheet, "note": note, "folded": False}
    return {
        "kind": "chart",
        "chart": name,
        "title": title,
        "note": note,
        "rows": list(rows),
        "words": words,
        "more": more,
        "sheet": sheet,
    }


def point_sheet(rows: Sequence[Mapping[str, Any]], columns: tuple[str, str], figures: Sequence[FigureResult]) -> Sheet:
    """Return the table of a chart of points: label, series and each figure with its interval."""
    return Sheet(
        columns=(*columns, "value with 95 % interval", "n"),
        rows=[
            [Cell(row["label"]), Cell(row["series"]), Cell(share(figure)), Cell(str(figure.n))]
            for row, figure in zip(rows, figures, strict=True)
        ],
        numbers=frozenset({"value with 95 % interval", "n"}),
    )
