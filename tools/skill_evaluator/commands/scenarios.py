"""`skill-evaluator scenarios`: draft a family of scenarios, and check whether one is ready for an audit."""

import sys

from skill_evaluator.api import Library
from skill_evaluator.audit.findings.family import FamilyVerdict, check_draft
from skill_evaluator.audit.report.calls import print_family
from skill_evaluator.audit.request import ScenariosCheckRequest, ScenariosDraftRequest
from skill_evaluator.display.options import folders_of, keywords_of
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_USER_ERROR
from skill_evaluator.judges.prompting.judging import JudgeRunSize
from skill_evaluator.reports.judge_results import print_judged
from skill_evaluator.reports.live import watch
from skill_evaluator.text import counted

EXAMPLES = {
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
    "scenarios_check": {
        2: "invalid input, or a family that is not ready",
        4: "a template that is not reviewed",
    },
    "scenarios_draft": {2: "invalid input, or an output that is not a family (nothing is written)", 4: "no output"},
}
_EXIT_OF: dict[FamilyVerdict, int] = {
    "ready": EXIT_OK,
    "not ready": EXIT_USER_ERROR,
    "not reviewed": EXIT_INCOMPLETE,
}


def scenarios_check(options: ScenariosCheckRequest) -> int:
    """Check whether scenarios are ready for an audit; shows the scores of a trial. Makes no call."""
    check = Library(**folders_of(options)).audits.check_scenarios(**keywords_of(options, ScenariosCheckRequest))
    print_family(check, options.format, options)
    return _EXIT_OF[check.verdict]


def scenarios_draft(options: ScenariosDraftRequest) -> int:
    """Draft scenarios for a domain with a model; marked as unreviewed. Overwrites nothing."""
    library = Library(config=options.config)
    drafted = library.judge.scenarios(**keywords_of(options, ScenariosDraftRequest), watch=watch)
    if isinstance(drafted, JudgeRunSize):
        return print_judged(drafted, options.format)
    check = check_draft(drafted.name, options.config, library.settings.limits)
    print_family(check, options.format)
    print(f"{counted(len(check.scenarios), 'scenario')} written to {drafted}, not reviewed yet", file=sys.stderr)
    return EXIT_OK
