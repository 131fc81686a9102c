"""The calls of an audit: before any is made what they take and could tell, and after them what became of each.

A dry run prints the first, so this module does without numpy.
"""

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from skill_evaluator.audit.findings.results import FEWEST_MODELS, FEWEST_QUESTIONS, FEWEST_REPLICATES, FEWEST_SCENARIOS
from skill_evaluator.audit.run.plan import AuditManifest
from skill_evaluator.display import cost_words
from skill_evaluator.display.pages import Block, Heading, Line, Lines, Only, Page, Section, print_page
from skill_evaluator.display.safe_text import visible
from skill_evaluator.display.sheets import Cell, Format, Sheet
from skill_evaluator.runner.prices import Estimate, sum_of
from skill_evaluator.text import counted

if TYPE_CHECKING:
    from skill_evaluator.audit.run.gathering import CallTally

_BENCHMARK_KEYS = {"name", "version", "metric", "weight", "of", "unlabelled"}
_BENCHMARK_COLUMNS = ("benchmark", "version", "scored by", "weight", "questions", "of")
_AMOUNT_COLUMNS = ("calls", "input tokens (estimate)", "output tokens (at most)", "cost (at most)")
_CALL_COLUMNS = (
    "model",
    "planned",
    "scored",
    "unparseable",
    "refused, cut off",
    "failed",
    "not asked",
    "cost",
    "p50 s",
)
_OF_THE_MODEL = ("refused", "truncated")


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedModel(Estimate):
    """The calls, tokens and cost that an audit takes of one model, with a note on it."""

    model_id: str
    provider: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSize:
    """An audit with what it takes. `noted`: the heading of the notes on the models; `closing`: the last sentence."""

    audit: AuditManifest
    models: Sequence[AskedModel]
    noted: Literal["key", "jobs"]
    closing: str

    @property
    def total(self) -> Estimate:
        """The calls, tokens and cost of all models together; the cost is None where a model's is."""
        return sum_of(self.models)


def doubts(audit: AuditManifest) -> list[str]:
    """Say what makes an audit of this size tell little, and what it leaves out: one sentence each."""
    fewest = min(audit.benchmarks, key=lambda benchmark: len(benchmark.cases))
    models, scenarios, questions = len(audit.models), len(audit.scenarios), len(fewest.cases)
    sentences = []
    if models < FEWEST_MODELS:
        sentences.append(f"{counted(models, 'model')}: below {FEWEST_MODELS} quartiles are hardly more than an order")
    if scenarios < FEWEST_SCENARIOS:
        few = f"below {FEWEST_SCENARIOS} a fluctuation is known only roughly"
        sentences.append(f"{counted(scenarios, 'scenario')}: {few}")
    if questions < FEWEST_QUESTIONS:
        few = f"below {FEWEST_QUESTIONS} single questions weigh much"
        sentences.append(f"{counted(questions, 'question')} of '{fewest.name}': {few}")
    if audit.replicates < FEWEST_REPLICATES:
        few = f"below {FEWEST_REPLICATES} how a model varies by itself is not known"
        sentences.append(f"{counted(audit.replicates, 'replicate')}: {few}")
    for benchmark in audit.benchmarks:
        if len(benchmark.cases) < (audit.questions or 0):
            present = f"{counted(len(benchmark.cases), 'question')} of '{benchmark.name}'"
            sentences.append(f"{present}: {audit.questions} were asked for, and it has no more")
    for benchmark in audit.benchmarks:
        if benchmark.unlabelled:
            left_out = f"{counted(benchmark.unlabelled, 'case')} of '{benchmark.name}'"
            sentences.append(f"{left_out} left out: no ground truth")
        sentences += benchmark.left_out
    return sentences


def warn_of_doubts(audit: AuditManifest) -> None:
    """Print the doubts about an audit to stderr, a line each."""
    for doubt in doubts(audit):
        print(f"warning: {visible(doubt)}", file=sys.stderr)


def print_size(size: AuditSize, form: Format) -> None:
    """Write the size of an audit to stdout."""
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
            "doubts": doubts(audit),
        },
        page=lambda: size_page(size),
    )


