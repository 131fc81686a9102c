"""`skill-evaluator report`: what became of a plan, as a page, a job's summary, and one comment on the pull request."""

import sys
from dataclasses import dataclass
from pathlib import Path

from skill_evaluator.ci.collecting import OUTCOME, Outcome, lost, read_outcome
from skill_evaluator.ci.plan import read_plan
from skill_evaluator.ci.platforms import PLATFORMS, Platform
from skill_evaluator.display.sheets import Format
from skill_evaluator.errors import EXIT_OK, PlanError
from skill_evaluator.library.config import load_settings
from skill_evaluator.reports.outcome import outcome_markdown, print_outcome
from skill_evaluator.verdicts.rules import component_verdict, exit_code


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """The command line, typed."""

    collected: Path = Path("collected")
    plan: Path | None = None
    commit: str | None = None
    open_from: str | None = None
    published: bool = True
    to: str = "main"
    config: Path = Path(".evaluator")
    platform: str | None = None
    format: Format = "markdown"


def report(options: ReportOptions) -> int:
    """Print the page, and tell the platform: summary, comment, pull request of the records.

    Returns the exit code that the policy asks for: 3 when a version is worse.
    """
    if options.platform is None and (options.commit or options.open_from):
        raise PlanError("--commit and --open need --platform github, which they are about")
    settings = load_settings(options.config)
    outcome = _outcome(options)
    print_outcome(outcome, options.format)
    if options.platform is not None:
        _tell(PLATFORMS[options.platform], outcome, options)
    if not outcome.verdicts:
        return EXIT_OK
    return exit_code(component_verdict(one.verdict for one in outcome.verdicts), settings.policy.fail_on)


def _outcome(options: ReportOptions) -> Outcome:
    path = options.collected / OUTCOME
    if options.plan is not None and not path.exists():
        return lost(read_plan(options.plan), "its results could not be collected; the run says why")
    return read_outcome(path)


def _tell(platform: Platform, outcome: Outcome, options: ReportOptions) -> None:
    page = outcome_markdown(outcome, options.published)
    platform.add_summary(page)
    if options.commit:
        address = platform.comment(options.commit, page)
        print(f"comment: {address or 'no merged pull request has this commit'}", file=sys.stderr)
    if options.open_from and any(run.run_id for run in outcome.runs):
        address = platform.pull_request(options.open_from, options.to, "Record evaluations")
        print(f"pull request of the records: {address or 'there is nothing to review'}", file=sys.stderr)
