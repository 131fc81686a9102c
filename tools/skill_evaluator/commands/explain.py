"""`skill-evaluator explain`: show a case of a saved run with its ground truth, or one field of all cases."""

from skill_evaluator.api import Library
from skill_evaluator.display.options import Full, LibraryOptions, argument, option, options, words_of
from skill_evaluator.display.pages import print_page
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.reports.explanation import explanation_json, explanation_page

EXAMPLES = ("skill-evaluator explain <run-id> --case <case-id>", "skill-evaluator explain <run-folder> --field <path>")


@options
class ExplainOptions(LibraryOptions):
    """The options of `explain`."""

    run: str = argument("A run folder, or the id of a run in evals/results.")
    case: str | None = option("Show this case, field by field.", metavar="ID")
    field: str | None = option("Show this field (as lint names it) alone.", metavar="PATH")
    full: Full = False


def explain(options: ExplainOptions) -> int:
    """Show the outputs of a case beside its ground truth; or one field in all cases."""
    library = Library(options.components, config=options.config, fixtures=options.fixtures)
    manifest, explained = library.explain(options.run, case=options.case, field=options.field)
    print_page(
        options.format,
        json=lambda: explanation_json(explained, manifest),
        page=lambda: explanation_page(explained, manifest, words_of(options)),
        full=options.full,
    )
    return EXIT_OK
