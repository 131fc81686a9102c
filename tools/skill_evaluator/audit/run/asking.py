"""The story of `audit run`: models × scenarios × benchmarks × cases × replicates, asked through the one runner.

Leaves answers, not judgements: `audits/<id>/` holds what was asked and one run a model, or a shard of one.
"""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from skill_evaluator.audit.request import AuditRunRequest
from skill_evaluator.audit.run.drawing import DrawnAudit, asked_models, drawn_audit, new_audit, refuse_wrong
from skill_evaluator.audit.run.gathering import CallTally, gather
from skill_evaluator.audit.run.plan import (
    AUDIT,
    RUNS,
    AuditManifest,
    AuditPlan,
    read_audit_manifest,
    read_audit_plan,
    write_manifest,
)
from skill_evaluator.display.options import FOLDERS, words_of
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import AuditError
from skill_evaluator.library.config import Model
from skill_evaluator.repository import commit_of
from skill_evaluator.runner.journal import MANIFEST, read_manifest
from skill_evaluator.runner.limits import Budget
from skill_evaluator.runner.prices import sum_of
from skill_evaluator.runner.runs import Run, check_writable, settings_digest
from skill_evaluator.runner.schedule import Shard
from skill_evaluator.runner.session import Questions, Session, Watch, with_keys
from skill_evaluator.text import nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRun:
    """One model's part of an audit; `stopped`: why calls were left unmade."""

    model_id: str
    shard: str | None
    tally: CallTally
    stopped: str | None
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedAudit:
    """An audit with its runs. `models`: how many were to be asked."""

    request: AuditRunRequest
    audit: AuditManifest
    folder: Path
    models: int
    runs: Sequence[AuditRun]

    @property
    def complete(self) -> bool:
        """Whether every model answered enough."""
        return len(self.runs) == self.models and all(run.complete for run in self.runs)

    @property
    def next_words(self) -> str:
        """The command that comes next, and what for."""
        request = self.request
        if self.complete and all(run.tally.answered == run.tally.planned for run in self.runs):
            words = ["skill-evaluator", "audit", "report", str(self.folder), *words_of(request)]
            return f"what it found: {shlex.join(words)}"
        audit = self.folder.name if self.folder.parent == request.audits else str(self.folder)
        words = ["skill-evaluator", "audit", "run"]
        words += ["--resume", audit] if request.plan is None else ["--plan", str(request.plan)]
        for model_id in request.models:
            if model_id in self.audit.models:  # one without a key is none of the audit's
                words += ["--model", model_id]
        if any("max_calls" in (run.stopped or "") for run in self.runs):
            request = replace(request, max_calls=sum(run.tally.planned - run.tally.answered for run in self.runs))
        words += words_of(request, "shard", "audits", *FOLDERS, "concurrency", "max_cost", "max_calls")
        return f"to go on where this stopped: {shlex.join(words)}"


def run_audit(request: AuditRunRequest, *, watch: Watch) -> AskedAudit:
    """Draw an audit or take one up, ask what has no answer, and count what became of every call."""
    refuse_wrong(request)
    plan = None if request.plan is None else read_audit_plan(request.plan)
    drawn, folder = _draw(request, plan)
    audit = drawn.manifest
    usable = with_keys(drawn.models, drawn)
    runs = runs_of(audit, list(usable.values()), Shard.parse(request.shard) if request.shard else None, folder)
    check_writable(folder / RUNS, "--audits DIR")
    if not (folder / AUDIT).exists():
        write_manifest(folder, audit)
    max_cost = request.max_cost
    if max_cost is None:
        max_cost = audit.max_cost_usd if plan is None else plan.max_cost_of(request.models, request.shard)
    session = Session(
        configuration=drawn,
        watch=watch,
        budget=Budget(max_cost, request.max_calls),
        concurrency=request.concurrency,
    )
    asked = session.ask(runs, Questions(request_for=drawn.request))  # answers are scored when all are gathered
    tallies = gather([folder], request).tallies
    made = []
    for run in runs:
        tally, stopped = tallies[run.model.id], asked.why_stopped(run)
        enough = tally.answered >= drawn.settings.required_coverage * tally.planned
        made.append(
            AuditRun(
                model_id=run.model.id,
                shard=run.manifest.shard,
                tally=tally,
                stopped=stopped,
                complete=stopped is None and enough,
            )
        )
    if any("max_cost" in (run.stopped or "") for run in made):  # go on under a cap that suffices for all
        most = sum_of(asked_models(drawn, drawn.sizes(), str)).cost_upper_usd or 0.0
        request = replace(request, max_cost=round(most + 0.01, 2))
    return AskedAudit(request=request, audit=audit, folder=folder, models=len(drawn.models), runs=made)


