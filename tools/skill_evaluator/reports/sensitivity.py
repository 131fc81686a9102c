"""How small a drop a comparison sees, for people: by theory (`plan --detect`) and by trial (`compare --calibrate`).

A finished `SizingPlan` or `Calibration` comes in; text, Markdown or JSON goes out.
"""

from collections.abc import Iterator

from rich.text import Text

from skill_evaluator.display import number
from skill_evaluator.display.safe_text import code_span, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, markdown_table, print_result
from skill_evaluator.text import counted
from skill_evaluator.verdicts.calibration import Calibration, Planted
from skill_evaluator.verdicts.dealing import LEAST_REPLICATES
from skill_evaluator.verdicts.noise import RUN_SHARE
from skill_evaluator.verdicts.sizing import DesignChoice, Sizing, SizingPlan

_LEGEND = (
    "calls and cost: of one run; baseline and candidate have as many replicates each",
    "cases to generalise: if a change strikes cases as differently as their scores differ",
    "recorded: runs of two days · A/A: with further runs of the baseline (`evaluate --aa`); those yet to be made",
    "are taken to show independent answers · interleaved: both prompts in one run (`--with-baseline`)",
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
        yield from (Text(visible(line)) for line in _sizing_facts(model, plan.detect))
        if model.choices:
            yield Text()
            yield _design_sheet(model, plan.detect)
            yield Text()
            yield Text(f"{model.design}, by replicates")
            yield _choice_sheet(model, plan.detect)
    yield Text()
    yield from (Text(line, style="dim") for line in _LEGEND)


def _sizing_markdown(plan: SizingPlan) -> str:
    lines = [f"## {code_span(plan.skill)}: {_sizing_title(plan)}", ""]
    for model in plan.models:
        lines += [f"### {code_span(model.model_id)}", "", _present_cases(model, plan.detect), ""]
        lines += [f"- {code_span(line)}" for line in _sizing_facts(model, plan.detect)]
        lines.append("")
        if model.choices:
            lines += [markdown_table(_design_sheet(model, plan.detect)), f"{model.design}, by replicates", ""]
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
        return f"on its {cases} no number of replicates shows {detect:g} ({model.design})"
    calls = model.cases * replicates
    cost = "" if model.cost_per_call_usd is None else f", ${calls * model.cost_per_call_usd:,.4f}"
    return f"its {cases} show it on these fixtures with {replicates} replicates ({counted(calls, 'call')}{cost})"


def _sizing_facts(model: Sizing, detect: float) -> Iterator[str]:
    cost = "unknown" if model.cost_per_call_usd is None else f"${model.cost_per_call_usd:.6f}"
    size = f"{counted(model.cases, 'case')} × {model.replicates}"
    spread = f"{number(model.between_cases)} between cases, {number(model.between_replicates)} between replicates"
    yield f"{model.skill_version}, run {model.run_id}: {model.metric} {number(model.strict_mean)} on {size}"
    yield f"standard deviation {spread}; cost of a call {cost}"
    if model.between_runs is not None:
        source = f"taken to be {RUN_SHARE:g} of that of one answer"
        if model.aa_runs:
            source = f"from {counted(model.aa_runs, 'A/A run')} and the value taken where there are none"
        yield f"standard deviation of a whole run {number(model.between_runs)} ({source})"
    design = next((one for one in model.designs if one.design == model.design), None)
    if design is not None and design.hidden > detect:
        yield (
            f"the days of two runs hide {detect:g}: no number of cases shows less than {number(design.hidden)}; "
            "remedy: `evaluate --with-baseline`"
        )
    elif design is not None and design.one_draw:
        yield (
            "the answers of a case count as one draw, as nothing tells what they have in common; "
            "`evaluate --aa` measures it"
        )


def _design_sheet(model: Sizing, detect: float) -> Sheet:
    size = f"{model.cases} × {model.replicates}"
    columns = ("design", f"{size}: on them", "beyond them", "replicates needed", "cases to generalise", "days hide")
    rows = [
        (
            Cell(_design_name(design)),
            _drop_cell(design.present_fixtures, detect),
            _drop_cell(design.present_beyond, detect),
            _count_cell(design.replicates_needed),
            _count_cell(design.cases),
            Cell("nothing" if not design.hidden else f"< {number(design.hidden)}"),
        )
        for design in model.designs
    ]
    return Sheet(columns=columns, rows=rows, numbers=frozenset(columns[1:]))


def _design_name(design: DesignChoice) -> str:
    return f"{design.design} × {design.runs}" if design.runs > 1 else design.design


def _count_cell(count: int | None) -> Cell:
    return Cell("–" if count is None else f"{count:,}")


def _choice_sheet(model: Sizing, detect: float) -> Sheet:
    columns = ("replicates", "cases to generalise", "calls", "cost", f"the {model.cases} cases: on them", "beyond them")
    rows = [
        (
            Cell(str(choice.replicates)),
            _count_cell(choice.cases),
            _count_cell(choice.calls),
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


def _calibration_facts(result: Calibration) -> Iterator[str]:
    drop, no_drop = result.detectable_drop, result.planted[0]
    seen = "no drop, whatever its size," if drop is None else f"a drop of {drop:.3f}"
    yield f"{_dealt(result)}, {result.family} measures"
    yield (
        f"false alarms {result.false_alarms:.1%} of {no_drop.times:,} ({_alarms(no_drop)}), "
        f"nominal at most {result.alpha:.1%}"
    )
    if result.one_draw is not None:
        one, alarms = result.one_draw, result.one_draw.regressed + result.one_draw.improved
        yield f"if the answers of a case were one draw: {alarms:.1%} of {one.times:,} ({_alarms(one)})"
    yield (
        f"at this size {seen} in {visible(result.metric)} alone is seen with 80 % power; "
        f"{result.tolerance:g} is tolerated"
    )
    yield _unknown(result)


def _dealt(result: Calibration) -> str:
    if result.runs is not None:
        few = f" ({counted(result.left_out, 'case')} not in every run left out)" if result.left_out else ""
        return f"{result.runs.aa_runs + 1} runs of the version, dealt case by case, {result.n_cases} cases{few}"
    few = f" ({result.left_out} with fewer than {LEAST_REPLICATES} answers left out)" if result.left_out else ""
    return f"halves of {result.replicates} replicates in {result.n_cases} cases{few}"


def _alarms(planted: Planted) -> str:
    return f"regressed {planted.regressed:.1%}, improved {planted.improved:.1%}"


def _unknown(result: Calibration) -> str:
    """Word what the answers cannot show, and what shows it."""
    if result.runs is not None:
        return (
            "what the answers of a case have in common within a run is in this; each dealt run was moved by a day of "
            f"its own, of standard deviation {result.runs.day:.3f} (from {counted(result.runs.aa_runs, 'A/A run')} and "
            "the value taken where there are none)"
        )
    taken = "; the provider is taken to sample each anew" if result.sampled else ""
    return (
        f"one run cannot show what the answers of a case have in common{taken}, nor what a day does: "
        "`evaluate --aa` measures both"
    )


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
    gate = {
        "fixtures": "on these fixtures",
        "generalises": "on cases beyond these fixtures",
        "robust": "on these fixtures and on cases beyond them",
    }[result.gate]
    dealt = "random halves of one run" if result.runs is None else "runs of one version, dealt at random"
    return (
        f"Verdicts of the gate ({gate}) on {dealt}, in which nothing differs but what was planted: "
        "every score of one side lowered. Nominal: of the primary metric alone, normal approximation."
    )
