"""An audit as one list of blocks: what to take first, then what that rests on, scenario by scenario and by benchmark.

A finished result in; a terminal, a page of Markdown, the site's data and the files of its charts come of the same list.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from skill_evaluator.audit.cube import write_cube
from skill_evaluator.audit.findings.auditing import ReportedAudit
from skill_evaluator.audit.report.wording import (
    ablest_first,
    about_words,
    best_first,
    finding_words,
    fluctuation_words,
    likelihood,
    points,
    possible_grades,
    quartile_words,
    signed_points,
    with_interval,
)
from skill_evaluator.audit.results import REPORTED, AuditResult, BenchmarkFigures, BenchmarkUsed, ModelAudit, Quadrant
from skill_evaluator.display import probability
from skill_evaluator.display.pages import (
    Block,
    Captioned,
    Chart,
    Drawing,
    Fold,
    Heading,
    Line,
    Lines,
    Only,
    Page,
    Section,
    draw_charts,
    print_page,
    quadrant_chart,
    site_sections,
)
from skill_evaluator.display.safe_text import visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, cells_of
from skill_evaluator.errors import AuditError
from skill_evaluator.files import json_text, replace_text
from skill_evaluator.runner.runs import check_writable, slug
from skill_evaluator.text import counted

REPORT, CHARTS = "report.md", "charts"
INSTALL = "pip install altair vl-convert-python"
_LONGEST = 60  # characters of a benchmark in the name of a file
_MOST_RANKED, _MOST_POINTS = 5, 40
_CORNERS: Sequence[Quadrant] = ("strong but scenario-fragile", "avoid", "predictable baseline", "safe default")
_STYLES = {"safe default": "bold green", "avoid": "bold red", "strong but scenario-fragile": "yellow"}
_SHIFTS = ("scenario", "shift", "p", "q", "beyond chance")
_WORDS = frozenset({"model", "grade", "quadrant", "worst in", "corrected grade"})
Column = tuple[str, Callable[[ModelAudit], Cell]]


def print_audit(result: AuditResult, form: Format) -> None:
    """Print an audit to stdout; a page that is printed has no charts beside it."""
    print_page(form, json=lambda: result.model_dump(mode="json"), page=lambda: audit_page(result))


def audit_page(result: AuditResult) -> Page:
    """Return the page of an audit."""
    sections = {
        "the conclusions": _conclusions,
        "which model to take": _choices,
        "what the grades rest on": _premises,
        "the scenarios": _scenarios,
        "the benchmarks": _benchmarks,
        "the fluctuation": _fluctuation,
        "how it was computed": _method,
    }
    return Page([Section(name=name, blocks=list(blocks(result))) for name, blocks in sections.items()])


def site_audit(name: str, result: AuditResult) -> dict[str, Any]:
    """Return what the site's page of an audit shows: what was found, then the blocks of the page."""
    finding, why = finding_words(result)
    replicates = "not known" if result.replicates is None else f"{result.replicates:,}"
    facts = {
        "Models": f"{len(result.cohort)}",
        "Scenarios": f"{len(result.scenarios)}",
        "Benchmarks": f"{len(result.used)}",
        "Answers to a question": replicates,
    }
    sections = site_sections(audit_page(result).blocks)
    return {"name": name, "finding": finding, "why": why, "facts": list(map(list, facts.items())), "sections": sections}


def write_audit(reported: ReportedAudit) -> list[Path]:
    """Write page, result, charts and cube where they belong, and return their paths; warn of what cannot be drawn."""
    out, page = reported.out, audit_page(reported.result)
    if out is None:
        return []
    check_writable(out, "--out DIR")
    charts = [out / CHARTS]
    try:
        draw(page, out / CHARTS)
    except AuditError as problem:
        print(f"warning: {problem}", file=sys.stderr)
        charts = []
    replace_text(out / REPORT, page.markdown(CHARTS if charts else ""))
    replace_text(out / REPORTED, json_text(reported.result.model_dump(mode="json")))
    return [out / REPORT, out / REPORTED, *charts, *write_cube(reported.cube, out)]


def draw(page: Page, folder: Path) -> list[Path]:
    """Write every chart; raise AuditError where the extra is not installed, StorageError when the system refuses."""
    try:
        drawings = draw_charts(page.blocks)
    except ImportError as problem:
        raise AuditError(f"charts need libraries that do not load ({problem}): {INSTALL}") from problem
    for name, drawing in drawings.items():
        replace_text(folder / name, drawing)
    return [folder / name for name in drawings]


