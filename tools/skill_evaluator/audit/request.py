"""What the audit's commands and those of scenarios are asked for: each field is an option. Imports nothing heavy."""

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
    Reason,
    argument,
    flag,
    option,
    options,
    rare,
)
from skill_evaluator.library.config import SafetyLimits, load_settings

Missing = Literal["refuse", "questions", "scenarios", "models"]  # holes: an error, or what is left out for them
Resampled = Literal["scenarios", "cases", "both"]


@options
class AuditPlaces(ComponentsOption, FixturesOption, ConfigOption):
    """The folders that an audit reads."""

    @cached_property
    def limits(self) -> SafetyLimits:
        """The limits under which they are read."""
        return load_settings(self.config).limits


@options
class AuditRequest(AuditPlaces):
    """How an audit is drawn; None and empty: as settings.yaml says, or as the audit was drawn before."""

    benchmarks: tuple[str, ...] = option(
        "A component to ask; repeatable; default: audit.benchmarks (settings.yaml), else all with output: choice.",
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
    replicates: int | None = option("Answers per question and scenario; default 2.", None, "-n")
    seed: int | None = rare("Seed of the draw and of the replicates' seeds; default 0.")
    max_cost: MaxCost = None


@options
class AuditRunRequest(AuditRequest):
    """What `audit run` asks, and how."""

    max_calls: MaxCalls = None
    concurrency: Concurrency = None
    shard: str | None = rare("Only the I-th of N parts of the questions.", metavar="I/N")
    resume: str | None = option("Continue an audit (default: the newest): ask only what has no answer.", metavar="[ID]")
    plan: Path | None = rare("Run the plan that `audit plan` wrote; started again, it continues.", metavar="FILE")
    dry_run: bool = flag("Check everything, make no call, print the size and the cost at most.")
    batch: Batch = False
    audits: Audits = AUDITS


@options
class AuditPlanRequest(AuditRequest):
    """What `audit plan` draws."""

    reason: Reason = ""
    out: Path = rare("Where the plan goes.", Path("audit-plan.json"), metavar="FILE")


@options
class AuditReportRequest(AuditPlaces):
    """What `audit report` reads and says. Without folder and `cube`: the newest audit below `audits`."""

    folders: tuple[Path, ...] = argument(
        "An audit's folder, or any that hold its runs; default: the newest below --audits.", (), metavar="FOLDER"
    )
    cube: Path | None = option(
        "A CSV instead of runs: model,template,<benchmark>,… in per cent, or an outcomes.csv of an audit.",
        metavar="FILE",
    )
    questions: int | None = option("How many questions each benchmark of the table has.", metavar="N", min=1)
    weights: tuple[str, ...] = rare(
        "How much a benchmark counts; repeatable; default: as the audit was drawn, else 1 each.",
        (),
        "--weight",
        metavar="NAME=W",
    )
    missing: Missing = rare("Where scores or answers are missing: refuse, or leave out for all.", "refuse")
    resampled: Resampled | None = rare(
        "What intervals and odds speak of. cases: these scenarios (default where single answers are known); "
        "scenarios, both: similar ones.",
        None,
        "--resample",
    )
    grades: int = rare("8: finer grades, from 20 models on.", 4, metavar="4|8")
    previous: Path | None = rare("An earlier report.json; default: the last beside this audit.", metavar="FILE")
    out: Path | None = option(
        "Where page, charts and cube go; default: the audit's folder; of a table, nowhere.", metavar="DIR"
    )
    plan: Path | None = rare("The plan; the folders hold the artifacts of its jobs.", metavar="FILE")
    audits: Audits = AUDITS


@options
class ScenariosCheckRequest(AuditPlaces):
    """The family that `scenarios check` judges, and by whose answers."""

    family: str | None = argument(
        "A folder of .evaluator/scenarios; default: the scenarios outside of folders.", None, metavar="FAMILY"
    )
    trial: Path | None = option(
        "Answers to use: an audit's folder or its outcomes.csv; default: the newest audit that asked them.",
        metavar="PATH",
    )
    audits: Audits = AUDITS
