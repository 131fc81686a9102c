"""The tables of an audit: a finished result in, sheets out."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from skill_evaluator.audit.findings.results import AuditResult, BenchmarkFigures, Carrier, Interval, ModelAudit
from skill_evaluator.audit.report.wording import (
    ablest_first,
    best_first,
    close_interval,
    fluctuation_words,
    likelihood,
    points,
    possible_grades,
    quartile_words,
    share,
    signed_points,
    with_interval,
)
from skill_evaluator.display import probability
from skill_evaluator.display.sheets import Cell, Sheet
from skill_evaluator.records.record import ANSWERED, SCORED

_ENOUGH = ("scenarios", "scenarios, 4 × the questions", "questions, these scenarios")
Column = tuple[str, Callable[[ModelAudit], Cell]]
_STYLES = {"safe default": "bold green", "avoid": "bold red", "strong but scenario-fragile": "yellow"}
_WORDS = frozenset({"model", "grade", "quadrant", "worst scenario", "worst in", "adjusted grade", "corrected grade"})


def model_sheet(result: AuditResult) -> Sheet:
    """Show every model, the best grade first, with cost and latency where they are known."""
    columns: list[Column] = [
        ("model", _name),
        ("ability", lambda model: Cell(with_interval(model.ability, model.ability_ci95))),
        ("fluctuation", lambda model: Cell(fluctuation_words(model))),
        ("grade", lambda model: _grade(model.grade)),
        ("P(grade)", lambda model: Cell(likelihood(model.odds))),
        ("corrected", lambda model: Cell(with_interval(model.corrected, model.corrected_ci95))),
        ("quadrant", _quadrant),
        ("worst scenario", _worst),
        ("drop", lambda model: Cell(points(model.worst.drop))),
    ]
    if any(model.usd_per_1000_right is not None for model in result.models):
        columns.append(("$ per 1,000 right", lambda model: Cell(_amount(model.usd_per_1000_right, "{:,.4f}"))))
    if any(model.latency_s is not None for model in result.models):
        columns.append(("latency", lambda model: Cell(_amount(model.latency_s, "{:.2f} s"))))
    return _by_model(columns, best_first(result))


def narrow_sheet(result: AuditResult) -> Sheet:
    """Show every model on a terminal of 120 columns: fewer digits and shorter headings."""
    split = any(model.corrected is not None for model in result.models)

    def fluctuation(model: ModelAudit) -> Cell:
        return Cell(close_interval(model.fluctuation, None if split else model.fluctuation_ci95, 2))

    columns: list[Column] = [
        ("model", _name),
        ("ability", lambda model: Cell(close_interval(model.ability, model.ability_ci95, 2))),
        ("fluctuation", fluctuation),
        ("grade", lambda model: _grade(model.grade)),
        ("P", lambda model: Cell(likelihood(model.odds))),
    ]
    if split:
        columns.append(("corrected", lambda model: Cell(close_interval(model.corrected, model.corrected_ci95, 2))))
    columns += [
        ("quadrant", _quadrant),
        ("worst in", _worst),
        ("drop", lambda model: Cell(points(model.worst.drop, 1))),
    ]
    sheet = _by_model(columns, best_first(result))
    return replace(sheet, whole=frozenset({"model", "grade", "P", "corrected", "drop"}))


def probability_sheet(result: AuditResult) -> Sheet:
    """Show how likely each grade is for each model."""
    possible = possible_grades(result.models)
    rows = [
        [_name(model), *(Cell(likelihood((model.grade_probability or {}).get(grade))) for grade in possible)]
        for model in best_first(result)
    ]
    return _numbered(["model", *possible], rows)


def score_sheet(result: AuditResult, scenarios: Sequence[str]) -> Sheet:
    """Show the score of each model in each scenario; `scenarios`: their names as this page writes them."""
    rows = [
        [_name(model), *(Cell(points(model.scenarios.get(name))) for name in result.scenarios)]
        for model in ablest_first(result)
    ]
    return _numbered(["model", *scenarios], rows)


def shift_sheet(result: AuditResult) -> Sheet:
    """Show how far each scenario moves all models, and whether that is beyond chance."""
    rows = [
        [
            Cell(shift.scenario, code=True),
            Cell(signed_points(shift.shift)),
            Cell(probability(shift.p)),
            Cell(probability(shift.q)),
            Cell("yes" if shift.significant else "no"),
        ]
        for shift in result.neutrality.shifts
    ]
    columns = ("scenario", "shift", "p", "q", "beyond chance")
    return Sheet(columns=columns, rows=rows, numbers=frozenset({"shift", "p", "q"}))


def adjusted_sheet(result: AuditResult) -> Sheet:
    """Show grades beside those that are left once each scenario's difficulty is taken out."""
    columns: list[Column] = [
        ("model", _name),
        ("fluctuation", lambda model: Cell(points(model.fluctuation))),
        ("adjusted", lambda model: Cell(points(model.adjusted.fluctuation))),
        ("grade", lambda model: _grade(model.grade)),
        ("adjusted grade", lambda model: _changed(model.grade, model.adjusted.grade)),
    ]
    return _by_model(columns, best_first(result))