def _conclusions(result: AuditResult) -> Iterator[Block]:
    finding, why = finding_words(result)
    first = [Heading("Stability audit", level=2), Line(Cell(finding, "bold"), ": ", why)]
    yield Only(("terminal", "markdown"), first)  # the site begins with both
    yield Only(("site",), [Heading("Ability and fluctuation")])
    yield Lines([f"warning: {warning}" for warning in result.warnings], style="yellow")
    abilities = [model.ability for model in result.models]
    fluctuations = [model.fluctuation for model in result.models]
    ranges = (
        f"ability {points(min(abilities))} to {points(max(abilities))}, "
        f"fluctuation {points(min(fluctuations))} to {points(max(fluctuations))}"
    )
    words = f"Map of {counted(len(result.models), 'model')}, ability across and fluctuation up: {ranges}"
    columns: list[Column] = [
        ("model", _name),
        ("ability", lambda model: Cell(with_interval(model.ability, model.ability_ci95))),
        ("fluctuation", lambda model: Cell(fluctuation_words(model))),
        ("grade", lambda model: _grade(model.grade)),
        ("P", lambda model: Cell(likelihood(model.odds))),
        ("quadrant", lambda model: Cell(model.quadrant or "–", _STYLES.get(model.quadrant or "", ""))),
        ("worst in", lambda model: Cell(model.worst.scenario, code=True)),
        ("drop", lambda model: Cell(points(model.worst.drop))),
    ]
    models = _by_model(columns, best_first(result))
    drawing = Drawing(file="map.svg", words=words, draw=_drawn_by("overall_map", result), figures=models)
    mermaid = ""
    if result.medians is not None:  # where the quadrants meet
        axes = ("ability, % right:", "fluctuation, points:")
        middle = (result.medians.ability, result.medians.fluctuation)
        shown = {model.model: (model.ability, model.fluctuation) for model in result.models[:_MOST_POINTS]}
        mermaid = quadrant_chart(axes, _CORNERS, middle, shown)
    yield Chart("map", [drawing], mermaid=mermaid)
    note = (
        "Ability: % right, mean over the scenarios; fluctuation: its spread over them, in points; drop: how far the "
        "score in the worst scenario is below the ability. In brackets 95 % intervals; those of the fluctuation and P, "
        f"the odds of the grade, are over {about_words(result)}."
    )
    yield Captioned(models, "Models, the best grade first", note)


def _choices(result: AuditResult) -> Iterator[Block]:
    if result.regimes:
        yield Heading("Which model to take")
    for regime in result.regimes.values():
        yield Line(Cell(regime.title, "bold"), *([": ", regime.note] if regime.note else []))
        yield Lines([f"{item.model}: {item.reason}" for item in regime.ranked[:_MOST_RANKED]], "1.")
        more = len(regime.ranked) - _MOST_RANKED
        if more > 0:
            yield Line(f"and {more} more")
    priced = [model for model in best_first(result) if model.usd_per_1000_right is not None or model.latency_s]
    columns: list[Column] = [
        ("model", _name),
        (
            "$ per 1,000 right",
            lambda model: Cell("–" if model.usd_per_1000_right is None else f"{model.usd_per_1000_right:,.4f}"),
        ),
        ("latency", lambda model: Cell("–" if model.latency_s is None else f"{model.latency_s:.2f} s")),
    ]
    yield Captioned(_by_model(columns, priced), "Cost of right answers, and latency")


def _premises(result: AuditResult) -> Iterator[Block]:
    yield Heading("What the grades rest on")
    cuts, medians = result.thresholds, result.medians
    words = "no thresholds" if cuts is None else f"thresholds of the fluctuation: {quartile_words(cuts)}"
    if medians is None:
        words += "; no medians"
    else:
        words += f"; medians: ability {points(medians.ability)}, fluctuation {points(medians.fluctuation)}"
    cohort = f"cohort, to which all grades are relative: {counted(len(result.cohort), 'model')}"
    yield Lines([words, cohort, *([result.premise] if result.premise else [])], "-")
    possible = possible_grades(result.models)
    if possible:
        rows = [
            [_name(model), *(Cell(likelihood((model.grade_probability or {}).get(grade))) for grade in possible)]
            for model in best_first(result)
        ]
        odds = Drawing(
            file="odds.svg",
            words=f"Probability of each grade of {counted(len(result.models), 'model')}",
            draw=_drawn_by("odds_chart", result),
            figures=_named_columns(possible, rows),
        )
        yield Chart("odds", [odds], caption="Probability of each grade")


