"""`skill-evaluator evaluate`: what is asked and scored is told in evaluate_measure.py, and without calls in
evaluate_dry_run.py. Either is imported late, so that help and dry runs start quickly.
"""

from skill_evaluator.commands.evaluate_options import EvaluateOptions

EXAMPLES = (
    "skill-evaluator evaluate <component> --dry-run",
    "skill-evaluator evaluate <component> --model <model> --replicates 2",
    "skill-evaluator evaluate <component> --recorded",
    "skill-evaluator evaluate <component> --resume",
)
EXITS = {3: "worse than the recorded version", 4: "incomplete (it prints how to go on), or another model answered"}


def evaluate(options: EvaluateOptions) -> int:
    """Run a component N times per case on its models; score accuracy and reproducibility; append to its leaderboard."""
    if options.dry_run:
        from skill_evaluator.commands.evaluate_dry_run import dry_run

        return dry_run(options)
    from skill_evaluator.commands.evaluate_measure import measure

    return measure(options)
