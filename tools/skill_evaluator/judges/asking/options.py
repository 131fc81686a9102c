"""What every command that asks judges takes, and how a process takes it that collects batches later."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Self, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from skill_evaluator.display.options import (
    JUDGEMENTS,
    Batch,
    Concurrency,
    ConfigOption,
    MaxCalls,
    MaxCost,
    SubmitOnly,
    argument,
    flag,
    option,
    options,
    rare,
)
from skill_evaluator.errors import JudgeError
from skill_evaluator.runner.journal import Transport

_SAID_AGAIN = frozenset(
    ("batch", "components", "config", "dry_run", "fixtures", "format", "out", "resume", "submit_only")
)


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

    @property
    def leaves_batches(self) -> bool:
        """Whether batches are left with the vendor."""
        return False

    @property
    def remembered(self) -> dict[str, Any]:
        """What a later process needs to go on, as JSON has it: nothing, unless it is asked in batches."""
        return {}


@options
class BatchJudgingRequest(JudgingRequest):
    """What a command takes that may ask in batches, which a later process may collect."""

    batch: Batch = False
    submit_only: SubmitOnly = False

    @property
    def transport(self) -> Transport:
        """How judges are asked."""
        return "batch" if self.batch else "direct"

    @property
    def leaves_batches(self) -> bool:
        """Whether batches are left with the vendor."""
        return self.submit_only

    @property
    def remembered(self) -> dict[str, Any]:
        """What a later process needs to go on, as JSON has it; whoever collects names the folders."""
        own = (field.name for field in fields(self) if field.name not in _SAID_AGAIN)
        return {name: to_jsonable_python(getattr(self, name)) for name in own if self.batch}

    @classmethod
    def recalled(cls, remembered: Mapping[str, Any], **said: Any) -> Self:
        """Return the request again; raise JudgeError for what was not written by `remembered`."""
        hints = {name: hint for name, hint in get_type_hints(cls).items() if name not in _SAID_AGAIN}
        try:
            kept = {name: TypeAdapter(hints[name]).validate_python(value) for name, value in remembered.items()}
            return cls(**kept, **said)
        except (KeyError, TypeError, ValidationError) as problem:
            raise JudgeError(f"this version does not know its options ({problem!r}); continue with --resume") from None


@options
class RubricJudgingRequest(BatchJudgingRequest):
    """What a command takes that asks judges by a rubric."""

    rubric: Path = argument("A rubric's file, YAML or JSON.", metavar="RUBRIC")
    criteria: tuple[str, ...] = option("Only this criterion; repeatable.", (), "--criterion", metavar="ID")
