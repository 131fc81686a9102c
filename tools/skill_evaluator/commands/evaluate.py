"""`skill-evaluator evaluate`: its options; what asks and shows is imported late, so that help starts quickly."""

from pathlib import Path
from typing import Annotated

import typer

from skill_evaluator.commands.options import (
    Batch,
    ComponentsOption,
    Concurrency,
    ConfigOption,
    FixturesOption,
    FormatOption,
    MaxCalls,
    MaxCost,
    OnlyModels,
    Skill,
    SubmitOnly,
    flag,
    option,
    options,
    run_ids,
)
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.evaluation.request import EvaluationRequest

EXAMPLES = (
    "skill-evaluator evaluate <component> --dry-run",
    "skill-evaluator evaluate <component> --model <model> --replicates 2",
    "skill-evaluator evaluate <component> --recorded",
    "skill-evaluator evaluate <component> --resume",
)
EXITS = {3: "worse than the recorded version", 4: "incomplete (it prints how to go on), or another model answered"}
Cases = Annotated[tuple[str, ...], typer.Option("--case", metavar="GLOB", help="Only these cases; repeatable.")]


@options
class EvaluateOptions(ComponentsOption, FixturesOption, ConfigOption, FormatOption, EvaluationRequest):
    """The options of `evaluate`."""

    skill: Skill
    replicates: int | None = option("Answers per case and model; default 10 (settings.yaml).", None, "-n")
    models: OnlyModels = ()
    dry_run: bool = flag("Check everything, make no call, print the cost at most.")
    cases: Cases = ()
    concurrency: Concurrency = None
    seed: int | None = option("Seed of the replicates' seeds; default 0.")
    resume: str | None = option(
        "Go on with an unfinished run (default: the newest): asks only what has no answer.",
        metavar="[RUN]",
        autocompletion=run_ids,
    )
    max_cost: MaxCost = None
    max_calls: MaxCalls = None
    shard: str | None = option("Only the I-th of N parts of the cases.", metavar="I/N")
    scenario: str | None = option("Put the prompt into .evaluator/scenarios/NAME.md.", metavar="NAME")
    bare: bool = flag("Ask with the schema alone, without the prompt, to see what the prompt adds.")
    invocation: str | None = option(
        "What the run ids begin with; plan gives one to all its jobs, which ask what it planned.", metavar="ID"
    )
    adaptive: bool = flag("Stop asking a model once its verdict against a lower version is settled.")
    recorded: bool = flag(
        "Ask the new version alone, and compare it with what is recorded; default: beside its baseline."
    )
    with_baseline: bool = flag(
        "Ask the baseline beside it, in turns, whatever the policy says; an error where that cannot be."
    )
    baseline_commit: str | None = option(
        "With --with-baseline: take the prompt of this commit, whatever is recorded.", metavar="COMMIT"
    )
    aa: bool = flag("Run the recorded version again to measure noise.")
    neutral: int | None = option(
        "Ask the recorded version under K scenarios, to see what neutral rewordings do to a model.", metavar="K"
    )
    draft: bool = flag("Keep the record as a draft: in no leaderboard, never a baseline, of any prompt.")
    batch: Batch = False
    submit_only: SubmitOnly = False
    results: Path | None = option("Where run folders go; default: in the component.", metavar="DIR")
    leaderboard: bool = option("Append the record to the component's leaderboard.json.", True)


def evaluate(options: EvaluateOptions) -> int:
    """Run a component N times per case on its models; score accuracy and reproducibility; append to its leaderboard."""
    if options.dry_run:
        from skill_evaluator.evaluation.dry_run import dry_run
        from skill_evaluator.reports.planning import print_dry_run

        print_dry_run(dry_run(options), options.format)
        return EXIT_OK
    from skill_evaluator.commands.evaluating import measure

    return measure(options, options.format)
