"""`skill-evaluator collect`: the artifacts of a plan's jobs → one record per component and model, and outcome.json.

It makes no call and touches no leaderboard. It scores the answers themselves, so that shards become one run.
"""

from pathlib import Path

from skill_evaluator.ci.collecting import collect_artifacts
from skill_evaluator.ci.matrix import Checkout
from skill_evaluator.ci.plan import read_plan
from skill_evaluator.ci.platforms import PLATFORMS
from skill_evaluator.commands.collect_batches import CollectingPlaces, collect_batches, collect_planned
from skill_evaluator.display.addresses import Site
from skill_evaluator.display.options import (
    ComponentsOption,
    ConfigOption,
    FixturesOption,
    FormatOption,
    PlatformOption,
    argument,
    flag,
    option,
    options,
)
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, PlanError
from skill_evaluator.providers import read_configuration
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
class CollectOptions(ComponentsOption, FixturesOption, ConfigOption, PlatformOption, FormatOption):
    """The options of `collect`."""

    artifacts: Path | None = argument("Folder that holds the run folders of a plan's jobs, at any depth.", None)
    plan: Path = option("The plan.", Path("plan.json"), metavar="FILE")
    out: Path = option("Where records and outcome.json go.", Path("collected"), metavar="DIR")
    recorded: tuple[str, ...] = option(
        "A branch that holds records beside the work tree; repeatable.", (), metavar="REF"
    )
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
    plan = read_plan(options.plan)
    if options.artifacts is None or not options.artifacts.is_dir():
        raise PlanError(f"{options.artifacts} is not a folder; give the one the jobs' artifacts were brought to")
    configuration = read_configuration(options.config)
    checkout = Checkout(
        components=options.components,
        fixtures=options.fixtures,
        config=options.config,
        recorded=options.recorded,
        configuration=configuration,
    )
    outcome = collect_artifacts(plan, options.artifacts, checkout, options.out)
    site = Site(configuration.settings.site.address)
    print_outcome(outcome, options.format, site)
    if options.platform:
        PLATFORMS[options.platform].add_summary(outcome_page(outcome, site=site))
    return EXIT_OK if outcome.complete else EXIT_INCOMPLETE
