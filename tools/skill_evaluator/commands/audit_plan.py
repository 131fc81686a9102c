"""`skill-evaluator audit plan`: an audit drawn and cut into jobs of CI, with what it may cost. Makes no call."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from skill_evaluator.audit.report.size import AuditSize, print_size, size_markdown, warn_of_doubts
from skill_evaluator.audit.run.jobs import AuditJob, AuditPlan, audit_jobs, audit_matrix
from skill_evaluator.audit.run.runs import Cells
from skill_evaluator.ci.matrix import capped
from skill_evaluator.ci.platforms import PLATFORMS
from skill_evaluator.commands.audit_dry_run import asked_models
from skill_evaluator.commands.audit_inputs import AuditOptions, new_audit
from skill_evaluator.display.safe_text import code_span
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.files import json_text, replace_text
from skill_evaluator.repository import commit_of
from skill_evaluator.text import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPlanOptions:
    """What `audit plan` takes beside what every audit does."""

    out: Path = Path("audit-plan.json")
    reason: str = ""
    platform: str | None = None


def audit_plan(options: AuditOptions, plan_options: AuditPlanOptions) -> int:
    """Draw an audit, cut it into jobs, write the plan and say what it takes; returns the exit code."""
    inputs = new_audit(options, keyed=False)
    audit = inputs.manifest.model_copy(update={"commit": commit_of(options.components)})
    sizes = Cells(inputs.materials).sizes(audit.cells())
    jobs = capped(audit_jobs(audit, inputs.models, inputs.kinds, sizes, inputs.settings.jobs), options.max_cost)
    plan = AuditPlan(reason=plan_options.reason, audit=audit, jobs=jobs)
    replace_text(plan_options.out, json_text(plan.model_dump(mode="json")))
    size = AuditSize(
        audit=audit,
        models=asked_models(inputs, sizes, lambda model: _jobs_of(model.id, jobs)),
        noted="jobs",
        closing=_closing(plan, options.max_cost),
    )
    print_size(size, options.format)
    warn_of_doubts(audit)
    if plan_options.platform is not None:
        platform = PLATFORMS[plan_options.platform]
        platform.set_outputs({"matrix": audit_matrix(jobs), "jobs": len(jobs)})
        reason = f"Reason: {code_span(plan.reason)}\n\n" if plan.reason else ""
        platform.add_summary(f"{size_markdown(size)}\n{reason}")
    return EXIT_OK


def _jobs_of(model_id: str, jobs: Sequence[AuditJob]) -> str:
    return str(sum(job.model_id == model_id for job in jobs))


def _closing(plan: AuditPlan, max_cost: float | None) -> str:
    cap = "" if max_cost is None else f", capped at ${max_cost:,.2f}"
    return f"{counted(len(plan.jobs), 'job')}{cap}; no call was made"
