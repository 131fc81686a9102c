"""How calls are asked for, in settings.yaml: again and in batches, what they may cost, how jobs are cut."""

from typing import Annotated

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from skill_evaluator.files import StrictModel


class Retry(StrictModel):
    """How often a failed call is tried again, and how long to wait before."""

    attempts: PositiveInt = 6
    first_wait_s: NonNegativeFloat = 0.5
    max_wait_s: PositiveFloat = 30.0
    max_retry_after_s: PositiveFloat = 120.0


class BatchSettings(StrictModel):
    """How `--batch` waits for a vendor, and whether it leaves there what was asked and answered."""

    poll_s: PositiveFloat = Field(default=60.0, description="seconds between two looks at a batch")
    delete_results: bool = Field(
        default=False, description="have the vendor delete a batch once its answers are here; it keeps them for a month"
    )


class SpendingCap(StrictModel):
    """What all runs that begin in a calendar month (UTC) may cost together; None: as much as they do."""

    month_usd: PositiveFloat | None = Field(
        default=None, description="USD a month; what may exceed it is refused, or stops there"
    )


class Jobs(StrictModel):
    """How a plan is cut into jobs for CI: the most calls of a job (about) and the most jobs of a run."""

    max_calls: PositiveInt = 1000
    max_jobs: Annotated[int, Field(ge=1, le=256)] = 256
