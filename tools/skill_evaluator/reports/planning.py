"""What a plan would take and show, for people: how small a drop, and what its calls cost in each way of asking."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from skill_evaluator.display import cost_words, number
from skill_evaluator.display.pages import Block, Heading, Line, Lines, page_of, print_page
from skill_evaluator.display.sheets import Cell, Format, Sheet, cells_of, markdown_table, print_result
from skill_evaluator.evaluation.dry_run import DryRun
from skill_evaluator.runner.prices import AMOUNTS, Forecast
from skill_evaluator.text import counted, version_words

if TYPE_CHECKING:  # a dry run shows costs, and waits for nothing that verdicts need
    from skill_evaluator.verdicts.planning.sizing import PlannedDesign, Sizing, SizingPlan

_DESIGNS: "dict[PlannedDesign, str]" = {
    "beside": "the baseline is asked beside the candidate, half as often; calls and cost are of both",
    "recorded": "the baseline was recorded on another day; calls and cost are of the candidate alone",
}
_PREMISE = "on these cases, if the answers to a case are independent; several critical metrics or models need more"
_COLUMNS = ("cost at most", "calls", "directly", "with caching", "in batches")


def print_sizing(plan: "SizingPlan", form: Format) -> None:
    """Print a sizing plan to stdout."""
    print_page(form, json=lambda: plan.model_dump(mode="json"), page=lambda: page_of(plan.skill, _blocks(plan)))


def _blocks(plan: "SizingPlan") -> Iterator[Block]:
    title = f": what shows a drop of {plan.detect:g} with {plan.power * 100:g} % power at α {plan.alpha:g}"
    yield Heading(Cell(plan.skill, code=True), title, level=2)
    for model in plan.models:
        yield Heading(Cell(model.model_id, code=True), f": {_present(model)}")
        yield Lines(list(_facts(model, plan)))
        yield _sheet(model, plan.detect)
    yield Line(_DESIGNS[plan.design], style="dim")
    yield Line(_PREMISE, style="dim")


def _present(model: "Sizing") -> str:
    """Word the drop that the present cases and replicates show, or why nobody knows."""
    if model.shows is None:
        return "; ".join(model.remarks)
    return f"its {counted(model.cases, 'case')} × {model.replicates} show a drop of about {model.shows:.2g}"


def _facts(model: "Sizing", plan: "SizingPlan") -> Iterator[str]:
    cost = cost_words(model.cost_per_call_usd, digits=6)
    size = f"{counted(model.cases, 'case')} × {model.replicates}"
    yield f"{model.skill_version}, run {model.run_id}: {model.metric} {number(model.strict_mean)} on {size}"
    if model.shows is None:
        return
    day = f", of a day {number(model.between_runs)}" if model.between_runs else ""
    yield f"standard deviation of an answer to a case {number(model.between_replicates)}{day}; cost of a call {cost}"
    if model.replicates_needed is None:
        remedy = "" if plan.design == "beside" else ": ask the baseline beside it, or add cases"
        yield f"no number of replicates of these cases shows {plan.detect:g}{remedy}"
    else:
        yield f"{counted(model.replicates_needed, 'replicate')} of these cases would show {plan.detect:g}"


def _sheet(model: "Sizing", detect: float) -> Sheet:
    columns = ("replicates", f"{model.cases} cases show", f"cases for {detect:g}", "calls", "cost")
    rows = []
    for choice in model.choices:
        shown = number(choice.shows)
        drop = Cell(f"{shown} ✓", "green") if choice.shows <= detect else Cell(f"{shown}  ")
        counts = (None if count is None else f"{count:,}" for count in (choice.cases, choice.calls))
        cost = None if choice.cost_usd is None else cost_words(choice.cost_usd)
        rows.append(cells_of([], choice.replicates, drop, *counts, cost))
    return Sheet(columns=columns, rows=rows, numbers=frozenset(columns))


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
    checked += f"{labelled} with ground truth, all in order\n"
    checked += "".join(f"{line}\n" for line in (*component.inferred, *further))
    print_result(
        form,
        json=lambda: {
            "skill": component.name,
            "dry_run": True,
            "inferred": list(component.inferred),
            "further": list(further),
            "models": [asdict(estimate) for estimate in dry.estimates],
            "forecast": [forecast.model_dump(mode="json") for forecast in dry.forecasts],
        },
        markdown=lambda: f"{markdown_table(sheet)}\n{markdown_table(forecast_sheet(dry.forecasts))}",
        text=lambda: [
            checked,
            sheet,
            "",
            forecast_sheet(dry.forecasts),
            "\ndry run: no call was made, nothing was written",
        ],
    )
