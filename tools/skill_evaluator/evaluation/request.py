"""The options of `evaluate`, `mutate` and `switch`; help and completion import only this module."""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from skill_evaluator.display.options import (
    LATEST,
    SKILL,
    SKILLS,
    Batch,
    Cases,
    LibraryOptions,
    LimitsOption,
    OnlyModels,
    argument,
    flag,
    option,
    options,
    rare,
)


@options
class EvaluationRequest(LimitsOption, LibraryOptions):
    """The options of `evaluate`, and the values that a plan sets for a run.

    A plan sets `invocation` (the prefix of run ids), `baseline_commit`, and `limits` (the run's shares of rate limits,
    by model id).
    """

    skill: str = argument(SKILL, metavar="COMPONENT")
    replicates: int | None = option("Calls per case and model; default 10 (settings.yaml).", None, "-n")
    models: OnlyModels = ()
    dry_run: bool = flag("Check inputs and print the maximum cost; make no call.")
    cases: Cases = ()
    seed: int | None = rare("Seed from which each replicate's seed is drawn; default 0.")
    resume: bool = flag("Continue the newest unfinished run.")
    run: str | None = option("Continue this run: its id or folder.", metavar="ID")
    no_reuse: bool = flag("Begin a new run; do not continue an unfinished one.")
    shard: str | None = rare("Only the I-th of N parts of the cases.", metavar="I/N")
    scenario: str | None = rare("Wrap the prompt in .evaluator/scenarios/NAME.md.", metavar="NAME")
    no_prompt: bool = flag("Run without the prompt, with the schema only.")
    recorded_baseline: bool = flag("Do not run the baseline again: compare with its record.")
    failing: bool = flag("Run only the failed cases of the newest record again.")
    with_baseline: bool = rare("Also run the baseline; fail if that is impossible.", False)
    invocation: str | None = None
    baseline_commit: str | None = None
    limits: Mapping[str, Any] = field(default_factory=dict)
    rerun_baseline: bool = rare("Run the newest recorded version again to measure noise.", False)
    draft: bool = flag("Record a draft: in no leaderboard, never a baseline.")
    batch: Batch = False
    results: Path | None = rare("Folder for runs; default: in the component.", metavar="DIR")
    leaderboard: bool = rare("Append the record to leaderboard.json.", True, negative="--no-leaderboard")

    @property
    def resumed(self) -> str | None:
        """The run to continue, `latest` for the newest unfinished one; None for a new run."""
        return self.run or (LATEST if self.resume else None)


@options
class ManyRequest(EvaluationRequest):
    """The options of `evaluate` for one or several components."""

    skill: str = argument("Component, folder or pattern; default: all that are ready.", "", "COMPONENT")
    changed: bool = flag("Only components that this branch changed.")
    base: str | None = option("With --changed: compare with this commit; default: main.", metavar="COMMIT")
    yes: bool = flag("Run several components without confirmation.")

    @property
    def is_many(self) -> bool:
        """Whether the request may select several components."""
        return not self.skill or self.changed or self.base is not None or any(mark in self.skill for mark in "*?[")


@options
class MutationRequest(LimitsOption, LibraryOptions):
    """The options of `mutate`."""

    skill: str = argument(SKILL, metavar="COMPONENT")
    model: str | None = option("The model to call; required if models.yaml has several.", None, "-m", metavar="ID")
    replicates: int = option("Outputs per case and mutant.", 4, "-n")
    mutants: int = option("Remove only the N longest parts.", 40)
    dry_run: bool = flag("List the mutants and their maximum cost; make no call.")
    results: Path | None = rare("Folder for runs; default: in the component.", metavar="DIR")


@options
class SwitchRequest(LibraryOptions):
    """The options of `switch`."""

    old: str = argument("The model to replace.")
    new: str = argument("The new model, an id of models.yaml.")
    skills: tuple[str, ...] = argument(SKILLS, (), "COMPONENT")
    replicates: int | None = option("Calls per case and model; default 10 (settings.yaml).", None, "-n")
    dry_run: bool = flag("Print the maximum cost; make no call.")
