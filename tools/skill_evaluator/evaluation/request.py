"""What the stories of this room are asked for: each field is an option, which help and completion import alone."""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from skill_evaluator.display.options import (
    Batch,
    Cases,
    ComponentsOption,
    ConfigOption,
    FixturesOption,
    LimitsOption,
    Names,
    OneOrMore,
    OnlyModels,
    Skill,
    argument,
    flag,
    option,
    options,
    rare,
)


@options
class EvaluationRequest(LimitsOption, ComponentsOption, FixturesOption, ConfigOption):
    """The options of `evaluate`, and what a plan fixes for a run.

    A plan sets `invocation`, with which run ids begin, `baseline_commit`, the commit with the prompt of the baseline,
    and `limits`, the run's parts of the limits of its models by id.
    """

    skill: Skill
    replicates: int | None = option("Calls per case and model; default 10 (settings.yaml).", None, "-n")
    models: OnlyModels = ()
    dry_run: bool = flag("Check all inputs and print the maximum cost; make no call.")
    cases: Cases = ()
    seed: int | None = rare("Seed of the replicates' seeds; default 0.")
    resume: str | None = option(
        "Continue an unfinished run (default: the newest); make only the missing calls.",
        metavar="[RUN]",
        completes="runs",
    )
    fresh: bool = flag("Begin a new run, even if an unfinished run could be continued.")
    shard: str | None = rare("Only the I-th of N parts of the cases.", metavar="I/N")
    scenario: str | None = rare(
        "Wrap the prompt in the system-prompt template .evaluator/scenarios/NAME.md.", metavar="NAME"
    )
    bare: bool = flag("Run without the prompt, with the schema only, to see what the prompt adds.")
    recorded: bool = flag("Do not run the baseline again: compare with its record.")
    failing: bool = flag("Run the failed cases of the newest record again, beside the baseline.")
    with_baseline: bool = rare(
        "Run the baseline beside the new version whatever the policy says; fail if that is impossible.", False
    )
    invocation: str | None = None
    baseline_commit: str | None = None
    limits: Mapping[str, Any] = field(default_factory=dict)
    aa: bool = rare("Run the recorded version again to measure noise.", False)
    draft: bool = flag("Record a draft of any prompt: in no leaderboard, never a baseline.")
    batch: Batch = False
    results: Path | None = rare("Where run folders go; default: in the component.", metavar="DIR")
    leaderboard: bool = rare("Append the record to the component's leaderboard.json.", True)


@options
class ManyRequest(EvaluationRequest):
    """What is to be evaluated where several components may be meant."""

    skill: OneOrMore = ""
    changed: str | None = option(
        "Only components that this branch changed since it left a commit; default: the main branch.", metavar="[BASE]"
    )
    yes: bool = flag("Do not ask for confirmation before running several components.")

    @property
    def is_many(self) -> bool:
        """Whether it means several components."""
        return not self.skill or self.changed is not None or any(mark in self.skill for mark in "*?[")


@options
class MutationRequest(LimitsOption, ComponentsOption, FixturesOption, ConfigOption):
    """Which prompt loses its parts one by one, and which model runs the mutants."""

    skill: Skill
    model: str | None = option(
        "The model to run; name it if models.yaml has several.", None, "-m", metavar="ID", completes="models"
    )
    replicates: int = option("Outputs per case and mutant.", 4, "-n")
    mutants: int = option("Remove at most N parts, the longest.", 40)
    dry_run: bool = flag("List the mutants and their maximum cost; make no call.")
    results: Path | None = rare("Where run folders go; default: in the component.", metavar="DIR")


@options
class SwitchRequest(ComponentsOption, FixturesOption, ConfigOption):
    """Which model is to be replaced by which, and where."""

    old: str = argument("The model in use, or once in use.")
    new: str = argument("The model of models.yaml to switch to.")
    skills: Names = ()
    replicates: int | None = option("Calls per case and model.", None, "-n")
    dry_run: bool = flag("Print the maximum cost; make no call.")
