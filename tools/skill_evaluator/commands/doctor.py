"""`skill-evaluator doctor`: check keys, call each model once, and report what prevents runs here and in CI."""

from skill_evaluator.api import Library
from skill_evaluator.display.options import ConfigOption, FormatOption, folders_of, options
from skill_evaluator.display.pages import page_of, print_page
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK
from skill_evaluator.reports.ci import doctor_blocks

EXAMPLES = ("skill-evaluator doctor", "skill-evaluator doctor --format json")
EXITS = {0: "no problem found", 4: "a problem; the output says what to do"}


@options
class DoctorOptions(ConfigOption, FormatOption):
    """The options of `doctor`."""


def doctor(options: DoctorOptions) -> int:
    """Check the set-up; the key of each model here and in CI, one call to it, git, placeholders and workflows.

    Keys here are environment variables. Those in CI are secrets, whose names `gh` lists if it is logged in; without it
    the command says that it could not look. No key is shown. Each model with a key here gets one short call.
    """
    report = Library(**folders_of(options)).doctor()
    print_page(options.format, json=lambda: report, page=lambda: page_of("the set-up", doctor_blocks(report)))
    return EXIT_INCOMPLETE if report.problems else EXIT_OK
