"""plan.json: the jobs that a push or a person asked for, with every call of each, and what does not run and why.

`plan` writes it once; the jobs and `collect` follow it. Every model has jobs of its own, so a failure stays its own.
"""

from pathlib import Path
from typing import Literal

from pydantic import NonNegativeInt, PositiveInt

from skill_evaluator.errors import PlanError
from skill_evaluator.files import FrozenModel, read_versioned
from skill_evaluator.runner.runs import BASELINE, run_id_of
from skill_evaluator.runner.schedule import Shard
from skill_evaluator.stats import total_or_none

PLAN_VERSION = 1


class PlannedBaseline(FrozenModel):
    """The version that a job asks beside the new one: the prompt at a commit, and what shapes its answers."""

    skill_version: str
    commit: str
    digests: dict[str, str]


class Entry(FrozenModel):
    """A job: a component on a model, or a shard of its cases, each asked `replicates` times; `cases` is id → digest.

    `environment` is the CI environment that holds the provider's key, `key_variable` the variable the provider reads
    ("" when it needs none). `max_cost_usd` is this job's part of the plan's cap. With a `baseline` the job makes two
    runs, whose calls alternate; `of_baseline` marks an entry that stands for the second of them (in no plan).
    """

    id: str
    skill: str
    skill_version: str
    model_id: str
    provider: str
    environment: str
    key_variable: str
    shard: str | None
    replicates: PositiveInt
    seed: int
    cases: dict[str, str]
    digests: dict[str, str]
    cost_upper_usd: float | None
    max_cost_usd: float | None = None
    baseline: PlannedBaseline | None = None
    of_baseline: bool = False

    @property
    def calls(self) -> int:
        """The number of calls the job is to make."""
        return len(self.cases) * self.replicates * (1 if self.baseline is None else 2)

    def run_id(self, invocation: str) -> str:
        """Return the id of the run this job makes, of the new version if there are two."""
        shard = None if self.shard is None else Shard.parse(self.shard)
        return run_id_of(invocation, self.model_id, shard, BASELINE if self.of_baseline else "")

    @property
    def runs(self) -> "tuple[Entry, ...]":
        """An entry for each run that the job makes: of the new version, then of the baseline beside it."""
        if self.baseline is None:
            return (self,)
        alone = self.model_copy(update={"baseline": None})
        of_baseline = {
            "skill_version": self.baseline.skill_version,
            "digests": self.baseline.digests,
            "of_baseline": True,
        }
        return alone, alone.model_copy(update=of_baseline)


class Skipped(FrozenModel):
    """A component that is not evaluated on these models, and why."""

    skill: str
    models: list[str]
    reason: str


class Chosen(FrozenModel):
    """A component that is evaluated on these models, and why."""

    skill: str
    models: list[str]
    reason: str


class Fault(FrozenModel):
    """A mistake at a line of a file, because of which a component does not run."""

    file: str
    line: NonNegativeInt
    message: str


class Plan(FrozenModel):
    """The file plan.json. `untouched` counts components that did not change and lack nothing."""

    plan_version: int = PLAN_VERSION
    invocation: str
    created: str
    trigger: Literal["push", "dispatch"]
    reason: str = ""
    base: str | None
    head: str | None
    scenario: str | None = None
    dry_run: bool = False
    entries: list[Entry]
    chosen: list[Chosen]
    skipped: list[Skipped]
    untouched: int = 0
    faults: list[Fault]

    @property
    def calls(self) -> int:
        """The number of calls all jobs are to make."""
        return sum(entry.calls for entry in self.entries)

    @property
    def cost_upper_usd(self) -> float | None:
        """The most all jobs can cost; None when a price is unknown."""
        return total_or_none(entry.cost_upper_usd for entry in self.entries)


def read_plan(path: Path) -> Plan:
    """Read a plan; raise PlanError when it is broken or of a newer version."""
    return read_versioned(Plan, path, "plan_version", PLAN_VERSION, PlanError)
