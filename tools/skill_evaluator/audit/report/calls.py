"""What is printed around an audit: what it takes, what became of its calls, and whether its scenarios can carry it.

A dry run prints the first, so this module does without numpy.
"""

import shlex
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from skill_evaluator.audit.request import ScenariosCheckRequest
from skill_evaluator.audit.run.drawing import AuditSize
from skill_evaluator.display import cost_words, probability
from skill_evaluator.display.options import FOLDERS, words_of
from skill_evaluator.display.pages import Block, Heading, Line, Lines, Only, Page, page_of, print_page
from skill_evaluator.display.safe_text import visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, cells_of
from skill_evaluator.runner.prices import AMOUNTS
from skill_evaluator.text import counted

if TYPE_CHECKING:
    from skill_evaluator.audit.findings.family import FamilyCheck, Trial
    from skill_evaluator.audit.run.asking import AskedAudit, AuditRun

_BENCHMARK_KEYS = {"name", "version", "metric", "weight", "of", "unlabelled"}
_BENCHMARK_COLUMNS = ("benchmark", "version", "scored by", "weight", "questions", "of")
_COUNT_COLUMNS = ("planned", "scored", "unparseable", "refused, cut off", "failed", "not asked", "cost", "p50 s")
_STYLES = {"error": "red", "warning": "yellow"}
_REMARKS = ("scenario", "", "rule", "remark")
_PAIRS = ("scenario", "and", "text alike", "answers alike")


def print_size(size: AuditSize, form: Format) -> None:
    """Write the size of an audit to stdout, and what makes it tell little to stderr."""
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
        page=lambda: size_page(size),
    )
    for doubt in audit.doubts:
        print(f"warning: {visible(doubt)}", file=sys.stderr)


def size_page(size: AuditSize, reason: str = "") -> Page:
    """Return the size of an audit as a page, and why it is planned."""
    audit = size.audit
    questions = f"{counted(audit.questions_in_all, 'question')} of {counted(len(audit.benchmarks), 'benchmark')}"
    models, scenarios = counted(len(audit.models), "model"), counted(len(audit.scenarios), "scenario")
    factors = " × ".join((models, scenarios, questions, counted(audit.replicates, "replicate")))
    benchmarks = [
        cells_of([one.name], one.version, one.metric, f"{one.weight:g}", f"{len(one.cases):,}", f"{one.of:,}")
        for one in audit.benchmarks
    ]
    amounts = [cells_of([model.model_id], model.provider, model.note, *model.amounts) for model in size.models]
    blocks: list[Block] = [
        Only(("markdown",), [Heading("Stability audit", level=2)]),
        Line(f"{factors} = {counted(len(audit.models) * audit.calls_per_model, 'call')}."),
        Sheet(columns=_BENCHMARK_COLUMNS, rows=benchmarks, numbers=frozenset(_BENCHMARK_COLUMNS[3:])),
        Sheet(
            columns=("model", "provider", size.noted, *AMOUNTS),
            rows=[*amounts, cells_of([], "all", "", "", *size.total.amounts)],
            numbers=frozenset(AMOUNTS),
        ),
        Only(("markdown",), [Lines(audit.doubts, "-")]),  # a terminal has them on stderr
        Line(f"{size.closing}."),
    ]
    return page_of("the size", [*blocks, *([Line("Reason: ", Cell(reason, code=True))] if reason else [])])


