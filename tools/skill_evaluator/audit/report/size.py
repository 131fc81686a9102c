"""The size of an audit before any call, for people: what is asked, what it takes of each model, and what to expect."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from rich.text import Text

from skill_evaluator.audit.findings.results import FEWEST_MODELS, FEWEST_QUESTIONS, FEWEST_REPLICATES, FEWEST_SCENARIOS
from skill_evaluator.audit.run.manifest import AuditManifest
from skill_evaluator.display.safe_text import visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, markdown_table, print_result
from skill_evaluator.runner.prices import Estimate
from skill_evaluator.stats import total_or_none
from skill_evaluator.text import counted

_BENCHMARK_KEYS = {"name", "version", "metric", "weight", "of", "unlabelled"}
_BENCHMARK_COLUMNS = ("benchmark", "version", "scored by", "weight", "questions", "of")
_AMOUNT_COLUMNS = ("calls", "input tokens (estimate)", "output tokens (at most)", "cost (at most)")


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedModel(Estimate):
    """What an audit takes of one model. `note`: what else there is to say of it."""

    model_id: str
    provider: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSize:
    """An audit with what it takes; `noted`: what the notes on the models are about, `closing`: what is said last."""

    audit: AuditManifest
    models: Sequence[AskedModel]
    noted: Literal["key", "jobs"]
    closing: str

    @property
    def total(self) -> Estimate:
        """All models together; the cost is None where one's is."""
        return Estimate(
            calls=sum(one.calls for one in self.models),
            input_tokens_estimate=sum(one.input_tokens_estimate for one in self.models),
            output_tokens_upper=sum(one.output_tokens_upper for one in self.models),
            cost_upper_usd=total_or_none(one.cost_upper_usd for one in self.models),
        )


def doubts(audit: AuditManifest) -> list[str]:
    """What makes an audit of this size say little, and what it leaves out: one sentence each."""
    fewest = min(audit.benchmarks, key=lambda one: len(one.cases))
    size = len(audit.models), len(audit.scenarios), len(fewest.cases), audit.replicates
    said = (
        f"{counted(size[0], 'model')}: below {FEWEST_MODELS} quartiles are hardly more than an order",
        f"{counted(size[1], 'scenario')}: below {FEWEST_SCENARIOS} a fluctuation is known only roughly",
        f"{counted(size[2], 'question')} of '{fewest.name}': below {FEWEST_QUESTIONS} single questions weigh much",
        f"{counted(size[3], 'replicate')}: below {FEWEST_REPLICATES} how a model varies by itself is not known",
    )
    enough = (FEWEST_MODELS, FEWEST_SCENARIOS, FEWEST_QUESTIONS, FEWEST_REPLICATES)
    few = [sentence for number, least, sentence in zip(size, enough, said, strict=True) if number < least]
    asked = audit.questions or 0
    few += [
        f"{counted(len(one.cases), 'question')} of '{one.name}': {asked} were asked for, and it has no more"
        for one in audit.benchmarks
        if len(one.cases) < asked
    ]
    return few + [
        f"{counted(one.unlabelled, 'case')} of '{one.name}' left out: no ground truth"
        for one in audit.benchmarks
        if one.unlabelled
    ]


def warn_of_doubts(audit: AuditManifest) -> None:
    """Say them on stderr, a line each."""
    for doubt in doubts(audit):
        print(f"warning: {visible(doubt)}", file=sys.stderr)


def print_size(size: AuditSize, form: Format) -> None:
    """Write the size of an audit to stdout."""
    print_result(form, json=lambda: _as_json(size), markdown=lambda: size_markdown(size), text=lambda: _text(size))


def size_markdown(size: AuditSize) -> str:
    """It as a page: nothing in it that came from outside is taken for mark-up."""
    lines = [f"## Stability audit\n\n{_cube(size.audit)}.\n", markdown_table(_benchmarks(size.audit))]
    lines.append(markdown_table(_models(size)))
    lines += [f"- {visible(doubt)}\n" for doubt in doubts(size.audit)]
    return "\n".join([*lines, f"{size.closing}.\n"])


def _text(size: AuditSize) -> Iterator[Sheet | Text]:
    yield Text(visible(_cube(size.audit)))
    yield Text()
    yield _benchmarks(size.audit)
    yield Text()
    yield _models(size)
    yield Text(f"\n{size.closing}")


def _cube(audit: AuditManifest) -> str:
    """`4 models × 10 scenarios × 200 questions of 2 benchmarks × 2 replicates = 16,000 calls`."""
    parts = (
        counted(len(audit.models), "model"),
        counted(len(audit.scenarios), "scenario"),
        f"{counted(audit.questions_in_all, 'question')} of {counted(len(audit.benchmarks), 'benchmark')}",
        counted(audit.replicates, "replicate"),
    )
    return f"{' × '.join(parts)} = {counted(len(audit.models) * audit.calls_per_model, 'call')}"


def _benchmarks(audit: AuditManifest) -> Sheet:
    rows = [
        (
            Cell(one.name, code=True),
            Cell(one.version),
            Cell(one.metric),
            Cell(f"{one.weight:g}"),
            Cell(f"{len(one.cases):,}"),
            Cell(f"{one.of:,}"),
        )
        for one in audit.benchmarks
    ]
    return Sheet(columns=_BENCHMARK_COLUMNS, rows=rows, numbers=frozenset(_BENCHMARK_COLUMNS[3:]))


def _models(size: AuditSize) -> Sheet:
    rows = [(Cell(one.model_id, code=True), Cell(one.provider), Cell(one.note), *_amounts(one)) for one in size.models]
    rows.append((Cell("all"), Cell(""), Cell(""), *_amounts(size.total)))
    columns = ("model", "provider", size.noted, *_AMOUNT_COLUMNS)
    return Sheet(columns=columns, rows=rows, numbers=frozenset(_AMOUNT_COLUMNS))


def _amounts(one: Estimate) -> tuple[Cell, ...]:
    cost = "unknown" if one.cost_upper_usd is None else f"${one.cost_upper_usd:,.2f}"
    counts = (one.calls, one.input_tokens_estimate, one.output_tokens_upper)
    return (*(Cell(f"{count:,}") for count in counts), Cell(cost))


def _as_json(size: AuditSize) -> dict[str, Any]:
    audit = size.audit
    benchmarks = [{**one.model_dump(include=_BENCHMARK_KEYS), "questions": len(one.cases)} for one in audit.benchmarks]
    return {
        "scenarios": list(audit.scenarios),
        "benchmarks": benchmarks,
        "questions": audit.questions_in_all,
        "replicates": audit.replicates,
        "seed": audit.seed,
        "models": [asdict(one) for one in size.models],
        "total": asdict(size.total),
        "doubts": doubts(audit),
    }
