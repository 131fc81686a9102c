"""`skill-evaluator audit`: measure how much models fluctuate when the prompt around the task varies."""

import sys

from skill_evaluator.api import Library
from skill_evaluator.audit.drawing import AuditSize
from skill_evaluator.audit.page import print_audit, write_audit
from skill_evaluator.audit.printing import print_audit_runs, print_size
from skill_evaluator.audit.request import AuditReportRequest, AuditRunRequest
from skill_evaluator.display.options import folders_of, keywords_of
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK
from skill_evaluator.reports.live import watch

EXAMPLES = {
    "audit_run": (
        "skill-evaluator audit run --benchmark <component> --questions 50 --dry-run",
        "skill-evaluator audit run --model <model> --max-cost 20",
        "skill-evaluator audit run --batch",
        "skill-evaluator audit run --resume",
    ),
    "audit_report": (
        "skill-evaluator audit report",
        "skill-evaluator audit report audits/<id> --format markdown",
        "skill-evaluator audit report --without <scenario>",
        "skill-evaluator audit report --cube scores.csv --questions 100 --out report",
    ),
}
EXITS = {
    "audit_run": {4: "incomplete (it prints the command to go on)"},
    "audit_report": {4: "a model of the audit has no output"},
}


def audit_run(options: AuditRunRequest) -> int:
    """Run every model on every question in every scenario; saves the outputs in audits/<id>."""
    results = Library(**folders_of(options)).audits.run(**keywords_of(options, AuditRunRequest), watch=watch)
    if isinstance(results, AuditSize):
        print_size(results, options.format)
        return EXIT_OK
    print_audit_runs(results, options.format)
    return EXIT_OK if results.complete else EXIT_INCOMPLETE


def audit_report(options: AuditReportRequest) -> int:
    """Grade the models of an audit by their stability."""
    reported = Library(**folders_of(options)).audits.report(**keywords_of(options, AuditReportRequest))
    print_audit(reported.result, options.format)
    if written := write_audit(reported):
        print(f"written to {reported.out}: {', '.join(path.name for path in written)}", file=sys.stderr)
    return EXIT_INCOMPLETE if reported.absent else EXIT_OK
