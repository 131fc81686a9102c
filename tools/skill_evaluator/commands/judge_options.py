"""The options of every command that asks judges, and how another process takes those of one that left batches."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Self, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from skill_evaluator.display.options import (
    JUDGEMENTS,
    Batch,
    Concurrency,
    ConfigOption,
    FormatOption,
    MaxCalls,
    MaxCost,
    SubmitOnly,
    argument,
    flag,
    option,
    options,
    shared,
    words_of,
)
from skill_evaluator.errors import JudgeError
from skill_evaluator.providers import Configuration
from skill_evaluator.runner.engine import BatchMode
from skill_evaluator.runner.journal import Transport
from skill_evaluator.runner.session import mode_of

ASKED_AGAIN = ("replicates", "seed", "max_cost", "max_calls", "concurrency", "review", "review_sample", "out", "config")
CascadeJudges = Annotated[
    str | None,
    shared("Instead of --judge: STRONG for what CHEAP leaves open.", metavar="CHEAP,STRONG"),
]
CascadeLabelsFile = Annotated[Path | None, shared("With --cascade: what people say of some of it.", metavar="FILE")]

_SAID_AGAIN = frozenset(
    ("batch", "collecting", "components", "config", "dry_run", "fixtures", "format", "out", "resume", "submit_only")
)


@options
class JudgeAskingOptions(ConfigOption, FormatOption):
    """The options of every command that asks judges."""

    judges: tuple[str, ...] = option(
        "A model of models.yaml that judges; repeatable.", (), "--judge", "-j", metavar="ID"
    )
    replicates: int = option("How often each question is asked.", 1, "-n")
    seed: int = option("Seed of the texts' marks and of the replicates' seeds.", 0)
    max_cost: MaxCost = None
    max_calls: MaxCalls = None
    concurrency: Concurrency = None
    resume: str | None = option(
        "Go on with a judging (default: the newest): asks only what has no answer.", metavar="[ID]"
    )
    dry_run: bool = flag("Check everything, make no call, print the calls and the cost at most.")
    review: bool = flag("Queue what the judges leave to people; see `skill-evaluator review`.")
    review_sample: int = option("With --review: also queue N random items.", 5, metavar="N", min=0)
    out: Path = option("Where judgings are kept.", JUDGEMENTS, metavar="DIR")

    @property
    def transport(self) -> Transport:
        """How judges are asked: call by call, unless the command says otherwise."""
        return "direct"

    def batch_mode(self, *, begun: bool) -> BatchMode:
        """Return how long batches are waited for."""
        return "wait"


@options
class BatchAskingOptions(JudgeAskingOptions):
    """The options of every command that asks judges, perhaps in batches; `collecting` is given by `collect` alone.

    It is the configuration with which batches are collected that an earlier process has left.
    """

    batch: Batch = False
    submit_only: SubmitOnly = False
    collecting: Configuration | None = None

    @property
    def transport(self) -> Transport:
        """How judges are asked."""
        return "batch" if self.batch else "direct"

    def batch_mode(self, *, begun: bool) -> BatchMode:
        """Return how long batches are waited for; a judging that follows on collected answers is not `begun` yet."""
        return mode_of(submit_only=self.submit_only, collecting=self.collecting is not None and begun)

    @property
    def remembered(self) -> dict[str, Any]:
        """What another process needs to go on, as JSON has it; where things lie is said by whoever collects."""
        own = (field.name for field in fields(self) if field.name not in _SAID_AGAIN)
        return {name: to_jsonable_python(getattr(self, name)) for name in own}

    @classmethod
    def recalled(cls, remembered: Mapping[str, Any], **said: Any) -> Self:
        """Return the options again; raise JudgeError for what was not written by `remembered`."""
        hints = {name: hint for name, hint in get_type_hints(cls).items() if name not in _SAID_AGAIN}
        try:
            kept = {name: TypeAdapter(hints[name]).validate_python(value) for name, value in remembered.items()}
            return cls(**kept, **said)
        except (KeyError, TypeError, ValidationError) as problem:
            raise JudgeError(f"its options are none of this version's ({problem!r}); go on with --resume") from None


@options
class RubricAskingOptions(BatchAskingOptions):
    """The options of every command that asks judges by a rubric."""

    rubric: Path = argument("A rubric's file, YAML or JSON.", metavar="RUBRIC")
    criteria: tuple[str, ...] = option("Only this criterion; repeatable.", (), "--criterion", metavar="ID")

    def words(self, command: str, *names: str) -> list[str]:
        """Return the command that asks the same again; `names` are its own options."""
        words = ["skill-evaluator", "judge", command, str(self.rubric)]
        for name, values in (("--judge", self.judges), ("--criterion", self.criteria)):
            words += [word for value in values for word in (name, value)]
        return words + words_of(self, *names, *ASKED_AGAIN)
