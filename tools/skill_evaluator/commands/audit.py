"""`skill-evaluator audit` and `scenarios`: measure how much models fluctuate when the prompt around the task varies."""

import sys

from skill_evaluator.audit.calls import run_audit
from skill_evaluator.audit.family import check_scenarios
from skill_evaluator.audit.manifest import draw_audit
from skill_evaluator.audit.page import print_audit, print_audit_runs, print_family, print_size, write_audit
from skill_evaluator.audit.request import AuditReportRequest, AuditRunRequest, ScenariosCheckRequest
from skill_evaluator.audit.results import report_audit
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_USER_ERROR
from skill_evaluator.judges.judge_run import JudgeRunSize
from skill_evaluator.judges.workflows.drafting import draft_scenarios
from skill_evaluator.judges.workflows.requests import ScenariosDraftRequest
from skill_evaluator.reports.judge_results import print_judge_run_size
from skill_evaluator.reports.live import watch
from skill_evaluator.text import counted

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
    "scenarios_check": (
        "skill-evaluator scenarios check",
        "skill-evaluator scenarios check legal --format markdown",
        "skill-evaluator scenarios check legal --trial audits/<id>",
    ),
    "scenarios_draft": (
        'skill-evaluator scenarios draft --task "law" --model <model> --dry-run',
        'skill-evaluator scenarios draft --task "law" --model <model> --max-cost 1',
    ),
}
EXITS = {
    "audit_run": {4: "incomplete (it prints the command to resume)"},
    "audit_report": {4: "a model of the audit has no output"},
    "scenarios_check": {2: "invalid input, or a family that is not ready", 4: "a template that is not reviewed"},
    "scenarios_draft": {2: "invalid input, or an output that is not a family (nothing is written)", 4: "no output"},
}


def audit_run(options: AuditRunRequest) -> int:
    """Run every model on every question in every scenario; save the outputs in audits/<id>."""
    drawn = draw_audit(options)
    if options.dry_run:
        print_size(drawn, options.format)
        return EXIT_OK
    results = run_audit(drawn, watch)
    print_audit_runs(results, options.format)
    return EXIT_OK if results.complete else EXIT_INCOMPLETE


def audit_report(options: AuditReportRequest) -> int:
    """Grade the models of an audit by their stability."""
    reported = report_audit(options)
    print_audit(reported.result, options.format)
    if written := write_audit(reported):
        print(f"written to {reported.out}: {', '.join(path.name for path in written)}", file=sys.stderr)
    return EXIT_INCOMPLETE if reported.absent else EXIT_OK


def scenarios_check(options: ScenariosCheckRequest) -> int:
    """Check whether scenarios are ready for an audit; show the scores of a trial. Makes no call."""
    check = check_scenarios(options)
    print_family(check, options)
    codes = {"ready": EXIT_OK, "not ready": EXIT_USER_ERROR, "not reviewed": EXIT_INCOMPLETE}
    return codes[check.verdict]


def scenarios_draft(options: ScenariosDraftRequest) -> int:
    """Have a model draft scenarios of a domain, marked as unreviewed. Overwrites nothing."""
    drafted = draft_scenarios(options, watch)
    if isinstance(drafted, JudgeRunSize):
        return print_judge_run_size(drafted, options.format)
    check = check_scenarios(ScenariosCheckRequest(config=options.config, family=drafted.name))
    print_family(check, options)
    print(f"{counted(len(check.scenarios), 'scenario')} written to {drafted}, not reviewed yet", file=sys.stderr)
    return EXIT_OK
