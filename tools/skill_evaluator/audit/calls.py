"""`audit run`: call every model with every question in every scenario, and count the outcomes."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from skill_evaluator.audit.drawing import DrawnAudit, drawn_audit, new_audit, validate_request
from skill_evaluator.audit.gathering import CallTally, gather, read_runs
from skill_evaluator.audit.manifest import AUDIT, RUNS, AuditManifest, audit_folders, read_audit_manifest
from skill_evaluator.audit.request import AuditRunRequest
from skill_evaluator.display.options import FOLDERS, LATEST, words_of
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import AuditError
from skill_evaluator.files import json_text, replace_text
from skill_evaluator.runner.engine import CallHandlers
from skill_evaluator.runner.journal import Run, check_writable, settings_digest
from skill_evaluator.runner.limits import Budget
from skill_evaluator.runner.prices import sum_of
from skill_evaluator.runner.session import Session, Watch, with_keys
from skill_evaluator.text import nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRun:
    """The calls of one model; `stopped` is the reason why calls were not made, or None if all were."""

    model_id: str
    tally: CallTally
    stopped: str | None
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResults:
    """An audit and its runs. `models` is the number of models to call; those without a key have no run."""

    request: AuditRunRequest
    audit: AuditManifest
    folder: Path
    models: int
    runs: Sequence[AuditRun]

    @property
    def complete(self) -> bool:
        """Whether every model has a run with enough outputs."""
        return len(self.runs) == self.models and all(run.complete for run in self.runs)

    @property
    def next_step(self) -> str:
        """A line with the next command and its purpose."""
        request = self.request
        if self.complete and all(run.tally.answered == run.tally.planned for run in self.runs):
            command = ["skill-evaluator", "audit", "report", str(self.folder), *words_of(request)]
            return f"report: {shlex.join(command)}"
        audit = self.folder.name if self.folder.parent == request.audits else str(self.folder)
        command = ["skill-evaluator", "audit", "run", "--run", audit]
        for model_id in request.models:
            if model_id in self.audit.models:  # a model without a key is not part of the audit
                command += ["--model", model_id]
        if any("max_calls" in (run.stopped or "") for run in self.runs):
            request = replace(request, max_calls=sum(run.tally.planned - run.tally.answered for run in self.runs))
        command += words_of(request, "audits", *FOLDERS, "concurrency", "max_cost", "max_calls")
        return f"to continue: {shlex.join(command)}"


def run_audit(request: AuditRunRequest, *, watch: Watch) -> AuditResults:
    """Draw a new audit or resume one, make the missing calls, and count the outcomes."""
    validate_request(request)
    drawn, folder = _draw(request)
    audit, configuration = drawn.manifest, drawn.configuration
    earlier = read_runs(folder, audit)
    runs = []
    for model in with_keys(configuration.models, configuration).values():
        planned = audit.run(model.id, model.provider, settings_digest(model))
        path, manifest = earlier.get(model.id, (folder / RUNS / planned.run_id, planned))
        runs.append(Run(model=model, manifest=manifest, folder=path))
    check_writable(folder / RUNS, "--audits DIR")
    if not (folder / AUDIT).exists():
        replace_text(folder / AUDIT, json_text(audit.model_dump(mode="json")))
    max_cost = audit.max_cost_usd if request.max_cost is None else request.max_cost
    session = Session(
        configuration=configuration,
        watch=watch,
        budget=Budget(max_cost, request.max_calls),
        concurrency=request.concurrency,
    )
    failures = session.make_calls(runs, CallHandlers(request_for=drawn.request))
    tallies = gather(folder, request).tallies
    results = []
    for run in runs:
        tally, failure = tallies[run.model.id], failures[run.manifest.run_id]
        stopped = str(failure) if failure else None
        enough = tally.answered >= configuration.settings.required_coverage * tally.planned
        results.append(
            AuditRun(model_id=run.model.id, tally=tally, stopped=stopped, complete=stopped is None and enough)
        )
    if any("max_cost" in (run.stopped or "") for run in results):  # suggest a cap that covers the whole audit
        upper = sum_of(drawn.estimates()).cost_upper_usd or 0.0
        request = replace(request, max_cost=round(upper + 0.01, 2))
    return AuditResults(request=request, audit=audit, folder=folder, models=len(configuration.models), runs=results)


def _draw(request: AuditRunRequest) -> tuple[DrawnAudit, Path]:
    """Return the audit to resume, or a new one, and its folder."""
    if request.resumed is None:
        drawn = new_audit(request, keyed=True)
        for doubt in drawn.manifest.doubts:
            print(f"warning: {visible(doubt)}", file=sys.stderr)
        return drawn, request.audits / drawn.manifest.id
    folder = Path(request.resumed)
    if not (folder / AUDIT).is_file():  # an id or `latest`
        ids = [audit_folder.name for audit_folder in audit_folders(request.audits)]
        audit_id = ids[-1] if request.resumed == LATEST and ids else request.resumed
        if audit_id not in ids:
            raise AuditError(f"no audit '{audit_id}' in {request.audits} to resume {nearest(audit_id, ids)}")
        folder = request.audits / audit_id
    audit = read_audit_manifest(folder / AUDIT)
    if request.batch and audit.transport != "batch":
        raise AuditError(f"cannot resume the audit {audit.id} with --batch: it was started without it")
    return drawn_audit(audit, request), folder
