"""`skill-evaluator try`: evaluate the prompt on disk with a few calls and compare it with the recorded runs."""

from pathlib import Path

from skill_evaluator.commands.evaluating import measure, measure_at_each_save
from skill_evaluator.display.options import (
    SKILL,
    Cases,
    Full,
    LibraryOptions,
    LimitsOption,
    OnlyModels,
    argument,
    flag,
    option,
    options,
    rare,
)
from skill_evaluator.evaluation.request import EvaluationRequest

EXAMPLES = (
    "skill-evaluator try <component>",
    "skill-evaluator try <component> --case 'clean-*' -n 2",
    "skill-evaluator try <component> --watch --max-cost 0.50",
)
EXITS = {3: "regression", 4: "incomplete run, or another model answered"}


@options
class TryOptions(LimitsOption, LibraryOptions):
    """The options of `try`."""

    skill: str = argument(SKILL, metavar="COMPONENT")
    cases: Cases = ()
    replicates: int = option("Calls per case and model.", 3, "-n")
    models: OnlyModels = ()
    full: Full = False
    watch: bool = flag("Evaluate after every save; at most 200 calls in all.")
    results: Path | None = rare("Where run folders go; default: in the component.", metavar="DIR")


def try_(options: TryOptions) -> int:
    """Evaluate the prompt on disk without recording it; show the verdict and the outputs that changed.

    The outputs stay in the run folder, so that `explain` can show them.
    """

    passed_on = options.__dataclass_fields__.keys() - {"full", "watch"}
    values = {name: getattr(options, name) for name in passed_on}
    request = EvaluationRequest(**values, draft=True, leaderboard=False)
    if options.watch:
        return measure_at_each_save(request, options.format, full=options.full)
    return measure(request, options.format, full=options.full, show_changes=True)
