"""An audit for a terminal: the models in one table, then what the grades rest on, and what to beware of."""

from collections.abc import Iterator

from rich.text import Text

from skill_evaluator.audit.results import AuditResult, Regime
from skill_evaluator.reports.audit_sheets import narrow_sheet
from skill_evaluator.reports.audit_wording import cohort_words, neutrality_words, threshold_words
from skill_evaluator.reports.sheets import Sheet, show
from skill_evaluator.reports.shown import visible

_PLACES = 3


def print_table(result: AuditResult) -> None:
    """Write it to stdout."""
    show(_text(result))


def _text(result: AuditResult) -> Iterator[Sheet | Text]:
    yield narrow_sheet(result)
    yield Text(_legend(result), style="dim")
    yield Text()
    yield Text(visible(threshold_words(result)))
    yield Text(visible(f"{cohort_words(result)}: {', '.join(result.cohort)}"))
    yield Text(f"scenarios: {neutrality_words(result.neutrality)}")
    for regime in result.regimes.values():
        yield Text()
        yield from _regime(regime)
    if result.warnings:
        yield Text()
    yield from (Text(visible(f"warning: {one}"), style="yellow") for one in result.warnings)


def _legend(result: AuditResult) -> str:
    split = any(one.corrected is not None for one in result.models)
    corrected = "corrected: fluctuation without noise · " if split else ""
    return f"in brackets 95 % intervals · P: odds of the grade · {corrected}drop: points below ability"


def _regime(regime: Regime) -> Iterator[Text]:
    yield Text(visible(regime.title), style="bold")
    if not regime.ranked:
        yield Text(visible(f"  {regime.note}"))
    for place, one in enumerate(regime.ranked[:_PLACES], 1):
        yield Text(visible(f"  {place}. {one.model}: {one.reason}"))
