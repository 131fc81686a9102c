"""plan.json: the jobs that a push or a person asked for, with every call of each, and what does not run and why.

`plan` writes it once; the jobs and `collect` follow it. Every model has jobs of its own, so a failure stays its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, NonNegativeInt

from skill_evaluator import __version__
from skill_evaluator.errors import PlanError
from skill_evaluator.files import FrozenModel, read_versioned
from skill_evaluator.identifiers import (
    BASELINE,
    CaseId,
    Commit,
    ComponentName,
    Digest,
    FileName,
    Label,
    ModelId,
    ReplicateCount,
    RunId,
    ShardText,
    Timestamp,
    Usd,
    VersionText,
)
from skill_evaluator.library.config import Limits
from skill_evaluator.library.messages import DOCUMENT, UsedInputs
from skill_evaluator.library.versions import Problem
from skill_evaluator.runner.journal import Manifest, Transport
from skill_evaluator.runner.prices import Forecast
from skill_evaluator.runner.runs import run_id_of
from skill_evaluator.runner.schedule import Shard, replicates_beside
from skill_evaluator.stats import total_or_none

PLAN_VERSION = 1


class PlannedBaseline(FrozenModel):
    """The version that a job asks beside the new one: the prompt at a commit, and what shapes its answers."""

    skill_version: VersionText
    commit: Commit
    inputs: UsedInputs = (DOCUMENT,)
    digests: dict[str, Digest]


class Entry(FrozenModel):
    """A job: a component on a model, or a shard of its cases, each asked `replicates` times; `cases` is id → digest.

    `not_applicable` has the component's cases that this model is not asked in any shard, and why.

    `environment` is the CI environment that holds the provider's key, `key_variable` the variable the provider reads
    ("" when it needs none). `max_cost_usd` is this job's part of the plan's cap, `limits` that of what its model and
    provider take from all jobs together. With a `baseline` the job makes two
    runs, whose calls alternate. With the transport `batch` its calls go in batches.
    """

    id: FileName
    skill: ComponentName
    skill_version: VersionText
    model_id: ModelId
    provider: Label
    environment: Label
    key_variable: str
    shard: ShardText | None
    replicates: ReplicateCount
    seed: int
    cases: dict[CaseId, Digest]
    inputs: UsedInputs = (DOCUMENT,)
    not_applicable: dict[CaseId, Label] = Field(default={}, exclude_if=lambda reasons: not reasons)
    digests: dict[str, Digest]
    cost_upper_usd: Usd | None
    max_cost_usd: Usd | None = None
    limits: Limits | None = None
    baseline: PlannedBaseline | None = None
    transport: Transport = Field(default="direct", exclude_if=lambda transport: transport == "direct")

    @property
    def calls(self) -> int:
        """The number of calls the job is to make."""
        beside = 0 if self.baseline is None else replicates_beside(self.replicates)
        return len(self.cases) * (self.replicates + beside)

    @property
    def beside_words(self) -> str:
        """What is asked beside the new version, and how many calls that makes of one; empty where nothing is."""
        if self.baseline is None:
            return ""
        return f"beside {self.baseline.skill_version}: {self.calls / len(self.cases) / self.replicates:.3g} × the calls"

    def run_id(self, invocation: str, mark: str = "") -> str:
        """Return the id of the run this job makes; with a mark the id of a second run beside it."""
        shard = None if self.shard is None else Shard.parse(self.shard)
        return run_id_of(invocation, self.skill, self.model_id, shard, mark)


class PlannedJudging(FrozenModel):
    """A job that has a judge compare a component's new answers on one model, `candidate`, with those that are pinned.

    `model_id` is the judge. `baseline` is the run that the pinned outputs are of, `pinned` has their digests by case.
    Without a `baseline` it is asked which sentences hold, as the component's checks want it.
    """

    id: FileName
    skill: ComponentName
    candidate: ModelId
    model_id: ModelId
    provider: Label
    environment: Label
    key_variable: str
    shard: ShardText | None = None
    seed: int
    baseline: RunId | None = None
    pinned: dict[CaseId, Digest] = {}
    calls: NonNegativeInt
    cost_upper_usd: Usd | None
    max_cost_usd: Usd | None = None
    limits: Limits | None = None


class OnModels(FrozenModel):
    """A component on these models, and why it is evaluated on them, or is not."""

    skill: str
    models: list[str]
    reason: str


class Plan(FrozenModel):
    """The file plan.json. With the trigger `drift` it asks recorded versions again, to see whether a model moved.

    `untouched` counts components that did not change and lack nothing.

    `unjudged` are components that declare a judge, on models whose answers it is not asked about, and why. `forecast`
    says of each model, a judge among them, and of all what the calls cost in each way they can be asked. `retiring`
    says of the models that are switched off soon when.
    """

    plan_version: int = PLAN_VERSION
    invocation: RunId
    created: Timestamp
    trigger: Literal["push", "dispatch", "drift"]
    reason: str = ""
    base: Commit | None
    head: Commit | None
    scenario: Label | None = None
    dry_run: bool = False
    entries: list[Entry]
    chosen: list[OnModels]
    skipped: list[OnModels]
    untouched: NonNegativeInt = 0
    faults: list[Problem]
    evaluator_version: Label | None = None
    judgings: list[PlannedJudging] = []
    unjudged: list[OnModels] = []
    forecast: list[Forecast] = []
    retiring: list[str] = Field(default=[], exclude_if=lambda lines: not lines)

    @property
    def jobs(self) -> list[Entry | PlannedJudging]:
        """All jobs: those that evaluate, then those that judge what came of it."""
        return [*self.entries, *self.judgings]

    @property
    def calls(self) -> int:
        """The number of calls all jobs are to make."""
        return sum(job.calls for job in self.jobs)

    @property
    def cost_upper_usd(self) -> float | None:
        """The most all jobs can cost; None when a price is unknown."""
        return total_or_none(job.cost_upper_usd for job in self.jobs)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """A run that a job is to make, with all that its manifest must say; only when it begins is open."""

    job: str
    manifest: Manifest

    @property
    def calls(self) -> int:
        """The number of calls the run is to make."""
        return self.manifest.calls

    @property
    def is_baseline(self) -> bool:
        """Whether it asks the baseline beside a new version."""
        return self.manifest.role == BASELINE


def planned_runs(plan: Plan) -> Iterator[PlannedRun]:
    """Yield every run of every job: that of the new version, then that of the baseline beside it, if any."""
    for entry in plan.entries:
        alone = Manifest.view(
            entry,
            run_id=entry.run_id(plan.invocation),
            created=plan.created,
            scenario=plan.scenario,
            evaluator_version=plan.evaluator_version or __version__,
        )
        if entry.baseline is None:
            yield PlannedRun(job=entry.id, manifest=alone)
            continue
        of_baseline = {
            "run_id": entry.run_id(plan.invocation, BASELINE),
            "skill_version": entry.baseline.skill_version,
            "replicates": replicates_beside(entry.replicates),
            "inputs": entry.baseline.inputs,
            "digests": entry.baseline.digests,
            "role": BASELINE,
            "prompt_commit": entry.baseline.commit,
            "beside": alone.run_id,
        }
        yield PlannedRun(job=entry.id, manifest=alone.model_copy(update={"beside": of_baseline["run_id"]}))
        yield PlannedRun(job=entry.id, manifest=alone.model_copy(update=of_baseline))


def read_plan(path: Path) -> Plan:
    """Read a plan; raise PlanError when it is broken or of a newer version."""
    return read_versioned(Plan, path, "plan_version", PLAN_VERSION, PlanError)
