"""`skill-evaluator lint` and `doctor`: check a library and its set-up."""

import sys

from skill_evaluator.api import Library
from skill_evaluator.ci.linting import LintRequest
from skill_evaluator.display.options import ConfigOption, FormatOption, flag, folders_of, keywords_of, options
from skill_evaluator.display.pages import page_of, print_page
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_USER_ERROR
from skill_evaluator.reports.ci import doctor_blocks
from skill_evaluator.reports.lint import mark_linted, not_evaluated, print_linted
from skill_evaluator.text import counted

EXAMPLES = {
    "lint": ("skill-evaluator lint <component>", "skill-evaluator lint --base origin/main"),
    "doctor": ("skill-evaluator doctor", "skill-evaluator doctor --format json"),
}
EXITS = {
    "lint": {2: "invalid input, or a component with an error"},
    "doctor": {0: "no problem found", 4: "a problem; the output says what to do"},
}


@options
class LintOptions(LintRequest):
    strict: bool = flag("Also fail on what is not ready, and on stale workflows.")


def lint(options: LintOptions) -> int:
    """Check components and all their cases; show how every field is compared, and why.

    With --base, only changed components are checked, and also that a changed prompt has a higher version and that
    records are only added.
    """
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


@options
class DoctorOptions(ConfigOption, FormatOption):
    """The options of `doctor`."""


def doctor(options: DoctorOptions) -> int:
    """Check the set-up: the keys here and in CI, one call to each model, git, placeholders and workflows.

    Keys here are environment variables, keys in CI are secrets. `gh` lists the names of the secrets if you are logged
    in; otherwise they are not checked. No key is shown. Each model with a key here gets one short call.
    """
    report = Library(**folders_of(options)).doctor()
    print_page(options.format, json=lambda: report, page=lambda: page_of("the set-up", doctor_blocks(report)))
    return EXIT_INCOMPLETE if report.problems else EXIT_OK
