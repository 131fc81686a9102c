"""The options of the commands `audit` and `scenarios`. Imports nothing heavy."""

from functools import cached_property
from pathlib import Path
from typing import Literal

from skill_evaluator.display.options import (
    AUDITS,
    Audits,
    Batch,
    ComponentsOption,
    Concurrency,
    ConfigOption,
    FixturesOption,
    MaxCalls,
    MaxCost,
    OnlyModels,
    argument,
    flag,
    option,
    options,
    rare,
)
from skill_evaluator.library.config import SafetyLimits, load_settings

Missing = Literal["refuse", "questions", "scenarios", "models"]  # for missing scores: an error, or what to leave out


@options
class AuditPlaces(ComponentsOption, FixturesOption, ConfigOption):
    """The folders that an audit reads."""

    @cached_property
    def limits(self) -> SafetyLimits:
        """The limits under which they are read."""
        return load_settings(self.config).limits


@options
class AuditRequest(AuditPlaces):
    """The size of an audit; None and empty mean the value of settings.yaml or of the audit to resume."""

    benchmarks: tuple[str, ...] = option(
        "A component to audit on; repeatable; default: audit.benchmarks (settings.yaml), else all with output: choice.",
        (),
        "--benchmark",
        metavar="NAME",
    )
    scenarios: tuple[str, ...] = option(
        "A scenario of .evaluator/scenarios, or a folder there; repeatable; default: all outside of folders.",
        (),
        "--scenario",
        metavar="NAME",
    )
    models: OnlyModels = ()
    questions: int | None = option("Draw N cases of each benchmark, by the seed; default: all.", metavar="N")
    replicates: int | None = option("Outputs per question and scenario; default 2.", None, "-n")
    seed: int | None = rare("Seed of the drawn cases and of the calls; default 0.")
    max_cost: MaxCost = None


@options
class AuditRunRequest(AuditRequest):
    """The options of `audit run`."""

    max_calls: MaxCalls = None
    concurrency: Concurrency = None
    resume: str | None = option("Continue an audit (default: the newest); make only the missing calls.", metavar="[ID]")
    dry_run: bool = flag("Check all inputs, make no call, and print the size and the maximum cost.")
    batch: Batch = False
    audits: Audits = AUDITS


@options
class AuditReportRequest(AuditPlaces):
    """The options of `audit report`. Without folder and `cube`: the newest audit below `audits`."""

    folder: Path | None = argument("An audit's folder; default: the newest below --audits.", None, metavar="FOLDER")
    cube: Path | None = option(
        "A CSV of scores instead of an audit: model,template,<benchmark>,… in per cent.", metavar="FILE"
    )
    questions: int | None = option("The number of questions of each benchmark in --cube.", metavar="N", min=1)
    centered: bool = flag("Subtract each scenario's mean over the models before σ; for scenarios that are not neutral.")
    without: tuple[str, ...] = option("Leave out a scenario; repeatable.", (), "--without", metavar="SCENARIO")
    weights: tuple[str, ...] = rare(
        "The weight of a benchmark; repeatable; default: as the audit was drawn, else 1 each.",
        (),
        "--weight",
        metavar="NAME=W",
    )
    missing: Missing = rare("What to do if scores are missing: refuse, or leave out for all models.", "refuse")
    grades: int = rare("8: finer grades, for 20 models or more.", 4, metavar="4|8")
    out: Path | None = option(
        "Write page, charts and cube here; default: the audit's folder; with --cube nowhere.", metavar="DIR"
    )
    audits: Audits = AUDITS


@options
class ScenariosCheckRequest(AuditPlaces):
    """The options of `scenarios check`."""

    family: str | None = argument(
        "A folder of .evaluator/scenarios; default: the scenarios outside of folders.", None, metavar="FAMILY"
    )
    trial: Path | None = option(
        "An audit's folder with outputs in these scenarios; default: the newest such audit.", metavar="FOLDER"
    )
    audits: Audits = AUDITS


@options
class ScenariosDraftRequest(ConfigOption):
    """The family of scenarios that a model drafts."""

    task: str = option("The domain, in a few words.", ..., metavar="TEXT")
    model: str = option("The model of models.yaml that drafts.", ..., "-m", metavar="ID")
    family: str | None = option("The new folder of .evaluator/scenarios; default: from --task.", metavar="NAME")
    seed: int = rare("Seed of the call.", 0)
    max_cost: MaxCost = None
    dry_run: bool = flag("Print the maximum cost; make no call.")
