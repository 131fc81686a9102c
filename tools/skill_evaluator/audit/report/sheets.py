"""The tables of an audit, for a terminal and a page: a finished result in, sheets out.

An audit for a terminal: the models in one table, then what the grades rest on, and what to beware of.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from rich.text import Text

from skill_evaluator.audit.findings.results import AuditResult, Carrier, ModelAudit, Regime
from skill_evaluator.audit.report.wording import (
    ablest_first,
    best_first,
    close_interval,
    cohort_words,
    likelihood,
    neutrality_words,
    points,
    possible_grades,
    share,
    signed_points,
    threshold_words,
    with_interval,
)
from skill_evaluator.display import probability
from skill_evaluator.display.safe_text import visible
from skill_evaluator.display.sheets import Cell, Sheet
from skill_evaluator.records.strict_score import ANSWERED, SCORED

_ENOUGH = ("scenarios", "scenarios, 4 × the questions", "questions, these scenarios")
Column = tuple[str, Callable[[ModelAudit], Cell]]
_STYLES = {"safe default": "bold green", "avoid": "bold red", "strong but scenario-fragile": "yellow"}
_WORDS = frozenset({"model", "grade", "quadrant", "worst scenario", "worst in", "adjusted grade", "corrected grade"})


def model_sheet(result: AuditResult) -> Sheet:
    """Every model, the best grade first, with cost and latency where they are known."""
    columns: list[Column] = [
        ("model", _name),
        ("ability", lambda one: Cell(with_interval(one.ability, one.ability_ci95))),
        ("fluctuation", lambda one: Cell(with_interval(one.fluctuation, one.fluctuation_ci95))),
        ("grade", lambda one: _said(one.grade)),
        ("P(grade)", lambda one: Cell(likelihood(one.odds))),
        ("corrected", lambda one: Cell(points(one.corrected))),
        ("quadrant", _quadrant),
        ("worst scenario", _worst),
        ("drop", lambda one: Cell(points(one.worst.drop))),
    ]
    if any(one.usd_per_1000_right is not None for one in result.models):
        columns.append(("$ per 1,000 right", lambda one: Cell(_amount(one.usd_per_1000_right, "{:,.4f}"))))
    if any(one.latency_s is not None for one in result.models):
        columns.append(("latency", lambda one: Cell(_amount(one.latency_s, "{:.2f} s"))))
    return _by_model(columns, best_first(result))


def narrow_sheet(result: AuditResult) -> Sheet:
    """The same for a terminal of 120 columns: fewer digits and shorter headings."""
    columns: list[Column] = [
        ("model", _name),
        ("ability", lambda one: Cell(close_interval(one.ability, one.ability_ci95, 2))),
        ("fluctuation", lambda one: Cell(close_interval(one.fluctuation, one.fluctuation_ci95, 2))),
        ("grade", lambda one: _said(one.grade)),
        ("P", lambda one: Cell(likelihood(one.odds))),
    ]
    if any(one.corrected is not None for one in result.models):
        columns.append(("corrected", lambda one: Cell(points(one.corrected))))
    columns += [
        ("quadrant", _quadrant),
        ("worst in", _worst),
        ("drop", lambda one: Cell(points(one.worst.drop, 1))),
    ]
    sheet = _by_model(columns, best_first(result))
    return replace(sheet, whole=frozenset({"model", "grade", "P", "corrected", "drop"}))


def probability_sheet(result: AuditResult) -> Sheet:
    """How likely each grade is for each model."""
    possible = possible_grades(result.models)
    rows = [
        [_name(one), *(Cell(likelihood((one.grade_probability or {}).get(grade))) for grade in possible)]
        for one in best_first(result)
    ]
    return _numbered(["model", *possible], rows)


def score_sheet(result: AuditResult, scenarios: Sequence[str]) -> Sheet:
    """What the heat map shows, in figures; `scenarios`: their names as this page writes them."""
    rows = [
        [_name(one), *(Cell(points(one.scenarios.get(name))) for name in result.scenarios)]
        for one in ablest_first(result)
    ]
    return _numbered(["model", *scenarios], rows)


def shift_sheet(result: AuditResult) -> Sheet:
    """Scenarios that move all models alike."""
    rows = [
        [
            Cell(one.scenario, code=True),
            Cell(signed_points(one.shift)),
            Cell(probability(one.p)),
            Cell(probability(one.q)),
            Cell("yes" if one.significant else "no"),
        ]
        for one in result.neutrality.shifts
    ]
    columns = ("scenario", "shift", "p", "q", "beyond chance")
    return Sheet(columns=columns, rows=rows, numbers=frozenset({"shift", "p", "q"}))


def adjusted_sheet(result: AuditResult) -> Sheet:
    """Grades beside those that are left once each scenario's difficulty is taken out."""
    columns: list[Column] = [
        ("model", _name),
        ("fluctuation", lambda one: Cell(points(one.fluctuation))),
        ("adjusted", lambda one: Cell(points(one.adjusted.fluctuation))),
        ("grade", lambda one: _said(one.grade)),
        ("adjusted grade", lambda one: _changed(one.grade, one.adjusted.grade)),
    ]
    return _by_model(columns, best_first(result))


