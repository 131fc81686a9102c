"""`skill-evaluator evaluate`: run prompts on their cases and models; the command line imports this module when used."""

from pathlib import Path

from skill_evaluator.commands.evaluating import measure, measure_many, measure_planned
from skill_evaluator.display.options import Full, options, rare
from skill_evaluator.evaluation.dry_run import dry_run
from skill_evaluator.evaluation.request import ManyRequest
from skill_evaluator.reports.planning import print_dry_run

EXAMPLES = (
    "skill-evaluator evaluate --max-cost 5",
    "skill-evaluator evaluate <component> --dry-run",
    "skill-evaluator evaluate <component> --model <model> --replicates 2",
    "skill-evaluator evaluate <component> --recorded-baseline",
    "skill-evaluator evaluate <component> --failing",
    "skill-evaluator evaluate <component> --resume",
)
EXITS = {3: "regression", 4: "incomplete run, another model answered, or a verdict of policy.fail_on"}


@options
class EvaluateOptions(ManyRequest):
    """The options of `evaluate`."""

    full: Full = False
    plan: Path = rare("With --planned: the plan.", Path("plan.json"), metavar="FILE")
    planned: str | None = rare("Run, or resume, the run of this id in --plan.", metavar="RUN")


def evaluate(options: EvaluateOptions) -> int:
    """Run a prompt on its cases and models; score the outputs and record the result."""
    if options.planned:
        return measure_planned(options, options.format, options.plan, options.planned)
    if options.is_many:
        return measure_many(options, options.format)
    if options.dry_run:
        return print_dry_run(dry_run(options), options.format)
    return measure(options, options.format, full=options.full)
