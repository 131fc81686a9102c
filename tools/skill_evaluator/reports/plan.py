"""A plan of CI → text, Markdown or JSON: what runs, what does not and why, and what it can cost."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from skill_evaluator.ci.plan import Chosen, Entry, Plan
from skill_evaluator.display.safe_text import abridged, code_span, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, print_result
from skill_evaluator.stats import total_or_none
from skill_evaluator.text import counted

_COLUMNS = ("component", "models", "jobs", "calls", "cost at most", "why")
_MOST_ROWS = 200  # of one table in a summary
_LONGEST = 400  # characters of a message


def print_plan(plan: Plan, form: Format) -> None:
    """Print a plan to stdout."""
    print_result(
        form,
        json=lambda: plan.model_dump(mode="json"),
        markdown=lambda: plan_markdown(plan),
        text=lambda: _text(plan),
    )


def plan_markdown(plan: Plan) -> str:
    """Return the page of a plan; text from outside is never taken for mark-up."""
    lines = ["## Evaluation plan", "", f"{_total(plan)}.", ""]
    if plan.reason:
        lines += [f"Reason: {code_span(plan.reason)}", ""]
    if plan.entries:
        rows = [
            (code_span(chosen.skill), _codes(chosen.models), *_size(entries), code_span(chosen.reason))
            for chosen, entries in _chosen(plan)
        ]
        lines += _table(_COLUMNS, rows)
    if plan.skipped:
        lines += ["### Not evaluated", ""]
        lines += _table(
            ("component", "models", "why"),
            [(code_span(skipped.skill), _codes(skipped.models), code_span(skipped.reason)) for skipped in plan.skipped],
        )
    if plan.faults:
        lines += ["### Wrong, so not evaluated", ""]
        lines += _table(
            ("file", "what"),
            [
                (code_span(f"{fault.file}:{fault.line}"), code_span(abridged(fault.message, _LONGEST)))
                for fault in plan.faults
            ],
        )
    return "\n".join(lines) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows[:_MOST_ROWS]]
    if len(rows) > _MOST_ROWS:
        lines += ["", f"… and {len(rows) - _MOST_ROWS} more."]
    return [*lines, ""]


def _text(plan: Plan) -> Iterator[Sheet | Text]:
    if plan.entries:
        rows = [
            [Cell(text) for text in (chosen.skill, ", ".join(chosen.models), *_size(entries), chosen.reason)]
            for chosen, entries in _chosen(plan)
        ]
        yield Sheet(columns=_COLUMNS, rows=rows, numbers=frozenset(_COLUMNS[2:5]))
    for skipped in plan.skipped:
        yield _line(f"not run: {skipped.skill} on {', '.join(skipped.models)}: {skipped.reason}")
    for fault in plan.faults:
        yield _line(f"wrong: {fault.file}:{fault.line}: {fault.message}")
    yield _line(_total(plan))


def _line(text: str) -> Text:
    return Text(visible(text), no_wrap=True)


def _chosen(plan: Plan) -> Iterator[tuple[Chosen, list[Entry]]]:
    """Yield what runs, with its jobs."""
    for chosen in plan.chosen:
        entries = [entry for entry in plan.entries if entry.skill == chosen.skill and entry.model_id in chosen.models]
        yield chosen, entries


def _total(plan: Plan) -> str:
    untouched = f"; {counted(plan.untouched, 'component')} untouched" if plan.untouched else ""
    if not plan.entries:
        return f"Nothing to evaluate{untouched}"
    dry = ", as a dry run (no call is made)" if plan.dry_run else ""
    _, calls, cost = _size(plan.entries)
    caps = [entry.max_cost_usd for entry in plan.entries if entry.max_cost_usd is not None]
    cap = f", capped at ${sum(caps):,.2f}" if caps else ""
    return f"{counted(len(plan.entries), 'job')}, {calls} calls, {cost} at most{cap}{dry}{untouched}"


def _size(entries: Sequence[Entry]) -> tuple[str, str, str]:
    """Return the number of jobs, of calls, and the most they can cost."""
    cost = total_or_none(entry.cost_upper_usd for entry in entries)
    calls = sum(entry.calls for entry in entries)
    return f"{len(entries)}", f"{calls:,}", "unknown cost" if cost is None else f"${cost:,.2f}"


def _codes(names: Sequence[str]) -> str:
    return ", ".join(map(code_span, names))
