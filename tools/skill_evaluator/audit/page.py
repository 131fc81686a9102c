"""Print an audit: the report, also as files, the size of a dry run, the counts of calls and the check of scenarios."""

import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

from skill_evaluator.audit.calls import AuditResults, CallTally
from skill_evaluator.audit.cube import write_cube
from skill_evaluator.audit.family import FamilyCheck, Trial
from skill_evaluator.audit.manifest import DrawnAudit
from skill_evaluator.audit.request import ScenariosCheckRequest
from skill_evaluator.audit.results import REPORTED, AuditResult, BenchmarkFigures, BenchmarkUsed, Regime, ReportedAudit
from skill_evaluator.audit.statistics import QUADRANTS, QUARTERS, Quadrant, ScenarioEffect, Thresholds
from skill_evaluator.display import cost_words
from skill_evaluator.display.pages import (
    Block,
    Cell,
    Chart,
    Closing,
    Fold,
    Format,
    ForMedia,
    Heading,
    Line,
    Lines,
    Page,
    Sheet,
    cells_of,
    draw_charts,
    page_of,
    print_page,
)
from skill_evaluator.files import json_text, replace_text
from skill_evaluator.judges.workflows.requests import ScenariosDraftRequest
from skill_evaluator.library.options import FOLDERS, words_of
from skill_evaluator.runner.journal import check_writable
from skill_evaluator.runner.prices import COST_OF_BATCHES, ESTIMATE_COLUMNS
from skill_evaluator.stats import Interval, total_or_none
from skill_evaluator.text import counted, listed

REPORT, CHARTS = "report.md", "charts"
INSTALL = "pip install altair vl-convert-python"
_MAX_NAMED = 8
_MAX_SAFE_DEFAULTS = 5
_SETTLED = {True: "settled", False: "not settled", None: "–"}
_STYLES = {"safe default": "bold green", "avoid": "bold red", "strong but scenario-fragile": "yellow"}
_SHIP = "to ship: `skill-evaluator leaderboard` names the version and the model of each component; it needs no audit"
_UNBROKEN = frozenset({"model", "grade"})


def finding_text(result: AuditResult) -> tuple[str, str]:
    """Return (headline, explanation) of an audit. The headline names the models in the quadrant `safe default`."""
    cohort = f"grades and quadrants are relative to the {counted(len(result.cohort), 'model')} of this audit"
    if result.figures.medians is None:
        return "No model is called a safe default", f"a single model has no cohort to be compared with; {cohort}."
    safe = [model.model for model in result.best_first() if model.grading.quadrant == "safe default"]
    if not safe:
        return "No model is a safe default (Q1)", f"none is both able and stable; {cohort}."
    return f"{listed(safe, _MAX_SAFE_DEFAULTS)}: safe default (Q1)", f"{cohort}."


def print_audit(result: AuditResult, form: Format) -> None:
    """Print the result of an audit to stdout in the format `form`."""
    print_page(form, json=lambda: result.model_dump(mode="json"), page=lambda: audit_page(result))


def audit_page(result: AuditResult) -> Page:
    """Build the page of an audit: the summary, then the models, scenarios and benchmarks."""
    parts = (_summary_blocks, _model_blocks, _scenario_blocks, _benchmark_blocks)
    return page_of("the audit", [block for part in parts for block in part(result)])


def site_audit(result: AuditResult) -> dict[str, Any]:
    """Return the variables of the site's audit template. `remarks` has the lines on certainty and on the next step."""
    finding, reason = finding_text(result)
    _, *remarks = _conclusion(result)
    return {"finding": finding, "why": reason, "remarks": remarks, "page_blocks": audit_page(result).blocks}


