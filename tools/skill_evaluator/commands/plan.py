"""`skill-evaluator plan`: what a push (or a person) asks to be evaluated, cut into jobs, with the reasons and the cost.

It makes no call and needs no key. Jobs and `collect` go by the plan.json it writes; `--detect` plans a size instead.
"""

from pathlib import Path

from skill_evaluator.api import Library
from skill_evaluator.ci.planning import PlanRequest
from skill_evaluator.display.options import FormatOption, folders_of, option, options, rare
from skill_evaluator.errors import EXIT_OK, ConfigError
from skill_evaluator.reports.ci import print_plan, tell_plan
from skill_evaluator.reports.ranking import print_sizing

EXAMPLES = (
    "skill-evaluator ci plan --base origin/main",
    "skill-evaluator ci plan <component> --model <model> --max-cost 5",
    "skill-evaluator ci plan --detect 0.05 <component>",
)


@options
class PlanOptions(PlanRequest, FormatOption):
    """The options of `plan`."""

    detect: float | None = option(
        "Instead of a plan: say how many cases and replicates of a component would show this drop.", metavar="DROP"
    )
    out: Path = rare("Where the plan goes.", Path("plan.json"), metavar="FILE")


def plan(options: PlanOptions) -> int:
    """Plan the runs of a push and their maximum cost; writes plan.json. Makes no call."""
    library = Library(**folders_of(options))
    if options.detect is not None:
        if len(options.names) != 1:
            raise ConfigError("--detect takes one component: skill-evaluator plan --detect 0.05 <component>")
        print_sizing(library.sizing(options.names[0], options.detect, options.models), options.format)
        return EXIT_OK
    made = library.ci.plan(options)
    sha256 = library.ci.write_plan(made, options.out)
    print_plan(made, options.format)
    tell_plan(made, options.platform, sha256)
    return EXIT_OK
