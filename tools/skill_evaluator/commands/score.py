"""`skill-evaluator score`: score a saved run again with the current metrics and declarations. Makes no call."""

from pathlib import Path

from skill_evaluator.api import Library
from skill_evaluator.display.options import LibraryOptions, argument, options
from skill_evaluator.display.pages import print_page
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK
from skill_evaluator.reports.evaluation import report_page, run_json

EXAMPLES = ("skill-evaluator score components/<component>/evals/results/<run-id>",)


@options
class ScoreOptions(LibraryOptions):
    """The options of `score`."""

    run: Path = argument("A run folder.")


def score(options: ScoreOptions) -> int:
    """Score a saved run again; rewrites its record.json and report.md, no leaderboard. Makes no call."""
    library = Library(options.components, config=options.config, fixtures=options.fixtures)
    finished, component = library.score(options.run)
    value = {"skill": component.name, "runs": [run_json(finished)], "comparison": None, "spreads": []}
    print_page(options.format, json=lambda: value, page=lambda: report_page(finished), full=True)
    return EXIT_OK if finished.record.complete else EXIT_INCOMPLETE
