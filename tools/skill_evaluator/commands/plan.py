"""`skill-evaluator ci plan`: plan the runs of a push or of a manual start as jobs, with reasons and cost.

Makes no call and requires no key. Jobs and `collect` read its plan.json. `--detect` computes a sample size instead.
"""

from pathlib import Path

from skill_evaluator.api import Library
from skill_evaluator.ci.planning import PlanRequest
from skill_evaluator.display.options import folders_of, option, options, rare
from skill_evaluator.display.pages import page_of, print_page
from skill_evaluator.errors import EXIT_OK, ConfigError
from skill_evaluator.reports.ci import print_plan, publish_plan
from skill_evaluator.reports.ranking import sizing_blocks

EXAMPLES = (
    "skill-evaluator ci plan --base origin/main",
    "skill-evaluator ci plan <component> --model <model> --max-cost 5",
    "skill-evaluator ci plan --detect 0.05 <component>",
)


@options
class PlanOptions(PlanRequest):
    """The options of `plan`."""

    detect: float | None = option("Instead: how many cases would detect this drop.", metavar="DROP")
    out: Path = rare("Where the plan goes.", Path("plan.json"), metavar="FILE")


def plan(options: PlanOptions) -> int:
    """Plan the runs of a push and their maximum cost; writes plan.json. Makes no call."""
    library = Library(**folders_of(options))
    if options.detect is not None:
        if len(options.names) != 1:
            raise ConfigError("--detect takes one component: skill-evaluator ci plan --detect 0.05 <component>")
        sizing = library.sizing(options.names[0], options.detect, options.models)
        print_page(options.format, json=lambda: sizing, page=lambda: page_of(sizing.skill, sizing_blocks(sizing)))
        return EXIT_OK
    made = library.ci.plan(options)
    sha256 = library.ci.write_plan(made, options.out)
    print_plan(made, options.format)
    publish_plan(made, options.platform, sha256)
    return EXIT_OK