def write_audit(reported: ReportedAudit) -> list[Path]:
    """Write the report, the scores and, if altair is installed, charts. Return the paths, or [] if `out` is None."""
    out, page = reported.out, audit_page(reported.result)
    if out is None:
        return []
    check_writable(out, "--out DIR")
    charts = [out / CHARTS]
    try:
        for name, drawing in draw_charts(page.blocks).items():
            replace_text(out / CHARTS / name, drawing)
    except ImportError as problem:
        message = f"charts require libraries that cannot be imported ({problem}): {INSTALL}"
        print(f"warning: {message}", file=sys.stderr)
        charts = []
    replace_text(out / REPORT, page.markdown(CHARTS if charts else ""))
    replace_text(out / REPORTED, json_text(reported.result.model_dump(mode="json")))
    return [out / REPORT, out / REPORTED, *charts, *write_cube(reported.cube, out)]


def _summary_blocks(result: AuditResult) -> Iterator[Block]:
    yield ForMedia(("terminal", "markdown"), [Heading("Stability audit", level=2)])
    yield ForMedia(("site",), [Heading("Grades and advice")])
    # the site shows the conclusion above the heading
    *lines, following = _conclusion(result)
    yield ForMedia(("terminal", "markdown"), [Closing([*lines, _SHIP, following])])
    yield Line(f"{_size_text(result)}.")
    style = "yellow" if result.neutrality.verdict.startswith("not") else ""
    yield Line("Neutrality: ", _neutrality_text(result), style=style)
    if result.treatment:
        yield Line(f"Treatment: {result.treatment}.", style="yellow")
    columns = ("model", "μ", "σ", "95 % CI of σ", "grade", "settled", "quadrant")
    rows = [
        cells_of(
            [model.model],
            points(model.ability),
            points(model.fluctuation),
            _interval_text(model.fluctuation_ci95),
            _grade_cell(model.grading.grade),
            _SETTLED[model.grading.settled],
            _quadrant_cell(model.grading.quadrant),
        )
        for model in result.best_first()
    ]
    models = Sheet(columns=columns, rows=rows, numbers=frozenset(columns[1:4]), whole=_UNBROKEN)
    quadrants = " · ".join(f"{number} {quadrant}" for quadrant, number in QUADRANTS.items())
    yield replace(models, caption="Models, the best grade first", note=f"{quadrants}.")
    medians = result.figures.medians
    thresholds = f"Thresholds of σ: {_threshold_text(result.figures.thresholds)}"
    if medians is not None:
        thresholds += f"; medians: μ {points(medians.ability)}, σ {points(medians.fluctuation)}"
    advice = [_advice(regime) for regime in result.regimes.values()]
    yield Lines([f"{thresholds}.", f"Noise: {_noise_text(result)}", *advice], "-")
    title = f"Map of {counted(len(result.models), 'model')}, ability across and fluctuation up"
    yield _chart("map", result, title, models)


def _conclusion(result: AuditResult) -> Iterator[Line]:
    finding, reason = finding_text(result)
    yield Line(f"{finding}: {reason}", style="bold")
    settled = [model.model for model in result.best_first() if model.grading.settled]
    unsettled = [model.model for model in result.best_first() if model.grading.settled is False]
    sure = f"how sure: the grades of {listed(settled, _MAX_SAFE_DEFAULTS) or 'no model'} are settled"
    others = f", those of {listed(unsettled, _MAX_SAFE_DEFAULTS)} are not" if settled and unsettled else ""
    yield Line(sure + others)
    if unsettled:
        names = listed(unsettled, _MAX_SAFE_DEFAULTS)
        questions = max((used.questions or 0 for used in result.used), default=0)
        more = f"more than {counted(questions, 'question')} per benchmark" if questions else "more questions"
        yield Line(f"next: settle the grades of {names} with {more}: `skill-evaluator audit run --questions N`")
    elif len(result.cohort) < 2:
        yield Line("next: audit at least two models, because grades are relative: `skill-evaluator audit run`")
    else:
        yield Line("next: compare the models on your own cases: `skill-evaluator leaderboard`")


