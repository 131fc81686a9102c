"""`skill-evaluator audit`: how much does a model move when the prompt around the task changes in ordinary ways?"""

import sys

from skill_evaluator.api import Library
from skill_evaluator.audit.report.calls import print_audit_runs, print_size, size_page
from skill_evaluator.audit.request import AuditPlanRequest, AuditReportRequest, AuditRunRequest
from skill_evaluator.ci.matrix import job_words, legs_of
from skill_evaluator.ci.platforms import PLATFORMS
from skill_evaluator.display.options import FormatOption, Legs, PlatformOption, options
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK
from skill_evaluator.reports.live import watch

EXAMPLES = {
    "audit_run": (
        "skill-evaluator audit run --benchmark <component> --questions 50 --dry-run",
        "skill-evaluator audit run --model <model> --max-cost 20",
        "skill-evaluator audit run --batch",
        "skill-evaluator audit run --resume",
    ),
    "audit_plan": (
        "skill-evaluator audit plan --model <model> --questions 50 --max-cost 20",
        "skill-evaluator audit run --plan audit-plan.json --model <model>",
    ),
    "audit_report": (
        "skill-evaluator audit report",
        "skill-evaluator audit report audits/<id> --format markdown",
        "skill-evaluator audit report --cube scores.csv --questions 100 --out report",
    ),
}
EXITS = {
    "audit_run": {4: "incomplete (it prints the command that goes on)"},
    "audit_report": {4: "a model that was to be asked is not in it"},
}


@options
class AuditRunOptions(AuditRunRequest, FormatOption):
    """The options of `audit run`."""


@options
class AuditPlanOptions(AuditPlanRequest, PlatformOption, FormatOption):
    """The options of `audit plan`."""

    legs: Legs = ""


@options
class AuditReportOptions(AuditReportRequest, PlatformOption, FormatOption):
    """The options of `audit report`."""


def audit_run(options: AuditRunOptions) -> int:
    """Ask every model every question in every scenario; keeps the answers in audits/<id>."""
    library = Library.at(options)
    if options.dry_run:
        print_size(library.audit_size(options), options.format)
        return EXIT_OK
    asked = library.audit(options, watch=watch)
    print_audit_runs(asked, options.format)
    return EXIT_OK if asked.complete else EXIT_INCOMPLETE


def audit_plan(options: AuditPlanOptions) -> int:
    """Draw an audit and cut it into jobs; one a model or a shard of its questions. Makes no call, needs no key."""
    plan, size = Library.at(options).audit_plan(options)
    print_size(size, options.format)
    if options.platform is not None:
        platform = PLATFORMS[options.platform]
        platform.set_outputs({"legs": legs_of(map(job_words, plan.jobs), options.legs.split())})
        platform.add_summary(size_page(size, plan.reason))
    return EXIT_OK


def audit_report(options: AuditReportOptions) -> int:
    """Say how able and how steady each model is; how sure that is, and which to take for what; with charts."""
    # it imports scipy, which a dry run has no use for
    from skill_evaluator.audit.report.page import audit_page, print_audit, write_audit

    reported = Library.at(options).audit_report(options)
    print_audit(reported.result, options.format)
    if written := write_audit(reported):
        print(f"written to {reported.out}: {', '.join(path.name for path in written)}", file=sys.stderr)
    if options.platform:
        PLATFORMS[options.platform].add_summary(audit_page(reported.result))
    return EXIT_INCOMPLETE if reported.absent else EXIT_OK
