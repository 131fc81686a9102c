"""The page of an audit: what was found first, then what it rests on, with the charts and tables of its report."""

from collections.abc import Iterator
from typing import Any

from skill_evaluator.audit.findings.results import AuditResult
from skill_evaluator.audit.report.sheets import (
    adjusted_sheet,
    answer_sheet,
    benchmark_grade_sheet,
    benchmark_sheet,
    beyond_sheet,
    carried_sheet,
    carrier_sheet,
    model_sheet,
    noise_sheet,
    probability_sheet,
    score_sheet,
    separation_sheet,
    shift_sheet,
    used_sheet,
)
from skill_evaluator.audit.report.verdict import verdict_words
from skill_evaluator.audit.report.wording import (
    about_words,
    cohort_words,
    method_words,
    neutrality_words,
    threshold_words,
)
from skill_evaluator.display.pages import SiteBlock, sentence_block, sheet_block, word_block
from skill_evaluator.display.sheets import Sheet
from skill_evaluator.reports.site.blocks import drawn_block
from skill_evaluator.text import counted


def audit_page(name: str, result: AuditResult) -> dict[str, Any]:
    """Return all that the page of an audit shows: sections of words, tables and charts, in their order."""
    finding, why = verdict_words(result)
    return {
        "name": name,
        "finding": finding,
        "why": why,
        "facts": [
            ["Models", f"{len(result.cohort)}"],
            ["Scenarios", f"{len(result.scenarios)}"],
            ["Benchmarks", f"{len(result.used)}"],
            ["Answers to a question", "not known" if result.replicates is None else f"{result.replicates:,}"],
        ],
        "warnings": result.warnings,
        "regimes": [regime.model_dump(mode="json") for regime in result.regimes.values()],
        "sections": [
            {"title": title, "blocks": [block for block in blocks if block]}
            for title, blocks in (
                ("Ability and fluctuation", [*_models(result)]),
                ("Grades", [*_grades(result)]),
                ("Scenarios", [*_scenarios(result)]),
                ("Benchmarks", [*_benchmarks(result)]),
                ("What the fluctuation is made of", [*_fluctuation(result)]),
                ("How it was computed", [sentence_block(method_words(result))]),
            )
        ],
    }


def _models(result: AuditResult) -> Iterator[SiteBlock]:
    from skill_evaluator.audit.report.map import benchmark_map, overall_map

    yield word_block(
        "Ability: per cent right, the mean over the scenarios. Fluctuation: its spread over them, in points. "
        f"In brackets 95 % intervals; those of the fluctuation are over {about_words(result)}."
    )
    maps = {"all benchmarks": (overall_map(result), model_sheet(result))}
    if len(result.used) > 1:
        maps |= {one.name: (benchmark_map(result, one), benchmark_sheet(result)) for one in result.used}
    yield drawn_block("map", maps, "Map of")
    yield _table("Models, the best grade first", model_sheet(result))


def _grades(result: AuditResult) -> Iterator[SiteBlock]:
    from skill_evaluator.audit.report.pictures import odds_chart

    yield sentence_block([threshold_words(result), cohort_words(result), *([result.premise] if result.premise else [])])
    if any(model.grade_probability for model in result.models):
        yield drawn_block("odds", {"": (odds_chart(result), probability_sheet(result))})
    yield word_block("Grades once each scenario's difficulty, its mean over the models, is taken out:")
    yield _table("Grades without the scenarios' difficulty", adjusted_sheet(result))


def _scenarios(result: AuditResult) -> Iterator[SiteBlock]:
    from skill_evaluator.audit.report.pictures import heat_map, neutrality_chart

    scores = score_sheet(result, result.scenarios)
    yield drawn_block("heat", {"": (heat_map(result), scores)})
    yield word_block(f"Are the scenarios alike? {neutrality_words(result.neutrality)}.")
    if result.neutrality.means:
        yield drawn_block("neutrality", {"": (neutrality_chart(result), shift_sheet(result))})


def _benchmarks(result: AuditResult) -> Iterator[SiteBlock]:
    yield word_block(
        "A grade on one benchmark is among these models on that benchmark alone. "
        "(noise): nothing is left of the fluctuation without its noise, so that the grade says nothing."
    )
    yield _table("Benchmarks as they were used", used_sheet(result))
    yield _table(
        "Grade, fluctuation and ability on each benchmark",
        benchmark_grade_sheet(result, [used.name for used in result.used]),
    )
    yield _table("Every model on each benchmark alone", benchmark_sheet(result), fold=True)
    if any(model.answers for model in result.models):
        yield _table("What became of the answers", answer_sheet(result), fold=True)


def _fluctuation(result: AuditResult) -> Iterator[SiteBlock]:
    from skill_evaluator.audit.report.pictures import box_chart

    yield drawn_block("boxes", {"": (box_chart(result), score_sheet(result, result.scenarios))})
    yield _table("Fluctuation as measured, and without the noise of single answers", noise_sheet(result))
    yield _table("Fluctuations that one scenario carries", carried_sheet(result))
    if result.premise is not None:
        yield _table("Over other scenarios like these", beyond_sheet(result), fold=True)
    yield _table("What carries the fluctuation: scenarios", carrier_sheet("scenario", result.carriers), fold=True)
    yield _table("What carries the fluctuation: questions", carrier_sheet("question", result.cases), fold=True)
    yield _table("What it takes to tell two models apart", separation_sheet(result), fold=True)


def _table(caption: str, sheet: Sheet, *, fold: bool = False) -> SiteBlock:
    """Return a table; nothing for one without rows."""
    return sheet_block(caption, sheet, folded=fold) if sheet.rows else {}


def audit_rows(name: str, result: AuditResult) -> dict[str, Any]:
    """Return an audit's line in the list of audits."""
    return {"name": name, "models": counted(len(result.cohort), "model")}