def _advice(regime: Regime) -> str:
    ranked, left_out = (
        listed([f"{entry.model} {entry.reason}" for entry in entries], _MAX_NAMED)
        for entries in (regime.ranked, regime.left_out)
    )
    sentence = f"{regime.title} ({regime.note}): {ranked or 'none'}"
    return f"{sentence}; filtered out: {left_out}." if left_out else f"{sentence}."


def _model_blocks(result: AuditResult) -> Iterator[Block]:
    if result.warnings:
        yield Heading("Warnings")
        yield Lines(result.warnings, "-", style="yellow")
    yield Heading("Ability and fluctuation")
    amounts = ("95 % CI of μ", "σ", "noise", "σ without noise", "$ per 1,000 right", "latency, s")
    columns = ("model", *amounts, "grade", "centered grade")
    rows = [
        cells_of(
            [model.model],
            _interval_text(model.ability_ci95),
            points(model.fluctuation),
            points(model.noise),
            points(model.corrected),
            points(model.calls.usd_per_1000_right, 4),
            points(model.calls.latency_s),
            _grade_cell(model.grading.grade),
            _grade_cell(model.grading.centered_grade, model.grading.grade),
        )
        for model in result.best_first()
    ]
    note = (
        "μ: mean score over the scenarios; σ: its standard deviation over them; noise: standard deviation of a score "
        "within a scenario. Intervals are for these scenarios and other questions like these."
    )
    columns_with_values = [
        name for name, *cells in zip(columns, *rows, strict=True) if any(cell.text != "–" for cell in cells)
    ]
    sheet = Sheet(columns=columns, rows=rows, numbers=frozenset(amounts), whole=_UNBROKEN)
    yield replace(sheet.only(*columns_with_values), caption="Figures of each model", note=note)
    title = f"Spread of {counted(len(rows), 'model')} over the scenarios, the ablest on top"
    yield _chart("boxes", result, title, _score_sheet(result))


def _scenario_blocks(result: AuditResult) -> Iterator[Block]:
    models, scenarios = counted(len(result.models), "model"), counted(len(result.scenarios), "scenario")
    yield Heading("Scenarios")
    scores = _score_sheet(result)
    title = f"Heat map of {models} in {scenarios}: each score relative to the model's ability"
    yield _chart("heat", result, title, scores)
    yield Fold("Score of each model in each scenario, % right", [scores])
    shifts = {effect.scenario: _shift_texts(effect) for effect in result.neutrality.shifts}
    rows = [
        cells_of([scenario], points(mean), *shifts.get(scenario, ("–", "–", "–")))
        for scenario, mean in zip(result.scenarios, result.neutrality.means, strict=False)
    ]
    columns = ("scenario", "mean over the models", "shift", "standard errors", "shifts all models")
    yield Sheet(columns=columns, rows=rows, numbers=frozenset(columns[1:4]), caption="Difficulty of the scenarios")
    if result.neutrality.limit is not None:
        yield Line(
            "Shift: the median over the models of the score relative to the model's own median. If a scenario shifts "
            f"all models (more than {result.neutrality.limit:g} standard errors), exclude it (--without) or center "
            "the scores (--centered)."
        )


def _shift_texts(effect: ScenarioEffect) -> tuple[str, str, str]:
    shift = f"{effect.shift:+.2f}" if round(effect.shift, 2) else "0.00"
    return shift, points(effect.ratio, 1), "yes" if effect.significant else "no"


def _benchmark_blocks(result: AuditResult) -> Iterator[Block]:
    yield Heading("Benchmarks")
    yield Lines([_benchmark_text(used) for used in result.used], "-")
    if len(result.used) < 2:
        return
    names = [used.name for used in result.used]
    rows = [
        cells_of(
            [model.model],
            _grade_cell(model.grading.grade),
            *(_figures_text(model.benchmarks.get(name)) for name in names),
        )
        for model in result.best_first()
    ]
    grades = Sheet(columns=["model", "grade", *names], rows=rows, whole=_UNBROKEN, named=frozenset(names))
    note = (
        "Grade, σ and μ; a grade on one benchmark is relative to these models there. (noise): noise explains all of σ."
    )
    yield replace(grades, caption="Grades on each benchmark alone", note=note)