def benchmark_grade_sheet(result: AuditResult, benchmarks: Sequence[str]) -> Sheet:
    """Show each model's grade over all benchmarks, and on each alone; `benchmarks`: as this page writes them."""
    rows = [
        [
            _name(model),
            _grade(model.grade),
            *(Cell(_grade_words(model.benchmarks.get(used.name))) for used in result.used),
        ]
        for model in best_first(result)
    ]
    return Sheet(columns=["model", "grade", *benchmarks], rows=rows, whole=frozenset({"model", "grade"}))


def _grade_words(figures: BenchmarkFigures | None) -> str:
    """Say grade, fluctuation and ability on one benchmark; a fluctuation that noise alone explains is said.

    >>> _grade_words(BenchmarkFigures(ability=66.7, fluctuation=2.67, grade="AA", corrected=0.0))
    'AA 2.67 (noise), 66.7'
    """
    if figures is None:
        return "–"
    grade = f"{figures.grade} " if figures.grade else ""
    noise = " (noise)" if figures.corrected == 0 and figures.fluctuation > 0 else ""
    return f"{grade}{points(figures.fluctuation)}{noise}, {points(figures.ability, 1)}"


def benchmark_sheet(result: AuditResult) -> Sheet:
    """Show every model on each benchmark alone, the steadiest there first."""
    on_it = ["ability", "fluctuation", "grade", "noise", "corrected", "corrected grade", "share"]
    columns = ["benchmark", "model", *on_it]
    rows = []
    for used in result.used:
        there = [model for model in best_first(result) if used.name in model.benchmarks]
        for model in sorted(there, key=lambda model: model.benchmarks[used.name].fluctuation):
            figures = model.benchmarks[used.name]
            rows.append(
                [
                    Cell(used.name, code=True),
                    _name(model),
                    *map(Cell, map(points, (figures.ability, figures.fluctuation))),
                    _grade(figures.grade),
                    *map(Cell, map(points, (figures.noise, figures.corrected))),
                    _changed(figures.grade, figures.corrected_grade),
                    Cell(share(model.shares.get(used.name))),
                ]
            )
    return Sheet(columns=columns, rows=rows, numbers=frozenset(columns) - _WORDS - {"benchmark"})


def answer_sheet(result: AuditResult) -> Sheet:
    """Show how many of each model's answers had which outcome; only outcomes that occur, scored ones first."""
    kinds = {kind for model in result.models for kind in model.answers or {}}
    ordered = sorted(kinds, key=lambda kind: (kind not in ANSWERED, kind != SCORED, kind))
    rows = [
        [_name(model), *(Cell("–" if model.answers is None else f"{model.answers.get(kind, 0):,}") for kind in ordered)]
        for model in best_first(result)
    ]
    return _numbered(["model", *ordered], rows)


def noise_sheet(result: AuditResult) -> Sheet:
    """Show the fluctuation as measured, the part that chance alone would give, and what is left."""
    columns: list[Column] = [
        ("model", _name),
        ("fluctuation", lambda model: Cell(fluctuation_words(model))),
        ("noise", lambda model: Cell(points(model.noise))),
        ("corrected", lambda model: Cell(with_interval(model.corrected, model.corrected_ci95))),
        ("grade", lambda model: _grade(model.grade)),
        ("corrected grade", lambda model: _changed(model.grade, model.corrected_grade)),
    ]
    return _by_model(columns, best_first(result))


def beyond_sheet(result: AuditResult) -> Sheet:
    """Show fluctuation and odds of the grade over other scenarios like these, beside those over these very ones."""
    here = result.resampled == "cases"

    def over(ci95: Interval | None, odds: float | None) -> list[Cell]:
        fluctuation = "–" if ci95 is None else f"{points(ci95[0])} to {points(ci95[1])}"
        return [Cell(fluctuation), Cell(likelihood(odds))]

    rows = []
    for model in best_first(result):
        row = [_name(model), _grade(model.grade), Cell(points(model.fluctuation))]
        row += over(model.fluctuation_ci95, model.odds) if here else []
        if model.beyond is None:
            row += over(None, None)
        else:
            row += over(model.beyond.fluctuation_ci95, model.odds_among(model.beyond.grade_probability))
        rows.append(row)
    these = ["these scenarios, 95 %", "P(grade)"] if here else []
    columns = ["model", "grade", "fluctuation", *these, "other scenarios, 95 %", "P(grade), others"]
    return Sheet(columns=columns, rows=rows, numbers=frozenset(columns[2:]), whole=frozenset({"model"}))


