"""`skill-evaluator switch`: compare two models on every component; both are called in the same minutes."""

from skill_evaluator.api import Library
from skill_evaluator.display.options import folders_of, keywords_of, words_of
from skill_evaluator.display.pages import print_page
from skill_evaluator.evaluation.request import SwitchRequest
from skill_evaluator.reports.live import watch
from skill_evaluator.reports.many import switch_json, switch_page

EXAMPLES = ("skill-evaluator switch <model> <model> --dry-run", "skill-evaluator switch <model> <model> <component>")
EXITS = {3: "a component regressed with the new model", 4: "a component could not be compared"}


def switch(options: SwitchRequest) -> int:
    """Compare two models on every component; both are called in the same minutes.

    The results are recorded. If the old model does not answer, its newest record is used.
    """
    result = Library(**folders_of(options)).switch(**keywords_of(options, SwitchRequest), watch=watch)
    folders = words_of(options)
    print_page(options.format, json=lambda: switch_json(result, folders), page=lambda: switch_page(result, folders))
    return result.exit_code
