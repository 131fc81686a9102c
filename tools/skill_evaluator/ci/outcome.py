"""outcome.json: the outcome of each call of a plan, and the verdicts.

`collect` writes it, `report` reads it. Always scored + failed + not run = planned.
"""

from pathlib import Path
from typing import Literal

from pydantic import Field, NonNegativeInt
from pydantic.json_schema import SkipJsonSchema

from skill_evaluator.ci.plan import Plan, read_plan
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_REGRESSED, PlanError
from skill_evaluator.files import FrozenModel, read_json, validated
from skill_evaluator.identifiers import Commit, ComponentName, ModelId, RunId, Share, Usd, VersionText
from skill_evaluator.library.config import Policy
from skill_evaluator.library.versions import Problem
from skill_evaluator.stats import by_key
from skill_evaluator.verdicts.decide.results import ComparisonResult
from skill_evaluator.verdicts.decide.rules import exit_code_of

OUTCOME = "outcome.json"
RECORDS = "records"  # folder with files COMPONENT/RUN_ID.json
Status = Literal["complete", "incomplete", "refused", "skipped", "missing"]


class Figures(FrozenModel):
    """Figures of a record: `accuracy` is the strict mean of the primary metric; `ci95` requires five cases."""

    skill_version: VersionText
    accuracy: Share | None
    ci95: tuple[float, float] | None
    reproducibility: float | None


class LostValue(FrozenModel):
    """The value of a lost field in a case's most frequent output, before and after, shortened for a table."""

    case_id: str
    path: str
    before: str
    after: str


class RunOutcome(FrozenModel):
    """One run of a plan: its calls by outcome, and the id of its record if it has one.

    A run is `refused` if its version was recorded meanwhile with a different prompt, `skipped` if its job left a
    reason, and `missing` if no output arrived or was scored. `is_baseline` marks the interleaved baseline.
    """

    skill: ComponentName
    model_id: ModelId
    status: Status
    reason: str
    planned: NonNegativeInt
    scored: NonNegativeInt
    failed: dict[str, NonNegativeInt]
    run_id: RunId | None = None
    is_baseline: bool = False
    primary_metric: str | None = None
    figures: Figures | None = None
    cost_usd: Usd | None = None
    hit_rate: Share | None = Field(default=None, exclude_if=lambda rate: rate is None)
    lost_values: list[LostValue] = Field(default=[], exclude_if=lambda values: not values)


class Outcome(FrozenModel):
    """The file outcome.json.

    `verdicts` compare new versions with the recorded lower versions, `drift` recorded versions with their own earlier
    runs. `faults` are components that should have run but could not. `has_bug` is not in the file.
    """

    invocation: RunId
    head: Commit | None
    dry_run: bool
    draft: bool = Field(default=False, exclude_if=lambda draft: not draft)
    runs: list[RunOutcome]
    faults: list[Problem] = []
    verdicts: list[ComparisonResult] = []
    drift: list[ComparisonResult] = []
    has_bug: SkipJsonSchema[bool] = Field(default=False, exclude=True)

    @property
    def complete(self) -> bool:
        """Whether every run is complete or was skipped."""
        return all(run.status in ("complete", "skipped") for run in self.runs)

    def exit_code(self, policy: Policy) -> int:
        """Return 3 if a model drifted, else the exit code of the verdicts, else 4 if there are faults, else 0."""
        if any(model.moved for result in self.drift for model in result.models):
            return EXIT_REGRESSED
        code = exit_code_of(self.verdicts, policy) if self.verdicts else EXIT_OK
        return code or (EXIT_INCOMPLETE if self.faults else EXIT_OK)

    def verdict_on(self, run: RunOutcome) -> str | None:
        """Return the verdict on a run's version or on its model's drift. Return None if it was not compared."""
        drift = next(filter(None, (result.on_run(run.run_id) for result in self.drift)), None)
        if drift is not None:
            return "moved" if drift.moved else "no drift"
        models = (result.on_run(run.run_id) for result in self.verdicts if result.skill == run.skill)
        return next((model.verdict for model in models if model is not None), None)


def read_outcome(collected: Path, plan: Path | None = None) -> Outcome:
    """Read the outcome that `collect` wrote into a folder. If there is none, every run of `plan` is missing.

    Raise PlanError if the outcome is invalid, or missing without a plan.
    """
    path = collected / OUTCOME
    if plan is not None and not path.exists():
        return missing_outcome(read_plan(plan), "its results could not be collected; see the log of the run")
    return validated(Outcome, read_json(path, PlanError), path, PlanError)


def missing_outcome(plan: Plan, reason: str) -> Outcome:
    """Return the outcome of a plan in which every run is missing for the same reason."""
    calls = by_key(((run.skill, run.model_id), run.calls) for run in plan.runs)
    missing = {"status": "missing", "reason": reason, "scored": 0, "failed": {}}
    runs = [
        RunOutcome.model_validate({"skill": skill, "model_id": model_id, "planned": sum(planned), **missing})
        for (skill, model_id), planned in calls.items()
    ]
    return Outcome.view(plan, runs=runs)
