"""What an evaluation would take, for people: its calls, and what they cost in each way of asking."""

from collections.abc import Sequence
from dataclasses import asdict

from skill_evaluator.display import cost_words
from skill_evaluator.display.pages import Block, Line, Lines, page_of, print_page
from skill_evaluator.display.sheets import Cell, Format, Sheet, cells_of
from skill_evaluator.evaluation.dry_run import DryRun
from skill_evaluator.runner.prices import AMOUNTS, Forecast
from skill_evaluator.text import counted, version_words

_COLUMNS = ("cost at most", "calls", "directly", "with caching", "in batches")


def forecast_sheet(forecasts: Sequence[Forecast]) -> Sheet:
    """Return a row a model, and one of all where there are several."""
    shown = forecasts if len(forecasts) > 2 else forecasts[:1]
    rows = []
    for one in shown:
        model = Cell("all") if one.model_id is None else Cell(one.model_id, code=True)
        costs = [cost_words(usd, digits=2) for usd in (one.direct_usd, one.cached_usd, one.batch_usd)]
        if one.batch_usd is None and one.direct_usd is not None:
            costs[-1] = "no batch API"
        rows.append(cells_of([], model, f"{one.calls:,}", *costs))
    return Sheet(columns=_COLUMNS, rows=rows, numbers=frozenset(_COLUMNS[1:]))


def print_dry_run(dry: DryRun, form: Format) -> None:
    """Print what an evaluation would take to stdout."""
    component, cases, further = dry.component, dry.cases, dry.further
    rows = [cells_of([], one.model_id, one.provider, one.key, *one.amounts) for one in dry.estimates]
    sheet = Sheet(columns=("model", "provider", "key", *AMOUNTS), rows=rows, numbers=frozenset(AMOUNTS))
    labelled = sum(case.labelled for case in cases)
    checked = f"{component.name} {version_words(component.version)}: {counted(len(cases), 'case')}, "
    checked += f"{labelled} with ground truth, all in order"
    result = {
        "skill": component.name,
        "dry_run": True,
        "inferred": list(component.inferred),
        "further": list(further),
        "models": [asdict(estimate) for estimate in dry.estimates],
        "forecast": [forecast.model_dump(mode="json") for forecast in dry.forecasts],
    }
    first = Lines([checked, *component.inferred, *further])
    last = Line("dry run: no call was made, nothing was written")
    blocks: list[Block] = [first, sheet, forecast_sheet(dry.forecasts), last]
    print_page(form, json=lambda: result, page=lambda: page_of("the dry run", blocks))