def _scenarios(result: AuditResult) -> Iterator[Block]:
    models, scenarios = counted(len(result.models), "model"), counted(len(result.scenarios), "scenario")
    yield Heading("Scenarios")
    scores = _score_sheet(result)
    title = f"Heat map of {models} in {scenarios}: each score against the model's ability"
    yield Chart("heat", [Drawing(file="heat.svg", words=title, draw=_drawn_by("heat_map", result), figures=scores)])
    yield Fold("Score of each model in each scenario, % right", [scores])
    found, means = result.neutrality, result.neutrality.means
    tau = None if found.trend_tau is None else signed_points(found.trend_tau)
    tests = {"trend τ": tau, "trend p": found.trend_p, "any difference p": found.friedman_p}
    words = [
        f", {name} {value if isinstance(value, str) else probability(value)}"
        for name, value in tests.items()
        if value is not None
    ]
    ranged = f"range of their means {points(found.range)} points"
    yield Line(f"Are the scenarios alike? {found.verdict}; {ranged}{''.join(words)}.")
    shifts = []
    for shift in found.shifts:
        figures = (signed_points(shift.shift), probability(shift.p), probability(shift.q))
        shifts.append(cells_of([shift.scenario], *figures, "yes" if shift.significant else "no"))
    ends = f", from {points(min(means))} to {points(max(means))}" if means else ""
    neutrality = Drawing(
        file="neutrality.svg",
        words=f"Mean over the models in each of {scenarios}{ends}",
        draw=_drawn_by("neutrality_chart", result),
        figures=Sheet(columns=_SHIFTS, rows=shifts, numbers=frozenset({"shift", "p", "q"})),
    )
    yield Chart("neutrality", [neutrality] if means else [], caption="How far each scenario moves all models")


def _benchmarks(result: AuditResult) -> Iterator[Block]:
    yield Heading("Benchmarks")
    yield Lines([_benchmark_words(used) for used in result.used], "-")
    if len(result.used) < 2:
        return
    names = [used.name for used in result.used]
    rows = [
        [_name(model), _grade(model.grade), *(Cell(_on_benchmark(model.benchmarks.get(name))) for name in names)]
        for model in best_first(result)
    ]
    columns, whole = ["model", "grade", *names], frozenset({"model", "grade"})
    grades = Sheet(columns=columns, rows=rows, whole=whole, named=frozenset(names))
    note = (
        "Grade, fluctuation and ability; a grade on one benchmark is among these models there. (noise): nothing is "
        "left of the fluctuation without its noise, so that the grade says nothing."
    )
    yield Captioned(grades, "Grades on each benchmark alone", note)
    maps = [
        Drawing(
            file=file,
            words=f"Map on {used.name}: ability across and fluctuation up",
            draw=_drawn_by("benchmark_map", result, used),
            figures=grades,
            label=used.name,
        )
        for used, file in zip(result.used, map_names(names), strict=True)
    ]
    yield Chart("benchmark", maps, choice="Map on")


def _fluctuation(result: AuditResult) -> Iterator[Block]:
    yield Heading("Fluctuation")
    words = f"Spread of {counted(len(result.models), 'model')} over the scenarios, the ablest on top"
    boxes = Drawing(file="boxes.svg", words=words, draw=_drawn_by("box_chart", result), figures=_score_sheet(result))
    yield Chart("boxes", [boxes])
    floor, ceiling = result.noise_floor, result.noise_ceiling
    lines = [] if floor is None else [f"noise floor {points(floor)}, as single answers tell"]
    lines += [] if ceiling is None else [f"noise ceiling {points(ceiling)}, as if every answer had been drawn anew"]
    noise = "; ".join(lines) or "not known without single answers, or --questions"
    yield Line(f"What noise alone would give a typical model: {noise}.")
    columns: list[Column] = [
        ("model", _name),
        ("fluctuation", lambda model: Cell(fluctuation_words(model))),
        ("noise", lambda model: Cell(points(model.noise))),
        ("corrected", lambda model: Cell(with_interval(model.corrected, model.corrected_ci95))),
        ("grade", lambda model: _grade(model.grade)),
        ("corrected grade", lambda model: _grade(model.corrected_grade, model.grade)),
    ]
    known = [model for model in best_first(result) if model.noise is not None]
    yield Captioned(_by_model(columns, known), "Fluctuation as measured, and without the noise of single answers")


