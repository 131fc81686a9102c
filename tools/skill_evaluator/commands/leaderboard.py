"""`skill-evaluator leaderboard`: rank the recorded models and name the one to ship. Makes no call."""

import sys

from skill_evaluator.api import Library
from skill_evaluator.display.options import SKILLS, Full, OnlyModels, RecordOptions, argument, option, options, words_of
from skill_evaluator.display.pages import print_page
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import EXIT_OK, SkillEvaluatorError
from skill_evaluator.reports.ranking import rankings_page

EXAMPLES = ("skill-evaluator leaderboard", "skill-evaluator leaderboard <component> --model <model> --model <model>")


@options
class LeaderboardOptions(RecordOptions):
    """The options of `leaderboard`."""

    skills: tuple[str, ...] = argument(SKILLS, (), "COMPONENT")
    models: OnlyModels = ()
    version: str | None = option("Version to rank on; default: the highest of each model.", metavar="VERSION")
    full: Full = False


def leaderboard(options: LeaderboardOptions) -> int:
    """Rank the models of each component; name the one to ship. Makes no call."""
    library = Library(options.components, config=options.config)
    problems: list[SkillEvaluatorError] = []
    rankings = library.leaderboard(
        options.skills, models=options.models, version=options.version, on_problem=problems.append
    )
    if rankings:
        page = rankings_page(rankings, words_of(options))
        print_page(options.format, json=lambda: rankings, page=lambda: page, full=options.full)
    for problem in problems:
        print(f"{problem.label}{visible(str(problem))}", file=sys.stderr)
    return min((problem.exit_code for problem in problems), default=EXIT_OK)