def _score_sheet(result: AuditResult) -> Sheet:
    rows = [
        cells_of([model.model], *(points(model.scenarios.get(name)) for name in result.scenarios))
        for model in result.ablest_first()
    ]
    scores = frozenset(result.scenarios)
    columns = ["model", *result.scenarios]
    return Sheet(columns=columns, rows=rows, numbers=scores, named=scores, whole=frozenset({"model"}))


def _benchmark_text(used: BenchmarkUsed) -> str:
    facts = [f"weight {used.weight:.4g}"]
    facts += [] if used.questions is None else [counted(used.questions, "question")]
    facts += [] if used.thresholds is None else [_threshold_text(used.thresholds)]
    facts += [] if used.noise_floor is None else [f"noise within a scenario {points(used.noise_floor)}"]
    return f"{used.name}: {'; '.join(facts)}"


def _figures_text(figures: BenchmarkFigures | None) -> str:
    """Format a model's grade, fluctuation and ability on a benchmark. `(noise)`: all of the fluctuation is noise.

    >>> _figures_text(BenchmarkFigures(ability=66.7, fluctuation=2.67, grade="AA", corrected=0.0))
    'AA 2.67 (noise), 66.7'
    """
    if figures is None:
        return "–"
    grade = f"{figures.grade} " if figures.grade else ""
    noise = " (noise)" if figures.corrected == 0 and figures.fluctuation > 0 else ""
    return f"{grade}{points(figures.fluctuation)}{noise}, {points(figures.ability, 1)}"


def _quadrant_cell(quadrant: Quadrant | None) -> Cell:
    return Cell("–") if quadrant is None else Cell(QUADRANTS[quadrant], _STYLES.get(quadrant, ""))


def _grade_cell(grade: str | None, before: str | None = None) -> Cell:
    return Cell("–") if grade is None else Cell(grade, "" if before in (None, grade) else "yellow", code=True)


def _chart(name: Literal["map", "boxes", "heat"], result: AuditResult, title: str, figures: Sheet) -> Chart:
    def draw_chart() -> Any:
        from skill_evaluator.audit import charts  # imports altair, which is optional

        return charts.CHARTS_BY_NAME[name](result)

    return Chart(name=name, alt_text=title, draw=draw_chart, figures=figures)


def _size_text(result: AuditResult) -> str:
    questions = total_or_none(used.questions for used in result.used)
    numbers: dict[str, Sequence[Any]] = {"model": result.cohort, "scenario": result.scenarios, "benchmark": result.used}
    factors = [counted(len(members), noun) for noun, members in numbers.items()]
    if questions is not None:
        factors[-1] += f" ({counted(int(questions), 'question')})"
    if result.replicates is not None:
        factors.append(counted(result.replicates, "replicate"))
    return " × ".join(factors)


def _neutrality_text(result: AuditResult) -> str:
    means, neutrality = result.neutrality.means, result.neutrality
    ranged = f"means {points(min(means))} to {points(max(means))}, range {points(neutrality.range)} points"
    if result.regraded is None:
        return f"{neutrality.verdict}; {ranged}."
    grades = counted(len(result.models), "grade")
    return f"{neutrality.verdict}; {ranged}. Centering changes {result.regraded} of {grades}."


def _noise_text(result: AuditResult) -> str:
    if result.figures.noise_floor is not None:
        noise = f"{points(result.figures.noise_floor)} points within a scenario (median over the models)"
        return f"{noise}, from {counted(result.replicates or 0, 'replicate')} per question."
    unknown = "unknown within a scenario, which requires two replicates"
    if result.figures.noise_ceiling is not None:
        return f"{unknown}; at most {points(result.figures.noise_ceiling)} points, if outputs were independent."
    return f"{unknown}; --questions N would give an upper bound." if result.replicates is None else f"{unknown}."


