"""What a terminal shows of an audit: a finished result in, tables and lines out.

The models in one table, then what the grades rest on, each benchmark by itself, which model to take, and warnings.
"""

from collections.abc import Iterator

from rich.text import Text

from skill_evaluator.audit.findings.results import AuditResult
from skill_evaluator.audit.report.sheets import benchmark_grade_sheet, narrow_sheet
from skill_evaluator.audit.report.wording import (
    about_words,
    benchmark_words,
    cohort_words,
    neutrality_words,
    threshold_words,
)
from skill_evaluator.display.safe_text import visible
from skill_evaluator.display.sheets import Sheet

_MOST_RANKED = 3


def audit_pieces(result: AuditResult) -> Iterator[Sheet | Text]:
    """Yield what a terminal shows of an audit."""
    yield narrow_sheet(result)
    split = any(model.corrected is not None for model in result.models)
    corrected = "corrected: fluctuation without noise · " if split else ""
    about = about_words(result)
    legend = f"in brackets 95 % intervals, P: odds of the grade, over {about} · {corrected}drop: points below ability"
    yield Text(legend, style="dim")
    yield Text()
    yield Text(visible(threshold_words(result)))
    yield Text(visible(f"{cohort_words(result)}: {', '.join(result.cohort)}"))
    yield Text(f"scenarios: {neutrality_words(result.neutrality)}")
    if result.premise is not None:
        yield Text(visible(result.premise))
    if len(result.used) > 1:
        yield Text()
        yield benchmark_grade_sheet(result, [visible(used.name) for used in result.used])
        legend = "on each benchmark alone: grade among these models there, fluctuation, ability"
        noise = " · (noise): nothing is left without it" if split else ""
        yield Text(f"{legend}{noise}", style="dim")
        yield from (Text(visible(benchmark_words(used))) for used in result.used)
    for regime in result.regimes.values():
        yield Text()
        yield Text(visible(regime.title), style="bold")
        if not regime.ranked:
            yield Text(visible(f"  {regime.note}"))
        for place, ranked in enumerate(regime.ranked[:_MOST_RANKED], 1):
            yield Text(visible(f"  {place}. {ranked.model}: {ranked.reason}"))
    if result.warnings:
        yield Text()
    yield from (Text(visible(f"warning: {warning}"), style="yellow") for warning in result.warnings)
