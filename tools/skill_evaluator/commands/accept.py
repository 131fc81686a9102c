"""`skill-evaluator accept`: make a recorded version the accepted baseline of later versions. Makes no call."""

from skill_evaluator.api import Library
from skill_evaluator.display.options import SKILL, OnlyModels, RecordOptions, argument, flag, option, options
from skill_evaluator.display.pages import print_page
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.reports.history import acceptances_page, accepted_json, accepted_page

EXAMPLES = (
    'skill-evaluator accept <component> --reason "dates now come from the parser"',
    'skill-evaluator accept <component> 1.4.0 --reason "cheaper, and good enough"',
    "skill-evaluator accept <component> --list",
)


@options
class AcceptOptions(RecordOptions):
    """The options of `accept`."""

    skill: str = argument(SKILL, metavar="COMPONENT")
    version: str | None = argument("Default: the highest version with a complete record.", None)
    reason: str = option("The reason; required.", "", metavar="TEXT")
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
        shown = library.accepted(options.skill)
        value = {"skill": options.skill, "accepted": shown}
        print_page(options.format, json=lambda: value, page=lambda: acceptances_page(options.skill, shown))
    else:
        accepted = library.accept(
            options.skill, options.version, reason=options.reason, by=options.by, models=options.models
        )
        print_page(options.format, json=lambda: accepted_json(accepted), page=lambda: accepted_page(accepted))
    return EXIT_OK