def _draw(request: AuditRunRequest, plan: AuditPlan | None) -> tuple[DrawnAudit, Path]:
    """Take up the audit of a plan or of `--resume`, or draw a new one; return it with the folder it is kept in."""
    if plan is not None:
        shards = {job.shard for job in plan.jobs if not request.models or job.model_id in request.models}
        if request.shard not in (None, *shards):
            there = ", ".join(sorted(filter(None, shards))) or "none: leave --shard out"
            raise AuditError(f"--shard {request.shard} is not a shard of the planned audit, which has {there}")
        folder = request.audits / plan.audit.id
        if (folder / AUDIT).exists() and read_audit_manifest(folder / AUDIT) != plan.audit:
            raise AuditError(f"{folder} differs from {request.plan}; move the folder away")
        return drawn_audit(_as_begun(plan.audit, request), request), folder
    if request.resume is not None:
        folder = Path(request.resume)
        if not (folder / AUDIT).is_file():  # then it is an id, or `latest`
            ids = sorted(path.parent.name for path in request.audits.glob(f"*/{AUDIT}"))
            audit_id = ids[-1] if request.resume == "latest" and ids else request.resume
            if audit_id not in ids:
                raise AuditError(f"no audit '{audit_id}' in {request.audits} to resume {nearest(audit_id, ids)}")
            folder = request.audits / audit_id
        return drawn_audit(_as_begun(read_audit_manifest(folder / AUDIT), request), request), folder
    commit = commit_of(request.components)
    drawn = new_audit(request, keyed=True, commit=commit, transport="batch" if request.batch else "direct")
    for doubt in drawn.manifest.doubts:
        print(f"warning: {visible(doubt)}", file=sys.stderr)
    return drawn, request.audits / drawn.manifest.id


def _as_begun(audit: AuditManifest, request: AuditRunRequest) -> AuditManifest:
    """Return an audit that is there; raise AuditError where it is to be asked in batches and was not begun so."""
    if request.batch and audit.transport != "batch":
        raise AuditError(f"cannot go on with the audit {audit.id} with --batch: it was drawn without it")
    return audit


def runs_of(audit: AuditManifest, models: Sequence[Model], shard: Shard | None, folder: Path) -> list[Run]:
    """Return the run of each model, or of a shard of it: the one begun in the audit's folder, else a new one.

    Raise AuditError if a run was begun with other inputs, or a model was split differently.
    """
    begun = [read_manifest(path.parent) for path in sorted(folder.glob(f"{RUNS}/*/{MANIFEST}"))]
    runs = []
    for model in models:
        parts = [Shard.parse(run.shard) if run.shard else None for run in begun if run.model_id == model.id]
        part = parts[0] if shard is None and len(parts) == 1 else shard  # the one that was named, or the only one begun
        counts = {earlier.count if earlier else 1 for earlier in parts}
        if counts and counts != {part.count if part else 1}:
            raise AuditError(
                f"'{model.id}' was begun in parts {', '.join(str(earlier or 'whole') for earlier in parts)}; "
                "continue one of them: the same --shard I/N"
            )
        planned = audit.run(model.id, model.provider, settings_digest(model), part)
        place = folder / RUNS / planned.run_id
        earlier = next((run for run in begun if run.run_id == planned.run_id), planned)
        told = ("audit", "model_id", "shard", "replicates", "seed", "cases", "digests")  # what shapes the answers
        if any(getattr(earlier, name) != getattr(planned, name) for name in told):
            raise AuditError(f"{place} was begun with other inputs than {folder / AUDIT} says; start a new one")
        runs.append(Run(model=model, manifest=earlier, folder=place))
    return runs
