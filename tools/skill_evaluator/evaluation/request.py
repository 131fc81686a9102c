"""The options of `evaluate`, `mutate` and `switch`; help and completion import only this module."""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from skill_evaluator.library import options as cli


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
    seed: int | None = cli.rare("Seed; default: settings.yaml; an unused one with a baseline.")
    resume: bool = cli.flag("Continue the newest unfinished run.")
    run: str | None = cli.option("Continue the run with this id or in this folder.", metavar="ID")
    no_reuse: bool = cli.flag("Start a new run, even if an unfinished one could continue.")
    shard: str | None = cli.rare("Run only the I-th of N parts of the cases.", metavar="I/N")
    scenario: str | None = cli.rare("Wrap the prompt in the file .evaluator/scenarios/NAME.md.", metavar="NAME")
    no_prompt: bool = cli.flag("Send only the output schema instead of the prompt.")
    recorded_baseline: bool = cli.flag("Compare with the baseline's record; do not run it again.")
    failing: bool = cli.flag("Run again only the cases that failed in the newest record.")
    with_baseline: bool = cli.rare("Require a run of the baseline, even for a draft.", False)
    invocation: str | None = None
    baseline_commit: str | None = None
    limits: Mapping[str, Any] = field(default_factory=dict)
    rerun_baseline: bool = cli.rare("Run the highest recorded version again to measure noise.", False)
    draft: bool = cli.flag("Make a draft: it is in no leaderboard and never a baseline.")
    batch: cli.Batch = False
    results: Path | None = cli.rare("Folder for the runs; default: the component's evals/results.", metavar="DIR")
    leaderboard: bool = cli.rare(
        "Whether to add the record to leaderboard.json; default: yes.", True, negative="--no-leaderboard"
    )

    @property
    def resumed(self) -> str | None:
        """The run that the options ask to continue, or `latest` for the newest unfinished one.

        It is None if they name none; an unfinished run of the same inputs may still be continued.
        """
        return self.run or (cli.LATEST if self.resume else None)


@cli.options
class ManyRequest(EvaluationRequest):
    """The options of `evaluate` for one or several components."""

    skill: str = cli.argument("A component, its folder, or a glob; default: all that can run.", "", "COMPONENT")
    changed: bool = cli.flag("Run only the components that this branch changed.")
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
    replicates: int = cli.option("Calls per case and mutant.", 4, "-n")
    mutants: int = cli.option("Number of parts of the prompt to remove, longest first.", 40)
    dry_run: bool = cli.flag("List the mutants and their maximum cost; make no call.")
    results: Path | None = cli.rare("Folder for the runs; default: the component's evals/results.", metavar="DIR")


@cli.options
class SwitchRequest(cli.LibraryOptions):
    """The options of `switch`."""

    old: str = cli.argument("The model to replace.")
    new: str = cli.argument("The new model, an id of models.yaml.")
    skills: tuple[str, ...] = cli.argument(cli.SKILLS, (), "COMPONENT")
    replicates: int | None = cli.option("Calls per case and model; default 10 (settings.yaml).", None, "-n")
    dry_run: bool = cli.flag("Print the maximum cost; make no call.")
