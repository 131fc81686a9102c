"""`skill-evaluator report`: what became of a plan, as a page, a job's summary, and one comment on the pull request."""

import sys
from pathlib import Path

from skill_evaluator.api import Library
from skill_evaluator.ci.platforms import PLATFORMS
from skill_evaluator.display.addresses import Site
from skill_evaluator.display.options import ConfigOption, PlatformOption, argument, option, options
from skill_evaluator.display.sheets import Format
from skill_evaluator.errors import PlanError
from skill_evaluator.reports.ci import outcome_page, print_outcome

EXAMPLES = ("skill-evaluator report collected --platform github",)
EXITS = {
    3: "a verdict that fails, or a judge blocks or alerts",
    4: "a person must look, or another model answered",
}


@options
class ReportOptions(ConfigOption, PlatformOption):
    """The options of `report`."""

    collected: Path = argument("What collect wrote.", Path("collected"))
    plan: Path | None = option("The plan: what to say when nothing was collected.", metavar="FILE")
    commit: str | None = option("Comment on the pull request merged with this commit.")
    open_from: str | None = option(
        "Open a pull request of the records on this branch.", None, "--open", metavar="BRANCH"
    )
    to: str = option("The branch it is for.", "main", metavar="BRANCH")
    published: bool = option(
        "Say on the page whether the records reached their branch.", True, "--published/--unpublished"
    )
    format: Format = option("How to print the result (on stdout).", "markdown")


def report(options: ReportOptions) -> int:
    """Show what became of a plan: as a page, a job's summary, and a comment on the pull request it is about."""
    if options.platform is None and (options.commit or options.open_from):
        raise PlanError("--commit and --open need --platform github, which they are about")
    platform = None if options.platform is None else PLATFORMS[options.platform]
    if platform is not None and (options.commit or options.open_from):
        platform.check_access()
    library = Library.at(options)
    settings, outcome = library.settings, library.outcome(options.collected, options.plan)
    site = Site(settings.site.address)
    print_outcome(outcome, options.format, site)
    if platform is not None:
        page = outcome_page(outcome, options.published, site)
        platform.add_summary(page)
        if options.commit:
            address = platform.comment(options.commit, page)
            print(f"comment: {address or 'no merged pull request has this commit'}", file=sys.stderr)
        if options.open_from and any(run.run_id for run in outcome.runs):
            address = platform.pull_request(options.open_from, options.to, "Record evaluations")
            print(f"pull request of the records: {address or 'there is nothing to review'}", file=sys.stderr)
    return outcome.exit_code(settings.policy)