def _threshold_text(cuts: Thresholds | None) -> str:
    if cuts is None:
        return "none (a single model has no cohort)"
    bounds = cuts.cuts or dict(zip(QUARTERS, (cuts.q25, cuts.q50, cuts.q75), strict=False))
    return " · ".join([*(f"{grade} ≤ {points(cut)}" for grade, cut in bounds.items()), f"{QUARTERS[-1]} above"])


def _interval_text(ci95: Interval | None) -> str:
    return "–" if ci95 is None else f"{points(ci95[0])}–{points(ci95[1])}"


def points(value: float | None, digits: int = 2) -> str:
    """Format a number with a fixed number of decimals, or None as a dash."""
    return "–" if value is None else f"{value:.{digits}f}"


_BENCHMARK_KEYS = {"name", "version", "metric", "weight", "of", "unlabelled"}
_BENCHMARK_COLUMNS = ("benchmark", "version", "scored by", "weight", "questions", "of")
_COUNT_COLUMNS = ("planned", "scored", "unparseable", "refused, truncated", "failed", "not made", "cost", "p50 s")
_SEVERITY_STYLES = {"error": "red", "warning": "yellow"}
_REMARKS = ("scenario", "", "rule", "remark")


def print_size(drawn: DrawnAudit, form: Format) -> None:
    """Print the planned calls of an audit and their estimated cost to stdout."""
    audit = drawn.manifest
    content = {
        "scenarios": list(audit.scenarios),
        "benchmarks": [
            {**benchmark.model_dump(include=_BENCHMARK_KEYS), "questions": len(benchmark.cases)}
            for benchmark in audit.benchmarks
        ],
        "questions": audit.questions_in_all,
        "replicates": audit.replicates,
        "seed": audit.seed,
        "models": [asdict(model) for model in drawn.estimates],
        "total": asdict(drawn.total),
        "doubts": audit.doubts,
    }
    questions = f"{counted(audit.questions_in_all, 'question')} of {counted(len(audit.benchmarks), 'benchmark')}"
    models, scenarios = counted(len(audit.models), "model"), counted(len(audit.scenarios), "scenario")
    factors = " × ".join((models, scenarios, questions, counted(audit.replicates, "replicate")))
    benchmarks = [
        cells_of([each.name], each.version, each.metric, f"{each.weight:g}", f"{len(each.cases):,}", f"{each.of:,}")
        for each in audit.benchmarks
    ]
    amounts = [cells_of([model.model_id], model.provider, model.key, *model.amounts) for model in drawn.estimates]
    blocks: list[Block] = [
        ForMedia(("markdown",), [Heading("Stability audit", level=2)]),
        Line(f"{factors} = {counted(len(audit.models) * audit.calls_per_model, 'call')}."),
        Sheet(columns=_BENCHMARK_COLUMNS, rows=benchmarks, numbers=frozenset(_BENCHMARK_COLUMNS[3:])),
        Sheet(
            columns=("model", "provider", "key", *ESTIMATE_COLUMNS),
            rows=[*amounts, cells_of([], "all", "", "", *drawn.total.amounts)],
            numbers=frozenset(ESTIMATE_COLUMNS),
        ),
        ForMedia(("markdown",), [Lines(audit.doubts, "-")]),  # the terminal has them on stderr
        Line(f"{f'{COST_OF_BATCHES}; ' * (audit.transport == 'batch')}dry run: no call was made, nothing was written."),
    ]
    print_page(form, json=lambda: content, page=lambda: page_of("the size", blocks))