def benchmark_sheet(result: AuditResult, names: Sequence[str]) -> Sheet:
    """Ability, fluctuation and share of the variance by benchmark; `names`: as this page writes them."""
    columns = ["model", *(f"{name}: {figure}" for name in names for figure in ("ability", "fluctuation", "share"))]
    rows = [
        [_name(one), *(cell for used in result.used for cell in _on_benchmark(one, used.name))]
        for one in best_first(result)
    ]
    return _numbered(columns, rows)


def _on_benchmark(one: ModelAudit, benchmark: str) -> list[Cell]:
    figures = one.benchmarks.get(benchmark)
    return [
        Cell(points(None if figures is None else figures.ability)),
        Cell(points(None if figures is None else figures.fluctuation)),
        Cell(share(one.shares.get(benchmark))),
    ]


def answer_sheet(result: AuditResult) -> Sheet:
    """What became of each model's answers; the kinds that occur, those that were scored first."""
    found = {kind for one in result.models for kind in one.answers or {}}
    kinds = sorted(found, key=lambda kind: (kind not in ANSWERED, kind != SCORED, kind))
    columns: list[Column] = [("model", _name), *((kind, _times(kind)) for kind in kinds)]
    return _by_model(columns, best_first(result))


def _times(kind: str) -> Callable[[ModelAudit], Cell]:
    return lambda one: Cell("–" if one.answers is None else f"{one.answers.get(kind, 0):,}")


def noise_sheet(result: AuditResult) -> Sheet:
    """The fluctuation as measured, what of it chance alone would give, and what is left."""
    columns: list[Column] = [
        ("model", _name),
        ("fluctuation", lambda one: Cell(with_interval(one.fluctuation, one.fluctuation_ci95))),
        ("noise", lambda one: Cell(points(one.noise))),
        ("corrected", lambda one: Cell(with_interval(one.corrected, one.corrected_ci95))),
        ("grade", lambda one: _said(one.grade)),
        ("corrected grade", lambda one: _changed(one.grade, one.corrected_grade)),
    ]
    return _by_model(columns, best_first(result))


def carrier_sheet(title: str, carriers: Sequence[Carrier]) -> Sheet:
    """Scenarios or questions with their share of the fluctuation; the benchmark where there is one."""
    named = any(one.benchmark is not None for one in carriers)
    rows = []
    for one in carriers:
        benchmark = [Cell(one.benchmark or "–", code=one.benchmark is not None)] if named else []
        rows.append([Cell(one.name, code=True), *benchmark, Cell(share(one.share))])
    return Sheet(columns=[title, *(["benchmark"] if named else []), "share"], rows=rows, numbers=frozenset({"share"}))


def separation_sheet(result: AuditResult) -> Sheet:
    """What it takes to tell two models apart; a dash where the noise is not known."""
    known = result.noise_floor is not None
    rows = [
        [
            Cell(one.stable, code=True),
            Cell(one.fragile, code=True),
            Cell(probability(one.p)),
            Cell(_enough(one.scenarios, "> 10,000")),
            Cell(_enough(one.scenarios_more_questions, "> 10,000") if known else "–"),
            Cell(_enough(one.questions, "no number") if known else "–"),
        ]
        for one in result.separations
    ]
    columns = ("to tell", "from", "p of the difference seen", *_ENOUGH)
    return Sheet(columns=columns, rows=rows, numbers=frozenset(columns[2:]))


def _enough(number: int | None, otherwise: str) -> str:
    return otherwise if number is None else f"{number:,}"


def used_sheet(result: AuditResult) -> Sheet:
    """The benchmarks, what they weigh and how long they are."""
    rows = [
        [Cell(one.name, code=True), Cell(f"{one.weight:.4g}"), Cell(_amount(one.questions, "{:,}"))]
        for one in result.used
    ]
    return Sheet(columns=("benchmark", "weight", "questions"), rows=rows, numbers=frozenset({"weight", "questions"}))


def _by_model(columns: Sequence[Column], models: Sequence[ModelAudit]) -> Sheet:
    names = [name for name, _ in columns]
    rows = [[cell(one) for _, cell in columns] for one in models]
    return Sheet(columns=names, rows=rows, numbers=frozenset(names) - _WORDS, whole=frozenset({"model"}))


def _numbered(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Sheet:
    return Sheet(columns=columns, rows=rows, numbers=frozenset(columns[1:]), whole=frozenset({"model"}))


def _name(one: ModelAudit) -> Cell:
    return Cell(one.model, code=True)


def _quadrant(one: ModelAudit) -> Cell:
    return Cell("–") if one.quadrant is None else Cell(one.quadrant, _STYLES.get(one.quadrant, ""))


def _worst(one: ModelAudit) -> Cell:
    return Cell(one.worst.scenario, code=True)


def _said(grade: str | None) -> Cell:
    return Cell("–") if grade is None else Cell(grade, code=True)


def _changed(before: str | None, after: str | None) -> Cell:
    """The second grade; on a terminal it stands out where it is another."""
    return Cell("–") if after is None else Cell(after, "" if after == before else "yellow", code=True)


def _amount(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value)


_PLACES = 3


def audit_pieces(result: AuditResult) -> Iterator[Sheet | Text]:
    """Yield what a terminal shows of an audit."""
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
