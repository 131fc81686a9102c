"""A comparison for people: the verdict first, then why, where, and how sure; text, Markdown or JSON."""

from collections.abc import Iterator

from rich.text import Text

from skill_evaluator.display.safe_text import code_span, visible
from skill_evaluator.display.sheets import Format, Sheet, markdown_table, print_result
from skill_evaluator.reports.verdict_tables import (
    MARKS,
    MOST_CASES,
    MOST_FIELDS,
    STYLES,
    case_sheet,
    field_sheet,
    measure_sheet,
    moved,
    run_sheet,
)
from skill_evaluator.verdicts.results import ComparisonResult, MeasureResult, ModelVerdict
from skill_evaluator.verdicts.rules import WORST_FIRST

_LEGEND = (
    "* critical · before → after: strict means · detects: the smallest drop this comparison finds 4 times in 5",
    "scope: on these fixtures, where n counts answers; beyond them, on cases not seen, where n counts cases",
)


def print_comparison(result: ComparisonResult, form: Format) -> None:
    """Write it to stdout."""
    print_result(
        form,
        json=lambda: result.model_dump(mode="json"),
        markdown=lambda: comparison_markdown(result),
        text=lambda: _text(result),
    )


def _text(result: ComparisonResult) -> Iterator[Sheet | Text]:
    yield _headline(result.verdict, f"{result.skill}: {result.verdict} {_scope(result)}")
    for model in _worst_first(result):
        yield Text()
        yield _headline(model.verdict, f"{MARKS[model.verdict]} {model.model_id}: {model.verdict} · {_steps(model)}")
        yield Text(visible(_beside(model, result.gate)))
        yield from (Text(visible(f"  {reason}")) for reason in (*model.reasons, *_waivers(model)))
        for sheet, more in _sheets(model, narrow=True):
            yield Text()
            yield sheet
            if more:
                yield Text(more)
    yield Text()
    yield from (Text(visible(line), style="yellow") for line in _left_out(result))
    yield from (Text(line, style="dim") for line in _LEGEND)
    yield Text(f"q: p adjusted over {result.family}; α {result.alpha:g}", style="dim")


def comparison_markdown(result: ComparisonResult) -> str:
    """The page: nothing in it that came from outside is taken for mark-up."""
    lines = [f"## {code_span(result.skill)}: {result.verdict} {_scope(result)}", ""]
    for model in _worst_first(result):
        lines += [f"### {MARKS[model.verdict]} {code_span(model.model_id)}: {model.verdict}", ""]
        lines += [f"{_code_steps(model)} · {_beside(model, result.gate)}", ""]
        lines += [f"- {code_span(reason)}" for reason in (*model.reasons, *_waivers(model))]
        lines += _unfolding(model)
    lines += [f"- {code_span(line)}" for line in _left_out(result)]
    legend = [line.replace("*", "\\*") for line in _LEGEND]
    lines += ["", " · ".join([*legend, f"q: p adjusted over {result.family}; α {result.alpha:g}"])]
    return "\n".join(lines) + "\n"


def _unfolding(model: ModelVerdict) -> Iterator[str]:
    """The tables of a model, folded up unless it is worse: a page of many models is to be taken in at a glance."""
    folded = model.verdict != "regressed"
    if folded:
        yield from ("", "<details><summary>The figures</summary>")
    for sheet, more in _sheets(model, narrow=False):
        yield from ("", markdown_table(sheet).rstrip("\n"))
        if more:
            yield from ("", more)
    yield ""
    if folded:
        yield from ("</details>", "")


def _worst_first(result: ComparisonResult) -> list[ModelVerdict]:
    return sorted(result.models, key=lambda model: (WORST_FIRST.index(model.verdict), model.model_id))


def _headline(verdict: str, words: str) -> Text:
    return Text(visible(words), style=STYLES.get(verdict, "bold"))


def _sheets(model: ModelVerdict, *, narrow: bool) -> Iterator[tuple[Sheet, str]]:
    """Every table that has a row, and what is left out of it."""
    if model.metrics:
        yield measure_sheet(model.metrics, narrow=narrow), ""
    fields = field_sheet(model.fields, narrow=narrow)
    if fields.rows:
        yield fields, _more(len(moved(model.fields)) - MOST_FIELDS, " fields")
    for title, changes in (("broke", model.cases.broke), ("fixed", model.cases.fixed)):
        if changes:
            yield case_sheet(f"{title}: {len(changes)}", changes), _more(len(changes) - MOST_CASES)
    yield run_sheet(model), ""


def _more(count: int, of: str = "") -> str:
    return f"… and {count} more{of}" if count > 0 else ""


def _scope(result: ComparisonResult) -> str:
    if result.gate == "fixtures":
        return f"on these fixtures; beyond them {result.generalises}"
    return "beyond these fixtures"


def _steps(model: ModelVerdict) -> str:
    before = "" if model.baseline is None else f"{model.baseline.skill_version} → "
    return f"{before}{model.candidate.skill_version}"


def _code_steps(model: ModelVerdict) -> str:
    before = "" if model.baseline is None else f"{code_span(model.baseline.skill_version)} → "
    return f"{before}{code_span(model.candidate.skill_version)}"


def _beside(model: ModelVerdict, gate: str) -> str:
    """What the verdict leaves open: the other question, agreement between replicates, and how much was measured."""
    beyond = [f"beyond these fixtures: {model.generalises}"] if gate == "fixtures" else []
    return " · ".join([*beyond, f"agreement between replicates: {model.stability}", f"coverage {model.coverage:.2f}"])


def _waivers(model: ModelVerdict) -> Iterator[str]:
    for one in (*model.metrics, *model.fields):
        if one.waived is not None:
            yield _waiver(one)


def _waiver(one: MeasureResult) -> str:
    assert one.waived is not None  # noqa: S101 (for the type checker)
    how = "waived until" if one.waived.in_force else "its waiver expired on"
    return f"{one.metric}: {how} {one.waived.expires}: {one.waived.reason}"


def _left_out(result: ComparisonResult) -> list[str]:
    return [f"{model_id} is left out: {why}" for model_id, why in result.left_out.items()]
