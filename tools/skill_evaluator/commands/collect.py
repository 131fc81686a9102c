"""`skill-evaluator collect`: the artifacts of a plan's jobs → one record per component and model, and outcome.json.

It makes no call and touches no leaderboard. It scores the answers themselves, so that shards become one run.
"""

from skill_evaluator.api import Library
from skill_evaluator.ci.collecting import CollectRequest
from skill_evaluator.ci.platforms import PLATFORMS
from skill_evaluator.commands.collect_batches import CollectingPlaces, collect_batches, collect_planned
from skill_evaluator.display.addresses import Site
from skill_evaluator.display.options import FormatOption, PlatformOption, flag, option, options
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK
from skill_evaluator.reports.ci import outcome_page, print_outcome

EXAMPLES = (
    "skill-evaluator collect artifacts --plan plan.json --out collected",
    "skill-evaluator collect --batches",
)
EXITS = {
    3: "worse than the recorded version (--batches)",
    4: "a run is not complete (the others are collected all the same)",
}


@options
class CollectOptions(CollectRequest, PlatformOption, FormatOption):
    """The options of `collect`."""

    batches: bool = flag("Take what batches left by --submit-only have brought; needs no plan.")
    planned: str | None = option("With --batches: those of a job of plan --pending.", metavar="JOB")


def collect(options: CollectOptions) -> int:
    """Put the answers of a plan's jobs together: one record per component and model, and what became of every call."""
    if options.batches:
        places = CollectingPlaces(
            components=options.components, fixtures=options.fixtures, config=options.config, format=options.format
        )
        if options.planned is not None:
            return collect_planned(options.plan, options.planned, options.artifacts or options.components, places)
        return collect_batches(options.artifacts, places)
    outcome = Library.at(options).collect(options)
    site = Site(options.configuration.settings.site.address)
    print_outcome(outcome, options.format, site)
    if options.platform:
        PLATFORMS[options.platform].add_summary(outcome_page(outcome, site=site))
    return EXIT_OK if outcome.complete else EXIT_INCOMPLETE
