"""`skill-evaluator lint`: check components with all their cases, and show how each field is scored, and why.

The problems of all components are printed before the command fails.
"""

import sys

from skill_evaluator.api import Library
from skill_evaluator.ci.linting import LintRequest
from skill_evaluator.display.options import flag, folders_of, keywords_of, options
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import EXIT_OK, EXIT_USER_ERROR
from skill_evaluator.reports.lint import mark_linted, not_evaluated, print_linted
from skill_evaluator.text import counted

EXAMPLES = ("skill-evaluator lint <component>", "skill-evaluator lint --base origin/main")
EXITS = {2: "invalid input, or a component with an error"}


@options
class LintOptions(LintRequest):
    """The options of `lint`."""

    strict: bool = flag("Fail if a component or case is not evaluated.")


def lint(options: LintOptions) -> int:
    """Check components and all their cases; show how every field is compared, and why."""
    linted = Library(**folders_of(options)).lint(**keywords_of(options, LintRequest))
    print_linted(linted, options.format)
    mark_linted(linted, options.platform)
    wrong = list(linted.broken.values())
    if linted.problems:
        bad = sum(bool(component.problems) for component in linted.components)
        of = counted(len(linted.components), "component")
        wrong.insert(0, f"{counted(len(linted.problems), 'problem')} in {bad} of {of}")
    if options.strict:
        wrong += [*not_evaluated(linted.components), *linted.stale.values()]
    if not wrong:
        return EXIT_OK
    print(f"error: {visible('; '.join(wrong))}", file=sys.stderr)
    return EXIT_USER_ERROR
