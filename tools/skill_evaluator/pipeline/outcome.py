"""outcome.json: what became of every call of a plan, and the figures of every run, for the page and the comment.

Written once by `collect`; scored + failed + not run = planned, always.
"""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from skill_evaluator.errors import PlanError
from skill_evaluator.files import read_json, validated
from skill_evaluator.pipeline.manifest import Plan
from skill_evaluator.regression.results import ComparisonResult

OUTCOME = "outcome.json"
RECORDS = "records"  # beside it: the records, by component and run id

Status = Literal["complete", "incomplete", "skipped", "missing"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Figures(_Part):
    """What a reader looks for first in a record: of the accuracies, the strict mean of the primary metric."""

    skill_version: str
    accuracy: float | None
    ci95: tuple[float, float] | None
    reproducibility: float | None


class RunOutcome(_Part):
    """What became of a component on a model: every call, and the record if there is one.

    `status`: `complete`, `incomplete` (marked as such in its record, and never a baseline), `skipped` (its job said
    why) or `missing` (nothing arrived, or nothing was scored).
    """

    skill: str
    model_id: str
    status: Status
    reason: str
    planned: int
    scored: int
    failed: dict[str, int]
    run_id: str | None = None
    primary_metric: str | None = None
    figures: Figures | None = None
    cost_usd: float | None = None

    @property
    def not_run(self) -> int:
        """Calls that never were made, or of which nothing arrived."""
        return self.planned - self.scored - sum(self.failed.values())


class Outcome(_Part):
    """The file outcome.json. `verdicts`: of the components of which a lower version is recorded."""

    invocation: str
    head: str | None
    reason: str
    dry_run: bool
    runs: list[RunOutcome]
    verdicts: list[ComparisonResult] = []

    @property
    def complete(self) -> bool:
        """Whether every run that could be made was made."""
        return all(run.status in ("complete", "skipped") for run in self.runs)


def read_outcome(path: Path) -> Outcome:
    """Read what `collect` wrote; raises PlanError."""
    return validated(Outcome, read_json(path, PlanError), path, PlanError)


def lost(plan: Plan, reason: str) -> Outcome:
    """The outcome of a plan of which nothing could be collected."""
    planned: dict[tuple[str, str], int] = {}
    for entry in plan.entries:
        key = (entry.skill, entry.model_id)
        planned[key] = planned.get(key, 0) + entry.calls
    runs = [
        RunOutcome(skill=skill, model_id=model_id, status="missing", reason=reason, planned=calls, scored=0, failed={})
        for (skill, model_id), calls in planned.items()
    ]
    return Outcome(invocation=plan.invocation, head=plan.head, reason=plan.reason, dry_run=plan.dry_run, runs=runs)
