"""`skill-evaluator records import`: import results of another tool as records of a component. Makes no call."""

from skill_evaluator.api import Library
from skill_evaluator.commands.options import leave_out
from skill_evaluator.display import number
from skill_evaluator.display.options import folders_of, keywords_of
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import EXIT_OK, refuse
from skill_evaluator.exchange.imported import ImportRequest
from skill_evaluator.text import counted

EXAMPLES = (
    "skill-evaluator records import results.json --skill <component>",
    "skill-evaluator records import capitals.json",
    "skill-evaluator records import scores.csv --version 1.2.0 --model <model>",
)


def records_import(options: ImportRequest) -> int:
    """Import results of a different tool as records, for compare, history and leaderboard.

    A missing component is created, with a prompt.md that names the source of the results.
    """
    imported = Library(**folders_of(options)).import_results(
        **keywords_of(options, ImportRequest, "skip_invalid"), on_problem=leave_out if options.skip_invalid else refuse
    )
    for record, path, is_new in imported:
        score = number(record.accuracy[record.primary_metric].strict_mean)
        score += "" if record.complete else f", incomplete ({record.stopped or 'too few outputs'})"
        size = f"{counted(record.n_cases, 'case')} × {counted(record.replicates, 'replicate')}"
        added = f": {record.provider}, {record.model_id}, {size}, {record.primary_metric} {score}"
        print(visible(f"{path}{added if is_new else ' exists already'}"))
    return EXIT_OK
