"""What would show a drop, for people: per model the choices in a table, and whether the present cases do."""

from collections.abc import Iterator

from rich.text import Text

from skill_evaluator.display import number
from skill_evaluator.display.safe_text import code_span, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, markdown_table, print_result
from skill_evaluator.text import counted
from skill_evaluator.verdicts.sizing import Choice, Sizing, SizingPlan

_LEGEND = (
    "calls and cost: of one run; baseline and candidate have as many replicates each",
    "cases to generalise: if a change strikes cases as differently as their scores differ",
)


def print_sizing(plan: SizingPlan, form: Format) -> None:
    """Write it to stdout."""
    print_result(
        form, json=lambda: plan.model_dump(mode="json"), markdown=lambda: _markdown(plan), text=lambda: _text(plan)
    )


def _text(plan: SizingPlan) -> Iterator[Sheet | Text]:
    yield Text(visible(f"{plan.skill}: {_title(plan)}"), style="bold")
    for model in plan.models:
        yield Text()
        yield Text(visible(f"{model.model_id}: {_here(model, plan.detect)}"), style="bold")
        yield from (Text(visible(line)) for line in _facts(model))
        if model.choices:
            yield Text()
            yield _sheet(model, plan.detect)
    yield Text()
    yield from (Text(line, style="dim") for line in _LEGEND)


def _markdown(plan: SizingPlan) -> str:
    lines = [f"## {code_span(plan.skill)}: {_title(plan)}", ""]
    for model in plan.models:
        lines += [f"### {code_span(model.model_id)}", "", _here(model, plan.detect), ""]
        lines += [f"- {code_span(line)}" for line in _facts(model)]
        lines.append("")
        if model.choices:
            lines.append(markdown_table(_sheet(model, plan.detect)))
    return "\n".join([*lines, " · ".join(_LEGEND)]) + "\n"


def _title(plan: SizingPlan) -> str:
    return f"what shows a drop of {plan.detect:g} with {plan.power * 100:g} % power at α {plan.alpha:g}"


def _here(model: Sizing, detect: float) -> str:
    """Whether the present cases do, on themselves."""
    if model.remarks:
        return "; ".join(model.remarks)
    needed = model.replicates_needed
    if needed is None:
        return f"on its {counted(model.cases, 'case')} no number of replicates shows {detect:g}"
    calls = model.cases * needed
    cost = "" if model.cost_per_call_usd is None else f", ${calls * model.cost_per_call_usd:,.4f}"
    suffice = f"its {counted(model.cases, 'case')} show it on these fixtures with {needed} replicates"
    return f"{suffice} ({counted(calls, 'call')}{cost})"


def _facts(model: Sizing) -> tuple[str, str]:
    cost = "unknown" if model.cost_per_call_usd is None else f"${model.cost_per_call_usd:.6f}"
    size = f"{counted(model.cases, 'case')} × {model.replicates}"
    spread = f"{number(model.between_cases)} between cases, {number(model.between_replicates)} between replicates"
    return (
        f"{model.skill_version}, run {model.run_id}: {model.metric} {number(model.strict_mean)} on {size}",
        f"standard deviation {spread}; cost of a call {cost}",
    )


def _sheet(model: Sizing, detect: float) -> Sheet:
    columns = ("replicates", "cases to generalise", "calls", "cost", f"the {model.cases} cases: on them", "beyond them")
    rows = [_row(one, detect) for one in model.choices]
    return Sheet(columns=columns, rows=rows, numbers=frozenset(columns))


def _row(one: Choice, detect: float) -> list[Cell]:
    return [
        Cell(str(one.replicates)),
        Cell("–" if one.cases is None else f"{one.cases:,}"),
        Cell("–" if one.calls is None else f"{one.calls:,}"),
        Cell("–" if one.cost_usd is None else f"${one.cost_usd:,.4f}"),
        _shown(one.present_fixtures, detect),
        _shown(one.present_beyond, detect),
    ]


def _shown(drop: float | None, detect: float) -> Cell:
    """The smallest drop that would be seen, marked when that is enough."""
    if drop is None:
        return Cell("–")
    return Cell(f"{number(drop)} ✓", "green") if drop <= detect else Cell(f"{number(drop)}  ", "yellow")
