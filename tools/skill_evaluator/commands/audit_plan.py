"""`skill-evaluator audit plan`: an audit drawn and cut into jobs of CI, with what it may cost. Makes no call."""

from pathlib import Path

from skill_evaluator.audit.report.calls import AuditSize, print_size, size_page, warn_of_doubts
from skill_evaluator.audit.run.materials import Cells
from skill_evaluator.audit.run.plan import AuditPlan, audit_jobs
from skill_evaluator.ci.matrix import capped, job_words, legs_of, sharing
from skill_evaluator.ci.platforms import PLATFORMS
from skill_evaluator.commands.audit_inputs import AuditOptions, asked_models, new_audit
from skill_evaluator.display.options import Legs, PlatformOption, Reason, option, options
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.files import json_text, replace_text
from skill_evaluator.repository import commit_of
from skill_evaluator.runner.schedule import refuse_amounts
from skill_evaluator.runner.spending import month_of
from skill_evaluator.stats import total_or_none
from skill_evaluator.text import counted

EXAMPLES = (
    "skill-evaluator audit plan --model <model> --questions 50 --max-cost 20, then on each machine: "
    "skill-evaluator audit run --plan audit-plan.json --model <model>",
)


@options
class AuditPlanOptions(AuditOptions, PlatformOption):
    """The options of `audit plan` beside those of every audit."""

    reason: Reason = ""
    out: Path = option("Where the plan goes.", Path("audit-plan.json"), metavar="FILE")
    legs: Legs = ""


def audit_plan(options: AuditPlanOptions) -> int:
    """Draw an audit and cut it into jobs, one a model or a shard of its questions. Makes no call and needs no key."""
    counts = {"--replicates": options.replicates, "--questions": options.questions}
    refuse_amounts(counts, max_calls=None, max_cost=options.max_cost)
    inputs = new_audit(options, keyed=False)
    audit = inputs.manifest.model_copy(update={"commit": commit_of(options.components)})
    sizes = Cells(inputs.materials).sizes(audit.cells())
    jobs = capped(audit_jobs(audit, inputs.models, inputs.kinds, sizes, inputs.settings.jobs), options.max_cost)
    month = month_of(inputs.settings, options.config, options.components)
    if month is not None:
        of_models = {
            job.model_id: [each.cost_upper_usd for each in jobs if each.model_id == job.model_id] for job in jobs
        }
        month.refuse({model_id: total_or_none(costs) for model_id, costs in of_models.items()}, options.max_cost)
    jobs = sharing(jobs, inputs.models, inputs.settings.ceilings)
    plan = AuditPlan(reason=options.reason, audit=audit, jobs=jobs)
    replace_text(options.out, json_text(plan.model_dump(mode="json")))
    cap = "" if options.max_cost is None else f", capped at ${options.max_cost:,.2f}"
    size = AuditSize(
        audit=audit,
        models=asked_models(inputs, sizes, lambda model: str(sum(job.model_id == model.id for job in jobs))),
        noted="jobs",
        closing=f"{counted(len(jobs), 'job')}{cap}; no call was made",
    )
    print_size(size, options.format)
    warn_of_doubts(audit)
    if options.platform is not None:
        platform = PLATFORMS[options.platform]
        platform.set_outputs({"legs": legs_of(map(job_words, jobs), options.legs.split())})
        platform.add_summary(size_page(size, plan.reason))
    return EXIT_OK
