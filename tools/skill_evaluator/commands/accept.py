"""`skill-evaluator accept`: make a recorded version the anchor of later versions. Makes no call."""

from skill_evaluator.api import Library
from skill_evaluator.display.options import SKILL, OnlyModels, RecordOptions, argument, flag, option, options
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.reports.history import print_acceptances, print_accepted

EXAMPLES = (
    'skill-evaluator accept <component> --why "dates now come from the parser"',
    'skill-evaluator accept <component> 1.4.0 --why "cheaper, and good enough"',
    "skill-evaluator accept <component> --list",
)


@options
class AcceptOptions(RecordOptions):
    """The options of `accept`."""

    skill: str = argument(SKILL, metavar="COMPONENT")
    version: str | None = argument("Default: the highest version with a complete record.", None)
    why: str = option("The reason; required.", "", metavar="TEXT")
    by: str = option("Who accepts it; default: the user of git.", "", metavar="NAME")
    models: OnlyModels = ()
    show: bool = flag("Accept nothing: show what was accepted.", "--list")


def accept(options: AcceptOptions) -> int:
    """Accept a version as the baseline of later versions. Makes no call.

    The acceptance is written to `evals/accepted.json`; commit that file. Losses of later versions add up since then. A
    version that regressed may be accepted.
    """
    library = Library(options.components, config=options.config)
    if options.show:
        print_acceptances(options.skill, library.accepted(options.skill), options.format)
    else:
        accepted = library.accept(options.skill, options.version, why=options.why, by=options.by, models=options.models)
        print_accepted(accepted, options.format)
    return EXIT_OK
