"""The overview: the state of every component, then each component with each model."""

from collections.abc import Mapping, Sequence
from typing import Any

from skill_evaluator.display.addresses import component_address
from skill_evaluator.site.rendering import Pages
from skill_evaluator.site.state import ComponentState
from skill_evaluator.site.versions import ORDER
from skill_evaluator.site.writing import first_rows

_MAX_ROWS = 600


def write_overview(
    pages: "Pages",
    states: Sequence[ComponentState],
    rows: Sequence[Mapping[str, Any]],
    problems: Sequence[Mapping[str, str]],
    retiring: Sequence[str],
) -> None:
    """Write the overview. A state without a version is a component that was never measured, with `why`."""
    measured = sorted((_with_verdicts(row) for row in rows), key=lambda row: (row["rank"], row["component"]))
    shown, left = first_rows(measured, _MAX_ROWS)
    counts = [(verdict, sum(verdict in row["verdicts"] for row in measured)) for verdict in ORDER]
    pages.write(
        "index.html",
        "overview.html",
        states=sorted(states, key=lambda state: (not state.alarm, not state.version, state.component)),
        past=[(state.component, regression) for state in states for regression in state.past],
        rows=shown,
        left=left,
        counts=[(verdict, many) for verdict, many in counts if many],
        graded=any(row["grade"] for row in shown),
        problems=problems,
        retiring=retiring,
    )


def _with_verdicts(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with its address, its one or two verdicts, and the rank of the worse, 0 for the worst."""
    verdicts = [verdict["verdict"] or "first" for verdict in (row, row["also"]) if verdict is not None]
    rank = min(map(ORDER.index, verdicts))
    return {**row, "verdicts": verdicts, "rank": rank, "address": component_address(row["component"])}
