"""The report of a dry run: the calls of an evaluation and their cost directly, with caching and in batches."""

from collections.abc import Sequence
from dataclasses import asdict

from skill_evaluator.display import cost_words, count
from skill_evaluator.display.pages import Block, Lines, page_of, print_page
from skill_evaluator.display.sheets import Cell, Format, Sheet, cells_of
from skill_evaluator.errors import EXIT_OK, EXIT_USER_ERROR
from skill_evaluator.evaluation.dry_run import DryRun
from skill_evaluator.runner.prices import AMOUNTS, Forecast
from skill_evaluator.text import counted, version_words

_COLUMNS = ("cost at most", "calls", "directly", "with caching", "in batches")


def forecast_sheet(forecasts: Sequence[Forecast]) -> Sheet:
    """Build the table of maximum costs in USD: a row per model, and a row for all if there are several."""
    shown = forecasts if len(forecasts) > 2 else forecasts[:1]
    rows = []
    for entry in shown:
        model = Cell("all") if entry.model_id is None else Cell(entry.model_id, code=True)
        costs = [cost_words(usd, digits=2) for usd in (entry.direct_usd, entry.cached_usd, entry.batch_usd)]
        if entry.batch_usd is None and entry.direct_usd is not None:
            costs[-1] = "no batch API"
        rows.append(cells_of([], model, count(entry.calls), *costs))
    return Sheet(columns=_COLUMNS, rows=rows, numbers=frozenset(_COLUMNS[1:]))


def print_dry_run(dry: DryRun, form: Format) -> int:
    """Print the cases, problems, calls and maximum cost of an evaluation to stdout. Return the exit code."""
    component = dry.component
    labelled = sum(case.labelled for case in dry.cases)
    cases = f"{counted(len(dry.cases), 'case')}, {labelled} with ground truth"
    state = counted(len(dry.problems), "problem") if dry.problems else "valid"
    rows = [cells_of([], one.model_id, one.provider, one.key, *one.amounts) for one in dry.estimates]
    value = {
        "skill": component.name,
        "dry_run": True,
        "inferred": list(component.inferred),
        "further": list(dry.further),
        "problems": list(dry.problems),
        "models": [asdict(estimate) for estimate in dry.estimates],
        "forecast": [forecast.model_dump(mode="json") for forecast in dry.forecasts],
    }
    blocks: list[Block] = [
        Lines([f"{component.name} {version_words(component.version)}: {cases}, {state}"]),
        Lines([f"problem: {problem}" for problem in dry.problems], style="red"),
        Lines([*component.inferred, *dry.further]),
        Sheet(columns=("model", "provider", "key", *AMOUNTS), rows=rows, numbers=frozenset(AMOUNTS)),
        forecast_sheet(dry.forecasts),
        "dry run: no call was made, nothing was written",
    ]
    print_page(form, json=lambda: value, page=lambda: page_of("the dry run", blocks))
    return EXIT_USER_ERROR if dry.problems else EXIT_OK
