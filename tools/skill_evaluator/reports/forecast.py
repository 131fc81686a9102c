"""The forecast of a plan → a table: what its calls cost asked one by one, with prompt caching, and in batches."""

from collections.abc import Sequence

from skill_evaluator.display.sheets import Cell, Sheet
from skill_evaluator.runner.forecasts import Forecast

COST_OF_BATCHES = "the costs are those of batches, half of what they are without --batch; answers come within a day"
_COLUMNS = ("cost at most", "calls", "directly", "with caching", "in batches")


def forecast_sheet(forecasts: Sequence[Forecast]) -> Sheet:
    """Return a row a model, and one of all where there are several."""
    shown = forecasts if len(forecasts) > 2 else forecasts[:1]
    rows = [
        [
            Cell("all") if one.model_id is None else Cell(one.model_id, code=True),
            Cell(f"{one.calls:,}"),
            Cell(_usd(one.direct_usd)),
            Cell(_usd(one.cached_usd)),
            Cell("no batch API" if one.batch_usd is None and one.direct_usd is not None else _usd(one.batch_usd)),
        ]
        for one in shown
    ]
    return Sheet(columns=_COLUMNS, rows=rows, numbers=frozenset(_COLUMNS[1:]))


def _usd(cost: float | None) -> str:
    return "unknown" if cost is None else f"${cost:,.2f}"