def size_page(size: AuditSize, reason: str = "") -> Page:
    """Return the size of an audit as a page, and why it is planned."""
    audit = size.audit
    factors = " × ".join(
        (
            counted(len(audit.models), "model"),
            counted(len(audit.scenarios), "scenario"),
            f"{counted(audit.questions_in_all, 'question')} of {counted(len(audit.benchmarks), 'benchmark')}",
            counted(audit.replicates, "replicate"),
        )
    )
    blocks: list[Block] = [
        Only(("markdown",), [Heading("Stability audit", level=2)]),
        Line(f"{factors} = {counted(len(audit.models) * audit.calls_per_model, 'call')}."),
        _benchmark_sheet(audit),
        _model_sheet(size),
        Only(("markdown",), [Lines(doubts(audit), "-")]),  # a terminal has them on stderr
        Line(f"{size.closing}."),
    ]
    blocks += [Line("Reason: ", Cell(reason, code=True))] if reason else []
    return Page([Section(name="the size", blocks=blocks)])


def _benchmark_sheet(audit: AuditManifest) -> Sheet:
    rows = [
        (
            Cell(benchmark.name, code=True),
            Cell(benchmark.version),
            Cell(benchmark.metric),
            Cell(f"{benchmark.weight:g}"),
            Cell(f"{len(benchmark.cases):,}"),
            Cell(f"{benchmark.of:,}"),
        )
        for benchmark in audit.benchmarks
    ]
    return Sheet(columns=_BENCHMARK_COLUMNS, rows=rows, numbers=frozenset(_BENCHMARK_COLUMNS[3:]))


def _model_sheet(size: AuditSize) -> Sheet:
    rows = [
        (Cell(model.model_id, code=True), Cell(model.provider), Cell(model.note), *_amounts(model))
        for model in size.models
    ]
    rows.append((Cell("all"), Cell(""), Cell(""), *_amounts(size.total)))
    columns = ("model", "provider", size.noted, *_AMOUNT_COLUMNS)
    return Sheet(columns=columns, rows=rows, numbers=frozenset(_AMOUNT_COLUMNS))


def _amounts(estimate: Estimate) -> tuple[Cell, ...]:
    cost = "unknown" if estimate.cost_upper_usd is None else f"${estimate.cost_upper_usd:,.2f}"
    counts = (estimate.calls, estimate.input_tokens_estimate, estimate.output_tokens_upper)
    return (*(Cell(f"{count:,}") for count in counts), Cell(cost))


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRun:
    """One model's part of an audit; `stopped`: why calls were left unmade."""

    model_id: str
    shard: str | None
    tally: "CallTally"
    stopped: str | None
    complete: bool


def print_audit_runs(audit: AuditManifest, runs: Sequence[AuditRun], form: Format) -> None:
    """Print the runs of an audit to stdout."""
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
        for run in runs
    ]
    blocks: list[Block] = [
        Only(("markdown",), [Heading("Audit ", Cell(audit.id, code=True), level=2)]),
        _call_sheet(runs),
        Lines(
            [
                Line(Cell(run.model_id, code=True), " stopped: ", Cell(run.stopped, code=True), style="yellow")
                for run in runs
                if run.stopped
            ],
        ),
    ]
    print_page(
        form, json=lambda: {"audit": audit.id, "runs": rows}, page=lambda: Page([Section(name="", blocks=blocks)])
    )


def _call_sheet(runs: Sequence[AuditRun]) -> Sheet:
    rows = []
    for run in runs:
        tally, others = run.tally, dict(run.tally.outcomes)
        scored, unparseable = others.pop("scored", 0), others.pop("unparseable", 0)
        by_the_model = sum(others.pop(kind, 0) for kind in _OF_THE_MODEL)
        counts = (tally.planned, scored, unparseable, by_the_model, sum(others.values()), tally.unmade)
        rows.append(
            [
                Cell(run.model_id if run.shard is None else f"{run.model_id} {run.shard}", code=True),
                *(Cell(f"{count:,}") for count in counts),
                Cell(cost_words(tally.cost_usd, tally.hit_rate)),
                Cell("–" if tally.latency_s is None else f"{tally.latency_s:.2f}"),
            ]
        )
    return Sheet(columns=_CALL_COLUMNS, rows=rows, numbers=frozenset(_CALL_COLUMNS[1:]))
