"""`skill-evaluator mutate`: run a prompt without each of its parts, to see whether the cases notice."""

import sys

from skill_evaluator.api import Library
from skill_evaluator.display.options import folders_of, keywords_of
from skill_evaluator.display.pages import print_page
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK
from skill_evaluator.evaluation.request import MutationRequest
from skill_evaluator.reports.live import watch
from skill_evaluator.reports.many import mutation_page

EXAMPLES = (
    "skill-evaluator mutate <component> --model <model> --dry-run",
    "skill-evaluator mutate <component> --model <model> --max-cost 2",
)
EXITS = {4: "a mutant is undecided (the same command resumes)"}


def mutate(options: MutationRequest) -> int:
    """Remove parts of a prompt, show whether the cases notice.

    Each sentence, bullet and section is removed once. All mutants are called interleaved with the whole prompt. Nothing
    is recorded; the outputs stay in one folder, and the same command resumes there without repeating a call.
    """
    result = Library(**folders_of(options)).mutate(**keywords_of(options, MutationRequest), watch=watch)
    value = {**result.model_dump(mode="json"), "score": result.score}
    print_page(options.format, json=lambda: value, page=lambda: mutation_page(result))
    if result.dry_run or not result.count("undecided"):
        return EXIT_OK
    print("the same command resumes where this one stopped, and repeats no call", file=sys.stderr)
    return EXIT_INCOMPLETE
