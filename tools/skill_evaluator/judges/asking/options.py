"""The options that all commands with judges share."""

from pathlib import Path

from skill_evaluator.display.options import (
    JUDGEMENTS,
    Batch,
    Concurrency,
    ConfigOption,
    MaxCalls,
    MaxCost,
    argument,
    flag,
    option,
    options,
    rare,
)


@options
class JudgingRequest(ConfigOption):
    """The options of every command that calls judges."""

    judges: tuple[str, ...] = option(
        "A model of models.yaml that judges; repeatable.", (), "--judge", "-j", metavar="ID"
    )
    replicates: int = option("Calls for each question; replicates vote.", 1, "-n")
    seed: int = rare("Seed of the texts' marks and of the replicates' seeds.", 0)
    max_cost: MaxCost = None
    max_calls: MaxCalls = None
    concurrency: Concurrency = None
    resume: str | None = option(
        "Continue a judge run (default: the newest); make only the missing calls.", metavar="[ID]"
    )
    dry_run: bool = flag("Check everything, make no call, print the calls and the cost at most.")
    review: bool = flag("Queue what the judges leave open for human review.")
    review_sample: int = rare(
        "With --review: also queue N random items that ship or are in no doubt.", 5, metavar="N", min=0
    )
    out: Path = rare("The folder of judge runs.", JUDGEMENTS, metavar="DIR")


@options
class BatchJudgingRequest(JudgingRequest):
    """The options of a command that can use batch APIs."""

    batch: Batch = False


@options
class RubricJudgingRequest(BatchJudgingRequest):
    """The options of a command that judges by a rubric."""

    rubric: Path = argument("The rubric, YAML or JSON.", metavar="RUBRIC")
    criteria: tuple[str, ...] = option("Only this criterion; repeatable.", (), "--criterion", metavar="ID")
