"""`skill-evaluator switch`: may every component move to a new model? Both models are asked, in the same minutes."""

from skill_evaluator.api import Library
from skill_evaluator.display.sheets import Format
from skill_evaluator.evaluation.request import SwitchRequest
from skill_evaluator.reports.ending import print_switch
from skill_evaluator.reports.live import watch

EXAMPLES = ("skill-evaluator switch <model> <model> --dry-run", "skill-evaluator switch <model> <model> <component>")
EXITS = {3: "a component is worse with the new model", 4: "a component could not be compared"}


def switch(options: SwitchRequest, form: Format) -> int:
    """Say what would get worse with a different model; asks every component of both, in the same minutes.

    The answers are recorded like any others. Where the old model does not answer, its newest record stands in.
    """
    result = Library.at(options).switch(options, watch=watch)
    print_switch(result, form)
    return result.exit_code
