"""Print the size of an audit, the outcomes of its calls, and the check of its scenarios."""

import shlex
import sys
from dataclasses import asdict, replace

from skill_evaluator.audit.calls import AuditResults, AuditRun
from skill_evaluator.audit.drawing import AuditSize
from skill_evaluator.audit.family import FamilyCheck, Trial
from skill_evaluator.audit.request import ScenariosCheckRequest
from skill_evaluator.display import cost_words
from skill_evaluator.display.options import FOLDERS, words_of
from skill_evaluator.display.pages import Block, ForMedia, Heading, Line, Lines, Page, page_of, print_page
from skill_evaluator.display.safe_text import visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, cells_of
from skill_evaluator.runner.prices import AMOUNTS, COST_OF_BATCHES
from skill_evaluator.text import counted

_BENCHMARK_KEYS = {"name", "version", "metric", "weight", "of", "unlabelled"}
_BENCHMARK_COLUMNS = ("benchmark", "version", "scored by", "weight", "questions", "of")
_COUNT_COLUMNS = ("planned", "scored", "unparseable", "refused, truncated", "failed", "not made", "cost", "p50 s")
_STYLES = {"error": "red", "warning": "yellow"}
_REMARKS = ("scenario", "", "rule", "remark")


def print_size(size: AuditSize, form: Format) -> None:
    """Print the size of an audit to stdout, and its warnings to stderr."""
    audit = size.audit
    print_page(
        form,
        json=lambda: {
            "scenarios": list(audit.scenarios),
            "benchmarks": [
                {**benchmark.model_dump(include=_BENCHMARK_KEYS), "questions": len(benchmark.cases)}
                for benchmark in audit.benchmarks
            ],
            "questions": audit.questions_in_all,
            "replicates": audit.replicates,
            "seed": audit.seed,
            "models": [asdict(model) for model in size.models],
            "total": asdict(size.total),
            "doubts": audit.doubts,
        },
        page=lambda: _size_page(size),
    )
    for doubt in audit.doubts:
        print(f"warning: {visible(doubt)}", file=sys.stderr)


def _size_page(size: AuditSize) -> Page:
    audit = size.audit
    questions = f"{counted(audit.questions_in_all, 'question')} of {counted(len(audit.benchmarks), 'benchmark')}"
    models, scenarios = counted(len(audit.models), "model"), counted(len(audit.scenarios), "scenario")
    factors = " × ".join((models, scenarios, questions, counted(audit.replicates, "replicate")))
    benchmarks = [
        cells_of([each.name], each.version, each.metric, f"{each.weight:g}", f"{len(each.cases):,}", f"{each.of:,}")
        for each in audit.benchmarks
    ]
    amounts = [cells_of([model.model_id], model.provider, model.key, *model.amounts) for model in size.models]
    blocks: list[Block] = [
        ForMedia(("markdown",), [Heading("Stability audit", level=2)]),
        Line(f"{factors} = {counted(len(audit.models) * audit.calls_per_model, 'call')}."),
        Sheet(columns=_BENCHMARK_COLUMNS, rows=benchmarks, numbers=frozenset(_BENCHMARK_COLUMNS[3:])),
        Sheet(
            columns=("model", "provider", "key", *AMOUNTS),
            rows=[*amounts, cells_of([], "all", "", "", *size.total.amounts)],
            numbers=frozenset(AMOUNTS),
        ),
        ForMedia(("markdown",), [Lines(audit.doubts, "-")]),  # the terminal has them on stderr
        Line(f"{f'{COST_OF_BATCHES}; ' * (audit.transport == 'batch')}dry run: no call was made, nothing was written."),
    ]
    return page_of("the size", blocks)


def print_audit_runs(results: AuditResults, form: Format) -> None:
    """Print the counts of an audit's calls to stdout, and the next command to stderr."""
    rows = [
        {
            "model_id": run.model_id,
            "complete": run.complete,
            "stopped": run.stopped,
            **asdict(run.tally),
            "failures": run.tally.failures,
            "not_asked": run.tally.unmade,
        }
        for run in results.runs
    ]
    counts = [_counts(run) for run in results.runs]
    stopped = [
        Line(Cell(run.model_id, code=True), " stopped: ", Cell(run.stopped, code=True), style="yellow")
        for run in results.runs
        if run.stopped
    ]
    blocks: list[Block] = [
        ForMedia(("markdown",), [Heading("Audit ", Cell(results.audit.id, code=True), level=2)]),
        Sheet(columns=("model", *_COUNT_COLUMNS), rows=counts, numbers=frozenset(_COUNT_COLUMNS)),
        Lines(stopped),
    ]
    print_page(form, json=lambda: {"audit": results.audit.id, "runs": rows}, page=lambda: page_of("", blocks))
    print(results.next_step, file=sys.stderr)


def _counts(run: AuditRun) -> list[Cell]:
    tally, others = run.tally, dict(run.tally.outcomes)
    scored, unparseable = others.pop("scored", 0), others.pop("unparseable", 0)
    refused = others.pop("refused", 0) + others.pop("truncated", 0)
    counts = (tally.planned, scored, unparseable, refused, sum(others.values()), tally.unmade)
    latency = None if tally.latency_s is None else f"{tally.latency_s:.2f}"
    cost = cost_words(tally.cost_usd, tally.hit_rate)
    return cells_of([run.model_id], *(f"{count:,}" for count in counts), cost, latency)


def print_family(check: FamilyCheck, form: Format, request: ScenariosCheckRequest | None = None) -> None:
    """Print the check of a family to stdout and, if a `request` found no trial of a ready family, advice to stderr."""
    name = "the scenarios" if check.family is None else f"the family {check.family}"
    remarks = [
        [
            Cell(remark.scenario or "all", code=remark.scenario is not None),
            Cell(remark.severity, _STYLES[remark.severity]),
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
    print_page(form, json=lambda: check.model_dump(mode="json"), page=lambda: page_of("the family", blocks))
    if request is not None and check.trial is None and check.verdict == "ready":
        command = ["skill-evaluator", "audit", "run", *words_of(request, *FOLDERS, "audits")]
        command += ["--scenario", check.family] if check.family else []
        print(f"try them on a few questions: {shlex.join([*command, '--questions', '20'])}", file=sys.stderr)


def _trial_blocks(trial: Trial) -> list[Block]:
    models = list(trial.scores)
    rows = [
        cells_of([scenario], *(f"{trial.scores[model][scenario]:.1f}" for model in models))
        for scenario in trial.scores[models[0]]
    ]
    sheet = Sheet(columns=("scenario", *models), rows=rows, numbers=frozenset(models), named=frozenset(models))
    caption = f"Trial {trial.audit}, {counted(trial.questions, 'question')}, % right"
    return [replace(sheet, caption=caption), Line(f"{trial.neutrality}.")]
