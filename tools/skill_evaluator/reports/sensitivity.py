"""How small a drop a comparison shows, for people (`plan --detect`).

A finished `SizingPlan` comes in; text, Markdown or JSON goes out.
"""

from collections.abc import Iterator

from rich.text import Text

from skill_evaluator.display import number
from skill_evaluator.display.safe_text import code_span, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, markdown_table, print_result
from skill_evaluator.text import counted
from skill_evaluator.verdicts.planning.sizing import PlannedDesign, Sizing, SizingPlan

_DESIGNS: dict[PlannedDesign, str] = {
    "beside": "the baseline is asked beside the candidate, half as often; calls and cost are of both",
    "recorded": "the baseline was recorded on another day; calls and cost are of the candidate alone",
}
_PREMISE = "on these cases, if the answers to a case are independent; several critical metrics or models need more"


def print_sizing(plan: SizingPlan, form: Format) -> None:
    """Print a sizing plan to stdout."""
    print_result(
        form,
        json=lambda: plan.model_dump(mode="json"),
        markdown=lambda: _sizing_markdown(plan),
        text=lambda: _sizing_text(plan),
    )


def _sizing_text(plan: SizingPlan) -> Iterator[Sheet | Text]:
    yield Text(visible(f"{plan.skill}: {_title(plan)}"), style="bold")
    for model in plan.models:
        yield Text()
        yield Text(visible(f"{model.model_id}: {_present(model, plan)}"), style="bold")
        yield from (Text(visible(line)) for line in _facts(model, plan))
        if model.choices:
            yield Text()
            yield _sheet(model, plan.detect)
    yield Text()
    yield from (Text(line, style="dim") for line in (_DESIGNS[plan.design], _PREMISE))


def _sizing_markdown(plan: SizingPlan) -> str:
    lines = [f"## {code_span(plan.skill)}: {_title(plan)}", ""]
    for model in plan.models:
        lines += [f"### {code_span(model.model_id)}", "", _present(model, plan), ""]
        lines += [*(f"- {code_span(line)}" for line in _facts(model, plan)), ""]
        if model.choices:
            lines.append(markdown_table(_sheet(model, plan.detect)))
    return "\n".join([*lines, f"{_DESIGNS[plan.design]} · {_PREMISE}"]) + "\n"


def _title(plan: SizingPlan) -> str:
    return f"what shows a drop of {plan.detect:g} with {plan.power * 100:g} % power at α {plan.alpha:g}"


def _present(model: Sizing, plan: SizingPlan) -> str:
    """Word the drop that the present cases and replicates show, or why nobody knows."""
    if model.shows is None:
        return "; ".join(model.remarks)
    return f"its {counted(model.cases, 'case')} × {model.replicates} show a drop of about {model.shows:.2g}"


def _facts(model: Sizing, plan: SizingPlan) -> Iterator[str]:
    cost = "unknown" if model.cost_per_call_usd is None else f"${model.cost_per_call_usd:.6f}"
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


def _sheet(model: Sizing, detect: float) -> Sheet:
    columns = ("replicates", f"{model.cases} cases show", f"cases for {detect:g}", "calls", "cost")
    rows = [
        (
            Cell(str(choice.replicates)),
            Cell(f"{number(choice.shows)} ✓", "green") if choice.shows <= detect else Cell(f"{number(choice.shows)}  "),
            _count_cell(choice.cases),
            _count_cell(choice.calls),
            Cell("–" if choice.cost_usd is None else f"${choice.cost_usd:,.4f}"),
        )
        for choice in model.choices
    ]
    return Sheet(columns=columns, rows=rows, numbers=frozenset(columns))


def _count_cell(count: int | None) -> Cell:
    return Cell("–" if count is None else f"{count:,}")
