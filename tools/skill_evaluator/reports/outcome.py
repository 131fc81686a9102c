"""The outcome of a plan of CI → text, Markdown or JSON: a job's page, a comment on a pull request, or a terminal."""

from collections.abc import Callable, Iterator

from rich.text import Text

from skill_evaluator.ci.collecting import Figures, Outcome, RunOutcome
from skill_evaluator.display import number
from skill_evaluator.display.safe_text import abridged, code_span, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, print_result
from skill_evaluator.reports.comparison import MARKS, comparison_markdown
from skill_evaluator.text import counted
from skill_evaluator.verdicts.rules import WORST_FIRST

_LONGEST = 300
_MOST_ROWS = 300
_MOST_NAMED = 10
_NO_VERDICT, _NOT_MEASURED = "–", "not measured"
_MEANINGS = {  # the worst first
    "regressed": (MARKS["regressed"], "**regressed**, worse than the recorded version"),
    _NOT_MEASURED: ("!", "**not measured** in full, so nothing is said"),
    "inconclusive": (MARKS["inconclusive"], "**inconclusive**, a drop is neither shown nor ruled out"),
    "incomparable": (MARKS["incomparable"], "**incomparable**, not measured as the recorded version was"),
    "improved": (MARKS["improved"], "**improved**, better than the recorded version"),
    "unchanged": (MARKS["unchanged"], "**unchanged**, a drop beyond what is tolerated is ruled out"),
    _NO_VERDICT: (_NO_VERDICT, "no lower version is recorded to compare with"),
}
_COLUMNS = ("component", "model", "version", "metric", "strict mean", "verdict", "agreement", "calls", "cost", "")


def print_outcome(outcome: Outcome, form: Format) -> None:
    """Print an outcome to stdout."""
    print_result(
        form,
        json=lambda: outcome.model_dump(mode="json"),
        markdown=lambda: outcome_markdown(outcome),
        text=lambda: _text(outcome),
    )


def _text(outcome: Outcome) -> Iterator[Sheet | Text]:
    rows = [
        (run.skill, run.model_id, *_cells(run, _verdict(outcome, run), visible), _remark(run)) for run in outcome.runs
    ]
    yield Sheet(columns=_COLUMNS, rows=[[Cell(text) for text in row] for row in rows])


def outcome_markdown(outcome: Outcome, published: bool = True) -> str:
    """Return the page of an outcome; text from outside is never taken for mark-up."""
    lines = ["## Evaluation", "", *_conclusions(outcome), _summary(outcome), ""]
    if not published:
        lines += ["**Not every record reached its branch**; the job that collects them says why.", ""]
    if outcome.reason:
        lines += [f"Reason: {code_span(outcome.reason)}", ""]
    if outcome.runs:
        lines += [f"| {' | '.join(_COLUMNS)} |", f"|{'---|' * len(_COLUMNS)}"]
    for run in outcome.runs[:_MOST_ROWS]:
        cells = [
            code_span(run.skill),
            code_span(run.model_id),
            *_cells(run, _verdict(outcome, run), code_span),
            code_span(_remark(run)) if _remark(run) else "",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    if len(outcome.runs) > _MOST_ROWS:
        lines += ["", f"… and {len(outcome.runs) - _MOST_ROWS} more."]
    worst_first = sorted(
        outcome.verdicts, key=lambda result: WORST_FIRST.index(result.verdict)
    )  # what is cut comes last
    lines += [page for verdict in worst_first for page in ("", comparison_markdown(verdict))]
    return "\n".join(lines) + "\n"


def _conclusions(outcome: Outcome) -> list[str]:
    """Return a line for each verdict, the worst first, with the runs it is on."""
    by_verdict: dict[str, list[RunOutcome]] = {}
    for run in outcome.runs:
        verdict = _verdict(outcome, run) if run.status == "complete" else _NOT_MEASURED
        by_verdict.setdefault(verdict, []).append(run)
    lines = []
    for verdict, (mark, meaning) in _MEANINGS.items():
        runs = by_verdict.get(verdict, [])
        names = [f"{code_span(run.skill)} on {code_span(run.model_id)}" for run in runs[:_MOST_NAMED]]
        more = [f"{len(runs) - _MOST_NAMED} more"] if len(runs) > _MOST_NAMED else []
        lines += [f"- {mark} {meaning}: {', '.join([*names, *more])}"] if runs else []
    return [*lines, ""] if lines else []


def _summary(outcome: Outcome) -> str:
    if not outcome.runs:
        return "Nothing was to be evaluated."
    counts = {
        status: sum(run.status == status for run in outcome.runs)
        for status in ("complete", "incomplete", "missing", "skipped")
    }
    parts = [f"{count} {status}" for status, count in counts.items() if count]
    planned, scored = sum(run.planned for run in outcome.runs), sum(run.scored for run in outcome.runs)
    failed = sum(sum(run.failed.values()) for run in outcome.runs)
    calls = f"{planned:,} calls planned: {scored:,} scored, {failed:,} failed, {planned - scored - failed:,} not run"
    return f"{counted(len(outcome.runs), 'run')} ({', '.join(parts)}); {calls}."


def _verdict(outcome: Outcome, run: RunOutcome) -> str:
    return outcome.verdict_on(run) or _NO_VERDICT


def _cells(run: RunOutcome, verdict: str, quoted: Callable[[str], str]) -> tuple[str, ...]:
    figures = run.figures
    return (
        quoted(figures.skill_version) if figures else "–",
        quoted(run.primary_metric) if run.primary_metric else "–",
        _with_interval(figures),
        verdict,
        number(figures.reproducibility if figures else None),
        f"{run.scored}/{run.planned}",
        "–" if run.cost_usd is None else f"${run.cost_usd:,.4f}",
    )


def _with_interval(figures: Figures | None) -> str:
    if figures is None:
        return "–"
    interval = f" ({number(figures.ci95[0])} to {number(figures.ci95[1])})" if figures.ci95 else ""
    return number(figures.accuracy) + interval


def _remark(run: RunOutcome) -> str:
    failed = ", ".join(f"{count} {kind}" for kind, count in run.failed.items())
    words = [] if run.status == "complete" else [run.status.upper()]
    return "; ".join([*words, *filter(None, (failed, abridged(run.reason, _LONGEST)))])
