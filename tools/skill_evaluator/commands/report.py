"""`skill-evaluator ci report`: show the results of a plan as a page, a job summary or a pull-request comment."""

from pathlib import Path

from skill_evaluator.api import Library
from skill_evaluator.display.addresses import Site
from skill_evaluator.display.options import (
    COMMON,
    ConfigOption,
    PlatformOption,
    argument,
    folders_of,
    option,
    options,
    rare,
)
from skill_evaluator.display.sheets import Format
from skill_evaluator.reports.ci import announce, open_pull_request, outcome_page, print_outcome, require_platform

EXAMPLES = ("skill-evaluator ci report collected --platform github",)
EXITS = {3: "regression, or a judge blocks or alerts", 4: "a person must review, or another model answered"}


@options
class ReportOptions(ConfigOption, PlatformOption):
    """The options of `report`."""

    collected: Path = argument("What collect wrote.", Path("collected"))
    plan: Path | None = rare("The plan; used if nothing was collected.", metavar="FILE")
    commits: tuple[str, ...] = rare("Comment on the pull request of this commit; repeatable.", (), "--commit")
    pull_request: int | None = rare("Comment on this pull request.", metavar="NUMBER")
    open_from: str | None = rare("Open a pull request of the records on this branch.", None, "--open", metavar="BRANCH")
    to: str = rare("The branch it is for.", "main", metavar="BRANCH")
    published: bool = rare("Whether the records reached their branch.", True, negative="--unpublished")
    format: Format = option("How to print the result.", "markdown", metavar="text|json|markdown", group=COMMON)


def report(options: ReportOptions) -> int:
    """Show the results of a plan; as a page, a job's summary, or a comment on a pull request."""
    if options.commits or options.pull_request or options.open_from:
        require_platform(options.platform)
    library = Library(**folders_of(options))
    settings, outcome = library.settings, library.ci.outcome(options.collected, options.plan)
    site = Site(settings.site.address)
    print_outcome(outcome, options.format, site)
    if options.platform is not None:
        page = outcome_page(outcome, options.published, site)
        announce(page, options.platform, options.commits, options.pull_request)
        if options.open_from:
            open_pull_request(outcome, options.platform, options.open_from, options.to)
    return outcome.exit_code(settings.policy)
