"""What became of an audit's calls, model by model, for people: a table on a terminal, Markdown, or JSON."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from rich.text import Text

from skill_evaluator.audit.run.gathering import CallTally
from skill_evaluator.audit.run.manifest import AuditManifest
from skill_evaluator.display.safe_text import code_span, visible
from skill_evaluator.display.sheets import Cell, Sheet, markdown_table, show, write

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


def print_audit_runs(audit: AuditManifest, runs: Sequence[AuditRun], form: Literal["text", "json", "markdown"]) -> None:
    """Write it to stdout."""
    if form == "json":
        json.dump({"audit": audit.id, "runs": [_as_json(one) for one in runs]}, sys.stdout, indent=2)
        sys.stdout.write("\n")
    elif form == "markdown":
        notes = [f"- {code_span(one.model_id)} stopped: {code_span(one.stopped)}\n" for one in runs if one.stopped]
        write("\n".join([f"## Audit {code_span(audit.id)}\n", markdown_table(_sheet(runs)), *notes]))
    else:
        show(_text(runs))


def _text(runs: Sequence[AuditRun]) -> Iterator[Sheet | Text]:
    yield _sheet(runs)
    for one in runs:
        if one.stopped:
            yield Text(visible(f"{one.model_id} stopped: {one.stopped}"), style="yellow")


def _sheet(runs: Sequence[AuditRun]) -> Sheet:
    return Sheet(columns=_COLUMNS, rows=[_cells(one) for one in runs], numbers=frozenset(_COLUMNS[1:]))


def _cells(run: AuditRun) -> tuple[Cell, ...]:
    tally = run.tally
    kinds = dict(tally.outcomes)
    scored, unparseable = kinds.pop("scored", 0), kinds.pop("unparseable", 0)
    by_the_model = sum(kinds.pop(kind, 0) for kind in _OF_THE_MODEL)
    counts = (tally.planned, scored, unparseable, by_the_model, sum(kinds.values()), tally.unmade)
    return (
        Cell(run.model_id if run.shard is None else f"{run.model_id} {run.shard}", code=True),
        *(Cell(f"{count:,}") for count in counts),
        Cell("unknown" if tally.cost_usd is None else f"${tally.cost_usd:,.4f}"),
        Cell("–" if tally.latency_s is None else f"{tally.latency_s:.2f}"),
    )


def _as_json(run: AuditRun) -> dict[str, Any]:
    tally = asdict(run.tally) | {"failures": run.tally.failures, "not_asked": run.tally.unmade}
    return {
        "model_id": run.model_id,
        "shard": run.shard,
        "complete": run.complete,
        "stopped": run.stopped,
        **tally,
    }