def print_audit_runs(asked: "AskedAudit", form: Format) -> None:
    """Print the runs to stdout, and the command that comes next to stderr."""
    rows = [
        {
            "model_id": run.model_id,
            "shard": run.shard,
            "complete": run.complete,
            "stopped": run.stopped,
            **asdict(run.tally),
            "failures": run.tally.failures,
            "not_asked": run.tally.unmade,
        }
        for run in asked.runs
    ]
    stopped = [
        Line(Cell(run.model_id, code=True), " stopped: ", Cell(run.stopped, code=True), style="yellow")
        for run in asked.runs
        if run.stopped
    ]
    blocks: list[Block] = [
        Only(("markdown",), [Heading("Audit ", Cell(asked.audit.id, code=True), level=2)]),
        Sheet(
            columns=("model", *_COUNT_COLUMNS),
            rows=[_counts(run) for run in asked.runs],
            numbers=frozenset(_COUNT_COLUMNS),
        ),
        Lines(stopped),
    ]
    print_page(form, json=lambda: {"audit": asked.audit.id, "runs": rows}, page=lambda: page_of("", blocks))
    print(asked.next_words, file=sys.stderr)


def _counts(run: "AuditRun") -> list[Cell]:
    tally, others = run.tally, dict(run.tally.outcomes)
    scored, unparseable = others.pop("scored", 0), others.pop("unparseable", 0)
    by_the_model = others.pop("refused", 0) + others.pop("truncated", 0)
    counts = (tally.planned, scored, unparseable, by_the_model, sum(others.values()), tally.unmade)
    name = run.model_id if run.shard is None else f"{run.model_id} {run.shard}"
    latency = None if tally.latency_s is None else f"{tally.latency_s:.2f}"
    cost = cost_words(tally.cost_usd, tally.hit_rate)
    return cells_of([name], *(f"{count:,}" for count in counts), cost, latency)


def share(value: float | None) -> str:
    """Format a share of a whole, in per cent.

    >>> share(0.1234), share(None)
    ('12 %', '–')
    """
    return "–" if value is None else f"{value * 100:.0f} %" if value >= 0.1 or not value else f"{value * 100:.1f} %"


def print_family(check: "FamilyCheck", form: Format, request: ScenariosCheckRequest | None = None) -> None:
    """Print what is known of a family; a `request` to check it gets the command of a trial that it lacks."""
    name = "the scenarios" if check.family is None else f"the family {check.family}"
    remarks = []
    for remark in check.remarks:
        scenario = Cell("all") if remark.scenario is None else Cell(remark.scenario, code=True)
        severity = Cell(remark.severity, _STYLES[remark.severity])
        remarks.append(cells_of([], scenario, severity, remark.rule, Cell(remark.message, code=True)))
    pairs = [cells_of([one.first, one.second], share(one.likeness), share(one.agreement)) for one in check.pairs]
    words = f"{name}, {counted(len(check.scenarios), 'template')}: {check.verdict} ({'; '.join(check.reasons)})."
    blocks: list[Block] = [
        Only(("markdown",), [Heading("Scenarios", level=2)]),
        Line(words, style="bold"),
        Sheet(columns=_REMARKS, rows=remarks, whole=frozenset({"scenario", "rule"})),
        Line(f"{_trial_words(check.trial)}."),
        Sheet(columns=_PAIRS, rows=pairs, numbers=frozenset(_PAIRS[2:])),
        Line("What no program can say; read each template for it:"),
        Lines(check.review, "[ ]"),
    ]
    print_page(form, json=lambda: check.model_dump(mode="json"), page=lambda: page_of("the family", blocks))
    if request is not None and check.trial is None and check.verdict == "not settled":
        again = ["skill-evaluator", "audit", "run", *words_of(request, *FOLDERS, "audits")]
        again += ["--scenario", check.family] if check.family else []
        print(f"a small trial, once all are reviewed: {shlex.join([*again, '--questions', '20'])}", file=sys.stderr)


def _trial_words(trial: "Trial | None") -> str:
    """Say what answers tell of the family."""
    if trial is None:
        return "trial: none of these scenarios"
    size = f"{counted(trial.models, 'model')}, {counted(trial.questions, 'question')}"
    words = f"trial ({size}): answers differ between two scenarios in {share(trial.moved)} of the questions"
    if trial.itself is not None:
        words += f", and in {share(trial.itself)} by themselves"
    if trial.p is not None:
        words += f" (p of no more: {probability(trial.p)})"
    return f"{words}; {trial.neutrality}"
