"""The calls of an audit, counted by what became of them, model by model: a table on a terminal, Markdown, or JSON."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rich.text import Text

from skill_evaluator.audit.run.gathering import CallTally
from skill_evaluator.audit.run.manifest import AuditManifest
from skill_evaluator.display import cost_words
from skill_evaluator.display.safe_text import code_span, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, markdown_table, print_result

_COLUMNS = ("model", "planned", "scored", "unparseable", "refused, cut off", "failed", "not asked", "cost", "p50 s")
_OF_THE_MODEL = ("refused", "truncated")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRun:
    """One model's part of an audit; `stopped`: why calls were left unmade."""

    model_id: str
    shard: str | None
    tally: CallTally
    stopped: str | None
    complete: bool


def print_audit_runs(audit: AuditManifest, runs: Sequence[AuditRun], form: Format) -> None:
    """Print the runs of an audit to stdout."""
    stops = [(run.model_id, run.stopped) for run in runs if run.stopped]
    heading = f"## Audit {code_span(audit.id)}\n"
    notes = [f"- {code_span(model)} stopped: {code_span(reason)}\n" for model, reason in stops]
    warnings = [Text(visible(f"{model} stopped: {reason}"), style="yellow") for model, reason in stops]
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
    print_result(
        form,
        json=lambda: {"audit": audit.id, "runs": rows},
        markdown=lambda: "\n".join([heading, markdown_table(_sheet(runs)), *notes]),
        text=lambda: [_sheet(runs), *warnings],
    )


def _sheet(runs: Sequence[AuditRun]) -> Sheet:
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
    return Sheet(columns=_COLUMNS, rows=rows, numbers=frozenset(_COLUMNS[1:]))
