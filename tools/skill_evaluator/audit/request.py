"""The options of the commands `audit` and `scenarios`."""

from functools import cached_property
from pathlib import Path
from typing import Literal

from skill_evaluator.library import options as cli
from skill_evaluator.library.config import SafetyLimits, load_settings

Missing = Literal["refuse", "questions", "scenarios", "models"]  # an error, or the items to exclude if they lack scores


@cli.options
class AuditFolders(cli.LibraryOptions):
    """The folders of a library and of its audits."""

    audits: cli.Audits = cli.AUDITS

    @cached_property
    def limits(self) -> SafetyLimits:
        """The size limits of the files in these folders."""
        return load_settings(self.config).limits


@cli.options
class AuditRunRequest(cli.LimitsOption, AuditFolders):
    """The options of `audit run`. An omitted value is that of the audit to resume, or else of the configuration."""

    benchmarks: tuple[str, ...] = cli.option(
        "Component; default: settings, else all of `output: choice`.", (), "--benchmark", metavar="NAME"
    )
    scenarios: tuple[str, ...] = cli.option(
        "Run in this scenario, or folder of scenarios; repeatable.", (), "--scenario", metavar="NAME"
    )
    models: cli.OnlyModels = ()
    questions: int | None = cli.option("Draw N cases of each benchmark; default: settings, else all.", metavar="N")
    replicates: int | None = cli.option("Calls per question and scenario; default: settings, else 2.", None, "-n")
    seed: int | None = cli.rare("Seed of cases and calls; default: settings.yaml, else 0.")
    resume: bool = cli.flag("Continue the newest audit.")
    run: str | None = cli.option("Continue the audit with this id or in this folder.", metavar="ID")
    dry_run: bool = cli.flag("Check inputs and print the maximum cost; make no call.")
    batch: cli.Batch = False

    @property
    def resumed(self) -> str | None:
        """The id or folder of the audit to continue, `latest` for the newest, or None for a new audit."""
        return self.run or (cli.LATEST if self.resume else None)


@cli.options
class AuditReportRequest(AuditFolders):
    """The options of `audit report`. If `folder` and `cube` are both None, it reads the newest audit in `audits`."""

    folder: Path | None = cli.argument("An audit's folder; default: the newest.", None)
    cube: Path | None = cli.option("Read a CSV of scores in per cent instead of an audit.", metavar="FILE")
    questions: int | None = cli.option("With --cube: the number of questions of each benchmark.", metavar="N", min=1)
    centered: bool = cli.flag("Subtract the mean of each scenario before computing σ.")
    without: tuple[str, ...] = cli.option("Leave out this scenario; repeatable.", (), metavar="SCENARIO")
    weights: tuple[str, ...] = cli.rare("Weight of a benchmark; repeatable.", (), "--weight", metavar="NAME=W")
    missing: Missing = cli.rare("What to exclude if scores are missing; refuse: an error.", "refuse")
    grades: int = cli.rare("Number of grades: 4, or 8 (only with 20 models or more).", 4, metavar="4|8")
    out: Path | None = cli.option("Folder for page and charts; default: the audit's folder.", metavar="DIR")


@cli.options
class ScenariosCheckRequest(AuditFolders):
    """The options of `scenarios check`."""

    family: str | None = cli.argument("Family (folder) to check; default: scenarios in no folder.", None)
    trial: Path | None = cli.option("Audit whose scores to show; default: the newest that fits.", metavar="DIR")
