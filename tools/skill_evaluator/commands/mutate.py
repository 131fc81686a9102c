"""`skill-evaluator mutate`: would these cases notice? Damages the prompt in known ways and asks each mutant."""

from skill_evaluator.commands.mutate_inputs import MutateOptions, read_hunt

EXAMPLES = (
    "skill-evaluator mutate <component> --model <model> --dry-run",
    "skill-evaluator mutate <component> --model <model> --max-cost 2",
)
EXITS = {4: "a mutant is undecided (the same command goes on)"}


def mutate(options: MutateOptions) -> int:
    """Damage the prompt in known ways, ask every mutant, and say which of them the cases would not notice.

    A mutant that is noticed (killed) is asked no further. Records nothing; the answers stay in one folder, and the same
    command again goes on from there without asking anything twice.
    """
    from skill_evaluator.commands.mutate_asking import hunt, size_hunt  # imports numpy

    plan = read_hunt(options)
    return size_hunt(plan, options) if options.dry_run else hunt(plan, options)
