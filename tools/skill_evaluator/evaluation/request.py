"""What `evaluate` is asked for: each field is an option of the command, which help and completion import alone."""

from pathlib import Path

from skill_evaluator.display.options import (
    Batch,
    Cases,
    ComponentsOption,
    Concurrency,
    ConfigOption,
    FixturesOption,
    MaxCalls,
    MaxCost,
    OnlyModels,
    Skill,
    SubmitOnly,
    flag,
    option,
    options,
)


@options
class EvaluationRequest(ComponentsOption, FixturesOption, ConfigOption):
    """What is to be evaluated, and how."""

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
        completes="runs",
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