def print_audit_runs(results: AuditResults, form: Format) -> None:
    """Print the call counts of this command's models to stdout, and the next command to stderr."""
    audit_id = results.drawn.manifest.id
    tallies = {name: results.tallies[name] for name in results.stopped}
    rows = [
        {
            "model_id": name,
            "complete": results.is_complete(name),
            "stopped": results.stopped[name],
            **asdict(tally),
            "failures": tally.failures,
            "not_asked": tally.unmade,
        }
        for name, tally in tallies.items()
    ]
    counts = [_counts(name, tally) for name, tally in tallies.items()]
    stopped = [
        Line(Cell(name, code=True), " stopped: ", Cell(reason, code=True), style="yellow")
        for name, reason in results.stopped.items()
        if reason
    ]
    blocks: list[Block] = [
        ForMedia(("markdown",), [Heading("Audit ", Cell(audit_id, code=True), level=2)]),
        Sheet(columns=("model", *_COUNT_COLUMNS), rows=counts, numbers=frozenset(_COUNT_COLUMNS)),
        Lines(stopped),
    ]
    print_page(form, json=lambda: {"audit": audit_id, "runs": rows}, page=lambda: page_of("", blocks))
    print(results.next_step, file=sys.stderr)


def _counts(model_id: str, tally: CallTally) -> list[Cell]:
    others = dict(tally.outcomes)
    scored, unparseable = others.pop("scored", 0), others.pop("unparseable", 0)
    refused = others.pop("refused", 0) + others.pop("truncated", 0)
    counts = (tally.planned, scored, unparseable, refused, sum(others.values()), tally.unmade)
    latency = None if tally.latency_s is None else f"{tally.latency_s:.2f}"
    cost = cost_words(tally.cost_usd, tally.hit_rate)
    return cells_of([model_id], *(f"{count:,}" for count in counts), cost, latency)


def print_family(check: FamilyCheck, options: ScenariosCheckRequest | ScenariosDraftRequest) -> None:
    """Print the result of `scenarios check` to stdout.

    If the scenarios are ready but no audit used them yet, print the command of an audit to stderr.
    """
    name = "the scenarios" if check.family is None else f"the family {check.family}"
    remarks = [
        [
            Cell(remark.scenario or "all", code=remark.scenario is not None),
            Cell(remark.severity, _SEVERITY_STYLES[remark.severity]),
            Cell(remark.rule),
            Cell(remark.message, code=True),
        ]
        for remark in check.remarks
    ]
    blocks: list[Block] = [
        ForMedia(("markdown",), [Heading("Scenarios", level=2)]),
        Line(f"{name}, {counted(len(check.scenarios), 'template')}: {check.verdict}.", style="bold"),
        Sheet(columns=_REMARKS, rows=remarks, whole=frozenset({"scenario", "rule"})),
        *([] if check.trial is None else _trial_blocks(check.trial)),
        Line("Read each template and check by hand:"),
        Lines(check.review, "[ ]"),
    ]
    print_page(options.format, json=lambda: check.model_dump(mode="json"), page=lambda: page_of("the family", blocks))
    if check.trial is None and check.verdict == "ready":
        command = ["skill-evaluator", "audit", "run", *words_of(options, *FOLDERS, "audits")]
        command += ["--scenario", check.family] if check.family else []
        print(f"try them on a few questions: {shlex.join([*command, '--questions', '20'])}", file=sys.stderr)


def _trial_blocks(trial: Trial) -> list[Block]:
    models = list(trial.scores)
    rows = [
        cells_of([scenario], *(f"{trial.scores[model][scenario]:.1f}" for model in models))
        for scenario in trial.scores[models[0]]
    ]
    caption, names = f"Trial {trial.audit}, {counted(trial.questions, 'question')}, % right", frozenset(models)
    sheet = Sheet(columns=("scenario", *models), rows=rows, numbers=names, named=names, caption=caption)
    return [sheet, Line(f"{trial.neutrality}.")]
