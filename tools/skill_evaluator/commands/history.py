"""`skill-evaluator history`: show the score and verdict of each recorded version and model. Makes no call."""

from skill_evaluator.api import Library
from skill_evaluator.commands.options import named_verdicts
from skill_evaluator.display.addresses import Site
from skill_evaluator.display.options import SKILL, OnlyModels, RecordOptions, argument, option, options, words_of
from skill_evaluator.display.pages import print_page
from skill_evaluator.reports.history import history_page
from skill_evaluator.verdicts.decide.rules import exit_code

EXAMPLES = ("skill-evaluator history <component>", "skill-evaluator history <component> --fail-on regressed")
EXITS = {3: "regression, if --fail-on names it", 4: "another verdict of --fail-on"}


@options
class HistoryOptions(RecordOptions):
    """The options of `history`."""

    skill: str = argument(SKILL, metavar="COMPONENT")
    models: OnlyModels = ()
    fail_on: tuple[str, ...] = option("Verdicts that fail; default: none.", (), metavar="VERDICT,...")


def history(options: HistoryOptions) -> int:
    """Show the score and the verdict of each version and model.

    The highest version is also compared with the accepted baseline, so that small losses add up.
    """
    fail_on = named_verdicts(options.fail_on)
    library = Library(options.components, config=options.config)
    judged = library.history(options.skill, options.models)
    site = Site(library.settings.site.address)
    print_page(options.format, json=lambda: judged, page=lambda: history_page(judged, site, words_of(options)))
    return exit_code(judged.newest_verdict, fail_on)