def _method(result: AuditResult) -> Iterator[Block]:
    """Say what was asked, what was left out of it, and what the intervals and odds rest on."""
    replicates = "not known" if result.replicates is None else f"{result.replicates:,}"
    resampled = {"both": "other scenarios and cases", "cases": "other cases, but no other scenarios,"}
    facts = [
        f"models: {', '.join(result.cohort)}",
        f"scenarios: {', '.join(result.scenarios)}",
        f"answers to a question (replicates): {replicates}",
        f"left out of what was measured: {result.treatment or 'nothing'}",
        f"intervals: as if {resampled.get(result.resampled, 'other scenarios')} had been drawn",
    ]
    if any(model.grade_probability for model in result.models):
        facts.append(f"odds of the grades: from {result.draws:,} draws of the models' true fluctuations")
    yield Heading("How it was computed")
    yield Lines(facts, "-")


def _score_sheet(result: AuditResult) -> Sheet:
    rows = [
        [_name(model), *(Cell(points(model.scenarios.get(name))) for name in result.scenarios)]
        for model in ablest_first(result)
    ]
    return _named_columns(result.scenarios, rows)


def _benchmark_words(used: BenchmarkUsed) -> str:
    """Say how a benchmark counts, where its grades end, and what noise alone would give."""
    facts = [f"weight {used.weight:.4g}"]
    facts += [] if used.questions is None else [counted(used.questions, "question")]
    facts += ["no thresholds" if used.thresholds is None else f"grades end at {quartile_words(used.thresholds)}"]
    noise = {"floor": used.noise_floor, "ceiling": used.noise_ceiling}
    return f"{used.name}: {'; '.join([*facts, *(f'noise {name} {points(at)}' for name, at in noise.items() if at)])}"


def _on_benchmark(figures: BenchmarkFigures | None) -> str:
    """Say grade, fluctuation and ability on one benchmark, and whether noise alone explains the fluctuation.

    >>> _on_benchmark(BenchmarkFigures(ability=66.7, fluctuation=2.67, grade="AA", corrected=0.0))
    'AA 2.67 (noise), 66.7'
    """
    if figures is None:
        return "–"
    grade = f"{figures.grade} " if figures.grade else ""
    noise = " (noise)" if figures.corrected == 0 and figures.fluctuation > 0 else ""
    return f"{grade}{points(figures.fluctuation)}{noise}, {points(figures.ability, 1)}"


def _by_model(columns: Sequence[Column], models: Sequence[ModelAudit]) -> Sheet:
    names = [name for name, _ in columns]
    rows = [[cell(model) for _, cell in columns] for model in models]
    return Sheet(columns=names, rows=rows, numbers=frozenset(names) - _WORDS, whole=frozenset({"model", "grade"}))


def _named_columns(names: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Sheet:
    named = frozenset(names)
    return Sheet(columns=["model", *names], rows=rows, numbers=named, named=named, whole=frozenset({"model"}))


def _name(model: ModelAudit) -> Cell:
    return Cell(model.model, code=True)


def _grade(grade: str | None, before: str | None = None) -> Cell:
    """Return the cell of a grade; on a terminal a second grade stands out where it differs from the first."""
    return Cell("–") if grade is None else Cell(grade, "" if before in (None, grade) else "yellow", code=True)


def _drawn_by(name: str, *about: object) -> Callable[[], Any]:
    """Return what draws a chart; the libraries that do are imported then."""

    def draw_late() -> Any:
        from skill_evaluator.audit.report import charts

        return getattr(charts, name)(*about)

    return draw_late


def map_names(benchmarks: Sequence[str]) -> list[str]:
    """List the names of the benchmarks' maps, each different whatever the benchmarks are called.

    >>> map_names(["GPQA", "gpqa"])
    ['map-gpqa.svg', 'map-gpqa-2.svg']
    """
    names: list[str] = []
    for place, benchmark in enumerate(benchmarks, 1):
        start = f"map-{slug(visible(benchmark)).lower()[:_LONGEST]}"
        names.append(f"{start}.svg" if f"{start}.svg" not in names else f"{start}-{place}.svg")
    return names
