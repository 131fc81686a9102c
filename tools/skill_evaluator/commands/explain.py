"""`skill-evaluator explain`: one answer of a saved run beside its truth, or one field over all answers."""

from skill_evaluator.api import Library
from skill_evaluator.display.options import (
    ComponentsOption,
    ConfigOption,
    FixturesOption,
    FormatOption,
    Full,
    argument,
    option,
    options,
    words_of,
)
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.reports.explanation import print_explanation

EXAMPLES = ("skill-evaluator explain <run-id> --case <case-id>", "skill-evaluator explain <run-folder> --field <path>")


@options
class ExplainOptions(ComponentsOption, FixturesOption, ConfigOption, FormatOption):
    """The options of `explain`."""

    run: str = argument("A run folder, or the id of a run in a component's evals/results.", completes="runs")
    case: str | None = option("Show the answer to this case, leaf by leaf.", metavar="ID")
    replicate: int | None = option("Which answer, from 0; default: the first scored.", metavar="N")
    field: str | None = option("Show this field (as lint names it) in every case and replicate.", metavar="PATH")
    full: Full = False


def explain(options: ExplainOptions) -> int:
    """Show where an answer is right and wrong, and why; field by field, or one field over all answers."""
    library = Library(options.components, config=options.config, fixtures=options.fixtures)
    manifest, explained = library.explain(
        options.run, case=options.case, replicate=options.replicate, field=options.field
    )
    print_explanation(explained, manifest, options.format, words_of(options), full=options.full)
    return EXIT_OK
