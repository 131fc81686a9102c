"""What every command that asks judges takes."""

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
from skill_evaluator.runner.journal import Transport


@options
class JudgingRequest(ConfigOption):
    """What every command that asks judges takes."""

    judges: tuple[str, ...] = option(
        "A model of models.yaml that judges; repeatable.", (), "--judge", "-j", metavar="ID"
    )
    replicates: int = option("How often each question is asked.", 1, "-n")
    seed: int = rare("Seed of the texts' marks and of the replicates' seeds.", 0)
    max_cost: MaxCost = None
    max_calls: MaxCalls = None
    concurrency: Concurrency = None
    resume: str | None = option(
        "Continue a judging (default: the newest): ask only what has no answer.", metavar="[ID]"
    )
    dry_run: bool = flag("Check everything, make no call, print the calls and the cost at most.")
    review: bool = flag("Queue for people what the judges leave open (see review).")
    review_sample: int = rare("With --review: also queue N random items.", 5, metavar="N", min=0)
    out: Path = rare("Where judgings are kept.", JUDGEMENTS, metavar="DIR")

    @property
    def transport(self) -> Transport:
        """How judges are asked: call by call, unless the command says otherwise."""
        return "direct"


@options
class BatchJudgingRequest(JudgingRequest):
    """What a command takes that may ask in batches."""

    batch: Batch = False

    @property
    def transport(self) -> Transport:
        """How judges are asked."""
        return "batch" if self.batch else "direct"


@options
class RubricJudgingRequest(BatchJudgingRequest):
    """What a command takes that asks judges by a rubric."""

    rubric: Path = argument("A rubric's file, YAML or JSON.", metavar="RUBRIC")
    criteria: tuple[str, ...] = option("Only this criterion; repeatable.", (), "--criterion", metavar="ID")
