"""`skill-evaluator judge lint`: check rubrics before a model is asked anything. Makes no call."""

import sys
from pathlib import Path

from skill_evaluator.checking.rubrics import lint_rubrics
from skill_evaluator.ci.platforms import PLATFORMS
from skill_evaluator.display.options import (
    ComponentsOption,
    ConfigOption,
    FixturesOption,
    FormatOption,
    PlatformOption,
    argument,
    options,
)
from skill_evaluator.errors import EXIT_OK, EXIT_USER_ERROR, ConfigError
from skill_evaluator.library.config import load_settings
from skill_evaluator.library.rubrics import find_rubrics
from skill_evaluator.reports.lint import print_rubric_lint
from skill_evaluator.text import counted

EXAMPLES = ("skill-evaluator judge lint", "skill-evaluator judge lint .evaluator/rubrics/support-reply.yaml")
EXITS = {2: "wrong input, or an error in a rubric (warnings alone: 0)"}


@options
class JudgeLintOptions(ComponentsOption, FixturesOption, ConfigOption, PlatformOption, FormatOption):
    """The options of `judge lint`."""

    files: tuple[Path, ...] = argument("Rubrics, YAML or JSON; default: all of .evaluator/rubrics.", (), metavar="FILE")


def judge_lint(options: JudgeLintOptions) -> int:
    """Check rubrics: is every criterion one thing, described, observable, and nothing that a metric measures?"""
    paths = list(dict.fromkeys(options.files)) or find_rubrics(options.config)
    if not paths:
        raise ConfigError(f"{options.config / 'rubrics'} holds no rubric; add one, or name a file")
    linted = lint_rubrics(paths, options.components, options.fixtures, load_settings(options.config).limits)
    print_rubric_lint(linted, options.format)
    if options.platform is not None:
        for rubric in linted.rubrics:
            for remark in rubric.remarks:
                PLATFORMS[options.platform].annotate(remark.severity, remark.message, rubric.file, remark.line)
    if not linted.errors:
        return EXIT_OK
    print(f"error: {counted(linted.errors, 'error')} in {counted(len(linted.rubrics), 'rubric')}", file=sys.stderr)
    return EXIT_USER_ERROR
