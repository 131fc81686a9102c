"""The options of `evaluate`, `mutate` and `switch`; help and completion import only this module."""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from skill_evaluator.display import options as cli


@cli.options
class EvaluationRequest(cli.LimitsOption, cli.LibraryOptions):
    """The options of `evaluate`, and the values that a plan sets for a run.

    A plan sets `invocation` (the prefix of run ids), `baseline_commit`, and `limits` (the run's shares of rate limits,
    by model id).
    """

    skill: str = cli.argument(cli.SKILL, metavar="COMPONENT")
    replicates: int | None = cli.option("Calls per case and model; default 10 (settings.yaml).", None, "-n")
    models: cli.OnlyModels = ()
    dry_run: bool = cli.flag("Check inputs and print the maximum cost; make no call.")
    cases: cli.Cases = ()
    seed: int | None = cli.rare("Seed from which each replicate's seed is drawn; default 0.")
    resume: bool = cli.flag("Continue the newest unfinished run.")
    run: str | None = cli.option("Continue this run: its id or folder.", metavar="ID")
    no_reuse: bool = cli.flag("Begin a new run; do not continue an unfinished one.")
    shard: str | None = cli.rare("Only the I-th of N parts of the cases.", metavar="I/N")
    scenario: str | None = cli.rare("Wrap the prompt in .evaluator/scenarios/NAME.md.", metavar="NAME")
    no_prompt: bool = cli.flag("Run without the prompt, with the schema only.")
    recorded_baseline: bool = cli.flag("Do not run the baseline again: compare with its record.")
    failing: bool = cli.flag("Run only the failed cases of the newest record again.")
    with_baseline: bool = cli.rare("Also run the baseline; fail if that is impossible.", False)
    invocation: str | None = None
    baseline_commit: str | None = None
    limits: Mapping[str, Any] = field(default_factory=dict)
    rerun_baseline: bool = cli.rare("Run the newest recorded version again to measure noise.", False)
    draft: bool = cli.flag("Record a draft: in no leaderboard, never a baseline.")
    batch: cli.Batch = False
    results: Path | None = cli.rare("Folder for runs; default: in the component.", metavar="DIR")
    leaderboard: bool = cli.rare("Append the record to leaderboard.json.", True, negative="--no-leaderboard")

    @property
    def resumed(self) -> str | None:
        """The run to continue, `latest` for the newest unfinished one; None for a new run."""
        return self.run or (cli.LATEST if self.resume else None)


@cli.options
class ManyRequest(EvaluationRequest):
    """The options of `evaluate` for one or several components."""

    skill: str = cli.argument("Component, folder or pattern; default: all that are ready.", "", "COMPONENT")
    changed: bool = cli.flag("Only components that this branch changed.")
    base: str | None = cli.option("With --changed: compare with this commit; default: main.", metavar="COMMIT")
    yes: bool = cli.flag("Run several components without confirmation.")

    @property
    def is_many(self) -> bool:
        """Whether the request may select several components."""
        return not self.skill or self.changed or self.base is not None or any(mark in self.skill for mark in "*?[")


@cli.options
class MutationRequest(cli.LimitsOption, cli.LibraryOptions):
    """The options of `mutate`."""

    skill: str = cli.argument(cli.SKILL, metavar="COMPONENT")
    model: str | None = cli.option("The model to call; required if models.yaml has several.", None, "-m", metavar="ID")
    replicates: int = cli.option("Outputs per case and mutant.", 4, "-n")
    mutants: int = cli.option("Remove only the N longest parts.", 40)
    dry_run: bool = cli.flag("List the mutants and their maximum cost; make no call.")
    results: Path | None = cli.rare("Folder for runs; default: in the component.", metavar="DIR")


@cli.options
class SwitchRequest(cli.LibraryOptions):
    """The options of `switch`."""

    old: str = cli.argument("The model to replace.")
    new: str = cli.argument("The new model, an id of models.yaml.")
    skills: tuple[str, ...] = cli.argument(cli.SKILLS, (), "COMPONENT")
    replicates: int | None = cli.option("Calls per case and model; default 10 (settings.yaml).", None, "-n")
    dry_run: bool = cli.flag("Print the maximum cost; make no call.")