def carried_sheet(result: AuditResult) -> Sheet:
    """Show the fluctuations that one scenario carries, with and without it; no rows where none is."""
    rows = [
        [
            _name(model),
            Cell(carried.scenario, code=True),
            Cell(points(model.fluctuation)),
            Cell(points(carried.fluctuation)),
            _grade(model.grade),
            _changed(model.grade, carried.grade),
            Cell(probability(carried.p)),
            Cell(probability(carried.q)),
        ]
        for model in best_first(result)
        if (carried := model.carried) is not None
    ]
    columns = ("model", "carried by", "fluctuation", "without it", "grade", "grade without it", "p", "q")
    return Sheet(columns=columns, rows=rows, numbers=frozenset({"fluctuation", "without it", "p", "q"}))


def carrier_sheet(title: str, carriers: Sequence[Carrier]) -> Sheet:
    """Show scenarios or questions with their share of the fluctuation; the benchmark where there is one."""
    named = any(carrier.benchmark is not None for carrier in carriers)
    rows = []
    for carrier in carriers:
        benchmark = [Cell(carrier.benchmark or "–", code=carrier.benchmark is not None)] if named else []
        rows.append([Cell(carrier.name, code=True), *benchmark, Cell(share(carrier.share))])
    return Sheet(columns=[title, *(["benchmark"] if named else []), "share"], rows=rows, numbers=frozenset({"share"}))


def separation_sheet(result: AuditResult) -> Sheet:
    """Show what it takes to tell two models apart; a dash where the noise is not known."""
    rows = []
    for pair in result.separations:
        needed = [_count(pair.scenarios, "> 10,000"), "–", "–"]
        if result.noise_floor is not None:
            needed[1:] = _count(pair.scenarios_more_questions, "> 10,000"), _count(pair.questions, "no number")
        names = [Cell(pair.stable, code=True), Cell(pair.fragile, code=True)]
        rows.append([*names, Cell(probability(pair.p)), *map(Cell, needed)])
    columns = ("to tell", "from", "p of the difference seen", *_ENOUGH)
    return Sheet(columns=columns, rows=rows, numbers=frozenset(columns[2:]))


def _count(number: int | None, otherwise: str) -> str:
    return otherwise if number is None else f"{number:,}"


def used_sheet(result: AuditResult) -> Sheet:
    """Show the benchmarks with their weights and questions, where each one's grades end, and its noise."""
    columns = ("benchmark", "weight", "questions", "grades end at", "noise floor", "noise ceiling")
    rows = [
        [
            Cell(used.name, code=True),
            Cell(f"{used.weight:.4g}"),
            Cell(_amount(used.questions, "{:,}")),
            Cell(quartile_words(used.thresholds)),
            Cell(points(used.noise_floor)),
            Cell(points(used.noise_ceiling)),
        ]
        for used in result.used
    ]
    return Sheet(columns=columns, rows=rows, numbers=frozenset(columns[1:]))


def _by_model(columns: Sequence[Column], models: Sequence[ModelAudit]) -> Sheet:
    names = [name for name, _ in columns]
    rows = [[cell(model) for _, cell in columns] for model in models]
    return Sheet(columns=names, rows=rows, numbers=frozenset(names) - _WORDS, whole=frozenset({"model"}))


def _numbered(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Sheet:
    return Sheet(columns=columns, rows=rows, numbers=frozenset(columns[1:]), whole=frozenset({"model"}))


def _name(model: ModelAudit) -> Cell:
    return Cell(model.model, code=True)


def _quadrant(model: ModelAudit) -> Cell:
    return Cell("–") if model.quadrant is None else Cell(model.quadrant, _STYLES.get(model.quadrant, ""))


def _worst(model: ModelAudit) -> Cell:
    return Cell(model.worst.scenario, code=True)


def _grade(grade: str | None) -> Cell:
    return Cell("–") if grade is None else Cell(grade, code=True)


def _changed(before: str | None, after: str | None) -> Cell:
    """Return the cell of a second grade; on a terminal it stands out where it differs from the first."""
    return Cell("–") if after is None else Cell(after, "" if after == before else "yellow", code=True)


def _amount(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value)
