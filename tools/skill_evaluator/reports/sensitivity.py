"""How small a drop a comparison sees, for people: by theory (`plan --detect`) and by trial (`compare --calibrate`).

A finished `SizingPlan` or `Calibration` comes in; text, Markdown or JSON goes out.
"""

from collections.abc import Iterator

from rich.text import Text

from skill_evaluator.display import number
from skill_evaluator.display.safe_text import code_span, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, markdown_table, print_result
from skill_evaluator.text import counted
from skill_evaluator.verdicts.calibration import LEAST_REPLICATES, Calibration
from skill_evaluator.verdicts.sizing import Sizing, SizingPlan

_LEGEND = (
    "calls and cost: of one run; baseline and candidate have as many replicates each",
    "cases to generalise: if a change strikes cases as differently as their scores differ",
)


def print_sizing(plan: SizingPlan, form: Format) -> None:
    """Print a sizing plan to stdout."""
    print_result(
        form,
        json=lambda: plan.model_dump(mode="json"),
        markdown=lambda: _sizing_markdown(plan),
        text=lambda: _sizing_text(plan),
    )


def _sizing_text(plan: SizingPlan) -> Iterator[Sheet | Text]:
    yield Text(visible(f"{plan.skill}: {_sizing_title(plan)}"), style="bold")
    for model in plan.models:
        yield Text()
        yield Text(visible(f"{model.model_id}: {_present_cases(model, plan.detect)}"), style="bold")
        yield from (Text(visible(line)) for line in _sizing_facts(model))
        if model.choices:
            yield Text()
            yield _choice_sheet(model, plan.detect)
    yield Text()
    yield from (Text(line, style="dim") for line in _LEGEND)


def _sizing_markdown(plan: SizingPlan) -> str:
    lines = [f"## {code_span(plan.skill)}: {_sizing_title(plan)}", ""]
    for model in plan.models:
        lines += [f"### {code_span(model.model_id)}", "", _present_cases(model, plan.detect), ""]
        lines += [f"- {code_span(line)}" for line in _sizing_facts(model)]
        lines.append("")
        if model.choices:
            lines.append(markdown_table(_choice_sheet(model, plan.detect)))
    return "\n".join([*lines, " · ".join(_LEGEND)]) + "\n"


def _sizing_title(plan: SizingPlan) -> str:
    return f"what shows a drop of {plan.detect:g} with {plan.power * 100:g} % power at α {plan.alpha:g}"


def _present_cases(model: Sizing, detect: float) -> str:
    """Word how many replicates of the present cases show the drop on them, or why none do."""
    if model.remarks:
        return "; ".join(model.remarks)
    cases, replicates = counted(model.cases, "case"), model.replicates_needed
    if replicates is None:
        return f"on its {cases} no number of replicates shows {detect:g}"
    calls = model.cases * replicates
    cost = "" if model.cost_per_call_usd is None else f", ${calls * model.cost_per_call_usd:,.4f}"
    return f"its {cases} show it on these fixtures with {replicates} replicates ({counted(calls, 'call')}{cost})"


def _sizing_facts(model: Sizing) -> tuple[str, str]:
    cost = "unknown" if model.cost_per_call_usd is None else f"${model.cost_per_call_usd:.6f}"
    size = f"{counted(model.cases, 'case')} × {model.replicates}"
    spread = f"{number(model.between_cases)} between cases, {number(model.between_replicates)} between replicates"
    return (
        f"{model.skill_version}, run {model.run_id}: {model.metric} {number(model.strict_mean)} on {size}",
        f"standard deviation {spread}; cost of a call {cost}",
    )


def _choice_sheet(model: Sizing, detect: float) -> Sheet:
    columns = ("replicates", "cases to generalise", "calls", "cost", f"the {model.cases} cases: on them", "beyond them")
    rows = [
        (
            Cell(str(choice.replicates)),
            Cell("–" if choice.cases is None else f"{choice.cases:,}"),
            Cell("–" if choice.calls is None else f"{choice.calls:,}"),
            Cell("–" if choice.cost_usd is None else f"${choice.cost_usd:,.4f}"),
            _drop_cell(choice.present_fixtures, detect),
            _drop_cell(choice.present_beyond, detect),
        )
        for choice in model.choices
    ]
    return Sheet(columns=columns, rows=rows, numbers=frozenset(columns))


def _drop_cell(drop: float | None, detect: float) -> Cell:
    """Return the cell of the smallest drop that would be seen, with a tick where that is small enough."""
    if drop is None:
        return Cell("–")
    return Cell(f"{number(drop)} ✓", "green") if drop <= detect else Cell(f"{number(drop)}  ", "yellow")


def print_calibration(result: Calibration, form: Format) -> None:
    """Print a calibration to stdout."""
    print_result(
        form,
        json=lambda: result.model_dump(mode="json"),
        markdown=lambda: calibration_markdown(result),
        text=lambda: [
            Text(visible(f"{result.skill} · {result.model_id} · run {result.run_id}")),
            *map(Text, _calibration_facts(result)),
            _planted_sheet(result),
            Text(_calibration_note(result)),
        ],
    )


def calibration_markdown(result: Calibration) -> str:
    """Return the page. Text from outside stands in code spans, so that none of it is taken for mark-up."""
    head = f"## Calibration of {code_span(result.skill)}, {code_span(result.model_id)}, run {code_span(result.run_id)}"
    facts = [f"- {line}" for line in _calibration_facts(result)]
    return "\n".join([head, "", *facts, "", markdown_table(_planted_sheet(result)), _calibration_note(result)]) + "\n"


def _calibration_facts(result: Calibration) -> list[str]:
    few = f" ({result.left_out} with fewer than {LEAST_REPLICATES} answers left out)" if result.left_out else ""
    drop = result.detectable_drop
    seen = "no drop, whatever its size," if drop is None else f"a drop of {drop:.3f}"
    return [
        f"halves of {result.replicates} replicates in {result.n_cases} cases{few}, {result.family} measures",
        f"false alarms {result.false_alarms:.1%} of {result.planted[0].times:,}, nominal at most {result.alpha:.1%}",
        f"at this size {seen} in {visible(result.metric)} alone is seen with 80 % power; "
        f"{result.tolerance:g} is tolerated",
    ]


def _planted_sheet(result: Calibration) -> Sheet:
    columns = ("lowered by", "fell by", "times", "regressed", "nominal", "improved", "unchanged", "inconclusive")
    rows = []
    for planted in result.planted:
        nominal = "–" if planted.nominal is None else f"{'≤ ' if not planted.drop else ''}{planted.nominal:.1%}"
        fell = abs(planted.fell) if abs(planted.fell) < 5e-4 else planted.fell  # never -0.000
        counts = (f"{planted.drop:.3f}", f"{fell:.3f}", f"{planted.times:,}", f"{planted.regressed:.1%}", nominal)
        others = [f"{share:.1%}" for share in (planted.improved, planted.unchanged, planted.inconclusive)]
        rows.append([Cell(text) for text in (*counts, *others)])
    return Sheet(columns=columns, rows=rows, numbers=frozenset(columns))


def _calibration_note(result: Calibration) -> str:
    gate = "these fixtures" if result.gate == "fixtures" else "cases beyond these fixtures"
    return (
        f"Verdicts of the gate (on {gate}) on random halves of one run, in which nothing differs but what was planted: "
        "every score of one half lowered. Nominal: of the primary metric alone, normal approximation."
    )
