"""The overview: the state of every component, then each component with each model."""

from collections.abc import Mapping, Sequence
from typing import Any

from skill_evaluator.display.addresses import component_address
from skill_evaluator.site.changes import ORDER
from skill_evaluator.site.rendering import Pages
from skill_evaluator.site.writing import fitting

_MAX_DATA = 400_000  # characters of the data of the table


def write_overview(
    pages: "Pages",
    states: Sequence[Mapping[str, Any]],
    rows: Sequence[Mapping[str, Any]],
    problems: Sequence[Mapping[str, str]],
    retiring: Sequence[str],
) -> None:
    """Write the overview. A state without a version is a component that was never measured, with `why`."""
    measured = [{**row, "rank": _rank(row), "address": component_address(row["component"])} for row in rows]
    measured.sort(key=lambda row: (row["rank"], row["component"]))
    shown, left = fitting(measured, _MAX_DATA)
    counts = [(verdict, sum((row["verdict"] or "first") == verdict for row in measured)) for verdict in ORDER]
    pages.write(
        "index.html",
        "overview.html",
        states=sorted(states, key=lambda state: (not state["alarm"], not state["version"], state["component"])),
        past=[{"component": state["component"], **one} for state in states for one in state.get("past", ())],
        rows=shown,
        left=left,
        counts=[(verdict, many) for verdict, many in counts if many],
        graded=any(row["grade"] for row in shown),
        problems=problems,
        retiring=retiring,
    )


def _rank(row: Mapping[str, Any]) -> int:
    """Return the place of the worse of a row's two verdicts, 0 for the worst."""
    return min(ORDER.index(one["verdict"] or "first") for one in (row, row["also"]) if one is not None)
