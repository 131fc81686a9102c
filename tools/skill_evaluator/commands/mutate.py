"""`skill-evaluator mutate`: would these cases notice? Damages the prompt in known ways and asks each mutant."""

import sys

from skill_evaluator.api import Library
from skill_evaluator.display.options import FormatOption, flag, options
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK
from skill_evaluator.evaluation.request import MutationRequest
from skill_evaluator.reports.cases import print_mutation, print_mutation_estimate
from skill_evaluator.reports.live import watch

EXAMPLES = (
    "skill-evaluator mutate <component> --model <model> --dry-run",
    "skill-evaluator mutate <component> --model <model> --max-cost 2",
)
EXITS = {4: "a mutant is undecided (the same command goes on)"}


@options
class MutateOptions(MutationRequest, FormatOption):
    """The options of `mutate`."""

    dry_run: bool = flag("List the mutants and their cost at most; make no call.")


def mutate(options: MutateOptions) -> int:
    """Damage the prompt, and say which damage the cases miss; asks a model with every mutant.

    A mutant that is noticed (killed) is asked no further. Records nothing; the answers stay in one folder, and the same
    command again goes on from there without asking anything twice.
    """
    library = Library.at(options)
    if options.dry_run:
        print_mutation_estimate(library.mutants(options), options.format)
        return EXIT_OK
    result = library.mutate(options, watch=watch)
    print_mutation(result, options.format)
    if not result.count("undecided"):
        return EXIT_OK
    print("the same command goes on where this stopped, and asks nothing twice", file=sys.stderr)
    return EXIT_INCOMPLETE
